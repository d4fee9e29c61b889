// Sequence arithmetic, kept in this file only: 24-bit packet sequence numbers that wrap, and 64-bit byte sequence
// numbers; the low bits are sent on the wire.
#pragma once

#include <compare>
#include <cstdint>

namespace roci {

// Packet sequence number (IBTA 9.7.2): 24 bits, wraps to 0. There is no operator<: two PSNs have only a signed
// distance, which is meaningful if they are less than 2^23 apart.
class Psn {
 public:
  static constexpr uint32_t kMask = 0xffffff;
  static constexpr uint32_t kHalf = 0x800000;

  constexpr Psn() = default;
  // Takes the low 24 bits.
  constexpr explicit Psn(uint32_t value) : value_(value & kMask) {}
  [[nodiscard]] constexpr uint32_t value() const { return value_; }

  friend constexpr bool operator==(Psn, Psn) = default;
  friend constexpr Psn operator+(Psn p, uint32_t n) { return Psn{p.value_ + n}; }
  friend constexpr Psn operator-(Psn p, uint32_t n) { return Psn{p.value_ - n}; }
  constexpr Psn& operator+=(uint32_t n) { return *this = *this + n; }
  constexpr Psn& operator++() { return *this += 1; }

  // Distance from `b` to `a`, in [-2^23, 2^23); negative if `a` precedes `b`.
  friend constexpr int32_t operator-(Psn a, Psn b) {
    return static_cast<int32_t>((a.value_ - b.value_) << 8) >> 8;  // bit 23 is the sign
  }

 private:
  uint32_t value_ = 0;
};

// Forward distance from one PSN to another: 0 to 2^24 - 1. All of the 2^23 PSNs that may be in flight can be
// acknowledged at once, which is one more than the signed distance can represent.
constexpr uint32_t psns_between(Psn from, Psn to) { return (to.value() - from.value()) & Psn::kMask; }
constexpr bool is_before(Psn a, Psn b) { return a - b < 0; }
constexpr bool is_after(Psn a, Psn b) { return a - b > 0; }
// Whether first <= p <= last, modulo 2^24 from `first`.
constexpr bool is_within(Psn p, Psn first, Psn last) {
  return psns_between(first, p) <= psns_between(first, last);
}

// Message sequence number (IBTA 9.7.5.1.5): 24 bits, counts completed messages.
class Msn {
 public:
  constexpr Msn() = default;
  constexpr explicit Msn(uint32_t value) : value_(value & Psn::kMask) {}
  [[nodiscard]] constexpr uint32_t value() const { return value_; }
  friend constexpr bool operator==(Msn, Msn) = default;
  constexpr Msn& operator++() { return *this = Msn{value_ + 1}; }

 private:
  uint32_t value_ = 0;
};

// Byte sequence number of one direction of a queue pair (draft-dai-tsvwg-pfc-free-congestion-control §3.1): 64 bits
// internally, so it does not wrap in practice and is totally ordered.
class Lsn {
 public:
  constexpr Lsn() = default;
  constexpr explicit Lsn(uint64_t value) : value_(value) {}
  [[nodiscard]] constexpr uint64_t value() const { return value_; }
  friend constexpr auto operator<=>(Lsn, Lsn) = default;
  friend constexpr Lsn operator+(Lsn l, uint64_t bytes) { return Lsn{l.value_ + bytes}; }
  constexpr Lsn& operator+=(uint64_t bytes) { return *this = *this + bytes; }
  friend constexpr uint64_t operator-(Lsn a, Lsn b) { return a.value_ - b.value_; }

 private:
  uint64_t value_ = 0;
};

// Full LSN with the low 32 bits `wire` that is closest to `near`, for formats with 32 bits. Correct if the two are less
// than 2^31 bytes apart.
constexpr Lsn unwrap_lsn(uint32_t wire, Lsn near) {
  const auto delta = static_cast<int32_t>(wire - static_cast<uint32_t>(near.value()));
  return Lsn{near.value() + static_cast<uint64_t>(static_cast<int64_t>(delta))};
}

}  // namespace roci

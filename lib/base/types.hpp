// Unit types. Each unit is a type of its own, so that the compiler rejects adding a PSN to a byte count or passing a
// rate as a size.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <functional>

namespace roci {

// Time since an origin that all pollers of one runner share, or a duration. Real-time runners use the monotonic clock;
// virtual time starts at 0.
using Nanos = std::chrono::nanoseconds;
using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): for literals such as 4us
inline constexpr Nanos kNever = Nanos::max();
// For interfaces with plain integers; `time` must not be negative.
constexpr uint64_t plain_nanos(Nanos time) { return static_cast<uint64_t>(time.count()); }

// Integer type that does not mix with other integer types.
template <class Tag, class Rep>
class Strong {
 public:
  using rep = Rep;
  constexpr Strong() = default;
  constexpr explicit Strong(Rep value) : value_(value) {}
  [[nodiscard]] constexpr Rep value() const { return value_; }
  friend constexpr auto operator<=>(Strong, Strong) = default;

 private:
  Rep value_{};
};

// Queue pair number, 24 bits on the wire. 0 and 1 are the management queue pairs, 0xffffff is multicast.
using Qpn = Strong<struct QpnTag, uint32_t>;
// Number of an XRC shared receive queue, 24 bits on the wire.
using Srqn = Strong<struct SrqnTag, uint32_t>;
// L_Key or R_Key of a memory region or window, 32 bits.
using MemoryKey = Strong<struct MemoryKeyTag, uint32_t>;
// Q_Key of an unreliable datagram queue pair, 32 bits.
using QKey = Strong<struct QKeyTag, uint32_t>;
// Partition key. The top bit is full membership; only the low 15 bits are compared (IBTA 10.9.3).
using PKey = Strong<struct PKeyTag, uint16_t>;
inline constexpr PKey kDefaultPKey{0xffff};

// Number of bytes.
class Bytes : public Strong<struct BytesTag, uint64_t> {
 public:
  using Strong::Strong;
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return Bytes{a.value() + b.value()}; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return Bytes{a.value() - b.value()}; }
};
constexpr Bytes operator""_KiB(unsigned long long n) { return Bytes{n << 10}; }
constexpr Bytes operator""_MiB(unsigned long long n) { return Bytes{n << 20}; }
constexpr Bytes operator""_GiB(unsigned long long n) { return Bytes{n << 30}; }

// Rate. Where a limit is configured, 0 means no limit.
class BitsPerSec : public Strong<struct BitsPerSecTag, uint64_t> {
 public:
  using Strong::Strong;
  // Transmission time of `bytes` at this rate, rounded up to a whole nanosecond so that a sender never exceeds the
  // rate. The rate must not be 0.
  [[nodiscard]] constexpr Nanos time_for(Bytes bytes) const {
    __extension__ using Wide = unsigned __int128;  // 64 bits would overflow for 2^64 bytes at 1 b/s
    const Wide bits_nanos = static_cast<Wide>(bytes.value()) * 8 * 1'000'000'000;
    return Nanos{static_cast<int64_t>((bits_nanos + value() - 1) / value())};
  }
};
constexpr BitsPerSec operator""_Gbps(unsigned long long n) { return BitsPerSec{n * 1'000'000'000}; }
constexpr BitsPerSec operator""_Mbps(unsigned long long n) { return BitsPerSec{n * 1'000'000}; }

}  // namespace roci

template <class Tag, class Rep>
struct std::hash<roci::Strong<Tag, Rep>> {
  size_t operator()(roci::Strong<Tag, Rep> v) const noexcept { return std::hash<Rep>{}(v.value()); }
};

// State of a switch egress port in telemetry. It is sent in packets (telemetry_header.hpp), and to a sender in the
// INT-ECHO extension and in the INT responses of switches.
#pragma once

#include <bit>
#include <cstdint>

#include "base/types.hpp"
#include "wire/headers/endian.hpp"

namespace roci {

// A number in 16 bits: 12 bits of mantissa, shifted left by the 4 bits of exponent above them. Values below 4096 and
// the usual link rates in Mb/s (up to 3125 << 8 = 800 G and beyond) are exact. Others are rounded down by less than
// 1/2048. A code table of rates would report an unforeseen link with another rate.
class ScaledCount {
 public:
  static constexpr uint32_t kMax = 0xfffU << 15;

  constexpr ScaledCount() = default;
  // Returns the largest representable number that is not above `value`.
  static constexpr ScaledCount of(uint64_t value) {
    if (value >= kMax) return from_code(0xffff);
    const auto width = static_cast<unsigned>(std::bit_width(value));
    const unsigned exponent = width > 12 ? width - 12 : 0;
    return from_code(static_cast<uint16_t>(exponent << 12 | value >> exponent));
  }
  static constexpr ScaledCount from_code(uint16_t code) {
    ScaledCount count;
    count.code_ = code;
    return count;
  }
  [[nodiscard]] constexpr uint16_t code() const { return code_; }
  [[nodiscard]] constexpr uint32_t value() const {
    return static_cast<uint32_t>(code_ & 0xfff) << (code_ >> 12);
  }
  friend constexpr bool operator==(ScaledCount, ScaledCount) = default;

 private:
  uint16_t code_ = 0;
};

// Wire format of a hop.
struct IntHop {
  Be32 switch_port;  // switch id 20 | egress port 12
  Be32 time;         // ns of the switch's clock when the packet left the queue; wraps after 4.3 s
  Be32 tx_units;     // bytes that the port has sent, in units of kTxUnit; wraps after 32 GiB
  Be16 rate;         // of the link: ScaledCount of Mb/s; 0: unknown
  Be16 queue;        // bytes in the queue behind the packet: ScaledCount
};
static_assert(sizeof(IntHop) == 16);

struct IntHopValues {
  static constexpr uint64_t kTxUnit = 8;

  uint32_t switch_id = 0;  // 20 bits
  uint16_t port = 0;       // 12 bits
  uint32_t time = 0;
  uint32_t tx_units = 0;
  ScaledCount rate_mbps;
  ScaledCount queue_bytes;

  [[nodiscard]] constexpr BitsPerSec rate() const {
    return BitsPerSec{static_cast<uint64_t>(rate_mbps.value()) * 1'000'000};
  }
  friend constexpr bool operator==(const IntHopValues&, const IntHopValues&) = default;
};

constexpr IntHopValues read_hop(const IntHop& hop) {
  const uint32_t id = hop.switch_port.get();
  return {
      id >> 12,           static_cast<uint16_t>(id & 0xfff),      hop.time.get(),
      hop.tx_units.get(), ScaledCount::from_code(hop.rate.get()), ScaledCount::from_code(hop.queue.get())};
}
constexpr IntHop write_hop(const IntHopValues& v) {
  return {Be32{v.switch_id << 12 | (v.port & 0xfffU)}, Be32{v.time}, Be32{v.tx_units},
          Be16{v.rate_mbps.code()}, Be16{v.queue_bytes.code()}};
}

}  // namespace roci

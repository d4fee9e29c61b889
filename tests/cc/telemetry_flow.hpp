// A flow of an algorithm that uses telemetry, and telemetry for it.
#pragma once

#include "cc/driver.hpp"

namespace roci::test {

// A flow of 50 Gb/s and 8.4 us on links of 100 Gb/s. A link sends a whole number of 8-byte units in 2 us, but not in
// 1 us. With twice the times and queues of HPCC's vectors, W_init and all U are the same.
constexpr uint64_t kPort = 50'000'000'000;
constexpr uint64_t kLink = 100'000'000'000;
constexpr uint32_t kTick = 2000;
constexpr uint32_t kFull = 25'000 / 8;
inline roci_cc_flow flow_of_vectors() {
  roci_cc_flow flow = Driver::usual_flow();
  flow.line_rate = kPort;
  flow.base_rtt_ns = 8400;
  return flow;
}

class TelemetryFlow : public Driver {
 public:
  explicit TelemetryFlow(const char* name, const Values& values = {},
                         const roci_cc_flow& on = flow_of_vectors())
      : Driver(plugin(name), values, on) {
    hops(1);
  }

  void hops(uint32_t count) {
    path.hops = count;
    for (uint32_t i = 0; i < count; ++i)
      path.hop[i] = {.node = 1 + i,
                     .port = 3,
                     .time_ns = 0,
                     .sent_units = 0,
                     .rate = kLink,
                     .queue_bytes = 0,
                     .reserved = 0};
  }
  // Advances the time at every hop, and the sent units by the same amount.
  void pass(uint32_t nanos, uint32_t units) {
    for (uint32_t i = 0; i < path.hops; ++i) {
      path.hop[i].time_ns += nanos;
      path.hop[i].sent_units += units;
    }
    event.now_ns += nanos;
  }
  // The telemetry arrives with an ACK of `packets` packets.
  const roci_cc_decision& tell(uint32_t packets = 1) {
    event.acked += packets * kPayload;
    if (event.next < event.acked) event.next = event.acked;
    event.acked_packets = packets;
    event.acked_bytes = uint64_t{packets} * flow.packet_bytes;
    event.path = &path;
    return call(ROCI_CC_ON_ACK | ROCI_CC_ON_TELEMETRY);
  }
  const roci_cc_decision& tell_after(uint32_t nanos, uint32_t units, uint32_t packets = 1) {
    pass(nanos, units);
    return tell(packets);
  }
  // The first sample is stored, with a window of packets in flight.
  void first() {
    event.next = 52 * kPayload;
    tell();
    EXPECT_EQ(reason_name(), "first_sample");
  }
  // Member of the state after 8 hops of 16 bytes.
  [[nodiscard]] double member(size_t index) { return number_at(128 + 8 * index); }

  roci_cc_path path{};
};

}  // namespace roci::test

// A flow without an engine: calls a plugin like the engine, with the default parameters unless a test sets others.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "roci/cc.h"

namespace roci::test {

// Bytes of a full packet of the usual flow.
inline constexpr uint64_t kPacket = 1048, kPayload = 1000;

// Returns a built-in plugin.
inline const roci_cc_plugin& plugin(const std::string& name) {
  for (const roci_cc_plugin* const* each = roci_cc_plugins(); *each != nullptr; ++each)
    if (name == (*each)->name) return **each;
  ADD_FAILURE() << "no plugin " << name;
  return **roci_cc_plugins();
}

class Driver {
 public:
  using Values = std::map<std::string, double>;

  // 100 Gb/s, 4.2 us, and packets of 1048 bytes with 1000 bytes of payload, as in the published vectors.
  static roci_cc_flow usual_flow() {
    return {.line_rate = 100'000'000'000,
            .base_rtt_ns = 4200,
            .packet_bytes = kPacket,
            .payload_bytes = kPayload,
            .direction = ROCI_CC_REQUESTS,
            .provides = 0xffff,
            .seed = 1};
  }

  explicit Driver(const roci_cc_plugin& plugin, const Values& values = {},
                  const roci_cc_flow& on = usual_flow(), uint64_t now = 0)
      : plugin_(plugin), flow(on) {
    for (uint32_t i = 0; i < plugin.parameter_count; ++i)
      parameters.push_back(plugin.parameters[i].default_value);
    for (const auto& [name, value] : values) parameters[index_of(name)] = value;
    decision.window = decision.rate = ROCI_CC_NO_LIMIT;
    event.now_ns = now;
    plugin.start(state(), &flow, now, parameters.data(), &decision);
  }

  [[nodiscard]] size_t index_of(const std::string& name) const {
    for (uint32_t i = 0; i < plugin_.parameter_count; ++i)
      if (name == plugin_.parameters[i].name) return i;
    ADD_FAILURE() << plugin_.name << " has no parameter " << name;
    return 0;
  }

  // Passes `event` to the plugin. Then clears it, except for the time and the positions of the flow.
  const roci_cc_decision& call(uint32_t kinds) {
    event.kinds = kinds;
    for (unsigned timer = 0; timer < 2; ++timer)
      if ((kinds & (ROCI_CC_ON_TIMER0 << timer)) != 0) decision.timer_ns[timer] = 0;
    decision.requests &= ROCI_CC_TELEMETRY_ONLY_ASKED;
    decision.reason = 0;
    plugin_.event(state(), &flow, &event, parameters.data(), &decision);
    const roci_cc_event before = event;
    event = roci_cc_event{};
    event.now_ns = before.now_ns;
    event.acked = before.acked;
    event.next = before.next;
    event.in_flight = before.in_flight;
    event.least_rtt_ns = before.least_rtt_ns;
    return decision;
  }
  // `packets` full packets are acknowledged, of which `marked` had CE.
  const roci_cc_decision& ack(uint32_t packets = 1, uint32_t marked = 0) {
    event.acked += uint64_t{packets} * flow.payload_bytes;
    event.acked_packets = packets;
    event.marked_packets = marked;
    event.acked_bytes = uint64_t{packets} * flow.packet_bytes;
    return call(ROCI_CC_ON_ACK);
  }
  const roci_cc_decision& cnp(uint32_t count = 1) {
    event.cnps = count;
    return call(ROCI_CC_ON_CNP);
  }
  const roci_cc_decision& rtt(uint32_t nanos, uint32_t kinds = ROCI_CC_ON_RTT) {
    event.rtt_ns = nanos;
    if (event.least_rtt_ns == 0 || nanos < event.least_rtt_ns) event.least_rtt_ns = nanos;
    return call(kinds);
  }
  // Advances the time to `then` with all timers that expire. Returns their number.
  unsigned wait_until(uint64_t then) {
    unsigned fired = 0;
    while (true) {
      unsigned first = 2;
      for (unsigned timer = 0; timer < 2; ++timer) {
        if (decision.timer_ns[timer] == 0 || decision.timer_ns[timer] > then) continue;
        if (first == 2 || decision.timer_ns[timer] < decision.timer_ns[first]) first = timer;
      }
      if (first == 2) break;
      event.now_ns = std::max(event.now_ns, decision.timer_ns[first]);
      call(ROCI_CC_ON_TIMER0 << first);
      ++fired;
    }
    event.now_ns = then;
    return fired;
  }
  unsigned wait(uint64_t nanos) { return wait_until(event.now_ns + nanos); }

  [[nodiscard]] std::string state_name() const { return plugin_.states[decision.state].name; }
  [[nodiscard]] std::string reason_name() const { return plugin_.reasons[decision.reason].name; }
  [[nodiscard]] void* state() { return bytes_.data(); }
  // Number in the state, after `offset` bytes.
  [[nodiscard]] double number_at(size_t offset) const {
    double value = 0;
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }

 private:
  const roci_cc_plugin& plugin_;
  alignas(8) std::array<uint8_t, ROCI_CC_MAX_STATE> bytes_{};

 public:
  roci_cc_flow flow;
  roci_cc_event event{};
  roci_cc_decision decision{};
  std::vector<double> parameters;
};

}  // namespace roci::test

// Random events, for tests of properties that must always hold.
#pragma once

#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "roci/cc.h"

namespace roci::test {

inline std::vector<const roci_cc_plugin*> every_plugin() {
  std::vector<const roci_cc_plugin*> plugins;
  for (const roci_cc_plugin* const* each = roci_cc_plugins(); *each != nullptr; ++each)
    plugins.push_back(*each);
  return plugins;
}

// Any flow that the engine may start with this plugin: its requirements are met, others may be.
inline roci_cc_flow any_flow(std::mt19937_64& rng, const roci_cc_plugin& plugin) {
  constexpr uint64_t kLineRates[] = {100'000'000, 10'000'000'000, 100'000'000'000, 1'600'000'000'000};
  constexpr uint64_t kBaseRtts[] = {0, 1, 4200, 10'000'000'000};
  constexpr uint32_t kPayloads[] = {256, 1024, 4096};
  const auto of = [&](const auto& values) { return values[rng() % std::size(values)]; };
  const uint32_t payload = of(kPayloads);
  return {.line_rate = of(kLineRates),
          .base_rtt_ns = of(kBaseRtts),
          .packet_bytes = payload + 60 + static_cast<uint32_t>(rng() % 60),
          .payload_bytes = payload,
          .direction = static_cast<uint32_t>(rng() % 2),
          .provides = (plugin.capabilities | static_cast<uint32_t>(rng())) & 0xffff,
          .seed = rng()};
}

// Values of all parameters by name: the limits, the default or any value between, of each.
inline std::map<std::string, double> any_values(std::mt19937_64& rng, const roci_cc_plugin& plugin) {
  std::map<std::string, double> values;
  for (uint32_t i = 0; i < plugin.parameter_count; ++i) {
    const roci_cc_parameter& p = plugin.parameters[i];
    const double between = p.min + (p.max - p.min) * (static_cast<double>(rng() >> 11) * 0x1p-53);
    const double choices[] = {p.min, p.default_value, p.max, between};
    values[p.name] = choices[rng() % 4];
  }
  return values;
}

// Events in any order and with any values: forged feedback, wrong counts of the peer, constant time.
inline roci_cc_event anything(std::mt19937_64& rng, const roci_cc_event& before, roci_cc_path& path) {
  const auto any = [&](uint64_t most) { return rng() % (most + 1); };
  const auto wild = [&] { return static_cast<uint32_t>(rng() >> any(63)); };
  roci_cc_event e{};
  e.now_ns = before.now_ns + (any(3) == 0 ? 0 : any(1'000'000) >> any(20));
  e.kinds = static_cast<uint32_t>(1U << any(12)) | (any(3) == 0 ? static_cast<uint32_t>(1U << any(12)) : 0U);
  e.next = before.next + any(9000);
  e.acked = before.acked + any(e.next - before.acked);
  e.in_flight = any(1) == 0 ? e.next - e.acked : wild();
  e.acked_packets = wild();
  e.marked_packets = wild();
  e.acked_bytes = wild();
  e.sent_bytes = wild();
  e.sent_packets = wild();
  e.losses = wild();
  e.timeouts = wild();
  e.cnps = wild();
  e.rtt_ns = wild();
  e.least_rtt_ns = any(3) == 0 ? 0 : wild();
  e.peer_delay_ns = wild();
  e.hops = static_cast<uint32_t>(any(ROCI_CC_MAX_HOPS));
  e.receiver_window = wild();
  e.flows_at_receiver = wild();
  e.cnm.point = rng();
  e.cnm.queue_offset = static_cast<int64_t>(rng() >> any(63)) * (any(1) == 0 ? 1 : -1);
  e.cnm.queue_delta = static_cast<int64_t>(rng() >> any(63)) * (any(1) == 0 ? 1 : -1);
  e.cnm.available = any(1) == 0 ? 0 : rng() >> any(63);
  e.cnm.rate_change = any(1) == 0 ? 0 : static_cast<int64_t>(rng() >> any(63)) * (any(1) == 0 ? 1 : -1);
  e.cnm.feedback = static_cast<uint32_t>(any(63));
  if ((e.kinds & ROCI_CC_ON_TELEMETRY) != 0) {
    path.hops = static_cast<uint32_t>(any(ROCI_CC_MAX_HOPS));
    path.flags = static_cast<uint32_t>(any(15));
    path.age_ns = wild();
    for (uint32_t i = 0; i < path.hops; ++i) {
      roci_cc_hop& hop = path.hop[i];
      if (any(1) == 0) hop.node = static_cast<uint32_t>(any(3));
      hop.time_ns += any(1) == 0 ? static_cast<uint32_t>(any(10'000)) : wild();
      hop.sent_units += any(1) == 0 ? static_cast<uint32_t>(any(10'000)) : wild();
      hop.rate = any(3) == 0 ? wild() : 100'000'000'000;
      hop.queue_bytes = wild();
    }
    e.path = &path;
  }
  return e;
}

}  // namespace roci::test

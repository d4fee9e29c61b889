// Random events, for tests of properties that must always hold.
#pragma once

#include <random>
#include <vector>

#include "roci/cc.h"

namespace roci::test {

inline std::vector<const roci_cc_plugin*> every_plugin() {
  std::vector<const roci_cc_plugin*> plugins;
  for (const roci_cc_plugin* const* each = roci_cc_plugins(); *each != nullptr; ++each)
    plugins.push_back(*each);
  return plugins;
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

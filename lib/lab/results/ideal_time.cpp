#include "lab/results/ideal_time.hpp"

#include <algorithm>

#include "base/time/line_clock.hpp"

namespace roci::lab {
namespace {

// Bytes on the line in addition to payload: Ethernet, IPv4, UDP, BTH and ICRC, and preamble, FCS and inter-frame gap.
constexpr double kHeaders = 14 + 20 + 8 + 12 + 4 + static_cast<double>(kEthernetLineOverhead.value());
constexpr double kReth = 16, kAck = kHeaders + 4;  // an acknowledgment has an AETH

// Time of a packet, with `bytes` on the line, from host to host, and of its acknowledgment back.
struct RoundTrip {
  double nanos = 0;
  double slowest = 0;  // ns per byte, of the slowest cable
};
RoundTrip round_trip(const Scenario& scenario, uint32_t from, uint32_t to, double bytes) {
  RoundTrip out;
  for (const uint32_t number : scenario.topology.path(from, to)) {
    const CableSpec& cable = scenario.topology.cables[number].spec;
    const auto rate = static_cast<double>(cable.rate.value());
    out.nanos += 2 * static_cast<double>(cable.delay.count()) + (bytes + kAck) * 8e9 / rate;
    out.slowest = std::max(out.slowest, 8e9 / rate);
  }
  return out;
}

}  // namespace

Nanos base_rtt(const Scenario& scenario, uint32_t from, uint32_t to) {
  return Nanos{static_cast<int64_t>(round_trip(scenario, from, to, scenario.path_mtu + kHeaders).nanos)};
}

double ideal_time(const Scenario& scenario, const FlowPlan& flow) {
  if (flow.bytes == FlowPlan::kUnlimited) return 0;
  const auto bytes = static_cast<double>(flow.bytes);
  const uint64_t whole = std::max<uint64_t>(1, (flow.bytes + scenario.path_mtu - 1) / scenario.path_mtu);
  const auto packets = static_cast<double>(whole);
  const double first = std::min(bytes, static_cast<double>(scenario.path_mtu)) + kHeaders + kReth;
  const double rest = bytes + packets * kHeaders + kReth - first;
  const RoundTrip trip = round_trip(scenario, flow.from, flow.to, first);
  return trip.nanos + rest * trip.slowest;
}

}  // namespace roci::lab

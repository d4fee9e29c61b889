#include "lab/traffic/warm_up.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "device/host/host.hpp"

namespace roci::lab {
namespace {

constexpr Nanos kWarmUp = 20ms;
constexpr Nanos kMaxWarmUp = 2s;
// Number of peers with which a host exchanges capabilities at a time, and the time for this.
constexpr uint32_t kPairsAtOnce = 16;
constexpr Nanos kWarmUpInterval = 2ms;

// Whether the capability exchange of each queue pair is complete in both directions, or not supported by the peer.
bool all_resolved(Network& network) {
  bool known = true;
  for (uint32_t h = 0; h < network.scenario().topology.hosts.size(); ++h) {
    const Host& host = network.device(h).host();
    for (uint32_t worker = 0; worker < host.workers(); ++worker) {
      host.worker(worker).for_each_queue_pair([&](const AttachedQueuePair& qp) {
        if (qp.peer == nullptr) return;
        const PeerKnowledge peer = qp.peer->read();
        known &= peer.confirmed || peer.status == PeerStatus::kStandard;
      });
    }
  }
  return known;
}

}  // namespace

Status warm_up_addresses(Network& network, WindowRunner& runner, const TrafficPlan& plan) {
  std::set<std::pair<uint32_t, uint32_t>> pairs;
  for (const FlowPlan& flow : plan.flows) pairs.insert(std::minmax(flow.from, flow.to));
  for (const LoopPlan& loop : plan.loops) pairs.insert(std::minmax(loop.from, loop.to));
  std::vector<uint32_t> known(network.scenario().topology.hosts.size());
  for (const auto& [one, other] : pairs) ++known[one], ++known[other];
  if (std::ranges::max(known) <= kPairsAtOnce) return {};
  TrafficSpec plain;
  plain.congestion_control = "none";
  while (!pairs.empty()) {
    std::ranges::fill(known, 0);
    std::vector<Network::Connection> meeting;
    for (auto pair = pairs.begin(); pair != pairs.end();) {
      const auto [one, other] = *pair;
      if (known[one] == kPairsAtOnce || known[other] == kPairsAtOnce) {
        ++pair;
        continue;
      }
      auto made = network.connect(one, other, plain);
      if (!made) return fail(made.error());
      meeting.push_back(std::move(*made));
      ++known[one], ++known[other];
      pair = pairs.erase(pair);
    }
    for (auto& node : network.nodes()) node->touch(runner.now());
    ROCI_TRY(runner.run_until(runner.now() + kWarmUpInterval));
  }
  return {};
}

Status wait_until_known(Network& network, WindowRunner& runner) {
  const Nanos end = runner.now() + kMaxWarmUp;
  do {
    if (runner.now() >= end)
      return fail(std::string("hosts did not resolve each other's addresses within 2 s") +
                  (network.has_real_ports()
                       ? "; check that the two ports of each link are connected to each other"
                       : ""));
    ROCI_TRY(runner.run_until(runner.now() + kWarmUp));
  } while (!all_resolved(network));
  return {};
}

}  // namespace roci::lab

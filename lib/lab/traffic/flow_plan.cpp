#include "lab/traffic/flow_plan.hpp"

#include <algorithm>
#include <cmath>

#include "base/rng.hpp"

namespace roci::lab {
namespace {

constexpr size_t kMaxFlows = 20'000'000;

using Pair = std::pair<uint32_t, uint32_t>;

// Fisher and Yates; std::shuffle differs between implementations.
void shuffle(std::vector<uint32_t>& values, Rng& rng) {
  for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[rng.below(i)]);
}

Status too_many_flows(const TrafficSpec& spec) {
  return fail("traffic '" + spec.name + "' exceeds " + std::to_string(kMaxFlows) + " flows");
}

std::vector<Pair> pairs_of(const TrafficSpec& spec, Rng& rng) {
  using Pattern = TrafficSpec::Pattern;
  std::vector<Pair> pairs;
  switch (spec.pattern) {
    case Pattern::kFanIn:
    case Pattern::kAllToAll:
      for (const uint32_t to : spec.to) {
        for (const uint32_t from : spec.from)
          if (from != to) pairs.emplace_back(from, to);
      }
      break;
    case Pattern::kPairs:
      for (size_t i = 0; i < spec.from.size(); ++i) pairs.emplace_back(spec.from[i], spec.to[i]);
      break;
    case Pattern::kPermutation: {
      std::vector<uint32_t> to = spec.to;
      for (size_t i = to.size(); i < spec.from.size(); ++i) to.push_back(spec.to[i % spec.to.size()]);
      shuffle(to, rng);
      // A sender that has drawn itself swaps receivers with the next sender.
      for (size_t i = 0; i < spec.from.size(); ++i)
        if (to[i] == spec.from[i]) std::swap(to[i], to[(i + 1) % to.size()]);
      for (size_t i = 0; i < spec.from.size(); ++i)
        if (to[i] != spec.from[i]) pairs.emplace_back(spec.from[i], to[i]);
      break;
    }
    case Pattern::kRandom:
      break;
  }
  return pairs;
}

Status plan_at_once(const Scenario& scenario, uint32_t number, Rng& rng, TrafficPlan& plan) {
  const TrafficSpec& spec = scenario.traffic[number];
  const std::vector<Pair> pairs = pairs_of(spec, rng);
  if (pairs.empty()) return fail("traffic '" + spec.name + "' has no flow: each sender is its own receiver");
  if ((kMaxFlows - plan.flows.size()) / spec.flows < pairs.size()) return too_many_flows(spec);
  constexpr Nanos kLatest = 24h * 365;
  if (spec.stagger > kLatest / static_cast<int64_t>(pairs.size()))
    return fail("traffic '" + spec.name + "': stagger is too long for " + std::to_string(pairs.size()) +
                " pairs");
  Nanos start = spec.start;
  for (const auto& [from, to] : pairs) {
    for (uint32_t i = 0; i < spec.flows; ++i) {
      plan.flows.push_back({number, from, to, start,
                            spec.unlimited ? FlowPlan::kUnlimited : spec.size.draw(rng), spec.operation});
    }
    start += spec.stagger;
  }
  return {};
}

// Draws one of `hosts` except `but`.
uint32_t draw_other(const std::vector<uint32_t>& hosts, uint32_t but, Rng& rng) {
  for (;;) {
    const uint32_t drawn = hosts[rng.below(hosts.size())];
    if (drawn != but) return drawn;
  }
}

double exponential(Rng& rng, double mean) { return -mean * std::log(1 - rng.unit()); }

Status plan_listed(const Scenario& scenario, uint32_t number, TrafficPlan& plan) {
  const TrafficSpec& spec = scenario.traffic[number];
  if (plan.flows.size() + spec.list.size() > kMaxFlows) return too_many_flows(spec);
  for (const ListedFlow& flow : spec.list)
    plan.flows.push_back({number, flow.from, flow.to, flow.start, flow.bytes, spec.operation});
  return {};
}

Status plan_poisson(const Scenario& scenario, uint32_t number, Rng& rng, TrafficPlan& plan) {
  const TrafficSpec& spec = scenario.traffic[number];
  const Topology& topology = scenario.topology;
  const auto rate_of = [&](uint32_t host) {
    return static_cast<double>(topology.cables[topology.hosts[host].cable].spec.rate.value());
  };
  const double mean_bits = spec.size.mean() * 8;
  const Nanos end = std::min(spec.stop, scenario.duration);
  const auto add = [&](uint32_t from, uint32_t to, double at) -> Status {
    if (plan.flows.size() >= kMaxFlows) return too_many_flows(spec);
    plan.flows.push_back(
        {number, from, to, Nanos{static_cast<int64_t>(at)}, spec.size.draw(rng), spec.operation});
    return {};
  };
  if (spec.degree > 0) {
    double offered = 0;
    for (const uint32_t host : spec.from) offered += rate_of(host) * spec.load;
    const double mean_gap = mean_bits * spec.degree / offered * 1e9;
    for (double at = static_cast<double>(spec.start.count()) + exponential(rng, mean_gap);
         at < static_cast<double>(end.count()); at += exponential(rng, mean_gap)) {
      const uint32_t to = spec.to[rng.below(spec.to.size())];
      std::vector<uint32_t> senders = spec.from;
      std::erase(senders, to);
      shuffle(senders, rng);
      senders.resize(std::min<size_t>(senders.size(), spec.degree));
      for (const uint32_t from : senders) ROCI_TRY(add(from, to, at));
    }
    return {};
  }
  for (const uint32_t from : spec.from) {
    if (std::ranges::all_of(spec.to, [&](uint32_t to) { return to == from; })) continue;
    const double mean_gap = mean_bits / (rate_of(from) * spec.load) * 1e9;
    for (double at = static_cast<double>(spec.start.count()) + exponential(rng, mean_gap);
         at < static_cast<double>(end.count()); at += exponential(rng, mean_gap))
      ROCI_TRY(add(from, draw_other(spec.to, from, rng), at));
  }
  return {};
}

}  // namespace

uint64_t TrafficPlan::busy_hosts() const {
  std::vector<bool> busy(kMaxHosts);
  for (const FlowPlan& flow : flows) busy[flow.from] = busy[flow.to] = true;
  for (const LoopPlan& loop : loops) busy[loop.from] = busy[loop.to] = true;
  return static_cast<uint64_t>(std::ranges::count(busy, true));
}

Result<TrafficPlan> plan_traffic(const Scenario& scenario) {
  TrafficPlan plan;
  Rng rng{scenario.seed};
  for (uint32_t number = 0; number < scenario.traffic.size(); ++number) {
    Rng own = rng.fork();  // further traffic in the file does not change these draws
    const TrafficSpec& spec = scenario.traffic[number];
    switch (spec.arrivals) {
      case TrafficSpec::Arrivals::kAtOnce:
        ROCI_TRY(plan_at_once(scenario, number, own, plan));
        break;
      case TrafficSpec::Arrivals::kPoisson:
        ROCI_TRY(plan_poisson(scenario, number, own, plan));
        break;
      case TrafficSpec::Arrivals::kListed:
        ROCI_TRY(plan_listed(scenario, number, plan));
        break;
      case TrafficSpec::Arrivals::kClosedLoop:
        for (const auto& [from, to] : pairs_of(spec, own))
          plan.loops.push_back({number, from, to, own.next()});
        break;
    }
  }
  std::ranges::stable_sort(plan.flows, {}, &FlowPlan::start);
  return plan;
}

}  // namespace roci::lab

#include "lab/results/summary.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lab/results/ideal_time.hpp"

namespace roci::lab {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kPortsNamed = 32;

// Upper ends of the size classes of flows, as in published figures.
constexpr std::array<uint64_t, 9> kSizeEnds = {3'000,     10'000,     30'000,
                                               100'000,   300'000,    1'000'000,
                                               3'000'000, 10'000'000, std::numeric_limits<uint64_t>::max()};
// Rounded values are identical on all machines, and readable.
double rounded(double value) { return to_digits(value, 6); }

// `sorted` must not be empty.
double percentile(const std::vector<double>& sorted, double part) {
  return sorted[static_cast<size_t>(part * static_cast<double>(sorted.size() - 1))];
}

// Without values only the count: a claim about a percentile of no values must not hold.
Json percentiles(std::vector<double> values) {
  if (values.empty()) return {{"count", 0}};
  std::ranges::sort(values);
  double sum = 0;
  for (const double value : values) sum += value;
  return {{"count", values.size()},
          {"mean", rounded(sum / static_cast<double>(values.size()))},
          {"p50", rounded(percentile(values, 0.5))},
          {"p95", rounded(percentile(values, 0.95))},
          {"p99", rounded(percentile(values, 0.99))},
          {"most", rounded(values.back())}};
}

Json percentiles(const Histogram& histogram) {
  if (histogram.count() == 0) return {{"count", 0}};
  return {{"mean", rounded(histogram.mean())},
          {"p50", histogram.at(0.5)},
          {"p95", histogram.at(0.95)},
          {"p99", histogram.at(0.99)},
          {"most", histogram.most()}};
}

double jain(const std::vector<double>& rates) {
  double sum = 0, squares = 0;
  for (const double rate : rates) {
    sum += rate;
    squares += rate * rate;
  }
  return squares == 0 ? 0 : sum * sum / (static_cast<double>(rates.size()) * squares);
}

Json slowdowns_by_size(const std::vector<std::pair<uint64_t, double>>& of) {
  std::vector<double> all;
  std::array<std::vector<double>, kSizeEnds.size()> bins;
  for (const auto& [bytes, slowdown] : of) {
    const size_t bin = static_cast<size_t>(std::ranges::upper_bound(kSizeEnds, bytes) - kSizeEnds.begin());
    bins[std::min(bin, bins.size() - 1)].push_back(slowdown);
    all.push_back(slowdown);
  }
  Json out{{"all", percentiles(std::move(all))}};
  for (size_t i = 0; i < bins.size(); ++i)
    if (!bins[i].empty()) out[kSizeNames[i]] = percentiles(std::move(bins[i]));
  return out;
}

double seconds_of(const TimeWindow& window) {
  return static_cast<double>((window.until - window.from).count()) / 1e9;
}

// Goodput of the flows of a traffic, and round-trip times of their packets.
Json rates_summary(const Measurements& of, const Meter& meter, uint32_t number, bool unlimited) {
  const double seconds = seconds_of(meter.window);
  uint64_t bytes = 0;
  std::vector<double> rates;
  for (size_t i = 0; i < of.plan.flows.size(); ++i) {
    if (of.plan.flows[i].traffic != number) continue;
    bytes += meter.bytes[i];
    rates.push_back(static_cast<double>(meter.bytes[i]) * 8 / seconds);
  }
  // Messages of closed loops count in the window in which they end.
  for (const LoopResult& one : of.loops) {
    if (of.plan.loops[one.loop].traffic == number && one.end >= meter.window.from &&
        one.end < meter.window.until)
      bytes += one.bytes;
  }
  Json out;
  if (unlimited) {
    const auto [least, most] = std::ranges::minmax_element(rates);
    out["jain"] = rounded(jain(rates));
    out["least_bps"] = rounded(*least);
    out["most_bps"] = rounded(*most);
  }
  out["goodput_bps"] = rounded(static_cast<double>(bytes) * 8 / seconds);
  if (meter.round_trips[number].count() > 0) out["rtt_ns"] = percentiles(meter.round_trips[number]);
  return out;
}

Json loop_summary(const Scenario& scenario, const Measurements& of, const TimeWindow& window,
                  uint32_t number) {
  std::vector<double> times;
  std::vector<std::pair<uint64_t, double>> slowdowns;
  for (const LoopResult& one : of.loops) {
    const LoopPlan& loop = of.plan.loops[one.loop];
    if (loop.traffic != number || one.end < window.from || one.end >= window.until) continue;
    times.push_back(static_cast<double>((one.end - one.start).count()));
    const FlowPlan alone{number,    loop.from, loop.to,
                         one.start, one.bytes, scenario.traffic[number].operation};
    slowdowns.emplace_back(one.bytes, times.back() / ideal_time(scenario, alone));
  }
  Json out;
  out["messages"] = times.size();
  out["messages_per_second"] = rounded(static_cast<double>(times.size()) / seconds_of(window));
  out["latency_ns"] = percentiles(std::move(times));
  out["slowdown"] = slowdowns_by_size(slowdowns);
  return out;
}

Json flows_summary(const Measurements& of, uint32_t number, bool unlimited) {
  uint64_t flows = 0, failed = 0;
  std::vector<FlowTime> times;
  for (size_t i = 0; i < of.plan.flows.size(); ++i) {
    const FlowPlan& flow = of.plan.flows[i];
    if (flow.traffic != number) continue;
    ++flows;
    const FlowResult& result = of.flows[i];
    if (result.failed) ++failed;
    if (result.end == kNever || result.failed || unlimited) continue;
    times.push_back({flow.bytes, static_cast<double>((result.end - flow.start).count()), of.ideal[i]});
  }
  Json out;
  out["flows"] = flows;
  out["failed"] = failed;
  if (!unlimited) out.update(completion_summary(times));
  return out;
}

Json traffic_summary(const Scenario& scenario, const Measurements& of, const Meter& whole, uint32_t number) {
  const TrafficSpec& spec = scenario.traffic[number];
  Json out = spec.arrivals == TrafficSpec::Arrivals::kClosedLoop
                 ? loop_summary(scenario, of, whole.window, number)
                 : flows_summary(of, number, spec.unlimited);
  out.update(rates_summary(of, whole, number, spec.unlimited));
  return out;
}

// Ports with the longest queues first.
Json queue_summary(const Measurements& of, const std::vector<Histogram>& queues) {
  Histogram all;
  std::vector<size_t> order;
  for (size_t i = 0; i < queues.size(); ++i) {
    all.add(queues[i]);
    order.push_back(i);
  }
  std::ranges::stable_sort(order, std::greater<>{}, [&](size_t i) { return queues[i].most(); });
  if (order.size() > kPortsNamed) order.resize(kPortsNamed);
  Json out{{"all_ports", percentiles(all)}};
  for (const size_t i : order) out[of.queue_most.names[i]] = percentiles(queues[i]);
  return out;
}

void add_network(Json& out, const Measurements& of, const Meter& meter) {
  out["queues_bytes"] = queue_summary(of, meter.queues);
  out["drops"] = meter.counted.drops;
  out["switches"] = meter.counted.switches;
  out["hosts"] = meter.counted.hosts;
}

Json window_summary(const Scenario& scenario, const Measurements& of, const Meter& meter) {
  Json out;
  out["from_ns"] = meter.window.from.count();
  out["until_ns"] = meter.window.until.count();
  for (uint32_t i = 0; i < scenario.traffic.size(); ++i)
    out["traffic"][scenario.traffic[i].name] = rates_summary(of, meter, i, scenario.traffic[i].unlimited);
  add_network(out, of, meter);
  return out;
}

}  // namespace

double to_digits(double value, int digits) {
  if (value == 0 || !std::isfinite(value)) return 0;
  const double scale = std::pow(10.0, digits - 1 - std::floor(std::log10(std::fabs(value))));
  return std::round(value * scale) / scale;
}

nlohmann::ordered_json completion_summary(const std::vector<FlowTime>& flows) {
  std::vector<double> times;
  std::vector<std::pair<uint64_t, double>> slowdowns;
  for (const FlowTime& flow : flows) {
    times.push_back(flow.duration);
    slowdowns.emplace_back(flow.bytes, flow.duration / flow.ideal);
  }
  Json out;
  out["ended"] = times.size();
  out["completion_ns"] = percentiles(std::move(times));
  out["slowdown"] = slowdowns_by_size(slowdowns);
  return out;
}

nlohmann::ordered_json summarize(const Scenario& scenario, const Measurements& of, const Meter& whole,
                                 const std::vector<Meter>& windows) {
  Json out;
  out["scenario"] = scenario.name;
  out["seed"] = scenario.seed;
  out["duration_ns"] = scenario.duration.count();
  out["settle_ns"] = scenario.settle.count();
  out["network"] = {{"hosts", scenario.topology.hosts.size()},
                    {"switches", scenario.topology.switches.size()},
                    {"cables", scenario.topology.cables.size()},
                    {"base_rtt_ns", scenario.host.congestion_control.base_rtt.count()}};
  for (uint32_t i = 0; i < scenario.traffic.size(); ++i)
    out["traffic"][scenario.traffic[i].name] = traffic_summary(scenario, of, whole, i);
  add_network(out, of, whole);
  for (const Meter& meter : windows) out["windows"][meter.window.name] = window_summary(scenario, of, meter);
  return out;
}

}  // namespace roci::lab

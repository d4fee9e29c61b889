#include "lab/summary.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lab/ideal_time.hpp"

namespace roci::lab {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kPortsNamed = 32;

// Flows by size, as the field's figures have them.
constexpr std::array<uint64_t, 9> kSizeEnds = {3'000,     10'000,     30'000,
                                               100'000,   300'000,    1'000'000,
                                               3'000'000, 10'000'000, std::numeric_limits<uint64_t>::max()};
// What is written down is the same on every machine, and readable.
double rounded(double value) { return to_digits(value, 6); }

double percentile(const std::vector<double>& sorted, double part) {
  if (sorted.empty()) return 0;
  return sorted[static_cast<size_t>(part * static_cast<double>(sorted.size() - 1))];
}

Json percentiles(std::vector<double> values) {
  std::ranges::sort(values);
  double sum = 0;
  for (const double value : values) sum += value;
  return {{"count", values.size()},
          {"mean", values.empty() ? 0 : rounded(sum / static_cast<double>(values.size()))},
          {"p50", rounded(percentile(values, 0.5))},
          {"p95", rounded(percentile(values, 0.95))},
          {"p99", rounded(percentile(values, 0.99))},
          {"most", values.empty() ? 0 : rounded(values.back())}};
}

Json percentiles(const Histogram& histogram) {
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

Json traffic_summary(const Scenario& scenario, const Measurements& of, const Measured& measured,
                     uint32_t number) {
  const TrafficSpec& spec = scenario.traffic[number];
  const double seconds = static_cast<double>((scenario.duration - scenario.settle).count()) / 1e9;
  uint64_t flows = 0, ended = 0, failed = 0, bytes = 0;
  std::vector<double> rates;
  std::vector<std::pair<uint64_t, double>> slowdowns;
  std::vector<double> times;
  for (size_t i = 0; i < of.plan.flows.size(); ++i) {
    const FlowPlan& flow = of.plan.flows[i];
    if (flow.traffic != number) continue;
    ++flows;
    bytes += measured.bytes_measured[i];
    const FlowResult& result = of.flows[i];
    if (result.failed) ++failed;
    if (flow.bytes == FlowPlan::kUnlimited) {
      rates.push_back(static_cast<double>(measured.bytes_measured[i]) * 8 / seconds);
      continue;
    }
    if (result.end == kNever || result.failed) continue;
    ++ended;
    const auto took = static_cast<double>((result.end - flow.start).count());
    times.push_back(took);
    slowdowns.emplace_back(flow.bytes, took / of.ideal[i]);
  }
  Json out;
  if (spec.arrivals == TrafficSpec::Arrivals::kClosedLoop) {
    std::vector<double> messages;
    std::vector<std::pair<uint64_t, double>> of_messages;
    for (const LoopResult& one : of.loops) {
      const LoopPlan& loop = of.plan.loops[one.loop];
      if (loop.traffic != number || one.end < scenario.settle || one.end > scenario.duration) continue;
      bytes += one.bytes;
      messages.push_back(static_cast<double>((one.end - one.start).count()));
      of_messages.emplace_back(
          one.bytes, messages.back() / ideal_time(scenario, {number, loop.from, loop.to, one.start, one.bytes,
                                                             spec.operation}));
    }
    out["messages"] = messages.size();
    out["messages_per_second"] = rounded(static_cast<double>(messages.size()) / seconds);
    out["latency_ns"] = percentiles(std::move(messages));
    out["slowdown"] = slowdowns_by_size(of_messages);
  } else {
    out["flows"] = flows;
    if (spec.unlimited) {
      const auto [least, most] = std::ranges::minmax_element(rates);
      out["jain"] = rounded(jain(rates));
      out["least_bps"] = rounded(*least);
      out["most_bps"] = rounded(*most);
    } else {
      out["ended"] = ended;
      out["completion_ns"] = percentiles(std::move(times));
      out["slowdown"] = slowdowns_by_size(slowdowns);
    }
  }
  out["failed"] = failed;
  out["goodput_bps"] = rounded(static_cast<double>(bytes) * 8 / seconds);
  return out;
}

Json queue_summary(const Measurements& of, const Measured& measured) {
  Histogram all;
  std::vector<size_t> order;
  for (size_t i = 0; i < measured.queues.size(); ++i) {
    all.add(measured.queues[i]);
    if (measured.queues[i].most() > 0) order.push_back(i);
  }
  std::ranges::stable_sort(order, std::greater<>{}, [&](size_t i) { return measured.queues[i].most(); });
  if (order.size() > kPortsNamed) order.resize(kPortsNamed);
  Json out{{"all_ports", percentiles(all)}};
  for (const size_t i : order) out[of.queue_most.names[i]] = percentiles(measured.queues[i]);
  return out;
}

Json json_of(const std::map<std::string, uint64_t>& sums) {
  Json out = Json::object();
  for (const auto& [name, value] : sums)
    if (value != 0) out[name] = value;
  return out;
}

}  // namespace

double to_digits(double value, int digits) {
  if (value == 0 || !std::isfinite(value)) return 0;
  const double scale = std::pow(10.0, digits - 1 - std::floor(std::log10(std::fabs(value))));
  return std::round(value * scale) / scale;
}

CounterSums CounterSums::minus(const CounterSums& before) const {
  const auto subtract = [](const auto& from, const auto& what) {
    auto out = from;
    for (const auto& [name, value] : what) out[name] -= value;
    return out;
  };
  return {subtract(hosts, before.hosts), subtract(switches, before.switches), subtract(drops, before.drops)};
}

CounterSums count(Network& network) {
  CounterSums sums;
  const Topology& topology = network.scenario().topology;
  for (uint32_t h = 0; h < topology.hosts.size(); ++h) {
    for (const auto& [name, value] : network.device(h).counters()) sums.hosts[name] += value;
  }
  for (uint32_t s = 0; s < topology.switches.size(); ++s) {
    const Switch& one = network.at(s);
    for (size_t p = 0; p < one.port_count(); ++p) {
      const SwitchPortCounters& port = one.counters(p);
      sums.switches["rx_packets"] += port.rx_packets;
      sums.switches["tx_packets"] += port.tx_packets;
      sums.switches["tx_bytes"] += port.tx_bytes;
      sums.switches["telemetry_hops"] += port.telemetry_hops;
      for (const SwitchClassCounters& one_class : port.classes) {
        sums.switches["marked"] += one_class.marked;
        sums.switches["pauses_sent"] += one_class.pauses_sent;
        sums.switches["paused_ns"] += one_class.paused_nanos;
      }
      for (unsigned reason = 0; reason < kDropReasonCount; ++reason)
        sums.drops[std::string(drop_reason_name(static_cast<DropReason>(reason)))] += port.drops[reason];
    }
    sums.switches["cnps_sent"] += one.cnp_counts().of(CnpEvent::kSent);
    sums.switches["cnms_sent"] += one.cnm_counts().of(CnmEvent::kSent);
  }
  return sums;
}

nlohmann::ordered_json summarise(const Scenario& scenario, const Measurements& of, const Measured& measured) {
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
    out["traffic"][scenario.traffic[i].name] = traffic_summary(scenario, of, measured, i);
  out["queues_bytes"] = queue_summary(of, measured);
  out["drops"] = json_of(measured.counted.drops);
  out["switches"] = json_of(measured.counted.switches);
  out["hosts"] = json_of(measured.counted.hosts);
  return out;
}

}  // namespace roci::lab

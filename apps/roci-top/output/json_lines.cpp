#include "roci-top/output/json_lines.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace roci::top {
namespace {

using nlohmann::json;

// Values that are not counters: they may decrease.
constexpr std::array<std::string_view, 29> kStates = {"link_up",
                                                      "rate",
                                                      "queue_limit",
                                                      "queue_bytes",
                                                      "queue_packets",
                                                      "queue_peak_bytes",
                                                      "port/ring_bytes",
                                                      "port/ring_peak_bytes",
                                                      "port/ring_size",
                                                      "used_classes",
                                                      "ports",
                                                      "faults_enabled",
                                                      "mac",
                                                      "mtu",
                                                      "path_mtu",
                                                      "link_rate",
                                                      "workers",
                                                      "control_cores",
                                                      "queue_pairs",
                                                      "max_qp",
                                                      "qpn",
                                                      "responses",
                                                      "peer_qpn",
                                                      "send_psn",
                                                      "window",
                                                      "gap_ns",
                                                      "in_flight",
                                                      "rtt_ns",
                                                      "least_rtt_ns"};

bool is_state(const std::string& name) {
  return std::ranges::find(kStates, name) != kStates.end() || name.starts_with("states/");
}

// Texts and states, and the counters in "counts" and "per_second".
json counted_json(const Counted& now, const Counted* before) {
  json out = json::object(), counts = json::object(), rates = json::object();
  for (const auto& [name, text] : now.texts) out[name] = text;
  for (const auto& [name, value] : now.numbers) {
    if (is_state(name)) {
      out[name] = value;
    } else {
      counts[name] = value;
      rates[name] = per_second(now, before, name);
    }
  }
  out["counts"] = std::move(counts);
  out["per_second"] = std::move(rates);
  return out;
}

json port_json(const PortSample& port, const PortSample* before) {
  json out = counted_json(port.counted, before == nullptr ? nullptr : &before->counted);
  out["name"] = port.name;
  json classes = json::object();
  for (const auto& [number, counted] : port.classes) {
    const Counted* from = before == nullptr ? nullptr : find(before->classes, number);
    classes[std::to_string(number)] = counted_json(counted, from);
  }
  out["classes"] = std::move(classes);
  return out;
}

json switch_json(const SwitchSample& sw, const SwitchSample* before) {
  json out = counted_json(sw.info, before == nullptr ? nullptr : &before->info);
  out["name"] = sw.name;
  for (const auto& [kind, events] : sw.events)
    out[kind] = counted_json(events, before == nullptr ? nullptr : find(before->events, kind));
  json ports = json::array();
  for (size_t i = 0; i < sw.ports.size(); ++i)
    ports.push_back(port_json(sw.ports[i], find_port(before, sw.ports[i].name, i)));
  out["ports"] = std::move(ports);
  return out;
}

json queue_pair_json(const QueuePairSample& qp, const QueuePairSample* before) {
  json out = counted_json(qp.counted, before == nullptr ? nullptr : &before->counted);
  out["responses"] = qp.responses;
  // The value 0 means that there is no limit.
  for (const char* limit : {"rate", "window"}) {
    if (qp.counted.number(limit) == 0) out[limit] = nullptr;
  }
  return out;
}

// Port counters are in "counts" and "per_second" together with the host's counters, with the prefix "port/".
json host_json(const HostSample& host, const HostSample* before) {
  json out = counted_json(host.info, before == nullptr ? nullptr : &before->info);
  const json counters = counted_json(host.counters, before == nullptr ? nullptr : &before->counters);
  for (const char* kind : {"counts", "per_second"}) out[kind].update(counters[kind]);
  out["name"] = host.name;
  out["queue_pair_count"] = host.info.number("queue_pairs");
  out["queue_pairs_looked_at"] = host.looked_at;
  json queue_pairs = json::array();
  for (const QueuePairSample& qp : host.queue_pairs) {
    if (qp.shown) queue_pairs.push_back(queue_pair_json(qp, find_queue_pair(before, qp)));
  }
  out["queue_pairs"] = std::move(queue_pairs);
  return out;
}

}  // namespace

json to_json(const Snapshot& now, const Snapshot& before) {
  json processes = json::array();
  for (const ProcessSample& process : now.processes) {
    json switches = json::array();
    for (const SwitchSample& sw : process.switches)
      switches.push_back(switch_json(sw, now.at == before.at ? nullptr : before.find(process, sw)));
    json hosts = json::array();
    for (const HostSample& host : process.hosts)
      hosts.push_back(host_json(host, now.at == before.at ? nullptr : before.find(process, host)));
    processes.push_back({{"prefix", process.prefix},
                         {"pid", process.pid},
                         {"program", process.program},
                         {"hosts", std::move(hosts)},
                         {"switches", std::move(switches)}});
  }
  return {{"seconds", static_cast<double>((now.at - before.at).count()) * 1e-9},
          {"silent_processes", now.silent},
          {"processes", std::move(processes)}};
}

}  // namespace roci::top

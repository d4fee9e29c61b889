#include "roci-top/json_lines.hpp"

#include <array>
#include <string_view>

namespace roci::top {
namespace {

using nlohmann::json;

// What is no counter: it does not only grow.
constexpr std::array<std::string_view, 10> kStates = {
    "link_up",          "rate",         "queue_limit", "queue_bytes",    "queue_packets",
    "queue_peak_bytes", "used_classes", "ports",       "faults_enabled", "mac"};

bool is_state(const std::string& name) {
  for (const std::string_view state : kStates) {
    if (state == name) return true;
  }
  return false;
}

// States and texts beside "counts" and "per_second".
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

json port_json(const PortSeen& port, const PortSeen* before) {
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

json switch_json(const SwitchSeen& sw, const SwitchSeen* before) {
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

}  // namespace

json to_json(const Snapshot& now, const Snapshot& before) {
  json processes = json::array();
  for (const ProcessSeen& process : now.processes) {
    json switches = json::array();
    for (const SwitchSeen& sw : process.switches)
      switches.push_back(switch_json(sw, now.at == before.at ? nullptr : before.find(process, sw)));
    processes.push_back({{"prefix", process.prefix},
                         {"pid", process.pid},
                         {"program", process.program},
                         {"switches", std::move(switches)}});
  }
  return {{"seconds", static_cast<double>((now.at - before.at).count()) * 1e-9},
          {"silent_processes", now.silent},
          {"processes", std::move(processes)}};
}

}  // namespace roci::top

#include "lab/exchange/ns3_scenario_text.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "lab/exchange/ns3_words.hpp"

namespace roci::lab {
namespace {

constexpr uint32_t kTelemetryPort = 5201;
constexpr uint64_t kFrameBytes = 1366;     // path MTU, headers, telemetry and line overhead
constexpr uint64_t kFramesOnHostLink = 4;  // that a paused host still sends
constexpr unsigned kAlphaShift = 3;        // PFC pauses at 1/8 of the free buffer, at the rate of hosts

std::string quoted_yaml(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return out + "\"";
}

std::string nanos_text(Nanos time) { return std::to_string(time.count()) + "ns"; }

std::string topology_yaml(const Ns3Topology& of) {
  std::string hosts, switches, links;
  for (uint32_t node = 0; node < of.nodes(); ++node)
    if (!of.is_switch[node]) hosts += (hosts.empty() ? "" : ", ") + of.name_of(node);
  for (const uint32_t node : of.switches) switches += (switches.empty() ? "" : ", ") + of.name_of(node);
  for (const Ns3Link& link : of.links) {
    links += "    - {between: [" + of.name_of(link.a) + ", " + of.name_of(link.b) +
             "], rate: " + std::to_string(link.rate.value()) + "bps, delay: " + nanos_text(link.delay) +
             "}\n";
  }
  return "topology:\n  kind: graph\n  hosts: [" + hosts + "]\n  switches: [" + switches + "]\n  links:\n" +
         links;
}

std::string priorities_text(const Ns3Experiment& of) {
  std::string out;
  for (const uint8_t priority : of.priorities()) out += (out.empty() ? "" : ", ") + std::to_string(priority);
  return "[" + out + "]";
}

std::string hosts_yaml(const Ns3Experiment& of) {
  const uint64_t acks = std::clamp<uint64_t>(
      (of.settings.ack_interval + of.settings.payload - 1) / of.settings.payload, 1, 1024);
  std::string out = "hosts:\n  path_mtu: " + std::to_string(of.path_mtu) +
                    "\n  packets_per_ack: " + std::to_string(acks) + "\n";
  if (of.settings.pfc) out += "  flow_control: {pfc: " + priorities_text(of) + "}\n";
  if (of.settings.selective_repeat) out += "  extensions: {selective_repeat: true}\n";
  if (of.settings.mode == Ns3Mode::kHpcc)
    out += "  telemetry: {udp_port: " + std::to_string(kTelemetryPort) + ", begin: all}\n";
  out +=
      "  congestion_control:\n    profile: imported\n    base_rtt: " + nanos_text(of.longest.rtt) +
      "\n    notification_point: {interval: 0}\n    profiles:\n      - name: imported\n        algorithm: " +
      of.algorithm.plugin + "\n        parameters:\n";
  for (const auto& [name, value] : of.algorithm.parameters)
    out += "          " + name + ": " + shortest_number(value) + "\n";
  return out;
}

// Whether the algorithm reacts to marks. Otherwise receivers would send CNPs without effect.
bool uses_marks(Ns3Mode mode) { return mode == Ns3Mode::kDcqcn || mode == Ns3Mode::kDctcp; }

// Marks and PFC of one class at ports of one rate.
Result<std::string> class_yaml(const Ns3Experiment& of, uint64_t rate, Nanos delay, uint8_t number) {
  const Ns3Settings& settings = of.settings;
  std::string out = "{class: " + std::to_string(number);
  if (settings.mark && uses_marks(settings.mode)) {
    const auto kmin = settings.kmin.find(rate), kmax = settings.kmax.find(rate),
               pmax = settings.pmax.find(rate);
    if (kmin == settings.kmin.end() || kmax == settings.kmax.end() || pmax == settings.pmax.end())
      return fail("KMIN_MAP, KMAX_MAP, PMAX_MAP: a value for links of " + std::to_string(rate) +
                  " bit/s is required");
    if (kmax->second < kmin->second) return fail("KMAX_MAP: must not be below KMIN_MAP");
    out += ", mark: {kmin: " + shortest_number(kmin->second * 1e3) +
           ", kmax: " + shortest_number(kmax->second * 1e3) + ", pmax: " + shortest_number(pmax->second) +
           "}, mark_at: dequeue";
  }
  if (settings.pfc) {
    unsigned shift = kAlphaShift;
    for (uint64_t left = rate; left > of.topology.host_rate().value() && shift > 0; left /= 2) --shift;
    const auto in_flight =
        static_cast<uint64_t>(static_cast<double>(rate) * static_cast<double>(delay.count()) / 8e9);
    out += ", lossless: {alpha: " + shortest_number(1.0 / (1U << shift)) + ", hysteresis: 3000, headroom: " +
           std::to_string(3 * in_flight + kFramesOnHostLink * kFrameBytes) + "}";
  }
  return out + "}";
}

Result<std::string> switches_yaml(const Ns3Experiment& of) {
  std::map<uint64_t, Nanos> delays;  // the longest, by rate
  for (const Ns3Link& link : of.topology.links) {
    Nanos& longest = delays[link.rate.value()];
    longest = std::max(longest, link.delay);
  }
  std::string out = "switches:\n  buffer: {size: " + std::to_string(of.settings.buffer_mib) + "MiB}\n";
  if (of.settings.mode == Ns3Mode::kHpcc)
    out += "  telemetry: {udp_port: " + std::to_string(kTelemetryPort) + ", switch_id: 1}\n";
  out += "  by_rate:\n";
  for (const auto& [rate, delay] : delays) {
    out += "    - rate: " + std::to_string(rate) + "bps\n      classes:\n";
    for (const uint8_t priority : of.priorities()) {
      auto entry = class_yaml(of, rate, delay, priority);
      if (!entry) return fail(entry.error());
      out += "        - " + *entry + "\n";
    }
  }
  return out;
}

std::string faults_yaml(const Ns3Experiment& of) {
  std::string out;
  for (const Ns3Link& link : of.topology.links) {
    const double loss = link.loss > 0 ? link.loss : of.settings.loss;
    if (loss == 0) continue;
    out += "  - {between: [" + of.topology.name_of(link.a) + ", " + of.topology.name_of(link.b) +
           "], loss: " + shortest_number(loss) + "}\n";
  }
  return out.empty() ? "" : "faults:\n" + out;
}

std::string heading_yaml(const Ns3Experiment& of) {
  return "# Imported by 'roci-lab import' from " + quoted_yaml(of.config_name) +
         ".\nname: " + quoted_yaml(of.name) + "\nabout: " +
         quoted_yaml(std::to_string(of.flows.size()) + " flows, " + ns3_mode_name(of.settings.mode)) +
         "\nsource: HPCC's ns-3 simulator or a descendant\nseed: " + std::to_string(of.settings.seed) +
         "\ntime_origin: " + nanos_text(of.origin) + "\nduration: " + nanos_text(of.duration) +
         "\nsettle: " + nanos_text(of.settle) + "\ndrain: " + nanos_text(of.drain) +
         "\nsample: " + nanos_text(of.settings.sample) + "\n\n";
}

std::string traffic_name(const Ns3Experiment& of, uint8_t priority) {
  return of.priorities().size() == 1 ? "flows" : "flows_" + std::to_string(priority);
}
// The suffix is not that of the simulator's files, such as NAME.flows.txt of an export.
std::string list_name(const Ns3Experiment& of, uint8_t priority) {
  return of.list_stem + "." + traffic_name(of, priority) + ".list";
}

// The DSCP of a traffic selects the class with the number of its priority.
std::string traffic_yaml(const Ns3Experiment& of) {
  std::string out = "traffic:\n";
  for (const uint8_t priority : of.priorities()) {
    out += "  - {name: " + traffic_name(of, priority) + ", list: " + quoted_yaml(list_name(of, priority)) +
           ", message: 64MiB, dscp: " + std::to_string(priority * 8) + "}\n";
  }
  return out;
}

}  // namespace

std::set<uint8_t> Ns3Experiment::priorities() const {
  std::set<uint8_t> out;
  for (const Ns3Flow& flow : flows) out.insert(flow.priority);
  return out;
}

uint32_t nearest_path_mtu(uint64_t payload) {
  uint32_t best = 256;
  for (const uint32_t mtu : {512U, 1024U, 2048U, 4096U})
    if (std::fabs(std::log2(static_cast<double>(payload) / mtu)) <
        std::fabs(std::log2(static_cast<double>(payload) / best)))
      best = mtu;
  return best;
}

Result<std::string> ns3_network_text(const Ns3Experiment& of) {
  auto switches = switches_yaml(of);
  if (!switches) return fail(switches.error());
  return heading_yaml(of) + topology_yaml(of.topology) + hosts_yaml(of) + *switches;
}

Result<std::string> ns3_scenario_text(const Ns3Experiment& of) {
  auto network = ns3_network_text(of);
  if (!network) return fail(network.error());
  return *network + traffic_yaml(of) + faults_yaml(of);
}

std::vector<Ns3ListFile> ns3_flow_lists(const Ns3Experiment& of) {
  std::vector<Ns3ListFile> out;
  for (const uint8_t priority : of.priorities()) {
    Ns3ListFile& list = out.emplace_back();
    list.name = list_name(of, priority);
    list.text = "# sender, receiver, bytes, start in ns\n";
    for (const Ns3Flow& flow : of.flows) {
      if (flow.priority != priority) continue;
      list.text += of.topology.name_of(flow.from) + " " + of.topology.name_of(flow.to) + " " +
                   std::to_string(flow.bytes) + " " + std::to_string((flow.start - of.origin).count()) + "\n";
    }
  }
  return out;
}

}  // namespace roci::lab

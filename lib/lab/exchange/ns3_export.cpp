#include "lab/exchange/ns3_export.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "lab/exchange/ns3_words.hpp"
#include "lab/traffic/flow_plan.hpp"

namespace roci::lab {
namespace {

// Number after the letter of a name: 17 of "s17".
std::optional<uint32_t> number_in_name(const std::string& name, char letter) {
  uint32_t number = 0;
  if (name.empty() || name.front() != letter) return std::nullopt;
  const auto [end, error] = std::from_chars(name.data() + 1, name.data() + name.size(), number);
  if (error != std::errc{} || end != name.data() + name.size()) return std::nullopt;
  return number;
}

Status set_loss(const Scenario& scenario, std::vector<Ns3Link>& links) {
  for (const FaultSpec& fault : scenario.faults) {
    const SimFaults& of = fault.faults;
    const bool only_loss = of.duplication == 0 && of.reordering == 0 && of.corruption == 0 && of.marking == 0;
    if (fault.down || fault.direction || fault.from != Nanos{0} || fault.until != kNever || !only_loss)
      return fail("faults: the simulator has only losses in both directions, during the whole run");
    links[fault.cable].loss = of.loss;
  }
  return {};
}

Result<Ns3Topology> topology_for(const Scenario& scenario, const Ns3NodeNumbers& numbers) {
  const Topology& of = scenario.topology;
  Ns3Topology out;
  out.is_switch.resize(of.hosts.size() + of.switches.size());
  for (const uint32_t node : numbers.switches) out.is_switch[node] = true;
  out.switches = numbers.switches;
  const auto node_of = [&](const Cable::End& end) {
    return end.is_switch ? numbers.switches[end.node] : numbers.hosts[end.node];
  };
  for (const Cable& cable : of.cables)
    out.links.push_back({node_of(cable.a), node_of(cable.b), cable.spec.rate, cable.spec.delay, 0});
  ROCI_TRY(set_loss(scenario, out.links));
  // The rules of the importer: at most one link between two nodes.
  auto parsed = parse_ns3_topology(format_ns3_topology(out), "topology");
  if (!parsed) return fail(parsed.error());
  return out;
}

Status check_traffic(const Scenario& scenario) {
  for (const TrafficSpec& spec : scenario.traffic) {
    const auto wrong = [&](const std::string& what) { return fail("traffic '" + spec.name + "': " + what); };
    if (spec.arrivals == TrafficSpec::Arrivals::kClosedLoop)
      return wrong("closed loops cannot be exported; the simulator starts flows at fixed times");
    if (spec.unlimited) return wrong("unlimited flows cannot be exported; set a size");
    if (spec.operation != Operation::kWrite)
      return wrong("only operation: write can be exported; the simulator has no READs and SENDs");
    if (!spec.congestion_control.empty() &&
        spec.congestion_control != scenario.host.congestion_control.profile)
      return wrong("congestion_control cannot be exported; the simulator has one algorithm for all flows");
    if (spec.traffic_class % 32 != 0)
      return wrong("dscp must be a multiple of 8, the priority of the simulator times 8");
  }
  return {};
}

Result<std::vector<Ns3Flow>> flows_for(const Scenario& scenario, const Ns3NodeNumbers& numbers) {
  ROCI_TRY(check_traffic(scenario));
  auto plan = plan_traffic(scenario);
  if (!plan) return fail(plan.error());
  if (plan->flows.empty()) return fail("traffic: no flow starts within the duration");
  std::vector<Ns3Flow> out;
  for (const FlowPlan& flow : plan->flows) {
    const TrafficSpec& spec = scenario.traffic[flow.traffic];
    if (flow.bytes > kMaxNs3Bytes)
      return fail("traffic '" + spec.name + "': a flow has " + std::to_string(flow.bytes) +
                  " bytes; at most " + std::to_string(kMaxNs3Bytes) + " can be exported");
    out.push_back({.from = numbers.hosts[flow.from],
                   .to = numbers.hosts[flow.to],
                   .priority = static_cast<uint8_t>(spec.traffic_class / 32),
                   .bytes = flow.bytes,
                   .start = scenario.time_origin + flow.start});
  }
  return out;
}

// Settings of one class at the ports of one rate.
Status add_class(const SwitchPortConfig& port, uint8_t number, Ns3Settings& settings) {
  const ClassConfig& of = port.classes[number];
  const std::string where = "switches: class " + std::to_string(number) + ": ";
  settings.pfc = of.lossless.has_value();
  settings.mark = !of.aqm.mark.never();
  if (!settings.mark) return {};
  if (of.aqm.mark_at != AqmConfig::MarkAt::kDequeue)
    return fail(where + "the simulator marks at departure; set mark_at: dequeue");
  const std::pair<std::map<uint64_t, double>*, double> values[] = {
      {&settings.kmin, static_cast<double>(of.aqm.mark.kmin.value()) / 1e3},
      {&settings.kmax, static_cast<double>(of.aqm.mark.kmax.value()) / 1e3},
      {&settings.pmax, of.aqm.mark.pmax}};
  for (const auto& [map, value] : values) {
    const auto [at, added] = map->emplace(port.rate.value(), value);
    if (!added && at->second != value)
      return fail(where + "other marks than in another class; the simulator has one curve per rate");
  }
  return {};
}

Status add_switch_settings(const Ns3Experiment& of, const Scenario& scenario, Ns3Settings& settings) {
  constexpr uint64_t kMib = 1ULL << 20;
  const SwitchConfig& first = scenario.switches.front();
  const uint64_t size = first.buffer.size.value();
  if (first.buffer.size == BufferConfig{}.size || size % kMib != 0 || size == 0)
    return fail("switches: a buffer of whole MiB is required, such as buffer: {size: 32MiB}");
  settings.buffer_mib = size / kMib;
  for (const SwitchConfig& one : scenario.switches)
    for (const SwitchPortConfig& port : one.ports)
      for (const uint8_t priority : of.priorities()) ROCI_TRY(add_class(port, priority, settings));
  // The simulator requires curves for all rates. Without marks it ignores them.
  for (const Cable& cable : scenario.topology.cables) {
    settings.kmin.emplace(cable.spec.rate.value(), 1e6);
    settings.kmax.emplace(cable.spec.rate.value(), 1e6);
    settings.pmax.emplace(cable.spec.rate.value(), 0);
  }
  return {};
}

void add_times(const Scenario& scenario, Ns3Settings& settings) {
  settings.time_origin = scenario.time_origin;
  settings.monitor_start = scenario.time_origin + scenario.settle;
  settings.monitor_end = scenario.time_origin + scenario.duration;
  settings.stop = settings.monitor_end + scenario.drain;
  settings.sample = scenario.sample;
  settings.seed = scenario.seed;
}

// The payload with which the simulator computes the base round trip of the scenario, else the path MTU.
uint64_t payload_for(const Scenario& scenario, const Ns3Topology& topology) {
  constexpr uint64_t kUsual = 1000;
  const bool usual =
      nearest_path_mtu(kUsual) == scenario.path_mtu &&
      longest_ns3_round_trip(topology, kUsual).rtt == scenario.host.congestion_control.base_rtt;
  return usual ? kUsual : scenario.path_mtu;
}

Status set_algorithm(const Scenario& scenario, Ns3Experiment& of) {
  auto profiles = Profiles::create(scenario.host.congestion_control);
  if (!profiles) return fail(profiles.error());
  const Profile* const profile = (*profiles)->standard();
  if (profile == nullptr || profile->plugin == nullptr)
    return fail(
        "hosts: the simulator requires a congestion control algorithm; set congestion_control: profile");
  if (profile->dscp >= 0) return fail("hosts: dscp of a profile cannot be exported; use dscp of the traffic");
  ROCI_TRY(set_ns3_algorithm(*profile, of.longest, of.path_mtu, of.settings));
  auto algorithm = ns3_algorithm(of.settings, of.longest, of.path_mtu);
  if (!algorithm) return fail(algorithm.error());
  of.algorithm = std::move(*algorithm);
  return {};
}

Status compare_hosts(const DeviceConfig& of, const DeviceConfig& imported) {
  const auto differs = [](const char* what) { return fail("hosts: " + std::string(what)); };
  if (of.congestion_control.notification_point != imported.congestion_control.notification_point)
    return differs("CNPs of the simulator have no interval; set notification_point: {interval: 0}");
  if (of.flow_control.priorities != imported.flow_control.priorities)
    return differs("flow_control: pfc must list the priorities of the traffic if these are lossless");
  if (of.telemetry.begin != imported.telemetry.begin)
    return differs("telemetry: only {begin: all} with HPCC can be exported");
  if (of.extensions.selective_repeat != imported.extensions.selective_repeat)
    return differs("extensions: selective_repeat cannot be exported");
  return {};
}

// Notes about settings of hosts that the imported scenario would not have.
std::vector<std::string> omitted_host_settings(const DeviceConfig& of, const DeviceConfig& imported) {
  const CongestionControlConfig &control = of.congestion_control, &other = imported.congestion_control;
  const std::pair<const char*, bool> settings[] = {
      {"window", of.window_bytes != imported.window_bytes},
      {"packets_per_turn", of.packets_per_turn != imported.packets_per_turn},
      {"packets_per_ack", of.packets_per_ack != imported.packets_per_ack},
      {"congestion_notification: tag", of.congestion.tag != imported.congestion.tag},
      {"congestion_notification: cnm_port", of.congestion.cnm_port != imported.congestion.cnm_port},
      {"congestion_control: line_rate", control.line_rate != other.line_rate},
      {"congestion_control: burst", control.burst != other.burst},
      {"congestion_control: cores", control.cores != other.cores},
      {"congestion_control: peers_send_cnps", control.peers_send_cnps != other.peers_send_cnps}};
  std::vector<std::string> out;
  for (const auto& [key, differs] : settings)
    if (differs)
      out.push_back("hosts: " + std::string(key) + ": not exported: the simulator has no such setting");
  return out;
}

// Compares the behavior of switches; names and addresses may differ.
Status compare_switches(const Scenario& scenario, const Scenario& imported) {
  for (size_t s = 0; s < scenario.switches.size(); ++s) {
    SwitchConfig one = scenario.switches[s];
    const SwitchConfig& other = imported.switches[s];
    for (size_t p = 0; p < one.ports.size(); ++p) {
      SwitchPortConfig& port = one.ports[p];
      if (port.classes != other.ports[p].classes)
        return fail(
            "switches: classes of the ports of " + ns3_rate(static_cast<double>(port.rate.value())) +
            ": the simulator has other PFC thresholds, or settings that it does not support are used; "
            "compare with the imported scenario");
      port.name = other.ports[p].name;
      if (port != other.ports[p]) return fail("switches: queue of the ports cannot be exported");
    }
    one.name = other.name;
    one.interfaces = other.interfaces;
    one.routes = other.routes;
    one.telemetry.switch_id = other.telemetry.switch_id;
    if (one != other)
      return fail("switches: only classes, by_rate, buffer and telemetry of HPCC can be exported");
  }
  return {};
}

// Reads the network of the exported files as the importer would, and compares it with the scenario.
Status verify_network(const Scenario& scenario, const Ns3Experiment& of, std::vector<std::string>& notes) {
  auto text = ns3_network_text(of);
  if (!text) return fail(text.error());
  const std::string traffic = "traffic: [{from: " + of.topology.name_of(of.flows.front().from) +
                              ", to: " + of.topology.name_of(of.flows.front().to) + ", size: 1}]\n";
  auto imported = parse_scenario(*text + traffic, "export");
  if (!imported) return fail(imported.error());
  ROCI_TRY(compare_hosts(scenario.host, imported->host));
  notes = omitted_host_settings(scenario.host, imported->host);
  return compare_switches(scenario, *imported);
}

std::vector<std::string> export_notes(const Scenario& scenario, const Ns3Experiment& of) {
  std::vector<std::string> out;
  const auto usual = [](const TrafficSpec& spec) { return Bytes{spec.message} >= 64_MiB; };
  if (!std::ranges::all_of(scenario.traffic, usual))
    out.emplace_back("message: not exported: flows of the simulator are not divided into messages");
  if (scenario.host.congestion_control.base_rtt != of.longest.rtt)
    out.push_back("base_rtt: not exported: the simulator computes " + std::to_string(of.longest.rtt.count()) +
                  " ns");
  if (!scenario.windows.empty()) out.emplace_back("windows: not exported");
  if (scenario.payload) out.emplace_back("payload: not exported: the simulator carries no payload");
  if (!of.settings.pfc)
    out.emplace_back("lossless: ENABLE_PFC 0 is read by ConWeave; other simulators always use PFC");
  if (of.settings.selective_repeat)
    out.emplace_back("selective_repeat: ENABLE_IRN 1 is read by ConWeave only");
  return out;
}

Result<Ns3Experiment> experiment_for(const Scenario& scenario) {
  const Ns3NodeNumbers numbers = ns3_node_numbers(scenario.topology);
  Ns3Experiment out;
  auto topology = topology_for(scenario, numbers);
  if (!topology) return fail(topology.error());
  out.topology = std::move(*topology);
  auto flows = flows_for(scenario, numbers);
  if (!flows) return fail(flows.error());
  out.flows = std::move(*flows);
  out.path_mtu = scenario.path_mtu;
  out.settings.payload = payload_for(scenario, out.topology);
  const uint32_t acks = scenario.host.packets_per_ack;
  out.settings.ack_interval = acks == 1 ? 1 : acks * out.settings.payload;
  out.settings.selective_repeat = scenario.host.extensions.selective_repeat;
  out.longest = longest_ns3_round_trip(out.topology, out.settings.payload);
  out.origin = scenario.time_origin;
  out.duration = scenario.duration;
  ROCI_TRY(set_algorithm(scenario, out));
  add_times(scenario, out.settings);
  ROCI_TRY(add_switch_settings(out, scenario, out.settings));
  return out;
}

}  // namespace

Ns3NodeNumbers ns3_node_numbers(const Topology& topology) {
  Ns3NodeNumbers out;
  const size_t nodes = topology.hosts.size() + topology.switches.size();
  std::vector<bool> used(nodes);
  bool by_name = true;
  const auto add = [&](const std::string& name, char letter, std::vector<uint32_t>& to) {
    const auto number = number_in_name(name, letter);
    by_name = by_name && number && *number < nodes && !used[*number];
    if (!by_name) return;
    used[*number] = true;
    to.push_back(*number);
  };
  for (const TopologyHost& host : topology.hosts) add(host.name, 'h', out.hosts);
  for (const TopologySwitch& one : topology.switches) add(one.name, 's', out.switches);
  if (by_name) return out;
  out = {};
  for (uint32_t i = 0; i < nodes; ++i) (i < topology.hosts.size() ? out.hosts : out.switches).push_back(i);
  return out;
}

Result<Ns3Export> export_ns3(const Scenario& scenario, const std::string& name) {
  auto experiment = experiment_for(scenario);
  if (!experiment) return fail(experiment.error());
  experiment->name = name;
  Ns3Export out;
  ROCI_TRY(verify_network(scenario, *experiment, out.notes));
  Ns3Settings& settings = experiment->settings;
  settings.topology_file = name + ".topology.txt";
  settings.flow_file = name + ".flows.txt";
  const std::string trace_file = name + ".trace.txt";
  out.files = {{name + ".txt", format_ns3_settings(settings, trace_file, name + ".txt")},
               {settings.topology_file, format_ns3_topology(experiment->topology)},
               {settings.flow_file, format_ns3_flows(experiment->flows)},
               {trace_file, "0\n"}};
  const std::vector<std::string> notes = export_notes(scenario, *experiment);
  out.notes.insert(out.notes.end(), notes.begin(), notes.end());
  return out;
}

}  // namespace roci::lab

// Traffic and faults of a scenario file.
#include <algorithm>
#include <filesystem>

#include "congestion/profile.hpp"
#include "lab/scenario/scenario_sections.hpp"

namespace roci::lab {
namespace {

constexpr uint64_t kMaxMessage = 1ULL << 30;
constexpr Nanos kMaxOffset = 3600s;

// Adds the hosts named by "h3", "h0-h15" or "all".
Status add_hosts(const Topology& topology, const std::string& text, std::vector<uint32_t>& out) {
  if (text == "all") {
    for (uint32_t i = 0; i < topology.hosts.size(); ++i) out.push_back(i);
    return {};
  }
  if (const auto host = topology.find_host(text)) {
    out.push_back(*host);
    return {};
  }
  const size_t dash = text.find('-');
  if (dash != std::string::npos) {
    const auto first = topology.find_host(text.substr(0, dash));
    const auto last = topology.find_host(text.substr(dash + 1));
    if (first && last && *first <= *last) {
      for (uint32_t i = *first; i <= *last; ++i) out.push_back(i);
      return {};
    }
  }
  return fail("'" + text + "' is not a host, a range FIRST-LAST, 'all' or 'others'; hosts are " +
              topology.hosts.front().name + " to " + topology.hosts.back().name);
}

Status read_ends(ConfigNode& node, const Topology& topology, TrafficSpec& spec) {
  std::vector<std::string> from{"all"}, to;
  if (node.has("from")) ROCI_TRY(node.required_values("from", from));
  ROCI_TRY(node.required_values("to", to));
  const bool others_send = from.size() == 1 && from[0] == "others";
  const bool others_receive = to.size() == 1 && to[0] == "others";
  if (others_send && others_receive) return node.error("from", "must not be 'others' if to is 'others'");
  const auto add = [&](const char* key, const std::vector<std::string>& names,
                       std::vector<uint32_t>& out) -> Status {
    for (const std::string& name : names) {
      if (Status s = add_hosts(topology, name, out); !s) return node.error(key, s.error().message);
    }
    return {};
  };
  if (!others_send) ROCI_TRY(add("from", from, spec.from));
  if (!others_receive) ROCI_TRY(add("to", to, spec.to));
  const auto rest = [&](const std::vector<uint32_t>& without) {
    std::vector<uint32_t> out;
    for (uint32_t i = 0; i < topology.hosts.size(); ++i)
      if (std::ranges::find(without, i) == without.end()) out.push_back(i);
    return out;
  };
  if (others_send) spec.from = rest(spec.to);
  if (others_receive) spec.to = rest(spec.from);
  if (spec.from.empty()) return node.error("from", "selects no host; at least one is required");
  if (spec.to.empty()) return node.error("to", "selects no host; at least one is required");
  return {};
}

Status read_size(ConfigNode& node, const std::string& folder, TrafficSpec& spec) {
  std::string size, distribution;
  ROCI_TRY(node.optional("size", size));
  ROCI_TRY(node.optional("distribution", distribution));
  if (size.empty() == distribution.empty())
    return node.error("exactly one of size and distribution is required");
  if (!distribution.empty()) {
    const std::filesystem::path file = std::filesystem::path(folder) / distribution;
    auto read = SizeDistribution::read(file.string());
    if (!read) return node.error("distribution", read.error().message);
    spec.size = std::move(*read);
    return {};
  }
  spec.unlimited = size == "unlimited";
  if (spec.unlimited) return {};
  auto bytes = parse_bytes(size);
  if (!bytes) return node.error("size", bytes.error().message + ", or 'unlimited'");
  if (*bytes < Bytes{1}) return node.error("size", "must be at least 1 byte");
  spec.size = SizeDistribution::constant(bytes->value());
  return {};
}

Status read_offset(ConfigNode& node, const char* key, Nanos& out) {
  ROCI_TRY(node.optional(key, out));
  if (out < Nanos{0} || out > kMaxOffset) return node.error(key, "must be 0 to 1 h");
  return {};
}

Status read_arrivals(ConfigNode& node, TrafficSpec& spec) {
  using Arrivals = TrafficSpec::Arrivals;
  ROCI_TRY(node.optional("arrivals", spec.arrivals,
                         one_of<Arrivals>({{"at_once", Arrivals::kAtOnce},
                                           {"poisson", Arrivals::kPoisson},
                                           {"closed_loop", Arrivals::kClosedLoop}})));
  ROCI_TRY(read_offset(node, "start", spec.start));
  ROCI_TRY(node.optional("stop", spec.stop));
  if (spec.stop <= spec.start) return node.error("stop", "must come after start");
  if (spec.arrivals == Arrivals::kAtOnce) {
    ROCI_TRY(node.optional("flows", spec.flows, integer_in<uint32_t>(1, 1U << 20)));
    return read_offset(node, "stagger", spec.stagger);
  }
  if (spec.unlimited) return node.error("size", "unlimited requires arrivals: at_once");
  if (spec.arrivals == Arrivals::kClosedLoop) {
    ROCI_TRY(node.optional("depth", spec.depth, integer_in<uint32_t>(1, 256)));
    ROCI_TRY(read_offset(node, "think", spec.think));
    return node.optional("read_share", spec.read_share, number_in(0, 1));
  }
  ROCI_TRY(node.required("load", spec.load, number_in(1e-6, 2)));
  return node.optional("degree", spec.degree, integer_in<uint32_t>(0, kMaxHosts));
}

// `name`: an algorithm or a profile; empty: the default of the hosts. Checks that INT is configured if it is required.
Status check_control(const ConfigNode& node, const Scenario& scenario, const std::string& name) {
  auto profiles = Profiles::create(scenario.host.congestion_control);
  if (!profiles) return node.error("congestion_control", profiles.error().message);
  const Profile* profile = nullptr;
  if (name.empty()) {
    profile = (*profiles)->standard();
  } else {
    auto chosen = (*profiles)->choose(name);
    if (!chosen) return node.error("congestion_control", chosen.error().message);
    profile = *chosen;
  }
  for (; profile != nullptr && !profile->falls_back; profile = profile->fallback) {
    if ((profile->plugin->capabilities & ROCI_CC_NEEDS_INT) == 0) continue;
    const std::string what = "'" + profile->name + "' requires in-band telemetry, and ";
    if (!scenario.host.telemetry.enabled() || scenario.host.telemetry.begin == TelemetryBegin::kNone)
      return node.error("congestion_control",
                        what + "hosts do not send it; set hosts: telemetry: {udp_port: 5201, begin: all}");
    if (!scenario.switches.front().telemetry.enabled)
      return node.error("congestion_control",
                        what + "switches do not add it; set switches: telemetry: {udp_port: " +
                            std::to_string(scenario.host.telemetry.udp_port) + ", switch_id: 1}");
    if (scenario.switches.front().telemetry.udp_port != scenario.host.telemetry.udp_port)
      return node.error("congestion_control", what + "hosts and switches use different UDP ports for it");
  }
  return {};
}

// Keys of generated flows: pattern, hosts, size and arrivals.
Status read_generated(ConfigNode& node, const Scenario& scenario, const std::string& folder,
                      TrafficSpec& spec) {
  using Pattern = TrafficSpec::Pattern;
  ROCI_TRY(node.optional("pattern", spec.pattern,
                         one_of<Pattern>({{"fan_in", Pattern::kFanIn},
                                          {"pairs", Pattern::kPairs},
                                          {"permutation", Pattern::kPermutation},
                                          {"all_to_all", Pattern::kAllToAll},
                                          {"random", Pattern::kRandom}})));
  ROCI_TRY(read_ends(node, scenario.topology, spec));
  ROCI_TRY(read_size(node, folder, spec));
  ROCI_TRY(read_arrivals(node, spec));
  if (spec.pattern == Pattern::kPairs && spec.from.size() != spec.to.size())
    return node.error("to", "has " + std::to_string(spec.to.size()) + " hosts for " +
                                std::to_string(spec.from.size()) + " senders; pairs requires equal numbers");
  if (spec.pattern == Pattern::kRandom && spec.arrivals != TrafficSpec::Arrivals::kPoisson)
    return node.error("pattern", "random requires arrivals: poisson; use permutation or all_to_all");
  if (spec.arrivals == TrafficSpec::Arrivals::kPoisson && spec.pattern != Pattern::kRandom)
    return node.error("pattern", "arrivals: poisson requires pattern: random");
  if (spec.degree > spec.from.size())
    return node.error("degree", "is " + std::to_string(spec.degree) + "; at most the number of senders, " +
                                    std::to_string(spec.from.size()) + ", is allowed");
  const auto is_receiver = [&](uint32_t host) { return host == spec.to[0]; };
  if (std::ranges::all_of(spec.to, is_receiver) && std::ranges::all_of(spec.from, is_receiver))
    return node.error("to", "the only receiver is also the only sender");
  for (size_t i = 0; spec.pattern == Pattern::kPairs && i < spec.from.size(); ++i) {
    if (spec.from[i] == spec.to[i])
      return node.error("to", "'" + scenario.topology.hosts[spec.to[i]].name + "' would send to itself");
  }
  if (spec.arrivals == TrafficSpec::Arrivals::kClosedLoop && spec.size.largest() > kMaxMessage)
    return node.error(node.has("size") ? "size" : "distribution",
                      "messages of a closed loop must have at most 1 GiB");
  return {};
}

// The key `list`: a file next to the scenario.
Status read_listed(ConfigNode& node, const Scenario& scenario, const std::string& folder, TrafficSpec& spec) {
  std::string list;
  ROCI_TRY(node.required("list", list));
  for (const char* key : {"pattern", "from", "to", "size", "distribution", "arrivals"})
    if (node.has(key)) return node.error(key, "cannot be combined with list, which specifies all flows");
  auto read = read_flow_list((std::filesystem::path(folder) / list).string(), scenario.topology);
  if (!read) return node.error("list", read.error().message);
  for (const ListedFlow& flow : *read)
    if (flow.start >= scenario.duration)
      return node.error("list", "a flow starts after " + std::to_string(flow.start.count()) +
                                    " ns, which is not within the duration");
  spec.list = std::move(*read);
  spec.arrivals = TrafficSpec::Arrivals::kListed;
  return {};
}

Status read_one_traffic(ConfigNode& node, Scenario& scenario, const std::string& folder) {
  TrafficSpec& spec = scenario.traffic.emplace_back();
  spec.name = "traffic" + std::to_string(scenario.traffic.size() - 1);
  ROCI_TRY(node.optional("name", spec.name));
  for (const TrafficSpec& other : scenario.traffic)
    if (&other != &spec && other.name == spec.name)
      return node.error("name", "duplicate traffic '" + spec.name + "'");
  ROCI_TRY(node.optional(
      "operation", spec.operation,
      one_of<Operation>(
          {{"write", Operation::kWrite}, {"read", Operation::kRead}, {"send", Operation::kSend}})));
  Bytes message{spec.message};
  ROCI_TRY(node.optional("message", message));
  if (message < Bytes{1} || message > Bytes{kMaxMessage})
    return node.error("message", "must be 1 B to 1 GiB");
  spec.message = message.value();
  if (node.has("list")) {
    ROCI_TRY(read_listed(node, scenario, folder, spec));
  } else {
    ROCI_TRY(read_generated(node, scenario, folder, spec));
  }
  ROCI_TRY(node.optional("congestion_control", spec.congestion_control));
  uint8_t dscp = 0;
  ROCI_TRY(node.optional("dscp", dscp, integer_in<uint8_t>(0, 63)));
  spec.traffic_class = static_cast<uint8_t>(dscp << 2);
  return check_control(node, scenario, spec.congestion_control);
}

}  // namespace

Status read_traffic(ConfigNode& root, Scenario& scenario) {
  const std::string folder = std::filesystem::path(scenario.file).parent_path().string();
  return root.each("traffic", Need::kRequired,
                   [&](ConfigNode& node) { return read_one_traffic(node, scenario, folder); });
}

Status read_faults(ConfigNode& root, Scenario& scenario) {
  return root.each("faults", Need::kOptional, [&](ConfigNode& node) -> Status {
    FaultSpec fault;
    CableEnds ends;
    ROCI_TRY(read_between(node, scenario.topology, ends));
    fault.cable = ends.cable;
    bool one_way = false;
    ROCI_TRY(node.optional("one_way", one_way));  // from the first to the second end
    if (one_way) fault.direction = ends.first_is_a ? SimLink::kAToB : SimLink::kBToA;
    ROCI_TRY(node.optional("from", fault.from));
    ROCI_TRY(node.optional("until", fault.until));
    if (fault.until <= fault.from) return node.error("until", "must come after from");
    ROCI_TRY(node.optional("down", fault.down));
    if (fault.down && one_way)
      return node.error("one_way", "cannot be combined with down, which affects both directions");
    const auto part = number_in(0, 1);
    ROCI_TRY(node.optional("loss", fault.faults.loss, part));
    ROCI_TRY(node.optional("duplication", fault.faults.duplication, part));
    ROCI_TRY(node.optional("reordering", fault.faults.reordering, part));
    ROCI_TRY(node.optional("reordering_delay", fault.faults.reordering_delay));
    ROCI_TRY(node.optional("corruption", fault.faults.corruption, part));
    ROCI_TRY(node.optional("marking", fault.faults.marking, part));
    if (fault.faults.corruption > 0 && !scenario.payload)
      return node.error("corruption", "requires payload: carried; otherwise corruption has no effect");
    for (const FaultSpec& other : scenario.faults) {
      if (fault.conflicts_with(other))
        return node.error("overlaps faults[" + std::to_string(&other - scenario.faults.data()) +
                          "] on the same link; use consecutive intervals");
    }
    scenario.faults.push_back(fault);
    return {};
  });
}

}  // namespace roci::lab

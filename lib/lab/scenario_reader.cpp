// Scenario files; docs/lab.md has all keys.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "congestion/profile.hpp"
#include "device/device_config.hpp"
#include "lab/scenario.hpp"
#include "port/port_config.hpp"

namespace roci::lab {
namespace {

// Beside the path MTU in an IP packet: headers, extensions, and the telemetry of as many hops as there may be.
constexpr uint16_t kHeaderRoom = 304;
constexpr uint64_t kMostMessage = 1ULL << 30;
constexpr Nanos kLongestRun = 3600s;
constexpr size_t kMostRuns = 10'000;

Status read_cable(ConfigNode& node, std::string_view key, Need need, CableSpec& spec) {
  return node.section(key, need, [&](ConfigNode& link) -> Status {
    ROCI_TRY(link.required("rate", spec.rate));
    if (spec.rate.value() == 0) return link.error("rate", "must be above 0");
    ROCI_TRY(link.optional("delay", spec.delay));
    if (spec.delay <= Nanos{0} || spec.delay > 1s)
      return link.error("delay", "must be above 0 and at most 1 s");
    return {};
  });
}

Status read_graph(ConfigNode& node, Topology& topology, const CableSpec& usual) {
  TopologyBuilder builder;
  std::vector<std::string> hosts, switches;
  ROCI_TRY(node.optional_list("hosts", hosts));
  ROCI_TRY(node.optional_list("switches", switches));
  for (const std::string& name : switches) {
    if (Status s = builder.add_switch(name); !s) return node.error("switches", s.error().message);
  }
  for (const std::string& name : hosts) {
    if (Status s = builder.add_host(name); !s) return node.error("hosts", s.error().message);
  }
  ROCI_TRY(node.each("links", Need::kRequired, [&](ConfigNode& link) -> Status {
    std::vector<std::string> between;
    CableSpec spec = usual;
    ROCI_TRY(link.required_values("between", between));
    ROCI_TRY(link.optional("rate", spec.rate));
    ROCI_TRY(link.optional("delay", spec.delay));
    if (between.size() != 2) return link.error("between", "must name two ends");
    if (Status s = builder.connect(between[0], between[1], spec); !s)
      return link.error("between", s.error().message);
    return {};
  }));
  auto made = builder.finish();
  if (!made) return node.error(made.error().message);
  topology = std::move(*made);
  return {};
}

Status read_topology(ConfigNode& root, Topology& topology) {
  enum class Kind : uint8_t { kStar, kDumbbell, kLeafSpine, kFatTree, kGraph };
  return root.section("topology", Need::kRequired, [&](ConfigNode& node) -> Status {
    Kind kind = Kind::kStar;
    ROCI_TRY(node.required("kind", kind,
                           one_of<Kind>({{"star", Kind::kStar},
                                         {"dumbbell", Kind::kDumbbell},
                                         {"leaf_spine", Kind::kLeafSpine},
                                         {"fat_tree", Kind::kFatTree},
                                         {"graph", Kind::kGraph}})));
    CableSpec link;
    ROCI_TRY(read_cable(node, "link", Need::kOptional, link));
    CableSpec fabric = link;
    const auto count = integer_in<uint32_t>(0, 1U << 20);
    uint32_t hosts = 0, left = 0, right = 0, leaves = 0, spines = 0, at_each = 0, k = 0;
    Result<Topology> made = fail("");
    switch (kind) {
      case Kind::kStar:
        ROCI_TRY(node.required("hosts", hosts, count));
        made = make_star(hosts, link);
        break;
      case Kind::kDumbbell:
        ROCI_TRY(node.required("left", left, count));
        ROCI_TRY(node.required("right", right, count));
        ROCI_TRY(read_cable(node, "trunk", Need::kOptional, fabric));
        made = make_dumbbell(left, right, link, fabric);
        break;
      case Kind::kLeafSpine:
        ROCI_TRY(node.required("leaves", leaves, count));
        ROCI_TRY(node.required("spines", spines, count));
        ROCI_TRY(node.required("hosts_per_leaf", at_each, count));
        ROCI_TRY(read_cable(node, "fabric", Need::kOptional, fabric));
        made = make_leaf_spine(leaves, spines, at_each, link, fabric);
        break;
      case Kind::kFatTree:
        ROCI_TRY(node.required("k", k, count));
        ROCI_TRY(node.optional("hosts_per_edge", at_each, count));
        ROCI_TRY(read_cable(node, "fabric", Need::kOptional, fabric));
        made = make_fat_tree(k, node.has("hosts_per_edge") ? std::optional{at_each} : std::nullopt, link,
                             fabric);
        break;
      case Kind::kGraph:
        return read_graph(node, topology, link);
    }
    if (!made) return node.error(made.error().message);
    topology = std::move(*made);
    return {};
  });
}

// Of any two hosts, the longest.
Nanos longest_rtt(const Scenario& scenario) {
  const Topology& topology = scenario.topology;
  // The host with the longest cable at each switch.
  std::vector<std::optional<uint32_t>> farthest(topology.switches.size());
  for (uint32_t host = 0; host < topology.hosts.size(); ++host) {
    std::optional<uint32_t>& at = farthest[topology.hosts[host].at];
    const auto delay = [&](uint32_t of) { return topology.cables[topology.hosts[of].cable].spec.delay; };
    if (!at || delay(host) > delay(*at)) at = host;
  }
  Nanos longest{0};
  for (const auto& from : farthest) {
    for (const auto& to : farthest) {
      if (from && to) longest = std::max(longest, base_rtt(scenario, *from, *to));
    }
  }
  return longest;
}

Status read_hosts(ConfigNode& root, Scenario& scenario) {
  DeviceConfig& host = scenario.host;
  host.progress = Progress::kExternal;
  host.window_bytes = 64U << 20;  // congestion control is what holds back
  host.packets_per_turn = 1;      // as NICs share their line
  host.congestion_control.base_rtt = longest_rtt(scenario);
  Status read = root.section("hosts", Need::kOptional, [&](ConfigNode& node) -> Status {
    ROCI_TRY(node.optional(
        "path_mtu", scenario.path_mtu,
        one_of<uint32_t>({{"256", 256}, {"512", 512}, {"1024", 1024}, {"2048", 2048}, {"4096", 4096}})));
    host.congestion_control.base_rtt = longest_rtt(scenario);
    return read_host_keys(node, host);
  });
  scenario.port_mtu = static_cast<uint16_t>(scenario.path_mtu + kHeaderRoom);
  return read;
}

// Every switch is told the same; what depends on a port's rate is worked out for each rate that there is.
Status read_switches(ConfigNode& root, Scenario& scenario) {
  const Topology& topology = scenario.topology;
  SwitchConfig usual;
  usual.seed = scenario.seed;
  SwitchPortConfig usual_port;
  usual_port.queue = 64_MiB;
  usual_port.queue_frames = 1U << 18;
  std::map<uint64_t, SwitchPortConfig> by_rate;
  for (const Cable& cable : topology.cables) {
    by_rate[cable.spec.rate.value()] = usual_port;
    by_rate[cable.spec.rate.value()].rate = cable.spec.rate;
  }
  ROCI_TRY(root.section("switches", Need::kOptional, [&](ConfigNode& node) -> Status {
    ROCI_TRY(read_of_all_ports(node, usual));
    for (auto& [rate, port] : by_rate) {
      ROCI_TRY(node.optional("queue", port.queue));
      ROCI_TRY(node.optional("queue_frames", port.queue_frames, integer_in<uint32_t>(1, 1U << 20)));
      ROCI_TRY(read_classes_of_all_ports(node, port));
    }
    return {};
  }));
  for (uint32_t s = 0; s < topology.switches.size(); ++s) {
    const TopologySwitch& of = topology.switches[s];
    SwitchConfig config = usual;
    config.name = of.name;
    config.seed = scenario.seed * 4096 + s;
    config.telemetry.switch_id += s;  // the file says the first one's
    if (topology.switches.size() > 1 && of.hosts > 0)
      config.interfaces.push_back({.name = "edge", .vlan = kDefaultVlan, .addresses = {topology.gateway(s)}});
    for (uint32_t p = 0; p < of.cables.size(); ++p) {
      SwitchPortConfig port = by_rate.at(topology.cables[of.cables[p]].spec.rate.value());
      const Cable::End& far = topology.beyond(s, p);
      port.name = far.is_switch ? topology.switches[far.node].name : topology.hosts[far.node].name;
      if (std::ranges::any_of(config.ports,
                              [&](const SwitchPortConfig& other) { return other.name == port.name; }))
        port.name += "." + std::to_string(p);
      port.all_tagged = false;
      if (far.is_switch) {
        port.vlan = static_cast<uint16_t>(kDefaultVlan + 1 + p);
        const Cable& cable = topology.cables[of.cables[p]];
        const bool is_b = cable.b.is_switch && cable.b.node == s && cable.b.port == p;
        config.interfaces.push_back({.name = port.name,
                                     .vlan = port.vlan,
                                     .addresses = {topology.cable_address(of.cables[p], is_b)}});
      }
      config.ports.push_back(std::move(port));
    }
    for (uint32_t to = 0; to < topology.switches.size() && topology.switches.size() > 1; ++to) {
      if (to == s || topology.switches[to].hosts == 0) continue;
      SwitchRouteConfig route{.prefix = topology.edge_network(to).masked(), .via = {}};
      for (const uint32_t p : topology.ports_towards(s, to)) {
        const Cable& cable = topology.cables[of.cables[p]];
        const bool is_b = cable.b.is_switch && cable.b.node == s && cable.b.port == p;
        route.via.push_back(topology.cable_address(of.cables[p], !is_b).address);
        if (route.via.size() == kMostNextHops) break;
      }
      config.routes.push_back(std::move(route));
    }
    if (Status checked = check(config); !checked) return root.error("switches", checked.error().message);
    scenario.switches.push_back(std::move(config));
  }
  return {};
}

// "h3", "h0-h15", "all".
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
  return fail("'" + text + "' is not a host, two of them with a dash between, 'all' or 'others'; hosts are " +
              topology.hosts.front().name + " to " + topology.hosts.back().name);
}

Status read_ends(ConfigNode& node, const Topology& topology, TrafficSpec& spec) {
  std::vector<std::string> from{"all"}, to;
  if (node.has("from")) ROCI_TRY(node.required_values("from", from));
  ROCI_TRY(node.required_values("to", to));
  const bool others_send = from.size() == 1 && from[0] == "others";
  const bool others_receive = to.size() == 1 && to[0] == "others";
  if (others_send && others_receive) return node.error("from", "and to cannot both be 'others'");
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
  if (spec.from.empty()) return node.error("from", "names no host");
  if (spec.to.empty()) return node.error("to", "names no host");
  return {};
}

Status read_size(ConfigNode& node, const std::string& folder, TrafficSpec& spec) {
  std::string size, distribution;
  ROCI_TRY(node.optional("size", size));
  ROCI_TRY(node.optional("distribution", distribution));
  if (size.empty() == distribution.empty())
    return node.error("either size or distribution says how large its messages are");
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
  if (!bytes) return node.error("size", bytes.error().message + ", nor 'unlimited'");
  if (*bytes < Bytes{1}) return node.error("size", "must be at least one byte");
  spec.size = SizeDistribution::constant(bytes->value());
  return {};
}

Status read_arrivals(ConfigNode& node, TrafficSpec& spec) {
  using Arrivals = TrafficSpec::Arrivals;
  ROCI_TRY(node.optional("arrivals", spec.arrivals,
                         one_of<Arrivals>({{"at_once", Arrivals::kAtOnce},
                                           {"poisson", Arrivals::kPoisson},
                                           {"closed_loop", Arrivals::kClosedLoop}})));
  ROCI_TRY(node.optional("start", spec.start));
  ROCI_TRY(node.optional("stop", spec.stop));
  if (spec.stop <= spec.start) return node.error("stop", "must come after start");
  if (spec.arrivals == Arrivals::kAtOnce) {
    ROCI_TRY(node.optional("flows", spec.flows, integer_in<uint32_t>(1, 1U << 20)));
    return node.optional("stagger", spec.stagger);
  }
  if (spec.unlimited) return node.error("size", "can be unlimited only where arrivals are at_once");
  if (spec.arrivals == Arrivals::kClosedLoop) {
    ROCI_TRY(node.optional("depth", spec.depth, integer_in<uint32_t>(1, 256)));
    ROCI_TRY(node.optional("think", spec.think));
    return node.optional("read_share", spec.read_share, number_in(0, 1));
  }
  ROCI_TRY(node.required("load", spec.load, number_in(1e-6, 2)));
  return node.optional("degree", spec.degree, integer_in<uint32_t>(0, kMostHosts));
}

// With both names of an algorithm or of a profile.
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
    const std::string what = "'" + profile->name + "' needs in-band telemetry, and ";
    if (!scenario.host.telemetry.enabled() || scenario.host.telemetry.begin == TelemetryBegin::kNone)
      return node.error("congestion_control",
                        what + "no host begins any: hosts: telemetry: {udp_port: 5201, begin: all}");
    if (!scenario.switches.front().telemetry.enabled)
      return node.error("congestion_control", what + "switches have none: switches: telemetry: {udp_port: " +
                                                  std::to_string(scenario.host.telemetry.udp_port) +
                                                  ", switch_id: 1}");
    if (scenario.switches.front().telemetry.udp_port != scenario.host.telemetry.udp_port)
      return node.error("congestion_control", what + "hosts and switches have it on different UDP ports");
  }
  return {};
}

Status read_traffic(ConfigNode& root, Scenario& scenario) {
  const std::string folder = std::filesystem::path(scenario.file).parent_path().string();
  return root.each("traffic", Need::kRequired, [&](ConfigNode& node) -> Status {
    using Pattern = TrafficSpec::Pattern;
    TrafficSpec& spec = scenario.traffic.emplace_back();
    spec.name = "traffic" + std::to_string(scenario.traffic.size() - 1);
    ROCI_TRY(node.optional("name", spec.name));
    for (const TrafficSpec& other : scenario.traffic)
      if (&other != &spec && other.name == spec.name)
        return node.error("name", "'" + spec.name + "' is there twice");
    ROCI_TRY(node.optional("pattern", spec.pattern,
                           one_of<Pattern>({{"fan_in", Pattern::kFanIn},
                                            {"pairs", Pattern::kPairs},
                                            {"permutation", Pattern::kPermutation},
                                            {"all_to_all", Pattern::kAllToAll},
                                            {"random", Pattern::kRandom}})));
    ROCI_TRY(read_ends(node, scenario.topology, spec));
    ROCI_TRY(node.optional(
        "operation", spec.operation,
        one_of<Operation>(
            {{"write", Operation::kWrite}, {"read", Operation::kRead}, {"send", Operation::kSend}})));
    ROCI_TRY(read_size(node, folder, spec));
    Bytes message{spec.message};
    ROCI_TRY(node.optional("message", message));
    if (message < Bytes{1} || message > Bytes{kMostMessage})
      return node.error("message", "must be 1 B to 1 GiB");
    spec.message = message.value();
    ROCI_TRY(read_arrivals(node, spec));
    if (spec.pattern == Pattern::kPairs && spec.from.size() != spec.to.size())
      return node.error("to", "has " + std::to_string(spec.to.size()) + " hosts for " +
                                  std::to_string(spec.from.size()) + " senders; pairs need as many");
    if (spec.pattern == Pattern::kRandom && spec.arrivals != TrafficSpec::Arrivals::kPoisson)
      return node.error("pattern",
                        "random is for poisson arrivals; permutation and all_to_all are for others");
    if (spec.arrivals == TrafficSpec::Arrivals::kPoisson && spec.pattern != Pattern::kRandom)
      return node.error("pattern", "must be random where arrivals are poisson");
    if (spec.degree > spec.from.size()) return node.error("degree", "is more than there are senders");
    if (spec.to.size() == 1 &&
        std::ranges::count(spec.from, spec.to[0]) == static_cast<std::ptrdiff_t>(spec.from.size()))
      return node.error("to", "is the only sender too");
    ROCI_TRY(node.optional("congestion_control", spec.congestion_control));
    uint8_t dscp = 0;
    ROCI_TRY(node.optional("dscp", dscp, integer_in<uint8_t>(0, 63)));
    spec.traffic_class = static_cast<uint8_t>(dscp << 2);
    return check_control(node, scenario, spec.congestion_control);
  });
}

Status read_faults_of(ConfigNode& root, Scenario& scenario) {
  const Topology& topology = scenario.topology;
  return root.each("faults", Need::kOptional, [&](ConfigNode& node) -> Status {
    FaultSpec fault;
    std::vector<std::string> between;
    ROCI_TRY(node.required_values("between", between));
    if (between.size() != 2) return node.error("between", "must name two ends of a cable");
    const auto named = [&](const Cable::End& end) {
      return end.is_switch ? topology.switches[end.node].name : topology.hosts[end.node].name;
    };
    const auto found = std::ranges::find_if(topology.cables, [&](const Cable& cable) {
      return (named(cable.a) == between[0] && named(cable.b) == between[1]) ||
             (named(cable.a) == between[1] && named(cable.b) == between[0]);
    });
    if (found == topology.cables.end())
      return node.error("between", "there is no cable between '" + between[0] + "' and '" + between[1] + "'");
    fault.cable = static_cast<uint32_t>(found - topology.cables.begin());
    bool one_way = false;
    ROCI_TRY(node.optional("one_way", one_way));  // from the first to the second
    if (one_way) fault.direction = named(found->a) == between[0] ? SimLink::kAToB : SimLink::kBToA;
    ROCI_TRY(node.optional("from", fault.from));
    ROCI_TRY(node.optional("until", fault.until));
    if (fault.until <= fault.from) return node.error("until", "must come after from");
    ROCI_TRY(node.optional("down", fault.down));
    const auto part = number_in(0, 1);
    ROCI_TRY(node.optional("loss", fault.faults.loss, part));
    ROCI_TRY(node.optional("duplication", fault.faults.duplication, part));
    ROCI_TRY(node.optional("reordering", fault.faults.reordering, part));
    ROCI_TRY(node.optional("reordering_delay", fault.faults.reordering_delay));
    ROCI_TRY(node.optional("corruption", fault.faults.corruption, part));
    ROCI_TRY(node.optional("marking", fault.faults.marking, part));
    if (fault.faults.corruption > 0 && !scenario.payload)
      return node.error("corruption", "needs payload: carried, or nobody would see it");
    scenario.faults.push_back(fault);
    return {};
  });
}

Status read_all(ConfigNode& root, Scenario& scenario) {
  ROCI_TRY(root.required("name", scenario.name));
  ROCI_TRY(root.optional("about", scenario.about));
  ROCI_TRY(root.optional("source", scenario.source));
  ROCI_TRY(root.optional("seed", scenario.seed, integer_in<uint64_t>(1, 1ULL << 48)));
  ROCI_TRY(root.required("duration", scenario.duration));
  if (scenario.duration <= Nanos{0} || scenario.duration > kLongestRun)
    return root.error("duration", "must be above 0 and at most an hour");
  ROCI_TRY(root.optional("drain", scenario.drain));
  if (scenario.drain < Nanos{0} || scenario.drain > kLongestRun)
    return root.error("drain", "must be at most an hour");
  ROCI_TRY(root.optional("settle", scenario.settle));
  if (scenario.settle < Nanos{0} || scenario.settle >= scenario.duration)
    return root.error("settle", "must be less than duration");
  ROCI_TRY(root.optional("sample", scenario.sample));
  if (scenario.sample < 100ns) return root.error("sample", "must be at least 100 ns");
  ROCI_TRY(root.optional("payload", scenario.payload, one_of<bool>({{"carried", true}, {"absent", false}})));
  ROCI_TRY(read_topology(root, scenario.topology));
  ROCI_TRY(read_hosts(root, scenario));
  ROCI_TRY(read_switches(root, scenario));
  ROCI_TRY(read_traffic(root, scenario));
  ROCI_TRY(read_faults_of(root, scenario));
  // For read_runs().
  (void)root.piece("variants");
  (void)root.piece("sweep");
  return {};
}

// Every list of the map, in every combination.
Status read_sweep(ConfigNode& root, std::vector<RunSpec>& runs) {
  return root.section("sweep", Need::kOptional, [&](ConfigNode& node) -> Status {
    for (const std::string& path : node.keys()) {
      std::vector<std::string> values;
      ROCI_TRY(node.required_values(path, values));
      if (values.empty()) return node.error(path, "has no values");
      const std::string origin = node.piece(path)->where;
      std::vector<RunSpec> more;
      for (const RunSpec& run : runs) {
        for (const std::string& value : values) {
          RunSpec& one = more.emplace_back(run);
          one.name += (one.name.empty() ? "" : " ") + path.substr(path.rfind('.') + 1) + "=" + value;
          one.changes.push_back({path, value, origin});
        }
      }
      runs = std::move(more);
      if (runs.size() > kMostRuns)
        return node.error("there are " + std::to_string(runs.size()) + " runs and more; allowed are " +
                          std::to_string(kMostRuns));
    }
    return {};
  });
}

Status read_variants(ConfigNode& root, std::vector<RunSpec>& runs) {
  std::vector<RunSpec> variants;
  ROCI_TRY(root.each("variants", Need::kOptional, [&](ConfigNode& node) -> Status {
    RunSpec variant;
    ROCI_TRY(node.required("name", variant.name));
    for (const RunSpec& other : variants)
      if (other.name == variant.name) return node.error("name", "'" + variant.name + "' is there twice");
    ROCI_TRY(node.section("set", Need::kOptional, [&](ConfigNode& set) -> Status {
      for (const std::string& path : set.keys()) {
        auto piece = set.piece(path);
        variant.changes.push_back({path, piece->yaml, piece->where});
      }
      return {};
    }));
    variants.push_back(std::move(variant));
    return {};
  }));
  if (!variants.empty()) runs = std::move(variants);
  return {};
}

}  // namespace

std::string_view operation_name(Operation operation) {
  switch (operation) {
    case Operation::kWrite:
      return "write";
    case Operation::kRead:
      return "read";
    case Operation::kSend:
      return "send";
  }
  return "";
}

Nanos base_rtt(const Scenario& scenario, uint32_t from, uint32_t to) {
  // Ethernet, IPv4, UDP, BTH and ICRC, and what the line has beside frames; an acknowledgement has an AETH too.
  constexpr uint64_t kHeaders = 14 + 20 + 8 + 12 + 4 + kEthernetLineOverhead.value(), kAck = kHeaders + 4;
  double nanos = 0;
  for (const uint32_t number : scenario.topology.way(from, to)) {
    const CableSpec& cable = scenario.topology.cables[number].spec;
    nanos += 2 * static_cast<double>(cable.delay.count()) +
             static_cast<double>(scenario.path_mtu + kHeaders + kAck) * 8e9 /
                 static_cast<double>(cable.rate.value());
  }
  return Nanos{static_cast<int64_t>(nanos)};
}

Result<std::vector<RunSpec>> read_runs(const std::string& file, const std::vector<ConfigChange>& changes) {
  std::vector<RunSpec> runs{{"", {}}};
  Status read = read_config(
      file,
      [&](ConfigNode& root) -> Status {
        for (const std::string& key : root.keys())
          (void)root.piece(key);  // the others are read with each run
        ROCI_TRY(read_variants(root, runs));
        return read_sweep(root, runs);
      },
      changes);
  if (!read) return fail(read.error());
  return runs;
}

Result<Scenario> read_scenario(const std::string& file, const std::vector<ConfigChange>& changes) {
  Scenario scenario;
  scenario.file = file;
  ROCI_TRY(read_config(
      file, [&](ConfigNode& root) { return read_all(root, scenario); }, changes));
  return scenario;
}

Result<Scenario> parse_scenario(const std::string& text, const std::string& name,
                                const std::vector<ConfigChange>& changes) {
  Scenario scenario;
  scenario.file = name;
  ROCI_TRY(parse_config(
      text, name, [&](ConfigNode& root) { return read_all(root, scenario); }, changes));
  return scenario;
}

}  // namespace roci::lab

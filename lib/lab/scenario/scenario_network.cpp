// Network of a scenario file: topology, hosts, switches.
#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <utility>

#include "device/config/device_config.hpp"
#include "lab/results/ideal_time.hpp"
#include "lab/scenario/scenario_sections.hpp"
#include "switch/qos/class_config.hpp"

namespace roci::lab {
namespace {

// Bytes of an IP packet in addition to the path MTU: headers, extensions, and telemetry of the maximum number of hops.
constexpr uint16_t kHeaderBytes = 304;

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

// Longest base RTT of any two hosts.
Nanos longest_rtt(const Scenario& scenario) {
  const Topology& topology = scenario.topology;
  // The two hosts with the slowest or longest cables, at each switch.
  std::vector<std::array<std::optional<uint32_t>, 2>> farthest(topology.switches.size());
  const auto distance = [&](uint32_t host) { return base_rtt(scenario, host, host); };  // twice its cable
  for (uint32_t host = 0; host < topology.hosts.size(); ++host) {
    auto& [first, second] = farthest[topology.hosts[host].at];
    if (!first || distance(host) > distance(*first)) {
      second = std::exchange(first, host);
    } else if (!second || distance(host) > distance(*second)) {
      second = host;
    }
  }
  Nanos longest{0};
  for (const auto& from : farthest) {
    for (const auto& to : farthest) {
      const std::optional<uint32_t>& other = &from == &to ? to[1] : to[0];
      if (from[0] && other) longest = std::max(longest, base_rtt(scenario, *from[0], *other));
    }
  }
  return longest;
}

// Size of the MAC table of a switch if the file does not specify it: each port has one host or switch.
uint32_t mac_table_size_for(size_t ports) {
  return static_cast<uint32_t>(
      std::clamp<size_t>(std::bit_ceil(4 * ports), 64, SwitchConfig{}.mac_table_size));
}

// The key `by_rate`: classes of the ports with a rate.
Status read_by_rate(ConfigNode& node, std::map<uint64_t, SwitchPortConfig>& ports) {
  return node.each("by_rate", Need::kOptional, [&](ConfigNode& item) -> Status {
    BitsPerSec rate{0};
    ROCI_TRY(item.required("rate", rate));
    const auto found = ports.find(rate.value());
    if (found == ports.end()) return item.error("rate", "no link of the topology has this rate");
    return read_classes(item, found->second.classes, rate);
  });
}

}  // namespace

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

Status read_hosts(ConfigNode& root, Scenario& scenario) {
  DeviceConfig& host = scenario.host;
  host.progress = Progress::kExternal;
  host.window_bytes = 64U << 20;  // congestion control must be the limit
  host.packets_per_turn = 1;      // as in NICs, which share their line per packet
  host.congestion_control.base_rtt = longest_rtt(scenario);
  Status read = root.section("hosts", Need::kOptional, [&](ConfigNode& node) -> Status {
    ROCI_TRY(node.optional(
        "path_mtu", scenario.path_mtu,
        one_of<uint32_t>({{"256", 256}, {"512", 512}, {"1024", 1024}, {"2048", 2048}, {"4096", 4096}})));
    host.congestion_control.base_rtt = longest_rtt(scenario);
    return read_host_keys(node, host);
  });
  scenario.port_mtu = static_cast<uint16_t>(scenario.path_mtu + kHeaderBytes);
  return read;
}

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
    return read_by_rate(node, by_rate);
  }));
  for (uint32_t s = 0; s < topology.switches.size(); ++s) {
    const TopologySwitch& of = topology.switches[s];
    SwitchConfig config = usual;
    config.name = of.name;
    if (config.mac_table_size == SwitchConfig{}.mac_table_size)
      config.mac_table_size = mac_table_size_for(of.cables.size());
    config.seed = usual.seed * 4096 + s;
    if (config.ecmp_seed) *config.ecmp_seed += s;  // equal hashes would use a part of the paths only
    config.telemetry.switch_id += s;               // the file specifies that of the first switch
    if (topology.switches.size() > 1 && of.hosts > 0)
      config.interfaces.push_back({.name = "edge", .vlan = kDefaultVlan, .addresses = {topology.gateway(s)}});
    for (uint32_t p = 0; p < of.cables.size(); ++p) {
      SwitchPortConfig port = by_rate.at(topology.cables[of.cables[p]].spec.rate.value());
      const Cable::End& far = topology.far_end(s, p);
      port.name = topology.name_of(far);
      if (std::ranges::any_of(config.ports,
                              [&](const SwitchPortConfig& other) { return other.name == port.name; }))
        port.name += "." + std::to_string(p);
      port.all_tagged = false;
      if (far.is_switch) {
        port.vlan = static_cast<uint16_t>(kDefaultVlan + 1 + p);
        config.interfaces.push_back(
            {.name = port.name,
             .vlan = port.vlan,
             .addresses = {topology.cable_address(of.cables[p], topology.is_end_b(s, p))}});
      }
      config.ports.push_back(std::move(port));
    }
    for (uint32_t to = 0; to < topology.switches.size() && topology.switches.size() > 1; ++to) {
      if (to == s || topology.switches[to].hosts == 0) continue;
      SwitchRouteConfig route{.prefix = topology.edge_network(to).masked(), .via = {}};
      for (const uint32_t p : topology.ports_towards(s, to)) {
        route.via.push_back(topology.cable_address(of.cables[p], !topology.is_end_b(s, p)).address);
        if (route.via.size() == kMaxNextHops) break;
      }
      config.routes.push_back(std::move(route));
    }
    if (Status checked = check(config); !checked) return root.error("switches", checked.error().message);
    scenario.switches.push_back(std::move(config));
  }
  return {};
}

}  // namespace roci::lab

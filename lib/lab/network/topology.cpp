#include "lab/network/topology.hpp"

#include <algorithm>
#include <deque>
#include <limits>
#include <utility>

namespace roci::lab {
namespace {

constexpr uint8_t kUnreachable = 255;
constexpr uint32_t kNotConnected = std::numeric_limits<uint32_t>::max();
constexpr uint32_t kEdgeBits = 12;                           // of a host's address in its edge network
constexpr uint32_t kEdgeNetworks = 10U << 24;                // 10.0.0.0/8
constexpr uint32_t kCableNetworks = 172U << 24 | 16U << 16;  // 172.16.0.0/12
constexpr uint32_t kCablePrefix = 30;

IpNetwork network_v4(uint32_t address, uint8_t prefix) { return {IpAddress::from_v4(address), prefix}; }

void plug(Topology& topology, Cable::End a, Cable::End b, const CableSpec& spec) {
  const auto number = static_cast<uint32_t>(topology.cables.size());
  for (Cable::End* end : {&a, &b}) {
    if (end->is_switch) {
      TopologySwitch& of = topology.switches[end->node];
      end->port = static_cast<uint32_t>(of.cables.size());
      of.cables.push_back(number);
    } else {
      topology.hosts[end->node].cable = number;
    }
  }
  topology.cables.push_back({a, b, spec});
}

uint32_t add_switches(Topology& topology, uint32_t count, const std::string& prefix = "s") {
  const auto first = static_cast<uint32_t>(topology.switches.size());
  for (uint32_t i = 0; i < count; ++i) topology.switches.push_back({prefix + std::to_string(i), {}, 0});
  return first;
}

void add_hosts(Topology& topology, uint32_t count, uint32_t at, const CableSpec& spec) {
  for (uint32_t i = 0; i < count; ++i) {
    const auto number = static_cast<uint32_t>(topology.hosts.size());
    topology.hosts.push_back({"h" + std::to_string(number), kNotConnected, 0});
    plug(topology, {false, number, 0}, {true, at, 0}, spec);
  }
}

Result<Topology> finished(Topology topology) {
  ROCI_TRY(topology.finish());
  return topology;
}

Status check_count(uint64_t count, uint64_t least, uint64_t most, const char* what) {
  if (count >= least && count <= most) return {};
  return fail(std::to_string(count) + " " + what + "; " + std::to_string(least) + " to " +
              std::to_string(most) + " are allowed");
}

}  // namespace

bool Topology::is_end_b(uint32_t switch_number, uint32_t port) const {
  const Cable::End& b = cables[switches[switch_number].cables[port]].b;
  return b.is_switch && b.node == switch_number && b.port == port;
}

const Cable::End& Topology::far_end(uint32_t switch_number, uint32_t port) const {
  const Cable& cable = cables[switches[switch_number].cables[port]];
  return is_end_b(switch_number, port) ? cable.a : cable.b;
}

IpNetwork Topology::edge_network(uint32_t switch_number) const {
  return network_v4(kEdgeNetworks | switch_number << kEdgeBits, 32 - kEdgeBits);
}

IpNetwork Topology::gateway(uint32_t switch_number) const {
  return network_v4((kEdgeNetworks | switch_number << kEdgeBits) + 1, 32 - kEdgeBits);
}

IpNetwork Topology::host_address(uint32_t host) const {
  const TopologyHost& of = hosts[host];
  // Address 1 is the switch.
  const Cable& cable = cables[of.cable];
  const uint32_t port = cable.a.is_switch ? cable.a.port : cable.b.port;
  return network_v4((kEdgeNetworks | of.at << kEdgeBits) + 2 + port, 32 - kEdgeBits);
}

IpNetwork Topology::cable_address(uint32_t cable, bool end_b) const {
  return network_v4(kCableNetworks + (cable << (32 - kCablePrefix)) + (end_b ? 2 : 1), kCablePrefix);
}

std::vector<uint32_t> Topology::ports_towards(uint32_t from, uint32_t to) const {
  std::vector<uint32_t> ports;
  if (from == to || hops[from][to] == kUnreachable) return ports;
  for (uint32_t port = 0; port < switches[from].cables.size(); ++port) {
    const Cable::End& end = far_end(from, port);
    if (end.is_switch && hops[end.node][to] + 1 == hops[from][to]) ports.push_back(port);
  }
  return ports;
}

std::vector<uint32_t> Topology::path(uint32_t from, uint32_t to) const {
  std::vector<uint32_t> cables_on_it{hosts[from].cable};
  uint32_t at = hosts[from].at;
  while (at != hosts[to].at) {
    const uint32_t port = ports_towards(at, hosts[to].at).front();
    cables_on_it.push_back(switches[at].cables[port]);
    at = far_end(at, port).node;
  }
  cables_on_it.push_back(hosts[to].cable);
  return cables_on_it;
}

Nanos Topology::least_delay() const {
  Nanos least = kNever;
  for (const Cable& cable : cables) least = std::min(least, cable.spec.delay);
  return least;
}

std::optional<uint32_t> Topology::find_host(const std::string& name) const {
  const auto found = std::ranges::find(hosts, name, &TopologyHost::name);
  if (found == hosts.end()) return {};
  return static_cast<uint32_t>(found - hosts.begin());
}

std::optional<uint32_t> Topology::find_switch(const std::string& name) const {
  const auto found = std::ranges::find(switches, name, &TopologySwitch::name);
  if (found == switches.end()) return {};
  return static_cast<uint32_t>(found - switches.begin());
}

Status Topology::finish() {
  ROCI_TRY(check_count(hosts.size(), 2, kMaxHosts, "hosts"));
  ROCI_TRY(check_count(switches.size(), 1, kMaxSwitches, "switches"));
  for (const Cable& cable : cables) {
    if (cable.spec.rate.value() == 0) return fail("a link requires a rate above 0");
    if (cable.spec.delay <= Nanos{0}) return fail("a link requires a delay of at least 1 ns");
  }
  for (TopologySwitch& one : switches) one.hosts = 0;
  for (TopologyHost& host : hosts) {
    if (host.cable == kNotConnected) return fail("host '" + host.name + "' is not connected");
    const Cable& cable = cables[host.cable];
    const Cable::End& far = cable.a.is_switch ? cable.a : cable.b;
    if (!far.is_switch) return fail("host '" + host.name + "' is not connected to a switch");
    host.at = far.node;
    ++switches[far.node].hosts;
  }
  const size_t count = switches.size();
  hops.assign(count, std::vector<uint8_t>(count, kUnreachable));
  for (uint32_t from = 0; from < count; ++from) {
    hops[from][from] = 0;
    std::deque<uint32_t> open{from};
    while (!open.empty()) {
      const uint32_t at = open.front();
      open.pop_front();
      for (uint32_t port = 0; port < switches[at].cables.size(); ++port) {
        const Cable::End& end = far_end(at, port);
        if (!end.is_switch || hops[from][end.node] != kUnreachable) continue;
        hops[from][end.node] =
            static_cast<uint8_t>(std::min<uint32_t>(hops[from][at] + 1U, kUnreachable - 1U));
        open.push_back(end.node);
      }
    }
    for (uint32_t to = 0; to < count; ++to) {
      if (hops[from][to] == kUnreachable)
        return fail("no path from switch '" + switches[from].name + "' to switch '" + switches[to].name +
                    "'");
    }
  }
  return {};
}

Result<Topology> make_star(uint32_t hosts, const CableSpec& host_cable) {
  ROCI_TRY(check_count(hosts, 2, 1024, "hosts per switch"));
  Topology topology;
  add_hosts(topology, hosts, add_switches(topology, 1), host_cable);
  return finished(std::move(topology));
}

Result<Topology> make_dumbbell(uint32_t left, uint32_t right, const CableSpec& host_cable,
                               const CableSpec& trunk) {
  ROCI_TRY(check_count(left, 1, 1023, "hosts on the left"));
  ROCI_TRY(check_count(right, 1, 1023, "hosts on the right"));
  Topology topology;
  const uint32_t first = add_switches(topology, 2);
  add_hosts(topology, left, first, host_cable);
  add_hosts(topology, right, first + 1, host_cable);
  plug(topology, {true, first, 0}, {true, first + 1, 0}, trunk);
  return finished(std::move(topology));
}

Result<Topology> make_leaf_spine(uint32_t leaves, uint32_t spines, uint32_t hosts_per_leaf,
                                 const CableSpec& host_cable, const CableSpec& fabric) {
  ROCI_TRY(check_count(leaves, 2, 1024, "leaves"));
  ROCI_TRY(check_count(spines, 1, 64, "spines"));
  ROCI_TRY(check_count(hosts_per_leaf, 1, 960, "hosts per leaf"));
  Topology topology;
  const uint32_t first_leaf = add_switches(topology, leaves, "leaf");
  const uint32_t first_spine = add_switches(topology, spines, "spine");
  for (uint32_t leaf = 0; leaf < leaves; ++leaf) {
    add_hosts(topology, hosts_per_leaf, first_leaf + leaf, host_cable);
    for (uint32_t spine = 0; spine < spines; ++spine)
      plug(topology, {true, first_leaf + leaf, 0}, {true, first_spine + spine, 0}, fabric);
  }
  return finished(std::move(topology));
}

Result<Topology> make_fat_tree(uint32_t k, std::optional<uint32_t> hosts_per_edge,
                               const CableSpec& host_cable, const CableSpec& fabric) {
  ROCI_TRY(check_count(k, 2, 32, "ports per switch (k)"));
  if (k % 2 != 0) return fail("fat-tree: k must be even; " + std::to_string(k) + " is odd");
  const uint32_t half = k / 2;
  const uint32_t at_each = hosts_per_edge.value_or(half);
  ROCI_TRY(check_count(at_each, 1, 960, "hosts per edge switch"));
  Topology topology;
  const uint32_t edges = add_switches(topology, k * half, "edge");
  const uint32_t aggregations = add_switches(topology, k * half, "agg");
  const uint32_t cores = add_switches(topology, half * half, "core");
  for (uint32_t pod = 0; pod < k; ++pod) {
    for (uint32_t i = 0; i < half; ++i) {
      add_hosts(topology, at_each, edges + pod * half + i, host_cable);
      for (uint32_t j = 0; j < half; ++j) {
        plug(topology, {true, edges + pod * half + i, 0}, {true, aggregations + pod * half + j, 0}, fabric);
        plug(topology, {true, aggregations + pod * half + i, 0}, {true, cores + i * half + j, 0}, fabric);
      }
    }
  }
  return finished(std::move(topology));
}

Status TopologyBuilder::add_host(const std::string& name) {
  if (topology_.find_host(name) || topology_.find_switch(name)) return fail("duplicate name '" + name + "'");
  topology_.hosts.push_back({name, kNotConnected, 0});
  return {};
}

Status TopologyBuilder::add_switch(const std::string& name) {
  if (topology_.find_host(name) || topology_.find_switch(name)) return fail("duplicate name '" + name + "'");
  topology_.switches.push_back({name, {}, 0});
  return {};
}

Status TopologyBuilder::connect(const std::string& a, const std::string& b, const CableSpec& spec) {
  std::array<Cable::End, 2> ends;
  for (size_t i = 0; i < 2; ++i) {
    const std::string& name = i == 0 ? a : b;
    if (const auto host = topology_.find_host(name)) {
      if (topology_.hosts[*host].cable != kNotConnected)
        return fail("host '" + name + "' already has a link (max. 1)");
      ends[i] = {false, *host, 0};
    } else if (const auto found = topology_.find_switch(name)) {
      ends[i] = {true, *found, 0};
    } else {
      return fail("'" + name + "' is neither a host nor a switch");
    }
  }
  if (!ends[0].is_switch && !ends[1].is_switch)
    return fail("link between the hosts '" + a + "' and '" + b + "'; hosts must be connected to switches");
  if (a == b) return fail("link from '" + a + "' to itself");
  plug(topology_, ends[0], ends[1], spec);
  return {};
}

Result<Topology> TopologyBuilder::finish() { return finished(std::move(topology_)); }

}  // namespace roci::lab

// Topology of a lab network: hosts, switches, cables, addresses and shortest paths. Created by a generator (star,
// dumbbell, leaf-spine, fat-tree) or from a graph in the file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/types.hpp"
#include "wire/headers/address.hpp"

namespace roci::lab {

// Properties of a cable, for both directions.
struct CableSpec {
  BitsPerSec rate{100'000'000'000};
  Nanos delay{1000};

  friend bool operator==(const CableSpec&, const CableSpec&) = default;
};

struct Cable {
  // A host has one cable, at port 0.
  struct End {
    bool is_switch = false;
    uint32_t node = 0;  // number of the host or switch
    uint32_t port = 0;  // of the host or switch
  };
  End a, b;
  CableSpec spec;
};

struct TopologyHost {
  std::string name;
  uint32_t cable = 0;
  uint32_t at = 0;  // switch at the other end of its cable
};

struct TopologySwitch {
  std::string name;
  std::vector<uint32_t> cables;  // by port
  uint32_t hosts = 0;            // attached to it
};

// Switches with hosts are edge switches. Each has its own IP network, so that packets can use all shortest paths (layer
// 3, ECMP). A topology of one switch is one layer 2 network.
struct Topology {
  std::vector<TopologyHost> hosts;
  std::vector<TopologySwitch> switches;
  std::vector<Cable> cables;

  // Whether a switch's port is end b of its cable, and the other end of the cable.
  [[nodiscard]] bool is_end_b(uint32_t switch_number, uint32_t port) const;
  [[nodiscard]] const Cable::End& far_end(uint32_t switch_number, uint32_t port) const;

  [[nodiscard]] const std::string& name_of(const Cable::End& end) const {
    return end.is_switch ? switches[end.node].name : hosts[end.node].name;
  }

  // Network of an edge switch, address of a host in it (by port), and address of the switch.
  [[nodiscard]] IpNetwork edge_network(uint32_t switch_number) const;
  [[nodiscard]] IpNetwork host_address(uint32_t host) const;
  [[nodiscard]] IpNetwork gateway(uint32_t switch_number) const;
  // Address of the switch at this end of a cable between switches; each cable is a network of two addresses.
  [[nodiscard]] IpNetwork cable_address(uint32_t cable, bool end_b) const;

  // Ports of `from` on shortest paths to `to`, in ascending order.
  [[nodiscard]] std::vector<uint32_t> ports_towards(uint32_t from, uint32_t to) const;

  // Cables between two hosts, on the first of the shortest paths.
  [[nodiscard]] std::vector<uint32_t> path(uint32_t from, uint32_t to) const;

  // Minimum delay of all cables: the minimum time from node to node.
  [[nodiscard]] Nanos least_delay() const;
  [[nodiscard]] std::optional<uint32_t> find_host(const std::string& name) const;
  [[nodiscard]] std::optional<uint32_t> find_switch(const std::string& name) const;

  // Must be called after all cables were added. Computes the data that the functions above require. Fails if a host is
  // not connected, a switch is unreachable, or a cable has no rate or delay.
  Status finish();

  // hops[from][to] between switches; 255: no path.
  std::vector<std::vector<uint8_t>> hops;
};

inline constexpr uint32_t kMaxHosts = 4096;
inline constexpr uint32_t kMaxSwitches = 2048;

// Hosts h0, h1, … at one switch, s0.
Result<Topology> make_star(uint32_t hosts, const CableSpec& host_cable);
// The first `left` hosts are at switch s0, the others at s1, with one cable between the switches.
Result<Topology> make_dumbbell(uint32_t left, uint32_t right, const CableSpec& host_cable,
                               const CableSpec& trunk);
// Each leaf has a cable to each spine. Leaves are numbered first.
Result<Topology> make_leaf_spine(uint32_t leaves, uint32_t spines, uint32_t hosts_per_leaf,
                                 const CableSpec& host_cable, const CableSpec& fabric);
// k pods of k/2 edge and k/2 aggregation switches, k²/4 core switches, and k/2 or `hosts_per_edge` hosts at each edge
// switch (Al-Fares et al. 2008). k must be even.
Result<Topology> make_fat_tree(uint32_t k, std::optional<uint32_t> hosts_per_edge,
                               const CableSpec& host_cable, const CableSpec& fabric);

// Builder of a topology from a graph.
class TopologyBuilder {
 public:
  Status add_host(const std::string& name);
  Status add_switch(const std::string& name);
  // Connects two nodes by name. A host can be connected once.
  Status connect(const std::string& a, const std::string& b, const CableSpec& spec);
  Result<Topology> finish();

 private:
  Topology topology_;
};

}  // namespace roci::lab

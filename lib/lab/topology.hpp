// What a network of the lab looks like: hosts, switches and the cables between them, their addresses, and which ways lead
// where. Made by a generator (star, dumbbell, leaf-spine, fat-tree) or written out as a graph.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/types.hpp"
#include "wire/address.hpp"

namespace roci::lab {

// Both directions of a cable.
struct CableSpec {
  BitsPerSec rate{100'000'000'000};
  Nanos delay{1000};

  friend bool operator==(const CableSpec&, const CableSpec&) = default;
};

struct Cable {
  // A host has one cable, in port 0.
  struct End {
    bool is_switch = false;
    uint32_t node = 0;  // number of the host or of the switch
    uint32_t port = 0;  // of it
  };
  End a, b;
  CableSpec spec;
};

struct TopologyHost {
  std::string name;
  uint32_t cable = 0;
  uint32_t at = 0;  // the switch at its other end
};

struct TopologySwitch {
  std::string name;
  std::vector<uint32_t> cables;  // by port
  uint32_t hosts = 0;            // on its own ports
};

// Switches with hosts are edges: each has a network of its own, so that there are as many ways as there are cables
// (layer 3, ECMP). A topology of one switch is one network at layer 2.
struct Topology {
  std::vector<TopologyHost> hosts;
  std::vector<TopologySwitch> switches;
  std::vector<Cable> cables;

  // Whether a switch's port is end b of its cable, and the other end.
  [[nodiscard]] bool is_end_b(uint32_t switch_number, uint32_t port) const;
  [[nodiscard]] const Cable::End& beyond(uint32_t switch_number, uint32_t port) const;

  [[nodiscard]] const std::string& name_of(const Cable::End& end) const {
    return end.is_switch ? switches[end.node].name : hosts[end.node].name;
  }

  // The network of an edge switch, the switch's address in it, and that of a host there (its n-th).
  [[nodiscard]] IpNetwork edge_network(uint32_t switch_number) const;
  [[nodiscard]] IpNetwork host_address(uint32_t host) const;
  [[nodiscard]] IpNetwork gateway(uint32_t switch_number) const;
  // Of the switch at that end of a cable between switches: a network of two.
  [[nodiscard]] IpNetwork cable_address(uint32_t cable, bool end_b) const;

  // The ports of `from` that shortest ways to `to` begin with, in order.
  [[nodiscard]] std::vector<uint32_t> ports_towards(uint32_t from, uint32_t to) const;

  // The cables that a packet goes through from host to host: those of the first of the shortest ways.
  [[nodiscard]] std::vector<uint32_t> way(uint32_t from, uint32_t to) const;

  // The least delay of any cable: how far apart in time two nodes always are.
  [[nodiscard]] Nanos least_delay() const;
  [[nodiscard]] std::optional<uint32_t> find_host(const std::string& name) const;
  [[nodiscard]] std::optional<uint32_t> find_switch(const std::string& name) const;

  // After cables have been put in: hosts that are not connected, switches that cannot be reached, cables without a rate or a
  // delay. Works out what the questions above need.
  Status finish();

  // hops_[from][to] of switches; 255 where there is no way.
  std::vector<std::vector<uint8_t>> hops;
};

inline constexpr uint32_t kMostHosts = 4096;
inline constexpr uint32_t kMostSwitches = 2048;

// h0 … at one switch, s0.
Result<Topology> make_star(uint32_t hosts, const CableSpec& host_cable);
// The first `left` hosts at switch s0, the others at s1, and one cable between the two.
Result<Topology> make_dumbbell(uint32_t left, uint32_t right, const CableSpec& host_cable,
                               const CableSpec& trunk);
// Every leaf has a cable to every spine; leaves are numbered first.
Result<Topology> make_leaf_spine(uint32_t leaves, uint32_t spines, uint32_t hosts_per_leaf,
                                 const CableSpec& host_cable, const CableSpec& fabric);
// k pods of k/2 edge and k/2 aggregation switches, k²/4 cores, k/2 hosts at each edge unless `hosts_per_edge` says otherwise
// (Al-Fares et al. 2008). k is even.
Result<Topology> make_fat_tree(uint32_t k, std::optional<uint32_t> hosts_per_edge,
                               const CableSpec& host_cable, const CableSpec& fabric);

// The pieces of a topology that is written out.
class TopologyBuilder {
 public:
  Status add_host(const std::string& name);
  Status add_switch(const std::string& name);
  // By name. A host can be connected once.
  Status connect(const std::string& a, const std::string& b, const CableSpec& spec);
  Result<Topology> finish();

 private:
  Topology topology_;
};

}  // namespace roci::lab

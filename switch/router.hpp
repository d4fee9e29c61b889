// Layer 3: forwards IP packets that are sent to the switch's MAC between its VLANs by static routes, and answers for
// the switch's own addresses. One interface per VLAN, each with a neighbour table of its own.
//
// A route may have several next hops. A packet goes to the one that its flow hashes to (path_hash.hpp), the first packets
// of all wait until that one has answered. A next hop that has failed to answer, or that answered once and is asked again
// in vain, is silent: its flows go to the others, each to one of them, until it answers; flows of the others stay where
// they are. Switches that program resolved next hops alone into their groups do the same.
#pragma once

#include <rte_mempool.h>

#include <memory>
#include <span>
#include <vector>

#include "port/neighbours.hpp"
#include "switch/packet.hpp"
#include "switch/route_table.hpp"
#include "switch/switch_config.hpp"

namespace roci {

// What the router asks of its switch.
class RouterOutput {
 public:
  // Bridges a frame in packet.vlan.
  virtual void forward(SwitchPacket& packet, Nanos now) = 0;
  virtual void drop(SwitchPacket& packet, DropReason reason) = 0;
  virtual SwitchPortCounters& counters_of(const SwitchPacket& packet) = 0;

 protected:
  ~RouterOutput() = default;
};

// Owned by the switch's thread.
class Router {
 public:
  // Frames that wait for the MAC of their next hop, over all interfaces; the next one is dropped (kNoNeighbour).
  static constexpr size_t kMaxWaiting = 256;

  Router(const SwitchConfig& config, const MacAddress& mac, rte_mempool* pool, RouterOutput& output);
  ~Router();
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;
  // Makes the interfaces; `config` has passed check().
  Status open(const SwitchConfig& config);

  // Shows the router every frame that has come in. It takes what is sent to its MAC (packet.frame is null then) and only
  // looks at the ARP and neighbour messages among what is sent to all.
  void handle(std::span<SwitchPacket> batch, Nanos now);

  // Learns from a copy of an ARP or neighbour message that another worker's router has been shown.
  void overhear(const SwitchPacket& packet, Nanos now);
  // Whether the frame is one, in a VLAN with an interface.
  [[nodiscard]] bool is_neighbour_message(const SwitchPacket& packet) const;

  // Whether IP packets that come to the switch's MAC in the VLAN are routed.
  [[nodiscard]] bool is_in(uint16_t vlan) const { return !by_vlan_.empty() && by_vlan_[vlan] != nullptr; }
  // Whether the way to the address, if there is any, leads to another router: it is in no network of an interface.
  [[nodiscard]] bool leads_on(const IpAddress& destination) const;
  // Sends a packet that the switch has made itself. False, and nothing done, when there is no route.
  bool originate(SwitchPacket& packet, const IpAddress& destination, Nanos now);

  // Repeats solicitations, sends or gives up frames that wait. Returns whether there was anything.
  bool poll(Nanos now);
  [[nodiscard]] Nanos next_deadline() const;

 private:
  static constexpr size_t kBatch = 32;
  class Interface;
  // Another router, in the network of an interface.
  struct NextHop {
    Interface* interface = nullptr;
    IpAddress address;
    NeighbourRef neighbour{};  // from the first packet on
    bool answered = false;     // at least once
    bool silent = false;
  };
  // What a number of the table stands for.
  struct Route {
    Interface* interface = nullptr;    // of an own network or address
    bool own = false;                  // the address is the switch's
    std::span<NextHop* const> hops{};  // of others; without any the destination itself is the next hop
  };
  struct Waiting {
    SwitchPacket packet;
    const Route* route = nullptr;
    IpAddress destination;
  };
  struct Choice {
    NextHop* hop = nullptr;
    Resolution result = Resolution::kFailed;
  };

  Status open_interface(const SwitchInterfaceConfig& c, const SwitchConfig& config);
  Status open_routes(const SwitchConfig& config);
  [[nodiscard]] Interface* interface_of(const SwitchConfig& config, const IpAddress& address) const;

  // Whether the packet is to be routed, or for an address of another interface; gives the destination then.
  bool look(SwitchPacket& packet, IpAddress& destination, Nanos now);
  // A frame to the switch itself, which answers as the host of the interface or drops it.
  void answer(SwitchPacket& packet, Interface& host, Nanos now);
  void route(std::span<SwitchPacket* const> packets, std::span<const IpAddress> destinations, Nanos now);
  void route_one(SwitchPacket& packet, const Route* found, const IpAddress& destination, Nanos now);
  [[nodiscard]] const Route* find_route(const IpAddress& destination) const;

  // By a route, at once or when the next hop is known.
  void send_or_wait(SwitchPacket& packet, const Route& route, const IpAddress& destination, Nanos now);
  // False when the next hop is not known yet.
  bool send(SwitchPacket& packet, const Route& route, const IpAddress& destination, Nanos now);
  bool send_to(SwitchPacket& packet, Interface& out, Resolution result, const Neighbour* next_hop, Nanos now);
  Choice choose(const Route& route, const SwitchPacket& packet, Nanos now);
  Resolution ask(NextHop& hop, Nanos now);
  // Sends or gives up what waits, when something has become of a neighbour. Returns whether there was anything.
  bool send_waiting(Nanos now);
  [[nodiscard]] uint64_t generation() const;

  MacAddress mac_;
  rte_mempool* pool_;
  RouterOutput& output_;
  uint64_t salt_;
  std::vector<std::unique_ptr<Interface>> interfaces_;
  std::vector<Interface*> by_vlan_;
  std::vector<NextHop> hops_;             // each once
  std::vector<NextHop*> hops_of_routes_;  // one route's behind another's
  std::vector<Route> routes_;
  RouteTable table_;
  std::vector<Waiting> waiting_;  // in the order they came
  uint64_t seen_generation_ = 0;
};

}  // namespace roci

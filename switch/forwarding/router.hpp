// Router of a switch (layer 3): forwards IP packets sent to the switch's MAC between its VLANs by static routes, and
// answers for the switch's own addresses. Each VLAN has at most one interface, with its own neighbor table.
//
// A route may have several next hops. The hash of the flow selects one of them (path_hash.hpp), and the first packets
// of a flow wait until this one has answered. A next hop is silent if it has failed to answer, or has answered once and
// does not answer again. Its flows are then sent to the other next hops, each flow to one of them, until it answers.
// Flows of other next hops do not move. Switches that program only resolved next hops into ECMP groups behave alike.
#pragma once

#include <rte_mempool.h>

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "port/neighbors/neighbors.hpp"
#include "switch/forwarding/route_table.hpp"
#include "switch/pipeline/packet.hpp"
#include "switch/switch_config.hpp"

namespace roci {

// Functions of the switch that its router calls.
class RouterOutput {
 public:
  // Bridges the frame in packet.vlan.
  virtual void forward(SwitchPacket& packet, Nanos now) = 0;
  virtual void drop(SwitchPacket& packet, DropReason reason) = 0;
  virtual SwitchPortCounters& counters_of(const SwitchPacket& packet) = 0;

 protected:
  ~RouterOutput() = default;
};

// Owned by one switch worker.
class Router {
 public:
  // Frames that may wait for the MAC of their next hop, on all interfaces, and of one ingress port if no other port has
  // any. Further frames are dropped (kNeighborUnresolved).
  static constexpr size_t kMaxWaiting = 256;
  static constexpr size_t kMaxWaitingOfPort = kMaxWaiting / 2;

  Router(const SwitchConfig& config, const MacAddress& mac, rte_mempool* pool, RouterOutput& output);
  ~Router();
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;
  // Creates the route table of a configuration, for the routers of all workers. It is immutable, so threads share it.
  static Result<RouteTable> make_table(const SwitchConfig& config);
  // Creates the interfaces. `config` must have passed check(). `table` must be made from `config` and outlive the
  // router.
  Status open(const SwitchConfig& config, const RouteTable& table);

  // Processes received frames. Consumes frames to the switch's MAC in VLANs with an interface (packet.frame is null
  // afterwards). Of multicast frames, it reads ARP and ND messages without consuming them.
  void handle(std::span<SwitchPacket> batch, Nanos now);

  // Learns from a copy of an ARP or ND message that another worker's router has processed.
  void observe(const SwitchPacket& packet, Nanos now);
  // Whether the frame is an ARP or ND message, in a VLAN with an interface.
  [[nodiscard]] bool is_neighbor_message(const SwitchPacket& packet) const;

  // Whether IP packets to the switch's MAC in the VLAN are routed.
  [[nodiscard]] bool is_in(uint16_t vlan) const { return !by_vlan_.empty() && by_vlan_[vlan] != nullptr; }
  // Whether the address is in no network of an interface: the packet goes to another router, or has no route. False if
  // the switch does not route.
  [[nodiscard]] bool is_forwarded(const IpAddress& destination) const;
  // Sends a packet that the switch has generated. Returns false, without effect, if no route exists.
  bool originate(SwitchPacket& packet, const IpAddress& destination, Nanos now);

  // Repeats solicitations, and sends or drops waiting frames. Returns whether anything was done.
  bool poll(Nanos now);
  [[nodiscard]] Nanos next_deadline() const;

 private:
  static constexpr size_t kBatch = 32;
  class Interface;
  // Next hop of routes: another router, in the network of an interface.
  struct NextHop {
    Interface* interface = nullptr;
    IpAddress address;
    NeighborRef neighbor{};  // set by the first packet
    bool answered = false;   // at least once
    bool silent = false;
  };
  // Route with an index of the table.
  struct Route {
    Interface* interface = nullptr;    // of own networks and addresses
    bool own = false;                  // the address is the switch's own
    std::span<NextHop* const> hops{};  // of configured routes; if empty, the destination is the next hop
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
  void open_routes(const SwitchConfig& config);
  [[nodiscard]] Interface* interface_of(const SwitchConfig& config, const IpAddress& address) const;

  // Returns true if the packet must be looked up in the route table: it is to be routed, or is for an own address. Sets
  // its destination.
  bool look(SwitchPacket& packet, IpAddress& destination, Nanos now);
  // Handles a frame to the switch itself: answers as the host of the interface, or drops it.
  void answer(SwitchPacket& packet, Interface& host, Nanos now);
  void route(std::span<SwitchPacket* const> packets, std::span<const IpAddress> destinations, Nanos now);
  void route_one(SwitchPacket& packet, const Route* found, const IpAddress& destination, Nanos now);
  [[nodiscard]] const Route* find_route(const IpAddress& destination) const;

  // Sends the packet by a route, or stores it until the next hop is resolved.
  void send_or_wait(SwitchPacket& packet, const Route& route, const IpAddress& destination, Nanos now);
  // Returns false if the next hop is not resolved yet.
  bool send(SwitchPacket& packet, const Route& route, const IpAddress& destination, Nanos now);
  bool send_to(SwitchPacket& packet, Interface& out, Resolution result, const Neighbor* next_hop, Nanos now);
  Choice choose(const Route& route, const SwitchPacket& packet, Nanos now);
  Resolution solicit(NextHop& hop, Nanos now);
  // Sends or drops waiting packets after a neighbor entry has changed. Returns whether any packet left the list.
  bool send_waiting(Nanos now);
  [[nodiscard]] uint64_t generation() const;
  // Number of waiting frames of the packet's ingress port; generated frames share one number.
  [[nodiscard]] uint16_t& waiting_of(const SwitchPacket& packet) {
    return waiting_of_[std::min<size_t>(packet.ingress, waiting_of_.size() - 1)];
  }

  MacAddress mac_;
  rte_mempool* pool_;
  RouterOutput& output_;
  uint64_t salt_;
  std::vector<std::unique_ptr<Interface>> interfaces_;
  std::vector<Interface*> by_vlan_;
  std::vector<NextHop> hops_;             // without duplicates
  std::vector<NextHop*> hops_of_routes_;  // next hops of all routes, route by route
  std::vector<Route> routes_;             // in the order of make_table()
  const RouteTable* table_ = nullptr;
  std::vector<Waiting> waiting_;      // in order of arrival
  std::vector<uint16_t> waiting_of_;  // number of them by ingress port
  uint64_t seen_generation_ = 0;
};

}  // namespace roci

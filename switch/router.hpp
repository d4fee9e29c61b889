// Layer 3: forwards IP packets that are sent to the switch's MAC between its VLANs by static routes, and answers for
// the switch's own addresses. One interface per VLAN, each with a neighbour table of its own.
#pragma once

#include <rte_mempool.h>

#include <memory>
#include <optional>
#include <vector>

#include "port/neighbours.hpp"
#include "switch/packet.hpp"
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
  void handle(SwitchPacket& packet, Nanos now);

  // Learns from a copy of an ARP or neighbour message that another worker's router has been shown.
  void overhear(const SwitchPacket& packet, Nanos now);
  // Whether the frame is one, in a VLAN with an interface.
  [[nodiscard]] bool is_neighbour_message(const SwitchPacket& packet) const;

  // Whether IP packets that come to the switch's MAC in the VLAN are routed.
  [[nodiscard]] bool is_in(uint16_t vlan) const { return !by_vlan_.empty() && by_vlan_[vlan] != nullptr; }
  // Whether the way to the address, if there is any, leads to another router: it is in no network of an interface.
  [[nodiscard]] bool leads_on(const IpAddress& destination) const {
    const Route* found = find_route(destination);
    return !by_vlan_.empty() && (found == nullptr || found->via.has_value());
  }
  // Sends a packet that the switch has made itself. False, and nothing done, when there is no route.
  bool originate(SwitchPacket& packet, const IpAddress& destination, Nanos now);

  // Repeats solicitations, sends or gives up frames that wait. Returns whether there was anything.
  bool poll(Nanos now);
  [[nodiscard]] Nanos next_deadline() const;

 private:
  class Interface;
  struct Route {
    IpNetwork prefix;
    Interface* interface = nullptr;
    std::optional<IpAddress> via;  // the destination itself when empty
  };
  struct Waiting {
    SwitchPacket packet;
    Interface* interface = nullptr;
    IpAddress next_hop;
  };

  void take(SwitchPacket& packet, Interface& in, Nanos now);
  void route(SwitchPacket& packet, Nanos now);
  // Checks the IP header and takes one hop off it; gives the destination.
  DropReason step(rte_mbuf* frame, uint16_t l3_offset, IpAddress& destination);
  [[nodiscard]] const Route* find_route(const IpAddress& destination) const;
  // By a route, at once or when the next hop is known.
  void send_by(const Route& route, SwitchPacket& packet, const IpAddress& destination, Nanos now);
  // False when the next hop is not known yet.
  bool send(SwitchPacket& packet, Interface& out, const IpAddress& next_hop, Nanos now);
  [[nodiscard]] uint64_t generation() const;

  MacAddress mac_;
  rte_mempool* pool_;
  RouterOutput& output_;
  std::vector<std::unique_ptr<Interface>> interfaces_;
  std::vector<Interface*> by_vlan_;
  std::vector<Route> routes_;  // longest prefix first
  std::vector<Waiting> waiting_;
  uint64_t seen_generation_ = 0;
};

}  // namespace roci

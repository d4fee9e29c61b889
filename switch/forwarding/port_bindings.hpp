// Bindings of MAC and IP addresses to the ports of a switch (`macs` and `addresses` of a port).
//
//   bound to the ingress port        accepted
//   bound to another port            dropped
//   bound to no port                 dropped if the ingress port has bindings of this kind, else accepted
//
// MAC addresses are checked when the MAC table learns an address or a move, so that frames of known addresses cost
// nothing. IP addresses are checked in each packet, if any port has `addresses`. In IP packets the source is checked,
// in ARP messages the sender, in neighbor advertisements also the target.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "switch/forwarding/route_ranges.hpp"
#include "switch/pipeline/packet.hpp"
#include "switch/switch_config.hpp"

namespace roci {

// Immutable after construction, so the workers of a switch share it.
class PortBindings {
 public:
  explicit PortBindings(const SwitchConfig& config);

  [[nodiscard]] bool has_addresses() const { return has_addresses_; }
  // Whether a frame with this source MAC address may arrive at the port.
  [[nodiscard]] bool permits(const MacAddress& mac, uint16_t port) const;
  // The same for an IP address. The unspecified address and IPv6 link-local addresses are permitted unless they are
  // bound to another port.
  [[nodiscard]] bool permits(const IpAddress& address, uint16_t port) const;
  // Whether the addresses in the packet may arrive at its ingress port. Reads the first segment.
  [[nodiscard]] bool permits_addresses_of(const SwitchPacket& packet) const;

 private:
  struct Bound {
    bool macs = false, addresses = false;
    // First host address of each version: the usual source, compared before the search.
    IpAddress v4{}, v6{};
  };
  // For a frame with an S-TAG, or with a tag after its C-TAG or CN-TAG.
  [[nodiscard]] bool permits_inner_packet(const SwitchPacket& packet) const;
  [[nodiscard]] bool permits_arp(const uint8_t* arp, uint32_t length, uint16_t port) const;
  [[nodiscard]] bool permits_ipv6(const uint8_t* packet, uint32_t length, uint16_t port) const;

  std::vector<Bound> ports_;
  std::unordered_map<uint64_t, uint16_t> macs_;  // port by MacAddress::bits()
  RouteRanges v4_, v6_;                          // a route is the number of a port
  bool has_addresses_ = false;
};

}  // namespace roci

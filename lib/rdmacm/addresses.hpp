// Conversion between socket addresses and GIDs, and allocation of the ports of this process.
#pragma once

#include <cstdint>
#include <optional>

#include "rdmacm/id.hpp"

namespace roci::rdmacm {

// Host byte order; 0 for families other than IPv4 and IPv6.
uint16_t port_of(const sockaddr& address);
void set_port(sockaddr& address, uint16_t port);
// Returns null for families other than IPv4 and IPv6, for the wildcard address, and for loopback addresses, which are
// treated as wildcard as in the Linux kernel.
std::optional<IpAddress> ip_of(const sockaddr& address);
void write_address(const IpAddress& ip, uint16_t port, bool v6, sockaddr_storage& out);

ibv_gid gid_of(const IpAddress& address);
IpAddress ip_of(const ibv_gid& gid);

struct Source {
  IpAddress address;
  uint8_t gid_index = 0;
};
// Selects the local address of packets to `to`: `to` itself if it is local, otherwise the first address with the same
// IP version and scope (link-local or not).
std::optional<Source> source_for(ibv_context* context, const IpAddress& to);
// Returns null if the address is not local.
std::optional<Source> own_source(ibv_context* context, const IpAddress& address);

// Allocates a port for the source address of the id; 0: any free port. Ids share a port if all of them permit it, or if
// their addresses differ. Returns false if the port is in use, or no port is free.
bool reserve_port(Id& id, uint16_t wanted);
void release_port(Id& id);

}  // namespace roci::rdmacm

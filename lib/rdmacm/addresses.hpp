// Conversion between socket addresses and GIDs, and allocation of the ports of this process.
#pragma once

#include <infiniband/ib.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "rdmacm/id.hpp"

namespace roci::rdmacm {

// Families: AF_INET, AF_INET6 and AF_IB. An address of AF_IB is a GID and a service ID, whose lower 16 bits are the port.

// Size of the structure. 0 for other families and for a null pointer.
size_t size_of(const sockaddr* address);
// Host byte order; 0 for other families.
uint16_t port_of(const sockaddr& address);
// Sets the service ID of an address of AF_IB, or the port of an IP address, which is in the lower 16 bits.
void set_service(sockaddr& address, uint64_t service_id);
// Returns null for other families, for the wildcard address, and for loopback addresses, which are treated as wildcard as
// in the Linux kernel.
std::optional<IpAddress> ip_of(const sockaddr& address);
// AF_INET, or AF_INET6 with `v6`.
void write_address(const IpAddress& ip, uint16_t port, bool v6, sockaddr_storage& out);
// AF_IB with the default partition key.
void write_ib_address(const IpAddress& gid, uint64_t service_id, sockaddr_storage& out);

// Service ID of an address of AF_IB, in host byte order. Null for other families.
std::optional<uint64_t> service_id_of(const sockaddr& address);
// Port space to which the service ID of an address of AF_IB belongs, among those that an id of `space` may use. Null if
// there is none (Linux: cma_select_ib_ps).
std::optional<rdma_port_space> space_of(const sockaddr_ib& address, rdma_port_space space);

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

// Allocates a port of the id's service space for its source address; 0: any free port. Ids share a port if all of them
// permit it, or if their addresses differ. Returns false if the port is in use, or no port is free.
bool reserve_port(Id& id, uint16_t wanted);
void release_port(Id& id);

}  // namespace roci::rdmacm

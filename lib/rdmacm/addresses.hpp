// Socket addresses and what they are on the device: GIDs, and ports of this process.
#pragma once

#include <cstdint>
#include <optional>

#include "rdmacm/id.hpp"

namespace roci::rdmacm {

// In host order; 0 of what is neither IPv4 nor IPv6.
uint16_t port_of(const sockaddr& address);
void set_port(sockaddr& address, uint16_t port);
// Null: neither IPv4 nor IPv6, or any address.
std::optional<IpAddress> ip_of(const sockaddr& address);
void write_address(const IpAddress& ip, uint16_t port, bool v6, sockaddr_storage& out);

ibv_gid gid_of(const IpAddress& address);
IpAddress ip_of(const ibv_gid& gid);

struct Source {
  IpAddress address;
  uint8_t gid_index = 0;
};
// Which of our addresses packets to `to` come from: that one if it is ours, else the first of its kind.
std::optional<Source> source_for(ibv_context* context, const IpAddress& to);
// Null when the address is not ours.
std::optional<Source> own_source(ibv_context* context, const IpAddress& address);

// For its source address; 0: any that is free. Ids share a port when all who have it say so, and with other addresses. False: it is
// taken, or all are.
bool take_port(Id& id, uint16_t wanted);
void give_port_back(Id& id);

}  // namespace roci::rdmacm

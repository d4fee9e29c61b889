#pragma once

// The return route to the sender of a datagram, from the 40 bytes before the datagram's payload.

#include <infiniband/verbs.h>

#include <cstdint>

namespace roci {

struct ReplyRoute {
  ibv_gid own{};  // destination of the datagram, source of a reply
  ibv_gid peer{};
  int own_type = 0;  // kGidOfRoceV1 or kGidOfRoceV2
  uint32_t flow_label = 0;
  uint8_t hop_limit = 0;
  uint8_t traffic_class = 0;
};

// The 40 bytes are a GRH or an IPv6 header, or an IPv4 header in the last 20 bytes with the first 20 undefined (IBTA
// A17.4.5.1). Returns 0 or an errno: EPROTONOSUPPORT for other headers, EINVAL for a datagram to an IPv4 multicast
// address, which cannot be a source address.
int read_reply_route(const ibv_grh& received, ReplyRoute& route);

}  // namespace roci

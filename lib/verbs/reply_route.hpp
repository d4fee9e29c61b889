#pragma once

// The way back to the sender of a datagram, out of the 40 bytes in front of it.

#include <infiniband/verbs.h>

#include <cstdint>

namespace roci {

struct ReplyRoute {
  ibv_gid own{};  // to whom the datagram was addressed; an answer comes from it
  ibv_gid peer{};
  int own_type = 0;  // kGidOfRoceV1, kGidOfRoceV2
  uint32_t flow_label = 0;
  uint8_t hop_limit = 0;
  uint8_t traffic_class = 0;
};

// The 40 bytes are a GRH or an IPv6 header, or an IPv4 header in the last 20 of them with nothing said of the first 20
// (IBTA A17.4.5.1). Returns 0 or an errno: EPROTONOSUPPORT for other headers, EINVAL for an IPv4 datagram to a group, whose
// address is nobody's.
int read_reply_route(const ibv_grh& received, ReplyRoute& route);

}  // namespace roci

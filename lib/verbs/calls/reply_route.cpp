#include "verbs/calls/reply_route.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "verbs/compatibility/gid_type.hpp"
#include "wire/headers/checksum.hpp"
#include "wire/headers/headers.hpp"

namespace roci {
namespace {

constexpr size_t kIpv4At = 20;
constexpr uint8_t kIpv4WithoutOptions = 0x45;  // version 4, five words
constexpr uint8_t kNextIsBth = 0x1b;           // IBTA 8.3: next header in a GRH

using Bytes40 = std::array<uint8_t, sizeof(ibv_grh)>;

uint32_t be32_at(const Bytes40& bytes, size_t at) {
  return uint32_t{bytes[at]} << 24 | uint32_t{bytes[at + 1]} << 16 | uint32_t{bytes[at + 2]} << 8 |
         bytes[at + 3];
}

// Bytes 0 to 19 before an IPv4 header are undefined, and may look like the start of an IPv6 header.
bool is_ipv4(const Bytes40& bytes) {
  if (bytes[kIpv4At] != kIpv4WithoutOptions) return false;
  return bytes[0] >> 4 != 6 || inet_checksum(&bytes[kIpv4At], bytes.size() - kIpv4At) == 0;
}

ibv_gid mapped_ipv4(const Bytes40& bytes, size_t at) {
  ibv_gid gid{};
  gid.raw[10] = gid.raw[11] = 0xff;
  std::copy_n(&bytes[at], 4, &gid.raw[12]);
  return gid;
}

int read_ipv4(const Bytes40& bytes, ReplyRoute& route) {
  if (bytes[kIpv4At + 16] >> 4 == 0xe) return EINVAL;  // class D
  route.own = mapped_ipv4(bytes, kIpv4At + 16);
  route.peer = mapped_ipv4(bytes, kIpv4At + 12);
  route.own_type = kGidOfRoceV2;
  route.traffic_class = bytes[kIpv4At + 1];
  route.hop_limit = bytes[kIpv4At + 8];
  return 0;
}

int read_ipv6(const Bytes40& bytes, const ibv_grh& received, ReplyRoute& route) {
  if (received.next_hdr != kProtocolUdp && received.next_hdr != kNextIsBth) return EPROTONOSUPPORT;
  const uint32_t first = be32_at(bytes, 0);
  route.own = received.dgid;
  route.peer = received.sgid;
  route.own_type = received.next_hdr == kProtocolUdp ? kGidOfRoceV2 : kGidOfRoceV1;
  route.flow_label = first & 0xfffff;
  route.traffic_class = static_cast<uint8_t>(first >> 20);
  route.hop_limit = received.hop_limit;
  return 0;
}

}  // namespace

int read_reply_route(const ibv_grh& received, ReplyRoute& route) {
  Bytes40 bytes{};
  std::memcpy(bytes.data(), &received, sizeof received);
  route = {};
  if (is_ipv4(bytes)) return read_ipv4(bytes, route);
  if (bytes[0] >> 4 == 6) return read_ipv6(bytes, received, route);
  return EPROTONOSUPPORT;
}

}  // namespace roci

#include "wire/net/icmp.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>

#include "wire/headers/checksum.hpp"

namespace roci {
namespace {

struct EchoTypes {
  uint8_t request, reply;
};
constexpr EchoTypes kIcmpEcho{8, 0};
constexpr EchoTypes kIcmpv6Echo{128, 129};
constexpr size_t kIdAndSequence = 4;

uint32_t ip_header_size(bool v4) { return v4 ? sizeof(Ipv4Header) : sizeof(Ipv6Header); }

}  // namespace

uint16_t icmpv6_checksum(const Ipv6Header& ip, std::span<const uint8_t> message) {
  struct {
    Be32 length;
    uint8_t zero[3] = {};
    uint8_t next_header = kProtocolIcmpv6;
  } pseudo;
  pseudo.length.set(static_cast<uint32_t>(message.size()));
  uint32_t sum = rte_raw_cksum(ip.source.data(), sizeof ip.source + sizeof ip.destination);
  sum += rte_raw_cksum(&pseudo, sizeof pseudo);
  sum += rte_raw_cksum(message.data(), message.size());
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

std::optional<EchoMessage> parse_echo(const FrameView& view, std::span<const uint8_t> ip_payload) {
  if (ip_payload.size() < sizeof(IcmpHeader) + kIdAndSequence) return std::nullopt;
  const bool v4 = view.kind == FrameKind::kIpv4 && view.ipv4().protocol == kProtocolIcmp;
  const bool v6 = view.kind == FrameKind::kIpv6 && view.ip6().next_header == kProtocolIcmpv6;
  if (!v4 && !v6) return std::nullopt;
  const EchoTypes types = v4 ? kIcmpEcho : kIcmpv6Echo;
  const auto& icmp = *reinterpret_cast<const IcmpHeader*>(ip_payload.data());
  if ((icmp.type != types.request && icmp.type != types.reply) || icmp.code != 0) return std::nullopt;
  const uint16_t checksum =
      v4 ? inet_checksum(ip_payload.data(), ip_payload.size()) : icmpv6_checksum(view.ip6(), ip_payload);
  if (checksum != 0) return std::nullopt;
  return EchoMessage{icmp.type == types.reply, view.source_ip(), view.destination_ip(), view.traffic_class(),
                     ip_payload.subspan(sizeof(IcmpHeader))};
}

EchoMessage echo_reply_to(const EchoMessage& request) {
  EchoMessage reply = request;
  reply.reply = true;
  std::swap(reply.source, reply.destination);
  return reply;
}

uint32_t echo_frame_length(const LinkHeader& link, const EchoMessage& message) {
  return link.size() + ip_header_size(message.source.is_v4()) + static_cast<uint32_t>(sizeof(IcmpHeader)) +
         static_cast<uint32_t>(message.body.size());
}

uint32_t build_echo(const LinkHeader& link, const EchoMessage& message, std::span<uint8_t> out) {
  const bool v4 = message.source.is_v4();
  const uint32_t length = echo_frame_length(link, message);
  assert(out.size() >= length);
  link.write(out.data(), v4 ? kEtherTypeIpv4 : kEtherTypeIpv6);
  uint8_t* ip_begin = out.data() + link.size();
  uint8_t* icmp_begin = ip_begin + ip_header_size(v4);
  const auto icmp_bytes = static_cast<uint16_t>(sizeof(IcmpHeader) + message.body.size());
  const EchoTypes types = v4 ? kIcmpEcho : kIcmpv6Echo;
  auto& icmp = *reinterpret_cast<IcmpHeader*>(icmp_begin);
  icmp = IcmpHeader{};
  icmp.type = message.reply ? types.reply : types.request;
  std::copy(message.body.begin(), message.body.end(), icmp_begin + sizeof(IcmpHeader));
  if (v4) {
    auto& ip = *reinterpret_cast<Ipv4Header*>(ip_begin);
    ip = Ipv4Header{};
    ip.tos = message.traffic_class;
    ip.total_length.set(static_cast<uint16_t>(sizeof(Ipv4Header) + icmp_bytes));
    ip.flags_fragment.set(0x4000);  // DF
    ip.protocol = kProtocolIcmp;
    ip.source.set(message.source.v4());
    ip.destination.set(message.destination.v4());
    ip.checksum = std::bit_cast<Be16>(inet_checksum(&ip, sizeof ip));
    icmp.checksum = std::bit_cast<Be16>(inet_checksum(icmp_begin, icmp_bytes));
  } else {
    auto& ip = *reinterpret_cast<Ipv6Header*>(ip_begin);
    ip = Ipv6Header{};
    ip.version_class_flow.set(6U << 28 | static_cast<uint32_t>(message.traffic_class) << 20);
    ip.payload_length.set(icmp_bytes);
    ip.next_header = kProtocolIcmpv6;
    ip.source = message.source.bytes;
    ip.destination = message.destination.bytes;
    icmp.checksum = std::bit_cast<Be16>(icmpv6_checksum(ip, {icmp_begin, icmp_bytes}));
  }
  return length;
}

}  // namespace roci

#include "wire/cnm/sampled_packet.hpp"

#include <cstring>

#include "wire/headers/opcodes.hpp"

namespace roci {
namespace {

template <class T>
std::optional<T> read(std::span<const uint8_t> bytes, size_t offset) {
  if (bytes.size() < offset + sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// Sets addresses and protocol. Returns the offset of the UDP header, or null without one.
std::optional<size_t> read_ip(std::span<const uint8_t> msdu, FiveTuple& flow) {
  constexpr size_t kIpAt = sizeof(Be16);
  const auto type = read<Be16>(msdu, 0);
  if (!type) return std::nullopt;
  if (type->get() == kEtherTypeIpv4) {
    const auto ip = read<Ipv4Header>(msdu, kIpAt);
    if (!ip) return std::nullopt;
    const size_t header = (ip->version_ihl & 0xfU) * 4;
    if (ip->version_ihl >> 4 != 4 || header < sizeof *ip || (ip->flags_fragment.get() & 0x3fff) != 0)
      return std::nullopt;
    flow.source = IpAddress::from_v4(ip->source.get());
    flow.destination = IpAddress::from_v4(ip->destination.get());
    flow.protocol = ip->protocol;
    return kIpAt + header;
  }
  if (type->get() != kEtherTypeIpv6) return std::nullopt;
  const auto ip = read<Ipv6Header>(msdu, kIpAt);
  if (!ip || ip->version_class_flow.get() >> 28 != 6) return std::nullopt;
  flow.source = IpAddress{ip->source};
  flow.destination = IpAddress{ip->destination};
  flow.protocol = ip->next_header;
  if (flow.source.is_v4() || flow.destination.is_v4()) return std::nullopt;
  return kIpAt + sizeof *ip;
}

}  // namespace

bool SampledPacket::is_response() const {
  return opcode != nullptr && opcode->operation == Operation::kReadResponse;
}

std::optional<SampledPacket> read_sampled_packet(std::span<const uint8_t> msdu) {
  SampledPacket packet;
  const auto udp_at = read_ip(msdu, packet.flow);
  if (!udp_at || packet.flow.protocol != kProtocolUdp) return std::nullopt;
  const auto source = read<Be16>(msdu, *udp_at);
  const auto destination = read<Be16>(msdu, *udp_at + sizeof(Be16));
  if (!destination) return std::nullopt;
  packet.flow.source_port = source->get();
  packet.flow.destination_port = destination->get();
  if (destination->get() != kRoceUdpPort) return packet;
  const size_t bth_at = *udp_at + sizeof(UdpHeader);
  const auto bth = read<Bth>(msdu, bth_at);
  if (!bth || bth->version() != 0) return packet;
  packet.opcode = find_opcode(bth->opcode);
  if (packet.opcode == nullptr) return packet;
  packet.destination_qp = Qpn{bth->destination_qp.get()};
  packet.psn = Psn{bth->psn.get()};
  if (packet.opcode->has(Header::kDeth)) {
    if (const auto deth = read<Deth>(msdu, bth_at + sizeof(Bth)))
      packet.source_qp = Qpn{deth->source_qp.get()};
  }
  return packet;
}

}  // namespace roci

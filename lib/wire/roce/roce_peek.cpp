#include "wire/roce/roce_peek.hpp"

#include <algorithm>

#include "wire/extensions/extensions.hpp"
#include "wire/headers/aeth.hpp"
#include "wire/headers/flow_hasher.hpp"
#include "wire/int/telemetry_header.hpp"
#include "wire/net/udp_location.hpp"

namespace roci {
namespace {

// SOURCE-QPN, if present, is the first value of a block.
std::optional<Qpn> source_in_block(std::span<const uint8_t> block) {
  constexpr uint32_t kBytes = 8;  // block header and SOURCE-QPN
  if (block.size() < kBytes) return std::nullopt;
  const auto& header = *reinterpret_cast<const ExtensionHeader*>(block.data());
  if (header.version_flags != kExtensionVersion << 4 || header.words * 4U < kBytes) return std::nullopt;
  if ((header.types.get() & bit_of(ExtensionType::kSourceQp)) == 0 || block[4] != 0) return std::nullopt;
  return Qpn{static_cast<uint32_t>(block[5]) << 16 | static_cast<uint32_t>(block[6]) << 8 | block[7]};
}

}  // namespace

uint64_t RoceFlowHash::operator()(const RoceFlow& flow, uint64_t salt) const {
  FlowHasher mix{salt};
  mix.add(flow.source.bytes);
  mix.add(flow.destination.bytes);
  mix.add(flow.queue_pair.value());
  return mix.value() * salt;
}

std::optional<RocePeek> peek_roce(std::span<const uint8_t> head, uint32_t frame_length, uint16_t int_port) {
  const UdpLocation udp = find_udp(head, frame_length);
  if (udp.outcome != UdpOutcome::kFound) return std::nullopt;
  const auto& udp_header = *reinterpret_cast<const UdpHeader*>(head.data() + udp.l4_offset);
  const uint16_t port = udp_header.destination_port.get();
  size_t at = udp.l4_offset + sizeof(UdpHeader);
  if (port != kRoceUdpPort) {
    if (int_port == 0 || port != int_port) return std::nullopt;
    const IntView view = parse_int(head, frame_length, int_port);
    if (!view.accepted() || view.shim().next.get() != kRoceUdpPort) return std::nullopt;
    at += view.bytes();
  }
  const size_t end = std::min<size_t>(udp.end, head.size());
  if (at + sizeof(Bth) > end) return std::nullopt;
  const auto& bth = *reinterpret_cast<const Bth*>(head.data() + at);
  const OpcodeInfo* info = find_opcode(bth.opcode);
  if (info == nullptr || bth.version() != 0 || at + info->header_bytes > end) return std::nullopt;

  RocePeek peek{.flow = {.source = {}, .destination = {}, .queue_pair = Qpn{bth.destination_qp.get()}},
                .info = info,
                .psn = Psn{bth.psn.get()},
                .pkey = PKey{bth.pkey.get()},
                .udp_source_port = udp_header.source_port.get(),
                .source_qp = {},
                .rest = head.subspan(at + info->header_bytes, end - at - info->header_bytes)};
  if (udp.ipv6) {
    const auto& ip = *reinterpret_cast<const Ipv6Header*>(head.data() + udp.l3_offset);
    peek.flow.source = IpAddress{ip.source};
    peek.flow.destination = IpAddress{ip.destination};
    // IPv4-mapped addresses do not appear on the wire (RFC 4291 2.5.5.2) and would be mistaken for an IPv4 flow.
    if (peek.flow.source.is_v4() || peek.flow.destination.is_v4()) return std::nullopt;
  } else {
    const auto& ip = *reinterpret_cast<const Ipv4Header*>(head.data() + udp.l3_offset);
    peek.flow.source = IpAddress::from_v4(ip.source.get());
    peek.flow.destination = IpAddress::from_v4(ip.destination.get());
  }
  if (info->has(Header::kDeth)) {
    const auto& deth =
        *reinterpret_cast<const Deth*>(head.data() + at + info->offset[static_cast<unsigned>(Header::kDeth)]);
    peek.source_qp = Qpn{deth.source_qp.get()};
  } else if (bth.has_extensions()) {
    peek.source_qp = source_in_block(peek.rest);
  }
  return peek;
}

bool is_rc_acknowledgment(std::span<const uint8_t> head, uint32_t frame_length) {
  const UdpLocation udp = find_udp(head, frame_length);
  if (udp.outcome != UdpOutcome::kFound) return false;
  const uint32_t bth = udp.l4_offset + static_cast<uint32_t>(sizeof(UdpHeader));
  if (head.size() < bth + sizeof(Bth) + sizeof(Aeth)) return false;
  if (reinterpret_cast<const UdpHeader*>(head.data() + udp.l4_offset)->destination_port.get() != kRoceUdpPort)
    return false;
  const auto* const aeth = reinterpret_cast<const Aeth*>(head.data() + bth + sizeof(Bth));
  return reinterpret_cast<const Bth*>(head.data() + bth)->opcode ==
             static_cast<uint8_t>(Opcode::kRcAcknowledge) &&
         aeth_kind(aeth->syndrome) == AethKind::kAck;
}

bool has_roce_headers(std::span<const uint8_t> head, uint32_t frame_length) {
  const UdpLocation udp = find_udp(head, frame_length);
  if (udp.outcome != UdpOutcome::kFound) return false;
  const uint32_t at = udp.l4_offset + static_cast<uint32_t>(sizeof(UdpHeader));
  if (head.size() < at + sizeof(Bth)) return false;
  if (reinterpret_cast<const UdpHeader*>(head.data() + udp.l4_offset)->destination_port.get() != kRoceUdpPort)
    return false;
  const auto& bth = *reinterpret_cast<const Bth*>(head.data() + at);
  const OpcodeInfo* const info = find_opcode(bth.opcode);
  if (info == nullptr || head.size() < at + info->header_bytes) return false;
  if (!bth.has_extensions()) return true;
  const auto block = head.subspan(at + info->header_bytes);
  return block.size() >= kExtensionHeaderBytes &&
         block.size() >= 4U * reinterpret_cast<const ExtensionHeader*>(block.data())->words;
}

}  // namespace roci

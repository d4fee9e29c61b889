#include "wire/roce_writer.hpp"

#include <cstring>

#include "wire/checksum.hpp"
#include "wire/copy_crc.hpp"
#include "wire/icrc.hpp"

namespace roci {
namespace {

constexpr uint16_t kDontFragment = 0x4000;
constexpr uint8_t kEct0 = static_cast<uint8_t>(Ecn::kEct0);
constexpr uint32_t kLeastHeaders = sizeof(EthernetHeader) + sizeof(Ipv4Header) + sizeof(UdpHeader);

template <class T>
T& at(uint8_t* base, uint32_t offset) {
  return *reinterpret_cast<T*>(base + offset);
}

}  // namespace

uint16_t flow_udp_source_port(uint32_t flow_label, Qpn local, Qpn remote) {
  uint32_t label = flow_label & 0xfffff;
  if (label == 0) {
    uint64_t mix = static_cast<uint64_t>(local.value()) * remote.value();
    mix ^= mix >> 20;
    mix ^= mix >> 40;
    label = static_cast<uint32_t>(mix & 0xfffff);
  }
  return static_cast<uint16_t>(0xc000 | ((label & 0x3fff) ^ ((label & 0xfc000) >> 14)));
}

RoceWriter::RoceWriter(const RocePath& path)
    : ipv6_(!path.destination_ip.is_v4()), not_ect_((path.traffic_class & 3) == 0) {
  auto& ethernet = at<EthernetHeader>(bytes_.data(), 0);
  ethernet.destination = path.destination_mac;
  ethernet.source = path.source_mac;
  const uint16_t ip_type = ipv6_ ? kEtherTypeIpv6 : kEtherTypeIpv4;
  l3_offset_ = sizeof(EthernetHeader);
  if (path.vlan_id != 0) {
    ethernet.ether_type.set(kEtherTypeVlan);
    auto& tag = at<VlanHeader>(bytes_.data(), l3_offset_);
    tag.tci.set(static_cast<uint16_t>(path.priority << 13 | path.vlan_id));
    tag.ether_type.set(ip_type);
    l3_offset_ = static_cast<uint8_t>(l3_offset_ + sizeof(VlanHeader));
  } else {
    ethernet.ether_type.set(ip_type);
  }
  if (ipv6_) {
    auto& ip = at<Ipv6Header>(bytes_.data(), l3_offset_);
    ip.version_class_flow.set(6U << 28 | static_cast<uint32_t>(path.traffic_class) << 20 |
                              (path.flow_label & 0xfffff));
    ip.next_header = kProtocolUdp;
    ip.hop_limit = path.hop_limit;
    ip.source = path.source_ip.bytes;
    ip.destination = path.destination_ip.bytes;
    l4_offset_ = static_cast<uint8_t>(l3_offset_ + sizeof(Ipv6Header));
  } else {
    auto& ip = at<Ipv4Header>(bytes_.data(), l3_offset_);
    ip.version_ihl = 0x45;
    ip.tos = path.traffic_class;
    ip.flags_fragment.set(kDontFragment);
    ip.ttl = path.hop_limit;
    ip.protocol = kProtocolUdp;
    ip.source.set(path.source_ip.v4());
    ip.destination.set(path.destination_ip.v4());
    fixed_sum_ = __builtin_bswap16(static_cast<uint16_t>(~inet_checksum(&ip, sizeof ip)));
    l4_offset_ = static_cast<uint8_t>(l3_offset_ + sizeof(Ipv4Header));
  }
  auto& udp = at<UdpHeader>(bytes_.data(), l4_offset_);
  udp.source_port.set(path.udp_source_port);
  udp.destination_port.set(kRoceUdpPort);
}

RoceWriter::Open RoceWriter::begin(uint8_t* frame, const BthFields& fields, uint32_t payload_length) {
  const OpcodeInfo& info = opcode_info(fields.opcode);
  const uint32_t pad = (0U - payload_length) & 3U;
  std::memcpy(frame, bytes_.data(), kLeastHeaders);  // a size that the compiler knows costs no call
  if (bth_offset() > kLeastHeaders)
    std::memcpy(frame + kLeastHeaders, bytes_.data() + kLeastHeaders, bth_offset() - kLeastHeaders);

  Open open;
  FrameView& view = open.view;
  view.frame = frame;
  view.opcode = &info;
  view.kind = FrameKind::kRoce;
  view.ipv6 = ipv6_;
  view.l3_offset = l3_offset_;
  view.l4_offset = l4_offset_;
  view.bth_offset = static_cast<uint16_t>(bth_offset());
  view.payload_offset = static_cast<uint16_t>(bth_offset() + info.header_bytes);
  view.payload_length = payload_length;
  view.pad = static_cast<uint8_t>(pad);
  view.icrc_offset = view.payload_offset + payload_length + pad;
  view.frame_length = view.icrc_offset + kIcrcBytes;

  const auto udp_length = static_cast<uint16_t>(view.frame_length - l4_offset_);
  const bool make_ect = fields.ect && not_ect_;
  at<UdpHeader>(frame, l4_offset_).length.set(udp_length);
  if (ipv6_) {
    auto& ip = at<Ipv6Header>(frame, l3_offset_);
    ip.payload_length.set(udp_length);
    if (make_ect) ip.version_class_flow.set(ip.version_class_flow.get() | uint32_t{kEct0} << 20);
  } else {
    auto& ip = at<Ipv4Header>(frame, l3_offset_);
    const auto total_length = static_cast<uint16_t>(view.frame_length - l3_offset_);
    const uint16_t id = next_ip_id_++;
    ip.total_length.set(total_length);
    ip.id.set(id);
    if (make_ect) ip.tos = static_cast<uint8_t>(ip.tos | kEct0);
    uint32_t sum = uint32_t{fixed_sum_} + total_length + id + (make_ect ? kEct0 : 0U);  // RFC 1071
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    ip.checksum.set(static_cast<uint16_t>(~sum));
  }

  auto& bth = at<Bth>(frame, view.bth_offset);
  bth.opcode = static_cast<uint8_t>(fields.opcode);
  bth.flags = static_cast<uint8_t>((fields.solicited ? Bth::kSolicited : 0) | pad << 4);
  bth.pkey.set(fields.pkey.value());
  bth.congestion = fields.becn ? Bth::kBecn : 0;
  bth.destination_qp.set(fields.destination_qp.value());
  bth.ack_request = static_cast<uint8_t>((fields.ack_request ? Bth::kAckReq : 0) |
                                         (fields.extensions ? Bth::kExtensions : 0));
  bth.psn.set(fields.psn.value());

  open.extended = frame + view.bth_offset + sizeof(Bth);
  open.payload = frame + view.payload_offset;
  std::memset(open.payload + payload_length, 0, kIcrcBytes);  // pad: at most 3, and 4 bytes of ICRC follow it
  return open;
}

void RoceWriter::copy_payload(Open& open, uint8_t* to, const uint8_t* from, uint32_t length) {
  // A short frame is summed faster as a whole.
  if (!open.icrc_state && to == open.payload && open.view.payload_length >= kCopyCrcWorthwhile) {
    const uint8_t* behind_bth = open.view.frame + open.view.bth_offset + sizeof(Bth);
    open.icrc_state =
        icrc_continue(icrc_headers(open.view), behind_bth, static_cast<size_t>(open.payload - behind_bth));
  }
  if (open.icrc_state) {
    open.icrc_state = copy_crc(*open.icrc_state, to, from, length);
  } else {
    std::memcpy(to, from, length);
  }
}

void RoceWriter::finish(const Open& open) {
  auto* frame = const_cast<uint8_t*>(open.view.frame);
  const uint32_t icrc =
      open.icrc_state ? icrc_finish(icrc_continue(
                            *open.icrc_state, frame + open.view.icrc_offset - open.view.pad, open.view.pad))
                      : compute_icrc(open.view);
  store_icrc(frame + open.view.icrc_offset, icrc);
}

}  // namespace roci

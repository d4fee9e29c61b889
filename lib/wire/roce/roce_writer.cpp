#include "wire/roce/roce_writer.hpp"

#include <cstring>

#include "base/os/guarded_copy.hpp"
#include "wire/headers/checksum.hpp"
#include "wire/headers/header_at.hpp"
#include "wire/icrc/copy_crc.hpp"
#include "wire/icrc/icrc.hpp"
#include "wire/icrc/icrc_pieces.hpp"

namespace roci {
namespace {

constexpr uint16_t kDontFragment = 0x4000;
constexpr uint8_t kEct0 = static_cast<uint8_t>(Ecn::kEct0);
const bool kSums = has_carryless_product();

// Starts a sum over all bytes that the ICRC covers or, if they are too many, up to the payload.
template <class Headers>
ROCI_CARRYLESS void begin_sum(RoceWriter::Open& open, const Headers& headers) {
  const FrameView& view = open.view;
  const uint32_t begin = view.bth_offset + static_cast<uint32_t>(sizeof(Bth));
  const bool all = view.icrc_offset - begin <= icrc_pieces::kMaxBehind;
  const uint32_t end = all ? view.icrc_offset : view.payload_offset;
  open.sum = icrc_pieces::sum(headers, end - begin);
  open.summed = view.frame + begin;
  open.sum_end = view.frame + end;
}

// Adds the bytes of the frame from open.summed to `to`, which is not after the end of the sum.
ROCI_CARRYLESS void sum_up_to(RoceWriter::Open& open, const uint8_t* to) {
  open.sum = crc_pieces(open.sum, open.summed, static_cast<uint32_t>(to - open.summed),
                        static_cast<uint32_t>(open.sum_end - to));
  open.summed = to;
}

// Returns the CRC register at the end of the sum.
ROCI_CARRYLESS uint32_t end_sum(RoceWriter::Open& open) {
  sum_up_to(open, open.sum_end);
  return crc_of_sum(open.sum);
}

ROCI_CARRYLESS void copy_into_sum(RoceWriter::Open& open, uint8_t* to, const uint8_t* from, uint32_t length) {
  if (open.summed != to) sum_up_to(open, to);
  open.summed = to + length;
  open.sum = copy_crc_pieces(open.sum, to, from, length, static_cast<uint32_t>(open.sum_end - open.summed));
}

ROCI_CARRYLESS void put_reth_into_sum(RoceWriter::Open& open, uint8_t* to, Vector16 reth) {
  if (open.summed != to) return;
  open.summed = to + sizeof reth;
  open.sum = xor_of(open.sum, crc_piece(reth, static_cast<uint32_t>(open.sum_end - open.summed)));
}

ROCI_CARRYLESS void put_aeth_into_sum(RoceWriter::Open& open, uint8_t* to, uint32_t aeth) {
  if (open.summed != to) return;
  open.summed = to + sizeof aeth;
  open.sum = xor_of(open.sum, crc_piece_of_4(aeth, static_cast<uint32_t>(open.sum_end - open.summed)));
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

RoceWriter::RoceWriter(const RocePath& path, Contents contents)
    : ipv6_(!path.destination_ip.is_v4()), not_ect_((path.traffic_class & 3) == 0), contents_(contents) {
  auto& ethernet = header_at<EthernetHeader>(bytes_.data(), 0);
  ethernet.destination = path.destination_mac;
  ethernet.source = path.source_mac;
  const uint16_t ip_type = ipv6_ ? kEtherTypeIpv6 : kEtherTypeIpv4;
  l3_offset_ = sizeof(EthernetHeader);
  if (path.vlan_id != 0) {
    ethernet.ether_type.set(kEtherTypeVlan);
    auto& tag = header_at<VlanHeader>(bytes_.data(), l3_offset_);
    tag.tci.set(static_cast<uint16_t>(path.priority << 13 | path.vlan_id));
    tag.ether_type.set(ip_type);
    l3_offset_ = static_cast<uint8_t>(l3_offset_ + sizeof(VlanHeader));
  } else {
    ethernet.ether_type.set(ip_type);
  }
  if (ipv6_) {
    auto& ip = header_at<Ipv6Header>(bytes_.data(), l3_offset_);
    ip.version_class_flow.set(6U << 28 | static_cast<uint32_t>(path.traffic_class) << 20 |
                              (path.flow_label & 0xfffff));
    ip.next_header = kProtocolUdp;
    ip.hop_limit = path.hop_limit;
    ip.source = path.source_ip.bytes;
    ip.destination = path.destination_ip.bytes;
    l4_offset_ = static_cast<uint8_t>(l3_offset_ + sizeof(Ipv6Header));
  } else {
    auto& ip = header_at<Ipv4Header>(bytes_.data(), l3_offset_);
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
  auto& udp = header_at<UdpHeader>(bytes_.data(), l4_offset_);
  udp.source_port.set(path.udp_source_port);
  udp.destination_port.set(kRoceUdpPort);
}

RoceWriter::Open RoceWriter::begin(uint8_t* frame, const BthFields& fields, uint32_t payload_length,
                                   uint16_t udp_source_port) {
  const OpcodeInfo& info = opcode_info(fields.opcode);
  const uint32_t pad = (0U - payload_length) & 3U;

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
  open.extended = frame + view.bth_offset + sizeof(Bth);
  open.payload = frame + view.payload_offset;
  if (contents_ != Contents::kHeaders)
    // Pad: at most 3 bytes, followed by 4 bytes of ICRC.
    std::memset(open.payload + payload_length, 0, kIcrcBytes);

  const uint64_t bth_begin = uint64_t{static_cast<uint8_t>(fields.opcode)} |
                             (fields.solicited ? uint64_t{Bth::kSolicited} << 8 : 0) | uint64_t{pad} << 12 |
                             uint64_t{__builtin_bswap16(fields.pkey.value())} << 16;
  const uint64_t bth_middle = (fields.becn ? uint64_t{Bth::kBecn} : 0) |
                              uint64_t{__builtin_bswap32(fields.destination_qp.value() & Psn::kMask)};
  const uint64_t bth_end = (fields.ack_request ? uint64_t{Bth::kAckReq} : 0) |
                           (fields.extensions ? uint64_t{Bth::kExtensions} : 0) |
                           uint64_t{__builtin_bswap32(fields.psn.value())};
  const auto udp_length = static_cast<uint16_t>(view.frame_length - l4_offset_);
  const uint64_t udp_length_bytes = __builtin_bswap16(udp_length);
  const bool make_ect = fields.ect && not_ect_;
  const bool sums = kSums && contents_ == Contents::kWhole;
  open.contents = contents_;
  const uint32_t begin = l3_offset_ - icrc_pieces::kBefore;
  // the next stores overwrite all but the first `begin` bytes
  store_16(frame, load_16(bytes_.data()));
  if (ipv6_) {
    icrc_pieces::Ipv6Pieces headers = icrc_pieces::load_ipv6(bytes_.data() + begin);
    auto& [ip, source, destination, udp_bth, last] = headers;
    ip = or_of(ip, vector_of(0, udp_length_bytes << 32 | (make_ect ? uint64_t{kEct0} << 12 : 0)));
    udp_bth = or_of(udp_bth, vector_of(udp_length_bytes << 32, bth_begin | bth_middle << 32));
    if (udp_source_port != 0) udp_bth = with_16_bits<0>(udp_bth, __builtin_bswap16(udp_source_port));
    last = static_cast<uint32_t>(bth_end);
    icrc_pieces::store_headers(frame + begin, headers);
    if (sums) begin_sum(open, headers);
  } else {
    const auto total_length = static_cast<uint16_t>(view.frame_length - l3_offset_);
    const uint16_t id = next_ip_id_++;
    uint32_t sum = uint32_t{fixed_sum_} + total_length + id + (make_ect ? kEct0 : 0U);  // RFC 1071
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    const auto checksum = static_cast<uint16_t>(~sum);
    icrc_pieces::Ipv4Pieces headers = icrc_pieces::load_ipv4(bytes_.data() + begin);
    auto& [ip, addresses, udp_bth] = headers;
    ip = or_of(ip, vector_of(0, (make_ect ? uint64_t{kEct0} << 8 : 0) |
                                    uint64_t{__builtin_bswap16(total_length)} << 16 |
                                    uint64_t{__builtin_bswap16(id)} << 32));
    addresses = or_of(addresses, vector_of(uint64_t{__builtin_bswap16(checksum)} << 16, 0));
    udp_bth = or_of(udp_bth, vector_of(udp_length_bytes | bth_begin << 32, bth_middle | bth_end << 32));
    if (udp_source_port != 0) addresses = with_16_bits<6>(addresses, __builtin_bswap16(udp_source_port));
    icrc_pieces::store_headers(frame + begin, headers);
    if (sums) begin_sum(open, headers);
  }
  return open;
}
void RoceWriter::put_reth(Open& open, uint64_t va, MemoryKey rkey, uint32_t length) {
  auto* to = reinterpret_cast<uint8_t*>(&open.header<Reth>(Header::kReth));
  const Vector16 reth = vector_of(__builtin_bswap64(va), uint64_t{__builtin_bswap32(rkey.value())} |
                                                             uint64_t{__builtin_bswap32(length)} << 32);
  store_16(to, reth);
  if (open.summed != nullptr) put_reth_into_sum(open, to, reth);
}

void RoceWriter::put_aeth(Open& open, uint8_t syndrome, Msn msn) {
  auto* to = reinterpret_cast<uint8_t*>(&open.header<Aeth>(Header::kAeth));
  const uint32_t aeth = syndrome | __builtin_bswap32(msn.value());
  std::memcpy(to, &aeth, sizeof aeth);
  if (open.summed != nullptr) put_aeth_into_sum(open, to, aeth);
}

void RoceWriter::copy_payload(Open& open, uint8_t* to, const uint8_t* from, uint32_t length) {
  if (open.contents != Contents::kWhole) {
    if (open.contents == Contents::kWithoutIcrc) guarded_copy(to, from, length);
    return;
  }
  if (open.summed != nullptr && open.summed <= to && to + length <= open.sum_end) {
    copy_into_sum(open, to, from, length);
    return;
  }
  if (!open.icrc_state && to == open.payload && open.view.payload_length >= kCopyCrcWorthwhile) {
    const uint8_t* covered = open.view.frame + open.view.bth_offset + sizeof(Bth);
    uint32_t state = 0;
    if (open.summed != nullptr) {
      covered = open.sum_end;
      state = end_sum(open);
    } else {
      state = icrc_headers(open.view);
    }
    open.icrc_state =
        covered == to ? state : icrc_continue(state, covered, static_cast<size_t>(to - covered));
  }
  if (open.icrc_state) {
    open.icrc_state = copy_crc(*open.icrc_state, to, from, length);
  } else {
    guarded_copy(to, from, length);
  }
}

void RoceWriter::finish(Open& open) {
  if (open.contents == Contents::kHeaders) return;
  auto* frame = const_cast<uint8_t*>(open.view.frame);
  uint8_t* end = frame + open.view.icrc_offset;
  uint32_t icrc = 0;
  if (open.contents == Contents::kWithoutIcrc) {
    // The ICRC remains 0.
  } else if (open.icrc_state) {
    const uint32_t pad = open.view.pad;
    icrc = icrc_finish(pad == 0 ? *open.icrc_state : icrc_continue(*open.icrc_state, end - pad, pad));
  } else if (open.summed != nullptr) {
    const uint32_t state = end_sum(open);
    icrc = icrc_finish(open.sum_end == end
                           ? state
                           : icrc_continue(state, open.sum_end, static_cast<size_t>(end - open.sum_end)));
  } else {
    icrc = compute_icrc(open.view);
  }
  store_icrc(end, icrc);
}

}  // namespace roci

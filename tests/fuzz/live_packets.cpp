// Packets from the peers of a LiveHost: derived from the current state of a queue pair, with optional defects and
// changed bytes.
#include <algorithm>
#include <cstring>

#include "fuzz/fuzz_opcodes.hpp"
#include "fuzz/live_host.hpp"
#include "port/neighbors/neighbors.hpp"
#include "transport/messages/datagram.hpp"
#include "wire/headers/checksum.hpp"
#include "wire/icrc/icrc.hpp"
#include "wire/net/arp.hpp"

namespace roci::test {
namespace {

constexpr uint32_t kSrqnMask = 0xffffff;
constexpr uint32_t kLonger = 0x7fff;  // RETH lengths above this value become very long

// Signs with the key that the host expects. `sequence` is the peer's own counter.
void sign_as_peer(ByteVector& frame, const ExtensionTerms& terms, uint64_t sequence) {
  const auto length = static_cast<uint32_t>(frame.size());
  const FrameView view = parse_frame(frame.data(), length, length, OpcodeRange::kWithPrivate);
  if (view.kind != FrameKind::kRoce) return;
  const ExtendedPayload split = split_payload(view, length, known_extensions());
  if (!split.block.accepted() || !split.block.has(ExtensionType::kAuth)) return;
  sign(terms.receive_key, view, split.block, sequence);
  store_icrc(frame.data() + view.icrc_offset, compute_icrc(view));
}

void repair(ByteVector& frame) {
  const auto length = static_cast<uint32_t>(frame.size());
  FrameView view = parse_frame(frame.data(), length, length, OpcodeRange::kWithPrivate);
  if (view.kind == FrameKind::kBadIp && !view.ipv6 && view.l3_offset + 20U <= length) {
    const uint32_t header = (view.ipv4().version_ihl & 0xfU) * 4;
    if (header < 20 || view.l3_offset + header > length) return;
    uint8_t* checksum = frame.data() + view.l3_offset + 10;
    checksum[0] = checksum[1] = 0;
    const uint16_t sum = inet_checksum(frame.data() + view.l3_offset, header);
    std::memcpy(checksum, &sum, sizeof sum);
    view = parse_frame(frame.data(), length, length, OpcodeRange::kWithPrivate);
  }
  if (view.kind == FrameKind::kRoce) store_icrc(frame.data() + view.icrc_offset, compute_icrc(view));
}

}  // namespace

LiveHost::Opened LiveHost::opened_by(const Step& step) const {
  const uint32_t main_key = has_main() ? side_.region->rkey() : stale_key_;
  const uint64_t main = side_.address(kMainAt);
  switch (step.key % kKeys) {
    case 1:
      return {read_only_->rkey(), side_.address(kReadOnlyAt)};
    case kForeignKey:
      return {foreign_->rkey(), side_.address(kForeignAt)};
    case 3:
      return {window_one_->rkey(), main};
    case 4:
      return {window_two_key_ == 0 ? 0 : (window_two_key_ & ~0xffU) | ((window_two_key_ - 1) & 0xffU), main};
    case 5:
      return {stale_key_, main};
    case 6:
      return {main_key + 1 + step.extra, main};
    case 7:
      return {0, main};
    default:
      return {main_key, main};
  }
}

ExtensionBlock LiveHost::block_of(const Step& step, const Slot& slot, Psn near) const {
  ExtensionBlock block;
  const auto has = [&](uint8_t bit) { return (step.types & bit) != 0; };
  const uint16_t number = Step::number(step.dma);
  if (has(Step::kCeEcho)) block.ce_echo = CeEchoValues{number, step.value};
  if (has(Step::kLsn)) {
    const Requester* const from = requester(slot);
    const Lsn known = from == nullptr ? Lsn{} : from->flow().acknowledged;
    block.lsn = known + static_cast<uint64_t>(static_cast<int16_t>(number));
  }
  if (has(Step::kTimestamp)) block.timestamp = uint64_t{number} << (step.extra % 48);
  if (has(Step::kTimestampEcho)) {
    block.timestamp_echo =
        TimestampEchoValues{static_cast<uint64_t>(now_.count()) - number, step.value, step.extra};
  }
  if (has(Step::kRxWindow)) block.rx_window = RxWindowValues{number, near};
  if (has(Step::kSack)) {
    const uint64_t bits = Step::number(step.offset);
    block.sack = SackValues{near + (step.extra & 0xfU), bits << (step.extra >> 4) * 4};
  }
  if (has(Step::kAuth)) block.auth = AuthValues{};
  if (has(Step::kOthers)) {
    if ((step.extra & 1) != 0) block.source_qp = Qpn{slot.remote_qp};
    if ((step.extra & 2) != 0) block.flows = FlowsValues{false, number};
    if ((step.extra & 4) != 0) block.rate = RateValues{(step.extra & 8) != 0, number};
    if ((step.extra & 16) != 0) {
      block.int_echo.emplace();
      block.int_echo->hop_count = static_cast<uint8_t>(step.extra >> 5);
    }
  }
  if (kind_ == LiveKind::kControlled) aim(block, step, slot);
  return block;
}

Packet LiveHost::make(const Step& step, const Slot& slot) {
  const OpcodeInfo& info = kind_ == LiveKind::kXrc ? opcode_of(step, slot) : fuzz::opcode_of(step.opcode);
  const Peer& peer = peers_[slot.peer];
  const bool ipv6 = !peer.address.is_v4();
  Packet packet = make_packet(info.opcode, ipv6);
  packet.between(peer.mac, peer.address, MacAddress::local(1),
                 ipv6 ? must(IpAddress::parse("fd00::1")) : IpAddress::from_v4(0x0a000001));
  Psn near = core(slot).receive_psn();
  if (const Requester* const from = requester(slot); from != nullptr && !info.is_request())
    near = from->oldest_unacknowledged();
  near = Psn{near.value() + static_cast<uint32_t>(step.distance())};
  if ((setup_.congestion & Setup::kVlan) != 0) packet.with_vlan(5);
  if ((setup_.congestion & Setup::kPeersTag) != 0) packet.with_cn_tag(step.slot);
  packet.to(Qpn{slot.qp->qp_num()}, near);
  packet.bth.ack_request = (step.flags & Step::kAckRequest) != 0;
  packet.bth.solicited = (step.flags & Step::kSolicited) != 0;
  packet.bth.mig_req = (step.flags & Step::kMigReq) != 0;
  packet.bth.becn = (step.flags & Step::kBecn) != 0 || info.opcode == Opcode::kCnp;
  if ((step.flags & Step::kMarked) != 0) packet.with_traffic_class(3);
  if (packet.xrc_eth) packet.with_xrc_srq(Srqn{xrc_number_of(step) & kSrqnMask});
  if (packet.aeth) packet.with_aeth(step.value, Msn{Step::number(step.dma)});
  if (packet.deth) {
    packet.deth->qkey = QKey{kQkey};
    packet.deth->source_qp = Qpn{slot.remote_qp};
  }
  const Opened target = opened_by(step);
  const uint64_t address = target.address + Step::number(step.offset) - 64;
  uint32_t length = Step::number(step.dma);
  if (length > kLonger) length <<= 16U;
  if (packet.reth) packet.with_reth(address, MemoryKey{target.key}, length);
  if (packet.atomic_eth) {
    packet.atomic_eth->va = address;
    packet.atomic_eth->rkey = MemoryKey{target.key};
    packet.atomic_eth->swap_or_add = step.extra;
    packet.atomic_eth->compare = step.value;
  }
  if (packet.ieth) packet.ieth = MemoryKey{target.key};
  if (packet.probe) {
    packet.probe->id = step.value;
    packet.probe->sent = Step::number(step.dma);
    if (kind_ == LiveKind::kControlled) aim(packet, step, slot);
  }
  const uint32_t mtu = 256U << (setup_.path_mtu % 5);
  size_t payload = Step::number(step.length) % (mtu + 1);
  if (info.payload == PayloadRule::kNone) payload = 0;
  if (info.payload == PayloadRule::kFullMtu) payload = mtu;
  if (step.stray == static_cast<uint8_t>(Stray::kLength)) payload = Step::number(step.length) % 4200U;
  ByteVector bytes(payload);
  for (size_t i = 0; i < payload; ++i) bytes[i] = static_cast<uint8_t>(i + step.extra);
  packet.with_payload(bytes);
  if ((step.flags & Step::kBlock) != 0) packet.with_extensions(block_of(step, slot, near));
  return packet;
}

namespace {

// Applies a defect to the packet.
void lead_astray(Packet& packet, Stray stray, uint8_t how) {
  switch (stray) {
    case Stray::kUnknownPeer:
      if (!packet.ipv6()) packet.source = IpAddress::from_v4(0x0a000063);
      break;
    case Stray::kPKey:
      packet.bth.pkey = PKey{static_cast<uint16_t>(how)};
      break;
    case Stray::kVersion:
      packet.bth.version = how & 0xf;
      break;
    case Stray::kPad:
      packet.pad.assign(how & 3U, how);
      break;
    case Stray::kVlan:
      packet.with_vlan(how);
      break;
    case Stray::kOtherAddress:
      if (!packet.ipv6()) packet.destination = IpAddress::from_v4(0x0a000004);
      break;
    case Stray::kOtherMac:
      packet.destination_mac = MacAddress::local(how);
      break;
    case Stray::kTrailing:
      packet.trailing.assign(how, 0);
      break;
    case Stray::kUnknownQp:
      packet.bth.destination_qp = Qpn{how};
      break;
    case Stray::kQKey:
      if (packet.deth) packet.deth->qkey = QKey{how};
      break;
    default:
      break;
  }
}

}  // namespace

void LiveHost::put_packet(const Step& step) {
  Slot& slot = slots_[step.slot % kSlots];
  Packet packet = make(step, slot);
  const auto stray = static_cast<Stray>(step.stray % kStrays);
  lead_astray(packet, stray, step.extra);
  if (stray == Stray::kOtherPeer && !packet.ipv6()) packet.source = peers_[1 - slot.peer % 2].address;
  if (stray == Stray::kOtherQp) packet.bth.destination_qp = Qpn{slots_[step.extra % kSlots].qp->qp_num()};
  if (stray == Stray::kMulticast && !packet.ipv6()) {
    packet.destination = must(IpAddress::parse("239.1.2.3"));
    packet.destination_mac = MacAddress{{0x01, 0, 0x5e, 1, 2, 3}};
    packet.bth.destination_qp = kMulticastQp;
  }
  ByteVector frame = encode_packet(packet.finish());
  const auto& session = core(slot).session;
  if (packet.extensions && packet.extensions->auth && session != nullptr && (step.extra & 0x80) == 0) {
    if ((step.extra & 0x40) != 0 && slot.signed_packets > 0) --slot.signed_packets;
    sign_as_peer(frame, session->terms, slot.signed_packets++);
  }
  if (stray == Stray::kIcrc) frame.back() ^= 1;
  if (stray == Stray::kCut) frame.resize(frame.size() * step.extra / 256);
  put(std::move(frame), step);
}

void LiveHost::put(ByteVector frame, const Step& step) {
  held_back_ = (step.flags & Step::kHold) != 0;
  if (frame.size() < 15) frame.resize(15);
  const size_t segment = (step.flags & Step::kChained) != 0 ? 61 + step.extra : 4300;
  port_->put(frame, std::max(segment, frame.size() / 64 + 1));
  last_ = std::move(frame);
}

// Changes up to three bytes of the last frame, then corrects what a receiver checks first.
void LiveHost::put_raw(const Step& step) {
  if (last_.empty()) return;
  ByteVector frame = last_;
  const auto change = [&](const uint8_t(&at)[2], uint8_t value) {
    frame[Step::number(at) % frame.size()] = value;
  };
  change(step.length, step.value);
  if ((step.opcode & 1) != 0) change(step.offset, step.key);
  if ((step.opcode & 2) != 0) change(step.dma, step.types);
  if ((step.opcode & 4) != 0) frame.resize(frame.size() - std::min<size_t>(frame.size() - 15, step.stray));
  if ((step.opcode & 8) != 0) frame.resize(frame.size() + step.stray);
  if ((step.opcode & 16) == 0) repair(frame);
  const ByteVector before = last_;
  put(std::move(frame), step);
  if ((step.opcode & 32) != 0) last_ = before;
}

CapabilityOffer LiveHost::offer(uint8_t choice) const {
  CapabilityOffer offer;
  offer.capabilities = known_extensions() | kAllCapabilities;
  if ((choice & 1) != 0) offer.capabilities &= ~static_cast<uint32_t>(bit_of(ExtensionType::kAuth));
  if ((choice & 2) != 0) offer.capabilities &= ~static_cast<uint32_t>(Capability::kSelectiveRepeat);
  if ((choice & 4) != 0) offer.capabilities &= 0xffff'0000U | choice;
  if ((choice & 8) != 0) offer.capabilities &= 0xffffU;
  offer.mtu_extra = (choice & 16) != 0 ? 0 : 256;
  offer.window = (choice & 32) != 0 ? 3 : 1024;
  offer.int_hops = 4;
  offer.incarnation = 7U + (choice >> 6);
  if ((offer.capabilities & bit_of(ExtensionType::kAuth)) != 0) offer.auth.fill(0x5a);
  return offer;
}

Packet LiveHost::mad(size_t peer, const CapabilityMessage& message) const {
  const bool ipv6 = !peers_[peer].address.is_v4();
  Packet packet = make_packet(Opcode::kUdSendOnly, ipv6);
  packet.between(peers_[peer].mac, peers_[peer].address, MacAddress::local(1),
                 ipv6 ? must(IpAddress::parse("fd00::1")) : IpAddress::from_v4(0x0a000001));
  packet.to(kManagementQp, Psn{0});
  packet.deth = DethValues{kManagementQKey, 0, kManagementQp};
  const CapabilityMad bytes = build_capability_mad(message);
  packet.with_payload({reinterpret_cast<const uint8_t*>(&bytes), sizeof bytes});
  return packet;
}

// The valid response to the host's last request.
void LiveHost::answer(size_t index, uint8_t choice) {
  Peer& peer = peers_[index];
  if (!peer.asked) return;
  CapabilityMessage response;
  response.response = true;
  response.transaction = peer.asked->transaction;
  response.peer_incarnation = peer.asked->offer.incarnation;
  response.offer = offer(choice);
  peer.has_answered = true;
  put(encode_packet(mad(index, response).finish()), Step{});
  work();
}

// Responds like a kernel without an agent.
void LiveHost::refuse(size_t index) {
  if (!peers_[index].asked) return;
  Packet refusal = mad(index, *peers_[index].asked);
  refusal.payload[3] = MadHeader::kGetResponse;
  refusal.payload[5] = 0x0c;
  put(encode_packet(refusal.finish()), Step{});
  work();
}

void LiveHost::put_mad(const Step& step) {
  const size_t index = step.slot % kPeers;
  switch (step.opcode % 5) {
    case 0: {
      CapabilityMessage request;
      request.transaction = step.value;
      request.offer = offer(step.extra);
      return put(encode_packet(mad(index, request).finish()), step);
    }
    case 1:
      return answer(index, step.extra);
    case 2:
      return refuse(index);
    case 3: {
      CapabilityMessage response;  // unsolicited response
      response.response = true;
      response.offer = offer(step.extra);
      if (peers_[index].asked) {
        response.transaction = peers_[index].asked->transaction + ((step.value & 1) != 0 ? 0U : 1U);
        response.peer_incarnation = peers_[index].asked->offer.incarnation ^ 1U;
      }
      return put(encode_packet(mad(index, response).finish()), step);
    }
    default: {  // valid response from another peer
      if (!peers_[index].asked) return;
      CapabilityMessage response;
      response.response = true;
      response.transaction = peers_[index].asked->transaction;
      response.peer_incarnation = peers_[index].asked->offer.incarnation;
      response.offer = offer(step.extra);
      return put(encode_packet(mad((index + 1) % kPeers, response).finish()), step);
    }
  }
}

// A CNM from a switch, in layer 2 or through routers, about the last data packet of the host or a modified copy of
// it.
void LiveHost::put_cnm(const Step& step) {
  ByteVector sampled = data_.empty() ? last_ : data_;
  if (sampled.size() < 15) return;
  if (step.stray >= kFirstStray) sampled[Step::number(step.offset) % sampled.size()] ^= step.stray;
  auto cnm = sample_frame(sampled);
  const auto flow = read_five_tuple(sampled);
  if (!cnm) return;
  cnm->feedback = step.value;
  cnm->point = {MacAddress::local(step.slot % 8U), Be16{static_cast<uint16_t>(step.extra)}};
  cnm->msdu = cnm->msdu.first(cnm->msdu.size() - std::min<size_t>(cnm->msdu.size(), step.key));
  ByteVector frame(std::max(kMaxL3CnmFrame, kMaxCnmFrame));
  if ((step.flags & 1) != 0 && flow) {
    RocePath path;
    path.source_mac = MacAddress::local(99);
    path.destination_mac = MacAddress::local(1);
    path.source_ip = flow->destination;
    path.destination_ip = flow->source;
    path.vlan_id = (setup_.congestion & Setup::kVlan) != 0 ? 5 : 0;
    L3CnmTlvs more;
    if ((step.types & 1) != 0) more.available_bandwidth = step.value;
    if ((step.types & 2) != 0) more.rate_change = step.distance();
    if ((step.types & 4) != 0) more.ecn = EcnCounts{step.value, step.extra};
    if ((step.types & 8) != 0) more.port = IntHopValues{};
    if ((step.types & 16) == 0) more.auth_sequence = step.psn;
    frame.resize(build_l3_cnm(path, kCnmPort, *flow, *cnm, more, frame));
    if ((step.types & 32) == 0) (void)sign_l3_cnm(frame, kCnmPort, kCnmKey);
  } else {
    CnmLink link = *CnmLink::answering(sampled, MacAddress::local(99));
    link.destination = MacAddress::local(1);
    if ((step.types & 64) != 0) link.tags.flow = static_cast<uint16_t>(step.extra);
    frame.resize(build_cnm_frame(link, *cnm, frame));
  }
  if ((step.types & 128) != 0) frame[Step::number(step.length) % frame.size()] ^= step.extra;
  Step plain = step;
  plain.flags = step.flags & (Step::kChained | Step::kHold);
  put(std::move(frame), plain);
}

// An ARP reply or request of a peer.
void LiveHost::put_neighbor(const Step& step) {
  const MacAddress mac = MacAddress::local(step.value % 8U);
  const ArpMessage arp{(step.flags & 1) != 0 ? ArpOperation::kReply : ArpOperation::kRequest, mac,
                       IpAddress::from_v4(0x0a000002U + step.slot % 8U), MacAddress::local(1),
                       IpAddress::from_v4(0x0a000001)};
  uint8_t bytes[64];
  const uint32_t length = build_arp({MacAddress::local(1), mac, 0}, arp, bytes);
  Step plain = step;
  plain.flags = 0;
  put(ByteVector(bytes, bytes + length), plain);
}

}  // namespace roci::test

#include "engine/receive/receive_pipeline.hpp"

#include <rte_ip.h>

#include <algorithm>

#include "base/os/guarded_access.hpp"
#include "engine/management/management.hpp"
#include "engine/transmit/transmit_scheduler.hpp"
#include "transport/messages/datagram.hpp"
#include "wire/icrc/copy_crc.hpp"
#include "wire/icrc/icrc.hpp"

namespace roci {
namespace {

constexpr uint32_t kFramesAhead = 8;
constexpr uint32_t kBytesAhead = 4;

// Prefetches the headers, and the whole of a short message.
void fetch_bytes(const rte_mbuf* frame) {
  const auto* bytes = rte_pktmbuf_mtod(frame, const uint8_t*);
  rte_prefetch0(bytes);
  rte_prefetch0(bytes + RTE_CACHE_LINE_SIZE);
  rte_prefetch0(bytes + 2 * RTE_CACHE_LINE_SIZE);
}

// Only UD packets can have a multicast destination.
bool is_multicast(const FrameView& view) {
  return view.opcode->transport == TransportClass::kUd && view.destination_qp() == kMulticastQp;
}

// Copying and summing the payload in one pass is worthwhile, and its headers do not contain the destination address.
bool may_be_placed(const FrameView& view, const rte_mbuf& frame) {
  return view.opcode->position == Position::kMiddle && view.payload_length >= kCopyCrcWorthwhile &&
         frame.nb_segs == 1;
}

// For packets with a UDP checksum. The sums are those of RFC 1071, not inverted.
bool has_right_udp_checksum(const FrameView& view, const rte_mbuf& frame) {
  const uint8_t* const ip = view.frame + view.l3_offset;
  const uint16_t addresses = view.ipv6 ? rte_ipv6_phdr_cksum(reinterpret_cast<const rte_ipv6_hdr*>(ip), 0)
                                       : rte_ipv4_phdr_cksum(reinterpret_cast<const rte_ipv4_hdr*>(ip), 0);
  uint16_t datagram = 0;
  if (rte_raw_cksum_mbuf(&frame, view.l4_offset, view.udp().length.get(), &datagram) != 0) return false;
  const uint32_t sum = uint32_t{addresses} + datagram;
  return (sum & 0xffff) + (sum >> 16) == 0xffff;
}

}  // namespace

ReceivePipeline::ReceivePipeline(const WorkerContext& context, const WorkerParts& parts,
                                 TransmitScheduler& scheduler)
    : parts_(parts),
      scheduler_(scheduler),
      groups_(context.groups),
      steering_(context.steering),
      flow_control_(context.flow_control),
      flows_(context.flows.of(parts.index)),
      mac_(context.port.mac()),
      header_only_(context.header_only),
      needs_icrc_(context.port.capabilities().needs_icrc),
      place_early_(!context.check_before_placing && copies_in_one_pass()),
      pausable_(context.flow_control.enabled()),
      watches_backlog_(context.flow_control.sends_pauses() || context.congestion.receive_point.qeq > 0),
      telemetry_(context.telemetry, kBurst, context.tx_pool->get()),
      cnms_(context.congestion, context.congestion_flows, context.telemetry.udp_port,
            context.hand_over.workers(), context.congestion.cnm_key ? context.ids.next32() : 0),
      notification_point_(context.control.notification_point) {
  if (context.congestion.receive_point.qeq > 0) {
    congestion_point_.emplace(context.congestion, mac_, parts.index, context.hand_over.workers(),
                              context.ids.next32());
  }
  for (uint32_t queue = parts.index; queue < context.port.queues(); queue += context.hand_over.workers())
    queues_.push_back(&context.port.queue(static_cast<uint16_t>(queue)));
  if (context.has_one_worker()) context.port.receive_in_place();
}

Nanos ReceivePipeline::next_arrival() const {
  Nanos next = kNever;
  for (const PortQueue* queue : queues_) next = std::min(next, queue->next_arrival());
  return next;
}

bool ReceivePipeline::receive(TransportContext& context) {
  std::array<rte_mbuf*, kBurst> burst;
  bool worked = false;
  bool full = false;
  for (FrameRing* inbox : parts_.handoff.inboxes()) {
    const uint32_t count = inbox->pop(burst);
    full |= count == burst.size();
    if (count == 0) continue;
    execute(context, {burst.data(), count}, Origin::kOtherWorker);
    worked = true;
  }
  for (PortQueue* queue : queues_) {
    const uint16_t count = queue->rx_burst(burst, context.now);
    full |= count == burst.size();
    if (watches_backlog_) note_backlog(*queue, count == burst.size());
    if (count == 0) continue;
    parts_.counters.add(Counter::kRxFrames, count);
    execute(context, {burst.data(), count}, Origin::kPort);
    worked = true;
  }
  if (parts_.loopback.has_frames()) [[unlikely]]
    worked |= receive_loopback(context);
  full_rounds_ = full ? full_rounds_ + 1 : 0;
  return worked;
}

bool ReceivePipeline::receive_loopback(TransportContext& context) {
  std::array<rte_mbuf*, kBurst> burst;
  const uint32_t count = parts_.loopback.pop(burst);
  parts_.counters.add(Counter::kRxFrames, count);
  execute(context, {burst.data(), count}, Origin::kPort);
  return count > 0;
}

// Takes ownership of the frames.
void ReceivePipeline::execute(TransportContext& context, std::span<rte_mbuf*> burst, Origin origin) {
  // Another core wrote the frames: prefetches their mbufs first, then their data.
  for (uint32_t i = 0; i < std::min<size_t>(kBytesAhead, burst.size()); ++i) fetch_bytes(burst[i]);
  for (uint32_t i = kBytesAhead; i < std::min<size_t>(kFramesAhead, burst.size()); ++i)
    rte_prefetch0(burst[i]);
  if (steering_.has_sniffers()) [[unlikely]]
    sniff(context, burst);
  uint16_t good = 0;
  uint32_t freed_count = 0;
  for (uint32_t i = 0; i < burst.size(); ++i) {
    rte_mbuf* frame = burst[i];
    if (i + kFramesAhead < burst.size()) rte_prefetch0(burst[i + kFramesAhead]);
    if (i + kBytesAhead < burst.size()) fetch_bytes(burst[i + kBytesAhead]);
    Received& slot = received_[good];
    slot.frame = frame;
    const Verdict verdict = classify(slot, context.now, origin);
    if (verdict == Verdict::kHandedOver) continue;
    burst[freed_count++] = slot.frame;  // strip() may have replaced the frame by a copy
    if (verdict == Verdict::kForQueuePair) {
      parts_.queue_pairs.prefetch(slot.view.destination_qp().value());
      ++good;
    } else if (verdict == Verdict::kForeign) [[unlikely]] {
      steer(context, *slot.frame, origin);
    }
  }
  parts_.handoff.deliver();
  // Acknowledgments do not wait for queue pairs that have waited for their turn since the last round.
  const bool others_wait = scheduler_.any_ready();
  const AttachedQueuePair* const only_one = scheduler_.only_ready();
  const bool many = parts_.queue_pairs.size() > WorkerParts::kCachedQueuePairs;
  for (uint16_t i = 0; i < good; ++i) {
    received_[i].qp = parts_.queue_pairs.find(received_[i].view.destination_qp().value());
    if (i > 0 && received_[i].qp == received_[i - 1].qp) continue;
    if (received_[i].qp != nullptr && many) received_[i].qp->prefetch();
  }
  for (uint16_t i = 0; i < good; ++i) {
    Received& packet = received_[i];
    if (packet.unchecked && !verify_deferred_icrc(context, packet)) continue;
    if (congestion_point_) [[unlikely]]
      sample(packet, context.now);
    if (is_multicast(packet.view)) {
      deliver_multicast(context, packet.view, packet.frame);
    } else if (packet.qp != nullptr) {
      parts_.extensions.follow(*packet.qp, true);
      count_flow(*packet.qp, packet.view, context.now);
      if (packet.view.ecn() == Ecn::kCe && notification_point_.enabled()) [[unlikely]]
        notify(packet, context.now);
      if (packet.qp->waiting_at != AttachedQueuePair::kNotWaiting) [[unlikely]]
        learn_neighbor(packet, context.now);
      packet.qp->core.on_packet(context, packet.view, packet.frame);
      parts_.control.touch(packet.qp->core);
      if (others_wait && packet.qp != only_one) [[unlikely]]
        scheduler_.acknowledge_first(*packet.qp);
      scheduler_.make_ready(*packet.qp);
    } else if (parts_.management != nullptr && parts_.management->has_users() &&
               packet.view.destination_qp() == kManagementQp) {
      parts_.management->handle(packet.view, packet.frame, context.now);
    } else {
      parts_.counters.add(Counter::kRxUnknownQp);
    }
  }
  rte_pktmbuf_free_bulk(burst.data(), freed_count);
}

// The reply to this host's solicitation may have been lost, and the next solicitation may be later than the peer's
// retransmissions. The peer sends requests, which the queue pair cannot acknowledge without the MAC address.
void ReceivePipeline::learn_neighbor(const Received& packet, Nanos now) {
  const QueuePairCore& qp = packet.qp->core;
  if (!is_connected(qp.config.type) || packet.view.source_ip() != qp.attributes.path.destination_ip) return;
  parts_.neighbors.note_packet(packet.view.source_ip(), packet.view.ethernet().source, now);
}

void ReceivePipeline::parse(Received& received) const {
  rte_mbuf* frame = received.frame;
  received.view = FrameView();
  parse_frame(received.view, rte_pktmbuf_mtod(frame, const uint8_t*), rte_pktmbuf_data_len(frame),
              rte_pktmbuf_pkt_len(frame),
              parts_.extensions.enabled() ? OpcodeRange::kWithPrivate : OpcodeRange::kStandard);
}

// Processes all frames that are not for a queue pair of this worker.
ReceivePipeline::Verdict ReceivePipeline::classify(Received& received, Nanos now, Origin origin) {
  rte_mbuf* frame = received.frame;
  parse(received);
  FrameView& view = received.view;
  if (view.kind == FrameKind::kTruncated && frame->nb_segs > 1 && rte_pktmbuf_linearize(frame) == 0)
    parse(received);
  if (view.kind == FrameKind::kTruncated && rte_pktmbuf_data_len(frame) < sizeof(EthernetHeader)) {
    parts_.counters.add(Counter::kRxMalformed);
    return Verdict::kDone;
  }
  const MacAddress& to = view.ethernet().destination;
  if ((to != mac_ && !to.is_multicast()) || (view.vlan_id() != parts_.vlan_id)) {
    // MAC control frames have no tag.
    if (is_mac_control(view.ethernet())) return take_mac_control(frame, now, origin);
    return refuse(Counter::kRxNotForHost);
  }
  switch (view.kind) {
    case FrameKind::kRoce:
      return classify_roce(received, now, origin);
    case FrameKind::kIpv4:
    case FrameKind::kIpv6:
      if (telemetry_.is_telemetry(view, *frame)) return classify_telemetry(received, now, origin);
      if (cnms_.is_cnm(view, *frame)) return take_cnm(received, now, origin);
      [[fallthrough]];
    case FrameKind::kArp:
      return classify_resolution(view, frame, now, origin);
    case FrameKind::kOther:
      if (is_mac_control(view.ethernet())) return take_mac_control(frame, now, origin);
      if (cnms_.is_cnm(view, *frame)) return take_cnm(received, now, origin);
      return refuse(Counter::kRxOtherProtocol);
    case FrameKind::kUnknownOpcode:
      parts_.counters.add(Counter::kRxUnknownOpcode);
      return Verdict::kDone;
    default:
      return refuse(Counter::kRxMalformed);
  }
}

// The inner packet must be RoCEv2; nested telemetry is not supported.
ReceivePipeline::Verdict ReceivePipeline::classify_telemetry(Received& received, Nanos now, Origin origin) {
  if (may_hand_over(origin)) {
    // Unmodified, because the owner reads the hops.
    const std::optional<Qpn> number = telemetry_.destination_of(*received.frame);
    if (number && *number != kMulticastQp && !parts_.handoff.owns(*number))
      return hand_over(parts_.handoff.owner_of(*number), received.frame);
  }
  const auto slot = static_cast<uint32_t>(&received - received_.data());
  rte_mbuf* frame = telemetry_.strip(received.frame, slot, parts_.counters);
  if (frame == nullptr) return Verdict::kDone;
  received.frame = frame;
  parse(received);
  if (received.view.kind != FrameKind::kRoce) {
    parts_.counters.add(received.view.kind == FrameKind::kUnknownOpcode ? Counter::kRxUnknownOpcode
                                                                        : Counter::kRxMalformed);
    return Verdict::kDone;
  }
  received.view.telemetry = static_cast<uint8_t>(slot + 1);
  return classify_roce(received, now, origin);
}

ReceivePipeline::Verdict ReceivePipeline::classify_roce(Received& received, Nanos now, Origin origin) {
  rte_mbuf* frame = received.frame;
  const FrameView& view = received.view;
  if (view.opcode->transport == TransportClass::kUd) {
    if (!is_for_datagrams(view)) {
      parts_.counters.add(Counter::kRxNotForHost);
      return Verdict::kDone;
    }
    if (view.destination_qp() == kManagementQp && parts_.management != nullptr &&
        !parts_.management->admits(view, frame, now))
      return Verdict::kDone;
  }
  if (may_hand_over(origin)) {
    // The owner validates the ICRC: that is the larger part of the work, and the owner needs the payload next.
    if (is_multicast(view)) {
      parts_.handoff.copy_to_owners(frame, groups_.members(view.destination_ip()));
    } else if (!parts_.handoff.owns(view.destination_qp())) {
      return hand_over(parts_.handoff.owner_of(view.destination_qp()), frame);
    }
  }
  if (view.udp().checksum.get() != 0 && !has_right_udp_checksum(view, *frame)) [[unlikely]] {
    parts_.counters.add(Counter::kRxMalformed);
    return Verdict::kDone;
  }
  if (header_only_ && view.opcode->transport != TransportClass::kUd) [[unlikely]] {
    received.unchecked = false;
    received.view.placed = view.payload_length > 0;  // no payload to place
    parts_.counters.add(Counter::kRxRoce);
    return Verdict::kForQueuePair;
  }
  if (!needs_icrc_) {
    received.unchecked = false;
    parts_.counters.add(Counter::kRxRoce);
    return Verdict::kForQueuePair;
  }
  received.unchecked = place_early_ && may_be_placed(view, *frame);
  if (!received.unchecked && compute_icrc(view, frame) != stored_icrc(view, frame)) {
    parts_.counters.add(Counter::kRxIcrcErrors);
    return Verdict::kDone;
  }
  if (!received.unchecked) parts_.counters.add(Counter::kRxRoce);
  return Verdict::kForQueuePair;
}

// Validates the ICRC of a packet that was not checked before, and returns whether it is valid. If the queue pair knows
// the destination of the payload, the payload is copied while the ICRC is computed. If the destination is not mapped
// (base/os/guarded_access.hpp), the packet takes the normal path, which refuses it.
bool ReceivePipeline::verify_deferred_icrc(const TransportContext& context, Received& received) {
  FrameView& view = received.view;
  uint8_t* place = received.qp != nullptr ? received.qp->core.payload_target(context.memory, view) : nullptr;
  uint32_t icrc = 0;
  if (place != nullptr) {
    icrc = compute_icrc_copying(view, place);
    view.placed = !drop_memory_fault();
  }
  if (!view.placed) icrc = compute_icrc(view);
  const bool right = icrc == stored_icrc(view);
  parts_.counters.add(right ? Counter::kRxRoce : Counter::kRxIcrcErrors);
  return right;
}

ReceivePipeline::Verdict ReceivePipeline::classify_resolution(const FrameView& view, rte_mbuf* frame,
                                                              Nanos now, Origin origin) {
  bool at_all_workers = false;
  if (may_hand_over(origin)) {
    const Scope scope = scope_of(view);
    at_all_workers = scope == Scope::kAll;
    if (at_all_workers) parts_.handoff.copy_to_all(frame);
    if (scope == Scope::kResponder && parts_.index != 0) return hand_over(0, frame);
  }
  const uint64_t claims = parts_.neighbors.stats().claims;
  const bool handled = parts_.neighbors.handle(view, frame, now);
  if (parts_.neighbors.stats().claims != claims) parts_.counters.add(Counter::kNeighborClaims);
  return handled ? Verdict::kDone : refuse(Counter::kRxOtherProtocol, at_all_workers);
}

// Connected queue pairs check both addresses of a packet. A UD packet may come from any source, but must be sent to
// this host or to a group: MAC address, IP address and queue pair number must agree (IBTA 9.6.1.3, 9.6.1.1.3).
bool ReceivePipeline::is_for_datagrams(const FrameView& view) const {
  const IpAddress to = view.destination_ip();
  const bool group = is_multicast(view);
  if (group != to.is_multicast() || group != view.ethernet().destination.is_multicast()) return false;
  return group || parts_.neighbors.is_own(to);
}

// Delivers to each attached queue pair of this worker; each validates the packet itself.
void ReceivePipeline::deliver_multicast(TransportContext& context, const FrameView& view,
                                        const rte_mbuf* frame) {
  const auto members = groups_.members(view.destination_ip());
  if (members.empty()) {
    parts_.counters.add(Counter::kRxUnknownGroup);
    return;
  }
  for (AttachedQueuePair* qp : members) {
    if (!parts_.handoff.owns(qp->core.number())) continue;
    qp->core.on_packet(context, view, frame);
    scheduler_.make_ready(*qp);
  }
}

// The other workers compare their copies with the rules themselves. There is at most one copy per frame and worker
// (WorkerHandoff::pass).
void ReceivePipeline::steer(TransportContext& context, const rte_mbuf& frame, Origin origin) {
  bool others = false;
  const bool matched = steering_.steer(read_steering_key(frame), [&](AttachedQueuePair& qp) {
    if (parts_.handoff.owns(qp.core.number())) return deliver_frame(context, qp, frame);
    if (origin == Origin::kPort && !refused_at_all_workers_) others = true;
  });
  if (others) parts_.handoff.copy_to_all(&frame);
  if (!matched) parts_.counters.add(refused_as_);
}

// A host with sniffers has one worker.
void ReceivePipeline::sniff(TransportContext& context, std::span<rte_mbuf* const> burst) {
  steering_.sniff([&](AttachedQueuePair& qp) {
    for (const rte_mbuf* frame : burst) deliver_frame(context, qp, *frame);
  });
}

void ReceivePipeline::deliver_frame(TransportContext& context, AttachedQueuePair& qp, const rte_mbuf& frame) {
  parts_.counters.add(Counter::kRxSteered);
  qp.core.on_frame(context, frame);
  scheduler_.make_ready(qp);  // if it is in the error state, its queues are flushed
}

bool ReceivePipeline::deliver_own_multicasts(TransportContext& context) {
  while (parts_.loopback.has_multicasts()) {
    rte_mbuf* frame = parts_.loopback.pop_multicast();
    const FrameView view = parse_frame(rte_pktmbuf_mtod(frame, const uint8_t*), rte_pktmbuf_data_len(frame),
                                       rte_pktmbuf_pkt_len(frame));
    deliver_multicast(context, view, frame);
    rte_pktmbuf_free(frame);
  }
  return true;
}

}  // namespace roci

// The receive half of the worker: passes frames from the port and from other
// workers to queue pairs, and copies frames for other workers.
#include <rte_ip.h>

#include <algorithm>

#include "base/guarded_access.hpp"
#include "engine/worker.hpp"
#include "transport/datagram.hpp"
#include "wire/copy_crc.hpp"
#include "wire/icrc.hpp"

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

bool Worker::receive(TransportContext& context) {
  std::array<rte_mbuf*, kRxBurst> burst;
  bool worked = false;
  bool full = false;
  for (FrameRing* inbox : inboxes_) {
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
    counters_.add(Counter::kRxFrames, count);
    execute(context, {burst.data(), count}, Origin::kPort);
    worked = true;
  }
  if (!loopback_frames_.empty()) [[unlikely]]
    worked |= receive_loopback(context);
  full_rounds_ = full ? full_rounds_ + 1 : 0;
  return worked;
}

bool Worker::receive_loopback(TransportContext& context) {
  std::array<rte_mbuf*, kRxBurst> burst;
  uint32_t count = 0;
  while (count < burst.size() && !loopback_frames_.empty()) burst[count++] = loopback_frames_.pop();
  counters_.add(Counter::kRxFrames, count);
  execute(context, {burst.data(), count}, Origin::kPort);
  return count > 0;
}

// Takes ownership of the frames.
void Worker::execute(TransportContext& context, std::span<rte_mbuf*> burst, Origin origin) {
  // Another core wrote the frames: prefetches their mbufs first, then their data.
  for (uint32_t i = 0; i < std::min<size_t>(kBytesAhead, burst.size()); ++i) fetch_bytes(burst[i]);
  for (uint32_t i = kBytesAhead; i < std::min<size_t>(kFramesAhead, burst.size()); ++i)
    rte_prefetch0(burst[i]);
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
      queue_pairs_.prefetch(slot.view.destination_qp().value());
      ++good;
    }
  }
  if (has_outgoing_) deliver_outboxes();
  const bool many = queue_pairs_.size() > kFew;
  for (uint16_t i = 0; i < good; ++i) {
    received_[i].qp = queue_pairs_.find(received_[i].view.destination_qp().value());
    if (i > 0 && received_[i].qp == received_[i - 1].qp) continue;
    if (received_[i].qp != nullptr && many) received_[i].qp->prefetch();
  }
  for (uint16_t i = 0; i < good; ++i) {
    Received& packet = received_[i];
    if (packet.unchecked && !verify_deferred_icrc(packet)) continue;
    if (congestion_point_) [[unlikely]]
      sample(packet, context.now);
    if (is_multicast(packet.view)) {
      deliver_multicast(context, packet.view, packet.frame);
    } else if (packet.qp != nullptr) {
      extensions_.follow(*packet.qp, true);
      count_flow(*packet.qp, packet.view, context.now);
      if (packet.view.ecn() == Ecn::kCe && notification_point_.enabled()) [[unlikely]]
        notify(packet, context.now);
      if (packet.qp->waiting_at != AttachedQueuePair::kNotWaiting) [[unlikely]]
        learn_neighbor(packet, context.now);
      packet.qp->core.on_packet(context, packet.view, packet.frame);
      control_.touch(packet.qp->core);
      make_ready(*packet.qp);
    } else if (management_ != nullptr && management_->has_users() &&
               packet.view.destination_qp() == kManagementQp) {
      management_->handle(packet.view, packet.frame, context.now);
    } else {
      counters_.add(Counter::kRxUnknownQp);
    }
  }
  rte_pktmbuf_free_bulk(burst.data(), freed_count);
}

// The reply to this host's solicitation may have been lost, and the next solicitation may be later than the peer's
// retransmissions. The peer sends requests, which the queue pair cannot acknowledge without the MAC address.
void Worker::learn_neighbor(const Received& packet, Nanos now) {
  const QueuePairCore& qp = packet.qp->core;
  if (qp.config.type == IBV_QPT_UD || packet.view.source_ip() != qp.attributes.path.destination_ip) return;
  neighbors_->note_packet(packet.view.source_ip(), packet.view.ethernet().source, now);
}

void Worker::parse(Received& received) const {
  rte_mbuf* frame = received.frame;
  received.view = FrameView();
  parse_frame(received.view, rte_pktmbuf_mtod(frame, const uint8_t*), rte_pktmbuf_data_len(frame),
              rte_pktmbuf_pkt_len(frame),
              extensions_.enabled() ? OpcodeRange::kWithPrivate : OpcodeRange::kStandard);
}

// Processes all frames that are not for a queue pair of this worker.
Worker::Verdict Worker::classify(Received& received, Nanos now, Origin origin) {
  rte_mbuf* frame = received.frame;
  parse(received);
  FrameView& view = received.view;
  if (view.kind == FrameKind::kTruncated && frame->nb_segs > 1 && rte_pktmbuf_linearize(frame) == 0)
    parse(received);
  if (view.kind == FrameKind::kTruncated && rte_pktmbuf_data_len(frame) < sizeof(EthernetHeader)) {
    counters_.add(Counter::kRxMalformed);
    return Verdict::kDone;
  }
  const MacAddress& to = view.ethernet().destination;
  if ((to != mac_ && !to.is_multicast()) || (view.vlan_id() != vlan_)) {
    // MAC control frames have no tag.
    if (is_mac_control(view.ethernet())) return take_mac_control(frame, now, origin);
    counters_.add(Counter::kRxNotForHost);
    return Verdict::kDone;
  }
  switch (view.kind) {
    case FrameKind::kRoce:
      return classify_roce(received, origin);
    case FrameKind::kIpv4:
    case FrameKind::kIpv6:
      if (telemetry_.is_telemetry(view, *frame)) return classify_telemetry(received, origin);
      if (cnms_.is_cnm(view, *frame)) return take_cnm(received, now, origin);
      [[fallthrough]];
    case FrameKind::kArp:
      return classify_resolution(view, frame, now, origin);
    case FrameKind::kOther:
      if (is_mac_control(view.ethernet())) return take_mac_control(frame, now, origin);
      if (cnms_.is_cnm(view, *frame)) return take_cnm(received, now, origin);
      counters_.add(Counter::kRxOtherProtocol);
      return Verdict::kDone;
    case FrameKind::kUnknownOpcode:
      counters_.add(Counter::kRxUnknownOpcode);
      return Verdict::kDone;
    default:
      counters_.add(Counter::kRxMalformed);
      return Verdict::kDone;
  }
}

// The inner packet must be RoCEv2; nested telemetry is not supported.
Worker::Verdict Worker::classify_telemetry(Received& received, Origin origin) {
  if (origin == Origin::kPort && outboxes_.size() > 1) {
    // Unmodified, because the owner reads the hops.
    const std::optional<Qpn> number = telemetry_.destination_of(*received.frame);
    const uint32_t owner = number && *number != kMulticastQp
                               ? worker_of(*number, static_cast<uint32_t>(outboxes_.size()))
                               : index_;
    if (owner != index_) {
      hand_over_frame(owner, received.frame);
      return Verdict::kHandedOver;
    }
  }
  const auto slot = static_cast<uint32_t>(&received - received_.data());
  rte_mbuf* frame = telemetry_.strip(received.frame, slot, counters_);
  if (frame == nullptr) return Verdict::kDone;
  received.frame = frame;
  parse(received);
  if (received.view.kind != FrameKind::kRoce) {
    counters_.add(received.view.kind == FrameKind::kUnknownOpcode ? Counter::kRxUnknownOpcode
                                                                  : Counter::kRxMalformed);
    return Verdict::kDone;
  }
  received.view.telemetry = static_cast<uint8_t>(slot + 1);
  return classify_roce(received, origin);
}

Worker::Verdict Worker::classify_roce(Received& received, Origin origin) {
  rte_mbuf* frame = received.frame;
  const FrameView& view = received.view;
  if (view.opcode->transport == TransportClass::kUd) {
    if (!is_for_datagrams(view)) {
      counters_.add(Counter::kRxNotForHost);
      return Verdict::kDone;
    }
    if (view.destination_qp() == kManagementQp && management_ != nullptr &&
        !management_->admits(view, frame, now_))
      return Verdict::kDone;
  }
  if (origin == Origin::kPort && outboxes_.size() > 1) {
    // The owner validates the ICRC: that is the larger part of the work, and the owner needs the payload next.
    const uint32_t owner = worker_of(view.destination_qp(), static_cast<uint32_t>(outboxes_.size()));
    if (is_multicast(view)) {
      copy_to_members(frame, view.destination_ip());
    } else if (owner != index_) {
      hand_over_frame(owner, frame);
      return Verdict::kHandedOver;
    }
  }
  if (view.udp().checksum.get() != 0 && !has_right_udp_checksum(view, *frame)) [[unlikely]] {
    counters_.add(Counter::kRxMalformed);
    return Verdict::kDone;
  }
  if (header_only_ && view.opcode->transport != TransportClass::kUd) [[unlikely]] {
    received.unchecked = false;
    received.view.placed = view.payload_length > 0;  // no payload to place
    counters_.add(Counter::kRxRoce);
    return Verdict::kForQueuePair;
  }
  if (!needs_icrc_) {
    received.unchecked = false;
    counters_.add(Counter::kRxRoce);
    return Verdict::kForQueuePair;
  }
  received.unchecked = place_early_ && may_be_placed(view, *frame);
  if (!received.unchecked && compute_icrc(view, frame) != stored_icrc(view, frame)) {
    counters_.add(Counter::kRxIcrcErrors);
    return Verdict::kDone;
  }
  if (!received.unchecked) counters_.add(Counter::kRxRoce);
  return Verdict::kForQueuePair;
}

// Validates the ICRC of a packet that was not checked before, and returns whether it is valid. If the queue pair knows
// the destination of the payload, the payload is copied while the ICRC is computed. If the destination is not mapped
// (base/guarded_access.hpp), the packet takes the normal path, which refuses it.
bool Worker::verify_deferred_icrc(Received& received) {
  FrameView& view = received.view;
  uint8_t* place = received.qp != nullptr ? received.qp->core.payload_target(memory_, view) : nullptr;
  uint32_t icrc = 0;
  if (place != nullptr) {
    icrc = compute_icrc_copying(view, place);
    view.placed = !drop_memory_fault();
  }
  if (!view.placed) icrc = compute_icrc(view);
  const bool right = icrc == stored_icrc(view);
  counters_.add(right ? Counter::kRxRoce : Counter::kRxIcrcErrors);
  return right;
}

Worker::Verdict Worker::classify_resolution(const FrameView& view, rte_mbuf* frame, Nanos now,
                                            Origin origin) {
  if (origin == Origin::kPort && outboxes_.size() > 1) {
    const Scope scope = scope_of(view);
    if (scope == Scope::kAll) copy_to_all(frame);
    if (scope == Scope::kResponder && index_ != 0) {
      hand_over_frame(0, frame);
      return Verdict::kHandedOver;
    }
  }
  if (!neighbors_->handle(view, frame, now)) counters_.add(Counter::kRxOtherProtocol);
  return Verdict::kDone;
}

// At most one frame per worker for each frame of a burst, so an outbox cannot overflow.
void Worker::hand_over_frame(uint32_t worker, rte_mbuf* frame) {
  Outbox& outbox = outboxes_[worker];
  outbox.frames[outbox.count++] = frame;
  has_outgoing_ = true;
}

void Worker::copy_to_all(const rte_mbuf* frame) {
  for (uint32_t other = 0; other < outboxes_.size(); ++other) {
    if (other != index_) copy_to(other, frame);
  }
}

// Copies the frame to the other workers that have members of the group.
void Worker::copy_to_members(const rte_mbuf* frame, const IpAddress& group) {
  uint64_t done = 0;  // bitmap of workers, at most 16
  for (const AttachedQueuePair* qp : groups_.members(group)) {
    const uint32_t other = qp->worker->index_;
    if (other == index_ || (done >> other & 1) != 0) continue;
    done |= uint64_t{1} << other;
    copy_to(other, frame);
  }
}

void Worker::copy_to(uint32_t worker, const rte_mbuf* frame) {
  if (outboxes_[worker].count == kRxBurst) deliver_outboxes();
  rte_mbuf* copy = nullptr;
  if (outboxes_[worker].ring->size() < kCopiesBelow) {
    copy = rte_pktmbuf_copy(frame, tx_buffers_.pool(), 0, UINT32_MAX);
  }
  if (copy != nullptr) {
    hand_over_frame(worker, copy);
  } else {
    counters_.add(Counter::kRxHandOverFull);
  }
}

void Worker::deliver_outboxes() {
  has_outgoing_ = false;
  for (Outbox& outbox : outboxes_) {
    if (outbox.count == 0) continue;
    const uint32_t taken = outbox.ring->push({outbox.frames.data(), outbox.count});
    counters_.add(Counter::kRxHandedOver, taken);
    if (taken < outbox.count) {
      counters_.add(Counter::kRxHandOverFull, outbox.count - taken);
      rte_pktmbuf_free_bulk(&outbox.frames[taken], outbox.count - taken);
    }
    outbox.count = 0;
  }
}

// Connected queue pairs check both addresses of a packet. A UD packet may come from any source, but must be sent to
// this host or to a group: MAC address, IP address and queue pair number must agree (IBTA 9.6.1.3, 9.6.1.1.3).
bool Worker::is_for_datagrams(const FrameView& view) const {
  const IpAddress to = view.destination_ip();
  const bool group = is_multicast(view);
  if (group != to.is_multicast() || group != view.ethernet().destination.is_multicast()) return false;
  return group || neighbors_->is_own(to);
}

// Delivers to each attached queue pair of this worker; each validates the packet itself.
void Worker::deliver_multicast(TransportContext& context, const FrameView& view, const rte_mbuf* frame) {
  const auto members = groups_.members(view.destination_ip());
  if (members.empty()) {
    counters_.add(Counter::kRxUnknownGroup);
    return;
  }
  for (AttachedQueuePair* qp : members) {
    if (qp->worker != this) continue;
    qp->core.on_packet(context, view, frame);
    make_ready(*qp);
  }
}

bool Worker::receive_own_multicasts(TransportContext& context) {
  const bool any = !loopback_.empty();
  while (!loopback_.empty()) {
    rte_mbuf* frame = loopback_.pop();
    const FrameView view = parse_frame(rte_pktmbuf_mtod(frame, const uint8_t*), rte_pktmbuf_data_len(frame),
                                       rte_pktmbuf_pkt_len(frame));
    deliver_multicast(context, view, frame);
    rte_pktmbuf_free(frame);
  }
  return any;
}

// Keeps a copy, because the port may modify the frame. The members receive the copy in the next round: one of them may
// be the sender, which is being served now.
void Worker::loop_back(const rte_mbuf& frame, const IpAddress& group) {
  copy_to_members(&frame, group);
  const auto members = groups_.members(group);
  if (std::ranges::none_of(members, [this](const AttachedQueuePair* qp) { return qp->worker == this; }))
    return;
  rte_mbuf* copy =
      loopback_.size() < kLoopback ? rte_pktmbuf_copy(&frame, tx_buffers_.pool(), 0, UINT32_MAX) : nullptr;
  if (copy == nullptr) {
    counters_.add(Counter::kLoopbackLost);
    return;
  }
  loopback_.push(copy);
}

}  // namespace roci

// The part of the receive pipeline for congestion: PFC pauses, congestion notification messages (cnm_listener.hpp) and
// the notifications that this host sends as a congestion point (host_congestion_point.hpp) or notification point.
#include <algorithm>

#include "base/trace_points.hpp"
#include "engine/receive/receive_pipeline.hpp"
#include "engine/transmit/transmit_scheduler.hpp"
#include "engine/transmit/transmit_stage.hpp"
#include "wire/roce/roce_cnp.hpp"

namespace roci {

// Processed by the first worker, which usually receives the frames without an IP packet.
ReceivePipeline::Verdict ReceivePipeline::take_mac_control(rte_mbuf* frame, Nanos now, Origin origin) {
  if (!pausable_) {
    parts_.counters.add(Counter::kPausesIgnored);
    return Verdict::kDone;
  }
  if (parts_.index != 0 && origin == Origin::kPort) return hand_over(0, frame);
  flow_control_.take(frame, now, parts_.counters);
  return Verdict::kDone;
}

// Updates the number of frames that wait for this worker. For a port that cannot report it, the estimate is the number
// of frames received since the port was last empty.
void ReceivePipeline::note_backlog(const PortQueue& queue, bool full_burst) {
  full_bursts_ = full_burst ? std::min(full_bursts_ + 1, uint32_t{1} << 16) : 0;
  uint32_t waiting = queue.waiting().value_or(full_bursts_ * kBurst);
  for (const FrameRing* inbox : parts_.handoff.inboxes()) waiting = std::max(waiting, inbox->size());
  if (flow_control_.sends_pauses()) flow_control_.note_waiting(parts_.index, waiting);
  if (congestion_point_) congestion_point_->note_waiting(waiting);
}

// Sends a pause ahead of all staged frames. If there is no buffer or no space, retries in the next round.
bool ReceivePipeline::send_pause(Nanos now) {
  if (!flow_control_.sends_pauses() || !flow_control_.must_send_pause(now)) return false;
  std::array<uint8_t, kPauseFrameBytes> bytes;
  flow_control_.write(bytes);
  if (!parts_.stage.send_first(bytes)) return false;
  parts_.counters.add(Counter::kPausesSent);
  flow_control_.on_pause_sent(now);
  return true;
}

ReceivePipeline::Verdict ReceivePipeline::take_cnm(Received& received, Nanos now, Origin origin) {
  rte_mbuf* frame = received.frame;
  if (frame->nb_segs > 1 && rte_pktmbuf_linearize(frame) == 0) parse(received);
  if (received.view.ethernet().destination != mac_) {  // a CNM has one destination
    parts_.counters.add(Counter::kRxNotForHost);
    return Verdict::kDone;
  }
  const auto received_cnm = cnms_.read(received.view, *frame, parts_.counters);
  if (!received_cnm) return Verdict::kDone;
  const std::optional<Qpn> number = cnms_.find(*received_cnm);
  if (number && origin == Origin::kPort && !parts_.handoff.owns(*number))
    return hand_over(parts_.handoff.owner_of(*number), frame);  // which parses it again
  AttachedQueuePair* qp = number ? parts_.queue_pairs.find(number->value()) : nullptr;
  const uint16_t tag = received_cnm->tag.value_or(0);
  if (qp == nullptr || qp->congestion_flow == 0 || (tag != 0 && tag != qp->congestion_flow) ||
      !QueuePairCore::receives(qp->core.state())) {
    parts_.counters.add(Counter::kCnmsUnknownFlow);
    return Verdict::kDone;
  }
  if (received_cnm->sampled && !parts_.neighbors.is_own(received_cnm->sampled->flow.source)) {
    parts_.counters.add(Counter::kCnmsMismatched);
    return Verdict::kDone;
  }
  if (cnms_.take(*received_cnm, qp->core, qp->congestion_flow, now, parts_.counters)) {
    parts_.control.touch(qp->core);
    scheduler_.make_ready(*qp);
  }
  return Verdict::kDone;
}

// Samples a packet with a valid ICRC before its execution. The notification goes to the packet's source: the peer of
// the queue pair, or the sender of a datagram.
void ReceivePipeline::sample(const Received& packet, Nanos now) {
  const FrameView& view = packet.view;
  if (packet.qp == nullptr || !view.opcode->is_data()) return;
  const std::optional<QcnFeedback> feedback = congestion_point_->taken(packet.frame->pkt_len);
  if (!feedback) return;
  const QueuePairCore& core = packet.qp->core;
  const RocePath& path = core.attributes.path;
  if (core.config.type != IBV_QPT_UD && !view.is_between(path.destination_ip, path.source_ip)) return;
  std::array<uint8_t, kMaxL3CnmFrame> bytes;
  RocePath back;
  back.source_mac = mac_;
  back.destination_mac = view.ethernet().source;  // MAC address of the sender, or of the last router
  back.vlan_id = parts_.vlan_id;
  back.priority = kCnmTransmitPriority;
  back.traffic_class = kFeedbackTrafficClass;
  const std::span<const uint8_t> head{view.frame, rte_pktmbuf_data_len(packet.frame)};
  const uint32_t length = congestion_point_->write(head, view.cn_tag, *feedback, back, now, bytes);
  if (length == 0 || !parts_.stage.send_first({bytes.data(), length}))
    return parts_.counters.add(Counter::kCnmsNotSent);
  parts_.counters.add(view.cn_tag ? Counter::kCnmsSent : Counter::kCnmsSentOverIp);
}

// Answers a CE-marked packet with a CNP before its execution. The sender is the queue pair's peer, which identifies the
// flow by the queue pair number.
void ReceivePipeline::notify(const Received& packet, Nanos now) {
  const FrameView& view = packet.view;
  QueuePairCore& core = packet.qp->core;
  const RocePath& path = core.attributes.path;
  if (!view.opcode->is_data() || !is_connected(core.config.type) || !QueuePairCore::receives(core.state()) ||
      !view.is_between(path.destination_ip, path.source_ip) ||
      !notification_point_.due(core.number(), path.destination_ip, now)) {
    return;
  }
  RocePath back = path;
  back.source_mac = mac_;
  back.destination_mac = view.ethernet().source;
  back.priority = kFeedbackPriority;
  back.traffic_class = kFeedbackTrafficClass;
  std::array<uint8_t, kMaxCnpFrame> bytes;
  const uint32_t length = build_cnp(back, core.attributes.remote_qp, bytes, core.attributes.pkey);
  if (!parts_.stage.send_first({bytes.data(), length})) return parts_.counters.add(Counter::kNpCnpsNotSent);
  trace::cnp_sent(core.number().value());
  parts_.counters.add(Counter::kNpCnpsSent);
}

}  // namespace roci

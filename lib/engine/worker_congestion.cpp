// The part of the worker that receives congestion notification messages (cnm_listener.hpp), and sends them if the
// worker itself is congested (host_congestion_point.hpp).
#include "engine/worker.hpp"
#include "wire/roce_cnp.hpp"

namespace roci {
namespace {

bool can_send(ibv_qp_state state) {
  return state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD || state == IBV_QPS_SQE;
}

}  // namespace

// The queue pair keeps its number while it sends to the same peer
// on the same path. READ responses are sent from state RTR on.
void Worker::enter_congestion(AttachedQueuePair& qp) {
  leave_congestion(qp);
  if (!congestion_flows_.enabled() || !can_send(qp.core.state())) return;
  const bool datagrams = qp.core.config.type == IBV_QPT_UD;
  const RocePath path = qp.core.sent_path();
  const SentFlow sent{path.source_ip, path.destination_ip, qp.core.attributes.remote_qp,
                      path.udp_source_port};
  qp.congestion_flow = congestion_flows_.enter(qp.core.number(), datagrams ? nullptr : &sent);
  if (qp.congestion_flow == 0) return counters_.add(Counter::kCnFlowsFull);
  if (congestion_.tag && (datagrams || is_notified(congestion_, path))) qp.core.cn_flow = qp.congestion_flow;
}

void Worker::leave_congestion(AttachedQueuePair& qp) {
  if (qp.congestion_flow == 0) return;
  congestion_flows_.leave(std::exchange(qp.congestion_flow, uint16_t{0}));
  qp.core.cn_flow = 0;
}

Worker::Verdict Worker::take_cnm(Received& received, Nanos now, Origin origin) {
  rte_mbuf* frame = received.frame;
  if (frame->nb_segs > 1 && rte_pktmbuf_linearize(frame) == 0) parse(received);
  if (received.view.ethernet().destination != mac_) {  // a CNM has one destination
    counters_.add(Counter::kRxNotForHost);
    return Verdict::kDone;
  }
  const auto received_cnm = cnms_.read(received.view, *frame, counters_);
  if (!received_cnm) return Verdict::kDone;
  const std::optional<Qpn> number = cnms_.find(*received_cnm);
  const auto workers = static_cast<uint32_t>(outboxes_.size());
  if (number && origin == Origin::kPort && worker_of(*number, workers) != index_) {
    hand_over_frame(worker_of(*number, workers), frame);  // which parses it again
    return Verdict::kHandedOver;
  }
  AttachedQueuePair* qp = number ? queue_pairs_.find(number->value()) : nullptr;
  const uint16_t tag = received_cnm->tag.value_or(0);
  if (qp == nullptr || qp->congestion_flow == 0 || (tag != 0 && tag != qp->congestion_flow) ||
      !can_send(qp->core.state())) {
    counters_.add(Counter::kCnmsUnknownFlow);
    return Verdict::kDone;
  }
  if (received_cnm->sampled && !neighbors_->is_own(received_cnm->sampled->flow.source)) {
    counters_.add(Counter::kCnmsMismatched);
    return Verdict::kDone;
  }
  cnms_.take(*received_cnm, qp->core, qp->congestion_flow, now, counters_);
  return Verdict::kDone;
}

// Samples a packet with a valid ICRC before its execution. The notification goes to the packet's source: the peer of
// the queue pair, or the sender of a datagram.
void Worker::sample(const Received& packet, Nanos now) {
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
  back.vlan_id = vlan_;
  back.priority = kCnmTransmitPriority;
  back.traffic_class = kFeedbackTrafficClass;
  const std::span<const uint8_t> head{view.frame, rte_pktmbuf_data_len(packet.frame)};
  const uint32_t length = congestion_point_->write(head, view.cn_tag, *feedback, back, now, bytes);
  if (length == 0 || !send_first({bytes.data(), length})) return counters_.add(Counter::kCnmsNotSent);
  counters_.add(view.cn_tag ? Counter::kCnmsSent : Counter::kCnmsSentOverIp);
}

// Answers a CE-marked packet with a CNP before its execution. The sender is the queue pair's peer, which identifies the
// flow by the queue pair number.
void Worker::notify(const Received& packet, Nanos now) {
  const FrameView& view = packet.view;
  QueuePairCore& core = packet.qp->core;
  const RocePath& path = core.attributes.path;
  if (!view.opcode->is_data() || core.config.type == IBV_QPT_UD || !can_send(core.state()) ||
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
  counters_.add(send_first({bytes.data(), length}) ? Counter::kNpCnpsSent : Counter::kNpCnpsNotSent);
}

}  // namespace roci

#include "transport/reliable_queue_pair.hpp"

namespace roci {

ReliableQueuePair::ReliableQueuePair(const QueuePairConfig& c, CompletionRing& send_completions,
                                     CompletionRing& recv_completions)
    : QueuePairCore(c, send_completions, recv_completions), requester(*this), responder(*this) {}

void ReliableQueuePair::on_packet(TransportContext& context, const FrameView& view, const rte_mbuf* frame) {
  if (state() != IBV_QPS_RTR && state() != IBV_QPS_RTS) {
    context.counters.add(Counter::kRxBadState);
    return;
  }
  if (!is_from_peer(context, view, TransportClass::kRc)) return;
  if (view.opcode->is_request()) {
    responder.on_request(context, view, frame);
  } else if (view.opcode->is_response()) {
    requester.on_response(context, view, frame);
  } else {
    context.counters.add(Counter::kRxCnp);
  }
}

bool ReliableQueuePair::transmit(TransportContext& context, uint32_t budget) {
  const ibv_qp_state now = state();
  if (now == IBV_QPS_ERR) {
    flush(context);
    // What was executed before the error is still answered, and the NAK that names it.
    return path_ready() && responder.has_answers() && responder.transmit(context, budget);
  }
  if (!path_ready() || (now != IBV_QPS_RTR && now != IBV_QPS_RTS)) return false;
  // Half of the turn is kept for requests, so that a peer that READs all the time cannot starve them.
  const uint32_t for_requests = budget / 2;
  uint32_t for_answers = budget - for_requests;
  bool answers_left = responder.transmit(context, for_answers);
  budget = for_answers + for_requests;
  const bool requests_left = state() == IBV_QPS_RTS && requester.transmit(context, budget);
  if (answers_left && budget > 0) answers_left = responder.transmit(context, budget);
  return answers_left || requests_left || state() == IBV_QPS_ERR;
}

void ReliableQueuePair::flush(TransportContext& context) {
  set_state(IBV_QPS_ERR, std::memory_order_seq_cst);
  requester.flush(context);
  responder.flush(context);
}

void ReliableQueuePair::on_unreachable(TransportContext& context) {
  if (state() == IBV_QPS_RTS && !send_queue.empty()) requester.fail_oldest(context, IBV_WC_RETRY_EXC_ERR);
}

}  // namespace roci

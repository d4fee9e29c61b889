#include "transport/xrc/xrc_initiator.hpp"

namespace roci {

XrcInitiator::XrcInitiator(SparseArena& arena, const QueuePairConfig& c, CompletionRing& send_completions,
                           CompletionRing& recv_completions)
    : QueuePairCore(arena, c, send_completions, recv_completions), requester(*this) {}

void XrcInitiator::on_packet(TransportContext& context, const FrameView& view, const rte_mbuf* frame) {
  if (!receives(state())) {
    context.counters.add(Counter::kRxBadState);
    return;
  }
  if (!is_from_peer(context, view, TransportClass::kXrc)) return;
  if (view.opcode->is_response()) {
    requester.on_response(context, view, frame, kNoExtensions);
  } else if (view.opcode->is_request()) {
    context.counters.add(Counter::kRxWrongTransport);
  } else {
    take_cnp(context);
  }
}

uint8_t* XrcInitiator::payload_target(const MemoryTable& memory, const FrameView& view) {
  if (!receives(state()) || !may_be_from_peer(view, TransportClass::kXrc)) return nullptr;
  return view.opcode->operation == Operation::kReadResponse ? requester.payload_target(memory, view)
                                                            : nullptr;
}

bool XrcInitiator::transmit(TransportContext& context, uint32_t budget) {
  check_completion_queues(context);
  if (state() == IBV_QPS_ERR) {
    set_state(IBV_QPS_ERR, std::memory_order_seq_cst);
    requester.flush(context);
    return false;
  }
  if (requester.idle()) on_drained(context);
  if (!path_ready() || (state() != IBV_QPS_RTS && state() != IBV_QPS_SQD)) return false;
  const bool left = requester.transmit(context, budget);
  return left || state() == IBV_QPS_ERR;
}

void XrcInitiator::on_unreachable(TransportContext& context) {
  const bool wants_to_send = state() == IBV_QPS_RTS ? !send_queue.empty() : draining() && !requester.idle();
  if (wants_to_send) requester.fail_oldest(context, IBV_WC_RETRY_EXC_ERR);
}

}  // namespace roci

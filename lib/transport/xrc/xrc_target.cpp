#include "transport/xrc/xrc_target.hpp"

namespace roci {

XrcTarget::XrcTarget(SparseArena& arena, const QueuePairConfig& c, XrcReceiveQueues& queues,
                     const XrcDomainCore& domain)
    : QueuePairCore(arena, c, queues.unowned, queues.unowned),
      responder(*this),
      queues_(queues),
      domain_(domain) {}

void XrcTarget::on_packet(TransportContext& context, const FrameView& view, const rte_mbuf* frame) {
  if (!receives(state())) {
    context.counters.add(Counter::kRxBadState);
    return;
  }
  if (!is_from_peer(context, view, TransportClass::kXrc)) return;
  note_communication(context);
  if (view.opcode->is_request()) {
    if (take_named_queue(context, view)) responder.on_request(context, view, frame, kNoExtensions);
  } else if (view.opcode->is_response()) {
    context.counters.add(Counter::kRxWrongTransport);
  } else {
    take_cnp(context);
  }
}

// Selects the queue that the packet contains. Only the expected packet is checked: other packets are not executed now.
// False when the packet was rejected, as an invalid request, regardless of other errors.
bool XrcTarget::take_named_queue(TransportContext& context, const FrameView& view) {
  if (!(view.psn() == responder.expected())) return true;
  const Srqn number = view.xrc_srq();
  if (named_ != nullptr && named_->number == number) return true;
  const XrcReceiveQueue* queue = queues_.by_number.find(number.value());
  if (queue == nullptr || queue->domain.get() != &domain_ || responder.in_message()) {
    context.counters.add(Counter::kRxWrongSrq);
    responder.refuse(context, view);
    return false;
  }
  name(queue);
  return true;
}

void XrcTarget::name(const XrcReceiveQueue* queue) {
  named_ = queue;
  config.srq = queue == nullptr ? nullptr : queue->requests.get();
  config.pd = queue == nullptr ? PdNumber{0} : queue->requests->pd();
  recv_cq = queue == nullptr ? &queues_.unowned : queue->completions.get();
}

void XrcTarget::detach(const XrcReceiveQueue& queue) {
  if (named_ != &queue) return;
  recv_queue.clear();
  name(nullptr);
}

// Pending completions remain: they belong to the application that owns the queue, not to the creator of the target.
void XrcTarget::reset_responder(Psn expected) {
  name(nullptr);
  responder.reset(expected, attributes.max_dest_rd_atomic);
}

uint8_t* XrcTarget::payload_target(const MemoryTable& memory, const FrameView& view) {
  if (!receives(state()) || !may_be_from_peer(view, TransportClass::kXrc) || !view.opcode->is_request())
    return nullptr;
  const bool named = named_ != nullptr && named_->number == view.xrc_srq();
  return named ? responder.payload_target(memory, view) : nullptr;
}

bool XrcTarget::transmit(TransportContext& context, uint32_t budget) {
  check_completion_queues(context);
  if (state() == IBV_QPS_ERR) {
    set_state(IBV_QPS_ERR, std::memory_order_seq_cst);
    responder.flush(context);
    // As ReliableQueuePair::transmit().
    return path_ready() && responder.has_responses() && responder.transmit(context, budget);
  }
  on_drained(context);
  if (!path_ready() || !receives(state())) return false;
  const bool left = responder.transmit(context, budget);
  return left || state() == IBV_QPS_ERR;
}

void XrcTarget::acknowledge(TransportContext& context) {
  check_completion_queues(context);
  if (path_ready() && receives(state())) responder.acknowledge(context);
}

}  // namespace roci

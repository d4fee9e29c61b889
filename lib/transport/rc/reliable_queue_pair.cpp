#include "transport/rc/reliable_queue_pair.hpp"

namespace roci {

ReliableQueuePair::ReliableQueuePair(SparseArena& arena, const QueuePairConfig& c,
                                     CompletionRing& send_completions, CompletionRing& recv_completions)
    : QueuePairCore(arena, c, send_completions, recv_completions), requester(*this), responder(*this) {}

void ReliableQueuePair::on_packet(TransportContext& context, const FrameView& view, const rte_mbuf* frame) {
  if (!receives(state())) {
    context.counters.add(Counter::kRxBadState);
    return;
  }
  const bool is_private = view.opcode->is_private();
  if (is_private && session == nullptr) {  // unknown without negotiated extensions
    context.counters.add(Counter::kRxUnknownOpcode);
    return;
  }
  if (!is_from_peer(context, view, is_private ? TransportClass::kPrivate : TransportClass::kRc)) return;
  if (session != nullptr) {
    note_communication(context);
    FrameView plain = view;  // without its extension block
    ExtensionView block;
    if (open_extensions(context, plain, frame, block)) dispatch(context, plain, frame, block);
  } else if (refuses_plain) [[unlikely]] {
    context.counters.add(Counter::kRxUnauthenticated);
  } else {
    note_communication(context);
    // Without extensions, the bit that marks a block is a reserved bit, which receivers ignore (IBTA 9.2).
    if (extensions_undecided && view.bth().has_extensions()) {
      context.counters.add(Counter::kExtensionsRefused);
    } else {
      dispatch(context, view, frame, kNoExtensions);
    }
  }
}

uint8_t* ReliableQueuePair::payload_target(const MemoryTable& memory, const FrameView& view) {
  if (!receives(state()) || !may_be_from_peer(view, TransportClass::kRc)) return nullptr;
  if (refuses_plain && session == nullptr) return nullptr;
  if (view.bth().has_extensions() && (session != nullptr || extensions_undecided)) return nullptr;
  if (view.opcode->is_request()) return responder.payload_target(memory, view);
  return view.opcode->operation == Operation::kReadResponse ? requester.payload_target(memory, view)
                                                            : nullptr;
}

void ReliableQueuePair::dispatch(TransportContext& context, const FrameView& view, const rte_mbuf* frame,
                                 const ExtensionView& block) {
  if (view.opcode->is_request()) {
    responder.on_request(context, view, frame, block);
  } else if (view.opcode->is_response()) {
    requester.on_response(context, view, frame, block);
  } else if (view.opcode->is_private()) {
    on_private(context, view, block);
  } else {
    take_cnp(context);
  }
}

// False when the packet must be dropped.
bool ReliableQueuePair::open_extensions(TransportContext& context, FrameView& view, const rte_mbuf* frame,
                                        ExtensionView& block) {
  if (!session->open_block(view, frame, block)) {
    context.counters.add(Counter::kExtensionsRefused);
    return false;
  }
  const Operation operation = view.opcode->operation;
  const bool feedback = operation == Operation::kAcknowledge || operation == Operation::kReadAcknowledge ||
                        operation == Operation::kProbeResponse || operation == Operation::kReceiverWindow;
  if (feedback && !session->accepts_feedback(view, block)) {
    context.counters.add(Counter::kFeedbackUnsigned);
    return false;
  }
  return true;
}

void ReliableQueuePair::on_private(TransportContext& context, const FrameView& view,
                                   const ExtensionView& block) {
  const auto agreed = [&](Capability what) { return session->terms.has(what); };
  switch (view.opcode->operation) {
    case Operation::kReadAcknowledge:
      if (agreed(Capability::kReadAcks)) return responder.on_read_acknowledge(context, view, block);
      break;
    // The response has an opcode that a peer without extensions does not support.
    case Operation::kProbeRequest:
      if (session->takes(Capability::kProbes)) return responder.on_probe(context, view);
      break;
    case Operation::kProbeResponse:
      if (agreed(Capability::kProbes)) return requester.on_probe_response(context, view, block);
      break;
    case Operation::kIntResponse:
      if (agreed(Capability::kIntResponses) && session->telemetry != nullptr)
        return on_switch_report(context, view);
      break;
    case Operation::kReceiverWindow:
      if (agreed(Capability::kWindowMessages)) return requester.on_window_message(context, block);
      break;
    default:
      break;
  }
  context.counters.add(Counter::kRxUnknownOpcode);
}

// Reports of switches are not authenticated, and their source address is that of the receiver. A report is accepted
// only if it is about a packet in flight.
void ReliableQueuePair::on_switch_report(TransportContext& context, const FrameView& view) {
  const IntReport& report = view.int_report();
  const OpcodeInfo* sampled = find_opcode(report.sampled.opcode);
  const Psn psn{report.sampled.psn.get()};
  const bool matches = sampled != nullptr && psn == view.psn() &&
                       report.sampled.destination_qp.get() == attributes.remote_qp.value() &&
                       (report.flags.get() & IntReport::kToReceiver) == 0 &&
                       (requester.has_in_flight(*sampled, psn) || responder.has_in_flight(*sampled, psn));
  const HopsOf of =
      matches && sampled->operation == Operation::kReadResponse ? HopsOf::kResponses : HopsOf::kRequests;
  const bool taken = matches && session->telemetry->take_report(report, psn, of, context.now);
  context.counters.add(taken ? Counter::kIntResponsesTaken : Counter::kIntResponsesRefused);
}

bool ReliableQueuePair::transmit(TransportContext& context, uint32_t budget) {
  check_completion_queues(context);
  const ibv_qp_state now = state();
  if (now == IBV_QPS_ERR) {
    flush(context);
    // After an error, responses to requests executed before it are still sent, and so is its NAK. The program has none to
    // send (discard_responses()).
    return path_ready() && responder.has_responses() && responder.transmit(context, budget);
  }
  if (requester.idle()) on_drained(context);
  if (!path_ready() || !receives(now)) return false;
  // Half of the budget is reserved for requests, so that a peer with continuous READs does not starve them.
  const uint32_t for_requests = budget / 2;
  uint32_t for_answers = budget - for_requests;
  bool answers_left = responder.transmit(context, for_answers);
  budget = for_answers + for_requests;
  const bool requests_left =
      state() != IBV_QPS_RTR && state() != IBV_QPS_ERR && requester.transmit(context, budget);
  if (answers_left && budget > 0) answers_left = responder.transmit(context, budget);
  return answers_left || requests_left || state() == IBV_QPS_ERR;
}

void ReliableQueuePair::acknowledge(TransportContext& context) {
  check_completion_queues(context);
  if (path_ready() && receives(state())) responder.acknowledge(context);
}

void ReliableQueuePair::flush(TransportContext& context) {
  set_state(IBV_QPS_ERR, std::memory_order_seq_cst);
  requester.flush(context);
  responder.flush(context);
}

void ReliableQueuePair::on_unreachable(TransportContext& context) {
  const bool wants_to_send = state() == IBV_QPS_RTS ? !send_queue.empty() : draining() && !requester.idle();
  if (wants_to_send) requester.fail_oldest(context, IBV_WC_RETRY_EXC_ERR);
}

}  // namespace roci

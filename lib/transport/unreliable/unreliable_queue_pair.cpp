#include "transport/unreliable/unreliable_queue_pair.hpp"

#include <algorithm>
#include <cstring>

#include "base/trace_points.hpp"
#include "transport/messages/local_operations.hpp"
#include "transport/messages/message_packet.hpp"
#include "transport/messages/receive_completion.hpp"
#include "transport/messages/scatter.hpp"

namespace roci {
void UnreliableQueuePair::reset_requester(Psn first) {
  next_psn_ = first;
  packet_ = 0;
}

void UnreliableQueuePair::reset_responder(Psn expected) {
  expected_ = expected;
  in_message_ = false;
}

bool UnreliableQueuePair::transmit(TransportContext& context, uint32_t budget) {
  if (state() == IBV_QPS_ERR) {
    set_state(IBV_QPS_ERR, std::memory_order_seq_cst);
    in_message_ = false;
    flush_sends(context);
    flush_receives(context);
    return false;
  }
  if (state() == IBV_QPS_SQE) flush_sends(context);
  if (packet_ == 0) on_drained(context);
  if (!may_send() || !path_ready()) return false;
  for (; budget > 0 && may_send(); --budget) {
    if (send_queue.at(send_queue.head()).is_local()) {
      if (!execute_locally(context)) return false;
      continue;
    }
    if (const ibv_wc_status error = send_queue.at(send_queue.head()).local_error; error != IBV_WC_SUCCESS)
        [[unlikely]] {
      stop_sending(context, error);
      return false;
    }
    if (gates != nullptr && held(context.now)) return false;
    switch (send_one(context)) {
      case SendOutcome::kSent:
        break;
      case SendOutcome::kBackpressure:
        return true;
      case SendOutcome::kAborted:
        packet_ = 0;
        stop_sending(context, IBV_WC_LOC_PROT_ERR);
        return false;
    }
  }
  if (packet_ == 0) on_drained(context);
  if (gates != nullptr && !may_send()) gates->requests.pause();
  return may_send() || state() == IBV_QPS_ERR;  // error: a completion queue overflowed
}

// In SQD the current message is sent to its end, and no further one is started.
bool UnreliableQueuePair::may_send() const {
  return !send_queue.empty() && (state() == IBV_QPS_RTS || (state() == IBV_QPS_SQD && packet_ != 0));
}

// Binds or invalidates a memory window. All requests before it have completed.
bool UnreliableQueuePair::execute_locally(TransportContext& context) {
  const SendWqe& wqe = send_queue.at(send_queue.head());
  const ibv_wc_status status = execute_local_operation(context, accessor(), wqe);
  if (status != IBV_WC_SUCCESS) {
    stop_sending(context, status);
    return false;
  }
  complete_send(context, wqe, status);
  return true;
}

// Whether congestion control holds back the next packet. Without acknowledgments, only the pace applies, not the
// window.
bool UnreliableQueuePair::held(Nanos now) {
  const SendWqe& wqe = send_queue.at(send_queue.head());
  return !gates->requests.admits(now, 0,
                                 cut_message(wqe, TransportClass::kUc, packet_, attributes.path_mtu).length);
}

SendOutcome UnreliableQueuePair::send_one(TransportContext& context) {
  const SendWqe& wqe = send_queue.at(send_queue.head());
  if (packet_ == 0) {
    if (wqe.length > attributes.path_mtu && !has_memory(context.memory, config.pd, wqe))
      return SendOutcome::kAborted;
    trace::request_started(config.number.value(), wqe.wr_id, next_psn_.value(), 0);
  }
  const MessagePacket cut = cut_message(wqe, TransportClass::kUc, packet_, attributes.path_mtu);
  const BthFields bth{.opcode = cut.opcode,
                      .destination_qp = attributes.remote_qp,
                      .psn = next_psn_,
                      .pkey = attributes.pkey,
                      .solicited = cut.solicited};
  const auto outcome = send_packet(context, *this, bth, cut.length, {}, [&](RoceWriter::Open& open, auto&) {
    return fill_message_packet(context.memory, config.pd, wqe, cut, open);
  });
  if (outcome != SendOutcome::kSent) return outcome;
  if (gates != nullptr) {
    gates->requests.departed(context.now, cut.length, true);
    gates->requests.sent_end += cut.length;
  }
  ++next_psn_;
  if (cut.last) {
    trace::request_sent(config.number.value(), wqe.wr_id, packet_);
    packet_ = 0;
    complete_send(context, wqe, IBV_WC_SUCCESS);
  } else {
    ++packet_;
  }
  return SendOutcome::kSent;
}

// The requests count as lost in the network, which UC does not report.
void UnreliableQueuePair::on_unreachable(TransportContext& context) {
  while (may_send()) {
    if (send_queue.at(send_queue.head()).is_local()) {
      execute_locally(context);
      continue;
    }
    if (const ibv_wc_status error = send_queue.at(send_queue.head()).local_error; error != IBV_WC_SUCCESS)
      return stop_sending(context, error);
    context.counters.add(Counter::kTxUnreachable);
    complete_send(context, send_queue.at(send_queue.head()), IBV_WC_SUCCESS);
    packet_ = 0;
  }
}

void UnreliableQueuePair::on_packet(TransportContext& context, const FrameView& view, const rte_mbuf* frame) {
  if (!receives(state())) {
    context.counters.add(Counter::kRxBadState);
    return;
  }
  if (!is_from_peer(context, view, TransportClass::kUc)) return;
  note_communication(context);
  if (view.opcode->is_request()) {
    on_request(context, view, frame);
  } else {
    take_cnp(context);
  }
}

// IBTA 9.8.2.2 and 9.9.3. Class D: an invalid packet of this service is dropped without notification.
void UnreliableQueuePair::on_request(TransportContext& context, const FrameView& view,
                                     const rte_mbuf* frame) {
  if (view.ecn() == Ecn::kCe) context.counters.add(Counter::kRxCeMarked);
  const OpcodeInfo& info = *view.opcode;
  const Psn psn = view.psn();
  trace::packet_received(config.number.value(), psn.value(), view.bth().opcode);
  const bool goes_on = !info.starts_message() && info.operation == operation_ && psn == expected_;
  if (in_message_ && !goes_on) abandon(context, IBV_WC_REM_INV_REQ_ERR);
  expected_ = psn + 1;
  if (!in_message_ && !info.starts_message()) {
    context.counters.add(Counter::kRxNoMessage);
    return;
  }
  const bool length_right =
      check_payload(info, view.payload_length, view.pad, attributes.path_mtu) == PayloadCheck::kRight;
  if (!length_right) {
    context.counters.add(Counter::kRxRefused);
    if (in_message_) abandon(context, IBV_WC_REM_INV_REQ_ERR);
    return;
  }
  const bool executed = info.operation == Operation::kSend ? execute_send(context, view, frame)
                                                           : execute_write(context, view, frame);
  in_message_ = executed && !info.ends_message();
  operation_ = info.operation;
  if (executed) context.counters.add(Counter::kRequestsReceived);
}

void UnreliableQueuePair::abandon(TransportContext& context, ibv_wc_status status) {
  if (in_message_) context.counters.add(Counter::kMessagesAbandoned);
  in_message_ = false;
  if (config.srq == nullptr || recv_queue.empty()) return;
  ibv_wc wc{};
  wc.status = status;
  complete_recv(context, wc, true);
}

bool UnreliableQueuePair::execute_send(TransportContext& context, const FrameView& view,
                                       const rte_mbuf* frame) {
  const OpcodeInfo& info = *view.opcode;
  if (info.starts_message()) {
    received_ = 0;
    if (!take_receive(context)) {
      context.counters.add(Counter::kRxNoReceive);
      return false;
    }
  }
  const RecvWqe& wqe = recv_queue.at(recv_queue.head());
  if (view.payload_length > wqe.capacity - received_) {
    context.counters.add(Counter::kRxTooLong);
    abandon(context, IBV_WC_LOC_LEN_ERR);
    return false;
  }
  // An error of the application's own memory is reported in a completion, on every service (IBTA 9.9.3, class A).
  if (!scatter(context.memory, config.recv_pd(), wqe.pieces(), received_, frame, view.payload_offset,
               view.payload_length)) {
    ibv_wc wc{};
    wc.status = IBV_WC_LOC_PROT_ERR;
    to_error();  // before the completion is visible
    complete_recv(context, wc, true);
    return false;
  }
  received_ += view.payload_length;
  if (info.ends_message()) {
    ibv_wc wc = receive_completion(view, received_);
    complete_recv(context, wc, view.bth().solicited());
  }
  return true;
}

bool UnreliableQueuePair::execute_write(TransportContext& context, const FrameView& view,
                                        const rte_mbuf* frame) {
  const OpcodeInfo& info = *view.opcode;
  if (info.starts_message()) {
    received_ = 0;
    announced_ = view.reth().length.get();
    va_ = view.reth().va.get();
    rkey_ = MemoryKey{view.reth().rkey.get()};
  }
  const auto refuse = [&] {
    context.counters.add(Counter::kRxRefused);
    abandon(context, IBV_WC_REM_ACCESS_ERR);
    return false;
  };
  if ((attributes.access & IBV_ACCESS_REMOTE_WRITE) == 0 || announced_ > kMaxMessage) return refuse();
  const uint32_t left = announced_ - received_;
  if (info.ends_message() ? view.payload_length != left : view.payload_length >= left) return refuse();
  // The whole range is checked before its first byte is written. Each packet is checked again, since the region may be
  // deregistered in between.
  uint8_t* where = nullptr;
  const uint32_t range = info.starts_message() ? announced_ : view.payload_length;
  if (context.memory.check_remote(rkey_, accessor(), va_, range, Access::kRemoteWrite, &where) !=
      AccessOutcome::kAllowed) {
    return refuse();
  }
  const bool completes = info.ends_message() && info.consumes_receive();
  if (completes && !take_receive(context)) {
    context.counters.add(Counter::kRxNoReceive);
    return false;
  }
  if (view.payload_length > 0 &&
      !write_payload(where, frame, view.payload_offset, view.payload_length, info.ends_message())) {
    return refuse();
  }
  va_ += view.payload_length;
  received_ += view.payload_length;
  if (completes) {
    ibv_wc wc = receive_completion(view, received_);
    complete_recv(context, wc, view.bth().solicited());
  }
  return true;
}

}  // namespace roci

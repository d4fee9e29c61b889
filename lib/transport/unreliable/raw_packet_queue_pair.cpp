#include "transport/unreliable/raw_packet_queue_pair.hpp"

#include "base/trace_points.hpp"
#include "transport/messages/scatter.hpp"

namespace roci {
namespace {

// Copies the request's frame to `to`. False if its memory is not accessible (any more).
bool copy_frame(const MemoryTable& memory, PdNumber pd, const SendWqe& wqe, uint8_t* to) {
  if (wqe.is_inline()) {
    std::memcpy(to, wqe.inline_data(), wqe.length);
    return true;
  }
  const bool allowed =
      for_each_sge(memory, pd, wqe.pieces(), 0, wqe.length, Access::kLocalRead,
                   [to](const uint8_t* host, uint32_t at, uint32_t n) { guarded_copy(to + at, host, n); });
  return !take_memory_fault() && allowed;
}

}  // namespace

bool RawPacketQueuePair::transmit(TransportContext& context, uint32_t budget) {
  if (!begin_single_packets(context)) return false;
  for (; budget > 0 && state() == IBV_QPS_RTS && !send_queue.empty(); --budget) {
    const SendWqe& wqe = send_queue.at(send_queue.head());
    if (wqe.local_error != IBV_WC_SUCCESS) [[unlikely]] {
      stop_sending(context, wqe.local_error);
      return false;
    }
    switch (send_one(context, wqe)) {
      case SendOutcome::kBackpressure:
        return true;
      case SendOutcome::kAborted:
        stop_sending(context, IBV_WC_LOC_PROT_ERR);
        return false;
      case SendOutcome::kSent:
        break;
    }
    complete_send(context, wqe, IBV_WC_SUCCESS);
  }
  return state() == IBV_QPS_RTS && !send_queue.empty();
}

SendOutcome RawPacketQueuePair::send_one(TransportContext& context, const SendWqe& wqe) {
  rte_mbuf* frame = context.sink.allocate();
  if (frame == nullptr) return SendOutcome::kBackpressure;
  // The pool's buffers fit the longest frame, against which the length was checked.
  auto* bytes = reinterpret_cast<uint8_t*>(rte_pktmbuf_append(frame, static_cast<uint16_t>(wqe.length)));
  if (bytes == nullptr || !copy_frame(context.memory, config.pd, wqe, bytes)) {
    rte_pktmbuf_free(frame);
    return SendOutcome::kAborted;
  }
  trace::request_started(config.number.value(), wqe.wr_id, 0, 1);
  if (reinterpret_cast<const EthernetHeader*>(bytes)->destination.is_multicast())
    context.paths.loop_back_frame(*frame);
  context.sink.send(frame);
  trace::request_sent(config.number.value(), wqe.wr_id, 0);
  return SendOutcome::kSent;
}

void RawPacketQueuePair::on_packet(TransportContext& context, const FrameView& /*view*/,
                                   const rte_mbuf* /*frame*/) {
  context.counters.add(Counter::kRxWrongTransport);
}

void RawPacketQueuePair::on_frame(TransportContext& context, const rte_mbuf& frame) {
  if (!receives(state())) {
    context.counters.add(Counter::kRxBadState);
    return;
  }
  if (!take_receive(context)) {
    context.counters.add(Counter::kRxNoReceive);
    return;
  }
  const RecvWqe& wqe = recv_queue.at(recv_queue.head());
  const uint32_t length = rte_pktmbuf_pkt_len(&frame);
  ibv_wc wc{};
  if (wqe.capacity < length) {
    context.counters.add(Counter::kRxTooLong);
    if (config.srq == nullptr) return;  // the request is used for the next frame, as on UD
    wc.status = IBV_WC_LOC_LEN_ERR;
    complete_recv(context, wc, true);
    return;
  }
  if (!scatter(context.memory, config.recv_pd(), wqe.pieces(), 0, &frame, 0, length)) {
    wc.status = IBV_WC_LOC_PROT_ERR;
    to_error();  // before the completion is visible
    complete_recv(context, wc, true);
    return;
  }
  wc.status = IBV_WC_SUCCESS;
  wc.opcode = IBV_WC_RECV;
  wc.byte_len = length;
  context.counters.add(Counter::kRequestsReceived);
  complete_recv(context, wc, true);
}

}  // namespace roci

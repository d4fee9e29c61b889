#include "transport/unreliable/datagram_queue_pair.hpp"

#include "base/trace_points.hpp"
#include "transport/messages/datagram.hpp"
#include "transport/messages/message_packet.hpp"
#include "transport/messages/receive_completion.hpp"

namespace roci {
namespace {

constexpr uint32_t kQkeyOfQueuePair =
    0x8000'0000;  // IBTA 10.2.5: a request with this bit uses the queue pair's own
constexpr uint32_t kLargestMtu = 4096;

// `sl` of a RoCE datagram's completion, as mlx5 sets it and UCX 1.13 reads it: UDP, and the IP version.
constexpr uint8_t packet_type(const FrameView& view) { return view.ipv6 ? 0x9 : 0xa; }

// Writes the 40 bytes of the network header to the start of a receive request's memory.
bool scatter_network_header(const TransportContext& context, PdNumber pd, const RecvWqe& wqe,
                            const FrameView& view) {
  return scatter_bytes(context.memory, pd, wqe.pieces(), network_header(view));
}

}  // namespace

bool DatagramQueuePair::transmit(TransportContext& context, uint32_t budget) {
  if (!begin_single_packets(context)) return false;
  for (; budget > 0 && state() == IBV_QPS_RTS && !send_queue.empty(); --budget) {
    const SendWqe& wqe = send_queue.at(send_queue.head());
    if (wqe.local_error != IBV_WC_SUCCESS) [[unlikely]] {
      stop_sending(context, wqe.local_error);
      return false;
    }
    const PathSource::Answer path = context.paths.find(*wqe.address, context.now);
    if (path.state == PathState::kPending) return false;
    if (path.state == PathState::kUnreachable) {
      context.counters.add(Counter::kTxUnreachable);
    } else {
      const SendOutcome outcome = send_one(context, *path.writer, wqe);
      if (outcome == SendOutcome::kBackpressure) return true;
      if (outcome == SendOutcome::kAborted) {
        stop_sending(context, IBV_WC_LOC_PROT_ERR);
        return false;
      }
    }
    release_address(wqe);
    complete_send(context, wqe, IBV_WC_SUCCESS);
  }
  return state() == IBV_QPS_RTS && !send_queue.empty();
}

SendOutcome DatagramQueuePair::send_one(TransportContext& context, RoceWriter& headers, const SendWqe& wqe) {
  const RocePath& path = wqe.address->path;
  DatagramFields fields{
      .destination_qp = wqe.remote_qp,
      .source_qp = config.number,
      .qkey = (wqe.qkey.value() & kQkeyOfQueuePair) != 0 ? attributes.qkey : wqe.qkey,
      .psn = next_psn_,
      .pkey = attributes.pkey,
      .solicited = (wqe.send_flags & IBV_SEND_SOLICITED) != 0,
      .udp_source_port = path.flow_label != 0
                             ? flow_udp_source_port(path.flow_label, config.number, wqe.remote_qp)
                             : datagram_udp_source_port(config.number)};
  if (wqe.opcode == IBV_WR_SEND_WITH_IMM) fields.immediate = __builtin_bswap32(wqe.immediate);
  trace::request_started(config.number.value(), wqe.wr_id, next_psn_.value(), 1);
  const auto outcome = send_datagram(
      context.sink, headers, fields, wqe.length,
      [&](RoceWriter::Open& open) {
        return fill_payload(context.memory, config.pd, wqe, 0, wqe.length, open);
      },
      [&](rte_mbuf& frame) {
        if (path.destination_ip.is_multicast()) context.paths.loop_back(frame, path.destination_ip);
        if (cn_flow != 0 && wqe.address->may_tag) put_cn_tag(frame, headers.l3_offset(), cn_flow);
      });
  if (outcome != SendOutcome::kSent) return outcome;
  trace::request_sent(config.number.value(), wqe.wr_id, 0);
  ++next_psn_;
  return outcome;
}

void DatagramQueuePair::on_packet(TransportContext& context, const FrameView& view, const rte_mbuf* frame) {
  if (!receives(state())) {
    context.counters.add(Counter::kRxBadState);
    return;
  }
  if (view.opcode->transport == TransportClass::kCnp) {
    context.counters.add(Counter::kRxCnp);
    return;
  }
  if (!accept_datagram(context.counters, view, attributes.pkey, attributes.qkey)) return;
  if (view.ecn() == Ecn::kCe) context.counters.add(Counter::kRxCeMarked);
  if (check_payload(*view.opcode, view.payload_length, view.pad, kLargestMtu) != PayloadCheck::kRight) {
    context.counters.add(Counter::kRxRefused);
    return;
  }
  if (!take_receive(context)) {
    context.counters.add(Counter::kRxNoReceive);
    return;
  }
  const RecvWqe& wqe = recv_queue.at(recv_queue.head());
  const uint32_t length = kGrhBytes + view.payload_length;
  ibv_wc wc{};
  if (wqe.capacity < length) {
    context.counters.add(Counter::kRxTooLong);
    if (config.srq == nullptr) return;  // the request is used for the next datagram (IBTA 9.9.3, class D)
    // The request cannot return to the shared queue, and the next datagram may never arrive (class E).
    wc.status = IBV_WC_LOC_LEN_ERR;
    complete_recv(context, wc, true);
    return;
  }
  if (!scatter_network_header(context, config.recv_pd(), wqe, view) ||
      !scatter(context.memory, config.recv_pd(), wqe.pieces(), kGrhBytes, frame, view.payload_offset,
               view.payload_length)) {
    wc.status = IBV_WC_LOC_PROT_ERR;
    to_error();  // before the completion is visible
    complete_recv(context, wc, true);
    return;
  }
  wc = receive_completion(view, length);
  wc.wc_flags |= IBV_WC_GRH;
  wc.src_qp = view.deth().source_qp.get();
  wc.sl = packet_type(view);
  context.counters.add(Counter::kRequestsReceived);
  complete_recv(context, wc, view.bth().solicited());
}

}  // namespace roci

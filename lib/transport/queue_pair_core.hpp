// A reliable-connected queue pair: what its requester and responder share. The engine gives it packets, doorbells and
// deadlines; it gives back packets and completions. It knows no port, no thread and no clock.
//
//              post_send             packets of the peer
//                  |                        |
//             [send queue]            dispatch by opcode ----------------+
//                  |                        |                            |
//              Requester  <--- responses ---+                        Responder ---> [recv queue]
//         (requests out, their              |                  (requests in, their
//          completions)                     +--- CNP: counted    responses out)
//
// Ownership: everything but post_send(), post_recv(), state() and number() belongs to whoever holds the token of the
// worker that the queue pair is attached to.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/result.hpp"
#include "transport/completion_ring.hpp"
#include "transport/packet_sink.hpp"
#include "transport/requester.hpp"
#include "transport/responder.hpp"
#include "transport/work_queue.hpp"
#include "wire/roce_writer.hpp"

namespace roci {

// What stays the same for a queue pair's life.
struct QueuePairConfig {
  Qpn number{0};
  PdNumber pd{0};
  uint32_t max_send_wr = 1;
  uint32_t max_recv_wr = 1;
  uint32_t max_send_sge = 1;
  uint32_t max_recv_sge = 1;
  uint32_t max_inline = 0;
  bool signal_all = false;
  uint32_t window_bytes = 512 * 1024;
};

// What modify() sets (IBTA 11.2.5.2), in our types.
struct QueuePairAttributes {
  RocePath path;
  Qpn remote_qp{0};
  PKey pkey = kDefaultPKey;
  uint32_t path_mtu = 1024;        // bytes
  int access = 0;                  // ibv_access_flags that remote operations need
  uint8_t timeout = 0;             // code of ack_timeout()
  uint8_t retry_count = 0;         // 0 to 7
  uint8_t rnr_retry = 0;           // 0 to 6; 7 is without limit
  uint8_t min_rnr_timer = 0;       // code of rnr_delay()
  uint8_t max_rd_atomic = 0;       // READs that may be under way as requester
  uint8_t max_dest_rd_atomic = 0;  // the same as responder
};

class QueuePairCore {
 public:
  QueuePairCore(const QueuePairConfig& config, CompletionRing& send_cq, CompletionRing& recv_cq);

  [[nodiscard]] Qpn number() const { return config.number; }
  [[nodiscard]] ibv_qp_state state() const { return state_.load(std::memory_order_seq_cst); }

  // Any thread. 0 or an errno, as ibv_post_send; the caller rings the doorbell afterwards.
  int post_send(ibv_send_wr* list, ibv_send_wr** bad);
  int post_recv(ibv_recv_wr* list, ibv_recv_wr** bad);

  // The engine's side.
  // A packet for this queue pair with a right ICRC. `frame` is only read.
  void on_packet(TransportContext& context, const FrameView& view, const rte_mbuf* frame);
  // Sends what is due, at most `budget` packets. True when more could be sent at once if there were budget, buffers
  // and room; false when the queue pair waits for its peer, its application or its deadline.
  bool transmit(TransportContext& context, uint32_t budget);
  [[nodiscard]] Nanos deadline() const { return requester.deadline(); }
  void on_deadline(TransportContext& context) { requester.on_deadline(context); }

  // State changes, made with the worker's token in hand.
  void to_init();
  void to_ready_to_receive(Psn expected);
  void to_ready_to_send(Psn first);
  void to_error() { state_.store(IBV_QPS_ERR, std::memory_order_relaxed); }  // the next transmit() flushes
  void to_reset();
  // The peer's MAC is known (again).
  void set_peer_mac(const MacAddress& mac);
  [[nodiscard]] bool path_ready() const { return path_ready_; }
  // Nobody answers for the peer's address: what is queued fails as if its retries had run out.
  void on_unreachable(TransportContext& context);

  // Makes a completion of this queue pair's send or receive queue.
  void complete_send(TransportContext& context, const SendWqe& wqe, ibv_wc_status status);
  void complete_recv(TransportContext& context, ibv_wc& completion, bool solicited);

  QueuePairConfig config;
  QueuePairAttributes attributes;
  RoceWriter writer;
  WorkRing<SendWqe> send_queue;
  WorkRing<RecvWqe> recv_queue;
  Requester requester;
  Responder responder;
  CompletionRing& send_cq;
  CompletionRing& recv_cq;

 private:
  [[nodiscard]] bool is_from_peer(TransportContext& context, const FrameView& view) const;
  void flush(TransportContext& context);
  int check_send(const ibv_send_wr& wr, uint64_t* length) const;

  std::atomic<ibv_qp_state> state_{IBV_QPS_RESET};
  bool path_ready_ = false;
};

// Writes and sends one packet of `qp`: fill(open) is called with the frame's headers in place, to fill the extended
// headers and the payload, and returns false to give the packet up (the buffer is freed).
template <class Fill>
SendOutcome send_packet(TransportContext& context, QueuePairCore& qp, const BthFields& bth,
                        uint32_t payload_length, Fill&& fill) {
  rte_mbuf* frame = context.sink.allocate();
  if (frame == nullptr) return SendOutcome::kNoRoom;
  const uint32_t bytes = qp.writer.frame_bytes(opcode_info(bth.opcode), payload_length);
  auto* start = reinterpret_cast<uint8_t*>(rte_pktmbuf_append(frame, static_cast<uint16_t>(bytes)));
  if (start ==
      nullptr) {  // the pool's buffers are sized for the port's MTU, and path_mtu is checked against that
    rte_pktmbuf_free(frame);
    return SendOutcome::kGivenUp;
  }
  const RoceWriter::Open open = qp.writer.begin(start, bth, payload_length);
  if (!fill(open)) {
    rte_pktmbuf_free(frame);
    return SendOutcome::kGivenUp;
  }
  RoceWriter::finish(open);
  context.sink.send(frame);
  return SendOutcome::kSent;
}

}  // namespace roci

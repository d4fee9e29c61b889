// Unreliable-connected queue pair (UC, IBTA 9.8): SEND and WRITE to one peer, without acknowledgments. A request
// completes when its last packet has been passed to the port. The sender waits when the port is full; there is no
// window.
//
// The responder repairs no loss. A packet that does not continue the current message ends it, and the next first or
// only packet starts a new one with any PSN.
//
// A local error of a request stops the send queue (SQE, IBTA 10.3.1.6). The receive queue continues.
#pragma once

#include "transport/queue_pair/queue_pair_core.hpp"

namespace roci {

class UnreliableQueuePair final : public QueuePairCore {
 public:
  UnreliableQueuePair(SparseArena& arena, const QueuePairConfig& c, CompletionRing& send_completions,
                      CompletionRing& recv_completions)
      : QueuePairCore(arena, c, send_completions, recv_completions) {}

  void on_packet(TransportContext& context, const FrameView& view, const rte_mbuf* frame) override;
  bool transmit(TransportContext& context, uint32_t budget) override;
  [[nodiscard]] Nanos deadline() const override {
    return gates == nullptr ? kNever : gates->requests.opens_at();
  }
  void on_deadline(TransportContext& /*context*/) override {}
  void on_unreachable(TransportContext& context) override;
  [[nodiscard]] Psn send_psn() const override { return next_psn_; }
  [[nodiscard]] Psn receive_psn() const override { return expected_; }

 private:
  [[nodiscard]] bool is_sending() const override { return packet_ != 0; }
  void reset_requester(Psn first) override;
  void reset_responder(Psn expected) override;

  // Requester.
  [[nodiscard]] bool may_send() const;
  bool execute_locally(TransportContext& context);
  [[nodiscard]] bool held(Nanos now);
  SendOutcome send_one(TransportContext& context);

  // Responder.
  void on_request(TransportContext& context, const FrameView& view, const rte_mbuf* frame);
  bool execute_send(TransportContext& context, const FrameView& view, const rte_mbuf* frame);
  bool execute_write(TransportContext& context, const FrameView& view, const rte_mbuf* frame);
  // Drops the current message. Its receive request is used for the next one. A request of a shared receive queue
  // completes with `status` instead, since a next message may never arrive (IBTA 9.9.3, class E).
  void abandon(TransportContext& context, ibv_wc_status status);

  Psn next_psn_;
  uint32_t packet_ = 0;  // index of the next packet of the oldest request

  Psn expected_;
  bool in_message_ = false;
  Operation operation_ = Operation::kSend;
  uint32_t received_ = 0;   // bytes of the current message
  uint32_t announced_ = 0;  // WRITE: DMA length of its RETH
  uint64_t va_ = 0;         // WRITE: address of its next byte
  MemoryKey rkey_{0};
};

}  // namespace roci

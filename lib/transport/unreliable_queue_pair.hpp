// An unreliable-connected queue pair (UC, IBTA 9.8): SEND and WRITE to one peer, without acknowledgements. A request is
// complete when its last packet has been handed to the port. What holds the sender back is the port: when that takes no
// more, the queue pair waits, and beyond that there is no window.
//
// The responder repairs nothing. A packet that does not go on with the message under way ends it, and the next first or
// only packet starts anew with whatever PSN it has.
//
// A local error of a request stops the send queue (SQE, IBTA 10.3.1.6) and leaves the receive queue at work.
#pragma once

#include "transport/queue_pair_core.hpp"

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
  void reset_requester(Psn first) override;
  void reset_responder(Psn expected) override;

  // Requester.
  [[nodiscard]] bool may_send() const;
  bool do_locally(TransportContext& context);
  [[nodiscard]] bool held(Nanos now);
  SendOutcome send_one(TransportContext& context);

  // Responder.
  void on_request(TransportContext& context, const FrameView& view, const rte_mbuf* frame);
  bool execute_send(TransportContext& context, const FrameView& view, const rte_mbuf* frame);
  bool execute_write(TransportContext& context, const FrameView& view, const rte_mbuf* frame);
  // Forgets the message under way. Its receive request serves the next one; one from a shared receive queue cannot
  // wait for that, perhaps for ever, and completes with this status (IBTA 9.9.3, class E).
  void abandon(TransportContext& context, ibv_wc_status status);

  Psn next_psn_;
  uint32_t packet_ = 0;  // of the oldest request, to be sent next

  Psn expected_;
  bool in_message_ = false;
  Operation operation_ = Operation::kSend;
  uint32_t received_ = 0;   // bytes of the message under way
  uint32_t announced_ = 0;  // WRITE: DMA length of its RETH
  uint64_t va_ = 0;         // WRITE: where its next byte goes
  MemoryKey rkey_{0};
};

}  // namespace roci

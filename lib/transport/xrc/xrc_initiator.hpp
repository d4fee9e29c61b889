// Initiator of an eXtended Reliable Connection (XRC, IBTA annex A14): an RC requester whose requests each contain the
// number of a shared receive queue of the peer. It has no responder and no receive queue.
#pragma once

#include "transport/queue_pair/queue_pair_core.hpp"
#include "transport/rc/requester.hpp"

namespace roci {

class XrcInitiator final : public QueuePairCore {
 public:
  XrcInitiator(SparseArena& arena, const QueuePairConfig& config, CompletionRing& send_cq,
               CompletionRing& recv_cq);

  void on_packet(TransportContext& context, const FrameView& view, const rte_mbuf* frame) override;
  uint8_t* payload_target(const MemoryTable& memory, const FrameView& view) override;
  bool transmit(TransportContext& context, uint32_t budget) override;
  [[nodiscard]] Nanos deadline() const override { return requester.deadline(); }
  void on_deadline(TransportContext& context) override { requester.on_deadline(context); }
  void note_resumed(Nanos now) override { requester.note_resumed(now); }
  void on_unreachable(TransportContext& context) override;
  [[nodiscard]] const SendFlow* flow(Direction of) const override {
    return of == Direction::kRequests ? &requester.flow() : nullptr;
  }
  [[nodiscard]] const ReceiveFlow* received_responses() const override { return &requester.response_flow(); }
  [[nodiscard]] Psn send_psn() const override { return requester.next_psn(); }
  [[nodiscard]] Psn receive_psn() const override { return expected_; }

  Requester requester;

 private:
  [[nodiscard]] bool is_sending() const override { return !requester.idle(); }
  void reset_requester(Psn first) override { requester.reset(first); }
  void reset_responder(Psn expected) override { expected_ = expected; }

  Psn expected_;  // as set by modify(); never advanced
};

}  // namespace roci

// Target of an eXtended Reliable Connection (XRC, IBTA annex A14): an RC responder without its own receive queue,
// completion queue and protection domain. Each request contains the number of a shared receive queue in the target's
// XRC domain. The protection domain of that queue determines the accessible memory, and the queue provides and
// completes receive requests.
#pragma once

#include "transport/queue_pair/queue_pair_core.hpp"
#include "transport/rc/responder.hpp"
#include "transport/xrc/xrc_receive_queues.hpp"

namespace roci {

// `config.srq`, `config.pd` and `recv_cq` are those of the queue in the last message.
class XrcTarget final : public QueuePairCore {
 public:
  // `queues` and `domain` outlive the target.
  XrcTarget(SparseArena& arena, const QueuePairConfig& config, XrcReceiveQueues& queues,
            const XrcDomainCore& domain);

  void on_packet(TransportContext& context, const FrameView& view, const rte_mbuf* frame) override;
  uint8_t* payload_target(const MemoryTable& memory, const FrameView& view) override;
  bool transmit(TransportContext& context, uint32_t budget) override;
  [[nodiscard]] Nanos deadline() const override {
    return gates == nullptr ? kNever : gates->responses.opens_at();
  }
  void on_deadline(TransportContext& /*context*/) override {}
  [[nodiscard]] bool has_pending_responses() const override { return responder.has_responses(); }
  [[nodiscard]] bool owes_acknowledgment() const override { return responder.owes_acknowledgment(); }
  void acknowledge(TransportContext& context) override;
  void discard_responses() override { responder.discard_responses(); }
  void on_unreachable(TransportContext& /*context*/) override {}  // it sends responses only
  [[nodiscard]] const SendFlow* flow(Direction of) const override {
    return of == Direction::kResponses ? &responder.response_flow() : nullptr;
  }
  [[nodiscard]] const ReceiveFlow* received_requests() const override { return &responder.flow(); }
  [[nodiscard]] int remember_reads(uint32_t reads) override { return responder.remember(reads); }
  [[nodiscard]] Psn send_psn() const override { return first_; }
  [[nodiscard]] Psn receive_psn() const override { return responder.expected(); }

  // Called before `queue` is destroyed. Discards the receive request of the current message.
  void detach(const XrcReceiveQueue& queue);

  Responder responder;

 private:
  void reset_requester(Psn first) override { first_ = first; }
  void reset_responder(Psn expected) override;
  bool take_named_queue(TransportContext& context, const FrameView& view);
  void name(const XrcReceiveQueue* queue);

  XrcReceiveQueues& queues_;
  const XrcDomainCore& domain_;
  const XrcReceiveQueue* named_ = nullptr;
  Psn first_;  // as set by modify(); it sends no requests
};

}  // namespace roci

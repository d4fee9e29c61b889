// The receiving end of an eXtended Reliable Connection (XRC, IBTA annex A14): an RC responder without a queue, a completion
// queue or a protection domain of its own. Every request names a shared receive queue of the target's domain, whose
// protection domain says what memory may be touched, and which serves and completes what needs a receive request.
#pragma once

#include "transport/queue_pair_core.hpp"
#include "transport/responder.hpp"
#include "transport/xrc_receive_queues.hpp"

namespace roci {

// `config.srq`, `config.pd` and `recv_cq` are those of the queue that the last message named.
class XrcTarget final : public QueuePairCore {
 public:
  // `queues` and `domain` outlive it.
  XrcTarget(SparseArena& arena, const QueuePairConfig& config, XrcReceiveQueues& queues,
            const XrcDomainCore& domain);

  void on_packet(TransportContext& context, const FrameView& view, const rte_mbuf* frame) override;
  uint8_t* place_of(const MemoryTable& memory, const FrameView& view) override;
  bool transmit(TransportContext& context, uint32_t budget) override;
  [[nodiscard]] Nanos deadline() const override {
    return gates == nullptr ? kNever : gates->responses.opens_at();
  }
  void on_deadline(TransportContext& /*context*/) override {}
  [[nodiscard]] bool owes_answers() const override { return responder.has_answers(); }
  void on_unreachable(TransportContext& /*context*/) override {}  // it only answers
  [[nodiscard]] const SendFlow* flow(Direction of) const override {
    return of == Direction::kResponses ? &responder.response_flow() : nullptr;
  }
  [[nodiscard]] const ReceiveFlow* received_requests() const override { return &responder.flow(); }
  [[nodiscard]] int remember_reads(uint32_t reads) override { return responder.remember(reads); }
  [[nodiscard]] Psn send_psn() const override { return first_; }
  [[nodiscard]] Psn receive_psn() const override { return responder.expected(); }

  // The queue goes away, and with it the request that a message under way holds.
  void forget(const XrcReceiveQueue& queue);

  Responder responder;

 private:
  void reset_requester(Psn first) override { first_ = first; }
  void reset_responder(Psn expected) override;
  bool take_named_queue(TransportContext& context, const FrameView& view);
  void name(const XrcReceiveQueue* queue);

  XrcReceiveQueues& queues_;
  const XrcDomainCore& domain_;
  const XrcReceiveQueue* named_ = nullptr;
  Psn first_;  // as it was set; it sends no requests
};

}  // namespace roci

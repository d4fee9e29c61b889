// A datagram queue pair (UD, IBTA 9.8.3): single packets to and from anybody who has the Q_Key, and to and from
// multicast groups. A request is complete when its packet has been handed to the port.
//
// Requests leave in the order in which they were posted: one whose next hop is still being looked for holds up those
// behind it, until somebody answers for it or nobody has (Neighbours, about three seconds). Then it is as lost as if a
// switch on the way had dropped it and completes like any other: an error would stop all other destinations too.
#pragma once

#include "transport/queue_pair_core.hpp"

namespace roci {

class DatagramQueuePair final : public QueuePairCore {
 public:
  DatagramQueuePair(SparseArena& arena, const QueuePairConfig& c, CompletionRing& send_completions,
                    CompletionRing& recv_completions)
      : QueuePairCore(arena, c, send_completions, recv_completions) {}

  void on_packet(TransportContext& context, const FrameView& view, const rte_mbuf* frame) override;
  bool transmit(TransportContext& context, uint32_t budget) override;
  [[nodiscard]] Nanos deadline() const override { return kNever; }
  void on_deadline(TransportContext& /*context*/) override {}
  void on_unreachable(TransportContext& /*context*/) override {}  // it has no peer
  [[nodiscard]] Psn send_psn() const override { return next_psn_; }
  [[nodiscard]] Psn receive_psn() const override { return {}; }

 private:
  void reset_requester(Psn first) override { next_psn_ = first; }
  void reset_responder(Psn /*expected*/) override {}
  SendOutcome send_one(TransportContext& context, RoceWriter& headers, const SendWqe& wqe);

  Psn next_psn_;
};

}  // namespace roci

// Datagram queue pair (UD, IBTA 9.8.3): single packets to and from any queue pair with the Q_Key, and to and from
// multicast groups. A request completes when its packet has been passed to the port.
//
// Requests are sent in the order in which they were posted. A request whose next hop is being resolved (Neighbors,
// about three seconds) delays the requests after it. When resolution fails, the datagram counts as lost in the network
// and the request completes with success: an error would stop the sends to all other destinations too.
#pragma once

#include "transport/queue_pair/queue_pair_core.hpp"

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
  void on_unreachable(TransportContext& /*context*/) override {}  // no connected peer
  [[nodiscard]] Psn send_psn() const override { return next_psn_; }
  [[nodiscard]] Psn receive_psn() const override { return {}; }

 private:
  void reset_requester(Psn first) override { next_psn_ = first; }
  void reset_responder(Psn /*expected*/) override {}
  SendOutcome send_one(TransportContext& context, RoceWriter& headers, const SendWqe& wqe);

  Psn next_psn_;
};

}  // namespace roci

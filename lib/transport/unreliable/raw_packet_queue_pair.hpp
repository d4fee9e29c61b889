// Raw packet queue pair (IBV_QPT_RAW_PACKET): sends and receives whole Ethernet frames, without the frame check sequence.
// The program writes all headers. Received frames are those that the flow rules of the queue pair select
// (engine/management/steering_table.hpp). A request completes when its frame has been passed to the port.
#pragma once

#include "transport/queue_pair/queue_pair_core.hpp"

namespace roci {

// `path_mtu` of its attributes is the port's MTU.
class RawPacketQueuePair final : public QueuePairCore {
 public:
  RawPacketQueuePair(SparseArena& arena, const QueuePairConfig& c, CompletionRing& send_completions,
                     CompletionRing& recv_completions)
      : QueuePairCore(arena, c, send_completions, recv_completions) {}

  // A RoCEv2 packet to this number: none is addressed to a raw packet queue pair.
  void on_packet(TransportContext& context, const FrameView& view, const rte_mbuf* frame) override;
  void on_frame(TransportContext& context, const rte_mbuf& frame) override;
  bool transmit(TransportContext& context, uint32_t budget) override;
  [[nodiscard]] Nanos deadline() const override { return kNever; }
  void on_deadline(TransportContext& /*context*/) override {}
  void on_unreachable(TransportContext& /*context*/) override {}  // no connected peer
  [[nodiscard]] Psn send_psn() const override { return {}; }
  [[nodiscard]] Psn receive_psn() const override { return {}; }

 private:
  void reset_requester(Psn /*first*/) override {}
  void reset_responder(Psn /*expected*/) override {}
  SendOutcome send_one(TransportContext& context, const SendWqe& wqe);
};

}  // namespace roci

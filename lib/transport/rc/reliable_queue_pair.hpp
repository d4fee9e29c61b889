// Reliable-connected queue pair (RC): dispatches packets to a requester and a responder.
//
//              post_send             packets of the peer
//                  |                        |
//             [send queue]            dispatch by opcode ----------------+
//                  |                        |                            |
//              Requester  <--- responses ---+                        Responder ---> [recv queue]
//         (requests out, their              |                  (requests in, their
//          completions)                     +--- CNP: counted    responses out)
#pragma once

#include "transport/queue_pair/queue_pair_core.hpp"
#include "transport/rc/requester.hpp"
#include "transport/rc/responder.hpp"

namespace roci {

class ReliableQueuePair final : public QueuePairCore {
 public:
  ReliableQueuePair(SparseArena& arena, const QueuePairConfig& config, CompletionRing& send_cq,
                    CompletionRing& recv_cq);

  void on_packet(TransportContext& context, const FrameView& view, const rte_mbuf* frame) override;
  uint8_t* payload_target(const MemoryTable& memory, const FrameView& view) override;
  bool transmit(TransportContext& context, uint32_t budget) override;
  [[nodiscard]] Nanos deadline() const override {
    return gates == nullptr ? requester.deadline()
                            : std::min(requester.deadline(), gates->responses.opens_at());
  }
  void on_deadline(TransportContext& context) override { requester.on_deadline(context); }
  void note_resumed(Nanos now) override { requester.note_resumed(now); }
  [[nodiscard]] bool waits_to_send() const override { return requester.waits_to_send(); }
  [[nodiscard]] bool has_pending_responses() const override { return responder.has_responses(); }
  [[nodiscard]] bool owes_acknowledgment() const override { return responder.owes_acknowledgment(); }
  void acknowledge(TransportContext& context) override;
  void discard_responses() override { responder.discard_responses(); }
  void on_peer_exit(TransportContext& context) override { requester.on_peer_exit(context); }
  void on_unreachable(TransportContext& context) override;
  [[nodiscard]] const SendFlow* flow(Direction of) const override {
    return of == Direction::kRequests ? &requester.flow() : &responder.response_flow();
  }
  [[nodiscard]] const ReceiveFlow* received_requests() const override { return &responder.flow(); }
  [[nodiscard]] const ReceiveFlow* received_responses() const override { return &requester.response_flow(); }
  bool request_probe(Nanos now) override { return requester.request_probe(now, Requester::Probe::kAtOnce); }
  [[nodiscard]] int remember_reads(uint32_t reads) override { return responder.remember(reads); }
  [[nodiscard]] Psn send_psn() const override { return requester.next_psn(); }
  [[nodiscard]] Psn receive_psn() const override { return responder.expected(); }

  Requester requester;
  Responder responder;

 private:
  [[nodiscard]] bool is_sending() const override { return !requester.idle(); }
  void reset_requester(Psn first) override { requester.reset(first); }
  void reset_responder(Psn expected) override { responder.reset(expected, attributes.max_dest_rd_atomic); }
  void flush(TransportContext& context);
  void dispatch(TransportContext& context, const FrameView& view, const rte_mbuf* frame,
                const ExtensionView& block);
  bool open_extensions(TransportContext& context, FrameView& view, const rte_mbuf* frame,
                       ExtensionView& block);
  void on_private(TransportContext& context, const FrameView& view, const ExtensionView& block);
  void on_switch_report(TransportContext& context, const FrameView& view);
};

}  // namespace roci

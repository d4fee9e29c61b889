// The responder of a queue pair: executes request packets in PSN order and answers them (IBTA 9.7.4, 9.7.5). Answers
// leave in PSN order too: READ responses first, then one acknowledgement for everything executed up to then, so that
// a batch of requests costs one ACK.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/sequence.hpp"
#include "transport/flow.hpp"
#include "transport/packet_sink.hpp"
#include "transport/send_gate.hpp"
#include "wire/aeth.hpp"
#include "wire/extensions.hpp"
#include "wire/frame.hpp"

namespace roci {

class ExtensionSession;
class QueuePairCore;

class Responder {
 public:
  explicit Responder(QueuePairCore& qp) : qp_(qp) {}
  ~Responder();
  Responder(const Responder&) = delete;
  Responder& operator=(const Responder&) = delete;

  // Expects `expected` next and can remember `reads` READ requests (max_dest_rd_atomic).
  void reset(Psn expected, uint32_t reads);
  // Changes how many it can remember; the latest ones stay. 0, or with nothing changed EBUSY while any is being answered,
  // or ENOMEM.
  int remember(uint32_t reads);
  // `block`: the packet's extension block, absent when it has none. The frame may be kept (reorder_buffer.hpp).
  void on_request(TransportContext& context, const FrameView& view, const rte_mbuf* frame,
                  const ExtensionView& block);
  // The packet, which is the expected one, is an invalid request, for what its sender knows and the responder does not.
  void refuse(TransportContext& context, const FrameView& view);
  // QueuePairCore::place_of() of a request.
  [[nodiscard]] uint8_t* place_of(const MemoryTable& memory, const FrameView& view);
  // The peer acknowledges READ responses, or asks for a round trip.
  void on_read_acknowledge(TransportContext& context, const FrameView& view, const ExtensionView& block);
  void on_probe(TransportContext& context, const FrameView& view);
  // Whether the packet that a switch speaks of is a READ response of ours that has been sent, and may be under way.
  [[nodiscard]] bool has_under_way(const OpcodeInfo& sampled, Psn psn) const;
  // Sends answers that are due. True when more are left.
  bool transmit(TransportContext& context, uint32_t& budget);
  // Completes everything posted to the receive queue as flushed, the message under way first.
  void flush(TransportContext& context);
  [[nodiscard]] bool has_answers() const { return active_answers_ > 0 || pending_ != Pending::kNone; }

  // What has arrived of the requests, and what the other end has said about the READ responses.
  [[nodiscard]] const ReceiveFlow& flow() const { return flow_; }
  [[nodiscard]] const SendFlow& response_flow() const;
  void set_first_lsn(Lsn lsn) { flow_.received = lsn; }  // as the peer's requester

  [[nodiscard]] bool in_message() const { return in_message_; }
  [[nodiscard]] Psn expected() const { return expected_; }
  [[nodiscard]] Msn msn() const { return msn_; }

 private:
  // What a check or an execution step made of the packet.
  enum class Verdict : uint8_t {
    kExecuted,        // go on; expected PSN moves
    kDropped,         // silently
    kNotReady,        // RNR NAK: no receive request is posted
    kInvalidRequest,  // NAK 1 and the error state
    kTooLong,         // the same, and the receive completion tells
    kAccessError,     // NAK 2 and the error state
    kNotInvalidated,  // the same, and the receive completion tells
    kOperationError,  // NAK 3 and the error state
  };
  // The answer that waits behind the READ responses.
  enum class Pending : uint8_t { kNone, kAck, kRetry /* NAK 0 or RNR */, kFatal /* NAK 1, 2 or 3 */ };
  // A READ or atomic request that was executed, kept for duplicates as long as max_dest_rd_atomic later ones have not
  // come (IBTA 9.7.4.1.4's responder resources).
  struct Resource {
    Operation operation = Operation::kReadRequest;
    Psn first{};
    uint32_t packets = 0;  // of the answer
    uint32_t sent = 0;     // of them, at least once
    uint64_t va = 0;
    uint32_t rkey = 0;
    uint32_t length = 0;
    uint64_t original = 0;  // atomics: what was there before
    Msn msn{};
    PdNumber pd{0};       // whose memory was asked for
    Lsn lsn{};            // of the answer's first byte
    bool replay = false;  // its answer has been sent before, whole
    uint32_t begin = 0;   // packet at which the answer under way began
    uint32_t next = 0;    // packet to be sent next; `end` when all have been
    uint32_t end = 0;     // one past the packet at which it ends
    [[nodiscard]] bool active() const { return next < end; }
    [[nodiscard]] uint32_t bytes() const {  // of the answer
      return operation == Operation::kReadRequest ? length : static_cast<uint32_t>(sizeof original);
    }
  };

  // What answering READs and atomics takes. There is memory for it as soon as their number is known, and nothing is
  // written there before the first one comes: many queue pairs are never asked for any.
  struct Answers {
    SendFlow flow;
    // A ring in PSN order from next_resource_, the oldest and next to be overwritten.
    [[nodiscard]] Resource* resources() { return reinterpret_cast<Resource*>(this + 1); }
  };
  static size_t answers_bytes(uint32_t reads) { return sizeof(Answers) + reads * sizeof(Resource); }
  void make_answers();
  // Those that there are; none before the first request.
  [[nodiscard]] std::span<Resource> resources() const {
    return {answers_made_ ? answers_->resources() : nullptr, answers_made_ ? resource_count_ : size_t{0}};
  }

  [[nodiscard]] ExtensionSession* session() const;

  // responder.cpp
  // In PSN order, from the wire or kept before.
  Verdict take(TransportContext& context, const FrameView& view, const rte_mbuf* frame);
  void take_kept(TransportContext& context);
  void on_gap(TransportContext& context, const FrameView& view, const rte_mbuf* frame, int32_t ahead);
  [[nodiscard]] bool must_cut(const FrameView& view) const;
  void send_acknowledgement_now(TransportContext& context);
  // The chain of checks, in the order of IBTA 9.7.4.1.
  Verdict check_sequence(const FrameView& view) const;
  Verdict check_length(const FrameView& view) const;
  Verdict execute(TransportContext& context, const FrameView& view, const rte_mbuf* frame);
  Verdict execute_send(TransportContext& context, const FrameView& view, const rte_mbuf* frame);
  void grant(Placement& placement, const MemoryTable& memory);
  Verdict execute_write(TransportContext& context, const FrameView& view, const rte_mbuf* frame);
  Verdict execute_read(TransportContext& context, const FrameView& view);
  Verdict execute_atomic(TransportContext& context, const FrameView& view);
  void complete_message(TransportContext& context, const FrameView& view);
  // Notes what is owed for the packet.
  void answer(TransportContext& context, const FrameView& view, Verdict verdict);
  void owe_retry(uint8_t syndrome);
  // The NAK that ends the queue pair.
  void end_with(NakCode code, Psn psn);

  // responder_answers.cpp
  [[nodiscard]] uint8_t next_resource(uint8_t index) const {
    return index + 1 == resource_count_ ? uint8_t{0} : static_cast<uint8_t>(index + 1);
  }
  [[nodiscard]] bool resource_free() const;
  Resource& take_resource();
  void start_answer(Resource& resource);
  void activate(Resource& resource, uint32_t from, uint32_t end);
  // The one with an answer under way that was accepted first; there is one.
  Resource& front_resource();
  void drop_answers();
  [[nodiscard]] uint64_t offset_of(uint32_t packet) const;
  [[nodiscard]] uint32_t packet_bytes(const Resource& resource, uint32_t packet) const;
  void on_duplicate(TransportContext& context, const FrameView& view);
  void replay_read(TransportContext& context, const FrameView& view);
  void replay_atomic(TransportContext& context, const FrameView& view);
  void replay(Resource& resource, uint32_t from, uint32_t end);
  void note_acknowledged(const Resource& resource, uint32_t packets);
  [[nodiscard]] bool has_window_for(const Resource& resource) const;
  // Whether congestion control holds the next packet of the answer back.
  [[nodiscard]] bool held(Nanos now, const Resource& resource) const;
  [[nodiscard]] uint64_t in_flight_before(const SendGate& gate, Lsn at) const;
  [[nodiscard]] bool leaves_as_not_ect(const Resource& read, Lsn at, uint32_t length) const;
  bool send_answer(TransportContext& context, Resource& resource);
  SendOutcome send_read_response(TransportContext& context, const Resource& read);
  SendOutcome send_atomic_response(TransportContext& context, const Resource& atomic);
  bool send_pending(TransportContext& context);
  // Acknowledges what was executed before a READ or atomic. False when there was no buffer.
  bool acknowledge_before(TransportContext& context, const Resource& resource);
  bool send_probe_response(TransportContext& context);
  bool send_window_message(TransportContext& context);

  QueuePairCore& qp_;

  Psn expected_;
  Msn msn_;
  Pending pending_ = Pending::kNone;
  uint8_t pending_syndrome_ = 0;
  bool pending_ce_ = false;        // what it acknowledges was marked
  bool executed_any_ : 1 = false;  // since reset; before, nothing can be a duplicate
  // A packet from before the first active answer has arrived again: the requester may lack its acknowledgment.
  bool duplicate_before_answers_ : 1 = false;
  bool nak_sent_ = false;    // one NAK or RNR NAK per gap: silent until the expected PSN arrives
  bool in_message_ = false;  // a message is under way, of this operation
  Operation operation_ = Operation::kSend;
  bool answers_made_ = false;  // what answers_ points to has been written
  Psn pending_psn_;
  uint32_t pending_packets_ = 0;  // that it acknowledges

  ReceiveFlow flow_;

  // The message under way.
  uint32_t received_ = 0;   // bytes of it so far
  uint32_t announced_ = 0;  // WRITE: DMA length of its RETH
  MemoryKey rkey_{0};
  // Requests remembered.
  uint8_t resource_count_ = 0;
  uint8_t next_resource_ = 0;
  uint8_t front_resource_ = 0;  // none before it in that order is active
  uint8_t active_answers_ = 0;
  uint64_t va_ = 0;             // WRITE: where the next byte of the message under way goes
  Answers* answers_ = nullptr;  // room for resource_count_ requests
};

}  // namespace roci

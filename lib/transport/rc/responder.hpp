// Responder of a queue pair: executes request packets in PSN order and sends the responses (IBTA 9.7.4, 9.7.5).
// Responses are sent in PSN order too: READ responses first, then one acknowledgment for everything executed, so that a
// batch of requests costs one ACK.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/sequence.hpp"
#include "transport/packet_sink.hpp"
#include "transport/queue_pair/flow.hpp"
#include "transport/queue_pair/send_gate.hpp"
#include "wire/extensions/extensions.hpp"
#include "wire/headers/aeth.hpp"
#include "wire/roce/frame.hpp"

namespace roci {

class ExtensionSession;
class QueuePairCore;

// Responder of an RC queue pair or an XRC target. Part of its queue pair, with the same thread rules.
class Responder {
 public:
  explicit Responder(QueuePairCore& qp) : qp_(qp) {}
  ~Responder();
  Responder(const Responder&) = delete;
  Responder& operator=(const Responder&) = delete;

  // `expected`: first PSN. `reads`: number of READs and atomics whose responses can be repeated (max_dest_rd_atomic).
  void reset(Psn expected, uint32_t reads);
  // Changes the number of stored READs and atomics; the latest ones are kept. Returns 0; without effect EBUSY while a
  // response is being sent, or ENOMEM.
  int remember(uint32_t reads);
  // `block`: the packet's extension block; kNoExtensions without one. The frame may be buffered (reorder_buffer.hpp).
  void on_request(TransportContext& context, const FrameView& view, const rte_mbuf* frame,
                  const ExtensionView& block);
  // Rejects the expected packet as an invalid request, for a reason that the caller has detected.
  void refuse(TransportContext& context, const FrameView& view);
  // QueuePairCore::payload_target() for a request.
  [[nodiscard]] uint8_t* payload_target(const MemoryTable& memory, const FrameView& view);
  // An acknowledgment of READ responses, and a probe.
  void on_read_acknowledge(TransportContext& context, const FrameView& view, const ExtensionView& block);
  void on_probe(TransportContext& context, const FrameView& view);
  // Whether a packet that a switch reports is a READ response of this responder that may be in flight.
  [[nodiscard]] bool has_in_flight(const OpcodeInfo& sampled, Psn psn) const;
  // Sends responses that are due. True when more are left.
  bool transmit(TransportContext& context, uint32_t& budget);
  // QueuePairCore::owes_acknowledgment() and acknowledge().
  [[nodiscard]] bool owes_acknowledgment() const;
  void acknowledge(TransportContext& context);
  // Completes all receive requests with a flush error, that of the current message first.
  void flush(TransportContext& context);
  // Ends all READ responses and atomic results that have not been sent.
  void discard_responses();
  [[nodiscard]] bool has_responses() const { return active_responses_ > 0 || pending_ != Pending::kNone; }

  // Receiver state of the requests, and sender state of the READ responses.
  [[nodiscard]] const ReceiveFlow& flow() const { return flow_; }
  [[nodiscard]] const SendFlow& response_flow() const;
  void set_first_lsn(Lsn lsn) { flow_.received = lsn; }  // must equal that of the peer's requester

  [[nodiscard]] bool in_message() const { return in_message_; }
  [[nodiscard]] Psn expected() const { return expected_; }
  [[nodiscard]] Msn msn() const { return msn_; }

 private:
  // Result of a check or of an execution step.
  enum class Verdict : uint8_t {
    kExecuted,        // continue; the expected PSN advances
    kDropped,         // without response
    kNotReady,        // RNR NAK: no receive request is posted
    kInvalidRequest,  // NAK 1 and the error state
    kTooLong,         // the same, and an error in the receive completion
    kAccessError,     // NAK 2 and the error state
    kAccessReported,  // the same, and an error in the receive completion
    kOperationError,  // NAK 3 and the error state
  };
  // Acknowledgment to be sent after the READ responses.
  enum class Pending : uint8_t { kNone, kAck, kRetry /* NAK 0 or RNR */, kFatal /* NAK 1, 2 or 3 */ };
  // An executed READ, atomic, flush or atomic write request, stored for duplicates until max_dest_rd_atomic later ones have arrived
  // (responder resources of IBTA 9.7.4.1.4).
  struct Resource {
    Operation operation = Operation::kReadRequest;
    Psn first{};
    uint32_t packets = 0;  // of the response
    uint32_t sent = 0;     // of them, at least once
    uint64_t va = 0;
    uint32_t rkey = 0;
    uint32_t length = 0;
    uint64_t original = 0;  // atomics: value before the operation
    Msn msn{};
    PdNumber pd{0};       // protection domain of the requested memory
    Lsn lsn{};            // of the response's first byte
    bool replay = false;  // the whole response has been sent before
    uint32_t begin = 0;   // first packet of the current response
    uint32_t next = 0;    // packet to be sent next; `end` when all have been
    uint32_t end = 0;     // one past the last packet of the current response
    [[nodiscard]] bool active() const { return next < end; }
    [[nodiscard]] uint32_t bytes() const {  // of the response
      return is_atomic() ? static_cast<uint32_t>(sizeof original) : length;
    }
    [[nodiscard]] bool is_atomic() const {
      return operation == Operation::kCompareSwap || operation == Operation::kFetchAdd;
    }
  };

  // State for responses to READs and atomics. Allocated when the number of requests is known, and first written at the
  // first request: many queue pairs never receive one.
  struct ResponseState {
    SendFlow flow;
    // Ring in PSN order. next_resource_ is the oldest entry, which is overwritten next.
    [[nodiscard]] Resource* resources() { return reinterpret_cast<Resource*>(this + 1); }
  };
  static size_t response_state_bytes(uint32_t reads) {
    return sizeof(ResponseState) + reads * sizeof(Resource);
  }
  void allocate_responses();
  // The stored requests; empty before the first one.
  [[nodiscard]] std::span<Resource> resources() const {
    return {responses_allocated_ ? response_state_->resources() : nullptr,
            responses_allocated_ ? resource_count_ : size_t{0}};
  }

  [[nodiscard]] ExtensionSession* session() const;
  static constexpr uint32_t kDiscardEvery = 1U << 20;  // PSNs
  // Packets in flight of any real peer. In each interval at most one NAK is sent for a longer gap.
  static constexpr int32_t kLargestGap = 1 << 16;
  static constexpr Nanos kFarNakInterval = std::chrono::milliseconds{100};

  // responder.cpp
  // Executes a packet in PSN order, new or buffered.
  Verdict take(TransportContext& context, const FrameView& view, const rte_mbuf* frame);
  void execute_buffered(TransportContext& context);
  void on_gap(TransportContext& context, const FrameView& view, const rte_mbuf* frame, int32_t ahead);
  // Whether frames contain the payload: not on devices without payload (RoceWriter::Contents).
  [[nodiscard]] bool has_payload() const;
  // Compares a request with the buffered one of the same PSN, and discards both if they differ.
  bool discard_if_different(TransportContext& context, const FrameView& view, const rte_mbuf* frame);
  [[nodiscard]] bool must_acknowledge_first(const FrameView& view) const;
  void send_acknowledgment_now(TransportContext& context);
  // The checks, in the order of IBTA 9.7.4.1.
  Verdict check_sequence(const FrameView& view) const;
  Verdict check_length(const FrameView& view) const;
  Verdict execute(TransportContext& context, const FrameView& view, const rte_mbuf* frame);
  Verdict execute_send(TransportContext& context, const FrameView& view, const rte_mbuf* frame);
  void grant(Placement& placement, const MemoryTable& memory);
  Verdict execute_write(TransportContext& context, const FrameView& view, const rte_mbuf* frame);
  Verdict refuse_write(TransportContext& context, const OpcodeInfo& info, bool receive_taken);
  Verdict execute_read(TransportContext& context, const FrameView& view);
  Verdict execute_atomic(TransportContext& context, const FrameView& view);
  Verdict execute_flush(TransportContext& context, const FrameView& view);
  Verdict execute_atomic_write(TransportContext& context, const FrameView& view, const rte_mbuf* frame);
  void answer_without_data(const FrameView& view);
  void complete_message(TransportContext& context, const FrameView& view);
  // Records the response to the packet.
  void answer(TransportContext& context, const FrameView& view, Verdict verdict);
  void set_pending_nak(uint8_t syndrome);
  // Schedules a NAK that ends the connection, and enters the error state.
  void end_with(NakCode code, Psn psn);

  // responder_send.cpp
  [[nodiscard]] uint8_t next_resource(uint8_t index) const {
    return index + 1 == resource_count_ ? uint8_t{0} : static_cast<uint8_t>(index + 1);
  }
  [[nodiscard]] bool resource_free() const;
  Resource& take_resource();
  void start_response(Resource& resource);
  void discard_old_requests();
  void activate(Resource& resource, uint32_t from, uint32_t end);
  // The oldest entry with a response to be sent. Requires that there is one.
  Resource& front_resource();
  [[nodiscard]] uint64_t offset_of(uint32_t packet) const;
  [[nodiscard]] uint32_t packet_bytes(const Resource& resource, uint32_t packet) const;
  void on_duplicate(TransportContext& context, const FrameView& view);
  void replay_read(TransportContext& context, const FrameView& view);
  void replay_result(TransportContext& context, const FrameView& view);
  void replay(Resource& resource, uint32_t from, uint32_t end);
  void note_acknowledged(const Resource& resource, uint32_t packets);
  [[nodiscard]] bool has_window_for(const Resource& resource) const;
  // Whether congestion control holds back the next packet of the response.
  [[nodiscard]] bool held(Nanos now, const Resource& resource) const;
  [[nodiscard]] uint64_t in_flight_before(const SendGate& gate, Lsn at) const;
  [[nodiscard]] bool sends_as_not_ect(const Resource& read, Lsn at, uint32_t length) const;
  bool send_response(TransportContext& context, Resource& resource);
  SendOutcome send_read_response(TransportContext& context, const Resource& read);
  SendOutcome send_atomic_response(TransportContext& context, const Resource& atomic);
  struct Acknowledgment {
    uint8_t syndrome;
    Psn psn;
    Msn msn;
    Psn expected;  // that the receiver window counts from
    bool becn = false;
  };
  // Sends an ACK or a NAK. False when there was no buffer.
  bool send_acknowledgment(TransportContext& context, const Acknowledgment& what, bool with_sack);
  [[nodiscard]] bool contains(const Resource& resource, uint32_t behind) const;
  // PSN of an acknowledgment of everything before expected_.
  [[nodiscard]] Psn acknowledged_psn() const {
    return responses_allocated_ ? psn_before_responses() : expected_ - 1;
  }
  [[nodiscard]] Psn psn_before_responses() const;
  bool send_pending(TransportContext& context);
  // Acknowledges everything executed before a READ or atomic. False when there was no buffer.
  bool acknowledge_before(TransportContext& context, const Resource& resource);
  bool send_probe_response(TransportContext& context);
  bool send_window_message(TransportContext& context);

  QueuePairCore& qp_;

  Psn expected_;
  Msn msn_;
  Pending pending_ = Pending::kNone;
  uint8_t pending_syndrome_ = 0;
  bool pending_ce_ = false;        // a packet that it acknowledges was marked
  bool executed_any_ : 1 = false;  // since reset; before that, no packet can be a duplicate
  // A packet before the first unsent response was received again: the requester may lack its acknowledgment.
  bool duplicate_before_responses_ : 1 = false;
  bool nak_sent_ = false;    // one NAK or RNR NAK per gap, until the expected PSN arrives
  bool in_message_ = false;  // a message with operation_ is being received
  Operation operation_ = Operation::kSend;
  bool responses_allocated_ = false;  // the memory of response_state_ has been initialized
  Psn pending_psn_;
  uint16_t pending_packets_ =
      0;  // number of packets that it acknowledges; may wrap around while READ responses delay it
  uint16_t far_nak_interval_ = UINT16_MAX;  // of the last NAK for a gap longer than kLargestGap

  ReceiveFlow flow_;

  // State of the current message.
  uint32_t received_ = 0;   // bytes received
  uint32_t announced_ = 0;  // WRITE: DMA length of its RETH
  MemoryKey rkey_{0};
  // Stored requests.
  uint8_t resource_count_ = 0;
  uint8_t next_resource_ = 0;
  uint8_t front_resource_ = 0;  // entries before it in ring order have no response to be sent
  uint8_t active_responses_ = 0;
  uint64_t va_ = 0;                          // WRITE: address of the next byte of the current message
  ResponseState* response_state_ = nullptr;  // memory for resource_count_ requests
};

}  // namespace roci

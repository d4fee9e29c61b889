// Requester of a queue pair: sends request packets for send work requests, and completes them on responses (IBTA 9.7.3,
// 9.7.6, 9.7.7).
//
//   done                    una                 cursor            posted
//    |<--- acknowledged ---->|<--- in flight ---->|<--- to send --->|        (send queue, packets)
//
// Go-back-N: a retry moves the cursor back to una, the oldest unacknowledged packet. `sent_end` is the highest position
// that the cursor has had: a response to a later PSN is invalid. With selective repeat the cursor stays, and a second
// cursor passes over the missing packets before it.
//
// A time-out or a silence does not prove a loss. Without selective repeat only the oldest packet is then retransmitted
// (LossRecovery::Probing). Its acknowledgment decides whether the cursor continues from there or returns to `sent_end`.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/sequence.hpp"
#include "base/trace_points.hpp"
#include "base/types.hpp"
#include "transport/packet_sink.hpp"
#include "transport/queue_pair/flow.hpp"
#include "transport/queues/work_queue.hpp"
#include "transport/rc/loss_recovery.hpp"
#include "wire/extensions/extensions.hpp"
#include "wire/roce/frame.hpp"

namespace roci {

class ExtensionSession;
class QueuePairCore;
class SackBoard;
class SendGate;
struct MessagePacket;
struct PacketExtras;

// Requester of an RC queue pair or an XRC initiator. Part of its queue pair, with the same thread rules.
class Requester {
 public:
  explicit Requester(QueuePairCore& qp) : qp_(qp) {}

  void reset(Psn first);
  bool transmit(TransportContext& context, uint32_t& budget);
  // `block`: the packet's extension block; kNoExtensions without one.
  void on_response(TransportContext& context, const FrameView& view, const rte_mbuf* frame,
                   const ExtensionView& block);
  // QueuePairCore::payload_target() for a READ response.
  [[nodiscard]] uint8_t* payload_target(const MemoryTable& memory, const FrameView& view);
  // A receiver window that the responder sends without an acknowledgment.
  void on_window_message(TransportContext& context, const ExtensionView& block);
  // The response to a probe.
  void on_probe_response(TransportContext& context, const FrameView& view, const ExtensionView& block);
  // Whether a packet that a switch reports was sent by this requester and may be in flight.
  [[nodiscard]] bool has_in_flight(const OpcodeInfo& sampled, Psn psn) const;

  [[nodiscard]] Nanos deadline() const;
  void on_deadline(TransportContext& context);
  void note_resumed(Nanos now);
  // The peer's process has exited: outstanding requests will not be acknowledged.
  void on_peer_exit(TransportContext& context);

  // Completes the oldest request with an error and enters the error state.
  void fail_oldest(TransportContext& context, ibv_wc_status status);
  // Whether no request is outstanding. Some may be posted.
  [[nodiscard]] bool idle() const { return una_ == next_psn_; }
  // Whether posted requests have not been sent completely.
  [[nodiscard]] bool waits_to_send() const;
  // Completes all requests with a flush error.
  void flush(TransportContext& context);
  // Requests a round trip measurement without data; the result is in flow(). False when the peer does not support
  // probes, or with kWhenAnswered when the last probe is unanswered. An unanswered probe is abandoned after
  // `kProbeTimeout`, with kAtOnce at once.
  enum class Probe : uint8_t { kWhenAnswered, kAtOnce };
  bool request_probe(Nanos now, Probe how = Probe::kWhenAnswered);

  // Sender state of the requests, and receiver state of the READ responses.
  [[nodiscard]] const SendFlow& flow() const { return flow_; }
  [[nodiscard]] const ReceiveFlow& response_flow() const { return responses_; }

  // For tests and telemetry.
  [[nodiscard]] Psn next_psn() const { return next_psn_; }
  [[nodiscard]] Psn oldest_unacknowledged() const { return una_; }
  // Must equal the first LSN of the peer's responder. Called before anything is posted.
  void set_first_lsn(Lsn lsn) { flow_.next = flow_.acknowledged = lsn; }

 private:
  // At most 2^23 PSNs may be open (IBTA 9.7.2); otherwise old and new PSNs are ambiguous.
  static constexpr uint32_t kMaxOpenPsns = Psn::kHalf;
  static constexpr uint8_t kMaxRewindsPerRtt = 4;
  static constexpr Nanos kProbeTimeout{10'000'000};
  // Silence before a tail probe: this number of round trips, and at least the time that the receiver may need until it
  // is scheduled. It doubles with each probe.
  static constexpr int kSilenceRoundTrips = 4;
  static constexpr Nanos kMinSilence{100'000};
  static constexpr Nanos kMinStandardSilence{1'000'000};  // of peers without selective repeat
  static constexpr uint8_t kMaxProbesInSilence = 16;
  // A READ with more missing responses is not requested again before a time-out.
  static constexpr uint32_t kMaxProbedResponses = 8;

  // Result of an attempt to send a packet.
  enum class Step : uint8_t {
    kSent,          // and the cursor was advanced
    kWait,          // until a response, a window update or the end of an earlier request
    kHeld,          // by the gate of congestion control
    kBackpressure,  // no buffer, or the port is full
    kYield,         // progress, but the queue pair's quantum ends
    kFailed,        // local error; the request fails once it is the oldest
  };
  using Cursor = SendCursor;
  // What transmit() sends next.
  enum class Phase : uint8_t {
    kNew,      // the packet at the cursor
    kRepair,   // selective repeat: the missing packets of the session's repair, then the packet at the cursor
    kRnrWait,  // nothing until the deadline, as the responder requested
  };
  // Round trip sample: the time from the transmission of timed_psn_, at timed_at_, to its acknowledgment.
  enum class RttSample : uint8_t {
    kNone,     // the next packet that is sent for the first time starts one
    kRunning,  // timed_psn_ is not acknowledged
    kTaken,    // timed_psn_ was acknowledged; record_progress() uses the sample
    kSilence,  // no sample: a time-out has expired since the last progress, which was at timed_at_
  };
  // Whether an expired timer waits for the port, which has not accepted the oldest packet.
  enum class PortWait : uint8_t {
    kNone,      // no timer has expired while frames waited
    kWaits,     // frames before unsent_end_ wait
    kAccepted,  // the port has accepted them, and the timer has started again
  };

  // requester_receive.cpp
  void on_acknowledge(TransportContext& context, const FrameView& view, const ExtensionView& block);
  // Responses to READs and atomics. due_request() returns the oldest READ or atomic if the packet is its next response.
  // Otherwise it processes the packet and returns null.
  void on_wrong_opcode(TransportContext& context, Psn psn);
  SendWqe* due_request(TransportContext& context, const FrameView& view);
  void on_read_response(TransportContext& context, const FrameView& view, const rte_mbuf* frame);
  void on_atomic_response(TransportContext& context, const FrameView& view);
  void acknowledge_response(Psn psn);
  // The last acknowledgment of READ responses may have been lost, and the responder may wait for it.
  void repeat_read_acknowledgment();
  // Acknowledges everything before `end`, and completes the requests in it. False when responses to a READ or atomic
  // before `end` are missing: they were lost.
  bool acknowledge_before(TransportContext& context, Psn end);
  // `lsn`: the new first unacknowledged byte.
  void advance_una(Psn to, Lsn lsn);
  void on_negative(TransportContext& context, Psn psn, ibv_wc_status status);
  void on_sequence_nak(TransportContext& context, Psn expected, const ExtensionView& block);
  void record_progress(TransportContext& context);
  void complete_oldest(TransportContext& context);
  void note_marks(const FrameView& view, const ExtensionView& block);
  [[nodiscard]] bool rtt_is_echoed() const;
  // Retransmits from the oldest unacknowledged packet on, and uses up one retry. With selective repeat, only the
  // packets that are missing from `from` up to `end`.
  void retry(TransportContext& context, Psn from, Psn end, trace::Reason reason);
  // Packets that were retransmitted for probing have been acknowledged, in part or completely.
  void check_retransmission(Nanos now);
  void note_rtt(Nanos sample);
  void note_peer_busy(Nanos now);
  // Whether the requester has gone back to `from`, or kMaxRewindsPerRtt times, within the last round trip. A report of its
  // loss is then a late or repeated one. A peer can thus cause a rewind to the same packet once per round trip. A
  // report about a later packet means that a retransmission was lost too: up to kMaxRewindsPerRtt rewinds per round trip.
  [[nodiscard]] bool recently_rewound(Nanos now, Psn from) const;
  // Whether the gap before the oldest unacknowledged packet has been repaired once.
  [[nodiscard]] bool has_retried_gap() const { return gap_retried_ != 0 && gap_psn_ == una_; }
  // Retransmits after a gap in the responses. Once per gap, since every response after it shows the gap again.
  void retry_gap(TransportContext& context);

  // requester_timers.cpp
  [[nodiscard]] Nanos timeout() const;
  // Silence of a peer without losses, with or without selective repeat. Requires a round trip sample.
  [[nodiscard]] Nanos usual_silence(bool selective) const {
    return selective ? std::max(kSilenceRoundTrips * flow_.rtt, kMinSilence)
                     : std::max(recovery_.longest_silence(), kMinStandardSilence);
  }
  PortWait wait_for_port(const UnsentFrames& unsent);
  [[nodiscard]] bool has_oldest_to_send();
  // A new packet is the oldest one, or it is sent again.
  void begin_silence() {
    port_wait_ = PortWait::kNone;
    excuses_ = 0;
  }
  bool peer_was_not_scheduled(TransportContext& context);
  [[nodiscard]] bool peer_is_slow(const TransportContext& context);
  [[nodiscard]] bool copy_is_due(Nanos now) const;
  void schedule_tail_probe(Nanos now);
  void send_tail_probe(TransportContext& context);
  // Whether the oldest request is a READ with more than kMaxProbedResponses missing responses.
  [[nodiscard]] bool is_long_read() const;
  // Retransmits the oldest packet only, until it is acknowledged.
  void probe_oldest(Nanos now);

  // requester.cpp
  Step send_next(TransportContext& context);
  Step send_repair(TransportContext& context);
  Step execute_locally(TransportContext& context, SendWqe& wqe);
  bool place(TransportContext& context, SendWqe& wqe);
  [[nodiscard]] Step after_completion(Step step) const;
  // Completes executed local operations at the head of the queue.
  void retire_local(TransportContext& context);
  Step start(TransportContext& context, SendWqe& wqe);
  // Sends the packet and advances the cursor.
  Step send_at(TransportContext& context, Cursor& cursor);
  // `again`: the packet is a retransmission.
  Step send_message_packet(TransportContext& context, SendWqe& wqe, const MessagePacket& packet, Psn psn,
                           bool again);
  Step send_read_request(TransportContext& context, SendWqe& wqe, uint32_t packet);
  Step send_atomic_request(TransportContext& context, SendWqe& wqe);
  [[nodiscard]] ExtensionSession* session() const;
  // Null without selective repeat.
  [[nodiscard]] SackBoard* sack_board() const;
  void start_repair(Psn from, Psn end, trace::Reason reason);
  bool send_extras(TransportContext& context);
  bool send_read_acknowledge(TransportContext& context);
  bool send_probe(TransportContext& context);
  [[nodiscard]] PacketExtras data_extras() const;
  void session_block(const ExtensionView& block, Lsn lsn, Nanos now) const;
  // Range of LSNs.
  struct Span {
    Lsn at;
    uint32_t bytes;
  };
  // LSNs of a request.
  static uint64_t lsn_bytes(const SendWqe& wqe);
  void record_sent(TransportContext& context, Psn psn, uint32_t count, Span span, bool again);
  // Congestion control's gate; null without congestion control.
  [[nodiscard]] SendGate* gate() const;
  [[nodiscard]] uint64_t in_flight_before(const SendGate& gate, Lsn lsn, Psn psn) const;
  [[nodiscard]] bool held(Nanos now, Span span, Psn psn) const;
  [[nodiscard]] bool held_back(Nanos now, Span span, Psn psn) const;
  void note_departure(Nanos now, Span span, bool again);
  [[nodiscard]] bool sends_as_not_ect(const SendWqe& wqe, const MessagePacket& packet, Psn psn) const;
  void note_loss();
  void rewind();
  [[nodiscard]] bool outstanding() const { return !(una_ == sent_end_); }
  [[nodiscard]] Cursor oldest();
  // After the last packet that was sent.
  [[nodiscard]] Cursor end_of_sent();
  // Whether the window of LossRecovery applies.
  [[nodiscard]] bool is_limited() const;
  [[nodiscard]] bool is_reactive() const;
  [[nodiscard]] Psn psn_at(Cursor cursor);
  [[nodiscard]] bool fits_window(const SendWqe& wqe, const MessagePacket& packet, Psn psn);
  [[nodiscard]] bool sent_before(Psn psn) const;

  QueuePairCore& qp_;

  Cursor cursor_;
  Psn next_psn_;                    // first PSN of the next request to be started
  Psn una_;                         // oldest unacknowledged
  Psn sent_end_;                    // one past the highest PSN ever sent
  uint16_t reads_outstanding_ = 0;  // including atomics
  uint16_t locals_done_ = 0;        // executed local operations with outstanding requests before them
  SendFlow flow_;
  uint64_t read_bytes_outstanding_ = 0;
  Nanos deadline_ = kNever;  // of the oldest unacknowledged packet, or of the RNR wait
  // Time of the next tail probe: retransmission of the oldest packet after a silence of some round trips, long before
  // the time-out. It uses up no retry (compare the probes of RFC 8985).
  Nanos tail_probe_at_ = kNever;
  LossRecovery recovery_;
  uint8_t retries_left_ = 0;
  uint8_t rnr_retries_left_ = 0;
  uint8_t rewinds_ = 0;  // since rewound_at_, the first rewind of a round trip
  Phase phase_ = Phase::kNew;
  RttSample rtt_sample_ = RttSample::kNone;
  // One byte, which each progress clears.
  uint8_t gap_retried_ : 1 = 0;  // the gap at gap_psn_ has been repaired once
  PortWait port_wait_ : 2 = PortWait::kNone;
  uint8_t excuses_ : 5 = 0;          // see peer_was_not_scheduled()
  uint16_t unsent_end_ = 0;          // position (UnsentFrames) after the frames that port_wait_ refers to
  uint32_t newly_acknowledged_ = 0;  // packets, by the current response
  // Requests after a READ with missing data have been executed up to here.
  Psn acknowledged_end_;
  Psn timed_psn_;
  Nanos timed_at_{0};
  Nanos rewound_at_{0};
  Psn rewound_to_;
  Psn gap_psn_;
  ReceiveFlow responses_;
};

}  // namespace roci

// The requester of a queue pair: turns send work requests into request packets, and responses into completions
// (IBTA 9.7.3, 9.7.6, 9.7.7).
//
//   done                    una                 cursor            posted
//    |<--- acknowledged ---->|<--- in flight ---->|<--- to send --->|        (send queue, packets)
//
// Losses are repaired by going back to the oldest unacknowledged packet: a retry moves the cursor back to una.
// `sent_end` is the highest position it has had, which separates acknowledgements of packets that were sent from others. With
// selective repeat the cursor stays, and a second one goes over what is missing in front of it.
//
// A time-out or a silence does not show that anything is lost. Without selective repeat the oldest packet is then sent again alone
// (LossRecovery::Probing), and the answer decides whether the cursor goes on from there or returns to `sent_end`.
#pragma once

#include <cstdint>

#include "base/sequence.hpp"
#include "base/types.hpp"
#include "transport/flow.hpp"
#include "transport/loss_recovery.hpp"
#include "transport/packet_sink.hpp"
#include "transport/work_queue.hpp"
#include "wire/extensions.hpp"
#include "wire/frame.hpp"

namespace roci {

class ExtensionSession;
class QueuePairCore;
class SackBoard;
class SendGate;
struct MessagePacket;
struct PacketExtras;

class Requester {
 public:
  explicit Requester(QueuePairCore& qp) : qp_(qp) {}

  void reset(Psn first);
  bool transmit(TransportContext& context, uint32_t& budget);
  // `block`: the packet's extension block, absent when it has none.
  void on_response(TransportContext& context, const FrameView& view, const rte_mbuf* frame,
                   const ExtensionView& block);
  // QueuePairCore::place_of() of a READ response.
  [[nodiscard]] uint8_t* place_of(const MemoryTable& memory, const FrameView& view);
  // The receiver's window when it has nothing else to say.
  void on_window_message(TransportContext& context, const ExtensionView& block);
  // The answer to a probe.
  void on_probe_response(TransportContext& context, const FrameView& view, const ExtensionView& block);
  // Whether the packet that a switch speaks of is one of ours that may be under way.
  [[nodiscard]] bool has_under_way(const OpcodeInfo& sampled, Psn psn) const;

  [[nodiscard]] Nanos deadline() const;
  void on_deadline(TransportContext& context);
  void note_resumed(Nanos now);
  // Nothing that is under way will be answered.
  void on_peer_exit(TransportContext& context);

  // Completes the oldest request with an error and puts the queue pair into the error state.
  void fail_oldest(TransportContext& context, ibv_wc_status status);
  // Whether no request is under way; some may be posted.
  [[nodiscard]] bool idle() const { return una_ == next_psn_; }
  // Whether requests are posted that have not been sent whole.
  [[nodiscard]] bool waits_to_send() const;
  // Completes everything posted as flushed.
  void flush(TransportContext& context);
  // Asks the peer for a round trip beside the data; the answer is in flow(). False when the peer does not take probes
  // or has not answered the last one, which is given up when another is asked for after `kProbeTimeout`, or at once.
  enum class Probe : uint8_t { kWhenAnswered, kAnew };
  bool request_probe(Nanos now, Probe how = Probe::kWhenAnswered);

  // What the other end has said about the requests, and what this end knows of the READ responses.
  [[nodiscard]] const SendFlow& flow() const { return flow_; }
  [[nodiscard]] const ReceiveFlow& response_flow() const { return responses_; }

  // For the checks of the tests and for telemetry.
  [[nodiscard]] Psn next_psn() const { return next_psn_; }
  [[nodiscard]] Psn oldest_unacknowledged() const { return una_; }
  // Both ends must agree; before anything is posted.
  void set_first_lsn(Lsn lsn) { flow_.next = flow_.acknowledged = lsn; }

 private:
  // At most 2^23 PSNs may be open (IBTA 9.7.2), else old and new cannot be told apart.
  static constexpr uint32_t kMaxOpenPsns = Psn::kHalf;
  static constexpr uint8_t kMostTimesBack = 4;
  static constexpr Nanos kProbeTimeout{10'000'000};
  // A tail probe waits for so many round trips, and for what a receiver may take to get its turn; then twice as long.
  static constexpr int kRoundTripsOfSilence = 4;
  static constexpr Nanos kLeastSilence{100'000};
  static constexpr Nanos kLeastStandardSilence{1'000'000};  // of peers that do not repeat selectively
  static constexpr uint8_t kMostProbesInSilence = 16;
  static constexpr uint32_t kMostProbedResponses =
      8;  // a READ of more is not requested again before a time-out

  // What ended an attempt to send a packet.
  enum class Step : uint8_t {
    kSent,    // and the cursor moved on
    kWait,    // for a response, a window, or an earlier request
    kHeld,    // by the gate of congestion control
    kNoRoom,  // for a buffer or room in the port
    kFailed,  // the request has a local error, which ends it when it is the oldest
  };
  using Cursor = SendCursor;

  // completer.cpp
  void on_acknowledge(TransportContext& context, const FrameView& view, const ExtensionView& block);
  // The data of READs and atomics. The oldest of them is the one whose response is due; null when the packet is
  // none of its, and then it has been dealt with.
  void on_wrong_opcode(TransportContext& context, Psn psn);
  SendWqe* due_request(TransportContext& context, const FrameView& view);
  void on_read_response(TransportContext& context, const FrameView& view, const rte_mbuf* frame);
  void on_atomic_response(TransportContext& context, const FrameView& view);
  void acknowledge_response(Psn psn);
  // The last one may have been lost, and the responder wait for it with an answer that is sent again.
  void repeat_read_acknowledgement();
  // Takes everything before `end` as acknowledged, completing what is whole. Returns false when a READ whose
  // responses have not all come stands in the way: its response was lost.
  bool acknowledge_before(TransportContext& context, Psn end);
  // `lsn`: of the first byte that is not acknowledged then.
  void advance_una(Psn to, Lsn lsn);
  void on_negative(TransportContext& context, Psn psn, ibv_wc_status status);
  void on_sequence_nak(TransportContext& context, Psn expected, const ExtensionView& block);
  void note_progress(TransportContext& context);
  void complete_oldest(TransportContext& context);
  void note_marks(const FrameView& view, const ExtensionView& block);
  [[nodiscard]] bool rtt_is_echoed() const;
  // Sends again from the oldest unacknowledged packet on, at the cost of one retry. With selective repeat, only what
  // is missing from `from` up to `end`.
  void retry(TransportContext& context, Psn from, Psn end);
  // The packets that the probing was for are acknowledged in part or completely.
  void judge_answer(Nanos now);
  void note_rtt(Nanos sample);
  void note_busy_peer(Nanos now);
  // Everything from `from` on has been sent again, so lately that nobody can have missed it: what says so is late, or
  // a flood. A peer thus makes this end go back to a packet once in a round trip. When it names a later one, what was
  // sent again has arrived and lost a packet too: that counts, but not more than kMostTimesBack times in a round trip.
  [[nodiscard]] bool went_back_lately(Nanos now, Psn from) const;
  // The same for a gap seen in the responses: once per gap, since every response behind it shows it again.
  void retry_gap(TransportContext& context);

  // requester_timers.cpp
  [[nodiscard]] Nanos timeout() const;
  bool peer_had_no_time(TransportContext& context);
  void schedule_tail_probe(Nanos now);
  void send_tail_probe(TransportContext& context);
  // Whether the oldest request is a READ of more than a few packets that have not come.
  [[nodiscard]] bool is_long_read() const;
  // Sends the oldest packet again, and nothing else until it is answered.
  void probe_oldest(Nanos now);

  // requester.cpp
  Step send_next(TransportContext& context);
  Step send_repair(TransportContext& context);
  Step do_locally(TransportContext& context, SendWqe& wqe);
  bool place(TransportContext& context, SendWqe& wqe);
  // Completes what was done locally and has nothing in front of it any more.
  void retire_local(TransportContext& context);
  Step start(TransportContext& context, SendWqe& wqe);
  // Sends the packet and moves the cursor behind it.
  Step send_at(TransportContext& context, Cursor& cursor);
  // `again`: the packet has been sent before.
  Step send_message_packet(TransportContext& context, SendWqe& wqe, const MessagePacket& packet, Psn psn,
                           bool again);
  Step send_read_request(TransportContext& context, SendWqe& wqe, uint32_t packet);
  Step send_atomic_request(TransportContext& context, SendWqe& wqe);
  [[nodiscard]] ExtensionSession* session() const;
  // Null when the peer does not repeat selectively.
  [[nodiscard]] SackBoard* sack_board() const;
  void start_repair(Psn from, Psn end);
  bool send_extras(TransportContext& context);
  bool send_read_acknowledge(TransportContext& context);
  bool send_probe(TransportContext& context);
  [[nodiscard]] PacketExtras data_extras() const;
  void session_block(const ExtensionView& block, Lsn lsn, Nanos now) const;
  // Bytes of a direction, as the LSN counts them.
  struct Span {
    Lsn at;
    uint32_t bytes;
  };
  void note_sent(TransportContext& context, Psn psn, uint32_t count, Span span, bool again);
  // Congestion control's; null without one.
  [[nodiscard]] SendGate* gate() const;
  [[nodiscard]] uint64_t in_flight_before(const SendGate& gate, Lsn lsn, Psn psn) const;
  [[nodiscard]] bool held(Nanos now, Span span, Psn psn) const;
  [[nodiscard]] bool held_back(Nanos now, Span span, Psn psn) const;
  void note_departure(Nanos now, Span span, bool again);
  [[nodiscard]] bool leaves_as_not_ect(const SendWqe& wqe, const MessagePacket& packet, Psn psn) const;
  void note_loss();
  void rewind();
  [[nodiscard]] bool outstanding() const { return !(una_ == sent_end_); }
  [[nodiscard]] Cursor oldest();
  // Behind the last packet that has been sent.
  [[nodiscard]] Cursor end_of_sent();
  // Whether LossRecovery's window applies.
  [[nodiscard]] bool is_limited() const;
  [[nodiscard]] bool is_reactive() const;
  [[nodiscard]] Psn psn_at(Cursor cursor);
  [[nodiscard]] bool fits_window(const SendWqe& wqe, const MessagePacket& packet, Psn psn);
  [[nodiscard]] bool sent_before(Psn psn) const;

  QueuePairCore& qp_;

  Cursor cursor_;
  Psn next_psn_;                    // first PSN of the next request to be started
  Psn una_;                         // oldest unacknowledged
  Psn sent_end_;                    // one past the highest ever sent
  uint16_t reads_outstanding_ = 0;  // and atomics
  uint16_t locals_done_ = 0;        // requests done locally that still wait for what is in front of them
  SendFlow flow_;
  uint64_t read_bytes_outstanding_ = 0;
  Nanos deadline_ = kNever;  // of the oldest unacknowledged packet, or of the RNR wait
  // When the oldest packet is sent again because nothing has been heard for some round trips: long before the time-out, and at the
  // cost of no retry (as the probes of RFC 8985).
  Nanos tail_probe_at_ = kNever;
  LossRecovery recovery_;
  uint8_t retries_left_ = 0;
  uint8_t rnr_retries_left_ = 0;
  uint8_t times_back_ = 0;           // since went_back_at_, which is the first time in a round trip
  bool waits_for_rnr_ = false;       // silent until the deadline, as the responder asked
  bool gap_retried_ = false;         // a gap at gap_psn_ has been repaired once
  bool repair_left_ = false;         // selective repeat: packets may be missing where the session's repair is
  bool timing_ = false;              // the packet timed_psn_ will be a sample of the round trip
  bool sampled_ = false;             // and has become one
  uint32_t newly_acknowledged_ = 0;  // packets, of the response under way
  Psn acknowledged_end_;  // what is behind a READ whose data are missing has been executed up to here
  Psn timed_psn_;
  Nanos timed_at_{0};
  Nanos went_back_at_{0};
  Psn went_back_to_;
  Psn gap_psn_;
  ReceiveFlow responses_;
};

}  // namespace roci

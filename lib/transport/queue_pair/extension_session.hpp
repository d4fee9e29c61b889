// Extension session of a queue pair: the wire extensions that its host and the peer's have negotiated
// (docs/wire-extensions.md). A queue pair without a session sends and accepts standard packets only.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/containers/sparse_arena.hpp"
#include "base/types.hpp"
#include "transport/packet_sink.hpp"
#include "transport/peer_silence.hpp"
#include "transport/queue_pair/auth_history.hpp"
#include "transport/queue_pair/flow.hpp"
#include "transport/queue_pair/reorder_buffer.hpp"
#include "transport/queue_pair/send_gate.hpp"
#include "transport/queue_pair/telemetry_session.hpp"
#include "transport/queues/work_queue.hpp"
#include "wire/extensions/extension_auth.hpp"
#include "wire/mad/capability_mad.hpp"

namespace roci {

// Negotiated extensions of two hosts, as they apply to one queue pair. Created by the engine.
struct ExtensionTerms {
  uint32_t capabilities = 0;  // common to both; the low 16 bits are the types permitted in a received block
  bool may_send = false;      // the peer has confirmed that it accepts blocks and private opcodes
  // Types in requests and READ responses. The MTU has space for them in addition to a full payload.
  uint16_t on_data = 0;
  uint16_t on_feedback = 0;     // types in acknowledgments, if they have a value to report
  uint32_t reorder_window = 0;  // window of this responder's reorder buffer, packets; a power of two, 0: none
  uint32_t peer_reorder_window = 0;  // the same of the peer
  uint32_t peer_time_unit = 1000;    // unit of the times in packets of the peer, ps
  bool authenticate = false;         // feedback carries a MAC in both directions
  bool require_signed = false;       // unsigned feedback is never accepted
  bool ignore_cnps = false;          // CE marks that authenticated feedback reports take their place
  uint8_t int_hops = 0;              // maximum in an INT-ECHO; 0 without telemetry
  uint32_t longest_int = 0;          // maximum IP packet in which telemetry starts, bytes
  SipKey send_key{};
  SipKey receive_key{};

  friend bool operator==(const ExtensionTerms&, const ExtensionTerms&) = default;
  [[nodiscard]] bool has(Capability c) const { return (capabilities & static_cast<uint32_t>(c)) != 0; }
  [[nodiscard]] uint16_t types() const { return static_cast<uint16_t>(capabilities); }
};

// Direction of a queue pair, from the viewpoint of its requester.
enum class Direction : uint8_t { kRequests, kResponses };
constexpr HopsOf hops_of(Direction direction) { return static_cast<HopsOf>(direction); }
static_assert(hops_of(Direction::kResponses) == HopsOf::kResponses);

// Additions of the wire extensions and of congestion control to a packet.
struct PacketExtras {
  uint16_t types = 0;      // of its extension block; 0: no block
  uint8_t hops = 0;        // number of hops in the block's INT-ECHO
  bool begin_int = false;  // the packet starts in-band telemetry
  bool not_ect = false;    // Not-ECT, where congestion control decides on ECN: switches drop it, not mark it
};

// Limits of a receiver window (RXWIN), bytes. 0 would stop the sender permanently. The field's maximum would be no
// limit; a receiver without a limit omits RXWIN.
inline constexpr uint32_t kMinReceiverWindow = 1;
inline constexpr uint32_t kLargestReceiverWindow = UINT32_MAX - 1;
constexpr bool is_receiver_window(uint32_t bytes) {
  return bytes >= kMinReceiverWindow && bytes <= kLargestReceiverWindow;
}

// Number of values of a feedback block that were ignored because they are impossible.
struct RefusedFeedback {
  uint32_t values = 0;   // other than receiver windows
  uint32_t windows = 0;  // receiver windows
};

// The receiver's own counts of a direction (CE-ECHO), extended to 64 bits.
struct EchoedCounts {
  uint64_t packets = 0;
  uint64_t marked = 0;
};

// Copies the values of a feedback block into the state of the flow. All of them are optional, and impossible ones are
// ignored. `time_unit`: unit of the peer's times, ps.
RefusedFeedback take_feedback(const ExtensionView& block, Nanos now, uint32_t time_unit, SendFlow& flow,
                              EchoedCounts& echoed);

// Extension state of one queue pair. Owned by the queue pair, with the same thread rules.
class ExtensionSession {
 public:
  // `history`: continues the sequences of earlier sessions with the same keys; null without authentication. It must
  // have been prepared, and outlives the session.
  ExtensionSession(const ExtensionTerms& agreed, BufferBudget& budget, AuthHistory* history = nullptr)
      : terms(agreed),
        history_(history),
        auth_(agreed.send_key, agreed.receive_key, agreed.require_signed, history) {
    if (agreed.reorder_window > 0) reorder_buffer.emplace(agreed.reorder_window, budget);
    if (agreed.peer_reorder_window > 0) sacked_packets.emplace(agreed.peer_reorder_window);
  }
  ~ExtensionSession() {
    if (history_ != nullptr) auth_.store(terms.send_key, *history_);
  }
  ExtensionSession(const ExtensionSession&) = delete;
  ExtensionSession& operator=(const ExtensionSession&) = delete;
  // A session is allocated in the arena of its queue pair; null when there is no memory.
  static void* operator new(size_t bytes, SparseArena& arena) noexcept { return arena.take(bytes); }
  static void operator delete(void* session, SparseArena&) noexcept {
    SparseArena::give_back(session, sizeof(ExtensionSession));
  }
  static void operator delete(void* session, size_t bytes) noexcept {
    SparseArena::give_back(session, bytes);
  }

  // Parses the extension block, if the packet has one, and removes it from the payload of the view. False when the
  // packet must be dropped: the block is malformed, or has a type that was not negotiated.
  bool open_block(FrameView& view, const rte_mbuf* frame, ExtensionView& block) const {
    if (!view.bth().has_extensions()) return true;
    const ExtendedPayload split = split_payload(view, rte_pktmbuf_data_len(frame), terms.types());
    if (!split.block.accepted()) return false;
    block = split.block;
    view.payload_offset = static_cast<uint16_t>(split.payload_offset);
    view.payload_length = split.payload_length;
    return true;
  }
  // Whether feedback is accepted (AuthState::accepts()).
  bool accepts_feedback(const FrameView& view, const ExtensionView& block) {
    return !terms.authenticate || auth_.accepts(auth_.receiver().check(view, block));
  }
  void sign_feedback(const FrameView& view, const ExtensionView& block) {
    if (block.has(ExtensionType::kAuth)) sign(terms.send_key, view, block, auth_.take_sequence());
  }

  // Types of the next feedback packet about this direction. `has_buffered`: the responder buffers packets after a gap
  // (SACK).
  [[nodiscard]] uint16_t feedback_types(Direction about, bool has_buffered) const {
    uint16_t types = terms.may_send ? terms.on_feedback : uint16_t{0};
    if (!echo_[index(about)]) types = static_cast<uint16_t>(types & ~bit_of(ExtensionType::kTimestampEcho));
    if (!receiver_window_ || about != Direction::kRequests)
      types = static_cast<uint16_t>(types & ~bit_of(ExtensionType::kRxWindow));
    if (!has_buffered) types = static_cast<uint16_t>(types & ~bit_of(ExtensionType::kSack));
    if ((types & bit_of(ExtensionType::kIntEcho)) != 0 &&
        (telemetry == nullptr || !telemetry->is_due(hops_of(about))))
      types = static_cast<uint16_t>(types & ~bit_of(ExtensionType::kIntEcho));
    return types;
  }
  // The same, with the number of hops.
  [[nodiscard]] PacketExtras feedback(Direction about, bool has_buffered) const {
    const uint16_t types = feedback_types(about, has_buffered);
    return {types, (types & bit_of(ExtensionType::kIntEcho)) != 0 ? telemetry->due_hops(hops_of(about))
                                                                  : uint8_t{0}};
  }
  // Whether packets of this private opcode may be sent to the peer.
  [[nodiscard]] bool takes(Capability what) const { return terms.may_send && terms.has(what); }
  // Records the arrival of a request or READ response with this block.
  void note_data(const TransportContext& context, const FrameView& view, const ExtensionView& block,
                 Direction of) {
    if (block.has(ExtensionType::kTimestamp))
      echo_[index(of)] = Echo{block.timestamp().time.get(), context.now};
    if (view.telemetry != 0 && telemetry != nullptr)
      telemetry->note(hops_of(of), context.telemetry[view.telemetry - 1], context.now);
  }
  // Block types of requests and READ responses, and whether they start telemetry.
  [[nodiscard]] uint16_t data_types() const { return terms.may_send ? terms.on_data : uint16_t{0}; }
  [[nodiscard]] PacketExtras data_extras() const {
    return {data_types(), 0,
            telemetry != nullptr && terms.may_send && telemetry->inserts_header(HopsOf::kRequests)};
  }
  // Applies congestion control's requests for telemetry in single packets.
  void apply_telemetry_request(SendGate& gate, PacketExtras& extras) const {
    if (!gate.telemetry_next && !gate.telemetry_only_requested) return;
    extras.begin_int = telemetry != nullptr && terms.may_send && gate.telemetry_next;
    gate.telemetry_next = false;
  }
  static void write_data_block(const ExtensionView& block, Qpn from, Lsn lsn, Nanos now);
  [[nodiscard]] const EchoedCounts& echoed(Direction about) const { return echoed_[index(about)]; }
  // Applies the peer's feedback about a direction that this host sends, whose state is `flow`. Impossible values are
  // counted.
  void take_feedback(TransportContext& context, const ExtensionView& block, Direction about, SendFlow& flow);
  void take_hops(TransportContext& context, const ExtensionView& block, HopsOf of);
  // Writes the feedback of this host, as the receiver of a direction. Each time stamp is echoed once.
  void write_feedback(const TransportContext& context, const ExtensionView& block, Direction about,
                      const ReceiveFlow& flow);
  void write_hops(const TransportContext& context, const ExtensionView& block, HopsOf of);

  ExtensionTerms terms;
  std::unique_ptr<TelemetrySession> telemetry;  // null if not negotiated, or without memory
  std::optional<ReorderBuffer> reorder_buffer;  // responder, with selective repeat: buffered packets
  Psn newest_buffered;
  // Responder: packets before this PSN were discarded, because two different ones had the same PSN. The sender may have
  // been informed that they are buffered.
  std::optional<Psn> discarded_end;
  std::optional<SackBoard> sacked_packets;  // requester, with selective repeat: packets that have arrived
  // Requester, with selective repeat: retransmission of the missing packets from `from` up to `end`. `next` is its
  // cursor.
  struct Repair {
    bool started = false;
    SendCursor next;
    Psn from, end;
    Nanos sent_at{0};  // time of its last retransmission
    Psn covered;       // a NAK for a PSN below it belongs to this repair
  } repair;
  PeerSilence silence;  // requester, on a port that reports the state of peer processes
  // Requester: acknowledgments of READ responses (CC_RRACK).
  struct ReadAcknowledgments {
    Psn last{};              // response received in order
    uint32_t completed = 0;  // READs and atomics
    bool any = false;        // `last` is valid
    bool due = false;
  } read_acks;
  // Requester: round trip measurements without data (CC_PROBE).
  struct Probes {
    uint32_t id = 0;  // of the last probe
    bool due = false;
    Nanos sent = kNever;  // the outstanding probe; kNever: none
  } probes;
  // Responder: the probe to be answered.
  struct ProbeToAnswer {
    uint32_t id;
    uint16_t flags;
    uint64_t sent;  // by the peer's clock
    Psn psn;
    Nanos arrived;
  };
  std::optional<ProbeToAnswer> probe_to_answer;
  // Responder: the peer acknowledges READ responses, so a window limits them.
  bool peer_acknowledges_reads = false;

  // Responder: sets the bytes that the peer may have in flight: a limit of the configuration, and the grant of a
  // congestion control algorithm; the smaller one applies. The window is sent with the next acknowledgment. With window
  // messages negotiated, it is sent separately when no acknowledgment is due.
  void set_receiver_window(uint32_t limit) {
    receiver_limit_ = std::clamp(limit, kMinReceiverWindow, kLargestReceiverWindow);
    update_receiver_window(receiver_limit_);
  }
  void set_receiver_grant(uint32_t bytes) {
    update_receiver_window(std::clamp(bytes, kMinReceiverWindow, receiver_limit_));
  }
  // Ends the grants. The limit is then sent, since the last grant remains in force at the sender until it is replaced.
  void end_receiver_grants() {
    if (receiver_window_) update_receiver_window(receiver_limit_);
  }
  [[nodiscard]] bool window_message_due() const { return window_message_due_; }

 private:
  struct Echo {
    uint64_t time;
    Nanos arrived;
  };
  void update_receiver_window(uint32_t bytes) {
    receiver_window_ = bytes;
    window_message_due_ = takes(Capability::kWindowMessages);
  }
  AuthHistory* history_;
  AuthState auth_;
  static constexpr size_t index(Direction d) { return static_cast<size_t>(d); }
  std::array<std::optional<Echo>, 2> echo_;
  std::array<EchoedCounts, 2> echoed_;
  std::optional<uint32_t> receiver_window_;  // to be sent; no value: none was ever set
  uint32_t receiver_limit_ = kLargestReceiverWindow;
  bool window_message_due_ = false;
};

}  // namespace roci

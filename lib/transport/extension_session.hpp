// What a queue pair says and understands beyond the standard after its host and the peer's have agreed
// (docs/wire-extensions.md). One that has no session speaks the standard.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/sparse_arena.hpp"
#include "base/types.hpp"
#include "transport/flow.hpp"
#include "transport/packet_sink.hpp"
#include "transport/peer_silence.hpp"
#include "transport/reorder_buffer.hpp"
#include "transport/send_gate.hpp"
#include "transport/telemetry_session.hpp"
#include "transport/work_queue.hpp"
#include "wire/capability_mad.hpp"
#include "wire/extension_auth.hpp"

namespace roci {

// The agreement of two hosts, as it applies to one queue pair. The engine makes it.
struct ExtensionTerms {
  uint32_t capabilities = 0;  // of both hosts; the low 16 bits are the types that may be in a received block
  bool may_send = false;      // the peer has confirmed that it takes blocks and private opcodes
  uint16_t on_data = 0;  // types in requests and READ responses; there is room for them behind a full payload
  uint16_t on_feedback = 0;  // types in acknowledgements, where there is something to say
  uint32_t keeps = 0;  // packets from the expected one on that this end keeps; a power of two, 0 for none
  uint32_t peer_keeps = 0;         // the same of the peer
  uint32_t peer_time_unit = 1000;  // of the times that the peer puts into packets, ps
  bool authenticate = false;       // feedback carries a MAC in both directions
  uint8_t int_hops = 0;            // of the longest INT-ECHO; 0 without telemetry
  uint32_t longest_int = 0;        // IP packet in which telemetry may begin, bytes
  SipKey send_key{};
  SipKey receive_key{};

  friend bool operator==(const ExtensionTerms&, const ExtensionTerms&) = default;
  [[nodiscard]] bool has(Capability c) const { return (capabilities & static_cast<uint32_t>(c)) != 0; }
  [[nodiscard]] uint16_t types() const { return static_cast<uint16_t>(capabilities); }
};

// Of a queue pair, seen from its requester.
enum class Direction : uint8_t { kRequests, kResponses };
constexpr HopsOf hops_of(Direction direction) { return static_cast<HopsOf>(direction); }
static_assert(hops_of(Direction::kResponses) == HopsOf::kResponses);

// What a packet gets beyond what the standard knows.
struct PacketExtras {
  uint16_t types = 0;      // of its extension block, 0 for none
  uint8_t hops = 0;        // in the block's INT-ECHO
  bool begin_int = false;  // in-band telemetry begins in it
  bool not_ect = false;    // where congestion control decides on ECN: switches drop rather than mark it
};

// Bytes that a receiver may allow (RXWIN). None at all would stop a sender for good, and as many as the field holds are no
// limit: who has none does not say so.
inline constexpr uint32_t kLeastReceiverWindow = 1;
inline constexpr uint32_t kLargestReceiverWindow = UINT32_MAX - 1;
constexpr bool is_receiver_window(uint32_t bytes) {
  return bytes >= kLeastReceiverWindow && bytes <= kLargestReceiverWindow;
}

// What was passed over of a block of feedback, because it cannot be.
struct RefusedFeedback {
  uint32_t values = 0;   // but for windows
  uint32_t windows = 0;  // of the receiver
};

// The receiver's own counts of a direction (CE-ECHO), without their wrap.
struct EchoedCounts {
  uint64_t packets = 0;
  uint64_t marked = 0;
};

// Puts what a block of feedback says about a flow into it. Nothing of that is needed: what cannot be is passed over.
// `time_unit`: of the peer's times, ps.
RefusedFeedback take_feedback(const ExtensionView& block, Nanos now, uint32_t time_unit, SendFlow& flow,
                              EchoedCounts& echoed);

class ExtensionSession {
 public:
  ExtensionSession(const ExtensionTerms& agreed, KeepBudget& budget)
      : terms(agreed), receiver_(agreed.receive_key) {
    if (agreed.keeps > 0) kept.emplace(agreed.keeps, budget);
    if (agreed.peer_keeps > 0) sacked.emplace(agreed.peer_keeps);
  }
  // One of a queue pair lies where the queue pair lies; null when there is no memory.
  static void* operator new(size_t bytes, SparseArena& arena) noexcept { return arena.take(bytes); }
  static void operator delete(void* session, SparseArena&) noexcept {
    SparseArena::give_back(session, sizeof(ExtensionSession));
  }
  static void operator delete(void* session, size_t bytes) noexcept {
    SparseArena::give_back(session, bytes);
  }

  // Reads the block of a packet that says it has one, and takes it off the payload of the view. False when it must be
  // dropped: the block is malformed, or has what was not agreed on.
  bool open_block(FrameView& view, const rte_mbuf* frame, ExtensionView& block) const {
    if (!view.bth().has_extensions()) return true;
    const ExtendedPayload split = split_payload(view, rte_pktmbuf_data_len(frame), terms.types());
    if (!split.block.accepted()) return false;
    block = split.block;
    view.payload_offset = static_cast<uint16_t>(split.payload_offset);
    view.payload_length = split.payload_length;
    return true;
  }
  // Whether feedback may be believed. Before the peer has signed its first packet it may not know yet that it is to;
  // afterwards nothing unsigned is taken.
  bool believe(const FrameView& view, const ExtensionView& block) {
    if (!terms.authenticate) return true;
    const AuthOutcome outcome = receiver_.check(view, block);
    if (outcome == AuthOutcome::kRight) peer_signs_ = true;
    return outcome == AuthOutcome::kRight || (outcome == AuthOutcome::kMissing && !peer_signs_);
  }
  void sign_feedback(const FrameView& view, const ExtensionView& block) {
    if (block.has(ExtensionType::kAuth)) sign(terms.send_key, view, block, send_sequence_++);
  }

  // Types of the next feedback packet about this direction; `kept_some`: there are packets behind a gap to tell of.
  [[nodiscard]] uint16_t feedback_types(Direction about, bool kept_some) const {
    uint16_t types = terms.may_send ? terms.on_feedback : uint16_t{0};
    if (!echo_[index(about)]) types = static_cast<uint16_t>(types & ~bit_of(ExtensionType::kTimestampEcho));
    if (!receiver_window_ || about != Direction::kRequests)
      types = static_cast<uint16_t>(types & ~bit_of(ExtensionType::kRxWindow));
    if (!kept_some) types = static_cast<uint16_t>(types & ~bit_of(ExtensionType::kSack));
    if ((types & bit_of(ExtensionType::kIntEcho)) != 0 &&
        (telemetry == nullptr || !telemetry->is_due(hops_of(about))))
      types = static_cast<uint16_t>(types & ~bit_of(ExtensionType::kIntEcho));
    return types;
  }
  // The same with the hops that go with them.
  [[nodiscard]] PacketExtras feedback(Direction about, bool kept_some) const {
    const uint16_t types = feedback_types(about, kept_some);
    return {types, (types & bit_of(ExtensionType::kIntEcho)) != 0 ? telemetry->due_hops(hops_of(about))
                                                                  : uint8_t{0}};
  }
  // Whether packets of this private opcode may be sent to the peer.
  [[nodiscard]] bool takes(Capability what) const { return terms.may_send && terms.has(what); }
  // A request or READ response with this block has arrived.
  void note_data(const TransportContext& context, const FrameView& view, const ExtensionView& block,
                 Direction of) {
    if (block.has(ExtensionType::kTimestamp))
      echo_[index(of)] = Echo{block.timestamp().time.get(), context.now};
    if (view.telemetry != 0 && telemetry != nullptr)
      telemetry->note(hops_of(of), context.telemetry[view.telemetry - 1], context.now);
  }
  // What a request or a READ response gets: types in its block, and whether telemetry begins in it.
  [[nodiscard]] uint16_t data_types() const { return terms.may_send ? terms.on_data : uint16_t{0}; }
  [[nodiscard]] PacketExtras data_extras() const {
    return {data_types(), 0, telemetry != nullptr && terms.may_send && telemetry->begins(HopsOf::kRequests)};
  }
  // Where congestion control asks for telemetry packet by packet.
  void begin_as_asked(SendGate& gate, PacketExtras& extras) const {
    if (!gate.telemetry_next && !gate.telemetry_only_asked) return;
    extras.begin_int = telemetry != nullptr && terms.may_send && gate.telemetry_next;
    gate.telemetry_next = false;
  }
  static void write_data_block(const ExtensionView& block, Qpn from, Lsn lsn, Nanos now);
  [[nodiscard]] const EchoedCounts& echoed(Direction about) const { return echoed_[index(about)]; }
  // What a peer's feedback says about one of our directions, which is `flow`; counted.
  void take_feedback(TransportContext& context, const ExtensionView& block, Direction about, SendFlow& flow);
  void take_hops(TransportContext& context, const ExtensionView& block, HopsOf of);
  // Writes what the receiving end of a direction says about it. The time is echoed once.
  // `flows` share this host's link.
  void write_feedback(const TransportContext& context, const ExtensionView& block, Direction about,
                      const ReceiveFlow& flow);
  void write_hops(const TransportContext& context, const ExtensionView& block, HopsOf of);

  ExtensionTerms terms;
  std::unique_ptr<TelemetrySession> telemetry;  // null without an agreement on it, or without memory
  std::optional<ReorderBuffer> kept;            // responder, with selective repeat
  Psn newest_kept;
  std::optional<SackBoard> sacked;  // requester, likewise
  // Requester, with selective repeat: packets from `next` on may be missing, of those from `from` up to `end`.
  struct Repair {
    bool begun = false;
    SendCursor next;
    Psn from, end;
    Nanos sent_at{0};  // when its last packet was sent again
    Psn covered;       // a NAK below it belongs to this repair
  } repair;
  PeerSilence silence;  // requester, where the port knows peers' processes
  // Requester: acknowledgements of READ responses (CC_RRACK).
  struct ReadAcknowledgements {
    Psn last{};              // response, in order
    uint32_t completed = 0;  // READs and atomics
    bool any = false;        // `last` is valid
    bool due = false;
  } read_acks;
  // Requester: round trips that are asked for beside the data (CC_PROBE).
  struct Probes {
    uint32_t id = 0;  // of the last one
    bool due = false;
    Nanos sent = kNever;  // the one that is not answered yet; kNever without one
  } probes;
  // Responder: the probe that is to be answered.
  struct ProbeToAnswer {
    uint32_t id;
    uint16_t flags;
    uint64_t sent;  // by the peer's clock
    Psn psn;
    Nanos arrived;
  };
  std::optional<ProbeToAnswer> probe_to_answer;
  // Responder: the peer acknowledges READ responses, so they may be held back by a window.
  bool peer_acknowledges_reads = false;

  // Responder: what it allows the peer to have in flight, bytes, from now on. Goes out with the next acknowledgement, or
  // by itself when none is due.
  void set_receiver_window(uint32_t bytes) {
    receiver_window_ = std::clamp(bytes, kLeastReceiverWindow, kLargestReceiverWindow);
    window_message_due_ = takes(Capability::kWindowMessages);
  }
  [[nodiscard]] bool window_message_due() const { return window_message_due_; }

 private:
  struct Echo {
    uint64_t time;
    Nanos arrived;
  };
  AuthReceiver receiver_;
  uint64_t send_sequence_ = 0;
  bool peer_signs_ = false;
  static constexpr size_t index(Direction d) { return static_cast<size_t>(d); }
  std::array<std::optional<Echo>, 2> echo_;
  std::array<EchoedCounts, 2> echoed_;
  std::optional<uint32_t> receiver_window_;
  bool window_message_due_ = false;
};

}  // namespace roci

// What brings transport and congestion control together: gathers what happened to the flows of a worker into events, has
// their algorithms run here or on a core of their own (control_core.hpp), and puts what they decide into the gates of the
// queue pairs (send_gate.hpp).
//
//   execute, time-outs --> touch() ----> tell(): gather --> FlowRunner ---------------------> apply --> SendGate
//                                               \--> EventRing --> ControlCore --> poll() --^
//
// A queue pair has a flow for its requests and one for the READ responses that it sends. What an algorithm needs of the peer
// is not known before the two hosts have spoken; until then a flow runs what its profile falls back to, or requests wait. What
// cannot be had is said once for a peer; a queue pair whose profile has no fallback is refused then.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/id_source.hpp"
#include "congestion/control_core.hpp"
#include "congestion/flow_runner.hpp"
#include "congestion/profile.hpp"
#include "engine/attached_queue_pair.hpp"
#include "engine/congestion_flows.hpp"

namespace roci {

struct CongestionFlowReport;

// What has been said about a direction so far.
struct Told {
  uint64_t acked_packets = 0;    // by the transport's own count
  uint64_t counted_packets = 0;  // SendFlow's: with CE-ECHO, that arrived
  uint64_t marked_packets = 0;
  Lsn acked{};
  uint64_t sent_bytes = 0;
  uint64_t sent_packets = 0;
  uint64_t notice_from = 0;  // sent_bytes at the ON_SENT before
  uint64_t echoes = 0;       // INT
  uint64_t reports = 0;      // of switches
  uint64_t notices = 0;      // CNMs
  uint32_t losses = 0;
  uint32_t timeouts = 0;
  uint32_t cnps = 0;
  uint32_t rtt_samples = 0;
  uint32_t probes = 0;
  uint32_t receiver_window = UINT32_MAX;
  Nanos resumed{0};  // after the packet that was sent then
};

// One direction of a queue pair under control.
struct ControlledDirection {
  ControlFlow* flow = nullptr;  // null: not yet, or nothing controls it
  bool handed_over = false;     // its core knows it
  Told told;
  // For people; what happened altogether.
  uint64_t cnps = 0, notices = 0, telemetry = 0;
};

// The receiving end of an algorithm that has one (roci_cc_plugin::receive): the peer's requests.
struct ReceivingEnd {
  const Profile* profile;
  roci_cc_flow info;                 // of the peer's flow, as far as it is known
  uint32_t packets = 0, marked = 0;  // heard so far
  Lsn received{};
  uint64_t noted = 0;  // with telemetry
  [[nodiscard]] void* state() { return this + 1; }
};

// A queue pair under control; its gates come first.
struct ControlledQueuePair final : SendGates {
  enum class Phase : uint8_t {
    kUndecided,  // it is not known yet what the peer gives, and there is nothing to do without: requests wait
    kRunning,    // what runs is in the directions
    kRefused,    // the peer does not give what the profile needs, and there is nothing to fall back to
  };
  AttachedQueuePair* qp = nullptr;
  const Profile* profile = nullptr;  // that was chosen
  Phase phase = Phase::kUndecided;
  bool touched = false;
  Nanos since{0};
  uint32_t peer_version = 0;  // of what is known of the peer, when it was decided
  const ExtensionSession* session = nullptr;
  bool could_send = false;  // extensions to the peer
  bool answers = false;     // READs
  std::array<ControlledDirection, 2> directions;
  ReceivingEnd* receiving = nullptr;  // null: the algorithm has none
  ControlledQueuePair* next_touched = nullptr;

  [[nodiscard]] SendGate& gate(uint32_t direction) {
    return direction == ROCI_CC_REQUESTS ? requests : responses;
  }
};

// Of a worker, and owned by it.
class CongestionControl {
 public:
  struct Surroundings {
    const CongestionControlConfig& config;
    SparseArena& arena;
    std::vector<ControlCore*> cores;
    CongestionFlows& congestion_flows;
    BitsPerSec link_rate;  // of the port
    std::string device;    // for the log
    uint32_t worker;
    IdSource& ids;
  };
  explicit CongestionControl(Surroundings surroundings);
  ~CongestionControl();
  CongestionControl(const CongestionControl&) = delete;
  CongestionControl& operator=(const CongestionControl&) = delete;

  // The queue pair, which is about to be connected, gets what this profile says; null for nothing. False without memory.
  bool attach(AttachedQueuePair& qp, const Profile* profile, Nanos now);
  void detach(AttachedQueuePair& qp);
  // A connected queue pair runs what this profile says from now on; null for nothing. Fails, with everything as it was, where it
  // was connected with none, where its peer is not known to give what is needed, and without memory.
  Status change(AttachedQueuePair& qp, const Profile* profile, Nanos now);
  [[nodiscard]] static ControlledQueuePair* of(const QueuePairCore& core) {
    return static_cast<ControlledQueuePair*>(core.gates);
  }

  // Something has come for the queue pair, or its time.
  void touch(QueuePairCore& core) {
    if (core.gates == nullptr || of(core)->touched) return;
    ControlledQueuePair& controlled = *of(core);
    controlled.touched = true;
    controlled.next_touched = touched_;
    touched_ = &controlled;
  }
  // Whether there is anything to do here at all: a queue pair under control, or one whose core still knows it.
  [[nodiscard]] bool any() const { return controlled_ > 0 || !cores_.empty(); }
  // Tells the algorithms about all that were touched. `flows`: that have sent to this host of late.
  void tell(Nanos now, uint32_t flows);
  // Decisions of other cores, and timers; ready(AttachedQueuePair&) is called for who may send now.
  template <class Ready>
  bool poll(Nanos now, Ready&& ready);
  [[nodiscard]] Nanos next_deadline() const;

  // Before a controlled queue pair's turn to send. False when it is refused.
  bool prepare(ControlledQueuePair& controlled, Nanos now);
  // After it.
  void after_turn(ControlledQueuePair& controlled, Nanos now);

  // Which flows of a queue pair there is something to say about, a bit for each direction; none without control.
  [[nodiscard]] static uint32_t directions(const QueuePairCore& core);
  // What is done with them.
  static void report(AttachedQueuePair& qp, std::vector<CongestionFlowReport>& out);

  // For whoever holds the worker: what its algorithms were told here, and their number of events.
  [[nodiscard]] const FlowRunner& runner() const { return runner_; }

 private:
  // How often who waits for the peer looks again.
  static constexpr Nanos kPatience{200'000};
  static constexpr Nanos kLongestPatience{1'000'000'000};  // then what is not known is not there
  // That a direction has sent within, which a CNP may be about.
  static constexpr Nanos kAboutCnps{10'000'000};
  static constexpr Nanos kThinkingTime{20'000};  // that a core gets to answer a loss
  static constexpr BitsPerSec kUnknownLine{100'000'000'000};

  void decide(ControlledQueuePair& controlled, Nanos now);
  bool start(ControlledQueuePair& controlled, uint32_t direction, const Profile& profile, uint32_t provides,
             Nanos now);
  void stop(ControlledQueuePair& controlled, uint32_t direction);
  [[nodiscard]] roci_cc_flow flow_info(const ControlledQueuePair& controlled, uint32_t direction,
                                       const Profile& profile, uint32_t provides);
  [[nodiscard]] uint32_t provided(const QueuePairCore& core, uint32_t direction,
                                  const Profile& profile) const;
  void warn(const ControlledQueuePair& controlled, uint32_t direction, const Profile& wanted,
            uint32_t missing, const Profile* instead);
  void tell(ControlledQueuePair& controlled, Nanos now);
  bool begin_receiving(ControlledQueuePair& controlled);
  static void end_receiving(ReceivingEnd* end);
  void tell_receiving(ControlledQueuePair& controlled, Nanos now, uint32_t flows);
  void tell(ControlledQueuePair& controlled, uint32_t direction, Nanos now, uint32_t kinds);
  uint32_t gather(ControlledQueuePair& controlled, uint32_t direction, Nanos now, roci_cc_event& event,
                  Told& told);
  void apply(ControlFlow& flow, Nanos now);
  [[nodiscard]] const roci_cc_decision& decision_of(ControlFlow& flow) const {
    return cores_.empty() ? flow.decision : flow.newest();
  }
  bool hand_over(ControlledDirection& direction);
  void end(ControlFlow* flow);
  void free_ended();
  [[nodiscard]] ControlCore& core_of(const ControlFlow& flow) const {
    return *cores_[flow.id % cores_.size()];
  }

  const CongestionControlConfig& config_;
  SparseArena& arena_;
  std::vector<ControlCore*> cores_;  // none: algorithms run here
  CongestionFlows& congestion_flows_;
  BitsPerSec line_rate_;
  Nanos burst_;
  std::string device_;
  uint32_t worker_;
  IdSource& ids_;
  std::optional<uint64_t> seed_;  // of flows; drawn for the first
  uint32_t next_flow_ = 0;
  FlowRunner runner_;
  uint32_t controlled_ = 0;  // queue pairs
  ControlledQueuePair* touched_ = nullptr;
  ControlFlow* to_be_ended_ = nullptr;  // whose core could not be told yet, by next_ended
  roci_cc_path path_{};
  std::vector<std::string> warned_;  // what was said once
};

template <class Ready>
bool CongestionControl::poll(Nanos now, Ready&& ready) {
  bool worked = runner_.advance(now, [&](ControlFlow& flow) {
    apply(flow, now);
    ready(*static_cast<ControlledQueuePair*>(flow.owner)->qp);
  });
  if (cores_.empty()) return worked;
  for (ControlCore* core : cores_) {
    ControlFlow* ended = core->ended_for(worker_).take();
    worked |= core->decided_for(worker_).take([&](ControlFlow& flow) {
      if (flow.owner == nullptr) return;
      apply(flow, now);
      ready(*static_cast<ControlledQueuePair*>(flow.owner)->qp);
    });
    while (ended != nullptr) {
      ControlFlow* const next = ended->next_ended;
      ended->destroy();
      ended = next;
    }
  }
  free_ended();
  return worked;
}

}  // namespace roci

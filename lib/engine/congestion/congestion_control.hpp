// Interface between transport and congestion control of a worker. Gathers events of flows, runs
// their algorithms on the worker or on a control core (control_core.hpp), and applies the decisions
// to the send gates of the queue pairs (send_gate.hpp).
//
//   execute, time-outs --> touch() ----> send_events(): gather --> FlowRunner ---------------------> apply --> SendGate
//                                               \--> EventRing --> ControlCore --> poll() --^
//
// A queue pair has a flow for its requests and one for the READ responses that it sends. The capabilities
// that an algorithm needs of the peer are unknown before the capability exchange. Until then a flow runs
// the fallback of its profile, or requests wait. A missing capability is logged once per peer; a queue
// pair whose profile has no fallback is then refused.
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
#include "engine/congestion/congestion_flows.hpp"
#include "engine/worker/attached_queue_pair.hpp"

namespace roci {

struct CongestionFlowReport;

// Values of a direction that were already reported to its algorithm.
struct Reported {
  uint64_t acked_packets = 0;    // as counted by the transport
  uint64_t counted_packets = 0;  // as counted by SendFlow; with CE-ECHO: that arrived
  uint64_t marked_packets = 0;
  Lsn acked{};
  uint64_t sent_bytes = 0;
  uint64_t sent_packets = 0;
  uint64_t notice_from = 0;  // sent_bytes at the last ON_SENT
  uint64_t echoes = 0;       // INT echoes
  uint64_t reports = 0;      // reports of switches
  uint64_t notices = 0;      // CNMs
  uint32_t losses = 0;
  uint32_t timeouts = 0;
  uint32_t cnps = 0;
  Nanos cnp_from_echo = kNever;  // last time that a CE mark counted as a CNP (`ignore_cnps`)
  uint16_t rtt_samples = 0;
  uint32_t probes = 0;
  uint16_t receiver_windows = 0;
  Nanos resumed{0};  // last_sent at the last ON_RESUME
};

// One direction of a queue pair under control.
struct ControlledDirection {
  ControlFlow* flow = nullptr;  // null: not started, or no congestion control
  bool handed_over = false;     // the control core knows the flow
  Reported reported;
  // Totals, for reports.
  uint64_t cnps = 0, notices = 0, telemetry = 0;
};

// Receiver part of an algorithm that has one (roci_cc_plugin::receive), for the peer's requests.
struct ReceivingEnd {
  const Profile* profile;
  roci_cc_flow info;                 // of the peer's flow, as far as known
  uint32_t packets = 0, marked = 0;  // received so far
  Lsn received{};
  uint64_t packets_with_telemetry = 0;  // packets with telemetry
  [[nodiscard]] void* state() { return this + 1; }
};

// A queue pair with congestion control. Its gates are the base class.
struct ControlledQueuePair final : SendGates {
  enum class Phase : uint8_t {
    kUndecided,  // the peer's capabilities are unknown and the profile has no fallback: requests wait
    kRunning,    // `directions` has the running flows
    kRefused,    // the peer lacks a required capability and the profile has no fallback
  };
  AttachedQueuePair* qp = nullptr;
  const Profile* profile = nullptr;  // the chosen profile
  Phase phase = Phase::kUndecided;
  bool touched = false;
  Nanos since{0};
  uint32_t peer_version = 0;  // version of the peer's knowledge at the last decision
  const ExtensionSession* session = nullptr;
  bool could_send = false;  // extensions to the peer
  bool answers = false;     // READs
  std::array<ControlledDirection, 2> directions;
  ReceivingEnd* receiving = nullptr;  // null: the algorithm has no receiver part
  ControlledQueuePair* next_touched = nullptr;

  [[nodiscard]] SendGate& gate(uint32_t direction) {
    return direction == ROCI_CC_REQUESTS ? requests : responses;
  }
};

// Congestion control of one worker, which owns it.
class CongestionControl {
 public:
  struct Context {
    const CongestionControlConfig& config;
    SparseArena& arena;
    std::vector<ControlCore*> cores;
    CongestionFlows& congestion_flows;
    BitsPerSec link_rate;  // of the port
    std::string device;    // for the log
    uint32_t worker;
    IdSource& ids;
  };
  explicit CongestionControl(Context context);
  ~CongestionControl();
  CongestionControl(const CongestionControl&) = delete;
  CongestionControl& operator=(const CongestionControl&) = delete;

  // Starts congestion control with this profile before the queue pair
  // is connected; null for none. False if there is no memory.
  bool attach(AttachedQueuePair& qp, const Profile* profile, Nanos now);
  void detach(AttachedQueuePair& qp);
  // Changes the profile of a connected queue pair; null for none. Fails without any change
  // if the queue pair was connected without congestion control, if its peer is not known
  // to have the required capabilities, or if there is no memory.
  Status change(AttachedQueuePair& qp, const Profile* profile, Nanos now);
  [[nodiscard]] static ControlledQueuePair* of(const QueuePairCore& core) {
    return static_cast<ControlledQueuePair*>(core.gates);
  }

  // An event of the queue pair, or a timer, may have changed its state.
  void touch(QueuePairCore& core) {
    if (core.gates == nullptr || of(core)->touched) return;
    ControlledQueuePair& controlled = *of(core);
    controlled.touched = true;
    controlled.next_touched = touched_;
    touched_ = &controlled;
  }
  // Whether congestion control has any work: a controlled queue pair exists, or algorithms run on control cores.
  [[nodiscard]] bool any() const { return users_ > 0; }
  // Reports the events of all touched queue pairs to their algorithms. `flows`:
  // number of flows that have recently sent to this host.
  void send_events(Nanos now, uint32_t flows);
  // Applies decisions of control cores and runs timers; calls
  // ready(AttachedQueuePair&) for queue pairs that may send now.
  template <class Ready>
  bool poll(Nanos now, Ready&& ready);
  [[nodiscard]] Nanos next_deadline() const;

  // Called before a controlled queue pair sends in its turn. False if the queue pair is refused.
  bool prepare(ControlledQueuePair& controlled, Nanos now);
  // Called after its turn.
  void after_turn(ControlledQueuePair& controlled, Nanos now);

  // Bitmap of the directions of a queue pair that report() includes; 0 without congestion control.
  [[nodiscard]] static uint32_t directions(const QueuePairCore& core);
  // Appends a report per direction.
  static void report(AttachedQueuePair& qp, std::vector<CongestionFlowReport>& out);

  // For the holder of the worker's token: recorded traces and
  // the number of events of algorithms that run on this worker.
  [[nodiscard]] const FlowRunner& runner() const { return runner_; }

 private:
  // Retry interval of a queue pair that waits for the peer's capabilities.
  static constexpr Nanos kDecisionTimeout{200'000};
  static constexpr Nanos kMaxDecisionTimeout{
      1'000'000'000};  // unknown capabilities are then treated as missing
  // A CNP is attributed to a direction that has sent within this time.
  static constexpr Nanos kCnpMemory{10'000'000};
  static constexpr Nanos kDecisionTime{20'000};  // for a control core to decide after a loss
  static constexpr BitsPerSec kUnknownLine{100'000'000'000};

  void decide(ControlledQueuePair& controlled, Nanos now);
  bool start(ControlledQueuePair& controlled, uint32_t direction, const Profile& profile, uint32_t provides,
             Nanos now);
  void stop(ControlledQueuePair& controlled, uint32_t direction);
  [[nodiscard]] roci_cc_flow flow_info(const ControlledQueuePair& controlled, uint32_t direction,
                                       const Profile& profile, uint32_t provides) const;
  [[nodiscard]] uint64_t next_seed();
  [[nodiscard]] const char* check(const ControlledQueuePair& controlled, uint32_t direction,
                                  const Profile& profile, uint32_t provides) const;
  [[nodiscard]] uint32_t provided(const QueuePairCore& core, uint32_t direction,
                                  const Profile& profile) const;
  void warn(const ControlledQueuePair& controlled, uint32_t direction, const Profile& wanted,
            const std::string& why);
  void send_events(ControlledQueuePair& controlled, Nanos now);
  bool begin_receiving(ControlledQueuePair& controlled);
  static void end_receiving(ReceivingEnd* end);
  void send_receiving_events(ControlledQueuePair& controlled, Nanos now, uint32_t flows);
  bool send_events(ControlledQueuePair& controlled, uint32_t direction, Nanos now, uint32_t kinds);
  void resume(ControlledQueuePair& controlled, uint32_t direction, Nanos now);
  uint32_t gather(ControlledQueuePair& controlled, uint32_t direction, Nanos now, roci_cc_event& event,
                  Reported& reported);
  void apply(ControlFlow& flow, Nanos now);
  [[nodiscard]] const roci_cc_decision& decision_of(ControlFlow& flow) const {
    return cores_.empty() ? flow.decision : flow.newest();
  }
  bool hand_over(ControlledDirection& direction);
  void end(ControlFlow* flow);
  void free_ended();
  [[nodiscard]] ControlCore& core_of(const ControlFlow& flow) const {
    // The numbers of the requests and responses of queue pairs, and of workers, have patterns.
    return *cores_[(flow.id * 2654435769U >> 16) % cores_.size()];
  }

  const CongestionControlConfig& config_;
  SparseArena& arena_;
  std::vector<ControlCore*> cores_;  // empty: algorithms run on the worker
  CongestionFlows& congestion_flows_;
  BitsPerSec line_rate_;
  Nanos burst_;
  std::string device_;
  uint32_t worker_;
  IdSource& ids_;
  std::optional<uint64_t> seed_;  // for flows; drawn at the first flow
  uint32_t next_flow_ = 0;
  FlowRunner runner_;
  size_t users_;  // controlled queue pairs and control cores
  ControlledQueuePair* touched_ = nullptr;
  ControlFlow* unsent_ends_ = nullptr;  // the ring of their core was full; linked by next_ended
  roci_cc_path path_{};
  std::vector<std::string> warned_;  // warnings that were logged
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

// A poll loop of a host: port to queue pairs and back, in bounded batches. A host has one or several, each with its own
// queue pairs.
//
//   doorbells --+                                  +--> completions
//   timers -----+--> ready list --> transmit --+   |
//   rx burst -> parse -> ICRC -> look-up -> execute-+        (one pass over the batch for each arrow)
//          |  ^                                +--> staged frames --> tx burst
//          v  |
//         other workers: packets whose queue pair is theirs, or ours
//
// Answers are not sent while requests are executed: the queue pair becomes ready and sends when its turn comes, so a
// batch of requests is acknowledged once, and a full port never stops reception.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/growing_ring.hpp"
#include "base/id_table.hpp"
#include "base/poller.hpp"
#include "base/timing_wheel.hpp"
#include "engine/attached_address.hpp"
#include "engine/attached_queue_pair.hpp"
#include "engine/cnm_listener.hpp"
#include "engine/congestion_control.hpp"
#include "engine/congestion_flows.hpp"
#include "engine/extension_terms.hpp"
#include "engine/flow_control.hpp"
#include "engine/flow_count.hpp"
#include "engine/hand_over.hpp"
#include "engine/management.hpp"
#include "engine/multicast_table.hpp"
#include "engine/notification_point.hpp"
#include "engine/receive_point.hpp"
#include "engine/telemetry_sink.hpp"
#include "engine/tx_buffers.hpp"
#include "engine/worker_token.hpp"
#include "memory/memory_table.hpp"
#include "port/eal.hpp"
#include "port/neighbours.hpp"
#include "port/port.hpp"
#include "telemetry/counters.hpp"
#include "transport/packet_sink.hpp"

namespace roci {

// What the workers of a host share; outlives them.
struct WorkerSurroundings {
  Port& port;
  MemoryTable& memory;  // what a work request may not change, only a holder of all workers' tokens does
  const MulticastTable& groups;  // likewise
  EventSink& events;
  HandOver& hand_over;
  FlowCounts& flows;
  std::shared_ptr<MbufPool> tx_pool;  // of whole frames in one segment each
  const ExtensionConfig& extensions;
  const HostTelemetryConfig& telemetry;
  FlowControl& flow_control;
  const CongestionConfig& congestion;
  CongestionFlows& congestion_flows;
  const CongestionControlConfig& control;
  const std::vector<std::unique_ptr<ControlCore>>&
      control_cores;  // that algorithms run on; none: in the workers
  SparseArena& arena;
  IdSource& ids;
  bool check_before_placing;
  uint32_t packets_per_turn;
  bool without_payload;
};

// Owned by whoever holds token(), except for ring() and counters().
class alignas(64) Worker final : public Poller, private PacketSink, private FrameSink, private PathSource {
 public:
  // The worker with number `index` of those that hand_over knows. The first one answers ARP, ND and ping.
  static Result<std::unique_ptr<Worker>> create(std::string name, uint32_t index,
                                                const WorkerSurroundings& surroundings,
                                                NeighbourConfig neighbours);
  ~Worker() override;

  bool poll(Nanos now) override;
  [[nodiscard]] Nanos next_deadline() const override;
  [[nodiscard]] std::string_view name() const override { return name_; }

  [[nodiscard]] WorkerToken& token() { return token_; }
  // Whether frames wait for the port.
  [[nodiscard]] bool has_staged() const { return staged_count_ > 0; }
  // Whether a round could bring anything to the port at once: requests, or answers.
  [[nodiscard]] bool has_something_to_send() const {
    return staged_count_ > 0 || !to_ourselves_.empty() || ready_.count > 0 ||
           rung_.load(std::memory_order_relaxed) != nullptr ||
           (management_ != nullptr && management_->has_waiting());
  }
  // Queue pairs that send on when their peer acknowledges.
  [[nodiscard]] uint32_t waiting_to_send() const { return waiting_to_send_.load(std::memory_order_relaxed); }
  // Taken from the pool for frames to come.
  [[nodiscard]] uint32_t tx_buffers_held() const { return tx_buffers_.held(); }
  [[nodiscard]] Counters& counters() { return counters_; }
  [[nodiscard]] Neighbours& neighbours() { return *neighbours_; }
  // Of the first worker, which has queue pair 1 and does the capability exchange for all.
  [[nodiscard]] Management& management() { return *management_; }
  [[nodiscard]] Peers& peers() { return *peers_; }

  // From attach() to detach() packets for its number reach the queue pair. False when the number is taken.
  bool attach(AttachedQueuePair& qp);
  void detach(AttachedQueuePair& qp);
  // Null when no queue pair has this number.
  [[nodiscard]] AttachedQueuePair* find(Qpn number) const { return queue_pairs_.find(number.value()); }
  [[nodiscard]] size_t queue_pairs() const { return queue_pairs_.size(); }
  template <class F>
  void for_each_queue_pair(F&& visit) const {  // visit(AttachedQueuePair&)
    queue_pairs_.for_each([&](uint32_t, AttachedQueuePair& qp) { visit(qp); });
  }
  // Their numbers in pieces, with the token given back between them (IdTable::walk).
  using QueuePairWalk = IdTable<AttachedQueuePair>::Walk;
  template <class F>
  bool walk_queue_pairs(QueuePairWalk& walk, size_t most, F&& visit) const {  // visit(uint32_t number)
    return queue_pairs_.walk(walk, most, [&](uint32_t number, AttachedQueuePair&) { visit(number); });
  }
  // The queue pair talks to this peer from now on; null for one that is spoken to as the standard says.
  void set_peer(AttachedQueuePair& qp, std::shared_ptr<const PeerRecord> peer) {
    extensions_.set_peer(qp, std::move(peer));
  }
  // The queue pair's session with its peer, for who wants to say something beside its packets. It is made before the first
  // packet, or here. Null when the peer has not agreed to any.
  ExtensionSession* session_of(AttachedQueuePair& qp) {
    extensions_.follow(qp, true);
    return qp.core.session.get();
  }
  // After the queue pair got its peer, or another way to it: it is a flow that can be told of congestion; and no longer.
  void enter_congestion(AttachedQueuePair& qp);  // worker_congestion.cpp
  void leave_congestion(AttachedQueuePair& qp);
  // The queue pair is about to be connected: its congestion control, or null for none. False without memory for it.
  bool control_congestion(AttachedQueuePair& qp, const Profile* profile) {
    return control_.attach(qp, profile, now_);
  }
  // The same for one that is connected; its error says why it keeps what it has.
  Status change_congestion_control(AttachedQueuePair& qp, const Profile* profile) {
    ROCI_TRY(control_.change(qp, profile, now_));
    make_ready(qp);
    return {};
  }
  [[nodiscard]] const CongestionControl& control() const { return control_; }
  // What time it is before the first round, for what is begun until then.
  void begin(Nanos now) { now_ = now; }
  // The queue pair may have something to do: after a change of its state.
  void make_ready(AttachedQueuePair& qp) {
    if (!qp.ready) {
      link_ready(qp);
    } else if (pausable_ && qp.parked != 0) [[unlikely]] {
      look_at_parked(qp);
    }
  }

  // The queue pair's peer places no WRITEs any more (port/placement.hpp): before the state or the access flags change.
  void withdraw_grants(AttachedQueuePair& qp) {
    if (std::exchange(qp.core.granted, false)) placement_->revoke();
  }

  // Any thread: the application has posted to the queue pair.
  void ring(AttachedQueuePair& qp);

 private:
  Worker(std::string name, uint32_t index, const WorkerSurroundings& surroundings);

  static constexpr Nanos kLinkWatch{100'000'000};  // between two looks at the port's link
  static constexpr Nanos kPortStalled{
      100'000'000};  // without a frame taken, the port is not expected to take more
  static constexpr uint16_t kRxBurst = 32;
  // So many full bursts hold more than a port keeps: what came before a time-out has been received by then.
  static constexpr uint32_t kMostBursts = 256;
  static constexpr size_t kTxStage = 64;
  static constexpr size_t kTxFirst =
      16;  // more, of what is said to the network and to senders while the port is full
  // A turn of a queue pair is one quantum of packets. When few queue pairs are ready each gets more of them in a round,
  // but none after it has sent kBytesPerTurn.
  static constexpr uint32_t kQuantum = 16;  // unless the device says another
  static constexpr uint32_t kQuantaPerRound = 4;
  static constexpr uint64_t kBytesPerTurn = 32768;
  static constexpr uint32_t kTurnsPerRound = 64;  // queue pairs served between two receptions
  static constexpr uint32_t kTurnsAhead = 3;      // between fetching a queue pair from memory and its turn
  static constexpr size_t kFew = 64;              // queue pairs that stay in the caches by themselves
  // Above so many frames in it an inbox takes no copies: a storm of ARP must not crowd out packets.
  static constexpr uint32_t kCopiesBelow = 64;
  static constexpr size_t kLoopback = 256;  // copies of own multicasts that wait for the next reception
  static constexpr size_t kToOurselves =
      256;  // frames from queue pairs of the host to others of it that do the same

  struct Received {
    rte_mbuf* frame = nullptr;
    FrameView view;
    AttachedQueuePair* qp = nullptr;
    bool unchecked = false;  // its ICRC is checked while its payload is copied
  };
  enum class Origin : uint8_t { kPort, kOtherWorker };
  enum class Fate : uint8_t {
    kForQueuePair,  // RoCEv2 for a queue pair of ours, with a right ICRC, or one that is checked late
    kDone,
    kPassedOn,  // is another worker's now
  };
  // What goes to one other worker at the end of the burst.
  struct Outbox {
    FrameRing* ring = nullptr;
    uint32_t count = 0;
    std::array<rte_mbuf*, kRxBurst> frames{};
  };

  // PacketSink and FrameSink.
  rte_mbuf* allocate() override;
  rte_mbuf* allocate_direct(const MacAddress& to, uint32_t bytes) override;
  bool has_stage_room();
  void send(rte_mbuf* frame) override;
  // PathSource.
  Answer find(AddressPath& to, Nanos now) override;
  void loop_back(const rte_mbuf& frame, const IpAddress& group) override;  // worker_receive.cpp

  // Queue pairs with something to do, in order.
  struct QueuePairList {
    AttachedQueuePair* first = nullptr;
    AttachedQueuePair* last = nullptr;
    uint32_t count = 0;
  };

  // PFC: queue pairs of priorities that the neighbour has stopped are put aside and make nobody wait.
  void follow_pauses(Nanos now);
  [[nodiscard]] bool is_stopped(unsigned priority) const { return (stopped_ >> priority & 1U) != 0; }
  bool park_if_stopped(AttachedQueuePair& qp);
  void park(AttachedQueuePair& qp, unsigned priority);
  void look_at_parked(AttachedQueuePair& qp);
  void unpark(AttachedQueuePair& qp);
  Fate take_mac_control(rte_mbuf* frame, Nanos now, Origin origin);
  void note_backlog(const PortQueue& queue, bool full_burst);
  bool tell_neighbour(Nanos now);
  bool send_first(std::span<const uint8_t> bytes);

  // worker_congestion.cpp.
  Fate take_cnm(Received& received, Nanos now, Origin origin);
  void sample(const Received& packet, Nanos now);
  void notify(const Received& packet, Nanos now);

  bool watch_link(TransportContext& context);
  bool run_timers(TransportContext& context);
  void count_waiting(AttachedQueuePair& qp, bool waits);
  bool note_exits(TransportContext& context);
  bool take_doorbells();
  void link_ready(AttachedQueuePair& qp) { link(qp, ready_); }
  void link(AttachedQueuePair& qp, QueuePairList& list);
  void link_first(AttachedQueuePair& qp, QueuePairList& list);
  void unlink(AttachedQueuePair& qp, QueuePairList& list);
  bool serve_ready(TransportContext& context);
  bool transmit(TransportContext& context, AttachedQueuePair& qp, uint32_t quanta);
  bool refresh_path(TransportContext& context, AttachedQueuePair& qp);
  void set_timer(AttachedQueuePair& qp);
  void wait_for_neighbour(AttachedQueuePair& qp);
  void stop_waiting(AttachedQueuePair& qp);
  bool wake_waiting();
  bool relay();
  bool flush();
  bool flush_direct();

  // worker_receive.cpp.
  bool receive(TransportContext& context);
  void execute(TransportContext& context, std::span<rte_mbuf*> burst, Origin origin);
  Fate classify(Received& received, Nanos now, Origin origin);
  Fate classify_telemetry(Received& received, Origin origin);
  Fate classify_roce(Received& received, Origin origin);
  void parse(Received& received) const;
  Fate classify_neighbourly(const FrameView& view, rte_mbuf* frame, Nanos now, Origin origin);
  [[nodiscard]] bool is_for_datagrams(const FrameView& view) const;
  [[gnu::cold, gnu::noinline]] bool receive_own_multicasts(TransportContext& context);
  [[gnu::cold, gnu::noinline]] void keep_for_ourselves(rte_mbuf* frame);
  [[gnu::cold, gnu::noinline]] bool receive_from_ourselves(TransportContext& context);
  void deliver_multicast(TransportContext& context, const FrameView& view, const rte_mbuf* frame);
  bool check_late(Received& received);
  void pass_on(uint32_t worker, rte_mbuf* frame);
  void copy_to_all(const rte_mbuf* frame);
  void copy_to_members(const rte_mbuf* frame, const IpAddress& group);
  void copy_to(uint32_t worker, const rte_mbuf* frame);
  void deliver_outboxes();
  void learn_neighbour(const Received& packet, Nanos now);
  void count_flow(AttachedQueuePair& qp, const FrameView& view, Nanos now) {
    if (qp.core.session != nullptr && view.opcode->is_request()) flows_.note(qp.flow_seen, now);
  }

  std::string name_;
  const uint32_t index_;
  Port& port_;
  // Of the port; null where it knows nothing of peers' processes, and with several workers, since it is for one thread.
  PeerPresence* const peer_presence_;
  Placement* const placement_;  // likewise
  uint32_t full_in_a_row_ = 0;  // rounds whose reception was a full burst
  const MacAddress mac_;        // the port's
  const uint64_t mac_bits_;     // the same
  MemoryTable& memory_;
  const MulticastTable& groups_;
  EventSink& events_;
  TxBuffers tx_buffers_;

  std::vector<PortQueue*> queues_;   // of the port, to receive from; we send on the first
  FrameRing* outgoing_ = nullptr;    // without a queue: to the worker that sends for us
  std::vector<FrameRing*> relayed_;  // from those we send for
  size_t next_relayed_ = 0;
  std::vector<FrameRing*> inboxes_;  // from each other worker
  std::vector<Outbox> outboxes_;     // to each worker; ours is not used
  const uint32_t quantum_;           // packets of a turn
  const uint32_t quanta_a_round_;
  const size_t stage_;  // frames that may wait for the port
  const bool without_payload_;
  const bool needs_icrc_;    // of the port
  const bool sends_direct_;  // into memory of receivers, where the port offers it; with one worker
  const bool place_early_;   // payloads in the middle of messages, while they are summed
  bool passed_on_ = false;   // something waits in the outboxes
  WorkerToken token_;
  Counters counters_;
  uint16_t vlan_ = 0;
  std::unique_ptr<Neighbours> neighbours_;
  std::unique_ptr<AddressResolver> addresses_;
  TelemetrySink telemetry_;
  PeerExtensions extensions_;
  std::unique_ptr<Management> management_;  // null but in the first worker, like the next
  std::unique_ptr<Peers> peers_;
  bool link_up_;  // when it was last looked at, by the first worker
  Nanos link_watched_{0};
  HeardPeers heard_;
  Nanos port_took_{0};  // the last of the staged frames
  FlowCounts& all_flows_;
  FlowCount& flows_;                         // ours, in there
  std::vector<AttachedQueuePair*> waiting_;  // for a neighbour to be resolved; each knows its place
  uint64_t woken_generation_ = 0;            // of the neighbour table when they were last woken
  TimingWheel timers_;
  IdTable<AttachedQueuePair> queue_pairs_;

  FlowControl& flow_control_;
  const bool pausable_;         // the neighbour may stop priorities
  uint8_t stopped_ = 0;         // priorities, of the round under way
  uint8_t stopped_to_ = 0;      // one more than the priority of the datagram that could not be sent; 0: none
  const bool watches_backlog_;  // of frames to be received
  uint32_t full_bursts_ = 0;    // in a row
  std::array<QueuePairList, kPriorities> parked_;

  const CongestionConfig& congestion_;
  CongestionFlows& congestion_flows_;
  CnmListener cnms_;
  std::optional<ReceivePoint> receive_point_;
  NotificationPoint notification_point_;
  CongestionControl control_;

  QueuePairList ready_;
  std::atomic<uint32_t> waiting_to_send_{0};  // written by the token's holder
  Nanos now_{0};                              // of the round under way
  bool blocked_ = false;  // the port took nothing, or the pool is empty: no use in asking queue pairs
  std::atomic<AttachedQueuePair*> rung_{nullptr};

  CompletionBatch completions_;
  std::array<Received, kRxBurst> received_{};
  uint64_t bytes_in_turn_ = 0;  // that the queue pair whose turn it is has sent
  std::array<rte_mbuf*, kTxStage + kTxFirst> staged_{};
  size_t staged_count_ = 0;
  size_t staged_first_ = 0;  // of them, those of send_first()
  GrowingRing<rte_mbuf*> loopback_{kLoopback};
  GrowingRing<rte_mbuf*> to_ourselves_{kToOurselves};
};

}  // namespace roci

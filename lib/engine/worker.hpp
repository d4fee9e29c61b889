// Worker: a poll loop of a host, which moves packets between the port and its queue pairs in bounded batches. A host
// has one or several workers, each with its own queue pairs.
//
//   doorbells --+                                  +--> completions
//   timers -----+--> ready list --> transmit --+   |
//   rx burst -> parse -> ICRC -> look-up -> execute-+        (one pass over the batch for each arrow)
//          |  ^                                +--> staged frames --> tx burst
//          v  |
//         other workers: packets of their queue pairs out, packets of this worker's queue pairs in
//
// Responses are not sent while requests are executed. The queue pair becomes ready and sends in its turn. A batch of
// requests is therefore acknowledged once, and a full port never stops reception.
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
#include "engine/handoff.hpp"
#include "engine/host_congestion_point.hpp"
#include "engine/management.hpp"
#include "engine/multicast_table.hpp"
#include "engine/notification_point.hpp"
#include "engine/telemetry_sink.hpp"
#include "engine/tx_buffers.hpp"
#include "engine/worker_token.hpp"
#include "memory/memory_table.hpp"
#include "port/eal.hpp"
#include "port/neighbors.hpp"
#include "port/port.hpp"
#include "telemetry/counters.hpp"
#include "transport/packet_sink.hpp"

namespace roci {

// Objects that the workers of a host share. Must outlive the workers.
struct WorkerContext {
  Port& port;
  MemoryTable& memory;           // only modified while all tokens are held, except by work requests
  const MulticastTable& groups;  // only modified while all tokens are held
  EventSink& events;
  Handoff& hand_over;
  FlowCounts& flows;
  std::shared_ptr<MbufPool> tx_pool;  // each buffer holds a whole frame in one segment
  const ExtensionConfig& extensions;
  const HostTelemetryConfig& telemetry;
  FlowControl& flow_control;
  const CongestionConfig& congestion;
  CongestionFlows& congestion_flows;
  const CongestionControlConfig& control;
  // Cores that run algorithms; empty: the workers run them.
  const std::vector<std::unique_ptr<ControlCore>>& control_cores;
  SparseArena& arena;
  IdSource& ids;
  bool check_before_placing;
  uint32_t packets_per_turn;
  bool header_only;
};

// Poll loop of a host. Owned by the holder of token(), except for ring() and counters().
class alignas(64) Worker final : public Poller, private PacketSink, private FrameSink, private PathSource {
 public:
  // `index`: number of the worker in hand_over. Worker 0 answers ARP, ND and echo requests.
  static Result<std::unique_ptr<Worker>> create(std::string name, uint32_t index,
                                                const WorkerContext& worker_context,
                                                NeighborConfig neighbors);
  ~Worker() override;

  bool poll(Nanos now) override;
  [[nodiscard]] Nanos next_deadline() const override;
  [[nodiscard]] std::string_view name() const override { return name_; }

  [[nodiscard]] WorkerToken& token() { return token_; }
  // Whether frames wait for the port.
  [[nodiscard]] bool has_staged() const { return staged_count_ > 0; }
  // Whether a round could pass frames to the port at once: requests or responses.
  [[nodiscard]] bool has_something_to_send() const {
    return staged_count_ > 0 || !loopback_frames_.empty() || ready_.count > 0 ||
           rung_.load(std::memory_order_relaxed) != nullptr ||
           (management_ != nullptr && management_->has_waiting());
  }
  // Number of queue pairs that can send more after an acknowledgment of their peer.
  [[nodiscard]] uint32_t waiting_to_send() const { return waiting_to_send_.load(std::memory_order_relaxed); }
  // Number of buffers allocated from the pool for future frames.
  [[nodiscard]] uint32_t tx_buffers_held() const { return tx_buffers_.held(); }
  [[nodiscard]] Counters& counters() { return counters_; }
  [[nodiscard]] Neighbors& neighbors() { return *neighbors_; }
  // Only in the first worker, which owns queue pair 1 and does the capability exchange for all workers.
  [[nodiscard]] Management& management() { return *management_; }
  [[nodiscard]] Peers& peers() { return *peers_; }

  // From attach() to detach(), packets to its number reach the queue pair. False if the number is taken.
  bool attach(AttachedQueuePair& qp);
  void detach(AttachedQueuePair& qp);
  // Null if no queue pair has this number.
  [[nodiscard]] AttachedQueuePair* find(Qpn number) const { return queue_pairs_.find(number.value()); }
  [[nodiscard]] size_t queue_pairs() const { return queue_pairs_.size(); }
  template <class F>
  void for_each_queue_pair(F&& visit) const {  // visit(AttachedQueuePair&)
    queue_pairs_.for_each([&](uint32_t, AttachedQueuePair& qp) { visit(qp); });
  }
  // Visits queue pair numbers in pieces; the token may be released between them (IdTable::walk).
  using QueuePairWalk = IdTable<AttachedQueuePair>::Walk;
  template <class F>
  bool walk_queue_pairs(QueuePairWalk& walk, size_t most, F&& visit) const {  // visit(uint32_t number)
    return queue_pairs_.walk(walk, most, [&](uint32_t number, AttachedQueuePair&) { visit(number); });
  }
  // Sets the peer of the queue pair; null for a queue pair without extensions.
  void set_peer(AttachedQueuePair& qp, std::shared_ptr<const PeerRecord> peer) {
    extensions_.set_peer(qp, std::move(peer));
  }
  // The queue pair's session with its peer, for callers that send more than the queue pair's packets. It is created
  // before the first packet, or here. Null if the peer has not agreed to extensions.
  ExtensionSession* session_of(AttachedQueuePair& qp) {
    extensions_.follow(qp, true);
    return qp.core.session.get();
  }
  // Called after the queue pair got its peer or another path: registers it as a flow for congestion notification.
  // leave_congestion() removes it.
  void enter_congestion(AttachedQueuePair& qp);  // worker_congestion.cpp
  void leave_congestion(AttachedQueuePair& qp);
  // Starts congestion control before the queue pair is connected; null: none. False if there is no memory.
  bool control_congestion(AttachedQueuePair& qp, const Profile* profile) {
    return control_.attach(qp, profile, now_);
  }
  // Changes congestion control of a connected queue pair. On an error
  // the current profile remains; the error states the reason.
  Status change_congestion_control(AttachedQueuePair& qp, const Profile* profile) {
    const uint8_t before = qp.core.sent_path().traffic_class;
    ROCI_TRY(control_.change(qp, profile, now_));
    if (qp.core.sent_path().traffic_class != before) enter_congestion(qp);
    make_ready(qp);
    return {};
  }
  [[nodiscard]] const CongestionControl& control() const { return control_; }
  // Sets the time before the first round, for operations until then.
  void begin(Nanos now) { now_ = now; }
  // The queue pair may have work: called after a change of its state.
  void make_ready(AttachedQueuePair& qp) {
    if (!qp.ready) {
      link_ready(qp);
    } else if (pausable_ && qp.paused != 0) [[unlikely]] {
      check_paused(qp);
    }
  }

  // Revokes placement of WRITEs by the peer (port/placement.hpp); called before the state or the access flags change.
  void withdraw_grants(AttachedQueuePair& qp) {
    if (std::exchange(qp.core.granted, false)) placement_->revoke();
  }

  // Any thread: the application has posted to the queue pair.
  void ring(AttachedQueuePair& qp);

 private:
  Worker(std::string name, uint32_t index, const WorkerContext& worker_context);

  static constexpr Nanos kLinkWatch{100'000'000};  // interval between checks of the port's link
  // A port that has accepted no frame for this time counts as stalled.
  static constexpr Nanos kPortStalled{100'000'000};
  static constexpr uint16_t kRxBurst = 32;
  // After this number of consecutive full bursts, frames that were in the port
  // at a time-out have been received: a port holds fewer frames.
  static constexpr uint32_t kMaxBursts = 256;
  static constexpr size_t kTxStage = 64;
  static constexpr size_t kTxFirst = 16;  // additional slots for send_first() while the port is full
  // A turn of a queue pair is one quantum of packets. If few queue pairs are ready, each gets several quanta in a
  // round, until it has sent kBytesPerTurn.
  static constexpr uint32_t kQuantum = 16;  // default
  static constexpr uint32_t kQuantaPerRound = 4;
  static constexpr uint64_t kBytesPerTurn = 32768;
  static constexpr uint32_t kTurnsPerRound = 64;  // queue pairs served between two receptions
  static constexpr uint32_t kTurnsAhead = 3;      // between prefetching a queue pair and its turn
  static constexpr size_t kFew = 64;              // queue pairs that stay in the CPU caches
  // An inbox with at least this number of frames accepts no copies, so that an ARP storm does not displace packets.
  static constexpr uint32_t kCopiesBelow = 64;
  static constexpr size_t kLoopback = 256;  // copies of own multicasts that wait for the next reception
  // Limit of frames between queue pairs of this host that wait for the next reception.
  static constexpr size_t kLoopbackLimit = 256;

  struct Received {
    rte_mbuf* frame = nullptr;
    FrameView view;
    AttachedQueuePair* qp = nullptr;
    bool unchecked = false;  // the ICRC is validated while the payload is copied
  };
  enum class Origin : uint8_t { kPort, kOtherWorker };
  enum class Verdict : uint8_t {
    kForQueuePair,  // RoCEv2 for a queue pair of this worker; ICRC valid, or validated later
    kDone,
    kHandedOver,  // handed over to another worker
  };
  // Frames for one other worker, passed at the end of the burst.
  struct Outbox {
    FrameRing* ring = nullptr;
    uint32_t count = 0;
    std::array<rte_mbuf*, kRxBurst> frames{};
  };

  // PacketSink and FrameSink.
  rte_mbuf* allocate() override;
  rte_mbuf* allocate_direct(const MacAddress& to, uint32_t bytes) override;
  bool has_stage_space();
  void send(rte_mbuf* frame) override;
  // PathSource.
  Answer find(AddressPath& to, Nanos now) override;
  void loop_back(const rte_mbuf& frame, const IpAddress& group) override;  // worker_receive.cpp

  // Queue pairs with work, in order.
  struct QueuePairList {
    AttachedQueuePair* first = nullptr;
    AttachedQueuePair* last = nullptr;
    uint32_t count = 0;
  };

  // PFC: queue pairs of priorities that the link partner has paused are paused, and do not delay other queue pairs.
  void follow_pauses(Nanos now);
  [[nodiscard]] bool is_stopped(unsigned priority) const { return (stopped_ >> priority & 1U) != 0; }
  bool pause_if_stopped(AttachedQueuePair& qp);
  void pause_queue_pair(AttachedQueuePair& qp, unsigned priority);
  void check_paused(AttachedQueuePair& qp);
  void resume(AttachedQueuePair& qp);
  Verdict take_mac_control(rte_mbuf* frame, Nanos now, Origin origin);
  void note_backlog(const PortQueue& queue, bool full_burst);
  bool send_pause(Nanos now);
  bool send_first(std::span<const uint8_t> bytes);

  // worker_congestion.cpp.
  Verdict take_cnm(Received& received, Nanos now, Origin origin);
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
  void wait_for_neighbor(AttachedQueuePair& qp);
  void stop_waiting(AttachedQueuePair& qp);
  bool wake_waiting();
  bool relay();
  bool flush();
  bool flush_direct();

  // worker_receive.cpp.
  bool receive(TransportContext& context);
  void execute(TransportContext& context, std::span<rte_mbuf*> burst, Origin origin);
  Verdict classify(Received& received, Nanos now, Origin origin);
  Verdict classify_telemetry(Received& received, Origin origin);
  Verdict classify_roce(Received& received, Origin origin);
  void parse(Received& received) const;
  Verdict classify_resolution(const FrameView& view, rte_mbuf* frame, Nanos now, Origin origin);
  [[nodiscard]] bool is_for_datagrams(const FrameView& view) const;
  [[gnu::cold, gnu::noinline]] bool receive_own_multicasts(TransportContext& context);
  [[gnu::cold, gnu::noinline]] void enqueue_loopback(rte_mbuf* frame);
  [[gnu::cold, gnu::noinline]] bool receive_loopback(TransportContext& context);
  void deliver_multicast(TransportContext& context, const FrameView& view, const rte_mbuf* frame);
  bool verify_deferred_icrc(Received& received);
  void hand_over_frame(uint32_t worker, rte_mbuf* frame);
  void copy_to_all(const rte_mbuf* frame);
  void copy_to_members(const rte_mbuf* frame, const IpAddress& group);
  void copy_to(uint32_t worker, const rte_mbuf* frame);
  void deliver_outboxes();
  void learn_neighbor(const Received& packet, Nanos now);
  void count_flow(AttachedQueuePair& qp, const FrameView& view, Nanos now) {
    if (qp.core.session != nullptr && view.opcode->is_request()) flows_.note(qp.flow_seen, now);
  }

  std::string name_;
  const uint32_t index_;
  Port& port_;
  // Of the port. Null if the port does not know its peers' processes,
  // and with several workers, because it is for one thread.
  PeerPresence* const peer_presence_;
  Placement* const placement_;  // as above
  uint32_t full_rounds_ = 0;    // number of consecutive rounds with a full receive burst
  const MacAddress mac_;        // of the port
  const uint64_t mac_bits_;     // mac_ as an integer
  MemoryTable& memory_;
  const MulticastTable& groups_;
  EventSink& events_;
  TxBuffers tx_buffers_;

  std::vector<PortQueue*> queues_;   // port queues to receive from; the first is used for sending
  FrameRing* outgoing_ = nullptr;    // without a port queue: to the relay
  std::vector<FrameRing*> relayed_;  // from the workers for which this worker is the relay
  size_t next_relayed_ = 0;
  std::vector<FrameRing*> inboxes_;  // from each other worker
  std::vector<Outbox> outboxes_;     // to each worker; the own one is unused
  const uint32_t quantum_;           // packets per turn
  const uint32_t quanta_a_round_;
  const size_t stage_;  // maximum number of frames that wait for the port
  const bool header_only_;
  const bool needs_icrc_;      // of the port
  const bool sends_direct_;    // into the receiver's memory, if the port supports it; with one worker
  const bool place_early_;     // place payloads of middle packets while their ICRC is computed
  bool has_outgoing_ = false;  // an outbox has frames
  WorkerToken token_;
  Counters counters_;
  uint16_t vlan_ = 0;
  std::unique_ptr<Neighbors> neighbors_;
  std::unique_ptr<AddressResolver> addresses_;
  TelemetrySink telemetry_;
  PeerExtensions extensions_;
  std::unique_ptr<Management> management_;  // null except in the first worker; so is peers_
  std::unique_ptr<Peers> peers_;
  bool link_up_;  // at the last check, by the first worker
  Nanos link_watched_{0};
  PeerActivity peer_activity_;
  Nanos port_accepted_{0};  // time at which the port last accepted a frame
  FlowCounts& all_flows_;
  FlowCount& flows_;                         // of this worker, in all_flows_
  std::vector<AttachedQueuePair*> waiting_;  // for resolution of the next hop; indexed by waiting_at
  uint64_t woken_generation_ = 0;            // of the neighbor table at the last wake_waiting()
  TimingWheel timers_;
  IdTable<AttachedQueuePair> queue_pairs_;

  FlowControl& flow_control_;
  const bool pausable_;         // the link partner may pause priorities
  uint8_t stopped_ = 0;         // paused priorities in the current round
  uint8_t stopped_to_ = 0;      // priority + 1 of the datagram that could not be sent; 0: none
  const bool watches_backlog_;  // of received frames
  uint32_t full_bursts_ = 0;    // consecutive
  std::array<QueuePairList, kPriorities> paused_queues_;

  const CongestionConfig& congestion_;
  CongestionFlows& congestion_flows_;
  CnmListener cnms_;
  std::optional<HostCongestionPoint> congestion_point_;
  NotificationPoint notification_point_;
  CongestionControl control_;

  QueuePairList ready_;
  std::atomic<uint32_t> waiting_to_send_{0};  // written by the token's holder
  Nanos now_{0};                              // time of the current round
  bool blocked_ = false;                      // the port is full or the pool is empty: no queue pair can send
  std::atomic<AttachedQueuePair*> rung_{nullptr};

  CompletionBatch completions_;
  std::array<Received, kRxBurst> received_{};
  uint64_t turn_bytes_ = 0;  // sent by the queue pair in its current turn
  std::array<rte_mbuf*, kTxStage + kTxFirst> staged_{};
  size_t staged_count_ = 0;
  size_t staged_first_ = 0;  // number of leading frames of send_first()
  GrowingRing<rte_mbuf*> loopback_{kLoopback};
  GrowingRing<rte_mbuf*> loopback_frames_{kLoopbackLimit};
};

}  // namespace roci

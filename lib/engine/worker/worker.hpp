// Worker: a poll loop of a host, which moves packets between the port and its queue pairs in bounded batches. A host
// has one or several workers, each with its own queue pairs.
//
//   port --> ReceivePipeline --> queue pairs --> completions
//                |  ^                |  ^
//                v  |                v  |
//           WorkerHandoff      TransmitScheduler <-- doorbells, timers
//                |  ^                |
//                v  |                v
//           other workers       TransmitStage --> port
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/containers/id_table.hpp"
#include "base/types.hpp"
#include "engine/management/management.hpp"
#include "engine/receive/loopback.hpp"
#include "engine/receive/receive_pipeline.hpp"
#include "engine/transmit/transmit_scheduler.hpp"
#include "engine/transmit/transmit_stage.hpp"
#include "engine/worker/worker_context.hpp"
#include "engine/worker/worker_handoff.hpp"
#include "engine/worker/worker_token.hpp"
#include "roci/poller.hpp"

namespace roci {

// Owned by the holder of token(), except for ring(), has_new_work(), waiting_to_send() and counters().
class alignas(64) Worker final : public Poller {
 public:
  // `index`: number of the worker in the handoff. Worker 0 answers ARP, ND and echo requests.
  static Result<std::unique_ptr<Worker>> create(std::string name, uint32_t index,
                                                const WorkerContext& context, NeighborConfig neighbors);

  // Runs one round.
  bool poll(Nanos now) override;
  [[nodiscard]] Nanos next_deadline() const override;
  [[nodiscard]] std::string_view name() const override { return name_; }
  // Sets the time before the first round, for operations until then.
  void begin(Nanos now) {
    now_ = now;
    stage_.begin_round(now);
  }

  [[nodiscard]] WorkerToken& token() { return token_; }
  [[nodiscard]] Counters& counters() { return counters_; }
  // Whether frames wait for the port.
  [[nodiscard]] bool has_staged() const { return !stage_.empty(); }
  // Whether a round could pass frames to the port at once: requests or responses.
  [[nodiscard]] bool has_something_to_send() const {
    return has_staged() || loopback_.has_frames() || scheduler_->has_work() ||
           (management_ != nullptr && management_->has_waiting());
  }
  // Any thread: whether a doorbell or a frame of another worker waits.
  [[nodiscard]] bool has_new_work() const { return scheduler_->has_doorbells() || handoff_.has_waiting(); }
  // Number of queue pairs that can send more after an acknowledgment of their peer.
  [[nodiscard]] uint32_t waiting_to_send() const { return scheduler_->waiting_to_send(); }
  // Number of buffers allocated from the pool for future frames.
  [[nodiscard]] uint32_t tx_buffers_held() const { return stage_.buffers_held(); }
  [[nodiscard]] Neighbors& neighbors() { return *neighbors_; }
  [[nodiscard]] const CongestionControl& control() const { return control_; }
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

  // Any thread: the application has posted to the queue pair.
  void ring(AttachedQueuePair& qp) { scheduler_->ring(qp); }
  // The queue pair may have work: called after a change of its state.
  void make_ready(AttachedQueuePair& qp) { scheduler_->make_ready(qp); }
  // Revokes placement of WRITEs by the peer (port/placement.hpp); called before the state or the access flags change.
  void withdraw_grants(AttachedQueuePair& qp) { scheduler_->withdraw_grants(qp); }
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
  void enter_congestion(AttachedQueuePair& qp);
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

 private:
  Worker(std::string name, uint32_t index, const WorkerContext& context);
  void assemble(const WorkerContext& context, std::unique_ptr<Neighbors> neighbors, uint16_t vlan_id);

  static constexpr Nanos kLinkWatch{100'000'000};  // interval between checks of the port's link

  // Steps of a round. Each returns whether there was work.
  TransportContext begin_round(Nanos now);
  bool watch_link(TransportContext& context);
  bool apply_decisions(Nanos now);
  bool note_exits(TransportContext& context);
  bool run_timers(TransportContext& context);
  bool follow_pauses(Nanos now);
  bool serve_protocols(Nanos now);
  bool send_frames();
  void end_round();

  std::string name_;
  const uint32_t index_;
  Port& port_;
  MemoryTable& memory_;
  EventSink& events_;
  FlowControl& flow_control_;
  const bool pausable_;  // the link partner may pause priorities
  // Of the port; null with several workers.
  PeerPresence* const peer_presence_;
  Placement* const placement_;
  FlowCounts& all_flows_;
  FlowCount& flows_;  // of this worker, in all_flows_
  const CongestionConfig& congestion_;
  CongestionFlows& congestion_flows_;
  bool link_up_;  // at the last check, by the first worker
  Nanos link_watched_{0};
  Nanos now_{0};  // time of the current round
  WorkerToken token_;
  Counters counters_;
  PeerActivity peer_activity_;
  CompletionBatch completions_;
  IdTable<AttachedQueuePair> queue_pairs_;
  PeerExtensions extensions_;
  CongestionControl control_;

  Loopback loopback_;
  WorkerHandoff handoff_;
  TransmitStage stage_;
  std::unique_ptr<Neighbors> neighbors_;
  std::unique_ptr<Management> management_;  // null except in the first worker; so is peers_
  std::unique_ptr<Peers> peers_;
  // Always present: made in assemble(), after the parts above. As optional, they are accessed without a further pointer.
  std::optional<TransmitScheduler> scheduler_;
  std::optional<ReceivePipeline> pipeline_;
};

}  // namespace roci

// Order in which the queue pairs of a worker send: round robin over the ready ones, a turn of some packets each.
//
//   doorbells, packets, timers, decisions --> ready list --> turn --> transmit() --> TransmitStage
//                                              ^      |        |
//                      end of the pause (PFC) -+      v        v
//                                          paused queues     waiting for the next hop's MAC address
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "base/time/timing_wheel.hpp"
#include "engine/transmit/transmit_stage.hpp"
#include "engine/worker/attached_address.hpp"
#include "engine/worker/attached_queue_pair.hpp"
#include "engine/worker/worker_context.hpp"

namespace roci {

// Owned by its worker, except for ring() and waiting_to_send().
class TransmitScheduler final : public PathSource {
 public:
  TransmitScheduler(const WorkerContext& context, const WorkerParts& parts);

  // Any thread: the application has posted to the queue pair.
  void ring(AttachedQueuePair& qp);
  // The queue pair may have work.
  void make_ready(AttachedQueuePair& qp) {
    if (!qp.ready) {
      link(qp, ready_);
    } else if (pausable_ && qp.paused != 0) [[unlikely]] {
      check_paused(qp);
    }
  }
  // Whether a queue pair waits for its turn, and that queue pair if it is the only one.
  [[nodiscard]] bool any_ready() const { return ready_.count > 0; }
  [[nodiscard]] const AttachedQueuePair* only_ready() const {
    return ready_.count == 1 ? ready_.first : nullptr;
  }
  // Acknowledgments and responses to probes of the queue pair are sent before the data of the ready queue pairs.
  void acknowledge_first(AttachedQueuePair& qp);
  // Removes a queue pair that is detached from all lists, cancels its timer and withdraws its grants.
  void remove(AttachedQueuePair& qp);

  // The steps of a round. Each returns whether there was work.
  //
  // Makes the rung queue pairs ready.
  bool take_doorbells() { return rung_.load(std::memory_order_relaxed) != nullptr && take_rung(); }
  // Before reception: resumes the queue pairs of pauses that have expired since the last round.
  void end_pauses(Nanos now) {
    if (pausable_) end_expired_pauses(now);
  }
  // Updates the priorities that the link partner has paused, and resumes queue pairs. Only if pauses are enabled.
  void follow_pauses(Nanos now);
  bool run_timers(TransportContext& context);
  // Makes queue pairs ready that wait for a next hop, if the neighbor table has changed.
  bool wake_waiting() { return parts_.neighbors.generation() != woken_generation_ && wake_all_waiting(); }
  // Serves the ready queue pairs.
  bool serve_ready(TransportContext& context);

  // PathSource.
  Answer find(AddressPath& to, Nanos now) override;
  void loop_back(const rte_mbuf& frame, const IpAddress& group) override;
  void loop_back_frame(const rte_mbuf& frame) override;

  // Revokes placement of WRITEs by the peer (port/placement.hpp); called before the state or the access flags change.
  void withdraw_grants(AttachedQueuePair& qp) {
    if (std::exchange(qp.core.granted, false)) placement_->revoke();
  }

  // Any thread: whether a queue pair is rung. Ordered after the caller's earlier stores.
  [[nodiscard]] bool has_doorbells() const { return rung_.load(std::memory_order_seq_cst) != nullptr; }
  // Whether a queue pair is ready or rung.
  [[nodiscard]] bool has_work() const {
    return ready_.count > 0 || rung_.load(std::memory_order_relaxed) != nullptr;
  }
  [[nodiscard]] Nanos next_deadline() const;
  // Number of queue pairs that can send more after an acknowledgment of their peer. Any thread.
  [[nodiscard]] uint32_t waiting_to_send() const { return waiting_to_send_.load(std::memory_order_seq_cst); }

 private:
  // A turn of a queue pair is one quantum of packets. If few queue pairs are ready, each gets several quanta in a
  // round, until it has sent kBytesPerTurn.
  static constexpr uint32_t kQuantum = 16;  // default
  static constexpr uint32_t kQuantaPerRound = 4;
  static constexpr uint64_t kBytesPerTurn = 32768;
  static constexpr uint32_t kTurnsPerRound = 64;  // queue pairs served between two receptions
  static constexpr uint32_t kTurnsAhead = 3;      // between prefetching a queue pair and its turn
  // Limit of acknowledge_first(). Acknowledgments of further queue pairs wait for their turn.
  static constexpr uint32_t kAcknowledging = 64;

  // Queue pairs with work, in order.
  struct QueuePairList {
    AttachedQueuePair* first = nullptr;
    AttachedQueuePair* last = nullptr;
    uint32_t count = 0;
  };
  static void link(AttachedQueuePair& qp, QueuePairList& list);
  static void link_first(AttachedQueuePair& qp, QueuePairList& list);
  static void unlink(AttachedQueuePair& qp, QueuePairList& list);

  bool take_rung();
  bool may_acknowledge(TransportContext& context, AttachedQueuePair& qp);
  void send_acknowledgments(TransportContext& context);
  void return_refused();
  // Returns whether the queue pair has sent, or could continue.
  bool serve(TransportContext& context, AttachedQueuePair& qp, uint32_t quanta);
  bool transmit(TransportContext& context, AttachedQueuePair& qp, uint32_t quanta);
  bool refresh_path(TransportContext& context, AttachedQueuePair& qp);
  void set_timer(AttachedQueuePair& qp);
  void count_waiting(AttachedQueuePair& qp, bool waits);

  void wait_for_neighbor(AttachedQueuePair& qp);
  void stop_waiting(AttachedQueuePair& qp);
  bool wake_all_waiting();

  // PFC: queue pairs of priorities that the link partner has paused are paused, and do not delay other queue pairs.
  void end_expired_pauses(Nanos now);
  [[nodiscard]] bool is_stopped(unsigned priority) const { return (stopped_ >> priority & 1U) != 0; }
  bool pause_if_stopped(AttachedQueuePair& qp);
  void pause(AttachedQueuePair& qp, unsigned priority);
  void check_paused(AttachedQueuePair& qp);
  void end_pause_of(AttachedQueuePair& qp);
  void resume(AttachedQueuePair& qp);

  const WorkerParts parts_;
  FlowControl& flow_control_;
  const MulticastTable& groups_;
  const SteeringTable& steering_;
  rte_mempool* const pool_;  // for copies
  // Of the port; null with several workers.
  PeerPresence* const peer_presence_;
  Placement* const placement_;
  const uint32_t quantum_;  // packets per turn
  const uint32_t quanta_a_round_;
  const bool pausable_;     // the link partner may pause priorities
  uint8_t stopped_ = 0;     // paused priorities in the current round
  uint8_t stopped_to_ = 0;  // priority + 1 of the datagram that could not be sent; 0: none

  QueuePairList ready_;
  QueuePairList refused_;  // served in this round, but their receivers were full
  std::array<QueuePairList, kPriorities> paused_queues_;
  std::array<AttachedQueuePair*, kAcknowledging> acknowledging_{};  // acknowledge_first()
  uint32_t acknowledging_count_ = 0;
  std::vector<AttachedQueuePair*> waiting_;   // for resolution of the next hop; indexed by waiting_at
  uint64_t woken_generation_ = 0;             // of the neighbor table at the last wake_waiting()
  std::atomic<uint32_t> waiting_to_send_{0};  // written by the token's holder
  std::atomic<AttachedQueuePair*> rung_{nullptr};
  AddressResolver addresses_;
  TimingWheel timers_;
};

}  // namespace roci

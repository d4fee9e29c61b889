// The poll loop of a host: port to queue pairs and back, in bounded batches.
//
//   doorbells --+                                  +--> completions
//   timers -----+--> ready list --> transmit --+   |
//   rx burst -> parse -> ICRC -> look-up -> execute-+        (one pass over the batch for each arrow)
//                                              +--> staged frames --> tx burst
//
// Answers are not sent while requests are executed: the queue pair becomes ready and sends when its turn comes, so a
// batch of requests is acknowledged once, and a full port never stops reception.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/id_table.hpp"
#include "base/poller.hpp"
#include "base/timing_wheel.hpp"
#include "engine/attached_queue_pair.hpp"
#include "engine/worker_token.hpp"
#include "memory/memory_table.hpp"
#include "port/eal.hpp"
#include "port/neighbours.hpp"
#include "port/port.hpp"
#include "telemetry/counters.hpp"
#include "transport/packet_sink.hpp"

namespace roci {

// Owned by whoever holds token(), except for ring() and counters().
class Worker final : public Poller, private PacketSink, private FrameSink {
 public:
  // `tx_pool` holds whole frames in one segment each. `port` and `memory` outlive the worker.
  static Result<std::unique_ptr<Worker>> create(std::string name, Port& port,
                                                const NeighbourConfig& neighbours, const MemoryTable& memory,
                                                std::shared_ptr<MbufPool> tx_pool);
  ~Worker() override;

  bool poll(Nanos now) override;
  [[nodiscard]] Nanos next_deadline() const override;
  [[nodiscard]] std::string_view name() const override { return name_; }

  [[nodiscard]] WorkerToken& token() { return token_; }
  [[nodiscard]] Counters& counters() { return counters_; }
  [[nodiscard]] Neighbours& neighbours() { return *neighbours_; }

  // From attach() to detach() packets for its number reach the queue pair. False when the number is taken.
  bool attach(AttachedQueuePair& qp);
  void detach(AttachedQueuePair& qp);
  // Null when no queue pair has this number.
  [[nodiscard]] AttachedQueuePair* find(Qpn number) const { return queue_pairs_.find(number.value()); }
  [[nodiscard]] size_t queue_pairs() const { return queue_pairs_.size(); }
  // Buffers of the host's own that are on their way, or with whoever received them.
  [[nodiscard]] uint32_t tx_buffers_in_use() const { return tx_pool_->in_use(); }
  // The queue pair may have something to do: after a change of its state.
  void make_ready(AttachedQueuePair& qp);

  // Any thread: the application has posted to the queue pair.
  void ring(AttachedQueuePair& qp);

 private:
  Worker(std::string name, Port& port, const MemoryTable& memory, std::shared_ptr<MbufPool> tx_pool);

  static constexpr uint16_t kRxBurst = 32;
  static constexpr size_t kTxStage = 64;
  static constexpr uint32_t kQuantum = 16;        // packets a queue pair may send before the next one's turn
  static constexpr uint32_t kTurnsPerRound = 64;  // queue pairs served between two receptions

  struct Received {
    rte_mbuf* frame = nullptr;
    FrameView view;
    AttachedQueuePair* qp = nullptr;
  };

  // PacketSink and FrameSink.
  rte_mbuf* allocate() override;
  void send(rte_mbuf* frame) override;

  bool take_doorbells();
  bool receive(TransportContext& context);
  bool classify(Received& received, Nanos now);
  bool serve_ready(TransportContext& context);
  bool refresh_path(TransportContext& context, AttachedQueuePair& qp);
  void set_timer(AttachedQueuePair& qp);
  bool wake_waiting();
  bool flush();

  std::string name_;
  Port& port_;
  const MacAddress mac_;  // the port's
  const MemoryTable& memory_;
  std::shared_ptr<MbufPool> tx_pool_;
  WorkerToken token_;
  Counters counters_;
  uint16_t vlan_ = 0;
  std::unique_ptr<Neighbours> neighbours_;
  std::vector<AttachedQueuePair*> waiting_;  // for a neighbour to be resolved
  uint64_t woken_generation_ = 0;            // of the neighbour table when they were last woken
  TimingWheel timers_;
  IdTable<AttachedQueuePair> queue_pairs_;

  AttachedQueuePair* first_ready_ = nullptr;
  AttachedQueuePair* last_ready_ = nullptr;
  uint32_t ready_count_ = 0;
  Nanos now_{0};          // of the round under way
  bool blocked_ = false;  // the port took nothing, or the pool is empty: no use in asking queue pairs
  std::atomic<AttachedQueuePair*> rung_{nullptr};

  std::array<Received, kRxBurst> received_{};
  std::array<rte_mbuf*, kTxStage> staged_{};
  size_t staged_count_ = 0;
};

}  // namespace roci

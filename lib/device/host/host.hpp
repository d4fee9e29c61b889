// Host: a port with its addresses, memory table and workers, and the threads that drive the workers. Implements
// roci::Device. The lab and the tests create hosts on simulated ports.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/containers/sparse_arena.hpp"
#include "base/id_source.hpp"
#include "base/time/tick_clock.hpp"
#include "base/types.hpp"
#include "congestion/control_core.hpp"
#include "congestion/profile.hpp"
#include "device/api/events.hpp"
#include "device/host/limits.hpp"
#include "device/host/object_limits.hpp"
#include "device/host/polling_helper.hpp"
#include "device/host/waiting_helper.hpp"
#include "engine/congestion/congestion_flows.hpp"
#include "engine/worker/flow_control.hpp"
#include "engine/worker/flow_count.hpp"
#include "engine/worker/handoff.hpp"
#include "engine/worker/worker.hpp"
#include "memory/memory_table.hpp"
#include "port/port.hpp"
#include "port/realtime_runner.hpp"
#include "roci/device.hpp"
#include "roci/poller.hpp"
#include "transport/xrc/xrc_receive_queues.hpp"

namespace roci {

// Internal object of a device. Functions may be called by any thread, unless a token is required.
class alignas(64) Host final : public Poller {
 public:
  // `buffers`: transmit buffer pool; null: the host creates one.
  static Result<std::shared_ptr<Host>> create(std::unique_ptr<Port> port, const DeviceConfig& config,
                                              std::shared_ptr<MbufPool> buffers = nullptr);
  ~Host() override;

  // Runs one round of each worker, except those that another thread polls or the control path waits for.
  bool poll(Nanos now) override;
  // 0 (due now) while another thread holds a worker.
  [[nodiscard]] Nanos next_deadline() const override;
  [[nodiscard]] std::string_view name() const override { return config_.name; }
  // Poller of a single worker.
  [[nodiscard]] Poller& poller(uint32_t worker) { return *pollers_[worker]; }
  // Runs one round with the current time, for applications that poll.
  bool drive();
  // The same for a helper thread of the device.
  bool drive_as_helper();
  // The application has found completions without driving the device.
  void note_completions_found() {
    if (waiting_helper_ != nullptr) waiting_helper_->after_find();
  }
  // The application is about to block until an event arrives.
  void expect_block();
  // Scope of a call of the control path that gives a worker something to do or sets a deadline. At its end, the helper
  // thread wakes if it would sleep longer. To be constructed before a worker token is taken.
  class ControlCall {
   public:
    explicit ControlCall(const Host& host) : host_(host) {}
    ControlCall(const ControlCall&) = delete;
    ControlCall& operator=(const ControlCall&) = delete;
    ~ControlCall() {
      if (host_.waiting_helper_ != nullptr) host_.waiting_helper_->wake_for_deadline();
    }

   private:
    const Host& host_;
  };
  // Whether threads that do not hold a worker have given it work: posted requests, or frames of other workers.
  [[nodiscard]] bool has_new_work() const;
  // As next_deadline(), but kNever while another thread holds a worker.
  [[nodiscard]] Nanos deadline_if_known() const;
  // Time of the application's last round.
  [[nodiscard]] Nanos last_application_poll() const {
    return Nanos{application_poll_.load(std::memory_order_relaxed)};
  }
  // Whether queue pairs can send more requests when their peers acknowledge.
  [[nodiscard]] bool waits_to_send() const;
  // Whether a round can send a packet at once.
  [[nodiscard]] bool has_something_to_send();

  [[nodiscard]] const DeviceConfig& config() const { return config_; }
  [[nodiscard]] Port& port() { return *port_; }
  // Ends the placement of WRITEs by peers until it is granted again (port/placement.hpp). The caller holds all tokens.
  void withdraw_grants() {
    if (placement_ != nullptr) placement_->revoke();
  }
  [[nodiscard]] MacAddress mac() const { return port_->mac(); }
  [[nodiscard]] uint16_t port_mtu() const { return port_->capabilities().mtu; }
  [[nodiscard]] uint32_t workers() const { return static_cast<uint32_t>(workers_.size()); }
  // A worker is owned by the holder of its token.
  [[nodiscard]] Worker& worker(uint32_t index) const { return *workers_[index]; }
  [[nodiscard]] Worker& worker_of(Qpn number) const { return worker(roci::worker_of(number, workers())); }
  // Selects a worker and an unused number for a new queue pair, and attaches it. make(Qpn) creates the queue pair and
  // is called with the worker's token held. ENOMEM when max_qp queue pairs exist, or without memory.
  template <class Make>
  Result<std::unique_ptr<AttachedQueuePair>> attach(Make&& make);
  void detach(AttachedQueuePair& qp);  // the caller holds the worker's token
  [[nodiscard]] uint32_t queue_pairs() const { return queue_pairs_.load(std::memory_order_relaxed); }
  // Counts an object of another kind. ENOMEM at its limit.
  [[nodiscard]] Status take(LimitedObject kind) {
    Status counted = objects_.take(kind);
    return counted ? counted : fail(counted.error().within("device " + config_.name));
  }
  void release(LimitedObject kind) { objects_.release(kind); }

  // Lock of all workers' tokens, for state shared by the workers, such as the memory table.
  class AllWorkers {
   public:
    explicit AllWorkers(Host& host) : host_(host) {}
    void lock();
    void unlock();

   private:
    Host& host_;
  };
  [[nodiscard]] AllWorkers& all_workers() { return all_workers_; }
  // Modified by the holder of all tokens, read by all workers.
  [[nodiscard]] MemoryTable& memory() { return memory_; }
  [[nodiscard]] IdSource& ids() { return ids_; }
  [[nodiscard]] CongestionFlows& congestion_flows() { return congestion_flows_; }
  [[nodiscard]] const Profiles& profiles() const { return *profiles_; }  // of congestion control
  // Events and decisions of algorithms in order of time, as many as config().congestion_control.trace specifies.
  [[nodiscard]] std::vector<TraceRecord> congestion_trace();
  // Dedicated cores of algorithms. Under Progress::kExternal the caller polls them like workers.
  [[nodiscard]] const std::vector<std::unique_ptr<ControlCore>>& control_cores() const {
    return control_cores_;
  }
  [[nodiscard]] MulticastTable& groups() { return groups_; }
  [[nodiscard]] SteeringTable& steering() { return steering_; }
  // Modified by the holder of all tokens.
  [[nodiscard]] XrcReceiveQueues& xrc_queues() { return xrc_queues_; }
  [[nodiscard]] SparseArena& arena() { return arena_; }  // memory of queue pairs; any thread
  [[nodiscard]] RetiredAddresses& retired_addresses() { return retired_addresses_; }
  [[nodiscard]] EventRouter& events() { return *events_; }  // any thread
  // Sum over all workers.
  [[nodiscard]] uint64_t counter(Counter counter) const;
  // Transmit buffers with frames in flight or held by a receiver, without those that workers hold ready. Requires all
  // tokens.
  [[nodiscard]] uint32_t tx_buffers_in_use() const;

  [[nodiscard]] const std::vector<Gid>& gids() const { return gids_; }
  // The largest path MTU, in bytes, whose packets fit the port's MTU with the headers of this IP version and service.
  [[nodiscard]] uint32_t largest_path_mtu(bool ipv6, ibv_qp_type type = IBV_QPT_RC) const;
  [[nodiscard]] bool application_drives() const { return config_.progress == Progress::kApplication; }
  // Time of the last round.
  [[nodiscard]] Nanos last_poll() const { return Nanos{last_poll_.load(std::memory_order_relaxed)}; }
  // Current time for calls of the control path: the clock's, under Progress::kExternal that of the last round.
  [[nodiscard]] Nanos time_of_call() const;

  Status resolve(const Gid& peer, Nanos timeout);
  // Starts the capability exchange with the peer, unless its result is known. Acquires the first worker's token.
  std::shared_ptr<const PeerRecord> request_peer(const RocePath& path);

  std::atomic<uint32_t> next_cq{1};
  std::atomic<uint32_t> next_srq{1};

 private:
  // Polls one worker while holding its token.
  class WorkerPoller final : public Poller {
   public:
    WorkerPoller(Host& host, Worker& worker) : host_(host), worker_(worker) {}
    bool poll(Nanos now) override;
    [[nodiscard]] Nanos next_deadline() const override { return deadline_or(Nanos{0}); }
    [[nodiscard]] Nanos deadline_or(Nanos while_taken) const;
    [[nodiscard]] std::string_view name() const override { return worker_.name(); }
    // Reads the clock after the token was acquired, so that time is monotonic for the worker.
    bool drive();

   private:
    bool poll_with_token(Nanos now);
    Host& host_;
    Worker& worker_;
    TickClock clock_;  // used by the token's holder
  };

  Host(std::unique_ptr<Port> port, DeviceConfig config, std::vector<Gid> gids,
       std::shared_ptr<MbufPool> tx_pool);
  Status make_control();
  Status make_workers(const NeighborConfig& neighbors);
  Status start_control_cores();
  Status start_progress();
  [[nodiscard]] uint32_t least_loaded() const;
  Result<Resolution> resolve_once(const Gid& peer);
  [[nodiscard]] tl::unexpected<Error> no_route(const Gid& peer) const;

  DeviceConfig config_;
  SparseArena arena_;
  // Outlives the port, which may hold transmitted frames until its destructor.
  std::shared_ptr<MbufPool> tx_pool_;
  std::unique_ptr<Port> port_;
  Placement* const placement_;  // of the port; null: not supported
  std::vector<Gid> gids_;
  IdSource ids_;
  MemoryTable memory_;
  ObjectLimits objects_;
  std::unique_ptr<EventRouter> events_;
  Handoff hand_over_;
  FlowCounts flows_;
  FlowControl flow_control_;
  CongestionFlows congestion_flows_;
  std::unique_ptr<Profiles> profiles_;
  std::vector<std::unique_ptr<ControlCore>> control_cores_;
  MulticastTable groups_;
  SteeringTable steering_;
  XrcReceiveQueues xrc_queues_;
  std::vector<std::unique_ptr<Worker>> workers_;
  RetiredAddresses retired_addresses_;  // refer to neighbors of the workers
  std::vector<std::unique_ptr<WorkerPoller>> pollers_;
  AllWorkers all_workers_{*this};
  std::atomic<uint32_t> queue_pairs_{0};
  // Queue pairs of each worker, to select the worker of the next one.
  std::array<std::atomic<uint32_t>, kMaxWorkers> loads_{};
  std::atomic<int64_t> last_poll_{0};
  std::atomic<int64_t> application_poll_{0};

  // Drive the workers while the application does not poll. waiting_helper_ is used with one worker on a port with a
  // wakeup.
  std::unique_ptr<PollingHelper> polling_helper_;
  std::unique_ptr<WaitingHelper> waiting_helper_;
  std::unique_ptr<RealtimeRunner> runner_;          // kDedicated
  std::unique_ptr<RealtimeRunner> control_runner_;  // for the control cores, unless the caller polls them
};

template <class Make>
Result<std::unique_ptr<AttachedQueuePair>> Host::attach(Make&& make) {
  if (queue_pairs_.fetch_add(1, std::memory_order_relaxed) >= config_.max_qp) {
    queue_pairs_.fetch_sub(1, std::memory_order_relaxed);
    return fail("device " + config_.name + ": " + std::to_string(config_.max_qp) +
                    " queue pairs exist, the maximum (max_qp); destroy one first",
                ENOMEM);
  }
  const uint32_t index = least_loaded();
  loads_[index].fetch_add(1, std::memory_order_relaxed);
  const std::scoped_lock guard(worker(index).token());
  Qpn number{0};
  do {
    const uint32_t random = ids_.next24();
    number = Qpn{random - random % workers() + index};
    // 0, 1, and numbers from 0xffffff on are reserved (IBTA 3.2.1, 10.5.2).
  } while (number.value() <= 1 || number.value() >= 0xffffff || worker(index).find(number) != nullptr);
  std::unique_ptr<AttachedQueuePair> qp = make(number);
  if (qp == nullptr) {
    queue_pairs_.fetch_sub(1, std::memory_order_relaxed);
    loads_[index].fetch_sub(1, std::memory_order_relaxed);
    return fail(
        "device " + config_.name + ": no memory for another queue pair and its work queues; " +
            std::to_string(queue_pairs_.load(std::memory_order_relaxed)) + " queue pairs have reserved " +
            std::to_string(arena_.reserved() >> 20) +
            " MiB of address space, and the system (ulimit -v, vm.overcommit_memory) does not allow more",
        ENOMEM);
  }
  worker(index).attach(*qp);
  return qp;
}

}  // namespace roci

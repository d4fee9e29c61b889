#include "device/host/host.hpp"

#include <rte_lcore.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "base/log.hpp"
#include "base/os/guarded_access.hpp"
#include "base/os/waiting.hpp"
#include "memory/memory_guard.hpp"

namespace roci {
namespace {

// Registers the calling thread with DPDK, which provides mempool caches to registered threads only. Without a free
// lcore id, the thread works without a cache.
void register_dpdk_thread() {
  struct DpdkRegistration {
    DpdkRegistration() : mine(rte_lcore_id() == LCORE_ID_ANY && rte_thread_register() == 0) {}
    ~DpdkRegistration() {
      if (mine) rte_thread_unregister();
    }
    bool mine;
  };
  static const thread_local DpdkRegistration registration;
  // Allocates the thread-local variable now: the fault handler must not be the first to access it.
  asm volatile("" : : "r"(&memory_faults) : "memory");
}

Result<NeighborConfig> read_addresses(const Port& port, const DeviceConfig& config) {
  NeighborConfig neighbors;
  neighbors.mac = port.mac();
  neighbors.vlan_id = config.vlan;
  neighbors.addresses.push_back({IpAddress::link_local(port.mac()), 64});
  for (const std::string& text : config.addresses) {
    auto network = IpNetwork::parse(text);
    if (!network) return fail(network.error().within("device " + config.name + ": addresses"));
    if (network->address.is_multicast() || network->address.is_zero()) {
      return fail("device " + config.name + ": addresses: " + text + " is not a unicast host address");
    }
    neighbors.addresses.push_back(*network);
  }
  for (const std::string& text : config.gateways) {
    auto gateway = IpAddress::parse(text);
    if (!gateway) return fail(gateway.error().within("device " + config.name + ": gateways"));
    auto& place = gateway->is_v4() ? neighbors.gateway_v4 : neighbors.gateway_v6;
    if (place)
      return fail("device " + config.name + ": gateways: " + text +
                  " is a duplicate; one gateway per IP version is allowed");
    place = *gateway;
  }
  for (const auto& [ip_text, mac_text] : config.neighbors) {
    auto ip = IpAddress::parse(ip_text);
    if (!ip) return fail(ip.error().within("device " + config.name + ": neighbors"));
    auto mac = MacAddress::parse(mac_text);
    if (!mac) return fail(mac.error().within("device " + config.name + ": neighbors: " + ip_text));
    neighbors.static_entries.push_back({*ip, *mac});
  }
  if (config.vlan > 4094) {
    return fail("device " + config.name + ": vlan " + std::to_string(config.vlan) +
                " is out of range; 0 to 4094 is allowed");
  }
  if (config.priority > 7) {
    return fail("device " + config.name + ": priority " + std::to_string(config.priority) +
                " is out of range; 0 to 7 is allowed");
  }
  return neighbors;
}

uint32_t frame_bytes_of(uint16_t mtu) {
  return mtu + static_cast<uint32_t>(sizeof(EthernetHeader) + 2 * sizeof(VlanHeader));
}

Status check_acknowledgments(const DeviceConfig& config) {
  if (config.packets_per_ack >= 1 && config.packets_per_ack <= kMaxPacketsPerAck) return {};
  return fail("device " + config.name + ": " + std::to_string(config.packets_per_ack) +
              " packets per acknowledgment; 1 to " + std::to_string(kMaxPacketsPerAck) + " are allowed");
}

Status check_turns(const DeviceConfig& config) {
  if (config.packets_per_turn <= kMaxPacketsPerTurn) return {};
  return fail("device " + config.name + ": " + std::to_string(config.packets_per_turn) +
              " packets per turn; 0 to " + std::to_string(kMaxPacketsPerTurn) + " are allowed");
}

Status check_takeover(const DeviceConfig& config) {
  if (config.takeover >= Nanos{0}) return {};
  return fail("device " + config.name + ": a takeover of " + std::to_string(config.takeover.count()) +
              " ns is negative; 0 and more is allowed");
}

Status check_tables(const DeviceConfig& config) {
  if (config.max_qp < 1 || config.max_qp > kMaxQueuePairs) {
    return fail("device " + config.name + ": max_qp " + std::to_string(config.max_qp) +
                " is out of range; 1 to " + std::to_string(kMaxQueuePairs) + " is allowed");
  }
  if (config.max_mr < 1 || config.max_mr > MemoryTable::kMax) {
    return fail("device " + config.name + ": max_mr " + std::to_string(config.max_mr) +
                " is out of range; 1 to " + std::to_string(MemoryTable::kMax) + " is allowed");
  }
  for (const auto& [name, value] : {std::pair{"max_pd", config.max_pd},
                                    {"max_cq", config.max_cq},
                                    {"max_srq", config.max_srq},
                                    {"max_ah", config.max_ah}}) {
    if (value >= 1 && value <= kMaxObjects) continue;
    return fail("device " + config.name + ": " + name + " " + std::to_string(value) +
                " is out of range; 1 to " + std::to_string(kMaxObjects) + " is allowed");
  }
  return {};
}

Status check_telemetry(const DeviceConfig& config) {
  const HostTelemetryConfig& telemetry = config.telemetry;
  if (telemetry.udp_port == kRoceUdpPort) {
    return fail("device " + config.name + ": telemetry: the UDP port must differ from the RoCEv2 port, " +
                std::to_string(kRoceUdpPort));
  }
  if (telemetry.hops < 1 || telemetry.hops > kMaxIntHops) {
    return fail("device " + config.name + ": telemetry with " + std::to_string(telemetry.hops) +
                " hops; 1 to " + std::to_string(kMaxIntHops) + " are allowed");
  }
  return {};
}

Status check_extensions(const DeviceConfig& config) {
  const ExtensionConfig& extensions = config.extensions;
  const std::string where = "device " + config.name + ": extensions: ";
  if (extensions.require_authentication && extensions.mode == ExtensionMode::kOff)
    return fail(where + "authenticate: require is not possible with mode: off");
  if (extensions.require_authentication && !extensions.network_key)
    return fail(where + "authenticate: require needs a network key (network_key)");
  if ((extensions.require_authentication || extensions.network_key) && !extensions.authenticate)
    return fail(where + "a network key is used only with authenticate: prefer or require");
  if (extensions.ignore_cnps && !extensions.authenticate)
    return fail(where + "ignore_cnps requires authenticate: prefer or require");
  return {};
}

Status check_flow_control(const DeviceConfig& config) {
  const FlowControlConfig& flow = config.flow_control;
  if (flow.xoff > 0 && flow.xon >= flow.xoff) {
    return fail("device " + config.name + ": flow control: xon " + std::to_string(flow.xon) +
                " is too large; it must be below xoff, " + std::to_string(flow.xoff));
  }
  return {};
}

Status check_congestion(const DeviceConfig& config) {
  const CongestionConfig& congestion = config.congestion;
  const ReceivePointConfig& point = congestion.receive_point;
  const std::string where = "device " + config.name + ": congestion notification: ";
  if (congestion.cnm_port == kRoceUdpPort ||
      (congestion.cnm_port != 0 && congestion.cnm_port == config.telemetry.udp_port))
    return fail(where + "the UDP port of CNMs, " + std::to_string(congestion.cnm_port) +
                ", is used by RoCEv2 or telemetry");
  if (congestion.cnm_key && congestion.cnm_port == 0)
    return fail(where + "a key of CNMs (cnm_key) requires their UDP port (cnm_port)");
  if (congestion.cnm_key && (congestion.cnm_rate == 0 || congestion.cnm_rate > kMaxSignedCnms))
    return fail(where + "the rate of signed CNMs is limited to " + std::to_string(kMaxSignedCnms) +
                " per second");
  if (const auto burst = config.congestion_control.burst; burst && (*burst < Nanos{0} || *burst > kMaxBurst))
    return fail("device " + config.name + ": congestion control: a burst of " +
                std::to_string(burst->count()) + " ns is out of range; 0 to 100 us is allowed");
  if (congestion.cnm_tolerance <= Nanos{0} || congestion.cnm_tolerance > L3CnmGuard::kMaxTolerance)
    return fail(where + "the clock tolerance must be above 0 and at most 1 h");
  if (point.qeq > kMaxReceiveFrames)
    return fail(where + "qeq " + std::to_string(point.qeq) + " is out of range; 1 to " +
                std::to_string(kMaxReceiveFrames) + " frames are allowed");
  if (!CongestionPoint::is_weight(point.weight))
    return fail(where + "the weight is not a power of two from 1/1024 to 1024");
  if (point.sample < 1000 || point.sample > 1U << 30)
    return fail(where + "the sample interval must be 1 KB to 1 GiB, not " + std::to_string(point.sample) +
                " bytes");
  return {};
}

// Sets omitted options. The device's clock is the system's monotonic one, and a round of a worker takes time, except
// under Progress::kExternal, where the caller provides the time.
DeviceConfig completed(DeviceConfig config) {
  constexpr Nanos kRoundTime{1'000};
  const bool real_time = config.progress != Progress::kExternal;
  if (config.congestion.cnm_key && !config.congestion.time_of_day && real_time)
    config.congestion.time_of_day = std::chrono::system_clock::now().time_since_epoch() - monotonic_now();
  if (!config.congestion_control.burst) config.congestion_control.burst = real_time ? kRoundTime : Nanos{0};
  return config;
}

Status check_workers(const DeviceConfig& config) {
  if (config.workers < 1 || config.workers > kMaxWorkers) {
    return fail("device " + config.name + ": " + std::to_string(config.workers) + " workers; 1 to " +
                std::to_string(kMaxWorkers) + " are allowed");
  }
  const bool pins = config.cpu >= 0 || !config.cpus.empty();
  if (pins && config.progress != Progress::kDedicated) {
    return fail("device " + config.name +
                ": cpu and cpus require Progress::kDedicated; other threads are not pinned");
  }
  if (config.cpu >= 0 && !config.cpus.empty())
    return fail("device " + config.name + ": cpu and cpus cannot be combined");
  if (!config.cpus.empty() && config.cpus.size() != config.workers) {
    return fail("device " + config.name + ": cpus lists " + std::to_string(config.cpus.size()) +
                " CPUs for " + std::to_string(config.workers) + " workers; one CPU per worker is required");
  }
  return {};
}

}  // namespace

Host::Host(std::unique_ptr<Port> port, DeviceConfig config, std::vector<Gid> gids,
           std::shared_ptr<MbufPool> tx_pool)
    : config_(completed(std::move(config))),
      tx_pool_(std::move(tx_pool)),
      port_(std::move(port)),
      placement_(port_->placement()),
      gids_(std::move(gids)),
      ids_(config_.seed),
      memory_(ids_, config_.max_mr),
      objects_({config_.max_pd, config_.max_cq, config_.max_srq, config_.max_ah}),
      hand_over_(config_.workers, std::max<uint32_t>(port_->queues(), 1)),
      flows_(config_.workers),
      flow_control_(config_.flow_control, port_->capabilities().link_rate, port_->mac()),
      congestion_flows_(config_.congestion.listens(), config_.congestion.listens() ? ids_.next32() : 0,
                        config_.congestion.listens() ? ids_.next32() : 0) {}

Host::~Host() {
  polling_helper_.reset();
  waiting_helper_.reset();
  runner_.reset();
  control_runner_.reset();
}

Result<std::shared_ptr<Host>> Host::create(std::unique_ptr<Port> port, const DeviceConfig& config,
                                           std::shared_ptr<MbufPool> buffers) {
  ROCI_TRY(check_workers(config));
  ROCI_TRY(check_extensions(config));
  ROCI_TRY(check_telemetry(config));
  ROCI_TRY(check_flow_control(config));
  ROCI_TRY(check_congestion(config));
  ROCI_TRY(check_tables(config));
  ROCI_TRY(check_turns(config));
  ROCI_TRY(check_acknowledgments(config));
  ROCI_TRY(check_takeover(config));
  if (config.guard_memory) {
    if (const Status guarded = install_memory_guard(); !guarded)
      log().info("device {}: {}; access to registered memory that was unmapped terminates the process",
                 config.name, guarded.error().message);
  }
  auto neighbors = read_addresses(*port, config);
  if (!neighbors) return fail(neighbors.error());
  std::vector<Gid> gids;
  for (const IpNetwork& network : neighbors->addresses) gids.push_back(network.address);
  const uint16_t mtu = port->capabilities().mtu;
  if (buffers == nullptr) {
    // DPDK caches up to 384 free buffers per thread. One thread's cache must not leave the others without buffers.
    const uint32_t count =
        config.workers == 1 ? config.tx_buffers : std::max(config.tx_buffers, config.workers * 1024);
    auto pool = MbufPool::create(config.name + "_tx", count, frame_bytes_of(mtu));
    if (!pool) return fail(pool.error().within("device " + config.name));
    buffers = std::move(*pool);
  }
  std::shared_ptr<Host> host(new Host(std::move(port), config, std::move(gids), std::move(buffers)));
  if (host->largest_path_mtu(false) == 0) {
    return fail("device " + config.name + ": MTU " + std::to_string(mtu) + " of port " +
                std::string(host->port().name()) + " is too small; at least " +
                std::to_string(256 + kMaxIpOverhead) + " is required for the smallest path MTU");
  }
  auto events = EventQueue::create();
  if (!events) return fail(events.error().within("device " + config.name));
  host->events_ = std::make_unique<EventRouter>(std::move(*events));
  ROCI_TRY(host->make_control());
  ROCI_TRY(host->make_workers(*neighbors));
  ROCI_TRY(host->start_progress());
  return host;
}

Status Host::make_workers(const NeighborConfig& neighbors) {
  if (hand_over_.queues() < config_.workers) {
    log().info(
        "device {}: port {} has {} queues for {} workers; workers without a queue use another worker's queue",
        config_.name, port_->name(), hand_over_.queues(), config_.workers);
  }
  if (config_.congestion.receive_point.qeq > 0 && !port_->queue(0).waiting()) {
    log().info(
        "device {}: port {} does not report the length of its receive queue; the congestion point counts "
        "frames received in full bursts instead",
        config_.name, port_->name());
  }
  NeighborConfig each = neighbors;
  // Each worker has its own table and sends its own requests. Together they send at most as many as a single worker.
  each.solicitations_per_second = std::max(1U, neighbors.solicitations_per_second / config_.workers);
  const WorkerContext worker_context{*port_,
                                     memory_,
                                     groups_,
                                     steering_,
                                     *events_,
                                     hand_over_,
                                     flows_,
                                     tx_pool_,
                                     config_.extensions,
                                     config_.telemetry,
                                     flow_control_,
                                     config_.congestion,
                                     congestion_flows_,
                                     config_.congestion_control,
                                     control_cores_,
                                     arena_,
                                     ids_,
                                     config_.check_before_placing,
                                     config_.packets_per_turn,
                                     config_.header_only};
  for (uint32_t i = 0; i < config_.workers; ++i) {
    const std::string name = config_.workers == 1 ? config_.name : config_.name + "." + std::to_string(i);
    auto worker = Worker::create(name, i, worker_context, each);
    if (!worker) return fail(worker.error());
    // Queue pairs may be connected before the first round. Without begin(), their flows and their waits for a peer
    // would start at time 0.
    if (config_.progress != Progress::kExternal) (*worker)->begin(monotonic_now());
    workers_.push_back(std::move(*worker));
    pollers_.push_back(std::make_unique<WorkerPoller>(*this, *workers_.back()));
  }
  return {};
}

Status Host::start_progress() {
  ROCI_TRY(start_control_cores());
  switch (config_.progress) {
    case Progress::kApplication: {
      if (PortWakeup* const wakeup = port_->wakeup(); wakeup != nullptr && workers() == 1) {
        auto helper = WaitingHelper::start(*this, *wakeup);
        if (!helper) return fail(helper.error().within("device " + config_.name));
        waiting_helper_ = std::move(*helper);
        return {};
      }
      auto helper = PollingHelper::start(*this);
      if (!helper) return fail(helper.error().within("device " + config_.name));
      polling_helper_ = std::move(*helper);
      return {};
    }
    case Progress::kDedicated: {
      std::vector<RunnerThreadConfig> threads(workers());
      for (uint32_t i = 0; i < workers(); ++i) {
        threads[i].name = workers_[i]->name();
        threads[i].pollers = {pollers_[i].get()};
        if (!config_.cpus.empty()) {
          threads[i].core = static_cast<unsigned>(config_.cpus[i]);
        } else if (config_.cpu >= 0) {
          threads[i].core = static_cast<unsigned>(config_.cpu) + i;
        }
        threads[i].idle = config_.idle;
      }
      runner_ = std::make_unique<RealtimeRunner>(std::move(threads));
      return runner_->start();
    }
    case Progress::kExternal:
      return {};
  }
  return {};
}

bool Host::WorkerPoller::poll(Nanos now) {
  if (!worker_.token().try_lock()) return false;
  return poll_with_token(now);
}

bool Host::WorkerPoller::drive() {
  if (!worker_.token().try_lock()) return false;
  return poll_with_token(clock_.now());
}

bool Host::WorkerPoller::poll_with_token(Nanos now) {
  host_.last_poll_.store(now.count(), std::memory_order_relaxed);
  const bool worked = worker_.poll(now);
  worker_.token().unlock();
  return worked;
}

Nanos Host::WorkerPoller::deadline_or(Nanos while_taken) const {
  if (!worker_.token().try_lock()) return while_taken;
  const Nanos deadline = worker_.next_deadline();
  worker_.token().unlock();
  return deadline;
}

bool Host::poll(Nanos now) {
  bool worked = false;
  for (const auto& poller : pollers_) worked |= poller->poll(now);
  return worked;
}

Nanos Host::next_deadline() const {
  Nanos next = kNever;
  for (const auto& poller : pollers_) next = std::min(next, poller->next_deadline());
  return next;
}

Nanos Host::deadline_if_known() const {
  Nanos next = kNever;
  for (const auto& poller : pollers_) next = std::min(next, poller->deadline_or(kNever));
  return next;
}

bool Host::has_new_work() const {
  return std::ranges::any_of(workers_, [](const auto& worker) { return worker->has_new_work(); });
}

bool Host::drive() {
  const bool worked = drive_as_helper();
  application_poll_.store(last_poll_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  if (waiting_helper_ != nullptr) {
    waiting_helper_->after_round(worked);
  } else {
    thread_local EmptyPolls empty_polls;
    empty_polls.note(worked, last_poll());
  }
  return worked;
}

void Host::expect_block() {
  if (waiting_helper_ != nullptr) waiting_helper_->hand_over();
}

bool Host::waits_to_send() const {
  return std::ranges::any_of(workers_, [](const auto& worker) { return worker->waiting_to_send() > 0; });
}

bool Host::has_something_to_send() {
  return std::ranges::any_of(workers_, [](const auto& worker) {
    const std::scoped_lock guard(worker->token());
    return worker->has_something_to_send();
  });
}

bool Host::drive_as_helper() {
  register_dpdk_thread();
  bool worked = false;
  for (const auto& poller : pollers_) worked |= poller->drive();
  return worked;
}

void Host::AllWorkers::lock() {
  for (const auto& worker : host_.workers_) worker->token().lock();
}

void Host::AllWorkers::unlock() {
  for (auto worker = host_.workers_.rbegin(); worker != host_.workers_.rend(); ++worker) {
    (*worker)->token().unlock();
  }
}

uint32_t Host::least_loaded() const {
  uint32_t least = 0;
  for (uint32_t i = 1; i < workers(); ++i) {
    if (loads_[i].load(std::memory_order_relaxed) < loads_[least].load(std::memory_order_relaxed)) least = i;
  }
  return least;
}

void Host::detach(AttachedQueuePair& qp) {
  qp.worker->detach(qp);
  queue_pairs_.fetch_sub(1, std::memory_order_relaxed);
  loads_[roci::worker_of(qp.core.number(), workers())].fetch_sub(1, std::memory_order_relaxed);
}

uint32_t Host::tx_buffers_in_use() const {
  uint32_t held = 0;
  for (const auto& worker : workers_) held += worker->tx_buffers_held();
  return tx_pool_->in_use() - held;
}

uint64_t Host::counter(Counter counter) const {
  uint64_t sum = 0;
  for (const auto& worker : workers_) sum += worker->counters().get(counter);
  return sum;
}

uint32_t Host::largest_path_mtu(bool ipv6, ibv_qp_type type) const {
  const uint32_t overhead =
      ipv6 ? kMaxIpOverhead : kMaxIpOverhead - static_cast<uint32_t>(sizeof(Ipv6Header)) + 20;
  return roci::largest_path_mtu(port_mtu(), overhead + (is_xrc(type) ? uint32_t{sizeof(XrcEth)} : 0));
}

// The result of the worker that is furthest from a resolved address. ENETUNREACH: no request can be sent.
Result<Resolution> Host::resolve_once(const Gid& peer) {
  auto all = Resolution::kResolved;
  for (const auto& worker : workers_) {
    const std::scoped_lock guard(worker->token());
    Neighbors& neighbors = worker->neighbors();
    const Resolution result = neighbors.resolve(peer, time_of_call()).result;
    if (result == Resolution::kFailed && !neighbors.has_route(peer)) return no_route(peer);
    all = std::max(all, result);
  }
  return all;
}

tl::unexpected<Error> Host::no_route(const Gid& peer) const {
  std::string addresses;
  for (const std::string& address : config_.addresses) addresses += (addresses.empty() ? "" : ", ") + address;
  return fail("device " + config_.name + ": no route to " + peer.to_string() + "; its addresses are " +
                  (addresses.empty() ? "link-local only" : addresses) + ", and no gateway leads to " +
                  peer.to_string(),
              ENETUNREACH);
}

std::shared_ptr<const PeerRecord> Host::request_peer(const RocePath& path) {
  Worker& first = worker(0);
  const std::scoped_lock guard(first.token());
  return first.peers().request_capabilities(path, time_of_call());
}

Nanos Host::time_of_call() const {
  return config_.progress == Progress::kExternal ? last_poll() : monotonic_now();
}

Status Host::resolve(const Gid& peer, Nanos timeout) {
  const auto unanswered = [&](int code) {
    return fail("device " + config_.name + ": " + peer.to_string() + " does not answer (no ARP or ND reply)",
                code);
  };
  const Nanos begin = monotonic_now();
  for (;;) {
    const Result<Resolution> result = resolve_once(peer);
    if (!result) return fail(result.error());
    if (*result == Resolution::kResolved) return {};
    const bool failed = *result == Resolution::kFailed;
    if (config_.progress == Progress::kExternal) {
      if (failed) return unanswered(EHOSTUNREACH);
      return fail("device " + config_.name + ": " + peer.to_string() + " is not resolved yet", EAGAIN);
    }
    // A failed entry is requested again after its hold time.
    if (monotonic_now() - begin >= timeout) return unanswered(failed ? EHOSTUNREACH : ETIMEDOUT);
    if (application_drives()) drive();
    std::this_thread::sleep_for(std::chrono::microseconds{20});
  }
}

}  // namespace roci

#include "roci-switch/switch_process.hpp"

#include <rte_mbuf.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <functional>

#include "port/dpdk/eal.hpp"

namespace roci {
namespace {

// The polling thread polls its command slot every round, unless the process is stopped or gets no CPU time.
constexpr Nanos kCommandTimeout = 5s;

}  // namespace

Result<std::unique_ptr<SwitchProcess>> SwitchProcess::start(SwitchFile file, const std::string& path) {
  std::unique_ptr<SwitchProcess> made{new SwitchProcess{std::move(file), path}};
  ROCI_TRY(made->open());
  return made;
}

Status SwitchProcess::open() {
  ROCI_TRY(start_eal(file_.eal));
  ROCI_TRY(open_pool());
  ROCI_TRY(open_ports());
  std::vector<Port*> ends;
  for (const auto& port : ports_) ends.push_back(port.get());
  SwitchConfig config = file_.sw;  // copy: file_.sw is compared with reloaded files
  config.time_of_day = std::chrono::system_clock::now().time_since_epoch() - monotonic_now();
  auto made = Switch::create(config, ends, pool_);
  if (!made) return fail(made.error().within(path_));
  switch_ = std::move(*made);

  std::vector<RunnerThreadConfig> threads;
  for (size_t i = 0; i < switch_->worker_count(); ++i) {
    PortWakeup* const wakeup = i == 0 && shm_ != nullptr ? &shm_->wakeup() : nullptr;
    command_slots_.push_back(std::make_unique<CommandSlot>(wakeup));
    RunnerThreadConfig& thread = threads.emplace_back();
    thread.name = i == 0 ? "roci-switch" : "roci-switch-" + std::to_string(i);
    thread.pollers = {command_slots_.back().get(), &switch_->worker(i)};
    if (!file_.cores.empty()) thread.core = file_.cores[i];
    thread.idle = file_.idle;
    thread.awake = file_.awake;
    thread.wakeup = wakeup;
  }
  if (shm_ != nullptr) shm_->join();
  runner_ = std::make_unique<RealtimeRunner>(std::move(threads));
  ROCI_TRY(runner_->start());

  auto endpoints = SwitchEndpoints::open(
      {{.sw = switch_.get(),
        .ports = {ends.begin(), ends.end()},
        .faults = {faulty_.begin(), faulty_.end()},
        .set_faults = [this](size_t port, const PortFaults& faults) { return set_faults(port, faults); }}});
  if (!endpoints) return fail(endpoints.error());
  endpoints_ = std::move(*endpoints);
  return {};
}

Status SwitchProcess::open_pool() {
  const auto count = static_cast<uint32_t>(std::min<uint64_t>(required_buffers(file_), UINT32_MAX));
  uint16_t space = 2048;
  for (const EthdevConfig& device : file_.devices)
    space = std::max(space, EthdevPort::data_room_for(device.device, device.mtu));
  auto pool = MbufPool::create(file_.sw.name, count, space);
  if (!pool) {
    return fail(pool.error().message + " (" + std::to_string(count) + " buffers of " + std::to_string(space) +
                    " bytes are required; increase eal.memory or reduce the ports' queue_frames, descriptors "
                    "and workers)",
                pool.error().code);
  }
  pool_ = std::move(*pool);
  return {};
}

Status SwitchProcess::open_ports() {
  if (!file_.shared_memory.empty()) {
    auto slot = take_switch_slot(file_.shared_memory);
    if (!slot) return fail(slot.error().within(path_ + ": shared_memory"));
    shm_slot_.emplace(std::move(*slot));
    shm_ = std::make_unique<ShmSwitch>(shm_slot_->segment);
  }
  Rng seeds{file_.injection.seed};
  for (size_t i = 0; i < file_.devices.size(); ++i) {
    auto opened = open_port(i);
    if (!opened) return fail(opened.error().within(path_ + ": port '" + file_.sw.ports[i].name + "'"));
    std::unique_ptr<Port> port = std::move(*opened);
    if (file_.injection.enabled) {
      auto faulty = std::make_unique<FaultyPort>(std::move(port), file_.faults[i], seeds.next(), pool_);
      faulty_.push_back(faulty.get());
      port = std::move(faulty);
    }
    ports_.push_back(std::move(port));
  }
  return {};
}

Result<std::unique_ptr<Port>> SwitchProcess::open_port(size_t index) {
  EthdevConfig device = file_.devices[index];
  if (const auto slot = shm_slot_of(device))
    return shm_->open_port({.name = device.device, .slot = *slot, .mtu = device.mtu, .pool = pool_});
  device.pool = pool_;
  auto opened = EthdevPort::open(device);
  if (!opened) return fail(opened.error());
  return std::unique_ptr<Port>{std::move(*opened)};
}

Result<std::string> SwitchProcess::reload() {
  const auto unchanged = [this](const Error& error) {
    return fail(error.message + " (no change was applied to '" + name() + "')", error.code);
  };
  const auto wanted = read_switch_file(path_);
  if (!wanted) return unchanged(wanted.error());
  const std::lock_guard lock(changing_);
  const auto plan = plan_reload(file_, *wanted);
  if (!plan) return unchanged(plan.error().within(path_));
  ROCI_TRY(apply(*plan));
  return plan->summary;
}

Status SwitchProcess::set_faults(size_t port, const PortFaults& faults) {
  const std::lock_guard lock(changing_);
  Reload change;
  change.faults.emplace_back(port, faults);
  return apply(change);
}

Status SwitchProcess::apply(const Reload& change) {
  const ReloadTarget target{
      .workers = command_slots_,
      .worker_of = [this](size_t port) { return switch_->worker_of(port); },
      .configure_marking = [this](size_t port,
                                  const ClassConfigs& to) { return switch_->configure_marking(port, to); },
      .set_faults = [this](size_t port, const PortFaults& faults) { faulty_[port]->set_faults(faults); }};
  return apply_reload(change, target, file_, kCommandTimeout);
}

std::optional<size_t> SwitchProcess::find_port(std::string_view name) const {
  for (size_t i = 0; i < ports_.size(); ++i) {
    if (file_.sw.ports[i].name == name) return i;
  }
  return std::nullopt;
}

Status SwitchProcess::insert(size_t port, std::span<const std::vector<uint8_t>> frames) {
  size_t next = 0;
  const auto step = [&] {
    const std::vector<uint8_t>& bytes = frames[next];
    rte_mbuf* frame = rte_pktmbuf_alloc(pool_->get());
    if (frame == nullptr) return ++next < frames.size();  // dropped, as a received frame without a buffer
    char* start = rte_pktmbuf_append(frame, static_cast<uint16_t>(bytes.size()));
    if (start != nullptr) std::copy(bytes.begin(), bytes.end(), start);
    if (start == nullptr || !switch_->insert(port, frame)) rte_pktmbuf_free(frame);
    return ++next < frames.size();
  };
  if (!frames.empty() && !command_slots_[switch_->worker_of(port)]->deliver(step, kCommandTimeout))
    return fail("the worker of port '" + file_.sw.ports[port].name + "' did not respond in time", EBUSY);
  return {};
}

bool SwitchProcess::is_locked(uint32_t slot) const {
  const auto holder = ProcessLock::holder(shm_slot_file(file_.shared_memory, slot));
  return !holder || *holder != 0;  // unknown: assume that the process runs
}

void SwitchProcess::release_slots() {
  for (const EthdevConfig& device : file_.devices) {
    const auto slot = shm_slot_of(device);
    if (!slot) continue;
    // Read before the lock is checked: the next owner of the slot locks it before it sets its incarnation.
    const uint64_t owner = shm_->incarnation_of(*slot);
    if (owner != 0 && !is_locked(*slot)) shm_->note_exit(*slot, owner);
  }
}

bool SwitchProcess::has_clients() const {
  for (size_t i = 0; i < ports_.size(); ++i) {
    const EthdevConfig& device = file_.devices[i];
    if (const auto slot = shm_slot_of(device)) {
      if (is_locked(*slot)) return true;
    } else if (device.device.starts_with("net_memif") &&
               device.device.find("role=server") != std::string::npos && ports_[i]->link_up()) {
      return true;
    }
  }
  return false;
}

void SwitchProcess::stop() {
  endpoints_.reset();  // no further changes by telemetry commands
  if (runner_ != nullptr) runner_->stop();
}

}  // namespace roci

#include "roci-switch/switch_process.hpp"

#include <algorithm>

namespace roci {
namespace {

// The polling thread looks into its mailbox every round; it does not when the process is stopped or starved.
constexpr Nanos kPatience = 5s;

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
  auto made = Switch::create(file_.sw, ends, pool_);
  if (!made) return fail(made.error().within(path_));
  switch_ = std::move(*made);

  runner_ =
      std::make_unique<RealtimeRunner>(std::vector<RunnerThreadConfig>{{.name = "roci-switch",
                                                                        .pollers = {&mailbox_, switch_.get()},
                                                                        .core = file_.core,
                                                                        .idle = file_.idle}});
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

// Buffers for full queues and rings of every port, for what is delayed on its way, and some in hand for answers and
// batches.
Status SwitchProcess::open_pool() {
  constexpr uint32_t kSpare = 2048;
  uint32_t count = kSpare;
  uint16_t room = 2048;
  for (size_t i = 0; i < file_.devices.size(); ++i) {
    const EthdevConfig& device = file_.devices[i];
    count += file_.sw.ports[i].queue_frames + device.rx_descriptors + device.tx_descriptors;
    if (file_.injection.enabled) count += FaultyPort::kMostHeld;
    room = std::max(room, EthdevPort::data_room_for(device.device, device.mtu));
  }
  auto pool = MbufPool::create(file_.sw.name, count, room);
  if (!pool) {
    return fail(pool.error().message + " (" + std::to_string(count) + " buffers of " + std::to_string(room) +
                    " bytes are needed: raise eal.memory, or lower the ports' queue_frames and descriptors)",
                pool.error().code);
  }
  pool_ = std::move(*pool);
  return {};
}

Status SwitchProcess::open_ports() {
  Rng seeds{file_.injection.seed};
  for (size_t i = 0; i < file_.devices.size(); ++i) {
    EthdevConfig device = file_.devices[i];
    device.pool = pool_;
    auto opened = EthdevPort::open(device);
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

Result<std::string> SwitchProcess::reload() {
  const auto wanted = read_switch_file(path_);
  if (!wanted) return fail(wanted.error());
  const std::lock_guard lock(changing_);
  const auto plan = plan_reload(file_, *wanted);
  if (!plan) return fail(plan.error().within(path_));
  ROCI_TRY(apply(*plan));
  file_ = *wanted;
  return plan->said;
}

Status SwitchProcess::set_faults(size_t port, const PortFaults& faults) {
  const std::lock_guard lock(changing_);
  Reload change;
  change.faults.emplace_back(port, faults);
  ROCI_TRY(apply(change));
  file_.faults[port] = faults;
  return {};
}

// A port a round: however many there are, the switch misses nothing meanwhile.
Status SwitchProcess::apply(const Reload& change) {
  size_t next = 0;
  Status outcome;
  const auto step = [&] {
    if (next < change.marking.size()) {
      const auto& [port, classes] = change.marking[next];
      if (Status s = switch_->configure_marking(port, classes); !s && outcome) outcome = std::move(s);
    } else if (next - change.marking.size() < change.faults.size()) {
      const auto& [port, faults] = change.faults[next - change.marking.size()];
      faulty_[port]->set_faults(faults);
    }
    return ++next < change.marking.size() + change.faults.size();
  };
  if (!mailbox_.deliver(step, kPatience))
    return fail("the thread that forwards does not come to it; nothing was changed", EBUSY);
  return outcome;
}

void SwitchProcess::stop() {
  endpoints_.reset();  // nobody asks for a change any more
  if (runner_ != nullptr) runner_->stop();
}

}  // namespace roci

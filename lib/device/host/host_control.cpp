// Congestion control of the host: profiles and dedicated cores.
#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "device/host/host.hpp"
#include "device/host/limits.hpp"

namespace roci {

Status Host::make_control() {
  CongestionControlConfig& control = config_.congestion_control;
  const std::string where = "device " + config_.name + ": congestion control";
  const char* chosen = secure_getenv("ROCI_CC");
  const bool overridden = chosen != nullptr && *chosen != 0;
  if (overridden) control.profile = chosen;
  if (control.cores > kMaxControlCores) {
    return fail(where + ": " + std::to_string(control.cores) + " cores; at most " +
                std::to_string(kMaxControlCores) + " are allowed");
  }
  if (!control.cpus.empty() && control.cpus.size() != control.cores) {
    return fail(where + ": cpus lists " + std::to_string(control.cpus.size()) + " CPUs for " +
                std::to_string(control.cores) + " cores; one CPU per core is required");
  }
  const Nanos interval{control.notification_point.interval};
  if (interval < Nanos{0} || interval > Nanos{1s}) return fail(where + ": the CNP interval must be 0 to 1 s");
  auto profiles = Profiles::create(control);
  if (!profiles) return fail(profiles.error().within(overridden ? where + " (ROCI_CC)" : where));
  profiles_ = std::move(*profiles);
  for (uint32_t i = 0; i < control.cores; ++i) {
    control_cores_.push_back(std::make_unique<ControlCore>(config_.name + ".cc" + std::to_string(i),
                                                           config_.workers, control.trace));
  }
  return {};
}

std::vector<TraceRecord> Host::congestion_trace() {
  std::vector<TraceRecord> all;
  const auto add = [&all](std::vector<TraceRecord> some) {
    all.insert(all.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
  };
  for (const auto& worker : workers_) {
    const std::scoped_lock guard(worker->token());
    add(worker->control().runner().trace().records());
  }
  for (const auto& core : control_cores_) add(core->trace());
  std::ranges::stable_sort(all, {}, [](const TraceRecord& record) { return record.event.now_ns; });
  return all;
}

// Control cores have their own threads, except under Progress::kExternal.
Status Host::start_control_cores() {
  if (control_cores_.empty() || config_.progress == Progress::kExternal) return {};
  std::vector<RunnerThreadConfig> threads(control_cores_.size());
  for (size_t i = 0; i < threads.size(); ++i) {
    threads[i].name = control_cores_[i]->name();
    threads[i].pollers = {control_cores_[i].get()};
    if (!config_.congestion_control.cpus.empty())
      threads[i].core = static_cast<unsigned>(config_.congestion_control.cpus[i]);
    threads[i].idle = config_.idle;
  }
  control_runner_ = std::make_unique<RealtimeRunner>(std::move(threads));
  return control_runner_->start();
}

}  // namespace roci

// Real time: maps pollers onto threads and passes them the monotonic clock, one time stamp per round.
//
//   configured -- start() --> running -- stop() --> configured
//        `-- step(), step(), ... : without threads, an application drives the pollers from its own
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/poller.hpp"
#include "base/result.hpp"
#include "base/types.hpp"
#include "port/wakeup.hpp"
#include "roci/progress.hpp"

namespace roci {

std::string_view idle_policy_name(IdlePolicy policy);

struct RunnerThreadConfig {
  std::string name = "roci";       // the system shows the first 15 characters
  std::vector<Poller*> pollers{};  // polled in this order; a poller belongs to one thread only
  std::optional<unsigned> core{};  // the CPU to stay on
  IdlePolicy idle = IdlePolicy::kSpin;
  // With kSleep, reached after some milliseconds without work; bounds the delay of the first frame after a pause. A look at
  // an idle host costs about 10 us.
  Nanos longest_sleep = 2ms;
  // With kSleep: for so long after the last work it only polls. Between messages that others wait for a sleep costs more than it
  // saves, above all where others share the core.
  Nanos awake{0};
  // With kSleep: the wakeup of the pollers' ports. After a few rounds without work the thread sleeps until a frame arrives or a
  // poller's deadline, and it requests a short time slice. `longest_sleep` bounds the sleep only while a poller's deadline has
  // passed; `awake` is unused.
  PortWakeup* wakeup = nullptr;
};

// The clock that real runners pass to pollers: monotonic, the same in every process of the machine.
Nanos monotonic_now();

// start(), stop() and step() belong to one thread, the one that made the runner.
class RealtimeRunner {
 public:
  explicit RealtimeRunner(std::vector<RunnerThreadConfig> threads);
  RealtimeRunner(const RealtimeRunner&) = delete;
  RealtimeRunner& operator=(const RealtimeRunner&) = delete;
  ~RealtimeRunner();  // stops

  // Starts one thread per entry of the configuration, each known to DPDK (so that it has an mbuf cache) and
  // pinned when a core is named. The EAL must be up. All threads run, or none does and the error says why.
  Status start();
  // Ends the threads after their current round. Does nothing when none runs.
  void stop();
  [[nodiscard]] bool running() const { return !workers_.empty(); }

  // One round over all pollers, in the order of the configuration, from the caller's thread; only when not
  // running. Returns whether any did something. Never sleeps.
  bool step();

 private:
  struct Worker;
  void run(Worker& worker);

  std::vector<RunnerThreadConfig> configs_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace roci

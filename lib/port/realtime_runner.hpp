// Real-time runner: assigns pollers to threads and passes them the monotonic clock, read once per round.
//
//   configured -- start() --> running -- stop() --> configured
//        `-- step(), step(), ... : without threads; the application calls the pollers from its own thread
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/result.hpp"
#include "base/types.hpp"
#include "port/wakeup.hpp"
#include "roci/poller.hpp"
#include "roci/progress.hpp"

namespace roci {

std::string_view idle_policy_name(IdlePolicy policy);

struct RunnerThreadConfig {
  std::string name = "roci";       // the kernel keeps the first 15 characters
  std::vector<Poller*> pollers{};  // polled in this order; a poller belongs to one thread only
  std::optional<unsigned> core{};  // CPU to which the thread is pinned
  IdlePolicy idle = IdlePolicy::kSpin;
  // With kSleep: the longest sleep, reached after some milliseconds without work. It bounds the delay of the first
  // frame after a pause. A poll of an idle host costs about 10 us.
  Nanos longest_sleep = 2ms;
  // With kSleep: how long the thread polls without sleeping after its last work. A sleep between messages on which a
  // peer waits costs more than it saves, especially on a shared core.
  Nanos awake{0};
  // With kSleep: the wakeup of the pollers' ports. After a few rounds without work the thread sleeps until a frame
  // arrives or a poller's deadline, and it requests a short time slice. `longest_sleep` bounds the sleep only while a
  // poller's deadline has passed; `awake` is not used.
  PortWakeup* wakeup = nullptr;
};

// The clock that real-time runners pass to pollers: monotonic, the same in all processes of the machine.
Nanos monotonic_now();

// Runs pollers on their threads. start(), stop() and step() must be called by the thread that created the runner.
class RealtimeRunner {
 public:
  explicit RealtimeRunner(std::vector<RunnerThreadConfig> threads);
  RealtimeRunner(const RealtimeRunner&) = delete;
  RealtimeRunner& operator=(const RealtimeRunner&) = delete;
  ~RealtimeRunner();  // stops the threads

  // Starts one thread per entry of the configuration, registers it with DPDK for an mbuf cache, and pins it if a core
  // is configured. The EAL must be started. Either all threads run, or none does and the error states the reason.
  Status start();
  // Ends the threads after their current round. No effect if none runs.
  void stop();
  [[nodiscard]] bool running() const { return !workers_.empty(); }

  // Polls all pollers once, in the order of the configuration, on the caller's thread; only while no threads run.
  // Returns whether any poller did work. Never sleeps.
  bool step();

 private:
  struct Worker;
  void run(Worker& worker);

  std::vector<RunnerThreadConfig> configs_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace roci

#include "port/realtime_runner.hpp"

#include <pthread.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_pause.h>
#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cassert>
#include <ctime>
#include <future>

#include "base/os/scheduling.hpp"
#include "base/os/thread_start.hpp"
#include "base/os/waiting.hpp"
#include "base/time/tick_clock.hpp"

namespace roci {
namespace {

// Number of idle rounds before the first sleep, so that a short gap between bursts costs no wake-up.
constexpr unsigned kRoundsBeforeSleep = 64;
constexpr Nanos kFirstSleep = 1us;
// The same with a PortWakeup, which costs less.
constexpr unsigned kRoundsBeforeWait = 16;
constexpr Nanos kShortSlice = 100us;
// Linux extends sleeps by up to 50 us unless the thread sets a smaller timer slack.
constexpr unsigned long kTimerSlackNanos = 1000;

bool poll_all(const std::vector<Poller*>& pollers, Nanos now) {
  bool worked = false;
  for (Poller* poller : pollers) worked |= poller->poll(now);
  return worked;
}

Nanos earliest_deadline(const std::vector<Poller*>& pollers) {
  Nanos earliest = kNever;
  for (const Poller* poller : pollers) earliest = std::min(earliest, poller->next_deadline());
  return earliest;
}

void sleep_for(Nanos span) {
  const timespec wait{static_cast<time_t>(span.count() / 1'000'000'000),
                      static_cast<long>(span.count() % 1'000'000'000)};
  clock_nanosleep(CLOCK_MONOTONIC, 0, &wait, nullptr);  // after a signal the thread polls earlier
}

// Idle state of one thread.
class Idler {
 public:
  Idler(const RunnerThreadConfig& config, const std::atomic<bool>& stop) : config_(config), stop_(stop) {}

  void worked() {
    idle_rounds_ = 0;
    sleep_ = kFirstSleep;
    empty_polls_.note(true, idle_since_);
  }
  void rest(Nanos now) {
    switch (config_.idle) {
      case IdlePolicy::kSpin:
        rte_pause();
        return;
      case IdlePolicy::kYield:
        rte_pause();
        empty_polls_.note(false, now);
        return;
      case IdlePolicy::kSleep:
        break;
    }
    if (config_.wakeup != nullptr) return wait_for_frames(now);
    if (idle_rounds_ == 0) idle_since_ = now;
    if (++idle_rounds_ <= kRoundsBeforeSleep || now - idle_since_ < config_.awake) {
      rte_pause();
      empty_polls_.note(false, now);
      return;
    }
    // A deadline that has passed belongs to a poller that waits for an
    // event without a known time, such as a frame of a real port.
    const Nanos deadline = earliest_deadline(config_.pollers);
    sleep_for(deadline > now ? std::min(sleep_, deadline - now) : sleep_);
    lengthen_sleep();
  }

 private:
  // Increases the sleep by an eighth: a frame after a pause waits at most for a ninth of that pause.
  void lengthen_sleep() {
    sleep_ =
        std::min(sleep_ + std::max(sleep_ / 8, kFirstSleep), std::max(config_.longest_sleep, kFirstSleep));
  }
  void wait_for_frames(Nanos now) {
    if (++idle_rounds_ <= kRoundsBeforeWait) {
      rte_pause();
      return;
    }
    PortWakeup& wakeup = *config_.wakeup;
    const uint32_t seen = wakeup.arm(Waiter::kApplication, WakeFor::kAllFrames);
    // Frames that arrived before the wakeup was armed have not woken the thread.
    if (!wakeup.has_frames() && !stop_.load(std::memory_order_relaxed)) {
      // As in rest(): a deadline that has passed has no known time.
      const Nanos deadline = earliest_deadline(config_.pollers);
      if (deadline <= now) {
        wakeup.wait(Waiter::kApplication, seen, sleep_);
        lengthen_sleep();
      } else {
        wakeup.wait(Waiter::kApplication, seen, deadline == kNever ? kNever : deadline - now);
      }
    }
    wakeup.disarm(Waiter::kApplication);
  }

  const RunnerThreadConfig& config_;
  const std::atomic<bool>& stop_;
  uint64_t idle_rounds_ = 0;
  Nanos idle_since_{0};
  EmptyPolls empty_polls_;
  Nanos sleep_ = kFirstSleep;
};

Status pin_to(unsigned core) {
  if (core >= CPU_SETSIZE)
    return fail("core " + std::to_string(core) + " exceeds the system's maximum CPU number");
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  const int error = pthread_setaffinity_np(pthread_self(), sizeof set, &set);
  if (error == 0) return {};
  return fail("the thread cannot be pinned to core " + std::to_string(core) + ": " +
                  std::generic_category().message(error) +
                  " (the core must exist and be permitted for this process)",
              error);
}

}  // namespace

std::string_view idle_policy_name(IdlePolicy policy) {
  switch (policy) {
    case IdlePolicy::kSpin:
      return "spin";
    case IdlePolicy::kYield:
      return "yield";
    case IdlePolicy::kSleep:
      return "sleep";
  }
  return "unknown";
}

Nanos monotonic_now() { return TickClock::read_system(); }

struct RealtimeRunner::Worker {
  explicit Worker(const RunnerThreadConfig& c) : config(c) {}
  const RunnerThreadConfig& config;
  std::atomic<bool> stop{false};
  std::promise<Status> ready;
  std::thread thread;
};

RealtimeRunner::RealtimeRunner(std::vector<RunnerThreadConfig> threads) : configs_(std::move(threads)) {}

RealtimeRunner::~RealtimeRunner() { stop(); }

Status RealtimeRunner::start() {
  if (running()) return fail("the runner is already running", EALREADY);
  for (const RunnerThreadConfig& config : configs_) {
    Worker& worker = *workers_.emplace_back(std::make_unique<Worker>(config));
    auto ready = worker.ready.get_future();
    if (Status started =
            start_thread(worker.thread, "thread '" + config.name + "'", [this, &worker] { run(worker); });
        !started) {
      workers_.pop_back();
      stop();
      return started;
    }
    Status status = ready.get();
    if (!status) {
      stop();
      return fail(status.error().within("thread '" + config.name + "'"));
    }
  }
  return {};
}

void RealtimeRunner::stop() {
  for (auto& worker : workers_) {
    worker->stop.store(true, std::memory_order_seq_cst);
    if (worker->config.wakeup != nullptr) worker->config.wakeup->wake(Waiter::kApplication);
  }
  for (auto& worker : workers_) worker->thread.join();
  workers_.clear();
}

bool RealtimeRunner::step() {
  assert(!running());
  const Nanos now = monotonic_now();
  bool worked = false;
  for (const RunnerThreadConfig& config : configs_) worked |= poll_all(config.pollers, now);
  return worked;
}

void RealtimeRunner::run(Worker& worker) {
  const RunnerThreadConfig& config = worker.config;
  pthread_setname_np(pthread_self(), config.name.substr(0, 15).c_str());
  prctl(PR_SET_TIMERSLACK, kTimerSlackNanos, 0, 0, 0);
  if (rte_thread_register() != 0) {
    worker.ready.set_value(fail(std::string{"DPDK cannot register another thread: "} +
                                    rte_strerror(rte_errno) +
                                    " (the EAL must be initialized, with fewer than RTE_MAX_LCORE threads)",
                                rte_errno));
    return;
  }
  // After the registration, which resets the affinity to the initial one of the thread.
  Status pinned = config.core ? pin_to(*config.core) : Status{};
  const bool good = pinned.has_value();
  worker.ready.set_value(std::move(pinned));
  if (good) {
    if (config.wakeup != nullptr) request_short_slice(kShortSlice);
    Idler idler{config, worker.stop};
    TickClock clock;
    while (!worker.stop.load(std::memory_order_relaxed)) {
      const Nanos now = clock.now();
      if (poll_all(config.pollers, now)) {
        idler.worked();
      } else {
        idler.rest(now);
      }
    }
  }
  rte_thread_unregister();
}

}  // namespace roci

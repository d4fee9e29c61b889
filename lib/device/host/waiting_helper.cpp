#include "device/host/waiting_helper.hpp"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "base/log.hpp"
#include "base/os/scheduling.hpp"
#include "base/os/thread_start.hpp"
#include "base/os/waiting.hpp"
#include "device/host/host.hpp"
#include "port/realtime_runner.hpp"

namespace roci {
namespace {

constexpr Nanos kSlice = 100us;
// Processor time without a poll after which the application is considered to do other work.
constexpr Nanos kElsewhere = 100us;
// First and longest interval of the checks whether the application polls.
constexpr Nanos kFirstCheck{500'000}, kLastCheck{2'000'000};
constexpr Nanos kTrusted{20'000'000};  // time of polling after which patience is reset
constexpr uint32_t kRoundsWithoutWakes = 4;
constexpr Nanos kSendRetryInterval{50'000};  // retry interval for frames that could not be sent
constexpr Nanos kLongRound{20'000};  // another thread that has the device for longer was probably preempted
constexpr Nanos kBlockedSleep{50'000};  // between attempts to get the device from such a thread
constexpr Nanos kMaxSleep = 1s;
constexpr uint32_t kContentionCheck = 64;  // rounds without work between two checks for contention
constexpr Nanos kContentionSleep = 1ms;

thread_local CpuContention contention;  // per polling thread of the application

}  // namespace

Result<std::unique_ptr<WaitingHelper>> WaitingHelper::start(Host& host, PortWakeup& wakeup) {
  std::unique_ptr<WaitingHelper> helper(new WaitingHelper(host, wakeup));
  ROCI_TRY(start_thread(helper->thread_, "the helper thread", [&helper = *helper] { helper.run(); }));
  return helper;
}

WaitingHelper::~WaitingHelper() {
  if (!thread_.joinable()) return;
  stop_.store(true);
  wakeup_.wake(Waiter::kHelper);
  thread_.join();
}

void WaitingHelper::run() {
  pthread_setname_np(pthread_self(), "roci-helper");
  if (!request_short_slice(kSlice))
    log().info("neither a shorter time slice nor a higher priority can be set for the helper thread");
  while (!stop_.load()) {
    if (application_polls_.load()) {
      watch_application();
    } else {
      if (drive_while_busy()) blocked_since_ = Nanos{0};
      sleep();
    }
  }
}

// A preempted application thread continues to poll when it gets a processor again, so it keeps the device.
void WaitingHelper::watch_application() {
  watching_.store(true);
  const Nanos since = monotonic_now();
  Nanos wait = kFirstCheck, polled{0}, ran{0};
  while (application_polls_.load() && !stop_.load()) {
    wakeup_.wait(Waiter::kHelper, wakeup_.value(Waiter::kHelper), wait);
    const Nanos last_poll = host_.last_application_poll();
    const ThreadTime thread = time_of_thread(application_.load(std::memory_order_relaxed));
    if (last_poll == polled && (!thread.runnable || thread.ran - ran > kElsewhere)) {
      if (application_polls_.exchange(false))
        idle_limit_.store(std::min(idle_limit_.load(std::memory_order_relaxed) * 4, kMaxIdleRounds),
                          std::memory_order_relaxed);
      proven_.store(0, std::memory_order_relaxed);
      idle_rounds_.store(0, std::memory_order_relaxed);
      break;
    }
    if (last_poll != polled) ran = thread.ran;
    polled = last_poll;
    if (monotonic_now() - since > kTrusted) idle_limit_.store(kMinIdleRounds, std::memory_order_relaxed);
    wait = std::min(2 * wait, kLastCheck);
  }
  watching_.store(false);
}

// Returns true if there was work.
bool WaitingHelper::drive_while_busy() {
  uint32_t rounds = 0;  // since receivers were last woken
  bool worked = true, any = false;
  while (worked && !stop_.load(std::memory_order_relaxed) &&
         !application_polls_.load(std::memory_order_relaxed)) {
    wakeup_.hold_wakes();
    worked = host_.drive_as_helper();
    any |= worked;
    if (worked && ++rounds < kRoundsWithoutWakes) continue;
    wakeup_.release_wakes();
    rounds = 0;
  }
  wakeup_.release_wakes();
  return any;
}

// Frames are present, but another thread has the device. It processes them unless it was preempted; then it must get a
// processor, perhaps this one.
void WaitingHelper::sleep_if_blocked() {
  const Nanos now = monotonic_now();
  if (blocked_since_ == Nanos{0}) blocked_since_ = now;
  if (now - blocked_since_ >= kLongRound)
    wakeup_.wait(Waiter::kHelper, wakeup_.value(Waiter::kHelper), kBlockedSleep);
}

WakeFor WaitingHelper::wanted() const {
  return application_blocks_.load(std::memory_order_relaxed) || host_.waits_to_send()
             ? WakeFor::kAllFrames
             : WakeFor::kNonAckFrames;
}

void WaitingHelper::sleep() {
  const WakeFor what = wanted();
  const uint32_t seen = wakeup_.arm(Waiter::kHelper, what);
  // From here on, any deadline that the application sets wakes the helper.
  wakes_at_.store(std::numeric_limits<int64_t>::max());
  if (stop_.load() || application_polls_.load()) {
    wakeup_.disarm(Waiter::kHelper);
  } else if (wakeup_.has_frames()) {
    wakeup_.disarm(Waiter::kHelper);
    sleep_if_blocked();
  } else {
    const Nanos deadline = host_.next_deadline(), now = monotonic_now();
    Nanos limit = kMaxSleep;
    if (deadline <= now) {
      limit = kSendRetryInterval;
    } else if (deadline != kNever) {
      limit = std::min(deadline - now, kMaxSleep);
    }
    armed_for_.store(what);
    wakes_at_.store((now + limit).count());
    // A thread that has posted while next_deadline() held a worker could not compare its deadline with `limit`.
    if (host_.has_new_work()) {
      sleep_if_blocked();
    } else {
      blocked_since_ = Nanos{0};
      if (wanted() == what) wakeup_.wait(Waiter::kHelper, seen, limit);
    }
  }
  wakes_at_.store(0);
}

void WaitingHelper::start_polling() {
  static const thread_local auto kThread = static_cast<pid_t>(syscall(SYS_gettid));
  application_.store(kThread, std::memory_order_relaxed);
  if (application_polls_.exchange(true)) return;
  wakeup_.disarm(Waiter::kHelper);
  application_blocks_.store(false, std::memory_order_relaxed);
  proven_.store(proven_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (!watching_.load()) wakeup_.wake(Waiter::kHelper);  // to start watch_application()
}

void WaitingHelper::give_back() {
  if (!application_polls_.exchange(false)) return;
  wakeup_.arm(Waiter::kHelper, wanted());
  if (wakeup_.has_frames()) wakeup_.wake(Waiter::kHelper);
}

void WaitingHelper::hand_over() {
  idle_rounds_.store(0, std::memory_order_relaxed);
  const bool is_news = !application_blocks_.exchange(true);
  const bool had_it =
      application_polls_.load(std::memory_order_relaxed) && application_polls_.exchange(false);
  if (is_news || had_it) wakeup_.wake(Waiter::kHelper);
}

void WaitingHelper::after_round(bool worked) {
  if (worked) {
    after_find();
  } else {
    const uint32_t rounds = idle_rounds_.load(std::memory_order_relaxed) + 1;
    idle_rounds_.store(rounds, std::memory_order_relaxed);
    if (rounds == idle_limit_.load(std::memory_order_relaxed)) start_polling();
    if (rounds % kContentionCheck == 0) sleep_if_contended();
  }
  wake_for_deadline();
}

void WaitingHelper::wake_for_deadline() {
  const int64_t wakes_at = wakes_at_.load();
  if (wakes_at == 0) return;
  const bool wants_more = armed_for_.load() == WakeFor::kNonAckFrames && wanted() == WakeFor::kAllFrames;
  if (wants_more || host_.deadline_if_known().count() < wakes_at) wakeup_.wake(Waiter::kHelper);
}

// With more runnable threads than processors, a polling thread may keep its peer from running, so it waits for the
// frame instead.
void WaitingHelper::sleep_if_contended() {
  const Nanos now = host_.last_application_poll();
  if (!contention.is_contended(now) || !application_polls_.load(std::memory_order_relaxed)) return;
  const uint32_t seen = wakeup_.arm(Waiter::kApplication, WakeFor::kAllFrames);
  const Nanos deadline = host_.deadline_if_known();
  if (!wakeup_.has_frames() && deadline > now)
    wakeup_.wait(Waiter::kApplication, seen, std::min(deadline - now, kContentionSleep));
  wakeup_.disarm(Waiter::kApplication);
}

}  // namespace roci

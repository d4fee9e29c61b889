#include "device/waiting_helper.hpp"

#include <pthread.h>

#include <algorithm>
#include <limits>

#include "base/log.hpp"
#include "base/quiet_signals.hpp"
#include "base/scheduling.hpp"
#include "device/host.hpp"
#include "port/realtime_runner.hpp"

namespace roci {
namespace {

constexpr Nanos kSlice = 100us;
constexpr Nanos kGone = 200us;         // an application that has not polled for so long does something else
constexpr Nanos kFirstLook{1'000'000}, kLastLook{4'000'000};  // between two looks at an application that polls
constexpr Nanos kTrusted{20'000'000};  // one that has polled for so long is trusted again
constexpr Nanos kLinger{2'000};        // behind the last work
constexpr Nanos kNoRoom{50'000};       // until what could not be sent is tried again
constexpr Nanos kLongestSleep = 1s;
constexpr uint32_t kCrowdCheck = 256;  // rounds in vain between two looks at the wait time
constexpr Nanos kCrowdPeriod{1'000'000};
constexpr Nanos kCrowdRest = 200us;

// Of an application's thread that polls: whether others want its processor.
struct Crowd {
  Nanos checked{0}, waited{0};
  Nanos until{0};  // then it looks again
  bool crowded = false;
};
thread_local Crowd crowd;

}  // namespace

WaitingHelper::WaitingHelper(Host& host, PortWakeup& wakeup) : host_(host), wakeup_(wakeup) {
  const QuietSignals quiet;
  thread_ = std::thread{[this] { run(); }};
}

WaitingHelper::~WaitingHelper() {
  stop_.store(true);
  wakeup_.wake();
  thread_.join();
}

void WaitingHelper::run() {
  pthread_setname_np(pthread_self(), "roci-helper");
  if (!request_short_slice(kSlice))
    log().info("the helper thread has no shorter time slice and no higher priority than others");
  while (!stop_.load()) {
    if (application_has_it_.load()) {
      watch_application();
    } else {
      drive_while_busy();
      sleep();
    }
  }
}

void WaitingHelper::watch_application() {
  const Nanos since = monotonic_now();
  Nanos wait = kFirstLook;
  while (application_has_it_.load() && !stop_.load()) {
    wakeup_.wait(wakeup_.value(), wait);
    const Nanos now = monotonic_now();
    if (now - host_.last_application_poll() > kGone) {
      if (application_has_it_.exchange(false))
        patience_.store(std::min(patience_.load(std::memory_order_relaxed) * 8, kMostPatience), std::memory_order_relaxed);
      idle_rounds_.store(0, std::memory_order_relaxed);
      return;
    }
    if (now - since > kTrusted) patience_.store(kLeastPatience, std::memory_order_relaxed);
    wait = std::min(2 * wait, kLastLook);
  }
}

void WaitingHelper::drive_while_busy() {
  Nanos last_work = monotonic_now();
  while (!stop_.load(std::memory_order_relaxed) && !application_has_it_.load(std::memory_order_relaxed)) {
    const bool worked = host_.drive_as_helper();
    const Nanos now = monotonic_now();
    if (worked) {
      last_work = now;
    } else if (now - last_work > kLinger) {
      return;
    }
  }
}

void WaitingHelper::sleep() {
  wakeup_.arm();
  wakes_at_.store(std::numeric_limits<int64_t>::max());  // any deadline that the application sets from here on wakes
  const uint32_t seen = wakeup_.value();
  if (stop_.load() || application_has_it_.load() || wakeup_.has_frames()) {
    wakeup_.disarm();
  } else {
    const Nanos deadline = host_.next_deadline(), now = monotonic_now();
    Nanos limit = kLongestSleep;
    if (deadline <= now) {
      limit = kNoRoom;
    } else if (deadline != kNever) {
      limit = std::min(deadline - now, kLongestSleep);
    }
    wakes_at_.store((now + limit).count());
    wakeup_.wait(seen, limit);
  }
  wakes_at_.store(0);
}

void WaitingHelper::take_over() {
  if (application_has_it_.exchange(true)) return;
  wakeup_.disarm();
  wakeup_.wake();  // so that it watches
}

void WaitingHelper::hand_over() {
  idle_rounds_.store(0, std::memory_order_relaxed);
  if (application_has_it_.load(std::memory_order_relaxed) && application_has_it_.exchange(false)) wakeup_.wake();
}

void WaitingHelper::after_round(bool worked) {
  if (worked) {
    idle_rounds_.store(0, std::memory_order_relaxed);
  } else {
    const uint32_t rounds = idle_rounds_.load(std::memory_order_relaxed) + 1;
    idle_rounds_.store(rounds, std::memory_order_relaxed);
    if (rounds == patience_.load(std::memory_order_relaxed)) take_over();
    if (rounds % kCrowdCheck == 0 || crowd.crowded) rest_if_crowded();
  }
  const int64_t wakes_at = wakes_at_.load();
  if (wakes_at != 0 && host_.deadline_if_known().count() < wakes_at) wakeup_.wake();
}

// With more runnable threads than processors, a thread that polls keeps its peer from running: it waits for the frame instead.
void WaitingHelper::rest_if_crowded() {
  const Nanos now = host_.last_application_poll();
  if (now - crowd.checked >= kCrowdPeriod) {
    const Nanos waited = own_wait_time();
    crowd.crowded = crowd.checked != Nanos{0} && (waited - crowd.waited) * 8 > now - crowd.checked;
    if (crowd.crowded) crowd.until = now + 32 * kCrowdPeriod;
    crowd.crowded = crowd.crowded || now < crowd.until;
    crowd.checked = now;
    crowd.waited = waited;
  }
  if (!crowd.crowded || !application_has_it_.load(std::memory_order_relaxed)) return;
  wakeup_.arm();
  const uint32_t seen = wakeup_.value();
  const Nanos deadline = host_.deadline_if_known();
  if (!wakeup_.has_frames() && deadline > now) wakeup_.wait(seen, std::min(deadline - now, kCrowdRest));
  if (application_has_it_.load()) wakeup_.disarm();
}

}  // namespace roci

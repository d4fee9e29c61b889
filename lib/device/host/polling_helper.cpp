#include "device/host/polling_helper.hpp"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/log.hpp"
#include "base/os/thread_start.hpp"
#include "base/os/waiting.hpp"
#include "device/host/host.hpp"
#include "port/realtime_runner.hpp"

namespace roci {
namespace {

constexpr Nanos kMaxWait{1'000'000};  // between two polls of a host without work
constexpr Nanos kMaxSleep = 1s;       // the end of a longer one, up to Nanos::max(), would overflow
constexpr unsigned kChecks = 16;      // polls without work after which the interval grows
constexpr Nanos kShortestLinger{2'000};
constexpr Nanos kMaxLinger{50'000};
constexpr int kHighestPriority = -20;
constexpr Nanos kFirstOfAll{50'000};  // start of a busy period, with raised priority
constexpr Nanos kMaxPeriod{500'000};  // afterwards the application may run

// Applies to the calling thread only.
bool set_priority(int nice) { return setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), nice) == 0; }

}  // namespace

Result<std::unique_ptr<PollingHelper>> PollingHelper::start(Host& host) {
  std::unique_ptr<PollingHelper> helper(new PollingHelper(host));
  ROCI_TRY(start_thread(helper->thread_, "the helper thread", [&helper = *helper] { helper.run(); }));
  return helper;
}

PollingHelper::~PollingHelper() {
  if (!thread_.joinable()) return;
  {
    const std::scoped_lock guard(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void PollingHelper::run() {
  if (host_.config().idle == IdlePolicy::kSleep) {
    raise_priority();
    sleep_briefly();
  } else {
    poll_for_application();
  }
}

bool PollingHelper::is_silent() const {
  return monotonic_now() - host_.last_application_poll() > host_.config().takeover;
}

// Drives the host when the application has been silent for `takeover`, until it polls again.
void PollingHelper::poll_for_application() {
  const Nanos takeover = host_.config().takeover;
  Nanos wait = takeover;
  EmptyPolls empty_polls;
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, std::min(wait, kMaxSleep), [this] { return stop_; })) {
    // A host without work is polled at growing intervals.
    if (is_silent()) {
      lock.unlock();
      const bool worked = host_.drive_as_helper();
      lock.lock();
      wait = worked ? takeover : std::max(takeover, std::min(2 * wait, kMaxWait));
      if (!worked) continue;
    }
    // A busy period lasts while rounds find work, and `takeover` longer, since responses cause further requests.
    Nanos last_work = monotonic_now();
    while (!stop_ && is_silent()) {
      lock.unlock();
      const bool worked = host_.drive_as_helper();
      const Nanos now = monotonic_now();
      if (worked) last_work = now;
      empty_polls.note(worked, now);
      lock.lock();
      if (monotonic_now() - last_work > takeover) break;
    }
  }
}

// The same for few cores, where the application may spin on memory that the helper has to write. Yielding would make
// the helper wait for the end of the application's time slice, or keep the application off its core. Therefore the
// helper polls in short busy periods and sleeps for `takeover` in between. The sleep gets longer while there is no work
// or the application polls itself.
void PollingHelper::sleep_briefly() {
  const Nanos takeover = host_.config().takeover;
  Nanos wait = takeover;
  unsigned in_vain = 0;
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, std::min(wait, kMaxSleep), [this] { return stop_; })) {
    bool worked = false;
    if (is_silent()) {
      lock.unlock();
      worked = busy_period();
      lock.lock();
    }
    if (worked) {
      in_vain = 0;
      wait = takeover;
    } else if (++in_vain >= kChecks) {
      wait = std::max(takeover, std::min(2 * wait, kMaxWait));
    }
  }
}

// Polls while rounds find work, and for `linger_` after the last one that did: a sleep costs more than some rounds
// without work, but the thread that causes the next work may need this core. `linger_` is adapted as in KVM's halt
// polling. False when the first round found no work. The period starts with the highest priority and continues with the
// usual one, so that under permanent load other processes (such as the switch of the machine's network) get processor
// time.
bool PollingHelper::busy_period() {
  if (!host_.drive_as_helper()) return false;
  linger_ = std::clamp(2 * linger_, kShortestLinger, kMaxLinger);
  Nanos now = monotonic_now();
  const Nanos usual = now + kFirstOfAll, end = now + kMaxPeriod;
  Nanos last_work = now;
  bool first_of_all = may_raise_priority_;
  while (now < end && is_silent()) {
    if (first_of_all && now > usual) {
      first_of_all = false;
      set_priority(application_nice_);
    }
    const bool worked = host_.drive_as_helper();
    now = monotonic_now();
    if (worked) {
      last_work = now;
    } else if (now - last_work > linger_) {
      linger_ = linger_ / 4 < kShortestLinger ? Nanos{0} : linger_ / 4;
      break;
    }
  }
  if (may_raise_priority_ && !first_of_all) may_raise_priority_ = set_priority(kHighestPriority);
  return true;
}

// Requests exact timer wake-ups and the highest priority that the system permits, to run next to threads that never
// sleep.
void PollingHelper::raise_priority() {
  prctl(PR_SET_TIMERSLACK, 1UL);
  application_nice_ = getpriority(PRIO_PROCESS, static_cast<id_t>(gettid()));
  may_raise_priority_ = set_priority(kHighestPriority);
  if (!may_raise_priority_)
    log().info("the priority of the helper thread cannot be raised: {}", std::strerror(errno));
}

}  // namespace roci

#include "device/polling_helper.hpp"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/log.hpp"
#include "base/quiet_signals.hpp"
#include "base/waiting.hpp"
#include "device/host.hpp"
#include "port/realtime_runner.hpp"

namespace roci {
namespace {

constexpr Nanos kLongestWait{1'000'000};  // between two looks at a host with nothing to do
constexpr unsigned kLooks = 16;           // that find nothing before the next one may come later
constexpr Nanos kShortestLinger{2'000};
constexpr Nanos kLongestLinger{50'000};
constexpr int kHighestPriority = -20;
constexpr Nanos kFirstOfAll{50'000};      // of a busy period
constexpr Nanos kLongestPeriod{500'000};  // then the application has its turn

// Of this thread alone.
bool set_priority(int nice) { return setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), nice) == 0; }

}  // namespace

PollingHelper::PollingHelper(Host& host) : host_(host) {
  const QuietSignals quiet;
  thread_ = std::thread{[this] { run(); }};
}

PollingHelper::~PollingHelper() {
  {
    const std::scoped_lock guard(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void PollingHelper::run() {
  if (host_.config().idle == IdlePolicy::kSleep) {
    be_prompt();
    nap();
  } else {
    stand_in();
  }
}

bool PollingHelper::is_silent() const {
  return monotonic_now() - host_.last_application_poll() > host_.config().takeover;
}

// Drives the host from the moment on at which the application has been silent for a while until it polls again.
void PollingHelper::stand_in() {
  const Nanos takeover = host_.config().takeover;
  Nanos wait = takeover;
  EmptyPolls empty_polls;
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, wait, [this] { return stop_; })) {
    // A host that has nothing to do gets a look now and then.
    if (is_silent()) {
      lock.unlock();
      const bool worked = host_.drive_as_helper();
      lock.lock();
      wait = worked ? takeover : std::max(takeover, std::min(2 * wait, kLongestWait));
      if (!worked) continue;
    }
    // One busy period: as long as rounds find work, and a little longer, since answers bring the next request.
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

// The same for few cores, where an application may spin on memory that we are to write: a thread that yields would wait for
// its slice to end, or take its core away. So short busy periods, `takeover` apart, with sleep in between; the longer
// apart the longer there was nothing to do, or the application polled by itself.
void PollingHelper::nap() {
  const Nanos takeover = host_.config().takeover;
  Nanos wait = takeover;
  unsigned in_vain = 0;
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, wait, [this] { return stop_; })) {
    bool worked = false;
    if (is_silent()) {
      lock.unlock();
      worked = busy_period();
      lock.lock();
    }
    if (worked) {
      in_vain = 0;
      wait = takeover;
    } else if (++in_vain >= kLooks) {
      wait = std::max(takeover, std::min(2 * wait, kLongestWait));
    }
  }
}

// Rounds for as long as they find work, and for `linger_` behind the last that did: a sleep costs more than some rounds in
// vain, but whoever is to bring the next work may need this core. How long pays is learned, as KVM learns how long to poll
// before it halts a processor. False when the first round found nothing.
// It begins before all others, and goes on as one of them: where there is always work, others must have processors too, the
// switch between the processes of a machine among them.
bool PollingHelper::busy_period() {
  if (!host_.drive_as_helper()) return false;
  linger_ = std::clamp(2 * linger_, kShortestLinger, kLongestLinger);
  Nanos now = monotonic_now();
  const Nanos usual = now + kFirstOfAll, end = now + kLongestPeriod;
  Nanos last_work = now;
  bool first_of_all = prompt_;
  while (now < end && is_silent()) {
    if (first_of_all && now > usual) {
      first_of_all = false;
      set_priority(usual_);
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
  if (prompt_ && !first_of_all) prompt_ = set_priority(kHighestPriority);
  return true;
}

// Wakes up when it is time, also beside threads that never sleep, as far as the system lets us.
void PollingHelper::be_prompt() {
  prctl(PR_SET_TIMERSLACK, 1UL);
  usual_ = getpriority(PRIO_PROCESS, static_cast<id_t>(gettid()));
  prompt_ = set_priority(kHighestPriority);
  if (!prompt_) log().info("the priority of the helper thread cannot be raised: {}", std::strerror(errno));
}

}  // namespace roci

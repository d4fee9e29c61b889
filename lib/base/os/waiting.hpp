// Waiting in threads that poll. sched_yield() is not used: since Linux 6.18 it gives up the rest of the time slice, so
// a thread that shares a core with a busy one would wait for milliseconds.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <ctime>

#include "base/os/scheduling.hpp"
#include "base/types.hpp"

namespace roci {

// Hint for the processor: the thread spins.
inline void spin_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  asm volatile("yield" ::: "memory");
#endif
}

// Unlike nanosleep(2) no cancellation point: callers hold locks, and their state is not consistent. Less than a second.
inline void sleep_uncanceled(std::chrono::nanoseconds span) {
  const timespec wait{.tv_sec = 0, .tv_nsec = static_cast<long>(span.count())};
  syscall(SYS_nanosleep, &wait, nullptr);
}

// Waits for a few instructions of another thread, which may not be running: spins first, then sleeps.
class Backoff {
 public:
  void wait() {
    if (++rounds_ <= kSpins) {
      spin_pause();
    } else {
      sleep_uncanceled(std::chrono::microseconds{1});  // with timer slack, at least 50 us
    }
  }

 private:
  static constexpr unsigned kSpins = 100;
  unsigned rounds_ = 0;
};

// Detects contention for the processor on which the calling thread polls: in the last milliseconds, the thread has
// waited for a processor for more than a quarter of the time. Empty polls then delay the threads that it waits for. One
// object per thread.
class CpuContention {
 public:
  [[nodiscard]] bool is_contended(Nanos now) {
    if (now - checked_ >= kWindow) {
      const Nanos waited = own_wait_time();
      const bool counts = checked_ != Nanos{0} && now - checked_ < 8 * kWindow;
      if (counts && (waited - waited_) * 4 > now - checked_) until_ = now + kHold;
      contended_ = now < until_;
      checked_ = now;
      waited_ = waited;
    }
    return contended_;
  }

 private:
  static constexpr Nanos kWindow{4'000'000}, kHold{50'000'000};

  Nanos checked_{0}, waited_{0};
  Nanos until_{0};
  bool contended_ = false;
};

// For loops that poll without a way to block: sleeps briefly at intervals while the processor is contended. One object
// per thread.
class EmptyPolls {
 public:
  // To be called after each poll; `now` may be slightly old.
  void note(bool found, Nanos now) {
    if (found) {
      empty_ = 0;
    } else if (++empty_ % kBetweenChecks == 0 && contention_.is_contended(now)) {
      sleep_uncanceled(kRest);
    }
  }

 private:
  static constexpr uint32_t kBetweenChecks = 64;
  static constexpr std::chrono::microseconds kRest{20};

  uint32_t empty_ = 0;
  CpuContention contention_;
};

}  // namespace roci

// How threads wait that poll. None of them calls sched_yield(): with Linux 6.18 and later it gives up the rest of the time slice, so
// that a thread beside a busy one waits for milliseconds.
#pragma once

#include <immintrin.h>

#include <chrono>
#include <thread>

#include "base/scheduling.hpp"
#include "base/types.hpp"

namespace roci {

// For a thread that waits for a few instructions of another one, which may not be running: spins, then sleeps.
class Backoff {
 public:
  void wait() {
    if (++rounds_ <= kSpins) {
      _mm_pause();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds{1});  // with the timer slack 50 us and more
    }
  }

 private:
  static constexpr unsigned kSpins = 100;
  unsigned rounds_ = 0;
};

// Whether other threads want the processor on which the calling thread polls: whether it has waited for a processor for more than a
// quarter of the last milliseconds. A thread that polls in vain then keeps those from running that it waits for. One object a
// thread.
class Crowd {
 public:
  [[nodiscard]] bool is_crowded(Nanos now) {
    if (now - checked_ >= kWindow) {
      const Nanos waited = own_wait_time();
      const bool counts = checked_ != Nanos{0} && now - checked_ < 8 * kWindow;
      if (counts && (waited - waited_) * 4 > now - checked_) until_ = now + kLasts;
      crowded_ = now < until_;
      checked_ = now;
      waited_ = waited;
    }
    return crowded_;
  }

 private:
  static constexpr Nanos kWindow{4'000'000}, kLasts{50'000'000};

  Nanos checked_{0}, waited_{0};
  Nanos until_{0};
  bool crowded_ = false;
};

// For loops that poll what cannot be waited for: sleeps briefly, now and then, while the processor is crowded. One object a thread.
class EmptyPolls {
 public:
  // After a poll; `now` may be somewhat older.
  void note(bool found, Nanos now) {
    if (found) {
      empty_ = 0;
    } else if (++empty_ % kBetweenChecks == 0 && crowd_.is_crowded(now)) {
      std::this_thread::sleep_for(kRest);
    }
  }

 private:
  static constexpr uint32_t kBetweenChecks = 64;
  static constexpr std::chrono::microseconds kRest{20};

  uint32_t empty_ = 0;
  Crowd crowd_;
};

}  // namespace roci

// Virtual time tied to the wall clock: whoever asks it lets nothing happen sooner than the clock says, and it measures how
// much later things happen.
#pragma once

#include <cstdint>

#include "base/tick_clock.hpp"
#include "base/types.hpp"
#include "lab/histogram.hpp"

namespace roci::lab {

// How far virtual time was behind, over the time. From a thing that is done late on, it is so far behind until it has done
// the next, or would have done all that is due.
struct Lateness {
  static constexpr Nanos kMuch = 100us;

  double mean_ns = 0;
  uint64_t p99_ns = 0;   // for 99 % of the time it was no more
  uint64_t most_ns = 0;  // also for a moment
  double part = 0;       // of the time, when it was more than kMuch
};

// Of one thread.
class Pace {
 public:
  // From here on virtual time goes as the clock does, from `now`; what was measured before does not count.
  void start(Nanos now);
  // The virtual time that the clock says.
  [[nodiscard]] Nanos now() { return clock_.now() - ahead_; }
  // Lets time pass, until then or less.
  void rest(Nanos until);
  // What is due at `at` is done now, when the clock says `now`.
  void begins(Nanos at, Nanos now);

  // Until `end`, where virtual time stands.
  [[nodiscard]] Lateness lateness(Nanos end);

 private:
  void count(Nanos until);

  TickClock clock_;
  Nanos ahead_{0};  // the clock's time is so much more than virtual time
  Nanos start_{0};
  Nanos at_{0};    // what was done last was due then,
  Nanos late_{0};  // and was done so late
  Nanos most_{0};
  double much_ = 0, sum_ = 0;
  Histogram times_;  // ns, for each ns of the time
};

}  // namespace roci::lab

// Every active part (a host's worker, a switch, a link) is a poller, and time is an argument: the same code runs
// under a runner that reads the monotonic clock and under one that jumps from event to event.
#pragma once

#include <string_view>

#include "base/types.hpp"

namespace roci {

// Owned by exactly one thread at a time. A poller never blocks and never reads a clock.
class Poller {
 public:
  Poller() = default;
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;
  virtual ~Poller() = default;

  // Does what is due at `now`, in bounded batches. `now` never goes backwards. Returns whether anything was done;
  // a caller that sees `true` should poll again at the same `now` before it lets time pass.
  virtual bool poll(Nanos now) = 0;

  // The earliest time at which poll() may have something to do: `now` or less when it has work at once, kNever
  // when only input from elsewhere can give it work. A real port cannot foresee arrivals, so a poller that reads one
  // is polled all the time by the real runner, whatever it says here.
  [[nodiscard]] virtual Nanos next_deadline() const = 0;

  // For logs and traces.
  [[nodiscard]] virtual std::string_view name() const = 0;
};

}  // namespace roci

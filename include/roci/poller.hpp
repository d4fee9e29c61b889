// Interface of pollers, the components that run in a poll loop: a host's worker, a switch, a link. Time is an argument,
// so that the same code runs with the monotonic clock and in virtual time, which advances from event to event.
#pragma once

#include <chrono>
#include <string_view>

namespace roci {

// Component that a runner polls. Owned by exactly one thread at a time. It never blocks and never reads a clock.
class Poller {
 public:
  Poller() = default;
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;
  virtual ~Poller() = default;

  // Does the work that is due at `now`, in bounded batches. `now` is the time since an origin that all pollers of a
  // runner share; in real time it is the monotonic clock. It never decreases. Returns whether any work was done; the
  // caller should then poll again at the same `now` before it advances the time.
  virtual bool poll(std::chrono::nanoseconds now) = 0;

  // Earliest time at which poll() may have work: `now` or less if it has work already, nanoseconds::max() if only
  // external input can create work. The arrival of frames is not predictable, so a runner in real time continuously
  // polls pollers that read a real port, for any result of this function.
  [[nodiscard]] virtual std::chrono::nanoseconds next_deadline() const = 0;

  // For logs and traces.
  [[nodiscard]] virtual std::string_view name() const = 0;
};

}  // namespace roci

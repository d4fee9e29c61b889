// Collector of failures, and totals of a run.
#pragma once

#include <cstdint>
#include <string>

#include "base/time/virtual_runner.hpp"

namespace roci::test {

struct Tally {
  uint64_t completed = 0;      // work requests that succeeded
  uint64_t messages_lost = 0;  // of UC and UD, which may lose messages
  uint64_t messages_arrived = 0;
  uint64_t gave_up = 0;  // queue pairs with exhausted retries, only because of random losses
  // Queue pairs with exhausted retries because the peer was unreachable or had closed.
  uint64_t gave_up_with_cause = 0;
  uint64_t reconnected = 0;       // connections
  uint64_t drained = 0;           // transitions of a queue pair through SQD
  uint64_t window_accesses = 0;   // requests with the key of a window
  uint64_t accesses_refused = 0;  // requests with the key of an invalidated window
  uint64_t refusals_due = 0;      // those of them whose error status no fault could change
  uint64_t limits_reached = 0;    // events of shared receive queues
  uint64_t retransmitted = 0;     // packets
  uint64_t frames_lost = 0;       // on the links
  uint64_t handed_over = 0;       // frames, between workers
  uint64_t hand_over_full = 0;
  uint64_t frames_kept = 0;  // frames, by selective repeat

  void add(const Tally& other);
};

struct Sum {
  const char* name;
  uint64_t Tally::*value;
};
inline constexpr Sum kSums[] = {{"completed", &Tally::completed},
                                {"messages lost", &Tally::messages_lost},
                                {"messages arrived", &Tally::messages_arrived},
                                {"gave up", &Tally::gave_up},
                                {"gave up with cause", &Tally::gave_up_with_cause},
                                {"reconnected", &Tally::reconnected},
                                {"drained", &Tally::drained},
                                {"window accesses", &Tally::window_accesses},
                                {"accesses refused", &Tally::accesses_refused},
                                {"refusals due", &Tally::refusals_due},
                                {"limits reached", &Tally::limits_reached},
                                {"retransmitted", &Tally::retransmitted},
                                {"frames lost", &Tally::frames_lost},
                                {"handed over", &Tally::handed_over},
                                {"hand over full", &Tally::hand_over_full},
                                {"frames kept", &Tally::frames_kept}};

class Verifier {
 public:
  explicit Verifier(const VirtualRunner& runner) : runner_(runner) {}
  // Records the first failure of the run.
  void fail(const std::string& what) {
    if (failure_.empty()) failure_ = what + " at " + std::to_string(runner_.now().count()) + " ns";
  }
  [[nodiscard]] bool content() const { return failure_.empty(); }
  [[nodiscard]] const std::string& failure() const { return failure_; }

  Tally tally;

 private:
  const VirtualRunner& runner_;
  std::string failure_;
};

// Application with some queue pairs, and the oracle that checks its results.
class Actor {
 public:
  virtual ~Actor() = default;
  virtual void act(Nanos now) = 0;  // called at random times
  virtual void reap() = 0;          // polls completions; called after every round of polls
  [[nodiscard]] virtual bool finished() const = 0;
  [[nodiscard]] virtual std::string state() const = 0;  // description of the state, for a run that hangs
  virtual void check() = 0;                             // called after all traffic has ended
};

}  // namespace roci::test

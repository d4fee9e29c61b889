// Who hears what is wrong, and what adds up over a run.
#pragma once

#include <cstdint>
#include <string>

#include "base/virtual_runner.hpp"

namespace roci::test {

struct Tally {
  uint64_t completed = 0;           // work requests that succeeded
  uint64_t messages_lost = 0;       // of UC and UD, as may be
  uint64_t gave_up = 0;             // queue pairs whose retries ran out by bad luck alone
  uint64_t gave_up_with_cause = 0;  // and those whose peer was out of reach, or gone
  uint64_t reconnected = 0;         // connections
  uint64_t drained = 0;             // times that a queue pair went through SQD
  uint64_t window_accesses = 0;     // requests through a window's key
  uint64_t accesses_refused = 0;    // through the key of a window that was gone
  uint64_t limits_reached = 0;      // events of shared receive queues
  uint64_t retransmitted = 0;       // packets
  uint64_t frames_lost = 0;         // by the links
  uint64_t handed_over = 0;         // frames, between workers
  uint64_t hand_over_full = 0;
  uint64_t frames_kept = 0;  // by selective repeat

  void add(const Tally& other);
};

struct Sum {
  const char* name;
  uint64_t Tally::*value;
};
inline constexpr Sum kSums[] = {{"completed", &Tally::completed},
                                {"messages lost", &Tally::messages_lost},
                                {"gave up", &Tally::gave_up},
                                {"gave up with cause", &Tally::gave_up_with_cause},
                                {"reconnected", &Tally::reconnected},
                                {"drained", &Tally::drained},
                                {"window accesses", &Tally::window_accesses},
                                {"accesses refused", &Tally::accesses_refused},
                                {"limits reached", &Tally::limits_reached},
                                {"retransmitted", &Tally::retransmitted},
                                {"frames lost", &Tally::frames_lost},
                                {"handed over", &Tally::handed_over},
                                {"hand over full", &Tally::hand_over_full},
                                {"frames kept", &Tally::frames_kept}};

class Judge {
 public:
  explicit Judge(const VirtualRunner& runner) : runner_(runner) {}
  // The first is what the run has failed with.
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

// What an application does with some queue pairs, and what its oracle says to the outcome.
class Actor {
 public:
  virtual ~Actor() = default;
  virtual void act(Nanos now) = 0;  // its turn has come
  virtual void reap() = 0;          // takes completions; after every round of polls
  [[nodiscard]] virtual bool finished() const = 0;
  [[nodiscard]] virtual std::string state() const = 0;  // for people, when it hangs
  virtual void check() = 0;                             // when nothing happens any more
};

}  // namespace roci::test

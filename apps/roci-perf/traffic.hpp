// Posts numbered messages on the queue pairs of an endpoint and turns completions back into message numbers.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "roci-perf/endpoint.hpp"
#include "roci-perf/pattern.hpp"

namespace roci::perf {

// What one completion says.
struct Event {
  bool receive = false;
  uint32_t queue_pair = 0;
  uint64_t first = 0;  // messages first <= n < last are done; for a receive that is one
  uint64_t last = 0;
  uint32_t bytes = 0;  // of a receive
};

// What --verify has looked at.
struct Verified {
  uint64_t messages = 0, bytes = 0;
};

class Traffic {
 public:
  // A completion is asked for every `signal_every` messages, at the end of post() when asked, and never else.
  Traffic(Endpoint& endpoint, const Parameters& parameters, uint32_t signal_every, uint32_t post_list);

  // Posts the next `count` messages of a queue pair as lists of work requests. `signal_last` makes the last of them
  // complete with an entry.
  Status post(uint32_t queue_pair, uint32_t count, bool signal_last);
  // Polls the completion queue once, which drives the device. The events are valid until the next call. Fails at the
  // first completion with an error.
  Result<std::span<const Event>> poll();

  [[nodiscard]] uint64_t posted(uint32_t queue_pair) const { return state_[queue_pair].posted; }
  [[nodiscard]] uint64_t completed(uint32_t queue_pair) const { return state_[queue_pair].completed; }
  // Whether the newest messages will not report their completion by themselves.
  [[nodiscard]] bool has_silent_tail(uint32_t queue_pair) const {
    return state_[queue_pair].posted != state_[queue_pair].signalled;
  }
  [[nodiscard]] bool all_complete() const;

  // Fills the slot of the message that post() sends next but `ahead` (WRITE, SEND) or wipes where it will arrive
  // (READ), so that data of an earlier message cannot pass for it.
  void prepare(uint32_t queue_pair, uint32_t ahead);
  // Checks an arrived message, of which the last `marker` bytes are not pattern; the sentence says what is wrong.
  Status check(uint32_t queue_pair, uint64_t number, std::span<const uint8_t> data, uint64_t marker = 0);
  // The same for a READ that has completed.
  Status check_read(uint32_t queue_pair, uint64_t number);
  // Fills everything that the other side may READ.
  void prepare_offer();
  [[nodiscard]] const Verified& verified() const { return verified_; }

 private:
  struct PerQueuePair {
    uint64_t posted = 0;
    uint64_t signalled = 0;  // messages up to here report their completion
    uint64_t completed = 0;
  };

  // Which slot of the peer a READ takes: another one in every round over our own slots, so that a READ that never
  // happened cannot leave the right bytes behind.
  [[nodiscard]] uint64_t read_slot(uint64_t number) const;
  [[nodiscard]] uint64_t remote_address(uint32_t queue_pair, uint64_t number) const;

  Endpoint& endpoint_;
  Operation operation_;
  uint32_t signal_every_;
  Pattern pattern_;
  Verified verified_;
  std::vector<PerQueuePair> state_;
  std::vector<ibv_send_wr> requests_;
  std::vector<ibv_sge> pieces_;
  std::array<ibv_wc, 32> completions_{};
  std::array<Event, 32> events_{};
};

}  // namespace roci::perf

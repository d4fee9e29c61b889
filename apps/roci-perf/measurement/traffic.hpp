// Traffic generator: posts numbered messages on the queue pairs of an endpoint and maps completions to message numbers.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "roci-perf/connection/endpoint.hpp"
#include "roci-perf/measurement/pattern.hpp"

namespace roci::perf {

// The messages that one completion completes.
struct Event {
  bool receive = false;
  uint32_t queue_pair = 0;
  uint64_t first = 0;  // messages first <= n < last; one message for a receive
  uint64_t last = 0;
  uint32_t bytes = 0;  // length of a receive
};

// The data checked by --verify.
struct Verified {
  uint64_t messages = 0, bytes = 0;
};

class Traffic {
 public:
  // Signals a completion every `signal_every` messages and, if requested, for the last message of a post(); no others.
  Traffic(Endpoint& endpoint, const Parameters& parameters, uint32_t signal_every, uint32_t post_list);

  // Posts the next `count` messages of a queue pair as lists of work requests. With `signal_last` the last one is
  // signaled.
  Status post(uint32_t queue_pair, uint32_t count, bool signal_last);
  // Polls the completion queue once, which also polls the device. The events are valid until the next call. Fails at
  // the first completion with an error.
  Result<std::span<const Event>> poll();

  [[nodiscard]] uint64_t posted(uint32_t queue_pair) const { return state_[queue_pair].posted; }
  [[nodiscard]] uint64_t completed(uint32_t queue_pair) const { return state_[queue_pair].completed; }
  // Whether the newest messages are unsignaled, so that no completion will report them.
  [[nodiscard]] bool has_silent_tail(uint32_t queue_pair) const {
    return state_[queue_pair].posted != state_[queue_pair].signalled;
  }
  [[nodiscard]] bool all_complete() const;

  // WRITE, SEND: fills the slot of the message that is `ahead` messages after the next one. READ: overwrites its
  // destination, so that data of an earlier message is not mistaken for it.
  void prepare(uint32_t queue_pair, uint32_t ahead);
  // Checks an arrived message, except for its last `marker` bytes. The error states the first wrong byte.
  Status check(uint32_t queue_pair, uint64_t number, std::span<const uint8_t> data, uint64_t marker = 0);
  // The same for a completed READ.
  Status check_read(uint32_t queue_pair, uint64_t number);
  // Fills all memory that the peer may READ.
  void prepare_offer();
  [[nodiscard]] const Verified& verified() const { return verified_; }

 private:
  struct PerQueuePair {
    uint64_t posted = 0;
    uint64_t signalled = 0;  // messages up to here are signaled or followed by a signaled one
    uint64_t completed = 0;
  };

  // The slot of the peer that a READ reads. It differs in every round over the local slots, so that a missing READ does
  // not leave the correct bytes in place.
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

// Frames that a switch has made itself for the senders of flows, and that wait until the stages are through, so that nothing
// is sent from within the sending of another frame.
#pragma once

#include <rte_mbuf.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>

#include "base/growing_ring.hpp"
#include "base/types.hpp"
#include "wire/address.hpp"

namespace roci {

// So many events a second and no more, a few of them at once.
class EventLimit {
 public:
  static constexpr int kAtOnce = 32;

  explicit EventLimit(uint32_t rate) : gap_(Nanos{1'000'000'000} / rate) {}
  bool take(Nanos now) {
    if (next_ > now + gap_ * (kAtOnce - 1)) return false;
    next_ = std::max(next_, now) + gap_;
    return true;
  }

 private:
  Nanos gap_;
  Nanos next_{0};
};

// Owned by the switch's thread.
class Outbox {
 public:
  using Counter = std::atomic<uint64_t>;
  static constexpr size_t kMost = 64;  // that wait at a time

  struct Message {
    rte_mbuf* frame = nullptr;
    uint16_t vlan = 0;            // where its destination MAC is looked up; or
    std::optional<IpAddress> to;  // where it goes by a route
    // Where it is counted: sent; no port is known for the MAC, or no route leads there.
    Counter* sent = nullptr;
    Counter* no_way = nullptr;
    // When it is not null: not sent to an address in one of this switch's own networks, and counted here instead.
    Counter* at_home = nullptr;
  };

  Outbox() = default;
  ~Outbox() {
    while (!waiting_.empty()) rte_pktmbuf_free(waiting_.pop().frame);
  }
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  [[nodiscard]] bool empty() const { return waiting_.empty(); }
  [[nodiscard]] bool is_full() const { return waiting_.size() >= kMost; }
  void push(const Message& message) { waiting_.push(message); }
  [[nodiscard]] Message pop() { return waiting_.pop(); }

 private:
  GrowingRing<Message> waiting_{kMost};
};

}  // namespace roci

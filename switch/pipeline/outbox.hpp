// Outbox of a switch worker: generated frames for the senders of flows. They wait until all ports have been polled, so
// that no frame is sent while another one is being sent.
#pragma once

#include <rte_mbuf.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>

#include "base/containers/growing_ring.hpp"
#include "base/types.hpp"
#include "wire/headers/address.hpp"

namespace roci {

// Rate limit of events: `rate` per second, with bursts of kAtOnce.
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

// Owned by one switch worker.
class Outbox {
 public:
  using Counter = std::atomic<uint64_t>;
  static constexpr size_t kMax = 64;  // waiting messages

  struct Message {
    rte_mbuf* frame = nullptr;
    uint16_t vlan = 0;            // VLAN in which the destination MAC is looked up; or
    std::optional<IpAddress> to;  // destination of the route lookup
    // Counters of the results: sent; no port known for the MAC, or no route.
    Counter* sent = nullptr;
    Counter* no_route = nullptr;
    // If not null: a message to one of the switch's own networks is not sent, and is counted here.
    Counter* attached_destination = nullptr;
  };

  Outbox() = default;
  ~Outbox() {
    while (!waiting_.empty()) rte_pktmbuf_free(waiting_.pop().frame);
  }
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  [[nodiscard]] bool empty() const { return waiting_.empty(); }
  [[nodiscard]] bool is_full() const { return waiting_.size() >= kMax; }
  void push(const Message& message) { waiting_.push(message); }
  [[nodiscard]] Message pop() { return waiting_.pop(); }

 private:
  GrowingRing<Message> waiting_{kMax};
};

}  // namespace roci

// Notification point of DCQCN: answers packets marked CE with a CNP to the
// sending queue pair, at most one per interval (IBTA A17.9.3).
#pragma once

#include <array>
#include <memory>

#include "base/types.hpp"
#include "roci/congestion_control_config.hpp"

namespace roci {

// Table of the queue pairs for which a CNP was recently sent. Owned by one worker.
class NotificationPoint {
 public:
  explicit NotificationPoint(const NotificationPointConfig& config)
      : interval_(config.interval), sets_(config.enabled ? std::make_unique<Sets>() : nullptr) {}

  [[nodiscard]] bool enabled() const { return sets_ != nullptr; }
  // Whether a CE-marked packet to this local queue pair must be answered now. If so, starts a new interval.
  [[nodiscard]] bool due(Qpn number, Nanos now) {
    Set& set = (*sets_)[number.value() % kSets];
    Entry* oldest = set.data();
    for (Entry& entry : set) {
      if (entry.number == number.value()) {
        if (now < entry.next) return false;
        entry.next = now + interval_;
        return true;
      }
      if (entry.next < oldest->next) oldest = &entry;
    }
    *oldest = {now + interval_, number.value()};
    return true;
  }

 private:
  // Capacity: more queue pairs are rarely marked within one interval. An evicted queue pair may get CNPs too often.
  static constexpr size_t kSets = 512;
  struct Entry {
    Nanos next{0};
    uint32_t number = 0;
  };
  using Set = std::array<Entry, 4>;
  using Sets = std::array<Set, kSets>;

  Nanos interval_;
  std::unique_ptr<Sets> sets_;
};

}  // namespace roci

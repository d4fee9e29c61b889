// The receiving end of DCQCN (its notification point): packets that arrive with CE are answered with a CNP to the queue pair
// that sent them, and then for a time with none (IBTA A17.9.3).
#pragma once

#include <array>
#include <memory>

#include "base/types.hpp"
#include "roci/congestion_control_config.hpp"

namespace roci {

// Which queue pairs were answered lately. Of a worker, and owned by it.
class NotificationPoint {
 public:
  explicit NotificationPoint(const NotificationPointConfig& config)
      : interval_(config.interval), sets_(config.enabled ? std::make_unique<Sets>() : nullptr) {}

  [[nodiscard]] bool enabled() const { return sets_ != nullptr; }
  // Whether a packet for this queue pair of ours that bore CE is to be answered now; then it has been.
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
  // In an interval more queue pairs than that hardly get marks. One that has been displaced is answered a little too often.
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

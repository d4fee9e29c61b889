// Notification point of DCQCN: answers packets marked CE with a CNP to the sending queue pair (IBTA A17.9.3), at most one
// per interval for each queue pair, source address or port.
#pragma once

#include <array>
#include <bit>
#include <memory>
#include <new>

#include "base/types.hpp"
#include "roci/congestion_control_config.hpp"
#include "wire/headers/address.hpp"

namespace roci {

// Table of the queue pairs or addresses for which a CNP was recently sent. Owned by one worker.
class NotificationPoint {
 public:
  explicit NotificationPoint(const NotificationPointConfig& config)
      : interval_(config.interval), limit_(config.limit), enabled_(config.enabled) {}

  [[nodiscard]] bool enabled() const { return enabled_; }
  // Whether a CE-marked packet from `source` to this local queue pair must be answered now. If so, starts a new interval.
  // The first call allocates the table; without memory, nothing is answered.
  [[nodiscard]] bool due(Qpn number, const IpAddress& source, Nanos now) {
    if (sets_ == nullptr) [[unlikely]] {
      sets_.reset(new (std::nothrow) Sets{});
      if (sets_ == nullptr) return false;
    }
    const uint64_t key = key_of(number, source);
    Set& set = (*sets_)[key * kSpread >> (64 - kSetBits)];
    Entry* oldest = set.data();
    for (Entry& entry : set) {
      if (entry.key == key) {
        if (now < entry.next) return false;
        entry.next = now + interval_;
        return true;
      }
      if (entry.next < oldest->next) oldest = &entry;
    }
    *oldest = {now + interval_, key};
    return true;
  }

 private:
  // Capacity: more queue pairs are rarely marked within one interval. An evicted queue pair may get CNPs too often.
  static constexpr int kSetBits = 9;
  static constexpr uint64_t kSpread =
      0x9e3779b97f4a7c15;  // 2^64 / golden ratio: spreads adjacent keys over the sets
  struct Entry {
    Nanos next{0};
    uint64_t key = 0;
  };
  using Set = std::array<Entry, 4>;
  using Sets = std::array<Set, size_t{1} << kSetBits>;

  [[nodiscard]] uint64_t key_of(Qpn number, const IpAddress& source) const {
    switch (limit_) {
      case CnpLimit::kQueuePair:
        return number.value();
      case CnpLimit::kAddress: {
        const auto words = std::bit_cast<std::array<uint64_t, 2>>(source.bytes);
        return words[0] * kSpread ^ words[1];
      }
      case CnpLimit::kPort:
        break;
    }
    return 0;
  }

  Nanos interval_;
  CnpLimit limit_;
  bool enabled_;
  std::unique_ptr<Sets> sets_;  // null before the first CE-marked packet
};

}  // namespace roci

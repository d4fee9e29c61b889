// Selection of the queue pairs of a host that are queried in full: all if there are few, otherwise those with the
// highest packet rate in both directions between two samples.
//
// A rate requires two samples, so queue pairs selected at one sample are shown at the next.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/types.hpp"

namespace roci::top {

// Maximum number of queue pairs of a host that are sampled to find the busiest.
inline constexpr size_t kMaxLookedAt = 16'384;

struct ActivitySample {
  uint32_t number = 0;
  uint32_t psns = 0;  // increases by 1 per packet, modulo 2^24
  Nanos at{0};        // differs between queue pairs: sampling a large number takes several requests
};

// Selects queue pairs of one process. Keeps the previous sample of each host.
class QueuePairChoice {
 public:
  explicit QueuePairChoice(size_t most) : most_(most) {}

  [[nodiscard]] size_t most() const { return most_; }

  struct Chosen {
    std::vector<uint32_t> shown;      // sorted
    std::vector<uint32_t> requested;  // `shown` and those that will be shown next; sorted
  };
  // `all`: sorted by number. At the first sample no rates are known, so the lowest numbers are selected.
  Chosen choose(const std::string& host, std::vector<ActivitySample> all);

 private:
  struct Before {
    std::vector<ActivitySample> all;
    std::vector<uint32_t> chosen;
  };
  size_t most_;
  std::map<std::string, Before> before_;
};

}  // namespace roci::top

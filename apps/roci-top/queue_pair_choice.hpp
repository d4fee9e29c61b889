// Which queue pairs of a host are worth asking for everything: of few all, of many those that had most packets a second come
// and go between two looks.
//
// A rate needs two answers, so those that are chosen at one look are shown at the next one.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/types.hpp"

namespace roci::top {

// Of one host that are looked at, to find the busy ones.
inline constexpr size_t kMostLookedAt = 16'384;

struct ActivitySeen {
  uint32_t number = 0;
  uint32_t psns = 0;  // grows by a packet, modulo 2^24
  Nanos at{0};        // not the same for all: a look at very many takes a while
};

// Of one process. Remembers from look to look.
class QueuePairChoice {
 public:
  explicit QueuePairChoice(size_t most) : most_(most) {}

  [[nodiscard]] size_t most() const { return most_; }

  struct Chosen {
    std::vector<uint32_t> shown;  // in order
    std::vector<uint32_t> asked;  // those, and who will be shown the next time; in order
  };
  // `all`: by number. At the first look nothing is known, and the first numbers are as good as others.
  Chosen choose(const std::string& host, std::vector<ActivitySeen> all);

 private:
  struct Before {
    std::vector<ActivitySeen> all;
    std::vector<uint32_t> chosen;
  };
  size_t most_;
  std::map<std::string, Before> before_;
};

}  // namespace roci::top

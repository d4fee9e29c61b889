// Where queue pair numbers, keys and first PSNs come from: numbers an attacker cannot guess, or a replayable series.
#pragma once

#include <cstdint>
#include <optional>

#include "base/rng.hpp"

namespace roci {

class IdSource {
 public:
  // Seed 0: from the operating system's generator.
  explicit IdSource(uint64_t seed) {
    if (seed != 0) seeded_.emplace(seed);
  }
  uint32_t next32() { return static_cast<uint32_t>((seeded_ ? seeded_->next() : os_random()) >> 32); }
  uint32_t next24() { return next32() >> 8; }

 private:
  std::optional<Rng> seeded_;
};

}  // namespace roci

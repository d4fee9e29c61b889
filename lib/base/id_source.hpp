// Source of queue pair numbers, keys and first PSNs: unpredictable numbers, or a reproducible sequence.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

#include "base/os/spinlock.hpp"
#include "base/rng.hpp"

namespace roci {

// May be called by any thread.
class IdSource {
 public:
  // Seed 0: numbers of the operating system's generator.
  explicit IdSource(uint64_t seed) {
    if (seed != 0) seeded_.emplace(seed);
  }
  uint32_t next32() {
    if (!seeded_) return static_cast<uint32_t>(os_random() >> 32);
    const std::scoped_lock guard(lock_);
    return static_cast<uint32_t>(seeded_->next() >> 32);
  }
  uint32_t next24() { return next32() >> 8; }

 private:
  Spinlock lock_;
  std::optional<Rng> seeded_;
};

}  // namespace roci

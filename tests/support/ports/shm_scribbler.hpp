// Thread that writes random values into the shared memory of a network at any time. ROCI_HOSTILE_SECONDS sets how
// long the tests run at least.
#pragma once

#include <atomic>
#include <cstdlib>
#include <functional>
#include <span>
#include <thread>

#include "base/rng.hpp"
#include "port/realtime_runner.hpp"
#include "port/shm/shm_ring.hpp"
#include "port/shm/shm_segment.hpp"

namespace roci::test {

// Runs `scribble` in a thread until it is destroyed.
class Scribbler {
 public:
  explicit Scribbler(std::function<void(Rng&)> scribble)
      : scribble_(std::move(scribble)), thread_([this] {
          Rng rng{4};
          do {
            scribble_(rng);
            passes_.fetch_add(1);
            // A ring that is changed all the time delivers no frames, so the validation of frames would not be
            // tested.
            if (rng.chance(0.05)) std::this_thread::sleep_for(Nanos{rng.below(10'000'000)});
          } while (!stop_.load());
        }) {}
  Scribbler(const Scribbler&) = delete;
  Scribbler& operator=(const Scribbler&) = delete;
  ~Scribbler() {
    stop_.store(true);
    thread_.join();
  }
  // Whether the test must continue: for `rounds` rounds, and until this thread has run at least 20 times.
  [[nodiscard]] bool continues(uint64_t round, uint64_t rounds) const {
    if (round < rounds || passes_.load() < 20) return true;
    return monotonic_now() < until_;
  }

 private:
  static Nanos wanted() {
    const char* const seconds = std::getenv("ROCI_HOSTILE_SECONDS");
    return seconds == nullptr ? Nanos{0} : Nanos{std::chrono::seconds{std::atoi(seconds)}};
  }

  const std::function<void(Rng&)> scribble_;
  const Nanos until_ = monotonic_now() + wanted();
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> passes_{0};
  std::thread thread_;
};

inline void put(void* at, uint64_t value) {
  __atomic_store_n(static_cast<uint64_t*>(at), value, __ATOMIC_RELAXED);
}

// A random value, or one close to a valid one, which passes the first validation steps.
inline uint64_t position_near(Rng& rng, const std::atomic<uint64_t>& other, uint64_t size) {
  const uint64_t base = other.load(std::memory_order_relaxed);
  switch (rng.below(4)) {
    case 0:
      return rng.next();
    case 1:
      return base + rng.below(2 * size);
    case 2:
      return base - rng.below(2 * size);
    default:
      return base + rng.below(size / 64 + 2) * 64;
  }
}

inline void scribble_ring(Rng& rng, ShmRingControl& control, std::byte* data, uint32_t size, int words) {
  for (int i = 0; i < words; ++i) {
    std::byte* const line = data + rng.below(size / 64) * 64;
    if (rng.chance(0.3)) {
      put(line + rng.below(8) * 8, rng.next());
    } else {
      const uint64_t bytes =
          rng.chance(0.1) ? size - static_cast<uint64_t>(line - data) : rng.below(kShmMostFrame + 50);
      put(line, rng.below(4) << 32 | bytes);
    }
    if (rng.chance(0.2)) put(&control.tail, position_near(rng, control.head, size));
    if (rng.chance(0.05)) put(&control.head, position_near(rng, control.tail, size));
    if (rng.chance(0.05))
      put(reinterpret_cast<uint64_t*>(&control) + rng.below(sizeof control / 8), rng.next());
  }
}

// Changes the slots and the rings between them.
inline void scribble_slots(Rng& rng, ShmSegment& segment, std::span<const uint32_t> slots) {
  for (const uint32_t from : slots) {
    auto* const slot = reinterpret_cast<std::byte*>(&segment.slot(from));
    for (int i = 0; i < 20; ++i) {
      // Writes random values and sometimes 0. An incarnation of 0 (no owner) is rarer, as it prevents all frames.
      const size_t word = rng.below(sizeof(ShmSlot) / 8);
      const bool incarnation =
          slot + word * 8 == reinterpret_cast<std::byte*>(&segment.slot(from).incarnation);
      put(slot + word * 8, rng.chance(0.1) && (!incarnation || rng.chance(0.1)) ? 0 : rng.next());
    }
    for (const uint32_t to : slots) {
      if (from != to)
        scribble_ring(rng, segment.control(from, to), segment.ring(from, to), kShmRingBytes, 50);
    }
  }
}

}  // namespace roci::test

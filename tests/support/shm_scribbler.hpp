// A process that writes anything into the shared memory of a network at any time, as a thread. ROCI_HOSTILE_SECONDS lengthens the
// tests with it.
#pragma once

#include <atomic>
#include <cstdlib>
#include <functional>
#include <span>
#include <thread>

#include "base/rng.hpp"
#include "port/realtime_runner.hpp"
#include "port/shm_ring.hpp"
#include "port/shm_segment.hpp"

namespace roci::test {

// Runs `scribble` in a thread of its own until it ends.
class Scribbler {
 public:
  explicit Scribbler(std::function<void(Rng&)> scribble)
      : scribble_(std::move(scribble)), thread_([this] {
          Rng rng{4};
          do {
            scribble_(rng);
            passes_.fetch_add(1);
            // A ring that is never left alone delivers nothing, and then frames are not tested.
            if (rng.chance(0.05)) std::this_thread::sleep_for(Nanos{rng.below(10'000'000)});
          } while (!stop_.load());
        }) {}
  Scribbler(const Scribbler&) = delete;
  Scribbler& operator=(const Scribbler&) = delete;
  ~Scribbler() {
    stop_.store(true);
    thread_.join();
  }
  // Whether the other thread is to continue: for so many rounds, and until this one has had its turns.
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

// Any value, or one that looks right: validation is then reached in depth.
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

// Into the slots, and the rings between them.
inline void scribble_slots(Rng& rng, ShmSegment& segment, std::span<const uint32_t> slots) {
  for (const uint32_t from : slots) {
    auto* const slot = reinterpret_cast<std::byte*>(&segment.slot(from));
    for (int i = 0; i < 20; ++i) {
      // Mostly the words that one value breaks for long are left alone, or no frame would be sent at all.
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

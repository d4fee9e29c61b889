// A seeded generator for everything that must replay, and the operating system's for everything that must not be
// guessed.
#pragma once

#include <cstdint>
#include <random>

namespace roci {

// Deterministic: the same seed gives the same sequence on every machine (the engine is specified by the standard;
// the standard's distributions are not, so the few that are needed are here).
class Rng {
 public:
  explicit Rng(uint64_t seed) : engine_(seed) {}

  uint64_t next() { return engine_(); }
  // Uniform in [0, bound); bound must not be 0. Without bias (Lemire's multiply and reject).
  uint64_t below(uint64_t bound);
  // Uniform in [low, high], both included.
  uint64_t between(uint64_t low, uint64_t high) { return low + below(high - low + 1); }
  // Uniform within 15 % of `mean`: how 802.1Q spreads distances and times, so that those of several do not keep in step.
  uint64_t around(uint64_t mean) {
    const uint64_t low = mean * 85 / 100;
    return between(low, mean + (mean - low));
  }
  // Uniform in [0, 1).
  double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  // True with the given probability; 0 is never, 1 is always, and neither draws a number.
  bool chance(double probability) {
    if (probability <= 0) return false;
    if (probability >= 1) return true;
    return unit() < probability;
  }
  // An independent generator for a part of the model, so that one part's draws do not shift another's.
  Rng fork() { return Rng{next()}; }

 private:
  std::mt19937_64 engine_;
};

// For a draw with every frame: eight bytes of state instead of 2,500, and a few instructions for a number (SplitMix64:
// Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators", figure 14). As deterministic as the other.
class LightRng {
 public:
  explicit LightRng(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t mixed = state_ += 0x9e3779b97f4a7c15;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
    return mixed ^ mixed >> 31;
  }
  // As Rng's.
  bool chance(double probability) {
    if (probability <= 0) return false;
    if (probability >= 1) return true;
    return static_cast<double>(next() >> 11) * 0x1.0p-53 < probability;
  }

 private:
  uint64_t state_;
};

// From the operating system's generator; for QPNs, initial PSNs, keys. Aborts the process when the system has none
// to give (a kernel without getrandom), because every guess-resistant number depends on it.
uint64_t os_random();

}  // namespace roci

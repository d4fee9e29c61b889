// Random number generators: a seeded one for values that must be reproducible, and the operating system's for values
// that must not be predictable.
#pragma once

#include <cstdint>
#include <random>

namespace roci {

// Deterministic generator: the same seed gives the same sequence on every machine. The standard specifies the engine
// but not the distributions, so this class implements the distributions that are needed.
class Rng {
 public:
  explicit Rng(uint64_t seed) : engine_(seed) {}

  uint64_t next() { return engine_(); }
  // Uniform in [0, bound); bound must not be 0. Unbiased (Lemire's multiply and reject).
  uint64_t below(uint64_t bound);
  // Uniform in [low, high], both included.
  uint64_t between(uint64_t low, uint64_t high) { return low + below(high - low + 1); }
  // Uniform within 15 % of `mean`: the variation of distances and times in 802.1Q, which prevents synchronization.
  uint64_t around(uint64_t mean) {
    const uint64_t low = mean * 85 / 100;
    return between(low, mean + (mean - low));
  }
  // Uniform in [0, 1).
  double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  // True with the given probability. 0 is never, 1 is always; neither draws a number.
  bool chance(double probability) {
    if (probability <= 0) return false;
    if (probability >= 1) return true;
    return unit() < probability;
  }
  // Independent generator for a component, so that its draws do not change those of another component.
  Rng fork() { return Rng{next()}; }

 private:
  std::mt19937_64 engine_;
};

// Generator for a draw per frame: 8 bytes of state instead of 2,500, and a few instructions per number (SplitMix64:
// Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators", figure 14). Deterministic, as Rng.
class LightRng {
 public:
  explicit LightRng(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t mixed = state_ += 0x9e3779b97f4a7c15;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
    return mixed ^ mixed >> 31;
  }
  // As Rng::chance().
  bool chance(double probability) {
    if (probability <= 0) return false;
    if (probability >= 1) return true;
    return static_cast<double>(next() >> 11) * 0x1.0p-53 < probability;
  }

 private:
  uint64_t state_;
};

// Random number of the operating system, for QPNs, initial PSNs and keys. Aborts the process if the system has none (a
// kernel without getrandom), because all unpredictable numbers depend on it.
uint64_t os_random();

}  // namespace roci

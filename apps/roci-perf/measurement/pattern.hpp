// The test pattern of --verify. Every byte depends on the seed, the stream (a queue pair and a direction), the message
// number and the offset, so that stale, misplaced or missing data is detected.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace roci::perf {

struct Mismatch {
  uint64_t offset = 0;   // of the first wrong byte
  uint64_t wrong = 0;    // number of wrong bytes in the message
  uint64_t size = 0;     // bytes checked
  uint8_t expected = 0;  // value at `offset`
  uint8_t got = 0;
  // "message 17 of queue pair 0 is wrong at offset 4096 of 65536: expected 0x3c, got 0x00 (12 bytes differ)"
  [[nodiscard]] std::string sentence(uint32_t queue_pair, uint64_t message) const;
};

class Pattern {
 public:
  explicit Pattern(uint64_t seed) : seed_(seed) {}
  void fill(std::span<uint8_t> out, uint32_t stream, uint64_t message) const;
  // Compares every byte. Returns nothing if all are correct.
  [[nodiscard]] std::optional<Mismatch> check(std::span<const uint8_t> data, uint32_t stream,
                                              uint64_t message) const;

 private:
  [[nodiscard]] uint64_t base(uint32_t stream, uint64_t message) const;
  uint64_t seed_;
};

}  // namespace roci::perf

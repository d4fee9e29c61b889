// The bytes that --verify sends and expects: every byte follows from the seed, the stream (a queue pair and a
// direction), the number of the message and the offset, so that stale, misplaced or missing data shows.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace roci::perf {

struct Mismatch {
  uint64_t offset = 0;   // of the first wrong byte
  uint64_t wrong = 0;    // how many bytes of the message are wrong
  uint64_t size = 0;     // of what was checked
  uint8_t expected = 0;  // at `offset`
  uint8_t got = 0;
  // "message 17 of queue pair 0 is wrong at offset 4096 of 65536: expected 0x3c, got 0x00 (12 bytes differ)"
  [[nodiscard]] std::string sentence(uint32_t queue_pair, uint64_t message) const;
};

class Pattern {
 public:
  explicit Pattern(uint64_t seed) : seed_(seed) {}
  void fill(std::span<uint8_t> out, uint32_t stream, uint64_t message) const;
  // Compares every byte; nothing when all are right.
  [[nodiscard]] std::optional<Mismatch> check(std::span<const uint8_t> data, uint32_t stream,
                                              uint64_t message) const;

 private:
  [[nodiscard]] uint64_t base(uint32_t stream, uint64_t message) const;
  uint64_t seed_;
};

}  // namespace roci::perf

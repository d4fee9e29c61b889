#include "roci-perf/measurement/pattern.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace roci::perf {
namespace {

constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;

// The finalizer of SplitMix64: every input bit affects every output bit.
uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Eight bytes of a message. Only one multiplication, since it is computed for every word of a bandwidth test. The upper
// half is combined with the lower half, whose bits alone repeat with a short period.
inline uint64_t word_at(uint64_t base, uint64_t index) {
  const uint64_t x = (base + index) * kGolden;
  return x ^ (x >> 32);
}

// Number of correct words at the start, in whole blocks. One branch per block keeps the error-free case fast.
size_t right_words(std::span<const uint8_t> data, uint64_t base) {
  constexpr size_t kBlock = 32;
  size_t done = 0;
  for (; 8 * (done + kBlock) <= data.size(); done += kBlock) {
    uint64_t difference = 0;
    for (size_t i = 0; i < kBlock; ++i) {
      uint64_t word = 0;
      std::memcpy(&word, data.data() + 8 * (done + i), 8);
      difference |= word ^ word_at(base, done + i);
    }
    if (difference != 0) break;
  }
  return done;
}

}  // namespace

std::string Mismatch::sentence(uint32_t queue_pair, uint64_t message) const {
  char text[200];
  std::snprintf(text, sizeof text,
                "message %llu of queue pair %u is wrong at offset %llu of %llu: expected 0x%02x, got 0x%02x "
                "(%llu byte%s differ%s)",
                static_cast<unsigned long long>(message), queue_pair, static_cast<unsigned long long>(offset),
                static_cast<unsigned long long>(size), expected, got, static_cast<unsigned long long>(wrong),
                wrong == 1 ? "" : "s", wrong == 1 ? "s" : "");
  return text;
}

uint64_t Pattern::base(uint32_t stream, uint64_t message) const {
  return mix(mix(mix(seed_ + kGolden) + stream + kGolden) + message + kGolden);
}

void Pattern::fill(std::span<uint8_t> out, uint32_t stream, uint64_t message) const {
  const uint64_t start = base(stream, message);
  uint8_t* at = out.data();
  const size_t words = out.size() / 8;
  for (size_t i = 0; i < words; ++i, at += 8) {
    const uint64_t word = word_at(start, i);
    std::memcpy(at, &word, 8);
  }
  if (const size_t rest = out.size() % 8; rest != 0) {
    const uint64_t word = word_at(start, words);
    std::memcpy(at, &word, rest);
  }
}

std::optional<Mismatch> Pattern::check(std::span<const uint8_t> data, uint32_t stream,
                                       uint64_t message) const {
  const uint64_t start = base(stream, message);
  std::optional<Mismatch> found;
  const size_t good = right_words(data, start);
  for (size_t at = 8 * good; at < data.size(); at += 8) {
    const size_t length = std::min<size_t>(8, data.size() - at);
    const uint64_t expected = word_at(start, at / 8);
    if (std::memcmp(data.data() + at, &expected, length) == 0) continue;
    uint8_t bytes[8];
    std::memcpy(bytes, &expected, 8);
    for (size_t i = 0; i < length; ++i) {
      if (data[at + i] == bytes[i]) continue;
      if (!found) found = Mismatch{at + i, 0, data.size(), bytes[i], data[at + i]};
      ++found->wrong;
    }
  }
  return found;
}

}  // namespace roci::perf

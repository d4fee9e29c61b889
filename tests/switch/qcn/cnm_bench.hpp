// Helpers for tests of congestion notification: frames with CN-TAGs, and expected CNM bytes.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "switch/addresses.hpp"
#include "switch/qos/class_config.hpp"
#include "wire/headers/address.hpp"

namespace roci::test {

inline constexpr uint16_t kCnmPort = 4999;
inline constexpr uint8_t kClass = 5;
inline constexpr uint8_t kTos = kClass << 5;

// Queue set point of the switch tests: a single frame of 1,306 bytes is no congestion, further frames of a burst are.
inline constexpr Bytes kQeq{4000};
// Expected CNM fields after the n-th frame (from 0) of `bytes` bytes was added to an empty queue.
struct Said {
  Said(uint32_t n, size_t bytes) {
    const auto length = static_cast<int>(bytes);
    const int beyond = static_cast<int>(n + 1) * length - 4000;
    feedback = static_cast<uint32_t>(std::min(63, (beyond + 2 * length) * 63 / 20'000));
    offset = static_cast<uint32_t>(beyond / 64);
    delta = static_cast<uint32_t>(length / 64);
  }
  uint32_t feedback, offset, delta;
};

inline std::vector<uint8_t> with_cn_tag(const std::vector<uint8_t>& frame, uint16_t flow) {
  std::vector<uint8_t> out = frame;
  size_t at = 12;
  if (out[12] == 0x81 && out[13] == 0) at += 4;
  const std::array<uint8_t, 4> tag{0x22, 0xe9, static_cast<uint8_t>(flow >> 8), static_cast<uint8_t>(flow)};
  out.insert(out.begin() + static_cast<std::ptrdiff_t>(at), tag.begin(), tag.end());
  return out;
}

inline std::vector<uint8_t> msdu_of(const std::vector<uint8_t>& frame, size_t at) {
  const size_t end = std::min(frame.size(), at + 64);
  return {frame.begin() + static_cast<std::ptrdiff_t>(at), frame.begin() + static_cast<std::ptrdiff_t>(end)};
}

// Builds the bytes of a CNM field by field.
class CnmBytes {
 public:
  CnmBytes& mac(const MacAddress& m) {
    out_.insert(out_.end(), m.bytes.begin(), m.bytes.end());
    return *this;
  }
  CnmBytes& be16(uint32_t v) {
    out_.push_back(static_cast<uint8_t>(v >> 8));
    out_.push_back(static_cast<uint8_t>(v));
    return *this;
  }
  CnmBytes& bytes(const std::vector<uint8_t>& b) {
    out_.insert(out_.end(), b.begin(), b.end());
    return *this;
  }
  [[nodiscard]] const std::vector<uint8_t>& get() const { return out_; }

 private:
  std::vector<uint8_t> out_;
};

// A class that samples every frame longer than 1,150 bytes.
inline ClassConfig qcn_class(bool l3 = false) {
  ClassConfig c;
  c.notify = ClassConfig::Notify::kQcn;
  c.qcn = {.qeq = kQeq, .weight = 2, .sample = Bytes{1000}, .l3 = l3};
  return c;
}

}  // namespace roci::test

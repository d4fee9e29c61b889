// Memory with a registered region in the middle and guard bytes on both sides, which must not change.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "base/rng.hpp"
#include "roci/device.hpp"
#include "simulation/linux/linux_host.hpp"
#include "support/must.hpp"

namespace roci::test {

class Arena {
 public:
  void make(ProtectionDomain& pd, size_t size, Rng& rng, int access) {
    fill(size, rng);
    region = must(pd.register_memory(data(), size, access));
    keys = {region->lkey(), region->rkey()};
  }
  void make(LinuxHost& host, size_t size, Rng& rng, int access) {
    fill(size, rng);
    keys = host.register_memory(data(), size, access);
  }
  [[nodiscard]] size_t size() const { return bytes_.size() - 2 * kGuard; }
  [[nodiscard]] uint8_t* data() { return bytes_.data() + kGuard; }
  [[nodiscard]] const uint8_t* data() const { return bytes_.data() + kGuard; }
  [[nodiscard]] uint64_t address(size_t offset) const { return reinterpret_cast<uint64_t>(data() + offset); }
  [[nodiscard]] std::vector<uint8_t> copy() const { return {data(), data() + size()}; }
  [[nodiscard]] uint64_t sum() const {
    uint64_t hash = 0;
    for (size_t i = 0; i + 8 <= size(); i += 8) {
      uint64_t word = 0;
      std::memcpy(&word, data() + i, 8);
      hash = (hash ^ word) * 1099511628211ULL;
    }
    return hash;
  }
  [[nodiscard]] bool guards_hold() const {
    for (size_t i = 0; i < kGuard; ++i) {
      if (bytes_[i] != kGuardByte || bytes_[bytes_.size() - 1 - i] != kGuardByte) return false;
    }
    return true;
  }
  // Splits the range into at most `most` random segments and returns their number.
  int pieces(Rng& rng, size_t offset, size_t length, int most, ibv_sge* list) const {
    int count = 0;
    for (size_t at = 0; at < length;) {
      const size_t left = length - at;
      const size_t take = count + 1 == most ? left : rng.between(1, left);
      list[count++] = {address(offset + at), static_cast<uint32_t>(take), keys.local};
      at += take;
    }
    return count;
  }

  std::unique_ptr<MemoryRegion> region;  // null on a Linux host
  MemoryKeys keys;

 private:
  void fill(size_t size, Rng& rng) {
    bytes_.assign(size + 2 * kGuard, kGuardByte);
    for (size_t i = 0; i + 8 <= size; i += 8) {
      const uint64_t word = rng.next();
      std::memcpy(data() + i, &word, 8);
    }
  }

  static constexpr size_t kGuard = 4096;
  static constexpr uint8_t kGuardByte = 0xa5;
  std::vector<uint8_t> bytes_;
};

}  // namespace roci::test

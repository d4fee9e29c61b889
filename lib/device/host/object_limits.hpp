// Counts the objects of a device against the limits of ibv_device_attr. Any thread.
#pragma once

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <string>

#include "base/result.hpp"

namespace roci {

// Objects whose number DeviceConfig limits. Queue pairs and memory regions are counted by their tables.
enum class LimitedObject : uint8_t {
  kProtectionDomain,
  kCompletionQueue,
  kSharedReceiveQueue,
  kAddressHandle,
};

class ObjectLimits {
 public:
  // `limits`: in the order of LimitedObject.
  explicit ObjectLimits(const std::array<uint32_t, 4>& limits) : limits_(limits) {}

  // Counts one more object. ENOMEM at the limit.
  [[nodiscard]] Status take(LimitedObject kind) {
    const auto i = static_cast<size_t>(kind);
    if (counts_[i].fetch_add(1, std::memory_order_relaxed) < limits_[i]) return {};
    counts_[i].fetch_sub(1, std::memory_order_relaxed);
    return fail(std::string{kNames[i][0]} + ": the maximum of " + std::to_string(limits_[i]) + " (" +
                    kNames[i][1] + ") is reached; destroy one first",
                ENOMEM);
  }
  void release(LimitedObject kind) {
    counts_[static_cast<size_t>(kind)].fetch_sub(1, std::memory_order_relaxed);
  }

 private:
  static constexpr const char* kNames[4][2] = {{"protection domains", "max_pd"},
                                               {"completion queues", "max_cq"},
                                               {"shared receive queues", "max_srq"},
                                               {"address handles", "max_ah"}};
  const std::array<uint32_t, 4> limits_;
  std::array<std::atomic<uint32_t>, 4> counts_{};
};

}  // namespace roci

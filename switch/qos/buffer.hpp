// Shared buffer of the switch: accounts for the bytes of each class of each ingress port, applies the limits, and
// selects the classes that PFC must pause. The frames are stored in mbufs.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "switch/pipeline/counters.hpp"
#include "switch/pipeline/packet.hpp"
#include "switch/qos/class_config.hpp"

namespace roci {

struct BufferConfig {
  // Limit of all ports together. Without it, only the limit of each port applies.
  Bytes size{std::numeric_limits<uint64_t>::max()};
  // Dynamic thresholds (Choudhury and Hahne 1998): a queue may hold `alpha` times the free part of `size`. 0: no limit.
  double alpha = 0;

  friend bool operator==(const BufferConfig&, const BufferConfig&) = default;
};

// Buffer accounts shared by the workers of a switch. The worker of an egress port calls take() and release(); the
// worker of an ingress port calls stop(). A limit may be exceeded by one or two frames per additional worker.
class SwitchBuffer {
 public:
  // `workers`: number of workers that call take() and release().
  SwitchBuffer(const BufferConfig& config, const std::vector<ClassConfigs>& classes, uint32_t workers = 1);

  // Returns kNone if a frame may be added to an egress queue of `queue` bytes, else the reason of the drop. `ingress`
  // is kNoPort for frames that the switch generates.
  [[nodiscard]] DropReason admit(uint16_t ingress, uint8_t traffic_class, uint32_t bytes,
                                 uint64_t queue) const;
  // Accounts for a frame that was queued.
  void take(uint16_t ingress, uint8_t traffic_class, uint32_t bytes) {
    change(used_, bytes);
    if (ingress != kNoPort) change(account(ingress, traffic_class).used, bytes);
  }
  // Accounts for `bytes` that have left.
  void release(uint16_t ingress, uint8_t traffic_class, uint64_t bytes) {
    change(used_, -bytes);
    if (ingress != kNoPort) change(account(ingress, traffic_class).used, -bytes);
  }

  [[nodiscard]] uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  [[nodiscard]] uint64_t used_by(uint16_t ingress, uint8_t traffic_class) const {
    return ports_[ingress][traffic_class].used.load(std::memory_order_relaxed);
  }

  // PFC: returns the bitmap of classes that the neighbor at this port must pause now. `stopped`: the classes paused
  // before, for the hysteresis. Called by the worker of the port.
  [[nodiscard]] uint8_t stop(uint16_t port, uint8_t stopped) const;

 private:
  struct Account {
    std::atomic<uint64_t> used{0};
    uint64_t xoff = UINT64_MAX;  // not reached by other classes
    uint64_t xon = 0;
    uint64_t most = 0;  // xoff and headroom of a lossless class, 0 of others
  };
  using Ingress = std::array<Account, kTrafficClasses>;

  Account& account(uint16_t ingress, uint8_t traffic_class) { return ports_[ingress][traffic_class]; }
  void change(std::atomic<uint64_t>& value, uint64_t by) const {
    if (shared_) {
      value.fetch_add(by, std::memory_order_relaxed);
    } else {
      value.store(value.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
    }
  }

  BufferConfig config_;
  bool shared_;
  std::vector<Ingress> ports_;
  std::atomic<uint64_t> used_{0};
};

}  // namespace roci

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
  // Whether PFC protects the frames of this class and ingress port, so that only admit() limits them.
  [[nodiscard]] bool is_lossless(uint16_t ingress, uint8_t traffic_class) const {
    if (ingress == kNoPort) return false;
    const Account& account = ports_[ingress][traffic_class];
    return account.most != 0 || account.alpha > 0;
  }
  // Accounts for a frame that was queued.
  void take(uint16_t ingress, uint8_t traffic_class, uint32_t bytes) {
    if (ingress != kNoPort) {
      Account& of = account(ingress, traffic_class);
      const bool above = of.alpha > 0 && needs_headroom(of, bytes);
      change(of.used, bytes);
      if (above) [[unlikely]]
        use_headroom(of, bytes);
    }
    change(used_, bytes);
  }
  // Accounts for `bytes` that have left.
  void release(uint16_t ingress, uint8_t traffic_class, uint64_t bytes) {
    change(used_, -bytes);
    if (ingress == kNoPort) return;
    Account& of = account(ingress, traffic_class);
    if (of.in_headroom.load(std::memory_order_relaxed) > 0) [[unlikely]]
      free_headroom(of, bytes);
    change(of.used, -bytes);
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
    uint64_t most = 0;  // xoff and headroom of a lossless class with a static threshold, 0 of others
    // Dynamic threshold: alpha times the free buffer. The headroom is reserved.
    double alpha = 0;
    uint64_t hysteresis = 0;
    uint64_t headroom = 0;
    std::atomic<uint64_t> in_headroom{0};  // part of `used`: bytes that arrived above the threshold
  };
  using Ingress = std::array<Account, kTrafficClasses>;

  // Free bytes of the part of the buffer that is not reserved for headroom.
  [[nodiscard]] uint64_t free_to_share() const;
  // Dynamic threshold of an ingress port and class.
  [[nodiscard]] double threshold(const Account& of) const;
  // Bytes that count towards it.
  [[nodiscard]] static uint64_t counted(const Account& of);
  // Whether `bytes` more would exceed it, or the part of the buffer that is not reserved.
  [[nodiscard]] bool needs_headroom(const Account& of, uint64_t bytes) const;
  void use_headroom(Account& of, uint64_t bytes);
  // Bytes that leave free the headroom first.
  void free_headroom(Account& of, uint64_t bytes);
  [[nodiscard]] bool stops_dynamically(const Account& of, bool stopped) const;

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
  uint64_t reserved_ = 0;                      // headroom of all classes with dynamic thresholds
  std::atomic<uint64_t> used_of_reserved_{0};  // sum of Account::in_headroom
};

}  // namespace roci

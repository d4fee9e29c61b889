// The switch's memory as the stages account for it: what of it each class of each ingress port holds, who may have more,
// and whom PFC must stop. The frames themselves lie in mbufs.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "switch/class_config.hpp"
#include "switch/counters.hpp"
#include "switch/packet.hpp"

namespace roci {

struct BufferConfig {
  // What all ports together may hold; without a limit each port has its own and nothing else.
  Bytes size{std::numeric_limits<uint64_t>::max()};
  // A queue may hold this many times what is free of `size` (dynamic thresholds, Choudhury and Hahne 1998); 0: no limit.
  double alpha = 0;

  friend bool operator==(const BufferConfig&, const BufferConfig&) = default;
};

// Shared by the workers of a switch: whoever owns an egress port takes and releases, whoever owns an ingress port asks how
// much of it is here. With several, a limit may be exceeded by what each of the others takes in the same moment, a frame or
// two.
class SwitchBuffer {
 public:
  // `workers`: that take and release.
  SwitchBuffer(const BufferConfig& config, const std::vector<ClassConfigs>& classes, uint32_t workers = 1);

  // Whether a frame may be put into an egress queue that holds `queue` bytes: kNone, or why not. `ingress` is kNoPort
  // for what the switch makes itself.
  [[nodiscard]] DropReason admit(uint16_t ingress, uint8_t traffic_class, uint32_t bytes,
                                 uint64_t queue) const;
  // It has been put there.
  void take(uint16_t ingress, uint8_t traffic_class, uint32_t bytes) {
    change(used_, bytes);
    if (ingress != kNoPort) change(account(ingress, traffic_class).used, bytes);
  }
  // So many bytes have left.
  void release(uint16_t ingress, uint8_t traffic_class, uint64_t bytes) {
    change(used_, -bytes);
    if (ingress != kNoPort) change(account(ingress, traffic_class).used, -bytes);
  }

  [[nodiscard]] uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  [[nodiscard]] uint64_t used_by(uint16_t ingress, uint8_t traffic_class) const {
    return ports_[ingress][traffic_class].used.load(std::memory_order_relaxed);
  }

  // PFC: which classes' neighbour at this port is to be silent now, a bit for each, when those of `stopped` were before.
  // Asked by who owns the port.
  [[nodiscard]] uint8_t stop(uint16_t port, uint8_t stopped) const;

 private:
  struct Account {
    std::atomic<uint64_t> used{0};
    uint64_t xoff = UINT64_MAX;  // never reached by a class that may lose
    uint64_t xon = 0;
    uint64_t most = 0;  // of a lossless class, 0 of others
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

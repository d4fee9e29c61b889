// The switch's memory as the stages account for it: what of it each class of each ingress port holds, who may have more,
// and whom PFC must stop. The frames themselves lie in mbufs.
#pragma once

#include <array>
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

// Owned by the switch's thread.
class SwitchBuffer {
 public:
  SwitchBuffer(const BufferConfig& config, const std::vector<ClassConfigs>& classes);

  // Whether a frame may be put into an egress queue that holds `queue` bytes: kNone, or why not. `ingress` is kNoPort
  // for what the switch makes itself.
  [[nodiscard]] DropReason admit(uint16_t ingress, uint8_t traffic_class, uint32_t bytes,
                                 uint64_t queue) const;
  // It has been put there.
  void take(uint16_t ingress, uint8_t traffic_class, uint32_t bytes) {
    used_ += bytes;
    if (ingress == kNoPort) return;
    Account& account = ports_[ingress].classes[traffic_class];
    account.used += bytes;
    if (account.used >= account.xoff) [[unlikely]]
      ports_[ingress].stopped = static_cast<uint8_t>(ports_[ingress].stopped | 1U << traffic_class);
  }
  // It has left.
  void release(uint16_t ingress, uint8_t traffic_class, uint32_t bytes) {
    used_ -= bytes;
    if (ingress == kNoPort) return;
    Account& account = ports_[ingress].classes[traffic_class];
    account.used -= bytes;
    if (account.used <= account.xon)
      ports_[ingress].stopped = static_cast<uint8_t>(ports_[ingress].stopped & ~(1U << traffic_class));
  }

  [[nodiscard]] uint64_t used() const { return used_; }
  [[nodiscard]] uint64_t used_by(uint16_t ingress, uint8_t traffic_class) const {
    return ports_[ingress].classes[traffic_class].used;
  }

  // PFC: the classes whose neighbour at this port is to be silent, a bit for each.
  [[nodiscard]] uint8_t stopped(uint16_t port) const { return ports_[port].stopped; }

 private:
  struct Account {
    uint64_t used = 0;
    uint64_t xoff = UINT64_MAX;  // never reached by a class that may lose
    uint64_t xon = 0;
    uint64_t most = 0;  // of a lossless class, 0 of others
  };
  struct Ingress {
    std::array<Account, kTrafficClasses> classes{};
    uint8_t stopped = 0;
  };

  BufferConfig config_;
  std::vector<Ingress> ports_;
  uint64_t used_ = 0;
};

}  // namespace roci

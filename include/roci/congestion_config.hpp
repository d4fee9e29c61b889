// Configuration of quantized congestion notification (QCN, 802.1Q clause 30; docs/switch.md). Packets of the device
// carry a flow identifier, congested queues on the path send CNMs to the device, and the device may be a congestion
// point itself.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

namespace roci {

// Receive side of the device as a congestion point (802.1Q 30.2): it sends CNMs when frames wait to be received.
struct ReceivePointConfig {
  uint32_t qeq = 0;  // Qeq: set point of the queue, in frames; 0 disables the congestion point
  // w: weight of the queue's growth relative to its length; a power of two from 1/1024 to 1024.
  double weight = 2;
  uint64_t sample = 150'000;  // bytes between two samples without congestion
};

struct CongestionConfig {
  bool tag = false;           // requests and READ responses carry a CN-TAG
  uint8_t priorities = 0xff;  // bitmap: priorities of packets with a CN-TAG
  // Source of a packet's priority: false: first three bits of its DSCP; true: the tag (DeviceConfig::priority).
  bool trust_pcp = false;
  // UDP port of CNMs through routers (L3QCN), the same in the whole network. 0: they are neither accepted nor sent.
  uint16_t cnm_port = 0;
  // Key that signs CNMs through routers. With a key, unsigned and replayed CNMs are dropped.
  std::optional<std::array<uint8_t, 16>> cnm_key;
  // Maximum clock difference between devices with the key, at most 1 h.
  std::chrono::nanoseconds cnm_tolerance{5'000'000'000};
  // Offset from the device's clock to the time of day. Default: from the system clock, or 0 if the caller's runner
  // supplies the time (Progress::kExternal).
  std::optional<std::chrono::nanoseconds> time_of_day;
  // Limit of accepted CNMs per second, and of sent CNMs; 0: unlimited, not allowed with a key.
  uint32_t cnm_rate = 10'000;
  // Whether to accept CNMs that contain too little of the sampled packet to verify that this device sent it.
  bool short_samples = false;
  ReceivePointConfig receive_point;

  // Whether the device processes CNMs.
  [[nodiscard]] bool listens() const { return tag || cnm_port != 0; }
};

}  // namespace roci

// What a device does with quantised congestion notification (QCN, 802.1Q clause 30; docs/switch.md): its packets say which
// flow they are of, congested queues on their way answer that with messages (CNMs), and it may be such a queue itself.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

namespace roci {

// The receive side as a congestion point (802.1Q 30.2): senders are told when frames wait to be received.
struct ReceivePointConfig {
  uint32_t qeq = 0;  // frames that should wait at most; 0: it is none
  double weight =
      2;  // of the growth of what waits against how much that is; a power of two from 1/1024 to 1024
  uint64_t sample = 150'000;  // bytes that come between two samples when there is no congestion
};

struct CongestionConfig {
  bool tag = false;           // requests and READ responses carry a CN-TAG
  uint8_t priorities = 0xff;  // of the packets that do, a bit for each
  // What says which priority a packet has: the first three bits of its DSCP, or the tag (DeviceConfig::priority).
  bool trust_pcp = false;
  // UDP port of CNMs that come through routers (L3QCN), on which the whole network has to agree. 0: none are taken or sent.
  uint16_t cnm_port = 0;
  // With it those are signed, and ones that are not, or that were heard before, are refused.
  std::optional<std::array<uint8_t, 16>> cnm_key;
  std::chrono::nanoseconds cnm_tolerance{
      5'000'000'000};  // between the clocks of those who have the key, at most 1 h
  // What there is to be added to the device's clock to have the time of day. Without it: as the system says, or nothing when
  // somebody else's runner tells the device the time (Progress::kExternal).
  std::optional<std::chrono::nanoseconds> time_of_day;
  uint32_t cnm_rate =
      10'000;  // CNMs a second that are taken, and as many that are sent; 0, without a key: any number
  // Whether CNMs are believed that give back less of the sampled packet than shows whether it was sent here.
  bool short_samples = false;
  ReceivePointConfig receive_point;

  // Whether CNMs are listened to.
  [[nodiscard]] bool listens() const { return tag || cnm_port != 0; }
};

}  // namespace roci

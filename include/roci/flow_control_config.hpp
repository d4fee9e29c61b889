// Priority-based flow control (PFC, 802.1Q clause 36) of a device's port: it stops when the neighbour says so, and says so
// itself when it does not keep up with what comes in.
#pragma once

#include <chrono>
#include <cstdint>

namespace roci {

struct FlowControlConfig {
  uint8_t priorities = 0;  // that lose nothing, a bit for each; 0: pauses are not listened to
  // What says which priority a queue pair's packets have: the first three bits of its DSCP, or the tag (DeviceConfig::priority).
  bool trust_pcp = false;
  // Of the line, bits a second, by which pauses are measured; 0: as the port says, or else 100 Gb/s.
  uint64_t rate = 0;
  // Against neighbours that pause for ever: after `watchdog_detect` without a break the priority is sent all the same, until
  // no pause has come for `watchdog_restore`. 0: never.
  std::chrono::nanoseconds watchdog_detect{0};
  std::chrono::nanoseconds watchdog_restore{100'000'000};
  // Frames that wait to be received: from `xoff` on the neighbour is told to stop, at `xon` to go on. 0: it is never told.
  uint32_t xoff = 0;
  uint32_t xon = 0;

  [[nodiscard]] bool enabled() const { return priorities != 0; }
};

}  // namespace roci

// Configuration of priority-based flow control (PFC, 802.1Q clause 36) of a device's port. The port obeys PFC frames of
// the neighbor, and sends them when the device does not keep up with reception.
#pragma once

#include <chrono>
#include <cstdint>

namespace roci {

struct FlowControlConfig {
  uint8_t priorities = 0;  // bitmap of lossless priorities; 0: PFC frames are ignored
  // Source of a queue pair's priority: false: first three bits of its DSCP; true: the tag (DeviceConfig::priority).
  bool trust_pcp = false;
  // Line rate in bit/s, for the duration of pauses; 0: as reported by the port, or 100 Gb/s if unknown.
  uint64_t rate = 0;
  // PFC watchdog: a priority that is paused for `watchdog_detect` without interruption is sent in spite of the pause,
  // until no PFC frame has arrived for `watchdog_restore`. A detect time of 0 or below, or the maximum: off.
  std::chrono::nanoseconds watchdog_detect{200'000'000};
  std::chrono::nanoseconds watchdog_restore{100'000'000};
  // Number of frames waiting to be received at which the neighbor is paused (`xoff`) and resumed (`xon`). 0: never.
  uint32_t xoff = 0;
  uint32_t xon = 0;

  [[nodiscard]] bool enabled() const { return priorities != 0; }
};

}  // namespace roci

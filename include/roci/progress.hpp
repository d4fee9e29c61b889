// Who drives a device, and what a thread that drives one does when there is nothing to do.
#pragma once

#include <cstdint>

namespace roci {

// Who calls the device's poll loop.
enum class Progress : uint8_t {
  // Polling a completion queue drives the device; a helper thread takes over when nobody has polled for a while, so
  // that one-sided access to an idle process still works. Quickest on few cores.
  kApplication,
  // A thread of the device's own polls all the time.
  kDedicated,
  // A runner of the caller's polls Device::poller(): virtual time, or many devices on one thread.
  kExternal,
};

// What a polling thread does after a round in which it had no work.
enum class IdlePolicy : uint8_t {
  kSpin,  // polls on: the least latency, a whole core
  kYield,  // polls on, and sleeps briefly while other threads wait for its processor: for more busy threads than cores
  kSleep,  // polls for some rounds, then sleeps an eighth longer each time, never past a known deadline
};

}  // namespace roci

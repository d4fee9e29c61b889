// Progress modes of a device, and idle policies of polling threads.
#pragma once

#include <cstdint>

namespace roci {

// Thread that polls the device.
enum class Progress : uint8_t {
  // The application: polling a completion queue polls the device. If the application has not polled for a while, a
  // helper thread polls, so that one-sided access to an idle process works. Lowest latency on few cores.
  kApplication,
  // Dedicated threads of the device, one per worker, which poll with the idle policy of the device.
  kDedicated,
  // The caller's runner, which polls Device::poller(): virtual time, or several devices on one thread.
  kExternal,
};

// Action of a polling thread after a round without work.
enum class IdlePolicy : uint8_t {
  kSpin,  // Poll again: lowest latency, a whole core.
  // Poll again, with short sleeps while other threads wait for the core: for more busy threads than cores.
  kYield,
  // Poll for some rounds, then sleep; each sleep is an eighth longer and ends at the next known deadline.
  kSleep,
};

}  // namespace roci

// Wait of blocking calls for an event.
#pragma once

#include <chrono>
#include <optional>

#include "base/os/event_descriptor.hpp"
#include "roci/device.hpp"

namespace roci::verbs {

// Polls the device for a short time, then sleeps until `fd` is readable; `blocked` has the threads that wait for it.
// Returns 0 or an errno: EAGAIN at once if the program has set O_NONBLOCK, ETIMEDOUT after `limit`, EINTR after a signal.
// Without `limit`, the wait continues after a signal whose handler was installed with SA_RESTART.
int wait_readable(Device& device, int fd, BlockedThreads& blocked,
                  std::optional<std::chrono::milliseconds> limit = {});

}  // namespace roci::verbs

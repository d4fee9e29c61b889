// Wait of blocking calls for an event.
#pragma once

#include <chrono>
#include <optional>

#include "roci/device.hpp"

namespace roci::verbs {

// Polls the device for a short time, then sleeps until `fd` is readable. Returns 0 or an errno: EAGAIN at once if the
// program has set O_NONBLOCK, EINTR after a signal, ETIMEDOUT after `limit`.
int wait_readable(Device& device, int fd, std::optional<std::chrono::milliseconds> limit = {});

}  // namespace roci::verbs

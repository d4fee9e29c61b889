// How calls that wait for an event do.
#pragma once

#include <chrono>
#include <optional>

#include "roci/device.hpp"

namespace roci::verbs {

// Until `fd` can be read, driving the device for a start. 0 or an errno: EAGAIN at once where the program has set O_NONBLOCK,
// EINTR after a signal, ETIMEDOUT after `limit`.
int wait_readable(Device& device, int fd, std::optional<std::chrono::milliseconds> limit = {});

}  // namespace roci::verbs

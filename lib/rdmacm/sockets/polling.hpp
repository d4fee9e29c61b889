// poll() and select() on rsockets and kernel descriptors.
#pragma once

#include <poll.h>
#include <sys/select.h>

#include <span>

#include "rdmacm/sockets/wait_point.hpp"

namespace roci::rdmacm::sockets {

// Return the number of ready entries; 0 after the timeout; -1 with errno on failure.
int poll_all(std::span<pollfd> entries, Clock::time_point until);
int select_all(int count, fd_set* read, fd_set* write, fd_set* except, Clock::time_point until);

}  // namespace roci::rdmacm::sockets

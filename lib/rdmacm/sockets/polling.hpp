// poll() and select() over sockets of ours and descriptors of the kernel's.
#pragma once

#include <poll.h>
#include <sys/select.h>

#include <span>

#include "rdmacm/sockets/wait_point.hpp"

namespace roci::rdmacm::sockets {

// How many have something; 0 when the time is over; -1 and errno.
int poll_all(std::span<pollfd> entries, Clock::time_point until);
int select_all(int count, fd_set* read, fd_set* write, fd_set* except, Clock::time_point until);

}  // namespace roci::rdmacm::sockets

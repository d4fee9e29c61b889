// Options that streams and datagrams have in common.
#pragma once

#include <sys/socket.h>
#include <sys/time.h>

#include <cstring>
#include <optional>

#include "rdmacm/sockets/stream_link.hpp"
#include "rdmacm/sockets/wait_point.hpp"

namespace roci::rdmacm::sockets {

// Returns null if the value of the program is shorter.
template <class Value>
std::optional<Value> value_of(const void* value, socklen_t length) {
  Value out{};
  if (value == nullptr || length < sizeof out) return std::nullopt;
  std::memcpy(&out, value, sizeof out);
  return out;
}

Clock::duration duration_of(const timeval& time);
timeval timeval_of(Clock::duration duration);
Clock::time_point deadline(Clock::duration timeout);  // 0: none

// SO_SNDBUF, SO_RCVBUF and the sizes of SOL_RDMA. False or null: another option.
bool set_size(Sizes& sizes, int level, int option, int number);
std::optional<int> size_of(const Sizes& sizes, int level, int option);

}  // namespace roci::rdmacm::sockets

// The control channel between the two sides of a test: one JSON object a line, over TCP or, inside one
// process, through memory.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/result.hpp"
#include "base/types.hpp"
#include "roci-perf/parameters.hpp"

namespace roci::perf {

inline constexpr int kExchangeVersion = 1;

// Used by one thread at a time.
class Channel {
 public:
  Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  virtual ~Channel() = default;

  virtual Status send(const Json& message) = 0;
  // The next message when a whole one is there; does not wait. ECONNRESET when the other side has closed.
  virtual Result<std::optional<Json>> poll() = 0;
};

// Two ends inside one process, each for a thread of its own.
std::pair<std::unique_ptr<Channel>, std::unique_ptr<Channel>> make_memory_channel();

// Tries until the server answers or `timeout` has passed: client and server may be started in any order.
Result<std::unique_ptr<Channel>> connect_to(const std::string& host, uint16_t port, Nanos timeout);

class Listener {
 public:
  static Result<Listener> open(const std::string& address, uint16_t port);
  Listener(Listener&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Listener& operator=(Listener&&) = delete;
  ~Listener();
  // A client, or nothing after `timeout`; EINTR when the user interrupted.
  Result<std::unique_ptr<Channel>> accept(Nanos timeout);

 private:
  explicit Listener(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace roci::perf

// The control channel between the two sides of a test: one JSON object per line over TCP, or a queue in memory within
// one process.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/result.hpp"
#include "base/types.hpp"
#include "roci-perf/options/parameters.hpp"

namespace roci::perf {

inline constexpr int kExchangeVersion = 1;

// Bidirectional message channel. Used by one thread at a time.
class Channel {
 public:
  Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  virtual ~Channel() = default;

  virtual Status send(const Json& message) = 0;
  // The next complete message, if there is one; does not block. ECONNRESET after the peer has closed the channel.
  virtual Result<std::optional<Json>> poll() = 0;
};

// The two ends of a channel within one process. Each end is used by one thread.
std::pair<std::unique_ptr<Channel>, std::unique_ptr<Channel>> make_memory_channel();

// Retries until the server accepts or `timeout` has passed: client and server may be started in any order.
Result<std::unique_ptr<Channel>> connect_to(const std::string& host, uint16_t port, Nanos timeout);

class Listener {
 public:
  static Result<Listener> open(const std::string& address, uint16_t port);
  Listener(Listener&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Listener& operator=(Listener&&) = delete;
  ~Listener();
  // Waits for a client. ETIMEDOUT after `timeout`; EINTR after an interrupt.
  Result<std::unique_ptr<Channel>> accept(Nanos timeout);

 private:
  explicit Listener(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace roci::perf

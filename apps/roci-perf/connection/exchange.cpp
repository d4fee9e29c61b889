#include "roci-perf/connection/exchange.hpp"

#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

#include "base/os/interrupt.hpp"

namespace roci::perf {
namespace {

constexpr size_t kMaxLine = size_t{1} << 20;
constexpr int kMaxDepth = 16;  // nested arrays and objects; the protocol uses 4
constexpr Nanos kSendTimeout = 5s;
constexpr Nanos kRetryPause = 50ms;

using Clock = std::chrono::steady_clock;

int milliseconds(Nanos span) {
  return static_cast<int>(std::clamp<int64_t>(span.count() / 1'000'000, 0, 1'000'000'000));
}

Status wait_for(int fd, short events, Nanos timeout) {
  pollfd p{fd, events, 0};
  const int ready = ::poll(&p, 1, milliseconds(timeout));
  if (ready > 0) return {};
  return fail(ready == 0 ? "time-out" : std::strerror(errno), ready == 0 ? ETIMEDOUT : errno);
}

std::string where(const std::string& host, uint16_t port) {
  return (host.find(':') == std::string::npos ? host : "[" + host + "]") + ":" + std::to_string(port);
}

// Discarded if the text is not JSON or is nested deeply: the functions of a JSON value are recursive.
Json parse(std::string_view text) {
  bool is_flat = true;
  const auto check = [&is_flat](int depth, Json::parse_event_t, Json&) {
    is_flat &= depth <= kMaxDepth;
    return is_flat;
  };
  Json message = Json::parse(text, check, false);
  return is_flat ? std::move(message) : Json(Json::value_t::discarded);
}

class TcpChannel final : public Channel {
 public:
  explicit TcpChannel(int fd) : fd_(fd) {
    const int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    // Keepalive detects a peer that has lost power and did not close the connection; otherwise the server would wait
    // forever.
    const int idle = 5, interval = 2, probes = 3;  // s, s, count
    setsockopt(fd_, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd_, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd_, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    setsockopt(fd_, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  }
  ~TcpChannel() override { close(fd_); }

  Status send(const Json& message) override {
    const std::string line = message.dump() + "\n";
    size_t sent = 0;
    while (sent < line.size()) {
      const ssize_t n = ::send(fd_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n > 0) {
        sent += static_cast<size_t>(n);
      } else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        if (auto ready = wait_for(fd_, POLLOUT, kSendTimeout); !ready) {
          return fail("control messages cannot be sent to the peer: " + ready.error().message,
                      ready.error().code);
        }
      } else if (n < 0 && errno != EINTR) {
        return fail("the peer closed the control connection", ECONNRESET);
      }
    }
    return {};
  }

  Result<std::optional<Json>> poll() override {
    for (;;) {
      if (const size_t end = buffer_.find('\n'); end != std::string::npos) {
        Json message = parse(std::string_view{buffer_}.substr(0, end));
        buffer_.erase(0, end + 1);
        if (!message.is_object()) return fail("the peer does not use the protocol of roci-perf", EPROTO);
        return message;
      }
      if (buffer_.size() > kMaxLine) return fail("the peer does not use the protocol of roci-perf", EPROTO);
      char chunk[4096];
      const ssize_t n = recv(fd_, chunk, sizeof chunk, MSG_DONTWAIT);
      if (n > 0) {
        buffer_.append(chunk, static_cast<size_t>(n));
      } else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
        return std::nullopt;
      } else {
        return fail("the peer closed the control connection", ECONNRESET);
      }
    }
  }

 private:
  int fd_;
  std::string buffer_;  // received part of an incomplete line
};

struct MessageQueue {
  std::mutex mutex;
  std::deque<Json> messages;
  std::atomic<bool> filled{false};
  std::atomic<bool> closed{false};  // by the sender
};

class MemoryChannel final : public Channel {
 public:
  MemoryChannel(std::shared_ptr<MessageQueue> in, std::shared_ptr<MessageQueue> out)
      : in_(std::move(in)), out_(std::move(out)) {}
  ~MemoryChannel() override { out_->closed = true; }

  Status send(const Json& message) override {
    if (in_->closed) return fail("the peer has exited", ECONNRESET);
    const std::lock_guard lock(out_->mutex);
    out_->messages.push_back(message);
    out_->filled = true;
    return {};
  }

  Result<std::optional<Json>> poll() override {
    // Read before `filled`: messages sent before the close are still delivered.
    const bool closed = in_->closed;
    if (in_->filled) {
      const std::lock_guard lock(in_->mutex);
      Json message = std::move(in_->messages.front());
      in_->messages.pop_front();
      in_->filled = !in_->messages.empty();
      return message;
    }
    if (closed) return fail("the peer has exited", ECONNRESET);
    return std::nullopt;
  }

 private:
  std::shared_ptr<MessageQueue> in_, out_;
};

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Result<Addresses> look_up(const std::string& host, uint16_t port, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (error != 0) return fail("HOST \"" + host + "\" cannot be resolved: " + gai_strerror(error), ENOENT);
  return Addresses{list};
}

// One connection attempt. Returns the descriptor, or the error with its errno.
Result<int> try_connect(const addrinfo& address, Nanos timeout) {
  const int fd =
      socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, address.ai_protocol);
  if (fd < 0) return fail(std::strerror(errno), errno);
  int error = connect(fd, address.ai_addr, address.ai_addrlen) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    if (auto ready = wait_for(fd, POLLOUT, timeout); !ready) {
      error = ready.error().code;
    } else {
      socklen_t length = sizeof error;
      getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
    }
  }
  if (error == 0) return fd;
  close(fd);
  return fail(std::strerror(error), error);
}

}  // namespace

std::pair<std::unique_ptr<Channel>, std::unique_ptr<Channel>> make_memory_channel() {
  auto there = std::make_shared<MessageQueue>(), back = std::make_shared<MessageQueue>();
  return {std::make_unique<MemoryChannel>(back, there), std::make_unique<MemoryChannel>(there, back)};
}

Result<std::unique_ptr<Channel>> connect_to(const std::string& host, uint16_t port, Nanos timeout) {
  auto addresses = look_up(host, port, 0);
  if (!addresses) return fail(addresses.error());
  const auto deadline = Clock::now() + timeout;
  std::string why;
  for (;;) {
    for (const addrinfo* a = addresses->get(); a != nullptr; a = a->ai_next) {
      const Nanos left = std::max<Nanos>(deadline - Clock::now(), 1ms);
      auto fd = try_connect(*a, left);
      if (fd) return std::make_unique<TcpChannel>(*fd);
      why = fd.error().message;
    }
    if (interrupted()) return fail("interrupted", EINTR);
    if (Clock::now() + kRetryPause >= deadline) break;
    std::this_thread::sleep_for(kRetryPause);
  }
  char waited[32];
  std::snprintf(waited, sizeof waited, "%g", static_cast<double>(timeout.count()) * 1e-9);
  return fail(
      "HOST " + where(host, port) + " does not answer within " + waited + " s (" + why +
          "); check that a roci-perf server is running there and listens (--bind) on a reachable address",
      ETIMEDOUT);
}

Result<Listener> Listener::open(const std::string& address, uint16_t port) {
  auto list = look_up(address, port, AI_PASSIVE | AI_NUMERICHOST);
  if (!list) return fail(list.error());
  const addrinfo& a = **list;
  const int fd = socket(a.ai_family, a.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a.ai_protocol);
  const int on = 1;
  if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (fd < 0 || ::bind(fd, a.ai_addr, a.ai_addrlen) != 0 || listen(fd, 1) != 0) {
    const int error = errno;
    if (fd >= 0) close(fd);
    return fail("the server cannot listen on " + where(address, port) + ": " + std::strerror(error) +
                    (error == EADDRINUSE ? "; use another --port" : ""),
                error);
  }
  return Listener{fd};
}

Listener::~Listener() {
  if (fd_ >= 0) close(fd_);
}

Result<std::unique_ptr<Channel>> Listener::accept(Nanos timeout) {
  const auto start = Clock::now();
  while (timeout == kNever || Clock::now() - start < timeout) {
    if (interrupted()) return fail("interrupted", EINTR);
    const Nanos left =
        timeout == kNever ? Nanos{100ms} : std::min<Nanos>(100ms, timeout - (Clock::now() - start));
    if (auto ready = wait_for(fd_, POLLIN, left); !ready) continue;
    const int fd = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) return std::make_unique<TcpChannel>(fd);
  }
  return fail("no client connected within --host-timeout", ETIMEDOUT);
}

}  // namespace roci::perf

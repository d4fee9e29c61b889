// Interface of rsockets for the C API. Calls return -1 with errno on failure.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "rdmacm/sockets/wait_point.hpp"

namespace roci::rdmacm::sockets {

using Lock = std::unique_lock<std::mutex>;

class Socket {
 public:
  explicit Socket(int domain);
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  virtual ~Socket();

  [[nodiscard]] int fd() const { return wait_point_.fd(); }
  // True in a child process after fork(). The device and its locks belong to the parent: only fd() may be used.
  [[nodiscard]] bool is_of_parent() const;

  virtual int bind(const sockaddr& address, socklen_t length) = 0;
  virtual int connect(const sockaddr& address, socklen_t length) = 0;
  virtual ssize_t send(std::span<const iovec> from, int flags, const sockaddr* to, socklen_t length) = 0;
  virtual ssize_t receive(std::span<const iovec> to, int flags, sockaddr* from, socklen_t* length) = 0;
  virtual int shutdown(int how) = 0;
  virtual int close() = 0;
  virtual int name(bool of_peer, sockaddr* address, socklen_t* length) = 0;
  virtual int set_option(int level, int option, const void* value, socklen_t length) = 0;
  virtual int get_option(int level, int option, void* value, socklen_t* length) = 0;
  // EOPNOTSUPP for datagrams.
  virtual int listen(int backlog);
  // Starts a thread that answers the requests of a listener between calls for it.
  virtual void answer_in_background() {}
  virtual std::shared_ptr<Socket> accept();  // null with errno on failure
  virtual off_t map(void* memory, size_t length, int protection, off_t offset);
  virtual int unmap(void* memory, size_t length);
  virtual ssize_t write_mapped(const void* from, size_t length, off_t offset, int flags);

  // Returns the ready events among `events`, and POLLERR and POLLHUP.
  short poll_events(short events);
  // Prepares for a sleep on fd(). Empty if one of the events is ready; otherwise the caller may sleep, and calls
  // after_sleep() afterwards.
  [[nodiscard]] std::optional<WaitPoint::Ticket> before_sleep(short events);
  void after_sleep(WaitPoint::Ticket ticket);
  // Time at which a sleeping thread must call poll_events() even without events.
  Clock::time_point next_poll();

  [[nodiscard]] int status_flags() const { return O_RDWR | (non_blocking_ ? O_NONBLOCK : 0); }
  void set_status_flags(int flags) { non_blocking_ = (flags & O_NONBLOCK) != 0; }

 protected:
  [[nodiscard]] bool waits(int flags) const { return !non_blocking_ && (flags & MSG_DONTWAIT) == 0; }

  // Waits for ready(). Returns 0, or -1 with errno: EAGAIN if it may not sleep or after the timeout. Also returns 0 if
  // another thread closes the socket.
  int wait(Lock& lock, bool may_sleep, Clock::time_point until, const std::function<bool()>& ready);

  // Returns false with errno on failure.
  bool open_channel();
  // Returns true if there were any.
  bool take_connection_events();
  // Returns true if the event was the last one of its identifier, which is then destroyed.
  virtual bool on_connection_event(const rdma_cm_event& event) = 0;

  // With the lock held: processes completions and events of the connection manager.
  virtual void progress() = 0;
  // As progress(), and requests an event that wakes sleeping threads.
  virtual void arm() = 0;
  // Consumes the events that wake sleeping threads. Returns true if there were any.
  virtual bool take_events() = 0;
  [[nodiscard]] virtual short state() const = 0;  // for poll()
  [[nodiscard]] virtual Clock::time_point wake_time() const = 0;

  const int domain_;
  const unsigned forks_;  // number of forks before the socket was created
  std::mutex mutex_;      // protects all members that are not atomic
  bool closed_ = false;
  WaitPoint wait_point_;
  rdma_event_channel* channel_ = nullptr;
  std::atomic<bool> non_blocking_ = false;
};

// A position in the memory that a program specifies as an iovec array.
class Cursor {
 public:
  explicit Cursor(std::span<const iovec> pieces) : pieces_(pieces) {}

  void copy_out(std::span<uint8_t> to) {
    each(to.size(), [&](uint8_t* at, size_t done, size_t some) { std::copy_n(at, some, to.data() + done); });
  }
  void copy_in(std::span<const uint8_t> from) {
    each(from.size(),
         [&](uint8_t* at, size_t done, size_t some) { std::copy_n(from.data() + done, some, at); });
  }

 private:
  template <class Copy>
  void each(size_t bytes, Copy copy) {
    size_t done = 0;
    while (done < bytes) {
      const iovec& piece = pieces_.front();
      const size_t some = std::min(bytes - done, piece.iov_len - offset_);
      copy(static_cast<uint8_t*>(piece.iov_base) + offset_, done, some);
      done += some;
      offset_ += some;
      if (offset_ < piece.iov_len) continue;
      offset_ = 0;
      pieces_ = pieces_.subspan(1);
    }
  }

  std::span<const iovec> pieces_;
  size_t offset_ = 0;
};

size_t bytes_in(std::span<const iovec> pieces);
// Returns an address as getsockname() does: truncated, with the complete length.
void give_address(const sockaddr& from, sockaddr* to, socklen_t* length);
// Returns a value as getsockopt() does.
int give_value(const void* from, size_t bytes, void* to, socklen_t* length);
// Length of an address that a program specifies; 0: invalid.
socklen_t address_length(const sockaddr& address, socklen_t given);

// Return null with errno on failure.
std::shared_ptr<Socket> make_stream(int domain);
std::shared_ptr<Socket> make_datagrams(int domain);

// Returns the socket with this number, or null with errno EBADF.
std::shared_ptr<Socket> find(int number);
bool is_socket(int number);
int add(std::shared_ptr<Socket> socket);
// rclose(). In a child process, only releases the number of a socket of the parent.
int close_socket(int number);

}  // namespace roci::rdmacm::sockets

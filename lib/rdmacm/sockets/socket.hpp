// What programs have of a socket over RDMA: the calls of sockets, which return -1 and say why in errno.
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
#include <span>

#include "rdmacm/sockets/wait_point.hpp"

namespace roci::rdmacm::sockets {

using Lock = std::unique_lock<std::mutex>;

class Socket {
 public:
  explicit Socket(int domain) : domain_(domain) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  virtual ~Socket();

  [[nodiscard]] int fd() const { return wait_point_.fd(); }

  virtual int bind(const sockaddr& address, socklen_t length) = 0;
  virtual int connect(const sockaddr& address, socklen_t length) = 0;
  virtual ssize_t send(std::span<const iovec> from, int flags, const sockaddr* to, socklen_t length) = 0;
  virtual ssize_t receive(std::span<const iovec> to, int flags, sockaddr* from, socklen_t* length) = 0;
  virtual int shutdown(int how) = 0;
  virtual int close() = 0;
  virtual int name(bool of_peer, sockaddr* address, socklen_t* length) = 0;
  virtual int set_option(int level, int option, const void* value, socklen_t length) = 0;
  virtual int get_option(int level, int option, void* value, socklen_t* length) = 0;
  // EOPNOTSUPP of all but streams.
  virtual int listen(int backlog);
  virtual std::shared_ptr<Socket> accept();  // null, and errno
  virtual off_t map(void* memory, size_t length, int protection, off_t offset);
  virtual int unmap(void* memory, size_t length);
  virtual ssize_t write_mapped(const void* from, size_t length, off_t offset, int flags);

  // What of `events` is so, and what poll() tells unasked.
  short look(short events);
  // The same before somebody sleeps on fd(), who may do so only if it is nothing, and calls after_sleep() then.
  short before_sleep(short events);
  void after_sleep();
  // When somebody has to look even if nothing comes.
  Clock::time_point next_look();

  [[nodiscard]] int status_flags() const { return O_RDWR | (non_blocking_ ? O_NONBLOCK : 0); }
  void set_status_flags(int flags) { non_blocking_ = (flags & O_NONBLOCK) != 0; }

 protected:
  [[nodiscard]] bool waits(int flags) const { return !non_blocking_ && (flags & MSG_DONTWAIT) == 0; }

  // 0, or -1 and errno: EAGAIN when it may not sleep or the time is over. Also 0 when another thread closes the socket.
  int wait(Lock& lock, bool may_sleep, Clock::time_point until, const std::function<bool()>& ready);

  // False, and errno.
  bool open_channel();
  // Whether there were any.
  bool take_connection_events();
  // Whether the event was the last one of its identifier, which goes then.
  virtual bool on_connection_event(const rdma_cm_event& event) = 0;

  // With the lock. Takes what has come, of completions and of the connection manager, and does what follows.
  virtual void progress() = 0;
  // The same, and whatever comes next wakes who sleeps.
  virtual void arm() = 0;
  // What woke them. Whether there was any.
  virtual bool take_events() = 0;
  [[nodiscard]] virtual short state() const = 0;  // for poll()
  [[nodiscard]] virtual Clock::time_point look_at() const = 0;

  const int domain_;
  std::mutex mutex_;  // for all that is not atomic
  bool closed_ = false;
  WaitPoint wait_point_;
  rdma_event_channel* channel_ = nullptr;
  std::atomic<bool> non_blocking_ = false;
};

// A place in the memory that a program names as a list of pieces.
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
// As getsockname() and its kin give addresses back: cut, with the whole length.
void give_address(const sockaddr& from, sockaddr* to, socklen_t* length);
// As getsockopt() gives values back.
int give_value(const void* from, size_t bytes, void* to, socklen_t* length);
// Of an address that a program names; 0: it cannot be one.
socklen_t address_length(const sockaddr& address, socklen_t given);

// Streams and datagrams. Null, and errno.
std::shared_ptr<Socket> make_stream(int domain);
std::shared_ptr<Socket> make_datagrams(int domain);

// Which socket has a number; null and EBADF when none has.
std::shared_ptr<Socket> find(int number);
bool is_socket(int number);
int add(std::shared_ptr<Socket> socket);
// Whose number nobody has any more.
std::shared_ptr<Socket> take(int number);

}  // namespace roci::rdmacm::sockets

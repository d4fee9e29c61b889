#include "rdmacm/sockets/socket.hpp"

#include <netinet/in.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <shared_mutex>
#include <vector>

#include "rdmacm/id.hpp"

namespace roci::rdmacm::sockets {
namespace {

struct Table {
  std::shared_mutex mutex;
  std::vector<std::shared_ptr<Socket>> by_number;
};
// Number of times that this process and its ancestors were forked since the first socket.
std::atomic<unsigned> forks{0};

Table& table();
void before_fork() { table().mutex.lock(); }
void in_parent() { table().mutex.unlock(); }
void in_child() {
  forks.fetch_add(1, std::memory_order_relaxed);
  new (&table().mutex)
      std::shared_mutex;  // only the thread that locked it may unlock it; this is another one
}

Table& table() {
  static auto* const kTable = [] {
    pthread_atfork(before_fork, in_parent, in_child);  // the table is consistent in the child
    return new Table;  // never destroyed, since programs use sockets during exit
  }();
  return *kTable;
}

// Returns true if rdma_get_cm_event() has an event, without a system call.
bool has_events(rdma_event_channel& channel) {
  Channel& own = Channel::of(&channel);
  const std::scoped_lock guard(own.mutex);
  return !own.events.empty();
}

// Time of busy polling before sleep. A fast response arrives sooner than a thread can be woken.
constexpr std::chrono::microseconds kBusy{20};

}  // namespace

Socket::Socket(int domain) : domain_(domain), forks_(forks.load(std::memory_order_relaxed)) {}

bool Socket::is_of_parent() const { return forks_ != forks.load(std::memory_order_relaxed); }

Socket::~Socket() {
  if (channel_ != nullptr) rdma_destroy_event_channel(channel_);
}

int Socket::listen(int) { return failed(EOPNOTSUPP); }

std::shared_ptr<Socket> Socket::accept() {
  errno = EOPNOTSUPP;
  return nullptr;
}

off_t Socket::map(void*, size_t, int, off_t) { return failed(EOPNOTSUPP); }
int Socket::unmap(void*, size_t) { return failed(EOPNOTSUPP); }
ssize_t Socket::write_mapped(const void*, size_t, off_t, int) { return failed(EOPNOTSUPP); }

bool Socket::open_channel() {
  if (fd() < 0) return false;
  channel_ = rdma_create_event_channel();
  return channel_ != nullptr && fcntl(channel_->fd, F_SETFL, O_NONBLOCK) == 0 &&
         wait_point_.watch(channel_->fd);
}

bool Socket::take_connection_events() {
  bool any = false;
  rdma_cm_event* event = nullptr;
  while (has_events(*channel_) && rdma_get_cm_event(channel_, &event) == 0) {
    rdma_cm_id* const id = event->id;
    const bool last = on_connection_event(*event);
    rdma_ack_cm_event(event);
    if (last) rdma_destroy_id(id);
    any = true;
  }
  return any;
}

int Socket::wait(Lock& lock, bool may_sleep, Clock::time_point until, const std::function<bool()>& ready) {
  auto busy_until = Clock::time_point::max();
  for (;;) {
    progress();
    if (ready() || closed_) return 0;
    const auto time = Clock::now();
    if (!may_sleep || time >= until) return failed(EAGAIN);
    if (busy_until == Clock::time_point::max()) busy_until = time + kBusy;
    if (time < busy_until) {
      lock.unlock();
      lock.lock();
      continue;
    }
    arm();
    if (ready() || closed_) return 0;
    const auto wake = std::min(until, wake_time());
    const WaitPoint::Ticket ticket = wait_point_.enter();
    lock.unlock();
    const int status = sleep_on(fd(), wake);
    const int code = errno;
    lock.lock();
    wait_point_.leave(ticket, take_events());
    if (status < 0) return failed(code);
  }
}

short Socket::poll_events(short events) {
  const Lock guard(mutex_);
  progress();
  return static_cast<short>(state() & (events | POLLERR | POLLHUP));
}

std::optional<WaitPoint::Ticket> Socket::before_sleep(short events) {
  const Lock guard(mutex_);
  arm();
  if ((state() & (events | POLLERR | POLLHUP)) != 0) return std::nullopt;
  return wait_point_.enter();
}

void Socket::after_sleep(WaitPoint::Ticket ticket) {
  const Lock guard(mutex_);
  wait_point_.leave(ticket, take_events());
}

Clock::time_point Socket::next_poll() {
  const Lock guard(mutex_);
  return wake_time();
}

size_t bytes_in(std::span<const iovec> pieces) {
  return std::accumulate(pieces.begin(), pieces.end(), size_t{0},
                         [](size_t sum, const iovec& piece) { return sum + piece.iov_len; });
}

void give_address(const sockaddr& from, sockaddr* to, socklen_t* length) {
  const socklen_t whole = from.sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  if (to != nullptr) std::memcpy(to, &from, std::min(*length, whole));
  *length = whole;
}

int give_value(const void* from, size_t bytes, void* to, socklen_t* length) {
  *length = static_cast<socklen_t>(std::min<size_t>(*length, bytes));
  std::memcpy(to, from, *length);
  return 0;
}

socklen_t address_length(const sockaddr& address, socklen_t given) {
  const socklen_t whole = address.sa_family == AF_INET    ? sizeof(sockaddr_in)
                          : address.sa_family == AF_INET6 ? sizeof(sockaddr_in6)
                                                          : 0;
  return given >= whole ? whole : 0;
}

std::shared_ptr<Socket> find(int number) {
  Table& all = table();
  const std::shared_lock guard(all.mutex);
  if (number >= 0 && static_cast<size_t>(number) < all.by_number.size()) {
    const auto& found = all.by_number[static_cast<size_t>(number)];
    if (found != nullptr && found->is_of_parent()) {
      errno = EIO;
      return nullptr;
    }
    if (found != nullptr) return found;
  }
  errno = EBADF;
  return nullptr;
}

bool is_socket(int number) {
  Table& all = table();
  const std::shared_lock guard(all.mutex);
  return number >= 0 && static_cast<size_t>(number) < all.by_number.size() &&
         all.by_number[static_cast<size_t>(number)] != nullptr;
}

int add(std::shared_ptr<Socket> socket) {
  const int number = socket->fd();
  Table& all = table();
  const std::scoped_lock guard(all.mutex);
  if (all.by_number.size() <= static_cast<size_t>(number))
    all.by_number.resize(static_cast<size_t>(number) + 1);
  all.by_number[static_cast<size_t>(number)] = std::move(socket);
  return number;
}

int close_socket(int number) {
  Table& all = table();
  std::shared_ptr<Socket> found;
  {
    const std::scoped_lock guard(all.mutex);
    if (number >= 0 && static_cast<size_t>(number) < all.by_number.size())
      found = std::move(all.by_number[static_cast<size_t>(number)]);
  }
  if (found == nullptr) return failed(EBADF);
  if (!found->is_of_parent()) return found->close();
  new std::shared_ptr<Socket>(
      std::move(found));  // never destroyed: its locks may be held by threads of the parent
  return ::close(number);
}

}  // namespace roci::rdmacm::sockets

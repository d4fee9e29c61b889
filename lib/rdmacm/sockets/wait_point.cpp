#include "rdmacm/sockets/wait_point.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace roci::rdmacm::sockets {

WaitPoint::WaitPoint()
    : set_(epoll_create1(EPOLL_CLOEXEC)), event_fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (set_ >= 0 && event_fd_ >= 0 && watch(event_fd_)) return;
  if (set_ >= 0) ::close(set_);
  set_ = -1;
}

WaitPoint::~WaitPoint() {
  if (event_fd_ >= 0) ::close(event_fd_);
  if (set_ >= 0) ::close(set_);
}

bool WaitPoint::watch(int fd) const {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  return epoll_ctl(set_, EPOLL_CTL_ADD, fd, &event) == 0;
}

void WaitPoint::renumber() {
  const int fresh = fcntl(set_, F_DUPFD_CLOEXEC, 0);
  if (fresh < 0) return;
  ::close(set_);
  set_ = fresh;
}

void WaitPoint::leave(Ticket ticket, bool took_events) {
  --sleepers_;
  if (ticket != rings_) --waking_;
  if (took_events) ring();
  if (rung_ && waking_ == 0 && !ready_) drain();
}

void WaitPoint::ring() {
  if (sleepers_ > 0) write_event();
}

void WaitPoint::set_ready(bool ready) {
  if (ready == ready_) return;
  ready_ = ready;
  if (ready) {
    write_event();
  } else if (rung_ && waking_ == 0) {
    drain();
  }
}

void WaitPoint::write_event() {
  ++rings_;
  waking_ = sleepers_;
  const uint64_t one = 1;
  rung_ = write(event_fd_, &one, sizeof one) == sizeof one || rung_;
}

void WaitPoint::drain() {
  uint64_t count = 0;
  rung_ = read(event_fd_, &count, sizeof count) < 0;
}

int sleep_on(int fd, Clock::time_point until) {
  pollfd entry{fd, POLLIN, 0};
  return ::poll(&entry, 1, milliseconds_until(until));
}

int milliseconds_until(Clock::time_point until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, 60'000));
}

}  // namespace roci::rdmacm::sockets

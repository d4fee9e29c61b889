// Where threads sleep until a socket has something to look at: one descriptor for its completions and for the events of its
// connection. Any number of threads may sleep there, in calls that wait and in rpoll(): who takes an event wakes the others, since
// it may have been what they wait for.
#pragma once

#include <chrono>

namespace roci::rdmacm::sockets {

using Clock = std::chrono::steady_clock;

class WaitPoint {
 public:
  WaitPoint();
  ~WaitPoint();
  WaitPoint(const WaitPoint&) = delete;
  WaitPoint& operator=(const WaitPoint&) = delete;

  // Readable when there is something to look at; the number that programs have for the socket. Below 0: none, and errno.
  [[nodiscard]] int fd() const { return set_; }
  bool watch(int fd) const;

  // With the socket's lock: before it is let go for sleeping, and when it is taken again.
  void enter() { ++sleepers_; }
  void leave(bool took_events);
  // Everybody shall look again.
  void ring();

 private:
  int set_ = -1;
  int bell_ = -1;
  unsigned sleepers_ = 0;
  bool rung_ = false;
};

// Sleeps until one of the descriptors is ready or the time has come. -1 and errno: a signal.
int sleep_on(int fd, Clock::time_point until);
// As poll() wants it: rounded up, at most a minute.
int milliseconds_until(Clock::time_point until);

}  // namespace roci::rdmacm::sockets

// Wake-up of threads that wait for a socket: one descriptor for its completions and connection events. Any number of
// threads may sleep on it, in blocking calls and in rpoll(). A thread that consumes an event wakes the others, since
// the event may concern them. The descriptor then stays readable until each thread that slept at that time has left. If
// it became unreadable earlier, a woken thread that has not run yet would continue to sleep. If it stayed readable longer,
// threads that wait for another event would poll without sleep.
#pragma once

#include <chrono>
#include <cstdint>

namespace roci::rdmacm::sockets {

using Clock = std::chrono::steady_clock;

class WaitPoint {
 public:
  WaitPoint();
  ~WaitPoint();
  WaitPoint(const WaitPoint&) = delete;
  WaitPoint& operator=(const WaitPoint&) = delete;

  // Readable if events are pending; also the number of the socket for programs. Negative with errno on failure.
  [[nodiscard]] int fd() const { return set_; }
  bool watch(int fd) const;
  // Replaces the descriptor by a new one with the lowest free number. Only before the program knows the number.
  void renumber();

  // With the socket's lock held: before it is released for sleeping, and after it is locked again, with the result of
  // enter().
  using Ticket = uint64_t;
  [[nodiscard]] Ticket enter() {
    ++sleepers_;
    return rings_;
  }
  void leave(Ticket ticket, bool took_events);
  // Wakes all sleeping threads. With the socket's lock held.
  void ring();
  // While set, fd() is readable also without events, and no thread sleeps. With the socket's lock held.
  void set_ready(bool ready);

 private:
  void write_event();
  void drain();

  int set_ = -1;
  int event_fd_ = -1;
  unsigned sleepers_ = 0;
  unsigned waking_ = 0;  // of them, those that slept at the last ring
  uint64_t rings_ = 0;
  bool rung_ = false, ready_ = false;
};

// Sleeps until the descriptor is readable or the time is reached. Returns -1 with errno after a signal.
int sleep_on(int fd, Clock::time_point until);
// Timeout for poll(): rounded up, at most a minute.
int milliseconds_until(Clock::time_point until);

}  // namespace roci::rdmacm::sockets

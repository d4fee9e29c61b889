#include "base/os/event_descriptor.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace roci {

void add_to_eventfd(int fd) {
  const uint64_t one = 1;
  syscall(SYS_write, fd, &one, sizeof one);
}

void read_eventfd(int fd) {
  uint64_t value = 0;
  syscall(SYS_read, fd, &value, sizeof value);
}

BlockedThreads::BlockedThreads() { sem_init(&wakes_, 0, 0); }
BlockedThreads::~BlockedThreads() { sem_destroy(&wakes_); }

// With as many wakes pending as there are threads, each of them checks for events again.
void BlockedThreads::wake_one_of(int threads) {
  int pending = 0;
  sem_getvalue(&wakes_, &pending);
  if (pending < threads) sem_post(&wakes_);
}

}  // namespace roci

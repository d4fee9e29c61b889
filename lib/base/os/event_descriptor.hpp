// Event file descriptors (eventfd) of the verbs calls, and threads that block until an event is available.
#pragma once

#include <semaphore.h>

#include <atomic>
#include <cerrno>

namespace roci {

// Adds 1 to the counter of an eventfd, or reads it. Unlike write(2) and read(2) they are no cancellation points,
// because their callers hold locks and change other state together with the counter. Errors are ignored.
void add_to_eventfd(int fd);
void read_eventfd(int fd);

// Threads that block until an event is available. poll(2) ends after each signal. wait() ends only after a signal whose
// handler was installed without SA_RESTART, as read(2) of the kernel's event descriptors.
class BlockedThreads {
 public:
  BlockedThreads();
  ~BlockedThreads();
  BlockedThreads(const BlockedThreads&) = delete;
  BlockedThreads& operator=(const BlockedThreads&) = delete;

  // To be called after each event has become available. Wakes one thread.
  void wake() {
    // Orders the event before the loads. Pairs with the fences of wait(), which order its changes of both counts before
    // the check for events.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (const int threads = threads_.load(std::memory_order_relaxed); threads > 0) [[unlikely]]
      wake_one_of(threads);
  }

  // Blocks until an event may be available. The caller then checks, and calls again if there is none. Returns 0 or
  // EINTR. A cancellation point.
  template <class IsAvailable>
  int wait(IsAvailable&& is_available) {
    const Registration registration(threads_);
    if (is_available()) return 0;
    const int code = sem_wait(&wakes_) == 0 ? 0 : errno;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return code;
  }

 private:
  struct Registration {
    explicit Registration(std::atomic<int>& of) : threads(of) {
      threads.fetch_add(1, std::memory_order_relaxed);
      // Pairs with the fence of wake(). The check for events may be a system call with a plain load, which an atomic
      // operation does not order on arm64 without LSE.
      std::atomic_thread_fence(std::memory_order_seq_cst);
    }
    ~Registration() { threads.fetch_sub(1, std::memory_order_relaxed); }  // also when the thread is canceled
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;
    std::atomic<int>& threads;
  };

  void wake_one_of(int threads);

  std::atomic<int> threads_{0};
  sem_t wakes_;
};

}  // namespace roci

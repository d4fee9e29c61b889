#include "base/os/interrupt.hpp"

#include <csignal>

#include <atomic>

namespace roci {
namespace {

std::atomic<bool> flag{false};  // global, as a signal handler has no other access to it
static_assert(std::atomic<bool>::is_always_lock_free);

void raise_flag(int) { flag.store(true, std::memory_order_relaxed); }

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = raise_flag;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() { return flag.load(std::memory_order_relaxed); }

}  // namespace roci

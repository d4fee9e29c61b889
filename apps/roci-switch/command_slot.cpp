#include "roci-switch/command_slot.hpp"

#include <thread>

namespace roci {

bool CommandSlot::post(Command& command) {
  Command* none = nullptr;
  return posted_.compare_exchange_strong(none, &command, std::memory_order_release,
                                         std::memory_order_relaxed);
}

bool CommandSlot::withdraw(Command& command) {
  Command* mine = &command;
  return posted_.compare_exchange_strong(mine, nullptr, std::memory_order_relaxed);
}

bool CommandSlot::deliver(Command::Step step, Nanos timeout) {
  constexpr Nanos kNap = 100us;
  const std::lock_guard lock(senders_);
  Command command{std::move(step)};
  if (!post(command)) return false;
  if (wakeup_ != nullptr) wakeup_->wake(Waiter::kApplication);
  for (Nanos waited{0}; !command.done(); waited += kNap) {
    if (waited >= timeout && withdraw(command)) return false;
    std::this_thread::sleep_for(kNap);
  }
  return true;
}

bool CommandSlot::poll(Nanos /*now*/) {
  if (open_ == nullptr) {
    if (posted_.load(std::memory_order_relaxed) == nullptr) return false;
    // The thread that resets the pointer owns the command.
    open_ = posted_.exchange(nullptr, std::memory_order_acquire);
    if (open_ == nullptr) return false;
  }
  if (open_->step_()) return true;
  Command* const finished = open_;
  open_ = nullptr;
  finished->done_.store(true, std::memory_order_release);  // the poster may destroy it from here on
  return true;
}

Nanos CommandSlot::next_deadline() const {
  return open_ != nullptr || posted_.load(std::memory_order_relaxed) != nullptr ? Nanos{0} : kNever;
}

}  // namespace roci

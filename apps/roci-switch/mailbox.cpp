#include "roci-switch/mailbox.hpp"

#include <thread>

namespace roci {

bool Mailbox::post(Letter& letter) {
  Letter* none = nullptr;
  return posted_.compare_exchange_strong(none, &letter, std::memory_order_release, std::memory_order_relaxed);
}

bool Mailbox::withdraw(Letter& letter) {
  Letter* mine = &letter;
  return posted_.compare_exchange_strong(mine, nullptr, std::memory_order_relaxed);
}

bool Mailbox::deliver(Letter::Step step, Nanos patience) {
  constexpr Nanos kNap = 100us;
  const std::lock_guard lock(senders_);
  Letter letter{std::move(step)};
  if (!post(letter)) return false;
  if (wakeup_ != nullptr) wakeup_->wake(Waiter::kApplication);
  for (Nanos waited{0}; !letter.done(); waited += kNap) {
    if (waited >= patience && withdraw(letter)) return false;
    std::this_thread::sleep_for(kNap);
  }
  return true;
}

bool Mailbox::poll(Nanos /*now*/) {
  if (open_ == nullptr) {
    if (posted_.load(std::memory_order_relaxed) == nullptr) return false;
    // The thread that resets the pointer owns the letter.
    open_ = posted_.exchange(nullptr, std::memory_order_acquire);
    if (open_ == nullptr) return false;
  }
  if (open_->step_()) return true;
  Letter* const finished = open_;
  open_ = nullptr;
  finished->done_.store(true, std::memory_order_release);  // the poster may destroy it from here on
  return true;
}

Nanos Mailbox::next_deadline() const {
  return open_ != nullptr || posted_.load(std::memory_order_relaxed) != nullptr ? Nanos{0} : kNever;
}

}  // namespace roci

// Command queue from non-polling threads to a polling thread, for changes of objects that the polling thread owns. The
// polling thread executes one step of a command per round. Without a command the cost is one relaxed load per round.
//
//   waiting -- taken by the polling thread --> in progress, one step per round --> done
//      `-- withdrawn by the poster before it is taken
#pragma once

#include <atomic>
#include <functional>
#include <mutex>

#include "base/poller.hpp"
#include "port/wakeup.hpp"

namespace roci {

// A change, in steps short enough that the polling thread can execute one per round without losing frames.
class Letter {
 public:
  // Called once per round. Returns whether there are further steps.
  using Step = std::function<bool()>;
  explicit Letter(Step step) : step_(std::move(step)) {}

  [[nodiscard]] bool done() const { return done_.load(std::memory_order_acquire); }

 private:
  friend class Mailbox;
  Step step_;
  std::atomic<bool> done_{false};
};

// Queue of one letter. Polled by the thread that owns the objects which letters change; any other threads post.
class Mailbox final : public Poller {
 public:
  // `wakeup`: of the polling thread; null if that thread does not sleep for long.
  explicit Mailbox(PortWakeup* wakeup = nullptr) : wakeup_(wakeup) {}

  // Posts a letter. It must exist until it is done or withdrawn. False if another letter is posted.
  bool post(Letter& letter);
  // Withdraws a posted letter. False if the polling thread has taken it: it will then be done.
  bool withdraw(Letter& letter);

  // Posts a change and waits until it is done; callers are serialized. False if the polling thread does not take the
  // letter within `patience`; then nothing was changed.
  bool deliver(Letter::Step step, Nanos patience);

  bool poll(Nanos now) override;
  [[nodiscard]] Nanos next_deadline() const override;
  [[nodiscard]] std::string_view name() const override { return "mailbox"; }

 private:
  PortWakeup* const wakeup_;
  std::mutex senders_;
  std::atomic<Letter*> posted_{nullptr};
  Letter* open_ = nullptr;  // owned by the polling thread
};

}  // namespace roci

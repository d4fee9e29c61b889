// How a thread that does not poll changes what one that does owns: it posts a letter, and the polling thread does what is
// in it between two rounds. While there is none it costs the polling thread one relaxed load a round.
//
//   waiting -- taken by the polling thread --> at work, a step a round --> done
//      `-- withdrawn by who sent it, when nobody takes it
#pragma once

#include <atomic>
#include <functional>
#include <mutex>

#include "base/poller.hpp"
#include "port/wakeup.hpp"

namespace roci {

// A change in steps short enough that the polling thread may do one and miss nothing.
class Letter {
 public:
  // Called once a round; returns whether there is more to do.
  using Step = std::function<bool()>;
  explicit Letter(Step step) : step_(std::move(step)) {}

  [[nodiscard]] bool done() const { return done_.load(std::memory_order_acquire); }

 private:
  friend class Mailbox;
  Step step_;
  std::atomic<bool> done_{false};
};

// Polled by the thread that owns what letters change; any other threads post.
class Mailbox final : public Poller {
 public:
  // `wakeup`: of the polling thread; null when that thread never sleeps for long.
  explicit Mailbox(PortWakeup* wakeup = nullptr) : wakeup_(wakeup) {}

  // Hands the letter over, which lives until it is done or withdrawn. False when there is one already.
  bool post(Letter& letter);
  // Takes back a letter that nobody has taken. False when the polling thread has it: then it will be done.
  bool withdraw(Letter& letter);

  // Posts a change and waits until it is done, in line behind others who do the same. False when the polling thread does
  // not take it for so long, and then nothing was changed.
  bool deliver(Letter::Step step, Nanos patience);

  bool poll(Nanos now) override;
  [[nodiscard]] Nanos next_deadline() const override;
  [[nodiscard]] std::string_view name() const override { return "mailbox"; }

 private:
  PortWakeup* const wakeup_;
  std::mutex senders_;
  std::atomic<Letter*> posted_{nullptr};
  Letter* open_ = nullptr;  // the polling thread's
};

}  // namespace roci

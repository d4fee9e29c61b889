// Command slot: passes a change from any thread to the polling thread that owns the changed objects. The polling thread
// executes one step of a command per round. Without a command the cost is one relaxed load per round.
//
//   waiting -- taken by the polling thread --> in progress, one step per round --> done
//      `-- withdrawn by the poster before it is taken
#pragma once

#include <atomic>
#include <functional>
#include <mutex>

#include "base/types.hpp"
#include "port/wakeup.hpp"
#include "roci/poller.hpp"

namespace roci {

// A change, in steps short enough that the polling thread can execute one per round without losing frames.
class Command {
 public:
  // Called once per round. Returns whether there are further steps.
  using Step = std::function<bool()>;
  explicit Command(Step step) : step_(std::move(step)) {}

  [[nodiscard]] bool done() const { return done_.load(std::memory_order_acquire); }

 private:
  friend class CommandSlot;
  Step step_;
  std::atomic<bool> done_{false};
};

// Holds one command at a time. Polled by the thread that owns the objects which commands change; any thread may post.
class CommandSlot final : public Poller {
 public:
  // `wakeup`: of the polling thread; null if that thread does not sleep for long.
  explicit CommandSlot(PortWakeup* wakeup = nullptr) : wakeup_(wakeup) {}

  // Posts a command. It must exist until it is done or withdrawn. False if another command is posted.
  bool post(Command& command);
  // Withdraws a posted command. False if the polling thread has taken it: it will then be done.
  bool withdraw(Command& command);

  // Posts a change and waits until it is done; callers are serialized. False if the polling thread does not take the
  // command within `timeout`; then nothing was changed.
  bool deliver(Command::Step step, Nanos timeout);

  bool poll(Nanos now) override;
  [[nodiscard]] Nanos next_deadline() const override;
  [[nodiscard]] std::string_view name() const override { return "commands"; }

 private:
  PortWakeup* const wakeup_;
  std::mutex senders_;
  std::atomic<Command*> posted_{nullptr};
  Command* open_ = nullptr;  // owned by the polling thread
};

}  // namespace roci

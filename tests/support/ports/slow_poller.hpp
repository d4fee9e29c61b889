// Poller with a low poll frequency.
#pragma once

#include "roci/poller.hpp"

namespace roci::test {

// Polls a host once per interval.
class SlowPoller final : public Poller {
 public:
  SlowPoller(Poller& poller, Nanos interval) : poller_(poller), interval_(interval) {}
  bool poll(Nanos now) override {
    if (now < next_) return false;
    next_ = now + interval_;
    poller_.poll(now);
    return true;
  }
  [[nodiscard]] Nanos next_deadline() const override { return next_; }
  [[nodiscard]] std::string_view name() const override { return "slow"; }

 private:
  Poller& poller_;
  Nanos interval_;
  Nanos next_{0};
};

}  // namespace roci::test

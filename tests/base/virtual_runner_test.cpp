#include "base/time/virtual_runner.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace roci {
namespace {

// A poller that consists of two functions.
class Scripted : public Poller {
 public:
  Scripted(std::string name, std::function<bool(Nanos)> poll, std::function<Nanos()> deadline)
      : name_(std::move(name)), poll_(std::move(poll)), deadline_(std::move(deadline)) {}
  bool poll(Nanos now) override { return poll_(now); }
  [[nodiscard]] Nanos next_deadline() const override { return deadline_(); }
  [[nodiscard]] std::string_view name() const override { return name_; }

 private:
  std::string name_;
  std::function<bool(Nanos)> poll_;
  std::function<Nanos()> deadline_;
};

// Works every `period` and records the times.
class Ticker : public Poller {
 public:
  using Log = std::vector<std::pair<std::string, Nanos>>;
  Ticker(std::string name, Nanos period, Log& log)
      : name_(std::move(name)), period_(period), next_(period), log_(log) {}
  bool poll(Nanos now) override {
    if (now < next_) return false;
    log_.emplace_back(name_, now);
    next_ += period_;
    return true;
  }
  [[nodiscard]] Nanos next_deadline() const override { return next_; }
  [[nodiscard]] std::string_view name() const override { return name_; }

 private:
  std::string name_;
  Nanos period_, next_;
  Log& log_;
};

TEST(VirtualRunner, advances_to_next_deadline_and_polls_in_order_of_addition) {
  Ticker::Log log;
  Ticker a{"a", 20ns, log}, b{"b", 30ns, log};
  VirtualRunner runner;
  runner.add(b);
  runner.add(a);
  ASSERT_TRUE(runner.run_until(60ns));
  const Ticker::Log expected = {{"a", 20ns}, {"b", 30ns}, {"a", 40ns}, {"b", 60ns}, {"a", 60ns}};
  EXPECT_EQ(log, expected);
  EXPECT_EQ(runner.now(), 60ns);
}

TEST(VirtualRunner, advances_over_idle_hours_in_one_step) {
  Ticker::Log log;
  Ticker a{"a", 1h, log};
  VirtualRunner runner;
  runner.add(a);
  ASSERT_TRUE(runner.run_until(Nanos{1h} * 1000));
  EXPECT_EQ(log.size(), 1000U);
}

TEST(VirtualRunner, polls_until_idle_before_time_advances) {
  // A token moves back and forth five times at 10 ns. A poller is due only while it has the token.
  int holder = 0, moves = 0;
  const auto side = [&](int me) {
    return Scripted{me == 0 ? "left" : "right",
                    [&, me](Nanos now) {
                      if (now != 10ns || holder != me || moves == 5) return false;
                      holder = 1 - me;
                      ++moves;
                      return true;
                    },
                    [&, me] { return holder == me && moves < 5 ? Nanos{10} : kNever; }};
  };
  Scripted left = side(0), right = side(1);
  VirtualRunner runner;
  runner.add(right);
  runner.add(left);
  const auto idle = runner.run_until_idle();
  ASSERT_TRUE(idle);
  EXPECT_TRUE(*idle);
  EXPECT_EQ(moves, 5);
  EXPECT_EQ(runner.now(), 10ns);
}

TEST(VirtualRunner, does_not_poll_pollers_that_are_not_due) {
  int polls = 0;
  Scripted sleeper{"sleeper", [&](Nanos) { return ++polls, false; }, [] { return kNever; }};
  Ticker::Log log;
  Ticker ticker{"ticker", 1us, log};
  VirtualRunner runner;
  runner.add(sleeper);
  runner.add(ticker);
  ASSERT_TRUE(runner.run_until(1ms));
  EXPECT_EQ(polls, 0);
}

TEST(VirtualRunner, polls_blocked_poller_at_next_event_of_another) {
  // Due from the start, but it can work only from 50 ns on.
  std::vector<Nanos> worked;
  Scripted blocked{"blocked",
                   [&](Nanos now) {
                     if (now < 50ns || !worked.empty()) return false;
                     worked.push_back(now);
                     return true;
                   },
                   [&] { return worked.empty() ? Nanos{0} : kNever; }};
  Ticker::Log log;
  Ticker ticker{"ticker", 20ns, log};
  VirtualRunner runner;
  runner.add(blocked);
  runner.add(ticker);
  ASSERT_TRUE(runner.run_until(100ns));
  EXPECT_EQ(worked, std::vector<Nanos>{60ns});
}

TEST(VirtualRunner, reports_poller_that_never_becomes_idle) {
  Ticker::Log log;
  Ticker honest{"honest", 10ns, log};
  Scripted liar{"liar", [](Nanos now) { return now >= 30ns; }, [] { return Nanos{30}; }};
  VirtualRunner runner{1000};
  runner.add(liar);
  runner.add(honest);
  const Status status = runner.run_until(1us);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message,
            "virtual time does not advance at 30 ns: poller 'liar' still reports work after 1000 rounds");
}

TEST(VirtualRunner, run_while_stops_when_the_condition_ends_or_at_the_limit) {
  Ticker::Log log;
  Ticker ticker{"ticker", 10ns, log};
  VirtualRunner runner;
  runner.add(ticker);
  const auto ended = runner.run_while([&] { return log.size() < 3; }, 1s);
  ASSERT_TRUE(ended);
  EXPECT_TRUE(*ended);
  EXPECT_EQ(runner.now(), 30ns);
  const auto limited = runner.run_while([&] { return log.size() < 1000; }, 95ns);
  ASSERT_TRUE(limited);
  EXPECT_FALSE(*limited);
  EXPECT_EQ(runner.now(), 90ns);
}

TEST(VirtualRunner, run_while_returns_false_when_no_event_remains) {
  VirtualRunner runner;
  const auto ended = runner.run_while([] { return true; });
  ASSERT_TRUE(ended);
  EXPECT_FALSE(*ended);
}

}  // namespace
}  // namespace roci

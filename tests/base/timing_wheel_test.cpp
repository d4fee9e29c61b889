#include "base/time/timing_wheel.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <vector>

#include "base/rng.hpp"

namespace roci {
namespace {

struct Numbered : Timer {
  size_t number = 0;
};

// Records the numbers of expired timers, in order.
class Recorder {
 public:
  size_t advance(TimingWheel& wheel, Nanos now) {
    return wheel.advance(now, [this](Timer& t) { fired.push_back(static_cast<Numbered&>(t).number); });
  }
  std::vector<size_t> fired;
};

std::deque<Numbered> make_timers(size_t count) {
  std::deque<Numbered> timers(count);
  for (size_t i = 0; i < count; ++i) timers[i].number = i;
  return timers;
}

TEST(TimingWheel, expires_timer_exactly_at_its_deadline) {
  for (const Nanos deadline : {Nanos{1}, Nanos{63}, Nanos{64}, Nanos{4095}, Nanos{4096}, Nanos{1'000'000'007},
                               Nanos{3600s}, Nanos{kNever - 1ns}}) {
    auto timers = make_timers(1);
    TimingWheel wheel;
    Recorder r;
    wheel.schedule(timers[0], deadline);
    EXPECT_EQ(wheel.next_deadline(), deadline);
    EXPECT_EQ(r.advance(wheel, deadline - 1ns), 0U);
    EXPECT_TRUE(timers[0].is_scheduled());
    EXPECT_EQ(r.advance(wheel, deadline), 1U);
    EXPECT_FALSE(timers[0].is_scheduled());
    EXPECT_EQ(wheel.next_deadline(), kNever);
  }
}

TEST(TimingWheel, expires_timers_by_deadline_then_by_scheduling_order) {
  auto timers = make_timers(5);
  TimingWheel wheel;
  Recorder r;
  wheel.schedule(timers[0], 5000ns);
  wheel.schedule(timers[1], 100ns);
  wheel.schedule(timers[2], 5000ns);
  r.advance(wheel, 4990ns);  // 5000 is now on a lower level than when 0 and 2 were scheduled
  wheel.schedule(timers[3], 5000ns);
  wheel.schedule(timers[4], 4991ns);
  r.advance(wheel, 1s);
  EXPECT_EQ(r.fired, (std::vector<size_t>{1, 4, 0, 2, 3}));
}

TEST(TimingWheel, scheduling_at_never_cancels_timer) {
  auto timers = make_timers(1);
  TimingWheel wheel;
  Recorder r;
  wheel.schedule(timers[0], 10ns);
  wheel.schedule(timers[0], kNever);
  EXPECT_FALSE(timers[0].is_scheduled());
  EXPECT_EQ(wheel.next_deadline(), kNever);
  EXPECT_EQ(r.advance(wheel, kNever), 0U);
}

TEST(TimingWheel, reschedules_timer_earlier_and_later) {
  auto timers = make_timers(1);
  TimingWheel wheel;
  Recorder r;
  wheel.schedule(timers[0], 1ms);
  wheel.schedule(timers[0], 10us);
  EXPECT_EQ(wheel.next_deadline(), 10us);
  wheel.schedule(timers[0], 2ms);
  EXPECT_EQ(r.advance(wheel, 1999us), 0U);
  EXPECT_EQ(r.advance(wheel, 2ms), 1U);
  EXPECT_EQ(wheel.size(), 0U);
}

TEST(TimingWheel, expires_overdue_timer_in_next_advance) {
  auto timers = make_timers(1);
  TimingWheel wheel{1ms};
  Recorder r;
  wheel.schedule(timers[0], 3us);
  EXPECT_LE(wheel.next_deadline(), 1ms);
  EXPECT_EQ(r.advance(wheel, 1ms), 1U);
}

TEST(TimingWheel, rescheduling_in_the_past_from_callback_does_not_loop) {
  auto timers = make_timers(1);
  TimingWheel wheel;
  wheel.schedule(timers[0], 10ns);
  size_t calls = 0;
  const auto again = [&](Timer& t) {
    ++calls;
    wheel.schedule(t, 10ns);
  };
  EXPECT_EQ(wheel.advance(20ns, again), 1U);
  EXPECT_EQ(wheel.next_deadline(), 20ns);
  EXPECT_EQ(wheel.advance(20ns, again), 1U);
  EXPECT_EQ(calls, 2U);
  wheel.cancel(timers[0]);
}

TEST(TimingWheel, periodic_timer_expires_once_per_period_in_one_advance) {
  auto timers = make_timers(1);
  TimingWheel wheel;
  wheel.schedule(timers[0], 7ns);
  EXPECT_EQ(wheel.advance(70ns, [&](Timer& t) { wheel.schedule(t, t.deadline() + 7ns); }), 10U);
  wheel.cancel(timers[0]);
}

TEST(TimingWheel, callback_cancels_timer_with_same_deadline) {
  auto timers = make_timers(3);
  TimingWheel wheel;
  for (Timer& t : timers) wheel.schedule(t, 500ns);
  std::vector<size_t> fired;
  wheel.advance(500ns, [&](Timer& t) {
    fired.push_back(static_cast<Numbered&>(t).number);
    wheel.cancel(timers[1]);
  });
  EXPECT_EQ(fired, (std::vector<size_t>{0, 2}));
  EXPECT_TRUE(wheel.empty());
}

TEST(TimingWheel, destructor_unschedules_timers) {
  auto timers = make_timers(2);
  {
    TimingWheel wheel;
    wheel.schedule(timers[0], 1h);
    wheel.schedule(timers[1], 0ns);
  }
  EXPECT_FALSE(timers[0].is_scheduled());
  EXPECT_FALSE(timers[1].is_scheduled());
}

TEST(TimingWheel, advances_over_hours_without_visiting_every_slot) {
  auto timers = make_timers(1);
  TimingWheel wheel;
  Recorder r;
  // A million hours in steps of one hour. A walk over all 64^3 ns slots would take minutes.
  for (int i = 1; i <= 1'000'000; ++i) {
    wheel.schedule(timers[0], Nanos{1h} * i);
    ASSERT_EQ(r.advance(wheel, Nanos{1h} * i), 1U);
  }
}

TEST(TimingWheel, advancing_to_next_deadline_always_makes_progress) {
  Rng rng{7};
  auto timers = make_timers(1000);
  TimingWheel wheel;
  for (Timer& t : timers) wheel.schedule(t, 1h + Nanos{static_cast<int64_t>(rng.below(1'000'000))});
  size_t jumps = 0;
  while (!wheel.empty()) {
    const Nanos next = wheel.next_deadline();
    ASSERT_GT(next, wheel.now());
    wheel.advance(next, [&](Timer& t) { EXPECT_EQ(t.deadline(), next); });
    ++jumps;
  }
  // At most one stop per timer and one per slot that was split.
  EXPECT_LT(jumps, 3000U);
}

TEST(TimingWheel, advancing_to_the_bound_of_canceled_timers_raises_it) {
  auto timers = make_timers(100);
  TimingWheel wheel;
  Recorder r;
  // All in one slot, so that the bound is the slot's start.
  for (size_t i = 0; i < timers.size(); ++i) wheel.schedule(timers[i], 1h + Nanos{static_cast<int64_t>(i)});
  const Nanos bound = wheel.next_deadline();
  ASSERT_LT(bound, 1h);
  for (size_t i = 1; i < timers.size(); ++i) wheel.cancel(timers[i]);
  wheel.schedule(timers[0], 2h);
  ASSERT_EQ(r.advance(wheel, std::max(bound, wheel.next_deadline())), 0U);
  EXPECT_EQ(wheel.next_deadline(), 2h);
  wheel.cancel(timers[0]);
  EXPECT_EQ(wheel.next_deadline(), kNever);
}

// Naive model: a list, sorted stably.
class NaiveTimers {
 public:
  void schedule(size_t number, Nanos deadline) {
    cancel(number);
    if (deadline == kNever) return;
    const bool late = deadline <= now_;
    pending_.push_back({late, late ? Nanos{0} : deadline, number});
  }
  void cancel(size_t number) {
    std::erase_if(pending_, [&](const Entry& e) { return e.number == number; });
  }
  void advance(Nanos now, const std::function<void(size_t)>& fire) {
    std::vector<Entry> late;
    for (const Entry& e : pending_) {
      if (e.late) late.push_back(e);
    }
    for (const Entry& e : late) fire_one(e, fire);
    for (;;) {
      auto first = pending_.end();
      for (auto i = pending_.begin(); i != pending_.end(); ++i) {
        if (!i->late && i->deadline <= now && (first == pending_.end() || i->deadline < first->deadline))
          first = i;
      }
      if (first == pending_.end()) break;
      now_ = first->deadline;
      fire_one(*first, fire);
    }
    now_ = std::max(now_, now);
  }
  [[nodiscard]] Nanos now() const { return now_; }
  [[nodiscard]] Nanos earliest() const {
    Nanos t = kNever;
    for (const Entry& e : pending_) t = std::min(t, e.late ? now_ : e.deadline);
    return t;
  }

 private:
  struct Entry {
    bool late;
    Nanos deadline;
    size_t number;
  };
  void fire_one(Entry entry, const std::function<void(size_t)>& fire) {
    const auto same = [&](const Entry& e) { return e.number == entry.number && e.late == entry.late; };
    // Canceled or rescheduled by a callback.
    if (std::none_of(pending_.begin(), pending_.end(), same)) return;
    std::erase_if(pending_, same);
    fire(entry.number);
  }
  std::vector<Entry> pending_;
  Nanos now_{0};
};

Nanos random_span(Rng& rng) {
  // All magnitudes are equally likely: from nanoseconds to hours.
  const uint64_t bits = rng.below(43);
  return Nanos{static_cast<int64_t>(rng.below(uint64_t{1} << bits))};
}

TEST(TimingWheel, agrees_with_a_sorted_list_under_random_use) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Rng rng{seed};
    auto timers = make_timers(60);
    TimingWheel wheel;
    NaiveTimers model;
    Nanos now{0};
    for (int step = 0; step < 400; ++step) {
      const size_t n = rng.below(timers.size());
      switch (rng.below(4)) {
        case 0:
        case 1: {
          const Nanos deadline = rng.chance(0.02) ? kNever : now + random_span(rng) - 5ns;
          wheel.schedule(timers[n], deadline);
          model.schedule(n, deadline);
          break;
        }
        case 2:
          wheel.cancel(timers[n]);
          model.cancel(n);
          break;
        default: {
          now += random_span(rng);
          // The actions of callbacks depend only on a seed, so they are the same in both implementations.
          const uint64_t act_seed = rng.next();
          std::vector<size_t> got, expected;
          Rng a{act_seed};
          wheel.advance(now, [&](Timer& t) {
            got.push_back(static_cast<Numbered&>(t).number);
            if (got.size() > 500) return;
            const size_t other = a.below(timers.size());
            if (a.chance(0.3)) wheel.schedule(timers[other], wheel.now() + random_span(a) - 3ns);
            if (a.chance(0.3)) wheel.cancel(timers[a.below(timers.size())]);
          });
          Rng b{act_seed};
          model.advance(now, [&](size_t number) {
            expected.push_back(number);
            if (expected.size() > 500) return;
            const size_t other = b.below(timers.size());
            if (b.chance(0.3)) model.schedule(other, model.now() + random_span(b) - 3ns);
            if (b.chance(0.3)) model.cancel(b.below(timers.size()));
          });
          ASSERT_EQ(got, expected) << "seed " << seed << " step " << step;
        }
      }
      ASSERT_LE(wheel.next_deadline(), model.earliest()) << "seed " << seed << " step " << step;
      if (model.earliest() == kNever) {
        ASSERT_EQ(wheel.next_deadline(), kNever);
      }
    }
  }
}

TEST(TimingWheel, holds_a_hundred_thousand_timers) {
  constexpr size_t kCount = 100'000;
  Rng rng{1};
  auto timers = make_timers(kCount);
  TimingWheel wheel;
  // Every timer is rescheduled three times, like a retransmission timer. Finally a third is canceled.
  for (int round = 0; round < 3; ++round) {
    for (Timer& t : timers) wheel.schedule(t, 1ms + Nanos{static_cast<int64_t>(rng.below(1'000'000'000))});
  }
  size_t expected = kCount;
  for (size_t i = 0; i < kCount; i += 3, --expected) wheel.cancel(timers[i]);
  EXPECT_EQ(wheel.size(), expected);
  size_t fired = 0;
  Nanos last{0};
  for (Nanos now{0}; !wheel.empty(); now += 10us) {
    fired += wheel.advance(now, [&](Timer& t) {
      EXPECT_NE(static_cast<Numbered&>(t).number % 3, 0U);
      EXPECT_GE(t.deadline(), last);
      EXPECT_LE(t.deadline(), now);
      EXPECT_GT(t.deadline(), now - 10us);
      last = t.deadline();
    });
  }
  EXPECT_EQ(fired, expected);
}

}  // namespace
}  // namespace roci

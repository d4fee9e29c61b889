// The timing wheel by number of timers, compared with a std::multimap of deadlines. The cost of a wheel does not depend
// on its size while the timers are in the cache. The limit is memory access: reading and writing one random timer of
// the same number.
#include "base/time/timing_wheel.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/rng.hpp"
#include "support/against.hpp"

namespace roci::bench {
namespace {

// Range of the deadlines of retransmission timers: 4 ms.
constexpr uint64_t kSpread = 4'000'000;
constexpr size_t kDraws = 1 << 16;

// Random numbers computed in advance, so that the generator is not measured.
struct Draws {
  explicit Draws(uint64_t bound) : numbers(kDraws) {
    Rng rng(1);
    for (uint64_t& number : numbers) number = rng.below(bound);
  }
  uint64_t next() { return numbers[index++ % kDraws]; }
  std::vector<uint64_t> numbers;
  size_t index = 0;
};

struct Wheel {
  explicit Wheel(size_t count) : timers(count), which(count), ahead(kSpread) {
    for (Timer& timer : timers) wheel.schedule(timer, Nanos{static_cast<int64_t>(1 + ahead.next())});
  }
  std::vector<Timer> timers;  // must outlive the wheel
  TimingWheel wheel;
  Draws which, ahead;
};

// A wheel whose timers do not expire during a run.
struct IdleWheel {
  explicit IdleWheel(size_t count) : timers(count) {
    Draws ahead(kSpread);
    constexpr int64_t kFar = int64_t{1} << 40;
    for (Timer& timer : timers) wheel.schedule(timer, Nanos{kFar + static_cast<int64_t>(ahead.next())});
  }
  std::vector<Timer> timers;
  TimingWheel wheel;
  int64_t now = 0;
};

struct Tree {
  using Deadlines = std::multimap<int64_t, size_t>;
  explicit Tree(size_t count) : which(count), ahead(kSpread) {
    for (size_t i = 0; i < count; ++i) {
      timers.push_back(deadlines.emplace(static_cast<int64_t>(1 + ahead.next()), i));
    }
  }
  Deadlines deadlines;
  std::vector<Deadlines::iterator> timers;
  int64_t now = 0;
  Draws which, ahead;
};

// A filled container of each size, created once: a benchmark is called several times and leaves the number of timers
// unchanged.
template <class T>
T& filled(int64_t count) {
  static std::map<int64_t, std::unique_ptr<T>> made;
  auto& one = made[count];
  if (!one) one = std::make_unique<T>(static_cast<size_t>(count));
  return *one;
}

void against_tree(benchmark::State& state, const char* peer) {
  const std::string count = "/" + std::to_string(state.range(0));
  against(state, {peer + count, "limit_touch" + count});
}

void limit_touch(benchmark::State& state) {
  struct alignas(32) Object {
    uint64_t words[4] = {};
  };
  std::vector<Object> objects(static_cast<size_t>(state.range(0)));
  Draws which(objects.size());
  for (auto _ : state) benchmark::DoNotOptimize(objects[which.next()].words[0] += 1);
  state.SetItemsProcessed(state.iterations());
}

void wheel_move(benchmark::State& state) {
  auto& w = filled<Wheel>(state.range(0));
  for (auto _ : state) {
    const auto ahead = static_cast<int64_t>(1 + w.ahead.next());
    w.wheel.schedule(w.timers[w.which.next()], w.wheel.now() + Nanos{ahead});
  }
  state.SetItemsProcessed(state.iterations());
  against_tree(state, "tree_move");
}

void tree_move(benchmark::State& state) {
  auto& t = filled<Tree>(state.range(0));
  for (auto _ : state) {
    const auto ahead = static_cast<int64_t>(1 + t.ahead.next());
    const size_t which = t.which.next();
    t.deadlines.erase(t.timers[which]);
    t.timers[which] = t.deadlines.emplace(t.now + ahead, which);
  }
  state.SetItemsProcessed(state.iterations());
}

void wheel_cancel_and_schedule(benchmark::State& state) {
  auto& w = filled<Wheel>(state.range(0));
  for (auto _ : state) {
    const auto ahead = static_cast<int64_t>(1 + w.ahead.next());
    Timer& timer = w.timers[w.which.next()];
    w.wheel.cancel(timer);
    w.wheel.schedule(timer, w.wheel.now() + Nanos{ahead});
  }
  state.SetItemsProcessed(state.iterations());
  against_tree(state, "tree_move");
}

// One poll round of a worker without expired timers. Item: a round of 1 ns.
void wheel_advance_idle(benchmark::State& state) {
  auto& idle = filled<IdleWheel>(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(idle.wheel.advance(Nanos{++idle.now}, [](Timer&) {}));
  state.SetItemsProcessed(state.iterations());
}

// Expiry of timers. Each is rescheduled, so their number is constant. Item: an expired timer.
void wheel_advance(benchmark::State& state) {
  auto& w = filled<Wheel>(state.range(0));
  const Nanos step{static_cast<int64_t>(kSpread) / 2 / state.range(0) * 16 + 1};  // about 16 timers
  size_t fired = 0;
  for (auto _ : state) {
    const Nanos now = w.wheel.now() + step;
    fired += w.wheel.advance(now, [&](Timer& timer) {
      w.wheel.schedule(timer, now + Nanos{static_cast<int64_t>(1 + w.ahead.next())});
    });
  }
  state.SetItemsProcessed(static_cast<int64_t>(fired));
  against_tree(state, "tree_advance");
}

void tree_advance(benchmark::State& state) {
  auto& t = filled<Tree>(state.range(0));
  const int64_t step = static_cast<int64_t>(kSpread) / 2 / state.range(0) * 16 + 1;
  int64_t fired = 0;
  for (auto _ : state) {
    t.now += step;
    while (t.deadlines.begin()->first <= t.now) {
      const size_t which = t.deadlines.begin()->second;
      t.deadlines.erase(t.deadlines.begin());
      t.timers[which] = t.deadlines.emplace(t.now + static_cast<int64_t>(1 + t.ahead.next()), which);
      ++fired;
    }
  }
  state.SetItemsProcessed(fired);
}

void sizes(benchmark::internal::Benchmark* b) { b->Arg(100)->Arg(10'000)->Arg(1'000'000); }
BENCHMARK(limit_touch)->Apply(sizes);
BENCHMARK(wheel_move)->Apply(sizes);
BENCHMARK(wheel_cancel_and_schedule)->Apply(sizes);
BENCHMARK(tree_move)->Apply(sizes);
BENCHMARK(wheel_advance_idle)->Apply(sizes);
BENCHMARK(wheel_advance)->Apply(sizes);
BENCHMARK(tree_advance)->Apply(sizes);

}  // namespace
}  // namespace roci::bench

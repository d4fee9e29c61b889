// The seeded random generator and the id table, compared with the standard library's.
#include <bit>
#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/containers/id_table.hpp"
#include "base/rng.hpp"
#include "support/against.hpp"

namespace roci::bench {
namespace {

void rng_next(benchmark::State& state) {
  Rng rng(1);
  for (auto _ : state) benchmark::DoNotOptimize(rng.next());
  state.SetItemsProcessed(state.iterations());
}

void rng_below(benchmark::State& state) {
  Rng rng(1);
  for (auto _ : state) benchmark::DoNotOptimize(rng.below(1000));
  state.SetItemsProcessed(state.iterations());
  against(state, {"std_uniform", "rng_next"});
}

void std_uniform(benchmark::State& state) {
  std::mt19937_64 engine(1);
  std::uniform_int_distribution<uint64_t> below(0, 999);
  for (auto _ : state) benchmark::DoNotOptimize(below(engine));
  state.SetItemsProcessed(state.iterations());
}

constexpr size_t kLookups = 1 << 14;

// Random 24-bit numbers, as for queue pairs, and the order of lookups.
struct Ids {
  explicit Ids(size_t count) {
    Rng rng(7);
    std::unordered_map<uint32_t, bool> taken;
    while (ids.size() < count) {
      const auto id = static_cast<uint32_t>(rng.below(1 << 24));
      if (taken.emplace(id, true).second) ids.push_back(id);
    }
    for (size_t i = 0; i < kLookups; ++i) wanted.push_back(ids[rng.below(count)]);
  }
  std::vector<uint32_t> ids, wanted;
};

void id_table_find(benchmark::State& state) {
  Ids ids(static_cast<size_t>(state.range(0)));
  IdTable<uint32_t> table;
  for (uint32_t& id : ids.ids) table.insert(id, &id);
  size_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(table.find(ids.wanted[i++ % kLookups]));
  state.SetItemsProcessed(state.iterations());
  against(state, {"unordered_map_find/" + std::to_string(state.range(0))});
}

// Filling of an empty table including its growth. The longest insertion is one that doubles the table.
void id_table_insert(benchmark::State& state) {
  Ids ids(static_cast<size_t>(state.range(0)));
  std::chrono::duration<double, std::micro> longest{0};
  for (auto _ : state) {
    IdTable<uint32_t> table;
    for (uint32_t& id : ids.ids) {
      const bool doubles = std::has_single_bit(table.size() + 1) || std::has_single_bit(table.size());
      const auto begin = doubles ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point{};
      table.insert(id, &id);
      if (doubles) longest = std::max<decltype(longest)>(longest, std::chrono::steady_clock::now() - begin);
    }
    benchmark::DoNotOptimize(table.find(ids.ids[0]));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.counters["us_longest"] = longest.count();
  against(state, {"unordered_map_insert/" + std::to_string(state.range(0))});
}

void unordered_map_insert(benchmark::State& state) {
  Ids ids(static_cast<size_t>(state.range(0)));
  for (auto _ : state) {
    std::unordered_map<uint32_t, uint32_t*> table;
    for (uint32_t& id : ids.ids) table.emplace(id, &id);
    benchmark::DoNotOptimize(table.find(ids.ids[0]));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

void unordered_map_find(benchmark::State& state) {
  Ids ids(static_cast<size_t>(state.range(0)));
  std::unordered_map<uint32_t, uint32_t*> table;
  for (uint32_t& id : ids.ids) table.emplace(id, &id);
  size_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(table.find(ids.wanted[i++ % kLookups])->second);
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK(rng_next);
BENCHMARK(rng_below);
BENCHMARK(std_uniform);
BENCHMARK(id_table_find)->Arg(100)->Arg(100'000);
BENCHMARK(id_table_insert)->Arg(100)->Arg(100'000);
BENCHMARK(unordered_map_insert)->Arg(100)->Arg(100'000);
BENCHMARK(unordered_map_find)->Arg(100)->Arg(100'000);

}  // namespace
}  // namespace roci::bench

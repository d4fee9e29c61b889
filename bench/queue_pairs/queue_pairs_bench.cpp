// Cost by number of queue pairs: memory of an idle queue pair, time to create and destroy them, and the rate of small
// messages distributed over them.
#include <malloc.h>
#include <unistd.h>

#include <chrono>
#include <exception>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>

#include "queue_pairs/many.hpp"
#include "support/against.hpp"

namespace roci::bench {
namespace {

// Resident memory of the process, after memory freed by earlier benchmarks was returned to the system.
double resident_bytes() {
  malloc_trim(0);
  std::ifstream file("/proc/self/statm");
  double all = 0, resident = 0;  // pages
  if (!(file >> all >> resident)) throw std::runtime_error("/proc/self/statm cannot be read");
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

// Memory of a connected queue pair with `wr` requests of one SGE per work queue, including its share of all tables. An
// iteration creates, connects and destroys all queue pairs.
void idle(benchmark::State& state) {
  const auto count = static_cast<uint32_t>(state.range(0));
  const auto wr = static_cast<uint32_t>(state.range(1));
  try {
    Many many({.connections = count, .wr = wr});
    many.settle();
    double bytes = 0;
    std::chrono::duration<double> create{0}, connect{0}, destroy{0};
    const auto timed = [](std::chrono::duration<double>& sum, const auto& work) {
      const auto begin = std::chrono::steady_clock::now();
      work();
      sum += std::chrono::steady_clock::now() - begin;
    };
    for (auto _ : state) {
      const double before = resident_bytes();
      timed(create, [&] { many.create(); });
      timed(connect, [&] { many.connect(); });
      many.settle();
      bytes += resident_bytes() - before;
      timed(destroy, [&] { many.destroy(); });
    }
    const double total = 2.0 * count * static_cast<double>(state.iterations());
    state.counters["bytes_each"] = bytes / total;
    state.counters["us_to_create"] = create.count() / total * 1e6;
    state.counters["us_to_connect"] = connect.count() / total * 1e6;
    state.counters["us_to_destroy"] = destroy.count() / total * 1e6;
  } catch (const std::exception& failure) {
    state.SkipWithError(failure.what());
  }
}

// Hosts are kept for the repetitions of a row, since their creation takes longer than the measurement.
Many& hosts_with(uint32_t connections, uint32_t workers) {
  static std::map<std::pair<uint32_t, uint32_t>, std::unique_ptr<Many>> made;
  std::unique_ptr<Many>& many = made[{connections, workers}];
  if (many == nullptr) {
    many = std::make_unique<Many>(
        ManyConfig{.connections = connections, .wr = connections == 1 ? 64U : 16U, .workers = workers});
    many->create();
    many->connect();
    for (uint32_t ended = 0; ended < 2 * connections + 256;) ended += many->round();  // uses each connection
  }
  return *many;
}

void write8(benchmark::State& state) {
  const auto connections = static_cast<uint32_t>(state.range(0));
  const auto workers = static_cast<uint32_t>(state.range(1));
  try {
    Many& many = hosts_with(connections, workers);
    uint64_t messages = 0;
    for (auto _ : state) messages += many.round();
    state.counters["messages_per_second"] = rate(static_cast<double>(messages));
    if (many.retransmissions() != 0) state.SkipWithError("packets were retransmitted without loss");
  } catch (const std::exception& failure) {
    state.SkipWithError(failure.what());
  }
  against(state, {"write8/qps:1/workers:1"});
}

BENCHMARK(write8)
    ->ArgNames({"qps", "workers"})
    ->Args({1, 1})
    ->Args({100, 1})
    ->Args({10'000, 1})
    ->Args({100'000, 1})
    ->Args({100, 2})
    ->Args({100, 4});
BENCHMARK(idle)
    ->ArgNames({"qps", "wr"})
    ->Args({10'000, 1})
    ->Args({10'000, 16})
    ->Args({100'000, 16})
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace roci::bench

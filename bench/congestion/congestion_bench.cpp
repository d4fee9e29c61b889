// Cost of congestion control: an event of each algorithm including the engine's work, and a dedicated control core.
#include <benchmark/benchmark.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "base/containers/sparse_arena.hpp"
#include "congestion/control_core.hpp"
#include "congestion/profile.hpp"

namespace roci {
namespace {

constexpr Nanos kBaseRtt{4200};

Profile profile_of(const roci_cc_plugin& plugin) {
  Profile profile{.name = plugin.name, .plugin = &plugin, .values = {}, .base_rtt = kBaseRtt};
  for (uint32_t i = 0; i < plugin.parameter_count; ++i)
    profile.values.push_back(plugin.parameters[i].default_value);
  return profile;
}

roci_cc_flow flow_info() {
  return {.line_rate = 100'000'000'000,
          .base_rtt_ns = 4200,
          .packet_bytes = 1106,
          .payload_bytes = 1024,
          .direction = ROCI_CC_REQUESTS,
          .provides = 0xffff,
          .seed = 1};
}

// Generates consecutive acknowledgment events of one packet each, with an RTT sample, occasional marks and CNPs, and
// telemetry of three hops.
class Acknowledgements {
 public:
  const roci_cc_event& next() {
    ++number_;
    event_.now_ns += 90;
    event_.kinds = ROCI_CC_ON_ACK | ROCI_CC_ON_RTT | ROCI_CC_ON_TELEMETRY;
    event_.acked += 1024;
    event_.next = event_.acked + 40'000;
    event_.in_flight = 43'000;
    event_.acked_bytes = 1106;
    event_.acked_packets = 1;
    event_.marked_packets = number_ % 20 == 0 ? 1 : 0;
    event_.sent_bytes = 1106;
    event_.sent_packets = 1;
    event_.rtt_ns = 4200 + static_cast<uint32_t>(number_ % 100) * 10;
    event_.least_rtt_ns = 4200;
    event_.peer_delay_ns = 500;
    event_.hops = 3;
    event_.cnps = 0;
    if (number_ % 50 == 0) {
      event_.kinds |= ROCI_CC_ON_CNP;
      event_.cnps = 1;
    }
    if (number_ % 100 == 0) {
      event_.kinds |= ROCI_CC_ON_CNM;
      event_.cnm.feedback = 10;
    }
    path_.hops = 3;
    for (uint32_t i = 0; i < 3; ++i) {
      path_.hop[i] = {.node = i + 1,
                      .port = 1,
                      .time_ns = static_cast<uint32_t>(event_.now_ns),
                      .sent_units = static_cast<uint32_t>(number_ * 1106 / 8),
                      .rate = 100'000'000'000,
                      .queue_bytes = 1000,
                      .reserved = 0};
    }
    event_.path = &path_;
    return event_;
  }

 private:
  uint64_t number_ = 0;
  roci_cc_event event_{};
  roci_cc_path path_{};
};

// Part of the time of `event` and `event_traced` that belongs to the benchmark itself.
void generate(benchmark::State& state) {
  Acknowledgements acknowledgements;
  for (auto _ : state) {
    benchmark::DoNotOptimize(&acknowledgements.next());
    benchmark::ClobberMemory();
  }
}
BENCHMARK(generate);

void event(benchmark::State& state, const roci_cc_plugin* plugin, uint32_t trace) {
  SparseArena arena;
  const Profile profile = profile_of(*plugin);
  ControlFlow* flow = ControlFlow::create(arena, profile, flow_info(), 1);
  FlowRunner runner(trace);
  FlowRunner::begin(*flow, Nanos{1000});
  runner.adopt(*flow);
  Acknowledgements acknowledgements;
  uint64_t timers = 0;
  for (auto _ : state) {
    const roci_cc_event& next = acknowledgements.next();
    timers += runner.advance(Nanos{static_cast<int64_t>(next.now_ns)}, [](ControlFlow&) {}) ? 1 : 0;
    runner.run(*flow, next);
  }
  state.counters["flow_bytes"] = static_cast<double>(ControlFlow::bytes_of(profile));
  state.counters["state_bytes"] = plugin->state_bytes;
  state.counters["timers_per_event"] =
      benchmark::Counter(static_cast<double>(timers), benchmark::Counter::kAvgIterations);
  runner.stop(*flow);
  flow->destroy();
}

Nanos now() { return std::chrono::steady_clock::now().time_since_epoch(); }

uint64_t percentile(const ControlCore::Counts& counts, double part) {
  uint64_t seen = 0;
  for (size_t i = 0; i < counts.delays.size(); ++i) {
    seen += counts.delays[i];
    if (static_cast<double>(seen) >= part * static_cast<double>(counts.events)) return uint64_t{1} << i;
  }
  return 0;
}

// A worker that sends events to a control core, `gap` apart or at full rate (0). Delays are upper bounds of powers of
// two.
void dedicated(benchmark::State& state, const roci_cc_plugin* plugin, Nanos gap) {
  SparseArena arena;
  const Profile profile = profile_of(*plugin);
  ControlFlow* flow = ControlFlow::create(arena, profile, flow_info(), 1);
  ControlCore core("cc0", 1, 0);
  FlowRunner::begin(*flow, now());
  std::atomic<bool> stop{false};
  std::thread thread([&] {
    while (!stop.load(std::memory_order_relaxed)) core.poll(now());
  });
  EventRing& ring = core.events_of(0);
  const roci_cc_event none{};
  while (!ring.push(*flow, EventRing::Kind::kStart, none)) {
  }
  Acknowledgements acknowledgements;
  uint64_t delayed = 0;  // events that found the ring full
  Nanos due = now();
  for (auto _ : state) {
    roci_cc_event next = acknowledgements.next();
    while (gap > Nanos{0} && now() < due) {
    }
    due += gap;
    next.now_ns = static_cast<uint64_t>(now().count());
    bool full = false;
    while (!ring.push(*flow, EventRing::Kind::kEvent, next)) {
      full = true;
      std::this_thread::yield();
    }
    delayed += full ? 1 : 0;
  }
  while (!ring.empty()) std::this_thread::yield();
  stop = true;
  thread.join();
  const ControlCore::Counts counts = core.counts();
  state.counters["events/s"] =
      benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
  state.counters["delay_p50_ns"] = static_cast<double>(percentile(counts, 0.5));
  state.counters["delay_p99_ns"] = static_cast<double>(percentile(counts, 0.99));
  state.counters["full_per_event"] =
      benchmark::Counter(static_cast<double>(delayed), benchmark::Counter::kAvgIterations);
  core.remove(*flow);
  flow->destroy();
}

const bool kRegistered = [] {
  for (const roci_cc_plugin* const* each = roci_cc_plugins(); *each != nullptr; ++each) {
    const roci_cc_plugin* plugin = *each;
    benchmark::RegisterBenchmark(("event/" + std::string(plugin->name)).c_str(),
                                 [plugin](benchmark::State& state) { event(state, plugin, 0); });
  }
  for (const roci_cc_plugin* const* each = roci_cc_plugins(); *each != nullptr; ++each) {
    const roci_cc_plugin* plugin = *each;
    const std::string name = plugin->name;
    if (name == "dcqcn" || name == "hpcc") {
      benchmark::RegisterBenchmark(("event_traced/" + name).c_str(),
                                   [plugin](benchmark::State& state) { event(state, plugin, 4096); });
    }
    if (name != "dcqcn" && name != "ldcp" && name != "hpcc") continue;
    benchmark::RegisterBenchmark(("dedicated/" + name).c_str(), [plugin](benchmark::State& state) {
      dedicated(state, plugin, Nanos{0});
    })->UseRealTime();
    benchmark::RegisterBenchmark(("dedicated_1us_apart/" + name).c_str(), [plugin](benchmark::State& state) {
      dedicated(state, plugin, Nanos{1000});
    })->UseRealTime();
  }
  return true;
}();

}  // namespace
}  // namespace roci

// Meter of an interval of a run: bytes of flows, queues, round trips and counters.
#pragma once

#include <vector>

#include "lab/results/counter_sums.hpp"
#include "lab/results/histogram.hpp"
#include "lab/scenario/scenario.hpp"

namespace roci::lab {

struct Meter {
  Meter(TimeWindow of, size_t ports, size_t traffics)
      : window(std::move(of)), queues(ports), round_trips(traffics) {}

  // `arrived`: bytes received so far, by flow. Flows that have not started may be missing.
  void begin(CounterSums now, std::vector<uint64_t> arrived) {
    running = true;
    counted = std::move(now);
    bytes = std::move(arrived);
  }
  void end(const CounterSums& now, const std::vector<uint64_t>& arrived) {
    running = false;
    counted = now.minus(counted);
    bytes.resize(arrived.size());
    for (size_t flow = 0; flow < bytes.size(); ++flow) bytes[flow] = arrived[flow] - bytes[flow];
  }

  TimeWindow window;
  bool running = false;
  std::vector<Histogram> queues;       // bytes, by port
  std::vector<Histogram> round_trips;  // ns, by traffic
  // After end(): values of the window.
  CounterSums counted;
  std::vector<uint64_t> bytes;  // by flow
};

}  // namespace roci::lab

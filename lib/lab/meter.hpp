// What happens in a network between two times: bytes of flows, queues, round trips and whatever is counted.
#pragma once

#include <vector>

#include "lab/counter_sums.hpp"
#include "lab/histogram.hpp"
#include "lab/scenario.hpp"

namespace roci::lab {

struct Meter {
  Meter(TimeWindow of, size_t ports, size_t traffics)
      : window(std::move(of)), queues(ports), round_trips(traffics) {}

  // The bytes of each flow that have arrived until then; flows that have not begun yet may be missing.
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
  // Of the window once it has ended.
  CounterSums counted;
  std::vector<uint64_t> bytes;  // by flow
};

}  // namespace roci::lab

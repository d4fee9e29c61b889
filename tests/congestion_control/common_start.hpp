// 16 senders to one receiver at 100 Gb/s with a round-trip time of 4.2 us, which start together, so that the first queue is
// 15 bandwidth-delay products (figure 13 of the HPCC paper).
#pragma once

#include "congestion_control/settings.hpp"

namespace roci::test {

struct CommonStart {
  double goodput = 0;  // bit/s
  double part = 0;     // of the maximum payload rate
  uint64_t peak = 0;   // bytes
  // us from the start, and from the longest queue, until the queue was below one bandwidth-delay product
  size_t drained = 0, drained_from_peak = 0;
  uint64_t p95 = 0, p99 = 0;
};

// `telemetry_bytes` of a packet.
inline CommonStart run_common_start(const std::string& name, const FanInOptions& options, Nanos span,
                                    uint32_t telemetry_bytes) {
  FanIn net(options);
  net.take_queue();
  net.drive(500us);
  const auto first = net.take_queue();
  net.drive(1500us);
  net.take_queue();
  const auto rates = net.measure(span);
  const auto queue = net.take_queue();
  note(rates, queue, name + "_");
  CommonStart of;
  of.goodput = rates.sum;
  of.part = rates.sum / net.most_goodput(telemetry_bytes);
  of.peak = FanIn::percentile(first, 1);
  const auto peak = std::ranges::max_element(first);
  const auto empty = std::find_if(peak, first.end(), [](uint64_t q) { return q < 52'000; });
  of.drained = static_cast<size_t>(empty - first.begin());
  of.drained_from_peak = static_cast<size_t>(empty - peak);
  of.p95 = FanIn::percentile(queue, 0.95);
  of.p99 = FanIn::percentile(queue, 0.99);
  note(name + "_part", of.part), note(name + "_peak", of.peak);
  note(name + "_drained_us", of.drained), note(name + "_p95", of.p95);
  EXPECT_GE(rates.jain, 0.95) << name;
  EXPECT_EQ(net.port_counters().dropped(), 0U) << name;
  EXPECT_EQ(net.total("timeouts"), 0U) << name;
  return of;
}

}  // namespace roci::test

// Switch thresholds for the algorithms, and limits for slow builds.
#pragma once

#include "congestion_control/fan_in.hpp"
#include "support/sanitizer.hpp"

namespace roci::test {

// Runs are shorter and have fewer flows.
inline constexpr bool kSlowMachine = kSanitized;

// Records a result as a property of the test, which only `--gtest_output=json:` prints.
template <class Value>
void note(const std::string& name, Value value) {
  testing::Test::RecordProperty(name, std::to_string(value));
}
inline void note(const FanIn::Rates& rates, const std::vector<uint64_t>& queue, const std::string& of = "") {
  note(of + "goodput_gbps", rates.sum / 1e9);
  note(of + "jain", rates.jain);
  note(of + "least_mbps", rates.least / 1e6), note(of + "most_mbps", rates.most / 1e6);
  note(of + "queue_p50", FanIn::percentile(queue, 0.5)),
      note(of + "queue_p99", FanIn::percentile(queue, 0.99));
  note(of + "queue_most", FanIn::percentile(queue, 1));
}

// LDCP: for ECN-capable packets Kmin = BDP / 4, Kmax = BDP, Pmax = 1; for others K = BDP / 2. The BDP is 52 KB: 100
// Gb/s for 4.2 us.
inline AqmConfig ldcp_aqm(uint64_t bdp = 52'000) {
  AqmConfig aqm;
  aqm.mark = {.kmin = Bytes{bdp / 4}, .kmax = Bytes{bdp}, .pmax = 1};
  aqm.drop = {.kmin = Bytes{bdp / 2}, .kmax = Bytes{bdp / 2}, .pmax = 1};
  return aqm;
}

// DCQCN as in HPCC's simulations: 100 KB, 400 KB and 0.2 at 25 Gb/s, scaled to the line rate.
inline AqmConfig dcqcn_aqm(BitsPerSec line) {
  AqmConfig aqm;
  const uint64_t times = line.value() / 1'000'000'000;
  aqm.mark = {.kmin = Bytes{4'000 * times}, .kmax = Bytes{16'000 * times}, .pmax = 0.2};
  return aqm;
}

// A single threshold, as DCTCP requires.
inline AqmConfig step_aqm(uint64_t at) {
  AqmConfig aqm;
  aqm.mark = {.kmin = Bytes{at}, .kmax = Bytes{at}, .pmax = 1};
  return aqm;
}

// Telemetry in all packets, from host to host.
inline HostTelemetryConfig all_telemetry() {
  HostTelemetryConfig telemetry;
  telemetry.udp_port = kTelemetryPort;
  telemetry.begin = TelemetryBegin::kAll;
  return telemetry;
}

}  // namespace roci::test

// Experiment: one run of a scenario. Creates its network, runs the traffic in virtual or real time, and measures.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lab/execution/realtime_throttle.hpp"
#include "lab/network/pause_recorder.hpp"
#include "lab/network/real_port.hpp"
#include "lab/results/histogram.hpp"
#include "lab/scenario/scenario.hpp"
#include "lab/traffic/flow_plan.hpp"
#include "lab/traffic/host_program.hpp"

namespace roci::lab {

// Time series of several objects: values at equal intervals, one column per object.
struct Series {
  std::string unit;
  std::vector<std::string> names;
  std::vector<std::vector<double>> values;  // by name, then by time
};

// Results of a run in real time.
struct RealRun {
  ScheduleLag late;
  std::vector<RealPortCounts> ports;
};

struct Measurements {
  Nanos bin{0};                   // interval of the series; the first ends at `bin`
  Series queue_most, queue_mean;  // bytes, by switch port
  Series goodput;                 // bit/s, by flow in plans with few flows, else by traffic
  TrafficPlan plan;
  std::vector<FlowResult> flows;  // by flow of the plan
  std::vector<double> ideal;      // ns, by flow of the plan
  std::vector<LoopResult> loops;
  std::vector<Histogram> queues;   // bytes from settle to duration, by switch port
  std::vector<PauseEvent> pauses;  // received PFC frames, if recorded, in order of time
  // Identical for the same scenario, on any machine and with any number of threads.
  nlohmann::ordered_json summary;
  // Data of the execution, which differ between runs of the same scenario.
  double seconds = 0;
  uint64_t packet_hops = 0;  // frames received by hosts and switches
  std::optional<RealRun> real;
};

struct ExperimentProgress {
  Nanos now{0};  // since the traffic started
  uint64_t packet_hops = 0;
};

struct ExperimentOptions {
  unsigned threads = 1;
  std::function<void(const ExperimentProgress&)> progress = nullptr;  // called about a hundred times
  // Runs in real time: virtual time does not pass the clock, and the scenario's real ports are used.
  bool real = false;
  bool record_pauses = false;
  std::function<bool()> stops = nullptr;  // called before each window; if true, the run fails with ECANCELED
};

Result<Measurements> run_experiment(const Scenario& scenario, const ExperimentOptions& options);

}  // namespace roci::lab

// One run of a scenario: sets its network up, lets the traffic happen, in virtual time or as the clock goes, and measures.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lab/flow_plan.hpp"
#include "lab/host_program.hpp"
#include "lab/pace.hpp"
#include "lab/real_port.hpp"
#include "lab/scenario.hpp"

namespace roci::lab {

// Values at equal distances in time, of several things: column by column.
struct Series {
  std::string unit;
  std::vector<std::string> names;
  std::vector<std::vector<double>> values;  // by name, then by time
};

// Of a run in real time.
struct RealRun {
  Lateness late;
  std::vector<RealPortCounts> ports;
};

struct Measurements {
  Nanos bin{0};                   // of the series; the first ends at `bin`
  Series queue_most, queue_mean;  // bytes, of switches' ports
  Series goodput;                 // bit/s, of flows where they are few, else of each traffic
  TrafficPlan plan;
  std::vector<FlowResult> flows;  // of the plan's
  std::vector<double> ideal;      // ns, of each
  std::vector<LoopResult> loops;
  nlohmann::ordered_json
      summary;  // the same from the same scenario, wherever and on however many threads it ran
  // What the run cost, which is not the same twice.
  double seconds = 0;
  uint64_t packet_hops = 0;  // frames received, by hosts and switches
  std::optional<RealRun> real;
};

struct ExperimentProgress {
  Nanos now{0};  // since the traffic began
  uint64_t packet_hops = 0;
};

struct ExperimentOptions {
  unsigned threads = 1;
  std::function<void(const ExperimentProgress&)> progress = nullptr;  // a hundred times or so
  // Nothing happens sooner than the clock says, and the scenario's real ports are used.
  bool real = false;
  std::function<bool()> stops = nullptr;  // asked all the time; then the run fails with ECANCELED
};

Result<Measurements> run_experiment(const Scenario& scenario, const ExperimentOptions& options);

}  // namespace roci::lab

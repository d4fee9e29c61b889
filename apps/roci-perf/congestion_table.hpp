// What congestion control did with the flows of a test: a table for people, JSON for scripts, and the trace of its events.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "roci/device.hpp"

namespace roci::perf {

// The flows of one device at the end of a round.
struct DeviceFlows {
  std::string device;
  std::vector<CongestionFlowReport> flows;
};

void print_congestion(const std::vector<DeviceFlows>& devices);
nlohmann::ordered_json congestion_json(const std::vector<DeviceFlows>& devices);

// Writes what algorithms of these devices were told and decided: JSON Lines, or CSV when the file is called so. Gives the
// number of events.
Result<size_t> save_trace(const std::vector<Device*>& devices, const std::string& file);

}  // namespace roci::perf

// Congestion control results of a test: as a table, as JSON, and as a trace of events.
#pragma once

#include <nlohmann/json.hpp>
#include <ostream>
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

// Writes the input and the decisions of the congestion control algorithms of these devices to `out`, as JSON Lines or
// as CSV. Returns the number of events.
size_t write_trace(const std::vector<Device*>& devices, bool csv, std::ostream& out);

}  // namespace roci::perf

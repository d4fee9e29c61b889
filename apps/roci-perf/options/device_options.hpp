// Command-line options that override the configuration of a device.
#pragma once

#include "roci-perf/options/options.hpp"
#include "roci/device.hpp"

namespace roci::perf {

void apply_device_options(const Options& options, DeviceConfig& config);
// Validates the congestion control of a device with these options, as its creation does.
Status check_congestion_control(const Options& options, const DeviceConfig& config);

}  // namespace roci::perf

// Command-line options that override the configuration of a device.
#pragma once

#include "roci-perf/options/options.hpp"
#include "roci/device.hpp"

namespace roci::perf {

void apply_device_options(const Options& options, DeviceConfig& config);

}  // namespace roci::perf

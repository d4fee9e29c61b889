// What the command line says about a device, over what its configuration says.
#pragma once

#include "roci-perf/options.hpp"
#include "roci/device.hpp"

namespace roci::perf {

void apply_device_options(const Options& options, DeviceConfig& config);

}  // namespace roci::perf

// --capture: inserts the capture tap between a device and its port.
#pragma once

#include <memory>

#include "port/capture/capture.hpp"
#include "roci-perf/options/options.hpp"

namespace roci::perf {

// Returns the port itself if no capture is requested.
Result<std::unique_ptr<Port>> with_capture(std::unique_ptr<Port> port, const Options& options);

}  // namespace roci::perf

// --capture: inserts the capture tap between a device and its port.
#pragma once

#include <memory>

#include "port/capture/capture.hpp"
#include "roci-perf/options/options.hpp"

namespace roci::perf {

// Returns the port itself if no capture is requested. `saved` is the result of writing the file, set at the latest by
// the destructor of the port.
Result<std::unique_ptr<Port>> with_capture(std::unique_ptr<Port> port, const Options& options, Status& saved);

}  // namespace roci::perf

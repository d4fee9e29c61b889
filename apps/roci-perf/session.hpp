// The course of a whole test, on each side: greeting, then for each size new queue pairs, traffic, result.
#pragma once

#include "roci-perf/control.hpp"
#include "roci-perf/report.hpp"
#include "roci/device.hpp"

namespace roci::perf {

// The side that posts and measures.
Status run_client(Control& control, Device& device, const Options& options, const std::string& path,
                  Report& report);
// The other side. Takes the client's parameters. `report` may be null: then nothing is shown.
Status run_server(Control& control, Device& device, const Options& options, const std::string& path,
                  Report* report);
// Either side with a peer set up by hand.
Status run_with_peers(Control& control, Device& device, const Options& options, const std::string& path,
                      Report& report);

}  // namespace roci::perf

// The sequence of a test on each side: greeting, then for each size new queue pairs, traffic and result.
#pragma once

#include "roci-perf/connection/control.hpp"
#include "roci-perf/output/report.hpp"
#include "roci/device.hpp"

namespace roci::perf {

// The posting and measuring side.
Status run_client(Control& control, Device& device, const Options& options, const std::string& path,
                  Report& report);
// The serving side, with the client's parameters. `report` may be null: nothing is printed.
Status run_server(Control& control, Device& device, const Options& options, const std::string& path,
                  Report* report);
// Either side with peers given by --peer.
Status run_with_peers(Control& control, Device& device, const Options& options, const std::string& path,
                      Report& report);

}  // namespace roci::perf

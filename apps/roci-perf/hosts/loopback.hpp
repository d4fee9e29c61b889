// --loopback: both hosts in this process, connected by a switch or directly.
#pragma once

#include "roci-perf/output/report.hpp"

namespace roci::perf {

// Validates options that depend on the hosts of the loopback, before they are created.
Status check_loopback(const Options& options);
Status run_loopback(const Options& options, Report& report);

}  // namespace roci::perf

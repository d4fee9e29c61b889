// --loopback: both hosts in this process, connected by a switch or directly.
#pragma once

#include "roci-perf/output/report.hpp"

namespace roci::perf {

Status run_loopback(const Options& options, Report& report);

}  // namespace roci::perf

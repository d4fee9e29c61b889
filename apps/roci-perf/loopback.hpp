// --loopback: both hosts in this process, joined by a switch or back to back.
#pragma once

#include "roci-perf/report.hpp"

namespace roci::perf {

Status run_loopback(const Options& options, Report& report);

}  // namespace roci::perf

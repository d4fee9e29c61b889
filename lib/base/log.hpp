// Log of the control path: opened devices, software replacements of missing offloads, messages of DPDK. Never called
// per packet; the data path has counters.
#pragma once

#include <spdlog/logger.h>

namespace roci {

// Logger "roci" on standard error. Its level is `warn`, so that a library is quiet in a third-party program; the
// environment variable ROCI_LOG (trace, debug, info, warn, error, off) sets another level at first use. May be called
// by any thread.
spdlog::logger& log();

}  // namespace roci

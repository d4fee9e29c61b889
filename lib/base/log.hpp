// The project's one log, for the control path: what was opened, which software path stands in for a missing
// offload, what DPDK complained about. Never called per packet; the data path counts.
#pragma once

#include <spdlog/logger.h>

namespace roci {

// The logger "roci" on standard error. Its level is `warn` so that a library inside somebody else's program
// stays quiet; the environment variable ROCI_LOG (trace, debug, info, warn, error, off) sets another one at
// first use. Any thread.
spdlog::logger& log();

}  // namespace roci

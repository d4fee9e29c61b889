// Reads the switches of a process: /roci/switch/... (roci-switch/endpoints.hpp).
#pragma once

#include "base/result.hpp"
#include "roci-top/asker.hpp"
#include "roci-top/snapshot.hpp"

namespace roci::top {

// Fails if the process does not reply.
Status read_switches(Asker& asker, ProcessSeen& seen);

}  // namespace roci::top

// Reads all that a process says about its switches: /roci/switch/... (roci-switch/endpoints.hpp).
#pragma once

#include "base/result.hpp"
#include "roci-top/asker.hpp"
#include "roci-top/snapshot.hpp"

namespace roci::top {

// An error when the process stops answering.
Status read_switches(Asker& asker, ProcessSeen& seen);

}  // namespace roci::top

// Reads what a process says about its hosts: /roci/device/... (lib/device/device_endpoints.hpp). Of a host with few queue
// pairs that is a handful of questions; of one with 10,000 it is two dozen more, to find out who is busy.
#pragma once

#include "base/result.hpp"
#include "roci-top/asker.hpp"
#include "roci-top/queue_pair_choice.hpp"
#include "roci-top/snapshot.hpp"

namespace roci::top {

// An error when the process stops answering.
Status read_hosts(Asker& asker, QueuePairChoice& choice, ProcessSeen& seen);

}  // namespace roci::top

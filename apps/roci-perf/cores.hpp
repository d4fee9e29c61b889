// Which CPU a thread stays on.
#pragma once

#include "base/result.hpp"

namespace roci::perf {

// Keeps the calling thread on this CPU.
Status stay_on(int cpu);

}  // namespace roci::perf

// CPU affinity of threads.
#pragma once

#include "base/result.hpp"

namespace roci::perf {

// Binds the calling thread to this CPU.
Status stay_on(int cpu);

}  // namespace roci::perf

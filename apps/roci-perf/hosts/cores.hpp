// CPU affinity of threads.
#pragma once

#include <vector>

#include "base/result.hpp"

namespace roci::perf {

// Fails if a thread of this process cannot be bound to one of the CPUs.
Status check_cores(const std::vector<int>& cpus);
// Binds the calling thread to this CPU.
Status stay_on(int cpu);

}  // namespace roci::perf

#include "roci-perf/hosts/cores.hpp"

#include <pthread.h>
#include <sched.h>

#include <cstring>
#include <string>
#include <thread>

namespace roci::perf {

Status check_cores(const std::vector<int>& cpus) {
  // A thread of its own, since the present affinity neither limits that of threads nor may change.
  Status status;
  std::thread([&] {
    for (const int cpu : cpus) {
      if (status) status = stay_on(cpu);
    }
  }).join();
  return status;
}

Status stay_on(int cpu) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(static_cast<size_t>(cpu), &cpus);
  const int error = pthread_setaffinity_np(pthread_self(), sizeof cpus, &cpus);
  if (error == 0) return {};
  return fail(
      "--cores: CPU " + std::to_string(cpu) + " is not available to this process: " + std::strerror(error),
      error);
}

}  // namespace roci::perf

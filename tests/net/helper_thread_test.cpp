// A device whose helper thread cannot be started (ulimit -u, pids.max) is not created. Only child processes start DPDK.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>

#include "port/dpdk/eal.hpp"
#include "support/hosts/shm_hosts.hpp"
#include "support/process/child.hpp"

namespace roci::test {
namespace {

// The limit does not apply to processes of root.
bool forbid_threads() {
  constexpr uid_t kNobody = 65534;
  const rlimit none{};
  return setrlimit(RLIMIT_NPROC, &none) == 0 && (geteuid() != 0 || setresuid(kNobody, kNobody, kNobody) == 0);
}

TEST(HelperThread, creation_of_a_device_fails_if_the_thread_cannot_be_started) {
  for (const uint32_t workers : {1U, 2U}) {  // WaitingHelper, PollingHelper
    const Child child{[&] {
      must(start_eal({.memory_mib = 128}));
      const auto port = must(ShmPort::open(must(ShmSegment::create()), shm_port_config(0, 2)));
      DeviceConfig config = shm_device_config(0);
      config.progress = Progress::kApplication;
      config.workers = workers;
      if (!create_device(std::make_unique<BorrowedPort>(*port), config)) return false;
      if (!forbid_threads()) return false;
      const auto device = create_device(std::make_unique<BorrowedPort>(*port), config);
      return !device && device.error().code == EAGAIN &&
             device.error().message.find("thread cannot be started") != std::string::npos;
    }};
    EXPECT_TRUE(child.done()) << workers;
  }
}

}  // namespace
}  // namespace roci::test

#include "base/os/scheduling.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <thread>

namespace roci {
namespace {

ptrdiff_t open_files() { return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}); }

TEST(OwnWaitTime, leaves_no_file_open) {
  const ptrdiff_t before = open_files();
  for (int i = 0; i < 20; ++i) std::thread([] { EXPECT_GE(own_wait_time(), Nanos{0}); }).join();
  EXPECT_EQ(open_files(), before);
}

TEST(IsStopped, reads_the_state_of_a_process) {
  EXPECT_FALSE(is_stopped(getpid()));
  EXPECT_FALSE(is_stopped(0x7fffffff)) << "a process that does not exist";
}

}  // namespace
}  // namespace roci

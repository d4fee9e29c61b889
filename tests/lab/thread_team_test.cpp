#include "lab/execution/thread_team.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <vector>

namespace roci::lab {
namespace {

TEST(ThreadTeam, runs_each_iteration_once_in_each_of_many_loops) {
  ThreadTeam team(4);
  for (size_t loop = 0; loop < 2000; ++loop) {
    const size_t count = loop % 9;
    std::vector<int> runs(count);  // not atomic: the end of a loop is visible to the caller
    team.parallel_for(count, [&](size_t i) { ++runs[i]; });
    ASSERT_EQ(runs, std::vector<int>(count, 1)) << "loop " << loop;
  }
}

// Each iteration waits for all others, so they must run in as many threads.
TEST(ThreadTeam, uses_the_requested_number_of_threads) {
  constexpr unsigned kThreads = 3;
  ThreadTeam team(kThreads);
  std::atomic<unsigned> arrived = 0;
  std::mutex mutex;
  std::set<std::thread::id> ids;
  team.parallel_for(kThreads, [&](size_t) {
    ++arrived;
    while (arrived < kThreads) std::this_thread::yield();
    const std::lock_guard lock(mutex);
    ids.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(ids.size(), kThreads);
}

TEST(ThreadTeam, one_thread_is_the_caller) {
  ThreadTeam team(1);
  std::set<std::thread::id> ids;
  team.parallel_for(5, [&](size_t) { ids.insert(std::this_thread::get_id()); });
  EXPECT_EQ(ids, std::set{std::this_thread::get_id()});
}

}  // namespace
}  // namespace roci::lab

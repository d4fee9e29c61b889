// With ThreadSanitizer: packet pools whose locks it knows. It does not know the synchronization in DPDK's rings.
#include <gtest/gtest.h>

#include "port/dpdk/eal.hpp"
#include "support/must.hpp"
#include "support/ports/locked_pool.hpp"
#include "support/sanitizer.hpp"

namespace roci::test {
namespace {

class LockedPools final : public testing::Environment {
  void SetUp() override {
    if (!kThreadSanitizer) return;
    must(start_eal({.memory_mib = 8192}));  // as the lab does
    use_locked_pools();
  }
};

[[maybe_unused]] const testing::Environment* const installed =
    testing::AddGlobalTestEnvironment(new LockedPools);

}  // namespace
}  // namespace roci::test

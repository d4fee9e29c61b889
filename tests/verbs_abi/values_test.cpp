// Tests of functions that only map values: over the whole range, the results equal those of the installed library.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <climits>
#include <string>

#include "verbs_abi/library.hpp"

namespace roci {
namespace {

using Text = const char*(int);
using Number = int(int);

class EnumText : public testing::TestWithParam<const char*> {};

TEST_P(EnumText, matches_installed_library) {
  auto* ours_of = ours().get<Text>(GetParam());
  auto* theirs_of = installed().get<Text>(GetParam());
  for (int value = -3; value < 100; ++value) EXPECT_STREQ(ours_of(value), theirs_of(value)) << value;
  EXPECT_STREQ(ours_of(INT_MIN), theirs_of(INT_MIN));
  EXPECT_STREQ(ours_of(INT_MAX), theirs_of(INT_MAX));
}

INSTANTIATE_TEST_SUITE_P(Enumerators, EnumText,
                         testing::Values("ibv_node_type_str", "ibv_port_state_str", "ibv_event_type_str",
                                         "ibv_wc_status_str"),
                         [](const auto& one) { return std::string(one.param); });

// rdma-core 44 has no such function. The names are those that version 56 returns.
TEST(Opcodes, have_names_of_rdma_core_56) {
  auto* ours_of = ours().get<Text>("ibv_wr_opcode_str");
  EXPECT_STREQ(ours_of(IBV_WR_RDMA_WRITE), "rdma-write");
  EXPECT_STREQ(ours_of(IBV_WR_SEND_WITH_INV), "send-with-inv");
  EXPECT_STREQ(ours_of(15), "atomic-write");
  for (const int unknown : {-1, 16, INT_MIN, INT_MAX}) EXPECT_STREQ(ours_of(unknown), "unknown") << unknown;
  if (!installed().has("ibv_wr_opcode_str")) return;
  auto* theirs_of = installed().get<Text>("ibv_wr_opcode_str");
  for (int value = -3; value < 100; ++value) EXPECT_STREQ(ours_of(value), theirs_of(value)) << value;
}

struct Range {
  const char* name;
  int last;
};

class Rates : public testing::TestWithParam<Range> {};

TEST_P(Rates, match_installed_library) {
  auto* ours_of = ours().get<Number>(GetParam().name);
  auto* theirs_of = installed().get<Number>(GetParam().name);
  int known = 0;
  for (int value = -3; value <= GetParam().last; ++value) {
    const int theirs = theirs_of(value);
    known += theirs > 0 ? 1 : 0;
    ASSERT_EQ(ours_of(value), theirs) << value;
  }
  EXPECT_GT(known, 10);  // The range includes the valid values.
  EXPECT_EQ(ours_of(INT_MIN), theirs_of(INT_MIN));
  EXPECT_EQ(ours_of(INT_MAX), theirs_of(INT_MAX));
}

INSTANTIATE_TEST_SUITE_P(Conversions, Rates,
                         testing::Values(Range{"ibv_rate_to_mult", 300}, Range{"ibv_rate_to_mbps", 300},
                                         Range{"mult_to_ibv_rate", 2000},
                                         Range{"mbps_to_ibv_rate", 1'500'000}),
                         [](const auto& one) { return std::string(one.param.name); });

TEST(Fork, requires_no_preparation) {
  EXPECT_EQ(ours().get<int()>("ibv_fork_init")(), 0);
  EXPECT_EQ(ours().get<int()>("ibv_is_fork_initialized")(), IBV_FORK_UNNEEDED);
  EXPECT_EQ(ours().get<int(void*, size_t)>("ibv_dontfork_range")(nullptr, 4096), 0);
  EXPECT_EQ(ours().get<int(void*, size_t)>("ibv_dofork_range")(nullptr, 4096), 0);
}

}  // namespace
}  // namespace roci

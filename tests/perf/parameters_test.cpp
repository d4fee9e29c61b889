#include "roci-perf/options/parameters.hpp"

#include <gtest/gtest.h>

namespace roci::perf {
namespace {

TEST(Parameters, json_round_trip_preserves_values) {
  Parameters p;
  p.operation = Operation::kRead;
  p.mode = Mode::kLatency;
  p.sizes = {2, 4, 8};
  p.duration = 1.5;
  p.mtu = 2048;
  p.verify = true;
  p.seed = UINT64_MAX;
  const auto again = parameters_from_json(Json::parse(to_json(p).dump()));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(to_json(*again), to_json(p));
}

// Parameters from the peer are validated like those from the command line.
TEST(Parameters, validates_parameters_of_the_peer) {
  const auto refusal = [](const char* key, Json value) {
    Json json = to_json(Parameters{});
    json[key] = std::move(value);
    const auto p = parameters_from_json(json);
    return p ? std::string("(accepted)") : p.error().message;
  };
  EXPECT_NE(refusal("queue_pairs", 0).find("--qp is 0"), std::string::npos);
  EXPECT_NE(refusal("queue_pairs", 200000).find("--qp is 200000"), std::string::npos);
  EXPECT_NE(refusal("sizes", Json::array()).find("a message size is required"), std::string::npos);
  EXPECT_NE(refusal("sizes", {0}).find("--size is 0"), std::string::npos);
  EXPECT_NE(refusal("mtu", 1500).find("--mtu is 1500"), std::string::npos);
  EXPECT_NE(refusal("tx_depth", 0).find("--tx-depth"), std::string::npos);
  EXPECT_NE(refusal("operation", "fly").find("fly"), std::string::npos);
  EXPECT_NE(refusal("sizes", "many").find("invalid parameters of the peer"), std::string::npos);
  EXPECT_NE(refusal("sizes", std::vector<int>(100, 8)).find("at most 64"), std::string::npos);
  EXPECT_NE(refusal("duration", -1).find("--duration"), std::string::npos);
}

TEST(Parameters, client_values_apply_where_server_has_none) {
  Parameters mine, theirs;
  theirs.sizes = {8};
  theirs.queue_pairs = 4;
  theirs.verify = true;
  const auto agreed = agree(mine, {}, theirs);
  ASSERT_TRUE(agreed);
  EXPECT_EQ(to_json(*agreed), to_json(theirs));
}

TEST(Parameters, server_mtu_applies_if_client_has_none) {
  Parameters mine, theirs;
  mine.mtu = 1024;
  EXPECT_EQ(agree(mine, {"mtu"}, theirs)->mtu, 1024U);
}

TEST(Parameters, reports_conflicting_values) {
  const auto refusal = [](auto change, const std::set<std::string>& given) {
    Parameters mine, theirs;
    change(mine);
    const auto agreed = agree(mine, given, theirs);
    return agreed ? std::string("(accepted)") : agreed.error().message;
  };
  EXPECT_NE(refusal([](Parameters& p) { p.operation = Operation::kSend; }, {})
                .find("\"send bw\" and the client \"write bw\""),
            std::string::npos);
  EXPECT_NE(refusal([](Parameters& p) { p.sizes = {8}; }, {"size"})
                .find("--size is 8 on the server and 65536 on the client"),
            std::string::npos);
  EXPECT_NE(refusal([](Parameters& p) { p.queue_pairs = 2; }, {"qp"}).find("--qp is 2 on the server and 1"),
            std::string::npos);
  EXPECT_NE(refusal([](Parameters& p) { p.verify = true; }, {"verify"}).find("--verify"), std::string::npos);
  EXPECT_EQ(refusal([](Parameters& p) { p.queue_pairs = 2; }, {}), "(accepted)");
}

TEST(Parameters, large_sizes_default_to_fewer_iterations) {
  Parameters p;
  EXPECT_EQ(p.iterations_for(2), 5000U);
  EXPECT_EQ(p.iterations_for(1 << 23), 128U);
  EXPECT_EQ(p.iterations_for(1 << 30), 16U);
  p.iterations_given = true;
  EXPECT_EQ(p.iterations_for(1 << 23), 5000U);
}

// With --verify, every outstanding message has a separate slot. Slots do not overlap, and at least one exists.
TEST(Layout, slots_fit_memory_budget) {
  for (const bool verify : {false, true}) {
    for (const Operation operation : {Operation::kWrite, Operation::kRead, Operation::kSend}) {
      for (uint64_t size = 1; size <= kLargestMessage; size *= 3) {
        Parameters p;
        p.verify = verify;
        p.operation = operation;
        const Layout layout = layout_for(p, size);
        EXPECT_GE(layout.stride, size);
        EXPECT_EQ(layout.stride % 64, 0U);
        EXPECT_GE(layout.out_slots, 1U);
        EXPECT_GE(layout.in_slots, 1U);
        EXPECT_LE(layout.out_slots, p.tx_depth);
        EXPECT_LE(layout.queue_pair_bytes(), std::max<uint64_t>(uint64_t{64} << 20, 2 * layout.stride));
      }
    }
  }
  Parameters p;
  p.verify = true;
  EXPECT_EQ(layout_for(p, 65536).out_slots, 128U);
}

}  // namespace
}  // namespace roci::perf

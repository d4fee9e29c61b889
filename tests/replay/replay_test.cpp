// Captures of another stack are sent to Rocinante's responder, whose responses must be the recorded ones.
#include "replay/replay.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "replay/lines.hpp"

namespace roci::test {
namespace {

// Captures without losses and NAKs.
constexpr const char* kUndisturbed[] = {"send",       "send_imm",   "write",   "write_imm",   "write_big",
                                        "read",       "read_big",   "mtu4096", "rc_pingpong", "ce_marked",
                                        "atomic_cas", "atomic_faa", "rping",   "ucmatose"};
// Captures with losses or NAKs.
constexpr const char* kDisturbed[] = {"rnr",        "rnr_exceeded", "corrupt",           "drop_request",
                                      "drop_nak",   "drop_ack",     "drop_last_ack",     "drop_read_request",
                                      "loss_write", "dup_requests", "drop_read_response"};

class Replay : public testing::TestWithParam<const char*> {};

TEST_P(Replay, sends_same_responses_as_recorded) {
  const auto exchanges = load_exchanges(GetParam());
  // In ibv_rc_pingpong and rping both peers send requests, in ucmatose on two connections; otherwise only one does.
  const std::string name = GetParam();
  ASSERT_EQ(exchanges.size(), name == "ucmatose" ? 4U : name == "rc_pingpong" || name == "rping" ? 2U : 1U);
  for (const Exchange& exchange : exchanges) {
    const auto complaints = replay(exchange, known_differences());
    EXPECT_TRUE(complaints.empty()) << joined(complaints);
  }
}

INSTANTIATE_TEST_SUITE_P(undisturbed, Replay, testing::ValuesIn(kUndisturbed),
                         [](const auto& tested) { return std::string(tested.param); });
INSTANTIATE_TEST_SUITE_P(disturbed, Replay, testing::ValuesIn(kDisturbed),
                         [](const auto& tested) { return std::string(tested.param); });

class BurstReplay : public testing::TestWithParam<const char*> {};

// A batch of requests gets one acknowledgment, and the last one must equal the last recorded one.
TEST_P(BurstReplay, last_response_equals_recorded_response) {
  for (const Exchange& exchange : load_exchanges(GetParam())) {
    const auto complaints = replay_in_bursts(exchange, known_differences());
    EXPECT_TRUE(complaints.empty()) << joined(complaints);
  }
}

INSTANTIATE_TEST_SUITE_P(undisturbed, BurstReplay, testing::ValuesIn(kUndisturbed),
                         [](const auto& tested) { return std::string(tested.param); });

TEST(ReplayTable, lists_only_replayed_captures) {
  for (const Difference& d : known_differences()) {
    const auto is = [&](const char* capture) { return d.capture == capture; };
    EXPECT_TRUE(std::ranges::any_of(kUndisturbed, is) || std::ranges::any_of(kDisturbed, is)) << d.capture;
    EXPECT_FALSE(d.why.empty());
  }
}

// Verifies the comparison: a changed recording must be reported.
TEST(ReplayCheck, reports_differing_field) {
  Exchange exchange = load_exchanges("write").at(0);
  RecordedFrame& ack = exchange.frames.at(3);
  ASSERT_FALSE(ack.is_request());
  ack.packet.aeth->msn = Msn{77};
  ack.packet.finish();
  const auto complaints = replay(exchange, known_differences());
  ASSERT_EQ(complaints.size(), 2U) << joined(complaints);
  EXPECT_EQ(complaints[0], "write frame 4: RC_ACK 15704417 1f: theirs and ours differ in aeth.msn: 77 and 1");
  EXPECT_NE(complaints[1].find("icrc"), std::string::npos) << complaints[1];
}

TEST(ReplayCheck, reports_missing_and_extra_responses) {
  Exchange exchange = load_exchanges("write").at(0);
  const RecordedFrame last = exchange.frames.back();
  exchange.frames.pop_back();
  EXPECT_EQ(replay(exchange, {}),
            std::vector<std::string>{"write frame 39: we answer RC_ACK 15704444 1f, they do not"});
  exchange.frames.push_back(last);
  exchange.frames.push_back(last);
  EXPECT_EQ(replay(exchange, {}),
            std::vector<std::string>{"write frame 40: we do not answer RC_ACK 15704444 1f"});
}

TEST(ReplayCheck, reports_differing_memory) {
  Exchange exchange = load_exchanges("write").at(0);
  // The model gets a different payload than the host.
  RecordedFrame& middle = exchange.frames.at(37);
  ASSERT_EQ(middle.packet.bth.opcode, Opcode::kRcWriteMiddle);
  middle.packet.payload.at(5) ^= 1;
  middle.packet.finish();
  const auto complaints = replay(exchange, {});
  ASSERT_EQ(complaints.size(), 1U) << joined(complaints);
  EXPECT_EQ(complaints[0], "write frame 0: region 1765 differs at byte 1029");
}

TEST(ReplayCheck, reports_unneeded_table_entry) {
  const Difference unneeded{"write", Difference::Kind::kTheirsOnly, 1, "RC_ACK 1 1f", {}, "for this test"};
  EXPECT_EQ(replay(load_exchanges("write").at(0), {&unneeded, 1}),
            std::vector<std::string>{"write frame 1: the entry in the list of differences is not needed"});
}

}  // namespace
}  // namespace roci::test

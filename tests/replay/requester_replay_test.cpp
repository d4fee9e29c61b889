// Rocinante's requester gets the work requests and responses of a recorded one, and must send the same packets.
#include "replay/requester_replay.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "replay/lines.hpp"

namespace roci::test {
namespace {

const std::set<std::string> kCaptures = {"atomic_cas",
                                         "atomic_faa",
                                         "ce_marked",
                                         "corrupt",
                                         "drop_ack",
                                         "drop_last_ack",
                                         "drop_nak",
                                         "drop_read_request",
                                         "drop_read_response",
                                         "drop_request",
                                         "dup_requests",
                                         "loss_write",
                                         "mtu4096",
                                         "rc_pingpong",
                                         "read",
                                         "read_big",
                                         "retry_exceeded",
                                         "rnr",
                                         "rnr_exceeded",
                                         "rping",
                                         "send",
                                         "send_imm",
                                         "ucmatose",
                                         "write",
                                         "write_big",
                                         "write_imm"};

std::vector<Exchange> exchanges_of(const std::string& capture) {
  return load_exchanges(capture, Unanswered::kToo);
}

Lines replay_all(const std::string& capture, const RequesterTables& tables) {
  Lines all;
  for (const Exchange& exchange : exchanges_of(capture)) {
    const Lines complaints = replay_to_requester(exchange, tables);
    all.insert(all.end(), complaints.begin(), complaints.end());
  }
  return all;
}

class RequesterReplay : public testing::TestWithParam<std::string> {};

TEST_P(RequesterReplay, sends_same_requests_as_recorded) {
  const Lines complaints = replay_all(GetParam(), known_requester_tables());
  EXPECT_TRUE(complaints.empty()) << joined(complaints);
}

INSTANTIATE_TEST_SUITE_P(captures, RequesterReplay, testing::ValuesIn(kCaptures),
                         [](const auto& tested) { return tested.param; });

TEST(RequesterReplayList, contains_every_capture_with_reliable_requests) {
  EXPECT_EQ(captures_of_reliable_connections(), kCaptures);
}

TEST(RequesterReplayTables, have_reasons_and_list_only_replayed_captures) {
  for (const RequestDifference& d : request_differences()) {
    EXPECT_TRUE(kCaptures.contains(std::string(d.capture))) << d.capture;
    EXPECT_FALSE(d.why.empty());
  }
  for (const RequestHabit& h : request_habits()) {
    EXPECT_TRUE(kCaptures.contains(std::string(h.capture))) << h.capture;
    EXPECT_FALSE(h.why.empty());
    EXPECT_GT(h.count, 0);
  }
}

template <class Entry>
std::vector<Entry> without(std::span<const Entry> table, size_t index) {
  std::vector<Entry> rest(table.begin(), table.end());
  rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(index));
  return rest;
}

TEST(RequesterReplayTables, have_no_unneeded_entry) {
  const auto [differences, habits] = known_requester_tables();
  for (size_t i = 0; i < differences.size(); ++i) {
    const auto rest = without(differences, i);
    EXPECT_FALSE(replay_all(std::string(differences[i].capture), {rest, habits}).empty())
        << differences[i].capture << " frame " << differences[i].frame;
  }
  for (size_t i = 0; i < habits.size(); ++i) {
    const auto rest = without(habits, i);
    EXPECT_FALSE(replay_all(std::string(habits[i].capture), {differences, rest}).empty())
        << habits[i].capture;
  }
}

// Verifies the comparison: a changed recording must be reported.
class RequesterReplayCheck : public testing::Test {
 protected:
  void load(const std::string& capture) { exchange_ = exchanges_of(capture).at(0); }
  RecordedFrame& frame(int number) {
    return *std::ranges::find(exchange_.frames, number, &RecordedFrame::number);
  }
  void change(int number, const std::function<void(Packet&)>& how) {
    RecordedFrame& changed = frame(number);
    how(changed.packet);
    changed.packet.finish();
    changed.bytes = encode_packet(changed.packet);
  }
  void lose(int number) {
    std::erase_if(exchange_.frames, [&](const RecordedFrame& f) { return f.number == number; });
  }
  Lines complaints() { return replay_to_requester(exchange_, known_requester_tables()); }
  static bool has(const Lines& lines, const std::string& line) {
    return std::ranges::find(lines, line) != lines.end();
  }

  Exchange exchange_;
};

TEST_F(RequesterReplayCheck, reports_differing_byte_of_retransmitted_packet) {
  load("drop_request");
  change(8, [](Packet& p) { p.payload.at(3) ^= 1; });
  const Lines lines = complaints();
  ASSERT_EQ(lines.size(), 2U) << joined(lines);
  EXPECT_EQ(lines[0], "drop_request frame 8: RC_WRITE_MIDDLE 1002: theirs and ours differ in data.payload");
  EXPECT_NE(lines[1].find("data.icrc"), std::string::npos) << lines[1];
}

TEST_F(RequesterReplayCheck, reports_differing_header_field) {
  load("drop_read_response");
  change(9, [](Packet& p) { p.reth->va += 8; });
  EXPECT_TRUE(has(complaints(),
                  "drop_read_response frame 9: RC_READ_REQUEST 1002: theirs and ours differ in reth.va: "
                  "0x00007fc1b5e7f808 and 0x00007fc1b5e7f800"));
}

TEST_F(RequesterReplayCheck, reports_missing_and_extra_requests) {
  load("write");
  const RecordedFrame last = frame(39);
  exchange_.frames.push_back(last);
  EXPECT_EQ(complaints(), Lines{"write frame 39: we do not send RC_WRITE_LAST 15704444"});
  load("drop_request");
  lose(10);
  EXPECT_EQ(complaints(), (Lines{"drop_request frame 9: behind it we send RC_WRITE_LAST 1004, they do not",
                                 "drop_request frame 0: ip.ecn differs in 3 packets, in the table in 4"}));
}

TEST_F(RequesterReplayCheck, reports_retransmissions_after_a_lost_acknowledgment) {
  load("write");
  lose(40);
  const Lines lines = complaints();
  EXPECT_TRUE(has(lines, "write frame 39: behind it we send RC_WRITE_FIRST 15704442, they do not"))
      << joined(lines);
  EXPECT_TRUE(has(lines, "write frame 0: request 10 ends with status 12 instead of 0")) << joined(lines);
}

TEST_F(RequesterReplayCheck, reports_retransmission_from_another_psn) {
  load("drop_request");
  change(6, [](Packet& p) { p.bth.psn = Psn{1002}; });
  EXPECT_TRUE(
      has(complaints(),
          "drop_request frame 7: RC_WRITE_MIDDLE 1001: theirs and ours differ in bth.psn: 1001 and 1002"));
}

TEST_F(RequesterReplayCheck, reports_retransmission_at_another_time) {
  load("drop_request");
  for (const int number : {7, 8, 9, 10, 11}) frame(number).at += 2ms;
  EXPECT_EQ(complaints(), Lines{"drop_request frame 7: RC_WRITE_MIDDLE 1001: theirs and ours differ in time: "
                                "4789 us and 1951 us"});
}

TEST_F(RequesterReplayCheck, reports_differing_completion_status) {
  load("write");
  change(40, [](Packet& p) { p.aeth->syndrome = 0x62; });
  EXPECT_EQ(complaints(), (Lines{"write frame 0: request 10 ends with status 10 instead of 0",
                                 "write frame 0: the queue pair ends in state 6"}));
}

TEST_F(RequesterReplayCheck, reports_read_data_differing_from_recorded_responses) {
  load("drop_read_response");
  change(12, [](Packet& p) { p.payload.at(100) ^= 1; });
  EXPECT_EQ(complaints(),
            Lines{"drop_read_response frame 0: request 1 brings other data than the recorded responses"});
}

TEST_F(RequesterReplayCheck, reports_packet_that_is_not_a_duplicate) {
  load("dup_requests");
  change(2, [](Packet& p) { ++p.v4().id; });
  EXPECT_EQ(complaints(), Lines{"dup_requests frame 2: it is no duplicate"});
}

TEST_F(RequesterReplayCheck, reports_unneeded_entries_and_wrong_counts) {
  load("read");
  const RequestDifference unneeded{"read", RequestDifference::Kind::kTheirsOnly, 1, "RC_SEND_ONLY 1", {}, ""};
  const RequestHabit rare{"read",         RequestHabit::Field::kEcn, 0, 2, RequestHabit::Where::kSentAgain, 1,
                          "for this test"};
  EXPECT_EQ(replay_to_requester(exchange_, {{&unneeded, 1}, {&rare, 1}}),
            (Lines{"read frame 1: the entry in the list of differences is not needed",
                   "read frame 0: ip.ecn differs in 0 packets, in the table in 1"}));
}

}  // namespace
}  // namespace roci::test

// Our requester is given what the recorded one was given, and must send what it sent.
#include "replay/requester_replay.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

namespace roci::test {
namespace {

std::string joined(const std::vector<std::string>& lines) {
  std::string all;
  for (const std::string& line : lines) all += line + "\n";
  return all;
}

constexpr const char* kCaptures[] = {"atomic_cas",        "atomic_faa",         "ce_marked",    "corrupt",
                                     "drop_ack",          "drop_last_ack",      "drop_nak",     "drop_read_request",
                                     "drop_read_response", "drop_request",      "dup_requests", "loss_write",
                                     "mtu4096",           "rc_pingpong",        "read",         "read_big",
                                     "retry_exceeded",    "rnr",                "rnr_exceeded", "rping",
                                     "send",              "send_imm",           "ucmatose",     "write",
                                     "write_big",         "write_imm"};

class RequesterReplay : public testing::TestWithParam<const char*> {};

TEST_P(RequesterReplay, sends_what_the_other_stack_sent) {
  for (const Exchange& exchange : load_exchanges(GetParam(), Unanswered::kToo)) {
    const auto complaints = replay_to_requester(exchange, known_requester_tables());
    EXPECT_TRUE(complaints.empty()) << joined(complaints);
  }
}

INSTANTIATE_TEST_SUITE_P(captures, RequesterReplay, testing::ValuesIn(kCaptures),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace roci::test

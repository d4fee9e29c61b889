#include "replay/differences.hpp"

namespace roci::test {
namespace {

using Kind = Difference::Kind;

constexpr std::string_view kLossMadeOnPurpose = "the capture shows a loss made on purpose, at this packet";
constexpr std::string_view kNakAfterRnr =
    "rxe names the refused PSN again in a NAK when the packets behind it arrive; they are dropped in silence "
    "(IBTA 9.7.5.2.8), since the requester already knows";
constexpr std::string_view kReplayStartsWithFirst =
    "a repeated READ is answered as a message of its own, FIRST to LAST; rxe goes on with MIDDLE";
constexpr std::string_view kReplayKeepsItsMsn =
    "the responses of a repeated READ carry the MSN they had the first time; rxe puts the current one";
constexpr std::string_view kMarksAreEchoed =
    "an acknowledgement says with BECN that what it acknowledges was marked CE; the standard allows it and "
    "rxe, which "
    "ignores the bit, does not";
constexpr std::string_view kSendsCnps =
    "the responder answers marked packets with CNPs (A17.9.3), at most one in 4 us for each queue pair; rxe "
    "sends none";

const std::vector<Difference> kDifferences = {
    {"drop_request", Kind::kNotDelivered, 2, "", {}, kLossMadeOnPurpose},
    {"drop_nak", Kind::kNotDelivered, 2, "", {}, kLossMadeOnPurpose},
    {"drop_nak", Kind::kAnswerLost, 3, "RC_ACK 1001 60", {}, kLossMadeOnPurpose},
    {"drop_ack", Kind::kAnswerLost, 2, "RC_ACK 1001 1f", {}, kLossMadeOnPurpose},
    {"drop_last_ack", Kind::kAnswerLost, 2, "RC_ACK 1001 1f", {}, kLossMadeOnPurpose},
    {"drop_read_request", Kind::kNotDelivered, 1, "", {}, kLossMadeOnPurpose},
    {"drop_read_response", Kind::kAnswerLost, 1, "RC_READ_RESP_MIDDLE 1002", {}, kLossMadeOnPurpose},
    {"drop_read_response",
     Kind::kFields,
     11,
     "RC_READ_RESP_MIDDLE 1002",
     {"ip.ecn: 0 and 2", "bth.opcode: 0x0e and 0x0d", "aeth.syndrome: absent and 0x1f",
      "aeth.msn: absent and 1"},
     kReplayStartsWithFirst},
    {"drop_read_response",
     Kind::kFields,
     14,
     "RC_READ_RESP_LAST 1005 1f",
     {"ip.ecn: 0 and 2", "aeth.msn: 2 and 1"},
     kReplayKeepsItsMsn},
    {"ce_marked", Kind::kFields, 4, "RC_ACK 1002 1f", {"bth.becn: 0 and 1"}, kMarksAreEchoed},
    {"ce_marked", Kind::kFields, 11, "RC_ACK 1005 1f", {"bth.becn: 0 and 1"}, kMarksAreEchoed},
    {"ce_marked", Kind::kFields, 12, "RC_ACK 1008 1f", {"bth.becn: 0 and 1"}, kMarksAreEchoed},
    {"ce_marked", Kind::kFields, 16, "RC_ACK 1011 1f", {"bth.becn: 0 and 1"}, kMarksAreEchoed},
    {"ce_marked", Kind::kOursOnly, 1, "CNP 0", {}, kSendsCnps},
    {"ce_marked", Kind::kOursOnly, 3, "CNP 0", {}, kSendsCnps},
    {"ce_marked", Kind::kOursOnly, 6, "CNP 0", {}, kSendsCnps},
    {"ce_marked", Kind::kOursOnly, 8, "CNP 0", {}, kSendsCnps},
    {"ce_marked", Kind::kOursOnly, 10, "CNP 0", {}, kSendsCnps},
    {"ce_marked", Kind::kOursOnly, 14, "CNP 0", {}, kSendsCnps},
    {"dup_requests", Kind::kFields, 13, "RC_ATOMIC_ACK 1002 1f", {"ip.ecn: 0 and 2"}, kRepeatedIsEct},
    {"dup_requests", Kind::kFields, 16, "RC_READ_RESP_FIRST 1003 1f", {"ip.ecn: 0 and 2"}, kRepeatedIsEct},
    {"dup_requests", Kind::kFields, 17, "RC_READ_RESP_LAST 1004 1f", {"ip.ecn: 0 and 2"}, kRepeatedIsEct},
    {"drop_read_response",
     Kind::kFields,
     12,
     "RC_READ_RESP_MIDDLE 1003",
     {"ip.ecn: 0 and 2"},
     kRepeatedIsEct},
    {"drop_read_response",
     Kind::kFields,
     13,
     "RC_READ_RESP_MIDDLE 1004",
     {"ip.ecn: 0 and 2"},
     kRepeatedIsEct},
    {"drop_read_response",
     Kind::kFields,
     15,
     "RC_READ_RESP_ONLY 1006 1f",
     {"ip.ecn: 0 and 2"},
     kRepeatedIsEct},
    {"rnr", Kind::kTheirsOnly, 6, "RC_ACK 1000 60", {}, kNakAfterRnr},
    {"rnr", Kind::kTheirsOnly, 12, "RC_ACK 1000 60", {}, kNakAfterRnr},
    {"rnr", Kind::kTheirsOnly, 18, "RC_ACK 1000 60", {}, kNakAfterRnr},
    {"rnr", Kind::kTheirsOnly, 24, "RC_ACK 1000 60", {}, kNakAfterRnr},
    {"rnr", Kind::kTheirsOnly, 30, "RC_ACK 1000 60", {}, kNakAfterRnr},
    {"rnr", Kind::kTheirsOnly, 36, "RC_ACK 1000 60", {}, kNakAfterRnr},
};

}  // namespace

std::span<const Difference> known_differences() { return kDifferences; }

}  // namespace roci::test

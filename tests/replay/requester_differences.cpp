#include "replay/requester_differences.hpp"

#include "replay/differences.hpp"

namespace roci::test {
namespace {

using RequestKind = RequestDifference::Kind;
using Field = RequestHabit::Field;
using Where = RequestHabit::Where;

constexpr std::string_view kMadeByTheNetwork =
    "the capture shows duplicates made on purpose, with one IPv4 id";
constexpr std::string_view kLostInFront =
    "the packet was lost between the requester and the place of recording";
constexpr std::string_view kDamaged = "the capture shows a packet damaged on purpose, with a wrong ICRC";
constexpr std::string_view kWaitsSilently =
    "rxe sends what is under way after an RNR NAK; nothing is sent before the time that it asks for is over";
constexpr std::string_view kExactTimer = "rxe rounds its timers up to 4 ms, and comes to their work later";
constexpr std::string_view kGapAtOnce =
    "the response behind a gap shows the loss (IBTA 9.7.6.1); rxe waits for one beyond the whole READ";
constexpr std::string_view kOldestAlone =
    "after a time-out rxe sends everything that is not acknowledged again; here the oldest packet is sent "
    "alone, and its answer shows "
    "what else is missing";
constexpr std::string_view kAsksAlways =
    "every packet asks for an acknowledgement, which clocks the sender; rxe asks with the last of a message "
    "and "
    "each 66th";
constexpr std::string_view kMarkedOnTheWay = "the network marked the recorded packets CE";

const std::vector<RequestDifference> kRequestDifferences = {
    {"dup_requests", RequestKind::kDuplicated, 2, "RC_WRITE_FIRST 1000", {}, kMadeByTheNetwork},
    {"dup_requests", RequestKind::kDuplicated, 4, "RC_WRITE_LAST 1001", {}, kMadeByTheNetwork},
    {"dup_requests", RequestKind::kDuplicated, 7, "RC_FETCH_ADD 1002", {}, kMadeByTheNetwork},
    {"dup_requests", RequestKind::kDuplicated, 11, "RC_READ_REQUEST 1003", {}, kMadeByTheNetwork},
    {"dup_requests", RequestKind::kDuplicated, 19, "RC_SEND_ONLY 1005", {}, kMadeByTheNetwork},
    {"loss_write", RequestKind::kNotRecorded, 75, "RC_WRITE_MIDDLE 1074", {}, kLostInFront},
    {"loss_write", RequestKind::kNotRecorded, 107, "RC_WRITE_MIDDLE 1105", {}, kLostInFront},
    {"loss_write", RequestKind::kNotRecorded, 141, "RC_WRITE_MIDDLE 1093", {}, kLostInFront},
    {"loss_write", RequestKind::kNotRecorded, 165, "RC_WRITE_MIDDLE 1118", {}, kLostInFront},
    {"loss_write", RequestKind::kNotRecorded, 186, "RC_WRITE_MIDDLE 1111", {}, kLostInFront},
    {"corrupt", RequestKind::kFields, 2, "RC_WRITE_MIDDLE 1001", {"data.payload"}, kDamaged},
    {"rnr", RequestKind::kTheirsOnly, 5, "RC_SEND_ONLY 1003", {}, kWaitsSilently},
    {"drop_read_response",
     RequestKind::kFields,
     9,
     "RC_READ_REQUEST 1002",
     {"behind frame: 8 and 5", "time: 3290 us and 1934 us"},
     kGapAtOnce},
    {"drop_last_ack",
     RequestKind::kFields,
     3,
     "RC_SEND_FIRST 1000",
     {"time: 70192 us and 67110 us"},
     kExactTimer},
    {"drop_read_request",
     RequestKind::kFields,
     2,
     "RC_READ_REQUEST 1000",
     {"time: 68524 us and 67110 us"},
     kExactTimer},
    {"retry_exceeded",
     RequestKind::kFields,
     5,
     "RC_WRITE_FIRST 1000",
     {"time: 135375 us and 134219 us"},
     kExactTimer},
    {"retry_exceeded",
     RequestKind::kFields,
     7,
     "RC_WRITE_FIRST 1000",
     {"time: 203370 us and 201328 us"},
     kExactTimer},
    {"rnr", RequestKind::kFields, 7, "RC_SEND_FIRST 1000", {"time: 11397 us and 2002 us"}, kExactTimer},
    {"rnr", RequestKind::kFields, 13, "RC_SEND_FIRST 1000", {"time: 21429 us and 13279 us"}, kExactTimer},
    {"rnr", RequestKind::kFields, 19, "RC_SEND_FIRST 1000", {"time: 29411 us and 23047 us"}, kExactTimer},
    {"rnr", RequestKind::kFields, 25, "RC_SEND_FIRST 1000", {"time: 37408 us and 31067 us"}, kExactTimer},
    {"rnr", RequestKind::kFields, 31, "RC_SEND_FIRST 1000", {"time: 45302 us and 39587 us"}, kExactTimer},
    {"rnr", RequestKind::kFields, 37, "RC_SEND_FIRST 1000", {"time: 53501 us and 46847 us"}, kExactTimer},
    {"rnr_exceeded",
     RequestKind::kFields,
     3,
     "RC_SEND_ONLY 1000",
     {"time: 13483 us and 1906 us"},
     kExactTimer},
    {"rnr_exceeded",
     RequestKind::kFields,
     5,
     "RC_SEND_ONLY 1000",
     {"time: 21122 us and 15398 us"},
     kExactTimer},
    {"drop_last_ack", RequestKind::kTheirsOnly, 4, "RC_SEND_LAST 1001", {}, kOldestAlone},
    {"drop_nak", RequestKind::kTheirsOnly, 8, "RC_WRITE_MIDDLE 1002", {}, kOldestAlone},
    {"drop_nak", RequestKind::kTheirsOnly, 9, "RC_WRITE_MIDDLE 1003", {}, kOldestAlone},
    {"drop_nak", RequestKind::kTheirsOnly, 10, "RC_WRITE_LAST 1004", {}, kOldestAlone},
    {"retry_exceeded", RequestKind::kTheirsOnly, 4, "RC_WRITE_LAST 1001", {}, kOldestAlone},
    {"retry_exceeded", RequestKind::kTheirsOnly, 6, "RC_WRITE_LAST 1001", {}, kOldestAlone},
    {"retry_exceeded", RequestKind::kTheirsOnly, 8, "RC_WRITE_LAST 1001", {}, kOldestAlone},
};

const std::vector<RequestHabit> kHabits = {
    {"ce_marked", Field::kEcn, 3, 2, Where::kEverywhere, 12, kMarkedOnTheWay},
    {"ce_marked", Field::kAckRequest, 0, 1, Where::kWithinMessage, 8, kAsksAlways},
    {"corrupt", Field::kAckRequest, 0, 1, Where::kWithinMessage, 5, kAsksAlways},
    {"drop_ack", Field::kAckRequest, 0, 1, Where::kWithinMessage, 1, kAsksAlways},
    {"drop_last_ack", Field::kAckRequest, 0, 1, Where::kWithinMessage, 2, kAsksAlways},
    {"drop_nak", Field::kAckRequest, 0, 1, Where::kWithinMessage, 6, kAsksAlways},
    {"drop_request", Field::kAckRequest, 0, 1, Where::kWithinMessage, 7, kAsksAlways},
    {"dup_requests", Field::kAckRequest, 0, 1, Where::kWithinMessage, 1, kAsksAlways},
    {"loss_write", Field::kAckRequest, 0, 1, Where::kWithinMessage, 185, kAsksAlways},
    {"mtu4096", Field::kAckRequest, 0, 1, Where::kWithinMessage, 2, kAsksAlways},
    {"rc_pingpong", Field::kAckRequest, 0, 1, Where::kWithinMessage, 60, kAsksAlways},
    {"retry_exceeded", Field::kAckRequest, 0, 1, Where::kWithinMessage, 4, kAsksAlways},
    {"rnr", Field::kAckRequest, 0, 1, Where::kWithinMessage, 14, kAsksAlways},
    {"send", Field::kAckRequest, 0, 1, Where::kWithinMessage, 20, kAsksAlways},
    {"send_imm", Field::kAckRequest, 0, 1, Where::kWithinMessage, 8, kAsksAlways},
    {"write", Field::kAckRequest, 0, 1, Where::kWithinMessage, 20, kAsksAlways},
    {"write_big", Field::kAckRequest, 0, 1, Where::kWithinMessage, 196, kAsksAlways},
    {"write_imm", Field::kAckRequest, 0, 1, Where::kWithinMessage, 5, kAsksAlways},
    {"corrupt", Field::kEcn, 0, 2, Where::kSentAgain, 3, kRepeatedIsEct},
    {"drop_last_ack", Field::kEcn, 0, 2, Where::kSentAgain, 1, kRepeatedIsEct},
    {"drop_nak", Field::kEcn, 0, 2, Where::kSentAgain, 2, kRepeatedIsEct},
    {"drop_read_request", Field::kEcn, 0, 2, Where::kSentAgain, 1, kRepeatedIsEct},
    {"drop_read_response", Field::kEcn, 0, 2, Where::kSentAgain, 2, kRepeatedIsEct},
    {"drop_request", Field::kEcn, 0, 2, Where::kSentAgain, 4, kRepeatedIsEct},
    {"loss_write", Field::kEcn, 0, 2, Where::kSentAgain, 79, kRepeatedIsEct},
    {"retry_exceeded", Field::kEcn, 0, 2, Where::kSentAgain, 3, kRepeatedIsEct},
    {"rnr", Field::kEcn, 0, 2, Where::kSentAgain, 23, kRepeatedIsEct},
    {"rnr_exceeded", Field::kEcn, 0, 2, Where::kSentAgain, 2, kRepeatedIsEct},
};

}  // namespace

std::span<const RequestDifference> request_differences() { return kRequestDifferences; }
std::span<const RequestHabit> request_habits() { return kHabits; }

}  // namespace roci::test

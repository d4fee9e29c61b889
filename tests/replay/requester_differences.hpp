// Known differences between Rocinante's requests and the recorded ones, with reasons. An unlisted difference fails
// the replay, and so does an entry that its capture does not need, or does not need as often. docs/interop.md states
// which stack conforms to the specification.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace roci::test {

// One request that differs, or that only one stack sends.
struct RequestDifference {
  enum class Kind : uint8_t {
    kDuplicated,  // the network duplicated the frame before `frame`
    // Rocinante sends `what` after `frame`; the other stack's packet was lost before it could be recorded.
    kNotRecorded,
    kTheirsOnly,  // the other stack sent `frame`, Rocinante sends nothing
    kFields,      // the request differs from the recorded `frame` exactly in `fields`
  };
  std::string_view capture;
  Kind kind;
  int frame;
  std::string_view what;  // format of request_line()
  // Format of packet_differences() and of the replay: recorded value first.
  std::vector<std::string_view> fields;
  std::string_view why;
};

// A difference in every packet of a kind, and its number.
struct RequestHabit {
  enum class Field : uint8_t { kAckRequest, kEcn };
  enum class Where : uint8_t {
    kWithinMessage,  // FIRST and MIDDLE packets
    kSentAgain,      // retransmissions by Rocinante
    kEverywhere,
  };
  std::string_view capture;
  Field field;
  uint8_t theirs, ours;
  Where where;
  int count;  // number of packets
  std::string_view why;
};

std::span<const RequestDifference> request_differences();
std::span<const RequestHabit> request_habits();

}  // namespace roci::test

// Where our requests may differ from the recorded ones, with the reason. A difference that is not here fails the replay,
// and so does an entry that its capture does not need, or not as often. docs/interop.md says who is right.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace roci::test {

// One request, or a request that one side does not send.
struct RequestDifference {
  enum class Kind : uint8_t {
    kDuplicated,  // the network made `frame` out of the one in front of it, to the byte
    kNotRecorded,  // we send `what` behind what was recorded as `frame`; theirs was lost before it was recorded
    kTheirsOnly,  // the other stack sent `frame` and we send nothing
    kFields,      // ours differs from the recorded `frame` exactly in `fields`
  };
  std::string_view capture;
  Kind kind;
  int frame;
  std::string_view what;  // as request_line() says it
  std::vector<std::string_view>
      fields;  // as packet_differences() and the replay say it: recorded value first
  std::string_view why;
};

// What differs in every packet of a kind, and how often that is.
struct RequestHabit {
  enum class Field : uint8_t { kAckRequest, kEcn };
  enum class Where : uint8_t {
    kWithinMessage,  // FIRST and MIDDLE
    kSentAgain,      // by us
    kEverywhere,
  };
  std::string_view capture;
  Field field;
  uint8_t theirs, ours;
  Where where;
  int count;  // packets
  std::string_view why;
};

std::span<const RequestDifference> request_differences();
std::span<const RequestHabit> request_habits();

}  // namespace roci::test

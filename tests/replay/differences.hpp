// Known differences between Rocinante's responses and the recorded ones, with reasons. An unlisted difference fails
// the replay, and so does an entry that its capture does not need. docs/interop.md states which stack conforms to the
// specification.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace roci::test {

// A reason in the tables of both roles.
inline constexpr std::string_view kRepeatedIsEct =
    "what is sent again is marked ECT(0), so that a switch marks it and does not drop it early; rxe leaves "
    "Not-ECT";

struct Difference {
  enum class Kind {
    kNotDelivered,  // request `frame` was recorded, then lost: it is not fed
    kAnswerLost,    // the answer `what` to request `frame` was sent, then lost before it could be recorded
    kTheirsOnly,    // the other stack sent `frame` and we send nothing
    kOursOnly,      // Rocinante answers request `frame` with `what`, and the other stack sends nothing
    kFields,        // our answer differs from the recorded `frame` exactly in the fields of `fields`
  };
  std::string_view capture;
  Kind kind;
  int frame;
  std::string_view what;                 // format of answer_line()
  std::vector<std::string_view> fields;  // format of packet_differences(): recorded value first
  std::string_view why;
};

std::span<const Difference> known_differences();

}  // namespace roci::test

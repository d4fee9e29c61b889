// Where our answers may differ from the recorded ones, one by one and with the reason. A difference that is not here
// fails the replay, and so does an entry that nothing in its capture needs. docs/interop.md says who is right.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace roci::test {

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
  std::string_view what;                 // as answer_line() says it
  std::vector<std::string_view> fields;  // as packet_differences() says it: recorded value first
  std::string_view why;
};

std::span<const Difference> known_differences();

}  // namespace roci::test

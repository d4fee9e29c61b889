// What our decoder reads in a frame, in the names of tshark's fields.
#pragma once

#include <optional>
#include <span>

#include "wireshark/tshark.hpp"

namespace roci::test {

inline constexpr uint16_t kIntPort = 5201;
inline constexpr uint16_t kCnmPort = 4999;

struct OurReading {
  Reading fields;
  // The expert info of who refuses a message of ours, "Malformed INT: uneven stack".
  std::optional<std::string> refused;
};

// Any frame. Of what is refused there are no fields.
OurReading our_reading(std::span<const uint8_t> frame);

// Fields of tshark's own in our readings.
const std::vector<std::string>& standard_fields();

}  // namespace roci::test

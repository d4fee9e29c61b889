// Fields of a frame as decoded by this project, under the names of tshark's fields.
#pragma once

#include <optional>
#include <span>

#include "wireshark/tshark.hpp"

namespace roci::test {

inline constexpr uint16_t kIntPort = 5201;
inline constexpr uint16_t kNotificationPort = 4999;

struct OurReading {
  Reading fields;
  // Expert info for a rejected message, such as "Malformed INT: uneven stack".
  std::optional<std::string> refused;
};

// Decodes any frame. A rejected message has no fields.
OurReading our_reading(std::span<const uint8_t> frame);

// tshark's own fields that our_reading() contains.
const std::vector<std::string>& standard_fields();

}  // namespace roci::test

// How somebody wants to see a snapshot, and the lines that it becomes.
#pragma once

#include <cstdint>
#include <string>

namespace roci::top {

// kName: as the switch has its ports, and queue pairs by number. kQueue: of queue pairs, what they have in flight.
enum class Sort : uint8_t { kName, kTransmit, kQueue, kDrops };
inline constexpr unsigned kSorts = 4;
const char* sort_name(Sort sort);

struct Look {
  size_t width = 80;
  bool classes = true;
  bool queue_pairs = true;
  Sort sort = Sort::kName;
};

struct Line {
  enum class Style : uint8_t { kPlain, kTitle, kHeading, kAlert };
  std::string text;  // at most as wide as the look says, without control characters
  Style style = Style::kPlain;
};

}  // namespace roci::top

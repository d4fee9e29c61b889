// Display options of a snapshot, and the lines of its output.
#pragma once

#include <cstdint>
#include <string>

namespace roci::top {

// kName: ports in the order of the switch, queue pairs by number. kQueue: queue pairs by bytes in flight.
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
  std::string text;  // at most Look::width characters, without control characters
  Style style = Style::kPlain;
};

}  // namespace roci::top

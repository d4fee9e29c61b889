// A snapshot as lines for a terminal of some width: a row for each port and each class of it that has done something, with
// rates since the snapshot before. What is not zero and has no column in this width gets a line of its own below.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "roci-top/snapshot.hpp"

namespace roci::top {

enum class Sort : uint8_t { kName, kTransmit, kQueue, kDrops };  // kName: as the switch has them
inline constexpr unsigned kSorts = 4;
const char* sort_name(Sort sort);

struct Look {
  size_t width = 80;
  bool classes = true;
  Sort sort = Sort::kName;
};

struct Line {
  enum class Style : uint8_t { kPlain, kTitle, kHeading, kAlert };
  std::string text;  // at most as wide as the look says, without control characters
  Style style = Style::kPlain;
};

std::vector<Line> render(const Snapshot& now, const Snapshot& before, const Look& look);

// "0", "999", "12.3k", "4.5M"; thousands, or 1,024s with `binary`. At most 5 characters up to 999 of the largest unit.
std::string short_number(double value, bool binary);
// "[####  |  ]": what there is now, and how far it has been at most.
std::string bar(uint64_t now, uint64_t peak, uint64_t limit, size_t width);
// Without control characters, and cut or filled up with blanks to so many characters.
std::string fitted(const std::string& text, size_t width);

}  // namespace roci::top

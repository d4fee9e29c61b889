// Helpers for the tests of tables.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "roci-top/tables/table.hpp"

namespace roci::top {

inline Counted counted(Nanos at, std::map<std::string, uint64_t> numbers,
                       std::map<std::string, std::string> texts = {}) {
  return {.at = at, .numbers = std::move(numbers), .texts = std::move(texts)};
}

// Returns the rendered text, without blanks at the ends of lines.
inline std::string text_of(const Snapshot& now, const Snapshot& before, const Look& look) {
  std::string out;
  for (const Line& line : render(now, before, look))
    out += line.text.substr(0, line.text.find_last_not_of(' ') + 1) + "\n";
  return out;
}

}  // namespace roci::top

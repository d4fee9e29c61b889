// Deviations from a recording as one text.
#pragma once

#include <string>
#include <vector>

namespace roci::test {

inline std::string joined(const std::vector<std::string>& lines) {
  std::string all;
  for (const std::string& line : lines) all += line + "\n";
  return all;
}

}  // namespace roci::test

// Deviations from a recording, or packets: one line each.
#pragma once

#include <string>
#include <vector>

namespace roci::test {

using Lines = std::vector<std::string>;

inline std::string joined(const Lines& lines) {
  std::string all;
  for (const std::string& line : lines) all += line + "\n";
  return all;
}

}  // namespace roci::test

// What was counted in a capture, and what an index file beside it says should be counted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace roci::pcap_tool {

struct Counts {
  uint64_t roce = 0;
  uint64_t icrc_good = 0;
  uint64_t icrc_bad = 0;
  uint64_t other = 0;                       // frames that are not RoCEv2
  std::map<std::string, uint64_t> opcodes;  // by the name in the opcode table
};

// One sentence for each count in which a capture differs from what was declared for it.
std::vector<std::string> count_differences(const Counts& declared, const Counts& found);

// The rows of an INDEX.md: a Markdown table whose first column is a file name and whose last reads
// "9 RoCEv2, ICRC good 8, bad 1, other frames 0: RC_WRITE_MIDDLE 4, RC_ACK 5". Lines that are not such rows
// are skipped; a row that begins so and cannot be read is an error.
class CaptureIndex {
 public:
  static Result<CaptureIndex> read(const std::filesystem::path& path);
  static Result<CaptureIndex> parse(const std::string& text);
  // Null when the index says nothing about this file.
  [[nodiscard]] const Counts* find(const std::string& file_name) const;

 private:
  std::map<std::string, Counts> rows_;
};

}  // namespace roci::pcap_tool

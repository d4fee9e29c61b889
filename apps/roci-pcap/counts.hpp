// Packet counts of a capture, and the expected counts from an index file in its folder.
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
  std::map<std::string, uint64_t> opcodes;  // by name in the opcode table
};

// One message for each count that differs from the declared one.
std::vector<std::string> count_differences(const Counts& declared, const Counts& found);

// The rows of an INDEX.md: a Markdown table with the file name in the first column and, in the last column, counts like
// "9 RoCEv2, ICRC good 8, bad 1, other frames 0: RC_WRITE_MIDDLE 4, RC_ACK 5". Other lines are skipped. A row whose
// counts start like this but have a syntax error is an error.
class CaptureIndex {
 public:
  static Result<CaptureIndex> read(const std::filesystem::path& path);
  static Result<CaptureIndex> parse(const std::string& text);
  // Null if the index has no row for this file.
  [[nodiscard]] const Counts* find(const std::string& file_name) const;

 private:
  std::map<std::string, Counts> rows_;
};

}  // namespace roci::pcap_tool

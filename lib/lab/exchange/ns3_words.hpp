// Words of the text files of HPCC's ns-3 simulator: whitespace-separated, with line numbers for errors, and the
// simulator's notations of rates and times.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/types.hpp"

namespace roci::lab {

inline constexpr size_t kMaxNs3Text = 1UL << 30;  // bytes of a file

struct Ns3Word {
  std::string_view text;
  size_t line = 0;
};

// Reads words of a text, which must outlive the reader.
class Ns3Words {
 public:
  // `name` of the file, for errors.
  Ns3Words(std::string_view text, std::string name) : text_(text), name_(std::move(name)) {}

  // Next word. Fails at the end of the text; `what` is the missing object.
  Result<Ns3Word> next(const char* what);
  // Next word as a number from `low` to `high`.
  Result<uint64_t> number(const char* what, uint64_t low, uint64_t high);
  // Words of the next line that has any; empty at the end of the text.
  std::vector<Ns3Word> line();
  // Number of remaining words.
  size_t rest();
  [[nodiscard]] Error error(size_t line, const std::string& message) const;

 private:
  void skip_space(bool across_lines);

  std::string_view text_;
  std::string name_;
  size_t at_ = 0, line_ = 1;
};

// Text of a file of at most kMaxNs3Text bytes.
Result<std::string> read_ns3_text(const std::string& file);

// A part of a file in an error: in quotes, printable, and not too long.
std::string ns3_quoted(std::string_view text);
Result<uint64_t> parse_ns3_number(std::string_view text, uint64_t low, uint64_t high);
// "100Gbps", "40Mb/s", "12.5GB/s" (bytes); without a unit: bit/s.
Result<BitsPerSec> parse_ns3_rate(std::string_view text);
// "1000ns", "0.001ms"; without a unit: seconds. Rounded to ns.
Result<Nanos> parse_ns3_time(std::string_view text);
std::string ns3_seconds(Nanos time);        // "2.080049729"
std::string ns3_rate(double bit_per_s);     // "100Gbps", "40Mbps", "12500001bps"
std::string shortest_number(double value);  // "0.00390625", "300"; the shortest text of exactly this value

}  // namespace roci::lab

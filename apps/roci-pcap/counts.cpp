#include "roci-pcap/counts.hpp"

#include <fmt/format.h>

#include <fstream>
#include <regex>
#include <set>
#include <sstream>

namespace roci::pcap_tool {

std::vector<std::string> count_differences(const Counts& declared, const Counts& found) {
  std::vector<std::string> out;
  const auto compare = [&](const std::string& what, uint64_t wanted, uint64_t got) {
    if (wanted != got)
      out.push_back(fmt::format("{}: the index says {}, the capture has {}", what, wanted, got));
  };
  compare("RoCEv2 packets", declared.roce, found.roce);
  compare("good ICRCs", declared.icrc_good, found.icrc_good);
  compare("bad ICRCs", declared.icrc_bad, found.icrc_bad);
  compare("other frames", declared.other, found.other);
  std::set<std::string> names;
  for (const auto* counts : {&declared, &found}) {
    for (const auto& [name, count] : counts->opcodes) names.insert(name);
  }
  const auto of = [](const Counts& counts, const std::string& name) {
    const auto at = counts.opcodes.find(name);
    return at == counts.opcodes.end() ? uint64_t{0} : at->second;
  };
  for (const std::string& name : names) compare(name, of(declared, name), of(found, name));
  return out;
}

Result<CaptureIndex> CaptureIndex::read(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  if (!in) return fail(path.string() + ": cannot be read", EIO);
  auto index = parse(text.str());
  if (!index) return fail(index.error().within(path.string()));
  return index;
}

Result<CaptureIndex> CaptureIndex::parse(const std::string& text) {
  static const std::regex kRow(R"(^\|\s*([^|]*\S)\s*\|.*\|\s*([0-9]+ RoCEv2,[^|]*)\|\s*$)");
  static const std::regex kTotals(
      R"(^([0-9]{1,18}) RoCEv2, ICRC good ([0-9]{1,18}), bad ([0-9]{1,18}), other frames ([0-9]{1,18})(?:: (.*\S))?\s*$)");
  static const std::regex kOpcode(R"(^\s*(\S+) ([0-9]{1,18})$)");
  CaptureIndex index;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::smatch row, totals, opcode;
    if (!std::regex_match(line, row, kRow)) continue;
    const std::string described = row[2];
    const auto bad = [&](const std::string& what) {
      return fail(
          fmt::format("line {}: \"{}\" cannot be read; write \"9 RoCEv2, ICRC good 8, bad 1, other frames 0: "
                      "RC_ACK 9\"",
                      number, what));
    };
    if (!std::regex_match(described, totals, kTotals)) return bad(described);
    Counts counts{
        std::stoull(totals[1]), std::stoull(totals[2]), std::stoull(totals[3]), std::stoull(totals[4]), {}};
    std::istringstream list(totals[5]);
    for (std::string item; std::getline(list, item, ',');) {
      if (!std::regex_match(item, opcode, kOpcode)) return bad(item);
      counts.opcodes[opcode[1]] = std::stoull(opcode[2]);
    }
    index.rows_[row[1]] = std::move(counts);
  }
  return index;
}

const Counts* CaptureIndex::find(const std::string& file_name) const {
  const auto at = rows_.find(file_name);
  return at == rows_.end() ? nullptr : &at->second;
}

}  // namespace roci::pcap_tool

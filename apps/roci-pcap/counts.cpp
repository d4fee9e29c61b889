#include "roci-pcap/counts.hpp"

#include <fmt/format.h>

#include <charconv>
#include <fstream>
#include <set>
#include <sstream>

namespace roci::pcap_tool {
namespace {

std::string_view trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  for (size_t end = text.find(separator); end != std::string_view::npos; end = text.find(separator)) {
    out.push_back(trim(text.substr(0, end)));
    text.remove_prefix(end + 1);
  }
  out.push_back(trim(text));
  return out;
}

// Removes the prefix `word` from `text`; returns false if `text` does not start with it.
bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

bool take(std::string_view& text, uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

// Parses "9 RoCEv2, ICRC good 8, bad 1, other frames 0: RC_WRITE_MIDDLE 4, RC_ACK 5"; nothing for another format.
std::optional<Counts> parse_counts(std::string_view text) {
  Counts c;
  if (!take(text, c.roce) || !take(text, " RoCEv2, ICRC good ") || !take(text, c.icrc_good) ||
      !take(text, ", bad ") || !take(text, c.icrc_bad) || !take(text, ", other frames ") ||
      !take(text, c.other)) {
    return std::nullopt;
  }
  if (text.empty()) return c;
  if (!take(text, ":")) return std::nullopt;
  for (std::string_view item : split(text, ',')) {
    const size_t blank = item.find(' ');
    if (blank == 0 || blank == std::string_view::npos) return std::nullopt;
    const std::string name(item.substr(0, blank));
    item.remove_prefix(blank + 1);
    if (!take(item, c.opcodes[name]) || !item.empty()) return std::nullopt;
  }
  return c;
}

}  // namespace

std::vector<std::string> count_differences(const Counts& declared, const Counts& found) {
  std::vector<std::string> out;
  const auto compare = [&](const std::string& what, uint64_t wanted, uint64_t got) {
    if (wanted != got)
      out.push_back(fmt::format("{}: {} in the index, {} in the capture", what, wanted, got));
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
  CaptureIndex index;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    // The split of "| file | what | counts |" has an empty cell at both ends.
    const std::vector<std::string_view> cells = split(line, '|');
    if (cells.size() < 5 || cells[1].empty()) continue;
    const std::string_view described = cells[cells.size() - 2];
    std::string_view rest = described;
    uint64_t first = 0;
    if (!take(rest, first) || !take(rest, " RoCEv2")) continue;
    auto counts = parse_counts(described);
    if (!counts) {
      return fail(fmt::format(
          "line {}: \"{}\" is invalid; example: \"9 RoCEv2, ICRC good 8, bad 1, other frames 0: RC_ACK 9\"",
          number, described));
    }
    index.rows_[std::string(cells[1])] = std::move(*counts);
  }
  return index;
}

const Counts* CaptureIndex::find(const std::string& file_name) const {
  const auto at = rows_.find(file_name);
  return at == rows_.end() ? nullptr : &at->second;
}

}  // namespace roci::pcap_tool

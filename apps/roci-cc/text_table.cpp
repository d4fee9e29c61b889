#include "roci-cc/text_table.hpp"

#include <unistd.h>

#include <algorithm>

#include "base/os/standard_output.hpp"

namespace roci::cc_tool {
namespace {

constexpr size_t kGap = 2;         // spaces between columns
constexpr size_t kMinOfLast = 20;  // minimum width of the last column
constexpr size_t kNoTerminal = 100, kNarrowest = 60, kWidest = 140;

// Number of UTF-8 characters, not of bytes.
size_t length(std::string_view text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

void trim_end(std::string& line) { line.erase(line.find_last_not_of(' ') + 1); }

}  // namespace

std::vector<std::string> wrapped(std::string_view text, size_t width) {
  std::vector<std::string> lines;
  while (true) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view paragraph = text.substr(0, end);
    lines.emplace_back();
    while (!paragraph.empty()) {
      const std::string_view word = paragraph.substr(0, paragraph.find(' '));
      paragraph.remove_prefix(std::min(word.size() + 1, paragraph.size()));
      std::string& line = lines.back();
      if (line.empty()) {
        line = word;
      } else if (length(line) + 1 + length(word) <= width) {
        line.append(" ").append(word);
      } else {
        lines.emplace_back(word);
      }
    }
    if (end == text.size()) return lines;
    text.remove_prefix(end + 1);
  }
}

std::string TextTable::text(size_t width, size_t indent) const {
  std::vector<std::vector<std::string>> all;
  if (!headings.empty()) all.push_back(headings);
  all.insert(all.end(), rows.begin(), rows.end());
  std::vector<size_t> widths;
  for (const auto& row : all) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], length(row[i]));
  }
  size_t before_last = indent;
  for (size_t i = 0; i + 1 < widths.size(); ++i) before_last += widths[i] + kGap;
  const size_t last = std::max(width - std::min(width, before_last), kMinOfLast);

  std::string out;
  for (const auto& row : all) {
    std::string line(indent, ' ');
    for (size_t i = 0; i + 1 < row.size(); ++i)
      line += row[i] + std::string(widths[i] + kGap - length(row[i]), ' ');
    for (const std::string& part : wrapped(row.back(), last)) {
      line += part;
      trim_end(line);
      out += line + '\n';
      line.assign(before_last, ' ');
    }
  }
  return out;
}

std::string TextTable::markdown() const {
  std::string out = "|";
  for (const std::string& heading : headings) out += ' ' + heading + " |";
  out += "\n|";
  for (size_t i = 0; i < headings.size(); ++i) out += "---|";
  out += '\n';
  for (const auto& row : rows) {
    out += '|';
    for (const std::string& cell : row) {
      out += ' ';
      for (const char c : cell) out.append(c == '|' ? "\\" : "").append(1, c == '\n' ? ' ' : c);
      out += " |";
    }
    out += '\n';
  }
  return out;
}

size_t output_width() {
  const auto columns = terminal_columns(STDOUT_FILENO);
  return columns ? std::clamp(*columns, kNarrowest, kWidest) : kNoTerminal;
}

}  // namespace roci::cc_tool

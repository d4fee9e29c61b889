// A table for a terminal, or for a page in Markdown.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace roci::cc_tool {

struct TextTable {
  std::vector<std::string> headings;  // without any there is no line of them; Markdown wants them
  std::vector<std::vector<std::string>> rows;

  // Lines of at most `width` characters when the columns but for the last leave room for words; the last one is wrapped
  // between words, and where it has a new line.
  [[nodiscard]] std::string text(size_t width, size_t indent = 0) const;
  [[nodiscard]] std::string markdown() const;
};

// Lines of at most `width` characters, broken between words.
std::vector<std::string> wrapped(std::string_view text, size_t width);

// Of the terminal, or 100 where there is none.
size_t output_width();

}  // namespace roci::cc_tool

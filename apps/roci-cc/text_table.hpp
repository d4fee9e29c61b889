// A table printed as aligned text or as Markdown.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace roci::cc_tool {

struct TextTable {
  std::vector<std::string> headings;  // empty: no heading line; required by markdown()
  std::vector<std::vector<std::string>> rows;

  // Lines of at most `width` characters. The last column is wrapped between words and at line feeds; it keeps a minimum
  // width, so lines are longer if the other columns leave less space.
  [[nodiscard]] std::string text(size_t width, size_t indent = 0) const;
  [[nodiscard]] std::string markdown() const;
};

// Splits the text between words into lines of at most `width` characters; a longer word keeps its own line.
std::vector<std::string> wrapped(std::string_view text, size_t width);

// Width of the terminal, limited to 60 to 140 characters; 100 if the standard output is not a terminal.
size_t output_width();

}  // namespace roci::cc_tool

#include "roci-run/supported.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/config.hpp"

namespace roci::run {
namespace {

constexpr size_t kWidth = 120;
constexpr const char* kTest = "test";
constexpr const char* kByHand = "by hand";
constexpr const char* kDoesNotRun = "does not run";

struct SupportedProgram {
  std::string program, version, distribution, services, verdict, note;
  std::vector<std::string> commands, tests;
};

// Text without the Markdown of code spans and links.
std::string plain(std::string_view markdown) {
  std::string text;
  for (size_t at = 0; at < markdown.size(); ++at) {
    const size_t label_end = markdown[at] == '[' ? markdown.find("](", at) : std::string_view::npos;
    const size_t link_end = label_end == std::string_view::npos ? label_end : markdown.find(')', label_end);
    if (link_end != std::string_view::npos) {
      text += plain(markdown.substr(at + 1, label_end - at - 1));
      at = link_end;
    } else if (markdown[at] != '`') {
      text += markdown[at];
    }
  }
  return text;
}

Result<SupportedProgram> read_program(ConfigNode& node) {
  const auto text = [](std::string_view markdown) -> Result<std::string> { return plain(markdown); };
  const auto verdict = one_of<std::string>({{kTest, kTest}, {kByHand, kByHand}, {kDoesNotRun, kDoesNotRun}});
  SupportedProgram one;
  ROCI_TRY(node.required("program", one.program, text));
  ROCI_TRY(node.required("version", one.version));
  ROCI_TRY(node.required("distribution", one.distribution));
  ROCI_TRY(node.optional("services", one.services, text));
  ROCI_TRY(node.required("verdict", one.verdict, verdict));
  ROCI_TRY(node.optional("note", one.note, text));
  ROCI_TRY(node.optional_list("commands", one.commands));
  ROCI_TRY(node.optional_list("tests", one.tests));
  return one;
}

Result<std::vector<SupportedProgram>> read_programs() {
  std::vector<SupportedProgram> all;
  ROCI_TRY(parse_config(std::string{programs_yaml()}, "programs.yaml", [&](ConfigNode& root) -> Status {
    return root.each("programs", Need::kRequired, [&](ConfigNode& node) -> Status {
      auto one = read_program(node);
      if (!one) return fail(one.error());
      all.push_back(std::move(*one));
      return {};
    });
  }));
  return all;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

// "  title: text" in lines of at most kWidth characters.
std::string detail(const std::string& title, const std::string& text) {
  if (text.empty()) return {};
  const std::string indent(4, ' ');
  std::string lines, line = "  " + title + ":";
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (line.size() + 1 + word.size() > kWidth) {
      lines += line + "\n";
      line = indent + word;
    } else {
      line += " " + word;
    }
    at = end + 1;
  }
  return lines + line + "\n";
}

using Row = std::vector<std::string>;

Row row_of(const SupportedProgram& one) {
  const auto or_dash = [](const std::string& text) { return text.empty() ? std::string{"-"} : text; };
  return {one.program, or_dash(one.version), or_dash(one.distribution), one.verdict};
}

std::string padded(const Row& row, const std::vector<size_t>& widths) {
  std::string line;
  for (size_t i = 0; i < row.size(); ++i) {
    line += row[i];
    if (i + 1 < row.size()) line.append(widths[i] - row[i].size() + 2, ' ');
  }
  return line + "\n";
}

}  // namespace

Result<std::string> supported_table() {
  const auto all = read_programs();
  if (!all) return fail(all.error());
  std::vector<Row> rows{{"program", "version", "distribution", "verdict"}};
  for (const SupportedProgram& one : *all) rows.push_back(row_of(one));
  std::vector<size_t> widths(rows.front().size());
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string table = padded(rows.front(), widths);
  for (size_t i = 0; i < all->size(); ++i) {
    const SupportedProgram& one = (*all)[i];
    table += padded(rows[i + 1], widths) + detail("commands", joined(one.commands)) +
             detail("services", one.services) + detail("tests", joined(one.tests)) + detail("note", one.note);
  }
  return table;
}

Result<std::string> supported_json() {
  const auto all = read_programs();
  if (!all) return fail(all.error());
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const SupportedProgram& one : *all) {
    list.push_back({{"program", one.program},
                    {"commands", one.commands},
                    {"version", one.version},
                    {"distribution", one.distribution},
                    {"services", one.services},
                    {"verdict", one.verdict},
                    {"tests", one.tests},
                    {"note", one.note}});
  }
  return list.dump(2) + "\n";
}

}  // namespace roci::run

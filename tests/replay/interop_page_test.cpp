// Compares the tables of differences in docs/interop.md with those of the replays.
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "replay/differences.hpp"
#include "replay/recording.hpp"
#include "replay/requester_differences.hpp"

namespace roci::test {
namespace {

using Frames = std::set<std::pair<std::string, int>>;

// The text from the heading to the next one.
std::string section(const std::string& heading) {
  std::ifstream file(std::string(ROCI_SOURCE_DIR) + "/docs/interop.md");
  std::stringstream page;
  page << file.rdbuf();
  const std::string text = page.str();
  const size_t start = text.find("\n## " + heading + "\n");
  if (start == std::string::npos) throw std::runtime_error("docs/interop.md has no section " + heading);
  return text.substr(start, text.find("\n## ", start + 1) - start);
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  return parts;
}

// The cells of the table rows that start with a backquoted name.
std::vector<std::vector<std::string>> rows_of(const std::string& text) {
  std::vector<std::vector<std::string>> rows;
  for (const std::string& line : split(text, '\n')) {
    if (!line.starts_with("| `")) continue;
    rows.push_back(split(line, '|'));
    rows.back().erase(rows.back().begin());  // the text before the first bar
  }
  return rows;
}

// Splits "`name` more" into the name and the rest after the blank.
std::pair<std::string, std::string> name_and_rest(const std::string& text) {
  const size_t start = text.find('`') + 1;
  const size_t end = text.find('`', start);
  const size_t last = text.find_last_not_of(' ');
  if (last <= end) return {text.substr(start, end - start), ""};
  return {text.substr(start, end - start), text.substr(end + 2, last - end - 1)};
}

// The frames in rows "| `capture` | 1, 3 to 5 | ..."; frame 0 for a row without a number.
Frames frames_on_page(const std::string& heading) {
  Frames frames;
  for (const auto& row : rows_of(section(heading))) {
    const auto [capture, rest] = name_and_rest(row.at(0));
    if (!rest.empty() || capture.ends_with('*')) continue;  // row of another table, or of several captures
    bool any = false;
    for (const std::string& range : split(row.at(1), ',')) {
      const size_t digit = range.find_first_of("0123456789");
      if (digit == std::string::npos) continue;
      const size_t to = range.find(" to ");
      const int first = std::stoi(range.substr(digit));
      const int last = to == std::string::npos ? first : std::stoi(range.substr(to + 4));
      for (int frame = first; frame <= last; ++frame) frames.emplace(capture, frame);
      any = true;
    }
    if (!any) frames.emplace(capture, 0);
  }
  return frames;
}

TEST(InteropPage, lists_responder_differences) {
  Frames frames;
  for (const Difference& d : known_differences()) {
    const bool lost = d.kind == Difference::Kind::kNotDelivered || d.kind == Difference::Kind::kAnswerLost;
    if (!lost) frames.emplace(d.capture, d.frame);
  }
  EXPECT_EQ(frames_on_page("Capture differences: responder"), frames);
}

TEST(InteropPage, lists_requester_differences) {
  Frames frames;
  for (const RequestDifference& d : request_differences()) frames.emplace(d.capture, d.frame);
  EXPECT_EQ(frames_on_page("Capture differences: requester"), frames);
}

TEST(InteropPage, lists_counts_of_requests_with_differing_fields) {
  using Count = std::tuple<std::string, std::string, int>;  // "ip.ecn 0 and 2", capture, packets
  std::set<Count> known, on_page;
  for (const RequestHabit& h : request_habits()) {
    const std::string field = h.field == RequestHabit::Field::kEcn ? "ip.ecn" : "bth.ack_request";
    known.emplace(field + " " + std::to_string(h.theirs) + " and " + std::to_string(h.ours), h.capture,
                  h.count);
  }
  for (const auto& row : rows_of(section("Capture differences: requester"))) {
    const auto [field, values] = name_and_rest(row.at(0));
    if (values.empty()) continue;  // row of the other table
    for (const std::string& one : split(row.at(2), ',')) {
      const auto [capture, count] = name_and_rest(one);
      on_page.emplace(field + " " + values, capture, std::stoi(count));
    }
  }
  EXPECT_EQ(on_page, known);
}

TEST(InteropPage, lists_captures_and_exchanges_of_requester_replay) {
  const std::string text = section("Test methods");
  const auto captures = captures_of_reliable_connections();
  size_t exchanges = 0;
  for (const std::string& capture : captures) {
    exchanges += load_exchanges(capture, Unanswered::kToo).size();
    EXPECT_NE(text.find("`" + capture + "`"), std::string::npos) << capture;
  }
  EXPECT_EQ(captures.size(), 26U);
  EXPECT_NE(text.find("All twenty-six captures"), std::string::npos);
  EXPECT_EQ(exchanges, 31U);
  EXPECT_NE(text.find("They hold thirty-one exchanges"), std::string::npos);
}

}  // namespace
}  // namespace roci::test

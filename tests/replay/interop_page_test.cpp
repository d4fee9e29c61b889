// docs/interop.md says to people what the tables of differences say to the replays. Both must say the same.
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <tuple>

#include "replay/differences.hpp"
#include "replay/recording.hpp"
#include "replay/requester_differences.hpp"

namespace roci::test {
namespace {

using Frames = std::set<std::pair<std::string, int>>;

// Everything between the heading and the next one.
std::string section(const std::string& heading) {
  std::ifstream file(std::string(ROCI_SOURCE_DIR) + "/docs/interop.md");
  std::stringstream page;
  page << file.rdbuf();
  const std::string text = page.str();
  const size_t start = text.find("\n## " + heading + "\n");
  if (start == std::string::npos) throw std::runtime_error("docs/interop.md has no section " + heading);
  return text.substr(start, text.find("\n## ", start + 1) - start);
}

std::vector<std::smatch> matches(const std::string& text, const std::regex& pattern) {
  return {std::sregex_iterator(text.begin(), text.end(), pattern), {}};
}

// The frames of the table rows "| `capture` | 1, 3 to 5 | ..."; frame 0 for a row without a number.
Frames frames_on_page(const std::string& heading) {
  const std::string text = section(heading);
  Frames frames;
  for (const auto& row : matches(text, std::regex("\n\\| `(\\w+)` \\|([^|]*)\\|"))) {
    const std::string cell = row[2];
    const auto numbers = matches(cell, std::regex("(\\d+)( to (\\d+))?"));
    if (numbers.empty()) frames.emplace(row[1], 0);
    for (const auto& range : numbers) {
      const int first = std::stoi(range[1]);
      const int last = range[3].matched ? std::stoi(range[3]) : first;
      for (int frame = first; frame <= last; ++frame) frames.emplace(row[1], frame);
    }
  }
  return frames;
}

TEST(InteropPage, names_the_answers_that_differ) {
  Frames frames;
  for (const Difference& d : known_differences()) {
    const bool lost = d.kind == Difference::Kind::kNotDelivered || d.kind == Difference::Kind::kAnswerLost;
    if (!lost) frames.emplace(d.capture, d.frame);
  }
  EXPECT_EQ(frames_on_page("Differences in the captures: our responder"), frames);
}

TEST(InteropPage, names_the_requests_that_differ) {
  Frames frames;
  for (const RequestDifference& d : request_differences()) frames.emplace(d.capture, d.frame);
  EXPECT_EQ(frames_on_page("Differences in the captures: our requester"), frames);
}

TEST(InteropPage, counts_the_requests_of_a_kind_that_differ) {
  using Count = std::tuple<std::string, std::string, int>;  // "ip.ecn 0 and 2", capture, packets
  std::set<Count> known, on_page;
  for (const RequestHabit& h : request_habits()) {
    const std::string field = h.field == RequestHabit::Field::kEcn ? "ip.ecn" : "bth.ack_request";
    known.emplace(field + " " + std::to_string(h.theirs) + " and " + std::to_string(h.ours), h.capture,
                  h.count);
  }
  const std::string text = section("Differences in the captures: our requester");
  for (const auto& row : matches(text, std::regex("\n\\| `([\\w.]+)` (\\d and \\d) \\|[^|]*\\|([^|]*)\\|"))) {
    const std::string captures = row[3];
    for (const auto& one : matches(captures, std::regex("`(\\w+)` (\\d+)")))
      on_page.emplace(row[1].str() + " " + row[2].str(), one[1], std::stoi(one[2]));
  }
  EXPECT_EQ(on_page, known);
}

TEST(InteropPage, says_how_many_exchanges_drive_the_requester) {
  const std::string text = section("How it is tested");
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

#include "lab/results/expectation.hpp"

#include <gtest/gtest.h>

#include "support/must.hpp"

namespace roci::lab {
namespace {

using test::must;
using Json = nlohmann::ordered_json;

const Summaries& summaries() {
  static const Summaries all = {
      {"one", {{"queues_bytes", {{"s0/h1", {{"p99", 2000}}}}}, {"name", "text"}}},
      {"one load=0.3", {{"traffic", {{"web", {{"slowdown", {{"< 3 KB", {{"p99", 2.5}}}}}}}}}}}};
  return all;
}
Verdict verdict_of(const std::string& text) {
  return must(evaluate(must(parse_expectation(text)), summaries()));
}
std::string objection_to(const std::string& text) {
  const auto parsed = parse_expectation(text);
  return parsed ? "none" : parsed.error().message;
}
std::string failure_of(const std::string& text) {
  const auto verdict = evaluate(must(parse_expectation(text)), summaries());
  return verdict ? "none" : verdict.error().message;
}

TEST(Expectation, compares_products_of_numbers_and_summary_values) {
  EXPECT_TRUE(verdict_of("one.queues_bytes.s0/h1.p99 <= 2KB").holds);
  EXPECT_FALSE(verdict_of("one.queues_bytes.s0/h1.p99 < 2KB").holds);
  EXPECT_TRUE(verdict_of("one.queues_bytes.s0/h1.p99 >= 2KB").holds);
  EXPECT_FALSE(verdict_of("one.queues_bytes.s0/h1.p99 > 2KB").holds);
  const Verdict scaled = verdict_of("2 * one.queues_bytes.s0/h1.p99 * 0.5 < 10us");
  EXPECT_EQ(scaled.left, 2000);
  EXPECT_EQ(scaled.right, 10'000);
  EXPECT_EQ(scaled.unit, "B");
}

TEST(Expectation, path_parts_with_dots_and_spaces_are_quoted) {
  const Verdict verdict = verdict_of("'one load=0.3'.traffic.web.slowdown.'< 3 KB'.p99 < 3");
  EXPECT_TRUE(verdict.holds);
  EXPECT_EQ(verdict.left, 2.5);
  EXPECT_EQ(verdict.unit, "");
}

TEST(Expectation, lists_each_run_once) {
  EXPECT_EQ(must(parse_expectation("a.x * b.x < 2 * a.y")).runs(), (std::vector<std::string>{"a", "b"}));
}

TEST(Expectation, lists_traffics_whose_times_are_compared) {
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  const auto of = [](const char* text) { return must(parse_expectation(text)).timed_traffics(); };
  EXPECT_EQ(of("a.traffic.web.slowdown.all.p50 < 2 * b.traffic.web.completion_ns.p50"),
            (Pairs{{"a", "web"}, {"b", "web"}}));
  EXPECT_EQ(of("a.traffic.web.goodput_bps < 2 * a.queues_bytes.s0/h1.p50"), Pairs{});
}

TEST(Expectation, reports_syntax_errors) {
  EXPECT_EQ(objection_to("a.x 3"), "one of <, <=, >, >=, surrounded by spaces, is required in 'a.x 3'");
  EXPECT_EQ(objection_to("a.x < 3 < a.y"),
            "one of <, <=, >, >=, surrounded by spaces, is required in 'a.x < 3 < a.y'");
  EXPECT_EQ(objection_to("a.x < b"),
            "'b' is neither a number nor a path such as hpcc.traffic.web.goodput_bps");
  EXPECT_EQ(objection_to("a.x < a..y"),
            "'a..y' is neither a number nor a path such as hpcc.traffic.web.goodput_bps");
  EXPECT_EQ(objection_to("a.x + a.y < 3"), "'+' found where * or a comparison operator is required");
  EXPECT_EQ(objection_to("a.x * < 3"), "a number or a path is missing in 'a.x * < 3'");
  EXPECT_EQ(objection_to("< 3"), "a number or a path is missing in '< 3'");
  EXPECT_EQ(objection_to("a.'x < 3"), "missing closing quote in a.'x < 3");
  EXPECT_EQ(objection_to("2 < 3"), "no path to a run's result in '2 < 3'");
}

TEST(Expectation, reports_missing_summary_values) {
  EXPECT_EQ(failure_of("one.queues_bytes.s0/h2.p99 < 3"), "the summary has no 'one.queues_bytes.s0/h2'");
  EXPECT_EQ(failure_of("one.queues_bytes < 3"), "'one.queues_bytes' is not a number");
  EXPECT_EQ(failure_of("one.name < 3"), "'one.name' is not a number");
  EXPECT_EQ(failure_of("two.name < 3"), "unknown run 'two'");
}

Verdict verdict_of_seeds(const std::vector<double>& values, const std::string& text, double confidence = 0) {
  std::vector<Summaries> of_seeds;
  for (const double value : values) of_seeds.push_back({{"one", {{"x_ns", value}, {"y_ns", value + 1}}}});
  Expectation expectation = must(parse_expectation(text));
  expectation.confidence = confidence;
  return must(evaluate(expectation, of_seeds));
}

// Mean 20, standard deviation 10, standard error 5.77, and t = 4.303 for two degrees of freedom.
TEST(Expectation, means_of_seeds_are_compared) {
  const Verdict verdict = verdict_of_seeds({10, 20, 30}, "one.x_ns < 30ns");
  EXPECT_TRUE(verdict.holds);
  EXPECT_EQ(verdict.left, 20);
  EXPECT_NEAR(verdict.left_interval, 24.84, 0.01);
  EXPECT_EQ(verdict.right_interval, 0);
  EXPECT_FALSE(verdict.significant);
  EXPECT_TRUE(verdict_of_seeds({10, 20, 30}, "one.x_ns < 50ns").significant);
  EXPECT_FALSE(verdict_of_seeds({10, 20, 30}, "one.x_ns > 20ns").holds);
}

TEST(Expectation, required_confidence_rejects_a_difference_that_is_not_significant) {
  EXPECT_FALSE(verdict_of_seeds({10, 20, 30}, "one.x_ns < 30ns", 0.95).holds);
  EXPECT_TRUE(verdict_of_seeds({10, 20, 30}, "one.x_ns < 30ns", 0.5).holds);
  EXPECT_TRUE(verdict_of_seeds({10, 20, 30}, "one.x_ns < 50ns", 0.95).holds);
  EXPECT_TRUE(verdict_of_seeds({4, 4}, "one.x_ns <= 4ns", 0.99).holds);
}

// The values vary more between the seeds than they differ.
TEST(Expectation, values_of_the_same_seed_are_paired) {
  EXPECT_TRUE(verdict_of_seeds({10, 20, 30}, "one.x_ns < one.y_ns", 0.99).holds);
}

}  // namespace
}  // namespace roci::lab

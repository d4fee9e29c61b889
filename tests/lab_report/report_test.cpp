#include "lab/report/report.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "lab/report/report_files.hpp"
#include "roci-lab/compare_command.hpp"

namespace roci::lab {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

class ReportTest : public testing::Test {
 protected:
  ReportTest()
      : folder_(fs::path(testing::TempDir()) /
                ("report-" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~ReportTest() override { fs::remove_all(folder_); }
  ReportTest(const ReportTest&) = delete;
  ReportTest& operator=(const ReportTest&) = delete;

  std::string page(const std::string& title, const std::vector<StoredRun>& runs) {
    const std::string file = (folder_ / "report.html").string();
    const Status written = write_report(file, title, runs);
    EXPECT_TRUE(written) << written.error().message;
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  }
  static Json data_in(const std::string& page) {
    const std::string before = R"(<script type="application/json" id="data">)";
    const size_t from = page.find(before) + before.size();
    return Json::parse(page.substr(from, page.find("</script>", from) - from));
  }

  fs::path folder_;
};

StoredRun made_up(const std::string& name, size_t points) {
  StoredRun run;
  run.run = {{"name", name}, {"about", "made up"}, {"source", "nobody"}, {"command", "roci-lab run " + name}};
  const Json percentiles = {{"mean", 2.5}, {"p50", 1000}, {"p95", 2000}, {"p99", 3000}, {"most", 4000}};
  run.summary = {
      {"scenario", "test"},
      {"seed", 7},
      {"settle_ns", 1000},
      {"traffic", {{"bulk", {{"flows", 2}, {"jain", 0.5}, {"goodput_bps", 2e9}}}}},
      {"queues_bytes", {{"all_ports", percentiles}, {"s0/h1", percentiles}, {"s0/h0", percentiles}}},
      {"drops", {{"queue_full", 3}, {"no_route", 4}, {"all", 7}}},
      {"switches", {{"marked", 5}, {"cnps_sent", 0}, {"pauses_sent", 0}}},
      {"hosts", {{"np_cnp_sent", 6}, {"pauses_sent", 0}, {"packets_retransmitted", 0}}}};
  run.bin = Nanos{100};
  run.queue_most = {
      "bytes", {"s0/h0", "s0/h1"}, {std::vector<double>(points, 1), std::vector<double>(points, 2)}};
  run.queue_most.values[1][points / 2] = 4000;
  run.queue_mean = run.queue_most;
  run.goodput = {"bit/s", {"bulk: h0 to h1", "bulk: h2 to h1"}, {2, std::vector<double>(points, 1e9)}};
  return run;
}

TEST_F(ReportTest, page_is_self_contained_and_includes_license) {
  const std::string text = page("test", {made_up("one", 10)});
  EXPECT_TRUE(text.starts_with("<!doctype html>"));
  EXPECT_FALSE(std::regex_search(text.substr(0, text.find("<script>")), std::regex("https?:")));
  EXPECT_FALSE(
      std::regex_search(std::string(report_html()), std::regex(R"((src|href)\s*=|<link|<img|https?://)")));
  EXPECT_FALSE(std::regex_search(std::string(report_css()), std::regex(R"(@import|url\()")));
  for (const std::string_view script : {common_js(), charts_js(), report_js()})
    EXPECT_FALSE(
        std::regex_search(std::string(script), std::regex(R"(fetch\(|import|XMLHttp|\.src\b|\.href\b)")));
  EXPECT_NE(text.find("default-src 'none'"), std::string::npos);
  EXPECT_NE(text.find("Released under the MIT License"), std::string::npos);
  EXPECT_EQ(text.find("{{title}}"), std::string::npos);
}

TEST_F(ReportTest, page_is_deterministic) {
  const std::vector<StoredRun> runs = {made_up("one", 50), made_up("two", 50)};
  EXPECT_EQ(page("test", runs), page("test", runs));
}

TEST_F(ReportTest, names_are_escaped) {
  StoredRun run = made_up("</script><b>bold</b><!--", 10);
  run.goodput.names[0] = "</script><script>alert(1)</script>";
  run.run["about"] = "{{script}} \xff & <i>";
  const std::string text = page("a < b & {{data}}</title><b>", {run});
  EXPECT_EQ(text.find("<b>"), std::string::npos);
  EXPECT_EQ(text.find("<script>alert"), std::string::npos);
  EXPECT_NE(text.find("<title>a &lt; b &amp; {{data}}&lt;/title&gt;&lt;b&gt;</title>"), std::string::npos);
  const Json data = data_in(text);
  EXPECT_EQ(data["runs"][0]["name"], "</script><b>bold</b><!--");
  EXPECT_EQ(data["runs"][0]["goodput"]["names"][0], "</script><script>alert(1)</script>");
}

TEST_F(ReportTest, figures_match_summary_and_port_with_longest_queue) {
  const Json run = data_in(page("test", {made_up("one", 10)}))["runs"][0];
  const Json& figures = run["figures"];
  EXPECT_EQ(figures["goodput_bps"], 2e9);
  EXPECT_EQ(figures["jain"], 0.5);
  EXPECT_EQ(figures["port"], "s0/h1");
  EXPECT_EQ(figures["queue_p99"], 3000);
  EXPECT_EQ(figures["drops"], 7);
  EXPECT_EQ(figures["marks"], 5);
  EXPECT_EQ(figures["cnps"], 6);
  EXPECT_EQ(figures["pauses"], 0);
  EXPECT_EQ(figures["retransmissions"], 0);
  EXPECT_TRUE(figures["slowdown_p99"].is_null());
  EXPECT_EQ(run["seed"], 7);
  EXPECT_EQ(run["command"], "roci-lab run one");
  EXPECT_EQ(run["queues"][0]["port"], "s0/h1");
  EXPECT_EQ(run["queues"][1]["port"], "s0/h0");
}

TEST_F(ReportTest, empty_run_has_no_figures) {
  StoredRun bare;
  bare.run = Json::object();
  bare.summary = Json::object();
  const Json run = data_in(page("bare", {bare}))["runs"][0];
  for (const auto& [name, value] : run["figures"].items()) EXPECT_TRUE(value.is_null()) << name;
  EXPECT_TRUE(run["queues"].empty());
  EXPECT_TRUE(run["goodput"]["values"].empty());
}

TEST_F(ReportTest, distribution_excludes_settling_time) {
  StoredRun run = made_up("one", 100);  // Bins of 100 ns; the first ten do not count.
  for (size_t i = 0; i < 100; ++i) run.queue_mean.values[1][i] = i < 10 ? 1e6 : static_cast<double>(i);
  const Json data = data_in(page("test", {run}));
  const Json& spread = data["runs"][0]["queues"][0]["spread"];
  ASSERT_EQ(spread.size(), data["spread_percent"].size());
  EXPECT_EQ(spread.front(), 10);
  EXPECT_EQ(spread.back(), 99);
}

TEST_F(ReportTest, series_of_many_runs_are_thinned_and_keep_queue_peaks) {
  std::vector<StoredRun> runs;
  for (int i = 0; i < 30; ++i) runs.push_back(made_up("run " + std::to_string(i), 999));
  const std::string text = page("thirty", runs);
  const Json data = data_in(text);
  ASSERT_EQ(data["runs"].size(), 30);
  for (const Json& run : data["runs"]) {
    const Json& most = run["queues"][0]["most"];
    EXPECT_EQ(most.size(), 250);
    EXPECT_EQ(run["bin_ns"], 400);
    EXPECT_EQ(std::ranges::max(most.get<std::vector<double>>()), 4000);
    EXPECT_EQ(run["goodput"]["values"][0].back(), 1.0);
  }
  EXPECT_LT(text.size(), 1'000'000);
}

TEST_F(ReportTest, slowdowns_are_listed_by_size_in_order) {
  StoredRun run = made_up("one", 10);
  const auto of = [](int value) {
    return Json{{"count", 10}, {"mean", 1}, {"p50", value}, {"p95", value}, {"p99", value}, {"most", value}};
  };
  run.summary["traffic"] = {
      {"web", {{"goodput_bps", 1e9}, {"slowdown", {{"all", of(2)}, {"< 3 KB", of(1)}, {">= 10 MB", of(3)}}}}},
      {"none", {{"goodput_bps", 0}, {"slowdown", {{"all", {{"count", 0}, {"p50", 0}}}}}}}};
  const Json traffic = data_in(page("test", {run}))["runs"][0]["traffic"];
  EXPECT_EQ(traffic[0]["slowdown"].size(), 2);
  EXPECT_EQ(traffic[0]["slowdown_p99"], 2);
  EXPECT_TRUE(traffic[1]["slowdown"].is_null());
  EXPECT_TRUE(traffic[1]["slowdown_p50"].is_null());
}

TEST_F(ReportTest, reports_missing_runs_and_files) {
  EXPECT_EQ(write_report((folder_ / "report.html").string(), "none", {}).error().message,
            "a report requires at least one run");
  const std::string nowhere = (folder_ / "nowhere" / "report.html").string();
  EXPECT_EQ(write_report(nowhere, "test", {made_up("one", 10)}).error().message,
            "'" + nowhere + "' cannot be written");
  EXPECT_EQ(read_results(folder_.string()).error().message,
            "'" + (folder_ / "summary.json").string() +
                "' cannot be read; a folder with the results of a run is required");
  EXPECT_EQ(read_folders({folder_.string()}).error().message,
            "'" + folder_.string() + "' has no results; a results folder of 'roci-lab run' is required");
}

// Writes results of made-up data, as `roci-lab run` does.
void store(const fs::path& folder, const StoredRun& run) {
  Measurements of;
  of.summary = run.summary;
  of.bin = run.bin;
  of.queue_most = run.queue_most;
  of.queue_mean = run.queue_mean;
  of.goodput = run.goodput;
  ASSERT_TRUE(write_results(folder.string(), Scenario{}, {run.run["name"], run.run["command"], 1}, of));
}

TEST_F(ReportTest, reads_run_folders_and_folders_of_runs) {
  store(folder_ / "old" / "b", made_up("b", 10));
  store(folder_ / "old" / "a", made_up("a", 10));
  store(folder_ / "new", made_up("a", 10));
  const auto runs = read_folders({(folder_ / "old").string(), (folder_ / "new").string()});
  ASSERT_TRUE(runs) << runs.error().message;
  ASSERT_EQ(runs->size(), 3);
  EXPECT_EQ((*runs)[0].run["name"], (folder_ / "old" / "a").string());  // Two runs have the name a.
  EXPECT_EQ((*runs)[1].run["name"], "b");
  EXPECT_EQ((*runs)[2].run["name"], (folder_ / "new").string());
  EXPECT_EQ((*runs)[1].queue_most.values, made_up("b", 10).queue_most.values);
}

TEST_F(ReportTest, runs_of_a_folder_are_sorted_in_natural_order) {
  for (const char* name : {"seed=10", "seed=9", "seed=1"}) store(folder_ / name, made_up(name, 10));
  const auto runs = read_folders({folder_.string()});
  ASSERT_TRUE(runs) << runs.error().message;
  std::string names;
  for (const StoredRun& run : *runs) names += run.run["name"].get<std::string>() + " ";
  EXPECT_EQ(names, "seed=1 seed=9 seed=10 ");
}

}  // namespace
}  // namespace roci::lab

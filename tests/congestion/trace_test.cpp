// Recorded traces can be read and replayed; errors are reported in one sentence.
#include "congestion/trace.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <sstream>

#include "cc/random_feedback.hpp"
#include "congestion/flow_runner.hpp"
#include "congestion/owned_flow.hpp"
#include "support/sanitizer.hpp"

namespace roci {
namespace {

using test::anything;
using test::OwnedFlow;

roci_cc_flow some_flow(uint64_t seed) {
  return {.line_rate = 100'000'000'000,
          .base_rtt_ns = 4200,
          .packet_bytes = 1048,
          .payload_bytes = 1000,
          .direction = static_cast<uint32_t>(seed % 2),
          .provides = 0xffff,
          .seed = seed << 56 | seed};
}

// Flows of one algorithm in one runner, with random events.
class Drive {
 public:
  Drive(const std::string& algorithm, uint32_t trace, uint64_t seed = 1) : runner_(trace), rng_(seed) {
    CongestionControlConfig config;
    config.base_rtt = 4200ns;
    config.profiles["odd, \"name\"\n"] = {.algorithm = algorithm, .parameters = {}, .fallback = {}};
    static std::vector<std::unique_ptr<Profiles>> kept;  // records point to them, so they outlive this object
    kept.push_back(*Profiles::create(config));
    const Profiles& profiles = *kept.back();
    for (const char* name : {"odd, \"name\"\n", algorithm.c_str()}) {
      for (uint32_t i = 0; i < 2; ++i) {
        const auto id = static_cast<uint32_t>(flows_.size() + (uint64_t{1} << 32) - 2);
        flows_.emplace_back(ControlFlow::create(arena_, **profiles.find(name), some_flow(seed + i), id));
        FlowRunner::begin(*flows_.back(), now_);
        runner_.adopt(*flows_.back());
        befores_.push_back({});
        paths_.push_back({});
      }
    }
  }
  ~Drive() {
    for (const OwnedFlow& flow : flows_) runner_.stop(*flow);
  }
  Drive(const Drive&) = delete;
  Drive& operator=(const Drive&) = delete;

  Drive& events(int count) {
    for (int i = 0; i < count; ++i) {
      now_ += Nanos{static_cast<int64_t>(rng_() % 3000)};
      runner_.advance(now_, [](ControlFlow&) {});
      const size_t which = rng_() % flows_.size();
      befores_[which].now_ns = static_cast<uint64_t>(now_.count());
      befores_[which] = anything(rng_, befores_[which], paths_[which]);
      roci_cc_event event = befores_[which];
      event.now_ns = static_cast<uint64_t>(now_.count());
      // As in EventRing: the hops after the last one are not initialized.
      roci_cc_path path = paths_[which];
      std::memset(&path.hop[0] + path.hops, 0x5a, (ROCI_CC_MAX_HOPS - path.hops) * sizeof(roci_cc_hop));
      if (event.path != nullptr) event.path = &path;
      runner_.run(*flows_[which], event);
    }
    return *this;
  }
  [[nodiscard]] std::vector<TraceRecord> records() const { return runner_.trace().records(); }
  [[nodiscard]] uint64_t lost() const { return runner_.trace().lost(); }

 private:
  SparseArena arena_;
  FlowRunner runner_;
  std::mt19937_64 rng_;
  Nanos now_{1'000'000};
  std::vector<OwnedFlow> flows_;
  std::vector<roci_cc_event> befores_;
  std::vector<roci_cc_path> paths_;
};

std::string json_of(const std::vector<TraceRecord>& records) {
  std::ostringstream out;
  write_trace_json(records, out);
  return out.str();
}

Result<std::unique_ptr<RecordedTrace>> read(const std::string& text) {
  static const Algorithms algorithms;
  std::istringstream in(text);
  return read_trace(in, algorithms);
}

std::string error_of(const std::string& text) {
  const auto trace = read(text);
  return trace ? "" : trace.error().message;
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return at == std::string::npos ? text : text.replace(at, what.size(), with);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

void expect_same(const TraceRecord& x, const TraceRecord& y) {
  EXPECT_EQ(x.flow, y.flow);
  EXPECT_EQ(x.kind, y.kind);
  EXPECT_EQ(x.profile->name, y.profile->name);
  EXPECT_EQ(x.profile->plugin, y.profile->plugin);
  ASSERT_EQ(x.profile->values.size(), y.profile->values.size());
  for (size_t i = 0; i < x.profile->values.size(); ++i) {
    EXPECT_EQ(std::bit_cast<uint64_t>(x.profile->values[i]), std::bit_cast<uint64_t>(y.profile->values[i]));
  }
  EXPECT_EQ(std::memcmp(&x.info, &y.info, sizeof x.info), 0);
  EXPECT_EQ(std::memcmp(&x.event, &y.event, sizeof x.event), 0);
  EXPECT_EQ(x.has_path, y.has_path);
  EXPECT_EQ(std::memcmp(&x.path, &y.path, sizeof x.path), 0);
  EXPECT_EQ(std::memcmp(&x.decision, &y.decision, sizeof x.decision), 0);
}

class TraceOfEveryPlugin : public testing::TestWithParam<const roci_cc_plugin*> {};

TEST_P(TraceOfEveryPlugin, is_identical_after_reading_and_replay) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Drive drive(GetParam()->name, 4000, seed);
    const std::vector<TraceRecord> records = drive.events(400).records();
    ASSERT_EQ(drive.lost(), 0U);
    ASSERT_GE(records.size(), 404U);
    const auto trace = read(json_of(records));
    ASSERT_TRUE(trace) << trace.error().message;
    ASSERT_EQ((*trace)->records.size(), records.size());
    for (size_t i = 0; i < records.size(); ++i) expect_same(records[i], (*trace)->records[i]);
    EXPECT_EQ((*trace)->profiles.size(), 2U);
    for (const auto& each : {records, (*trace)->records}) {
      const ReplayOutcome outcome = replay(each);
      EXPECT_EQ(outcome.flows, 4U);
      EXPECT_EQ(outcome.events, records.size() - 4);
      EXPECT_EQ(outcome.without, 0U);
      EXPECT_EQ(outcome.different, 0U) << outcome.first;
    }
  }
}

TEST_P(TraceOfEveryPlugin, has_the_same_number_of_columns_in_each_csv_row) {
  const std::vector<TraceRecord> records = Drive(GetParam()->name, 4000).events(200).records();
  std::ostringstream out;
  write_trace_csv(records, out);
  // Quoted cells may contain commas and newlines.
  size_t columns = 1, rows = 0, of_heading = 0;
  bool quoted = false;
  for (const char c : out.str()) {
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == ',') ++columns;
    if (c != '\n') continue;
    if (rows == 0) of_heading = columns;
    ASSERT_EQ(columns, of_heading) << "row " << rows;
    ++rows;
    columns = 1;
  }
  EXPECT_FALSE(quoted);
  EXPECT_EQ(rows, records.size() + 1);
  EXPECT_NE(out.str().find(",\"odd, \"\"name\"\"\n\","), std::string::npos);
}

// The newest events of a long run can be replayed from the state that was saved before them.
TEST_P(TraceOfEveryPlugin, newer_half_is_replayed_without_the_start) {
  for (const uint32_t most : {16U, 100U, 999U}) {
    SCOPED_TRACE(most);
    Drive drive(GetParam()->name, most, most);
    const std::vector<TraceRecord> records = drive.events(5 * static_cast<int>(most)).records();
    ASSERT_EQ(records.size(), most);
    const auto trace = read(json_of(records));
    ASSERT_TRUE(trace) << trace.error().message;
    for (size_t i = 0; i < records.size(); ++i) expect_same(records[i], (*trace)->records[i]);
    for (const auto& each : {records, (*trace)->records}) {
      const ReplayOutcome outcome = replay(each);
      EXPECT_EQ(outcome.different, 0U) << outcome.first;
      EXPECT_GT(outcome.without, 0U);
      // Of the newer half, all except the event that precedes a saved state.
      const auto from = each.begin() + static_cast<ptrdiff_t>(most - most / 2 + 1);
      const auto newer = static_cast<uint64_t>(std::count_if(
          from, each.end(), [](const TraceRecord& r) { return r.kind == TraceRecord::Kind::kEvent; }));
      EXPECT_GE(outcome.events, newer - 4);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Built, TraceOfEveryPlugin, testing::ValuesIn(test::every_plugin()),
                         [](const auto& p) { return std::string(p.param->name); });

TEST(TraceTest, keeps_the_newest_records_and_counts_lost_ones) {
  Drive drive("dcqcn", 100);
  drive.events(300);
  const std::vector<TraceRecord> all = Drive("dcqcn", 10'000).events(300).records();
  const std::vector<TraceRecord> kept = drive.records();
  ASSERT_EQ(kept.size(), 100U);
  EXPECT_GE(drive.lost(), all.size() - 100);
  const auto times = [](const std::vector<TraceRecord>& records) {
    std::vector<uint64_t> of;
    for (const TraceRecord& record : records)
      if (record.kind == TraceRecord::Kind::kEvent) of.push_back(record.event.now_ns);
    return of;
  };
  const std::vector<uint64_t> newest = times(kept), every = times(all);
  ASSERT_GT(newest.size(), 80U) << "states take little of the room";
  EXPECT_TRUE(std::equal(newest.rbegin(), newest.rend(), every.rbegin()));
  EXPECT_TRUE(Drive("dcqcn", 0).events(5).records().empty());
}

TEST(TraceTest, replay_detects_a_different_state) {
  Drive drive("dcqcn", 400);
  std::vector<TraceRecord> records = drive.events(220).records();
  ASSERT_EQ(drive.lost(), 0U) << "the state must not be the first that is known of its flow";
  const auto at = std::ranges::find(records, TraceRecord::Kind::kState, &TraceRecord::kind);
  ASSERT_NE(at, records.end());
  static_cast<uint8_t*>(at->state())[3] ^= 1;
  const ReplayOutcome outcome = replay(records);
  EXPECT_EQ(outcome.different, 1U);
  EXPECT_NE(outcome.first.find("the state differs from the state in the trace"), std::string::npos);
}

TEST(TraceTest, reader_rejects_a_modified_state) {
  const std::string text = json_of(Drive("swift", 100).events(300).records());
  const size_t at = text.find("\"bytes\":\"");
  ASSERT_NE(at, std::string::npos);
  const auto refused = [&](size_t from, size_t count, const std::string& with, const std::string& why) {
    const std::string error = error_of(std::string(text).replace(at + 9 + from, count, with));
    EXPECT_NE(error.find(why), std::string::npos) << error;
  };
  refused(0, 2, text.substr(at + 9, 2) == "00" ? "01" : "00", "'sum' does not match 'bytes'");
  refused(0, 2, "0g", "'bytes' contains a character that is not a hexadecimal digit");
  refused(0, 2, "", "'bytes' has 94 digits; the plugin's state has 48 bytes");
  EXPECT_EQ(error_of(text), "");
}

TEST(TraceTest, flows_without_a_start_record_are_read_but_not_replayed) {
  std::vector<TraceRecord> records = Drive("swift", 10'000).events(300).records();
  records.erase(records.begin(), records.begin() + 2);  // two of four start records
  const auto kept = static_cast<uint64_t>(std::ranges::count_if(records, [&](const TraceRecord& r) {
    return r.kind != TraceRecord::Kind::kStart && r.flow != records[0].flow && r.flow != records[1].flow;
  }));
  ASSERT_GT(kept, 0U);
  const auto trace = read(json_of(records));
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ((*trace)->records.size(), records.size());
  for (size_t i = 0; i < records.size(); ++i) expect_same(records[i], (*trace)->records[i]);
  const ReplayOutcome outcome = replay((*trace)->records);
  EXPECT_EQ(outcome.flows, 2U);
  EXPECT_EQ(outcome.without, kept);
  EXPECT_EQ(outcome.events, records.size() - 2 - kept);
  EXPECT_EQ(outcome.different, 0U) << outcome.first;
}

TEST(TraceTest, replay_reports_the_first_different_decision) {
  std::vector<TraceRecord> records = Drive("dcqcn", 10'000).events(50).records();
  records[4].decision.gap_ns = 7;
  records[20].decision.state = 2;
  ReplayOutcome outcome = replay(records);
  EXPECT_EQ(outcome.different, 2U);
  EXPECT_EQ(outcome.first, "flow " + std::to_string(records[4].flow) +
                               " (dcqcn), event 1: gap_ns is 7 in the trace and 0 now");
  records[0].decision.state = 2;
  records[1].decision.window = 5;
  outcome = replay(records);
  EXPECT_EQ(outcome.different, 4U);
  EXPECT_EQ(outcome.first,
            "flow 4294967294 (dcqcn), start: state is additive_increase in the trace and line_rate now");
  records[0].decision.state = 99;
  EXPECT_NE(replay(records).first.find("state is 99 in the trace"), std::string::npos);
}

TEST(TraceTest, replay_detects_a_different_parameter_value) {
  const std::string text = json_of(Drive("static_rate", 100).events(3).records());
  const auto trace = read(replaced(text, R"({"rate":0.0})", R"({"rate":1e9})"));
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ((*trace)->profiles.size(), 3U);  // the profile of one flow differs now
  EXPECT_EQ(replay((*trace)->records).first,
            "flow 4294967294 (static_rate), start: rate is 100000000000 in the trace and 1000000000 now");
}

TEST(TraceTest, missing_parameter_has_its_standard_value) {
  const std::string text = json_of(Drive("dcqcn", 1000).events(50).records());
  const auto trace = read(replaced(text, R"("notice_alpha":0.0)", R"("window":0)"));
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(replay((*trace)->records).different, 0U);
}

TEST(TraceTest, error_message_contains_the_line_number) {
  const std::string text = json_of(Drive("static_rate", 100).events(3).records());
  const std::string first = lines_of(text)[0] + "\n";
  EXPECT_EQ(error_of(""),
            "empty; a congestion control trace must start with {\"type\":\"trace\",\"version\":1}");
  EXPECT_EQ(error_of(lines_of(text)[1]),
            "line 1: a congestion control trace must start with {\"type\":\"trace\",\"version\":1}");
  EXPECT_EQ(error_of("flow,profile\n"), "line 1: not a JSON object; the line may be truncated");
  EXPECT_EQ(error_of(R"({"type":"trace","version":2})"),
            "line 1: unsupported trace version; supported is version 1");
  EXPECT_EQ(error_of(first + R"({"flow":1})"), "line 2: missing string 'type'");
  EXPECT_EQ(error_of(first + R"({"type":"end","flow":1})"),
            "line 2: unknown type 'end'; allowed are trace, flow, start, event and state");
  EXPECT_TRUE(error_of(replaced(text, R"("plugin":"static_rate")", R"("plugin":"reno")"))
                  .starts_with("line 2: unknown congestion control algorithm 'reno'; available are dcqcn, "));
  EXPECT_EQ(error_of(replaced(text, R"({"rate":)", R"({"speed":)")),
            "line 2: static_rate has no parameter 'speed'; available are rate");
  EXPECT_EQ(error_of(replaced(text, R"({"rate":0.0)", R"({"rate":-1)")),
            "line 2: parameter rate is -1; 0 to 1e+13 bit/s is allowed");
  EXPECT_EQ(error_of(replaced(text, R"("gap_ns":0)", R"("gap_ns":-1)")),
            "line 2: decision: gap_ns is not a whole number from 0 of 64 bits");
  EXPECT_EQ(error_of(replaced(text, R"("state":0)", R"("state":65536)")),
            "line 2: decision: state is not a whole number from 0 of 16 bits");
  EXPECT_EQ(error_of(replaced(text, R"("gap_ns":0,)", "")), "line 2: 'decision' has no gap_ns");
  EXPECT_EQ(error_of(replaced(text, R"("gap_ns":0)", R"("gap_ns":0,"gap":0)")),
            "line 2: 'decision' has an unknown key 'gap'");
  EXPECT_EQ(error_of(replaced(text, R"("packet_bytes":1048)", R"("packet_bytes":0)")),
            "line 2: info: line_rate, packet_bytes and payload_bytes must be positive, and payload_bytes at "
            "most packet_bytes");
  const std::string event = R"({"type":"event","flow":3,"event":{"now_ns":5},"decision":)" +
                            lines_of(text)[1].substr(lines_of(text)[1].rfind('{'));
  EXPECT_EQ(error_of(first + event), "line 2: no earlier line specifies which algorithm flow 3 runs");
  EXPECT_EQ(error_of(text + replaced(event, ":3,", ":0,")),
            "line " + std::to_string(lines_of(text).size() + 1) + ": the time of flow 0 decreases");
}

// Truncated and changed files: an error, or a trace that can be replayed.
TEST(TraceTest, random_changes_yield_an_error_or_a_replayable_trace) {
  std::mt19937_64 rng(11);
  uint64_t refused = 0, taken = 0;
  for (const roci_cc_plugin* plugin : test::every_plugin()) {
    const std::string whole = json_of(Drive(plugin->name, 1000).events(12).records());
    const std::string ring = json_of(Drive(plugin->name, 16).events(30).records());
    for (uint64_t i = 0; i < test::repetitions(400); ++i) {
      std::string bad = i % 2 == 0 ? whole : ring;
      for (uint64_t changes = 1 + rng() % 3; changes > 0; --changes) {
        const size_t at = rng() % bad.size();
        switch (rng() % 5) {
          case 0:  // often a digit, so that the file stays readable
            bad[at] = static_cast<char>('0' + rng() % 10);
            break;
          case 1:
            bad[at] = static_cast<char>(rng());
            break;
          case 2:
            bad.resize(at + 1);
            break;
          case 3:
            bad.erase(at, rng() % 40);
            break;
          default:
            bad.insert(at, bad.substr(rng() % bad.size(), rng() % 40));
        }
      }
      const auto trace = read(bad);
      if (!trace) {
        ++refused;
        ASSERT_TRUE(trace.error().message.starts_with("line ")) << trace.error().message;
        continue;
      }
      ++taken;
      replay((*trace)->records);
      std::ostringstream out;
      write_trace_csv((*trace)->records, out);
      const auto again = read(json_of((*trace)->records));
      ASSERT_TRUE(again) << again.error().message;
      ASSERT_EQ((*again)->records.size(), (*trace)->records.size());
    }
  }
  EXPECT_GT(refused, test::repetitions(100));
  EXPECT_GT(taken, test::repetitions(100));
}

}  // namespace
}  // namespace roci

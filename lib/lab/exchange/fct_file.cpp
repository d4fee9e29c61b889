#include "lab/exchange/fct_file.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "lab/exchange/ns3_words.hpp"
#include "lab/results/summary.hpp"

namespace roci::lab {
namespace {

constexpr std::string_view kHeading = "src,dst,bytes,start_ns,fct_ns,ideal_ns";
constexpr size_t kNs3Columns = 8, kCsvColumns = 6;
constexpr uint64_t kMaxFctBytes = 1ULL << 50;
constexpr uint64_t kMaxFctTime = 1ULL << 53;  // ns

Result<FctRecord> record_of(const std::array<std::string_view, 4>& words) {
  constexpr std::array<const char*, 4> kNames = {"bytes", "start", "duration", "minimum duration"};
  constexpr std::array<uint64_t, 4> kLeast = {1, 0, 1, 1};
  std::array<uint64_t, 4> values{};
  for (size_t i = 0; i < words.size(); ++i) {
    auto value = parse_ns3_number(words[i], kLeast[i], i == 0 ? kMaxFctBytes : kMaxFctTime);
    if (!value) return fail(std::string(kNames[i]) + ": " + value.error().message);
    values[i] = *value;
  }
  return FctRecord{values[0], Nanos{static_cast<int64_t>(values[1])}, Nanos{static_cast<int64_t>(values[2])},
                   static_cast<double>(values[3])};
}

std::vector<std::string_view> split_at_commas(std::string_view line) {
  std::vector<std::string_view> out;
  for (;;) {
    const size_t comma = line.find(',');
    out.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return out;
    line.remove_prefix(comma + 1);
  }
}

Result<FctRecord> csv_record(const std::vector<Ns3Word>& line) {
  const auto columns = split_at_commas(line.front().text);
  if (line.size() != 1 || columns.size() != kCsvColumns)
    return fail("six columns are required: " + std::string(kHeading));
  return record_of({columns[2], columns[3], columns[4], columns[5]});
}

Result<FctRecord> ns3_record(const std::vector<Ns3Word>& line) {
  if (line.size() != kNs3Columns)
    return fail(
        std::to_string(line.size()) +
        " words; sender, receiver, two ports, bytes, start, duration and minimum duration are required");
  return record_of({line[4].text, line[5].text, line[6].text, line[7].text});
}

template <class Flow>
std::vector<size_t> by_size_and_start(const std::vector<Flow>& flows) {
  std::vector<size_t> order(flows.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {},
                           [&](size_t i) { return std::pair(flows[i].bytes, flows[i].start.count()); });
  return order;
}

// Minimum durations of `run` by record; empty if it has other flows.
std::vector<double> ideals_in(const StoredRun& run, const std::vector<FctRecord>& records) {
  if (run.flows.size() != records.size()) return {};
  std::vector<double> out(records.size());
  const auto flows = by_size_and_start(run.flows), order = by_size_and_start(records);
  for (size_t i = 0; i < order.size(); ++i) {
    const StoredFlow& flow = run.flows[flows[i]];
    if (flow.bytes != records[order[i]].bytes || flow.ideal <= 0) return {};
    out[order[i]] = flow.ideal;
  }
  return out;
}

// Traffic of the run with these flows, so that reports show both in one chart.
std::string traffic_in(const StoredRun& run) {
  const auto traffic = run.summary.find("traffic");
  return traffic != run.summary.end() && traffic->size() == 1 ? traffic->begin().key() : "flows";
}

}  // namespace

Result<std::vector<FctRecord>> parse_fct(std::string_view text, const std::string& name) {
  Ns3Words words(text, name);
  std::vector<FctRecord> out;
  const bool is_csv = text.starts_with(kHeading);
  if (is_csv) (void)words.line();
  for (auto line = words.line(); !line.empty(); line = words.line()) {
    auto record = is_csv ? csv_record(line) : ns3_record(line);
    if (!record) return fail(words.error(line.front().line, record.error().message));
    out.push_back(*record);
  }
  if (out.empty()) return fail(name + ": contains no flows");
  return out;
}

Result<std::vector<FctRecord>> read_fct(const std::string& file) {
  auto text = read_ns3_text(file);
  if (!text) return fail(text.error());
  return parse_fct(*text, file);
}

StoredRun run_of_fct(const std::string& file, const std::vector<FctRecord>& records,
                     const std::vector<StoredRun>& runs) {
  std::vector<double> ideals;
  std::string source, traffic = "flows";
  for (const StoredRun& run : runs) {
    ideals = ideals_in(run, records);
    if (ideals.empty()) continue;
    source = run.run.value("name", std::string());
    traffic = traffic_in(run);
    break;
  }
  std::vector<FlowTime> times;
  for (size_t i = 0; i < records.size(); ++i)
    times.push_back({records[i].bytes, static_cast<double>(records[i].duration.count()),
                     ideals.empty() ? records[i].ideal : ideals[i]});
  StoredRun out;
  const std::string minimum = ideals.empty() ? "the file" : "run '" + source + "'";
  out.run = {{"name", file},
             {"about", "completion times of another simulator; minimum durations of " + minimum}};
  nlohmann::ordered_json summary = {{"flows", records.size()}, {"failed", 0}};
  summary.update(completion_summary(times));
  out.summary["scenario"] = "other simulator";
  out.summary["traffic"][traffic] = std::move(summary);
  return out;
}

}  // namespace roci::lab

// Reader of scenario files; docs/lab.md describes all keys.
#include <algorithm>

#include "lab/scenario/scenario_sections.hpp"

namespace roci::lab {
namespace {

constexpr Nanos kMaxRun = 3600s;
constexpr size_t kMaxRuns = 10'000;

Status read_windows(ConfigNode& root, Scenario& scenario) {
  return root.each("windows", Need::kOptional, [&](ConfigNode& node) -> Status {
    TimeWindow window;
    window.until = scenario.duration;
    ROCI_TRY(node.required("name", window.name));
    for (const TimeWindow& other : scenario.windows)
      if (other.name == window.name) return node.error("name", "duplicate window '" + window.name + "'");
    ROCI_TRY(node.optional("from", window.from));
    if (window.from < Nanos{0}) return node.error("from", "must not be negative");
    ROCI_TRY(node.optional("until", window.until));
    if (window.until <= window.from || window.until > scenario.duration)
      return node.error("until", "must come after from and not after the duration");
    scenario.windows.push_back(std::move(window));
    return {};
  });
}

Status read_all(ConfigNode& root, Scenario& scenario) {
  ROCI_TRY(root.required("name", scenario.name));
  ROCI_TRY(root.optional("about", scenario.about));
  ROCI_TRY(root.optional("source", scenario.source));
  ROCI_TRY(root.optional("seed", scenario.seed, integer_in<uint64_t>(1, 1ULL << 48)));
  ROCI_TRY(root.optional("time_origin", scenario.time_origin));
  if (scenario.time_origin < Nanos{0} || scenario.time_origin > kMaxRun)
    return root.error("time_origin", "must be at most 1 h");
  ROCI_TRY(root.required("duration", scenario.duration));
  if (scenario.duration <= Nanos{0} || scenario.duration > kMaxRun)
    return root.error("duration", "must be above 0 and at most 1 h");
  ROCI_TRY(root.optional("drain", scenario.drain));
  if (scenario.drain < Nanos{0} || scenario.drain > kMaxRun)
    return root.error("drain", "must be at most 1 h");
  ROCI_TRY(root.optional("settle", scenario.settle));
  if (scenario.settle < Nanos{0} || scenario.settle >= scenario.duration)
    return root.error("settle", "must be less than duration");
  ROCI_TRY(root.optional("sample", scenario.sample));
  if (scenario.sample < 100ns || scenario.sample > kMaxRun)
    return root.error("sample", "must be 100 ns to 1 h");
  ROCI_TRY(root.optional("payload", scenario.payload, one_of<bool>({{"carried", true}, {"absent", false}})));
  ROCI_TRY(read_topology(root, scenario.topology));
  ROCI_TRY(read_hosts(root, scenario));
  ROCI_TRY(read_switches(root, scenario));
  ROCI_TRY(read_traffic(root, scenario));
  ROCI_TRY(read_faults(root, scenario));
  ROCI_TRY(read_ports(root, scenario));
  ROCI_TRY(read_windows(root, scenario));
  // These keys are read by read_runs() and read_expectations().
  for (const char* key : {"variants", "sweep", "expect"}) (void)root.piece(key);
  return {};
}

// Reads `sweep`: every combination of the values of its lists.
Status read_sweep(ConfigNode& root, std::vector<RunSpec>& runs) {
  return root.section("sweep", Need::kOptional, [&](ConfigNode& node) -> Status {
    for (const std::string& path : node.keys()) {
      std::vector<std::string> values;
      ROCI_TRY(node.required_values(path, values));
      if (values.empty()) return node.error(path, "has no values");
      const std::string origin = node.piece(path)->where;
      std::vector<RunSpec> more;
      for (const RunSpec& run : runs) {
        for (const std::string& value : values) {
          RunSpec& one = more.emplace_back(run);
          one.name += (one.name.empty() ? "" : " ") + path.substr(path.rfind('.') + 1) + "=" + value;
          one.changes.push_back({path, value, origin});
        }
      }
      runs = std::move(more);
      if (runs.size() > kMaxRuns)
        return node.error("at least " + std::to_string(runs.size()) + " runs; the maximum is " +
                          std::to_string(kMaxRuns));
    }
    return {};
  });
}

Status read_variants(ConfigNode& root, std::vector<RunSpec>& runs) {
  std::vector<RunSpec> variants;
  ROCI_TRY(root.each("variants", Need::kOptional, [&](ConfigNode& node) -> Status {
    RunSpec variant;
    ROCI_TRY(node.required("name", variant.name));
    for (const RunSpec& other : variants)
      if (other.name == variant.name) return node.error("name", "duplicate variant '" + variant.name + "'");
    ROCI_TRY(node.section("set", Need::kOptional, [&](ConfigNode& set) -> Status {
      for (const std::string& path : set.keys()) {
        auto piece = set.piece(path);
        variant.changes.push_back({path, piece->yaml, piece->where});
      }
      return {};
    }));
    variants.push_back(std::move(variant));
    return {};
  }));
  if (!variants.empty()) runs = std::move(variants);
  return {};
}

std::string joined(const std::vector<RunSpec>& runs) {
  std::string out;
  for (const RunSpec& run : runs) out += (out.empty() ? "'" : ", '") + run.called() + "'";
  return out;
}

Result<std::string> reason_of_failure(std::string_view text) {
  if (text.find_first_not_of(" \t\n") == std::string_view::npos) return fail("a reason is required");
  return std::string{text};
}

}  // namespace

Result<std::vector<RunSpec>> read_runs(const std::string& file, const std::vector<ConfigChange>& changes) {
  std::vector<RunSpec> runs{{"", {}}};
  Status read = read_config(
      file,
      [&](ConfigNode& root) -> Status {
        for (const std::string& key : root.keys())
          (void)root.piece(key);  // other keys are read with each run
        ROCI_TRY(read_variants(root, runs));
        return read_sweep(root, runs);
      },
      changes);
  if (!read) return fail(read.error());
  return runs;
}

Result<std::vector<Expectation>> read_expectations(const std::string& file,
                                                   const std::vector<RunSpec>& runs) {
  std::vector<Expectation> out;
  Status read = read_config(file, [&](ConfigNode& root) -> Status {
    for (const std::string& key : root.keys()) (void)root.piece(key);
    return root.each("expect", Need::kOptional, [&](ConfigNode& node) -> Status {
      std::string claim;
      ROCI_TRY(node.required("claim", claim));
      Expectation expectation;
      ROCI_TRY(
          node.required("that", expectation, [&](std::string_view text) { return parse_expectation(text); }));
      expectation.claim = std::move(claim);
      ROCI_TRY(node.optional("fails", expectation.fails, reason_of_failure));
      ROCI_TRY(
          node.optional("confidence", expectation.confidence, number_in(kMinConfidence, kMaxConfidence)));
      for (const std::string& name : expectation.runs()) {
        if (std::ranges::none_of(runs, [&](const RunSpec& run) { return run.called() == name; }))
          return node.error("that", "unknown run '" + name + "'; available are " + joined(runs));
      }
      out.push_back(std::move(expectation));
      return {};
    });
  });
  if (!read) return fail(read.error());
  return out;
}

Result<Scenario> read_scenario(const std::string& file, const std::vector<ConfigChange>& changes) {
  Scenario scenario;
  scenario.file = file;
  ROCI_TRY(read_config(
      file, [&](ConfigNode& root) { return read_all(root, scenario); }, changes));
  return scenario;
}

Result<Scenario> parse_scenario(const std::string& text, const std::string& name,
                                const std::vector<ConfigChange>& changes) {
  Scenario scenario;
  scenario.file = name;
  ROCI_TRY(parse_config(
      text, name, [&](ConfigNode& root) { return read_all(root, scenario); }, changes));
  return scenario;
}

}  // namespace roci::lab

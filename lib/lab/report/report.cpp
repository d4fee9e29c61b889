#include "lab/report/report.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <string_view>
#include <utility>

#include "lab/report/report_files.hpp"
#include "lab/results/summary.hpp"

namespace roci::lab {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kGoodputUnit = 1e9;  // bit/s
// Limits of the report for each run.
struct ReportLimits {
  size_t points;  // per series
  size_t ports;   // ports with queue charts
};
ReportLimits limits_for(size_t runs) {
  if (runs <= 4) return {1000, 8};
  if (runs <= 12) return {500, 8};
  return {250, 4};
}

// Value at the end of a path of keys; null if the path does not exist.
Json value_at(const Json& from, const std::vector<std::string>& keys) {
  const Json* at = &from;
  for (const std::string& name : keys) {
    if (!at->is_object() || !at->contains(name)) return nullptr;
    at = &(*at)[name];
  }
  return *at;
}

Json sum_of(const Json& one, const Json& other) {
  if (one.is_null() || other.is_null()) return one.is_null() ? other : one;
  return one.get<uint64_t>() + other.get<uint64_t>();
}

Json text_of(const Json& json, const char* name) {
  const Json found = value_at(json, {name});
  return found.is_string() ? found : Json("");
}

double four_digits(double value) { return to_digits(value, 4); }
int64_t whole(double value) { return std::isfinite(value) ? std::llround(value) : 0; }

enum class Thinning : uint8_t { kMax, kMean };

// Merges each `step` values into one.
std::vector<double> thinned(const std::vector<double>& values, size_t step, Thinning how) {
  std::vector<double> out;
  out.reserve(values.size() / step + 1);
  for (size_t from = 0; from < values.size(); from += step) {
    const size_t to = std::min(from + step, values.size());
    double most = values[from], sum = 0;
    for (size_t i = from; i < to; ++i) {
      most = std::max(most, values[i]);
      sum += values[i];
    }
    out.push_back(how == Thinning::kMax ? most : sum / static_cast<double>(to - from));
  }
  return out;
}

size_t step_for(const StoredRun& run, size_t points) {
  size_t length = 1;
  for (const Series* series : {&run.queue_most, &run.queue_mean, &run.goodput})
    for (const auto& column : series->values) length = std::max(length, column.size());
  return (length + points - 1) / points;
}

// Percentiles of distributions: whole percents, and tenths of the last one.
std::vector<double> spread_percents() {
  std::vector<double> out;
  for (int i = 0; i < 99; ++i) out.push_back(i);
  for (int i = 990; i <= 1000; ++i) out.push_back(i / 10.0);
  return out;
}

// Queue lengths at these percentiles, without the first `settled` bins.
Json spread_of(const std::vector<double>& values, size_t settled) {
  Json out = Json::array();
  if (settled >= values.size()) return out;
  std::vector<double> sorted(values.begin() + static_cast<std::ptrdiff_t>(settled), values.end());
  std::ranges::sort(sorted);
  for (const double percent : spread_percents())
    out.push_back(whole(sorted[static_cast<size_t>(percent / 100 * static_cast<double>(sorted.size() - 1))]));
  return out;
}

// Ports with the longest queues after the settling time, in descending order, as indices into the series.
std::vector<size_t> busiest_ports(const StoredRun& run, size_t most) {
  const auto& names = run.queue_most.names;
  std::vector<size_t> out;
  const Json queues = value_at(run.summary, {"queues_bytes"});
  if (queues.is_object()) {
    for (const auto& [name, percentiles] : queues.items()) {
      const auto at = std::ranges::find(names, name);
      if (at != names.end()) out.push_back(static_cast<size_t>(at - names.begin()));
    }
  }
  if (out.size() > most) out.resize(most);
  return out;
}

Json queues_of(const StoredRun& run, const ReportLimits& limits, size_t step) {
  Json out = Json::array();
  const int64_t settle = run.summary.value("settle_ns", int64_t{0});
  const size_t settled = run.bin.count() > 0 ? static_cast<size_t>(settle / run.bin.count()) : 0;
  for (const size_t port : busiest_ports(run, limits.ports)) {
    Json most = Json::array(), mean = Json::array(), spread = Json::array();
    for (const double value : thinned(run.queue_most.values[port], step, Thinning::kMax))
      most.push_back(whole(value));
    if (port < run.queue_mean.values.size()) {
      for (const double value : thinned(run.queue_mean.values[port], step, Thinning::kMean))
        mean.push_back(whole(value));
      spread = spread_of(run.queue_mean.values[port], settled);
    }
    out.push_back({{"port", run.queue_most.names[port]},
                   {"most", std::move(most)},
                   {"mean", std::move(mean)},
                   {"spread", std::move(spread)}});
  }
  return out;
}

Json goodput_of(const StoredRun& run, size_t step) {
  Json values = Json::array();
  for (const auto& column : run.goodput.values) {
    Json points = Json::array();
    for (const double value : thinned(column, step, Thinning::kMean))
      points.push_back(four_digits(value / kGoodputUnit));
    values.push_back(std::move(points));
  }
  return {{"names", run.goodput.names}, {"values", std::move(values)}};
}

// Slowdown of flows, or of messages, by size.
Json slowdown_of(const Json& traffic) {
  const Json slowdown = value_at(traffic, {"slowdown"});
  if (!slowdown.is_object()) return nullptr;
  Json out = Json::object();
  for (const char* size : kSizeNames)
    if (slowdown.contains(size)) out[size] = slowdown[size];
  return out.empty() ? Json(nullptr) : out;
}

Json traffic_of(const StoredRun& run) {
  Json out = Json::array();
  const Json all = value_at(run.summary, {"traffic"});
  if (!all.is_object()) return out;
  for (const auto& [name, one] : all.items()) {
    // The slowdown is undefined if no flow has ended.
    const bool ended =
        value_at(one, {"slowdown", "all", "count"}).is_number() && one["slowdown"]["all"]["count"] > 0;
    out.push_back({{"name", name},
                   {"goodput_bps", value_at(one, {"goodput_bps"})},
                   {"jain", value_at(one, {"jain"})},
                   {"slowdown_p50", ended ? value_at(one, {"slowdown", "all", "p50"}) : Json(nullptr)},
                   {"slowdown_p99", ended ? value_at(one, {"slowdown", "all", "p99"}) : Json(nullptr)},
                   {"slowdown", slowdown_of(one)}});
  }
  return out;
}

// Row of the table. Values that the run does not have are null.
Json figures_of(const StoredRun& run, const Json& traffic) {
  Json out;
  Json goodput;
  for (const Json& one : traffic) {
    if (one["goodput_bps"].is_number())
      goodput = (goodput.is_null() ? 0 : goodput.get<double>()) + one["goodput_bps"].get<double>();
  }
  out["goodput_bps"] = goodput;
  // Values of one traffic, which cannot be added.
  for (const char* name : {"jain", "slowdown_p50", "slowdown_p99"})
    out[name] = traffic.size() == 1 ? traffic[0][name] : Json(nullptr);
  Json port, queue;
  const Json queues = value_at(run.summary, {"queues_bytes"});
  if (queues.is_object()) {
    for (const auto& [name, percentiles] : queues.items()) {
      if (name == "all_ports") continue;
      port = name;
      queue = percentiles;
      break;
    }
  }
  out["port"] = port;
  for (const char* name : {"p50", "p95", "p99", "most"})
    out[std::string("queue_") + name] = value_at(queue, {name});
  out["drops"] = value_at(run.summary, {"drops", "all"});
  const auto counted = [&](const char* section, const char* name) {
    return value_at(run.summary, {section, name});
  };
  out["marks"] = counted("switches", "marked");
  out["cnps"] = sum_of(counted("hosts", "np_cnp_sent"), counted("switches", "cnps_sent"));
  out["pauses"] = sum_of(counted("hosts", "pauses_sent"), counted("switches", "pauses_sent"));
  out["retransmissions"] = counted("hosts", "packets_retransmitted");
  return out;
}

Json run_of(const StoredRun& run, const ReportLimits& limits) {
  const size_t step = step_for(run, limits.points);
  Json traffic = traffic_of(run);
  Json figures = figures_of(run, traffic);
  return {{"name", text_of(run.run, "name")},
          {"scenario", text_of(run.summary, "scenario")},
          {"about", text_of(run.run, "about")},
          {"source", text_of(run.run, "source")},
          {"command", text_of(run.run, "command")},
          {"seed", value_at(run.summary, {"seed"})},
          {"duration_ns", run.summary.value("duration_ns", int64_t{0})},
          {"settle_ns", run.summary.value("settle_ns", int64_t{0})},
          {"bin_ns", run.bin.count() * static_cast<int64_t>(step)},
          {"figures", std::move(figures)},
          {"traffic", std::move(traffic)},
          {"queues", queues_of(run, limits, step)},
          {"goodput", goodput_of(run, step)}};
}

// Escapes `<`, so that no name can end the script element with the data. In JSON, `<` occurs only in strings.
std::string script_text(const Json& data) {
  const std::string json = data.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string out;
  out.reserve(json.size());
  for (const char c : json) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  return out;
}

std::string html_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else
      out += c;
  }
  return out;
}

// Replaces {{name}} by its value. Values are not searched for further names.
std::string filled(std::string_view page,
                   const std::vector<std::pair<std::string, std::string_view>>& values) {
  std::string out;
  for (size_t at = 0; at < page.size();) {
    const auto found = std::ranges::find_if(
        values, [&](const auto& one) { return page.substr(at).starts_with("{{" + one.first + "}}"); });
    if (found == values.end()) {
      out += page[at++];
      continue;
    }
    out += found->second;
    at += found->first.size() + 4;
  }
  return out;
}

}  // namespace

Status write_report(const std::string& file, const std::string& title, const std::vector<StoredRun>& runs,
                    const std::vector<Claim>& claims) {
  if (runs.empty()) return fail("a report requires at least one run");
  const ReportLimits limits = limits_for(runs.size());
  Json data{{"goodput_unit_bps", kGoodputUnit}, {"spread_percent", spread_percents()}, {"sizes", kSizeNames}};
  data["runs"] = Json::array();
  for (const StoredRun& run : runs) data["runs"].push_back(run_of(run, limits));
  data["claims"] = Json::array();
  for (const Claim& one : claims)
    data["claims"].push_back({{"claim", one.claim},
                              {"that", one.that},
                              {"found", one.found},
                              {"holds", one.holds},
                              {"fails", one.fails}});
  const std::string text = script_text(data), shown_title = html_text(title);
  std::ofstream out{file, std::ios::binary};
  out << filled(report_html(), {{"title", shown_title},
                                {"style", report_css()},
                                {"chart", chart_js()},
                                {"data", text},
                                {"common", common_js()},
                                {"charts", charts_js()},
                                {"report", report_js()}});
  out.close();
  if (!out) return fail("'" + file + "' cannot be written");
  return {};
}

}  // namespace roci::lab

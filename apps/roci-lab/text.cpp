#include "roci-lab/text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <iterator>

#include "lab/results/summary.hpp"

namespace roci::lab {
namespace {

template <class... Values>
std::string printed(const char* format, Values... values) {
  std::array<char, 256> text;
  const int length = std::snprintf(text.data(), text.size(), format, values...);
  return {text.data(), static_cast<size_t>(std::min<int>(length, static_cast<int>(text.size()) - 1))};
}

std::string scaled(double value, const char* unit) {
  constexpr std::array<const char*, 5> kPrefixes = {"", "K", "M", "G", "T"};
  size_t prefix = 0;
  for (; std::fabs(value) >= 999.5 && prefix + 1 < kPrefixes.size(); ++prefix) value /= 1000;
  const int places = prefix == 0 || std::fabs(value) >= 99.95 ? 0 : std::fabs(value) >= 9.995 ? 1 : 2;
  return printed("%.*f %s%s", places, value, kPrefixes[prefix], unit);
}

std::string bytes_of(const nlohmann::ordered_json& queue, const char* name) {
  return queue.contains(name) ? scaled(queue[name].get<double>(), "B") : "-";
}

// Values missing from a summary are printed as "-" or 0.
std::string line_of(const std::string& name, const nlohmann::ordered_json& summary, double hops_per_second) {
  const nlohmann::ordered_json* const longest = longest_queue(summary);
  const nlohmann::ordered_json queue = longest != nullptr ? *longest : nlohmann::ordered_json::object();
  const nlohmann::ordered_json counted = summary.value("drops", nlohmann::ordered_json::object());
  const std::string drops = counted.contains("all") ? scaled(counted["all"].get<double>(), "") : "-";
  std::string out;
  const nlohmann::ordered_json all = summary.value("traffic", nlohmann::ordered_json::object());
  for (const auto& [traffic, result] : all.items()) {
    const bool first = out.empty();
    const std::string fair =
        result.contains("jain") ? printed("%6.3f", result["jain"].get<double>()) : std::string("     -");
    const std::string goodput = result.contains("goodput_bps")
                                    ? printed("%5.2f Gb/s", result["goodput_bps"].get<double>() / 1e9)
                                    : std::string("         -");
    out += printed("%s%-24.24s %-14.14s %s %s", first ? "" : "\n", first ? name.c_str() : "", traffic.c_str(),
                   goodput.c_str(), fair.c_str());
    if (!first) continue;
    out += printed(" %10s %10s %10s %8s %12s", bytes_of(queue, "p50").c_str(), bytes_of(queue, "p99").c_str(),
                   bytes_of(queue, "most").c_str(), drops.c_str(), scaled(hops_per_second, "").c_str());
  }
  return out;
}

}  // namespace

// The first entry covers all ports; the second is the port with the longest queue.
const nlohmann::ordered_json* longest_queue(const nlohmann::ordered_json& summary) {
  const auto queues = summary.find("queues_bytes");
  if (queues == summary.end() || queues->empty()) return nullptr;
  return queues->size() > 1 ? &std::next(queues->begin()).value() : &queues->front();
}

namespace {

// Null if the summary has no flows of this size.
const nlohmann::ordered_json* slowdown_in(const StoredRun& run, const std::string& traffic,
                                          const std::string& size) {
  const nlohmann::ordered_json* at = &run.summary;
  for (const std::string& key : {std::string("traffic"), traffic, std::string("slowdown"), size}) {
    const auto found = at->find(key);
    if (found == at->end()) return nullptr;
    at = &*found;
  }
  return at->contains("p50") ? at : nullptr;
}

// One row per size class that any run has.
std::string slowdown_rows(const std::vector<std::pair<std::string, const StoredRun*>>& runs,
                          const std::string& traffic) {
  std::vector<std::string> sizes(kSizeNames.begin(), kSizeNames.end());
  sizes.insert(sizes.begin(), "all");
  std::string out;
  for (const std::string& size : sizes) {
    std::string row = printed("\n%-14.14s %-14s", traffic.c_str(), size.c_str());
    bool any = false;
    for (const auto& [name, run] : runs) {
      const auto* const of = slowdown_in(*run, traffic, size);
      any = any || of != nullptr;
      row += of == nullptr ? printed(" %24s", "-")
                           : printed(" %8.2f%8.2f%8.2f", of->value("p50", 0.0), of->value("p95", 0.0),
                                     of->value("p99", 0.0));
    }
    if (any) out += row;
  }
  return out;
}

}  // namespace

std::string slowdown_table(const std::vector<std::pair<std::string, const StoredRun*>>& runs) {
  std::string out = printed("%-14s %-14s", "slowdown of", "p50, p95, p99");
  std::vector<std::string> traffics;
  for (const auto& [name, run] : runs) {
    out += printed(" %24.24s", name.c_str());
    const auto all = run->summary.find("traffic");
    if (all == run->summary.end()) continue;
    for (const auto& [traffic, result] : all->items())
      if (std::ranges::find(traffics, traffic) == traffics.end()) traffics.push_back(traffic);
  }
  for (const std::string& traffic : traffics) out += slowdown_rows(runs, traffic);
  return out;
}

std::string short_number(double value) { return scaled(value, ""); }

std::string with_unit(double value, const std::string& unit) {
  if (unit == "ns") return span(Nanos{std::llround(value)});
  if (!unit.empty()) return scaled(value, unit.c_str());
  return value == std::round(value) ? printed("%.0f", value) : printed("%.4g", value);
}

std::string span(Nanos time) {
  const auto nanos = static_cast<double>(time.count());
  if (nanos >= 1e9) return printed("%.3g s", nanos / 1e9);
  if (nanos >= 1e6) return printed("%.3g ms", nanos / 1e6);
  if (nanos >= 1e3) return printed("%.3g us", nanos / 1e3);
  return printed("%.0f ns", nanos);
}

std::string result_heading() {
  return printed("%-24s %-14s %10s %6s %10s %10s %10s %8s %12s", "run", "traffic", "goodput", "Jain",
                 "queue p50", "p99", "max", "drops", "hops/s");
}

std::string result_line(const std::string& name, const Measurements& of) {
  return line_of(name, of.summary, static_cast<double>(of.packet_hops) / of.seconds);
}

std::string result_line(const std::string& name, const StoredRun& of) {
  const double seconds = of.run.value("seconds", 0.0);
  return line_of(name, of.summary, seconds > 0 ? of.run.value("packet_hops", 0.0) / seconds : 0);
}

}  // namespace roci::lab

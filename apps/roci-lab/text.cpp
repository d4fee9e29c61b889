#include "roci-lab/text.hpp"

#include <array>
#include <cmath>
#include <cstdio>
#include <iterator>

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
  return scaled(queue.value(name, 0.0), "B");
}

// Values missing from a summary are printed as "-" or 0.
std::string line_of(const std::string& name, const nlohmann::ordered_json& summary, double hops_per_second) {
  const nlohmann::ordered_json* const longest = longest_queue(summary);
  const nlohmann::ordered_json queue = longest != nullptr ? *longest : nlohmann::ordered_json::object();
  const auto drops = summary.value("drops", nlohmann::ordered_json::object()).value("all", 0.0);
  std::string out;
  const nlohmann::ordered_json all = summary.value("traffic", nlohmann::ordered_json::object());
  for (const auto& [traffic, result] : all.items()) {
    const bool first = out.empty();
    const std::string fair =
        result.contains("jain") ? printed("%6.3f", result["jain"].get<double>()) : std::string("     -");
    out += printed("%s%-24.24s %-14.14s %5.2f Gb/s %s", first ? "" : "\n", first ? name.c_str() : "",
                   traffic.c_str(), result.value("goodput_bps", 0.0) / 1e9, fair.c_str());
    if (!first) continue;
    out += printed(" %10s %10s %10s %8s %12s", bytes_of(queue, "p50").c_str(), bytes_of(queue, "p99").c_str(),
                   bytes_of(queue, "most").c_str(), scaled(drops, "").c_str(),
                   scaled(hops_per_second, "").c_str());
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

#include "roci-run/stats_tables.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace roci::run {
namespace {

constexpr size_t kMaxShown = 32;  // queue pairs shown per process

template <class... Values>
void print(std::string& out, const char* format, Values... values) {
  std::array<char, 320> line;
  std::snprintf(line.data(), line.size(), format, values...);
  out += line.data();
}

uint64_t number(const QueuePairStats& qp, std::string_view name) {
  for (const auto& [known, value] : qp.numbers) {
    if (known == name) return value;
  }
  return 0;
}

std::string limit_text(double limit, double unit) {
  if (limit < 0) return "-";
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.4g", limit / unit);
  return text.data();
}

void add_counters(std::string& out, const DeviceStats& stats) {
  size_t width = 0;
  for (const auto& [name, value] : stats.counters) width = std::max(width, value == 0 ? 0 : name.size());
  for (const auto& [name, value] : stats.counters) {
    if (value != 0)
      print(out, "  %-*s %16llu\n", static_cast<int>(width), name.c_str(),
            static_cast<unsigned long long>(value));
  }
}

void add_queue_pair(std::string& out, const QueuePairStats& qp) {
  const auto value = [&qp](const char* name) { return static_cast<unsigned long long>(number(qp, name)); };
  const uint64_t acked = number(qp, "acked_packets");
  const double marked =
      acked == 0 ? 0 : 100.0 * static_cast<double>(number(qp, "marked_packets")) / static_cast<double>(acked);
  const std::string peer = qp.peer.empty() ? "-" : qp.peer + "/" + std::to_string(qp.peer_qp_num);
  const std::string name = std::to_string(qp.qp_num) + (qp.responses ? "/READs" : "");
  print(out, "  %-15s %-4s %-24s %12.3f %12.3f  %-12s %-12s %8s %8s %8.1f %7.2f %6llu %6llu\n", name.c_str(),
        qp.type.c_str(), peer.c_str(), static_cast<double>(qp.acked_bytes) * 1e-6,
        static_cast<double>(qp.received_bytes) * 1e-6, qp.profile.c_str(),
        qp.state.empty() ? "-" : qp.state.c_str(), limit_text(qp.rate, 1e9).c_str(),
        limit_text(qp.window, 1e3).c_str(), static_cast<double>(number(qp, "rtt_ns")) * 1e-3, marked,
        value("rp_cnp_handled"), value("losses") + value("timeouts"));
  std::string reasons;
  for (const auto& [reason, count] : qp.reasons) {
    if (count != 0) reasons += (reasons.empty() ? "" : ", ") + reason + " " + std::to_string(count);
  }
  if (!reasons.empty()) out += "    changed by: " + reasons + "\n";
}

void add_queue_pairs(std::string& out, const DeviceStats& stats) {
  if (stats.queue_pairs.empty()) return;
  print(out, "  %-15s %-4s %-24s %12s %12s  %-12s %-12s %8s %8s %8s %7s %6s %6s\n", "queue pair", "type",
        "peer", "acked MB", "received MB", "control", "state", "Gb/s", "win KB", "RTT us", "CE %", "CNPs",
        "losses");
  const size_t shown = std::min(stats.queue_pairs.size(), kMaxShown);
  for (size_t i = 0; i < shown; ++i) add_queue_pair(out, stats.queue_pairs[i]);
  if (shown < stats.queue_pairs.size())
    out += "  and " + std::to_string(stats.queue_pairs.size() - shown) + " more\n";
}

}  // namespace

std::string stats_tables(const std::vector<DeviceStats>& all) {
  if (all.empty()) return "roci-run: no device was used\n";
  std::string out;
  for (const DeviceStats& stats : all) {
    out += "roci-run: " + stats.program + " (process " + std::to_string(stats.pid) + "), device " +
           stats.device + "\n";
    add_counters(out, stats);
    add_queue_pairs(out, stats);
  }
  return out;
}

}  // namespace roci::run

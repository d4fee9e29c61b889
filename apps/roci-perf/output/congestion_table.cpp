#include "roci-perf/output/congestion_table.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "congestion/trace.hpp"
#include "device/host/host.hpp"
#include "device/monitoring/queue_pair_report.hpp"

namespace roci::perf {
namespace {

constexpr size_t kShown = 16;  // flows printed per device

std::string limit_text(double limit, double unit) {
  if (limit < 0) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", limit / unit);
  return text;
}

std::string share_text(const CongestionFlowReport& flow) {
  uint64_t sum = 0;
  for (const auto& [name, span] : flow.states) sum += span;
  std::string text;
  for (const auto& [name, span] : flow.states) {
    if (span == 0 || sum == 0) continue;
    char part[80];
    std::snprintf(part, sizeof part, "%s%s %.0f %%", text.empty() ? "" : ", ", name.c_str(),
                  100.0 * static_cast<double>(span) / static_cast<double>(sum));
    text += part;
  }
  return text;
}

std::string reasons_text(const CongestionFlowReport& flow) {
  std::string text;
  for (const auto& [name, count] : flow.reasons) {
    if (count == 0) continue;
    text += (text.empty() ? "" : ", ") + name + " " + std::to_string(count);
  }
  return text;
}

// Removes flows that sent nothing, such as those of a host that only responds, and devices without other flows.
std::vector<DeviceFlows> with_traffic(std::vector<DeviceFlows> devices) {
  for (DeviceFlows& device : devices)
    std::erase_if(device.flows, [](const CongestionFlowReport& flow) { return flow.sent_packets == 0; });
  std::erase_if(devices, [](const DeviceFlows& device) { return device.flows.empty(); });
  return devices;
}

void print_flow(const CongestionFlowReport& flow) {
  const std::string name = std::to_string(flow.qp_num) + (flow.responses ? " READs" : "");
  const double marked = flow.acked_packets == 0 ? 0
                                                : 100.0 * static_cast<double>(flow.marked_packets) /
                                                      static_cast<double>(flow.acked_packets);
  const std::string cnps = std::to_string(flow.cnps), losses = std::to_string(flow.losses + flow.timeouts);
  std::printf(" %-14s %-14s %-14s %9s %9s %9.1f %6.2f %7s %6s\n", name.c_str(),
              flow.algorithm.empty() ? "none" : flow.algorithm.c_str(), flow.state.c_str(),
              limit_text(flow.rate, 1e9).c_str(), limit_text(flow.window, 1e3).c_str(),
              static_cast<double>(flow.rtt) / 1e3, marked, cnps.c_str(), losses.c_str());
  const std::string states = share_text(flow), reasons = reasons_text(flow);
  if (!states.empty()) std::printf("   in %s\n", states.c_str());
  if (!reasons.empty()) std::printf("   %s\n", reasons.c_str());
}

}  // namespace

void print_congestion(const std::vector<DeviceFlows>& devices) {
  for (const DeviceFlows& device : with_traffic(devices)) {
    std::printf(" Congestion control of %s\n", device.device.c_str());
    std::printf(" %-14s %-14s %-14s %9s %9s %9s %6s %7s %6s\n", "flow", "algorithm", "state", "Gb/s", "KB",
                "RTT us", "CE %", "CNPs", "losses");
    for (size_t i = 0; i < std::min(device.flows.size(), kShown); ++i) print_flow(device.flows[i]);
    if (device.flows.size() > kShown) std::printf(" ... and %zu more\n", device.flows.size() - kShown);
  }
}

nlohmann::ordered_json congestion_json(const std::vector<DeviceFlows>& devices) {
  auto json = nlohmann::ordered_json::object();
  for (const DeviceFlows& device : devices) {
    auto flows = nlohmann::ordered_json::array();
    for (const CongestionFlowReport& flow : device.flows) {
      nlohmann::ordered_json one{{"qp", flow.qp_num},
                                 {"direction", flow.responses ? "responses" : "requests"},
                                 {"profile", flow.profile},
                                 {"algorithm", flow.algorithm},
                                 {"state", flow.state},
                                 {"last_reason", flow.last_reason},
                                 {"last_event", flow.last_event},
                                 {"gap_ns", flow.gap}};
      for (const auto& [name, value] : numbers_of(flow)) one[name] = value;
      one["bytes"] = flow.state_bytes;
      one["rate"] = flow.rate < 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(flow.rate);
      one["window"] = flow.window < 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(flow.window);
      for (const auto& [name, span] : flow.states) one["state_ns"][name] = span;
      for (const auto& [name, count] : flow.reasons) one["reasons"][name] = count;
      flows.push_back(std::move(one));
    }
    json[device.device] = std::move(flows);
  }
  return json;
}

size_t write_trace(const std::vector<Device*>& devices, bool csv, std::ostream& out) {
  std::vector<TraceRecord> records;
  uint32_t numbers = 0;  // flow numbers start at 0 per device; renumbered to be unique in the file
  size_t events = 0;
  for (Device* device : devices) {
    const uint32_t first = numbers;
    for (TraceRecord& record : device->host().congestion_trace()) {
      record.flow += first;
      numbers = std::max(numbers, record.flow + 1);
      if (record.kind == TraceRecord::Kind::kEvent) ++events;
      records.push_back(std::move(record));
    }
  }
  if (csv) {
    write_trace_csv(records, out);
  } else {
    write_trace_json(records, out);
  }
  return events;
}

}  // namespace roci::perf

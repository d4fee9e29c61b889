#include "lab/exchange/ns3_results.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>

#include "lab/exchange/ns3_export.hpp"
#include "lab/exchange/ns3_flows.hpp"

namespace roci::lab {
namespace {

constexpr uint32_t kFirstSourcePort = 10'000;
constexpr uint64_t kKilobyte = 1000;

// IPv4 address of a node in the simulator: 11.n / 256.n % 256.1.
uint32_t ns3_address(uint32_t node) { return 0x0b000001 + (node / 256 << 16) + (node % 256 << 8); }

struct CompletedFlow {
  size_t flow;  // in the plan
  uint32_t source_port;
};

std::vector<CompletedFlow> completed_flows(const Measurements& of) {
  std::map<uint32_t, uint32_t> ports;  // next source port, by sender
  std::vector<CompletedFlow> out;
  for (size_t i = 0; i < of.plan.flows.size(); ++i) {
    const uint32_t port = ports.try_emplace(of.plan.flows[i].from, kFirstSourcePort).first->second++;
    if (of.flows[i].end != kNever && !of.flows[i].failed && of.plan.flows[i].bytes != FlowPlan::kUnlimited)
      out.push_back({i, port});
  }
  std::ranges::stable_sort(out, {}, [&](const CompletedFlow& one) { return of.flows[one.flow].end; });
  return out;
}

}  // namespace

std::string ns3_fct_text(const Scenario& scenario, const Measurements& of) {
  const Ns3NodeNumbers numbers = ns3_node_numbers(scenario.topology);
  std::string out;
  for (const CompletedFlow& one : completed_flows(of)) {
    const FlowPlan& flow = of.plan.flows[one.flow];
    std::array<char, 160> line;
    const int length =
        std::snprintf(line.data(), line.size(), "%08x %08x %u %u %llu %lld %lld %lld\n",
                      ns3_address(numbers.hosts[flow.from]), ns3_address(numbers.hosts[flow.to]),
                      one.source_port, unsigned{kNs3Port}, static_cast<unsigned long long>(flow.bytes),
                      static_cast<long long>((scenario.time_origin + flow.start).count()),
                      static_cast<long long>((of.flows[one.flow].end - flow.start).count()),
                      std::llround(of.ideal[one.flow]));
    out.append(line.data(), static_cast<size_t>(length));
  }
  return out;
}

std::string ns3_qlen_text(const Scenario& scenario, const Measurements& of) {
  const Ns3NodeNumbers numbers = ns3_node_numbers(scenario.topology);
  std::string out = "time: " + std::to_string((scenario.time_origin + scenario.duration).count()) + "\n";
  size_t column = 0;
  for (uint32_t s = 0; s < scenario.topology.switches.size(); ++s) {
    for (size_t port = 0; port < scenario.topology.switches[s].cables.size(); ++port, ++column) {
      std::vector<uint64_t> samples;  // by KB
      of.queues[column].for_each([&](uint64_t bytes, uint64_t count) {
        samples.resize(std::max<size_t>(samples.size(), bytes / kKilobyte + 1));
        samples[bytes / kKilobyte] += count;
      });
      out += std::to_string(numbers.switches[s]) + " " + std::to_string(port + 1);
      for (const uint64_t count : samples) out += " " + std::to_string(count);
      out += "\n";
    }
  }
  return out;
}

std::string ns3_pfc_text(const Scenario& scenario, const Measurements& of) {
  const Ns3NodeNumbers numbers = ns3_node_numbers(scenario.topology);
  std::string out;
  for (const PauseEvent& event : of.pauses) {
    const uint32_t node = event.is_switch ? numbers.switches[event.node] : numbers.hosts[event.node];
    out += std::to_string((scenario.time_origin + event.at).count()) + " " + std::to_string(node) +
           (event.is_switch ? " 1 " : " 0 ") + std::to_string(event.port + 1) +
           (event.pause ? " 1\n" : " 0\n");
  }
  return out;
}

Status write_ns3_results(const std::string& folder, const Scenario& scenario, const Measurements& of) {
  const std::pair<const char*, std::string> files[] = {{"fct.txt", ns3_fct_text(scenario, of)},
                                                       {"qlen.txt", ns3_qlen_text(scenario, of)},
                                                       {"pfc.txt", ns3_pfc_text(scenario, of)}};
  for (const auto& [name, text] : files) {
    const std::filesystem::path path = std::filesystem::path(folder) / name;
    std::ofstream out{path, std::ios::binary};
    out << text;
    out.close();
    if (!out) return fail("'" + path.string() + "' cannot be written", EIO);
  }
  return {};
}

}  // namespace roci::lab

#include "roci-lab/explain_command.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <span>

#include "base/units.hpp"
#include "congestion/built_in_profiles.hpp"
#include "congestion/profile.hpp"
#include "lab/traffic/flow_plan.hpp"
#include "roci-lab/text.hpp"

namespace roci::lab {
namespace {

void line(const char* what, const std::string& text) { std::printf("  %-10s %s\n", what, text.c_str()); }

std::string counted(size_t number, const std::string& one) {
  const bool two = one.ends_with("ch");  // plural of "switch"
  return std::to_string(number) + " " + one + (number == 1 ? "" : two ? "es" : "s");
}

std::string rate(BitsPerSec of) { return with_unit(static_cast<double>(of.value()), "b/s"); }
std::string bytes(Bytes of) { return with_unit(static_cast<double>(of.value()), "B"); }

// "17 of 100 Gb/s and 1 us, 4 of 400 Gb/s and 1 us".
std::string cables_of(const Topology& topology) {
  std::map<std::pair<uint64_t, int64_t>, size_t> kinds;
  for (const Cable& cable : topology.cables) ++kinds[{cable.spec.rate.value(), cable.spec.delay.count()}];
  std::string out;
  for (const auto& [kind, number] : kinds) {
    out += (out.empty() ? "" : ", ") + std::to_string(number) + " of " + rate(BitsPerSec{kind.first}) +
           " and " + span(Nanos{kind.second});
  }
  return out;
}

void print_network(const Scenario& scenario) {
  const Topology& topology = scenario.topology;
  line("network", counted(topology.hosts.size(), "host") + ", " +
                      counted(topology.switches.size(), "switch") + "; links: " + cables_of(topology));
  const Nanos rtt = scenario.host.congestion_control.base_rtt;
  const BitsPerSec line_rate = topology.cables[topology.hosts.front().cable].spec.rate;
  const double bdp = static_cast<double>(line_rate.value()) / 8e9 * static_cast<double>(rtt.count());
  line("", "base round-trip time " + span(rtt) + "; bandwidth-delay product of the first host " +
               with_unit(bdp, "B"));
}

std::string curve(const char* name, const MarkingCurve& of) {
  if (of.never()) return "";
  return std::string(" ") + name + " from " + bytes(of.kmin) + " to " + bytes(of.kmax) + " (" +
         with_unit(of.pmax * 100, "") + " %" + ")";
}

// Prints the marking and drop curves of port classes: one line per port rate, for the first port with that rate.
void print_switches(const Scenario& scenario) {
  std::map<uint64_t, const SwitchPortConfig*> by_rate;
  for (const SwitchConfig& one : scenario.switches)
    for (const SwitchPortConfig& port : one.ports) by_rate.emplace(port.rate.value(), &port);
  for (const auto& [port_rate, port] : by_rate) {
    std::string text = "ports of " + rate(BitsPerSec{port_rate}) + ": queue up to " + bytes(port->queue);
    for (size_t i = 0; i < port->classes.size(); ++i) {
      const ClassConfig& one = port->classes[i];
      const std::string curves = curve("marks", one.aqm.mark) + curve("drops", one.aqm.drop);
      if (!curves.empty()) text += "; class " + std::to_string(i) + curves;
    }
    line("switches", text);
  }
}

// Prints the value of each parameter of the congestion control, and where it is set.
Status print_parameters(const Scenario& scenario) {
  const CongestionControlConfig& control = scenario.host.congestion_control;
  const auto profiles = Profiles::create(control);
  if (!profiles) return fail(profiles.error());
  const Profile* const profile = (*profiles)->standard();
  if (profile == nullptr) return {};
  const auto in_file = control.profiles.find(control.profile);
  const bool defined = in_file != control.profiles.end();
  const BuiltInProfile* const built_in =
      find_built_in_profile(defined ? in_file->second.algorithm : control.profile);
  const std::span parameters(profile->plugin->parameters, profile->plugin->parameter_count);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const std::string name = parameters[i].name, unit = parameters[i].unit;
    std::string source = "default";
    if (built_in != nullptr && built_in->parameters.contains(name))
      source = "profile " + std::string(built_in->name);
    if (defined && in_file->second.parameters.contains(name)) source = "scenario";
    line(i == 0 ? "parameters" : "",
         name + " " + number_text(profile->values[i]) + (unit == "1" ? "" : " " + unit) + ", " + source);
  }
  return {};
}

// The switches have the same classes.
void print_warnings(const Scenario& scenario) {
  for (const SwitchConfig& one : scenario.switches) {
    const auto texts = warnings(one);
    for (const std::string& text : texts) line("warning", text);
    if (!texts.empty()) return;
  }
}

std::string flows_of(const Scenario& scenario, const TrafficPlan& plan, uint32_t number) {
  size_t flows = 0, loops = 0;
  double sum = 0;
  bool unlimited = false;
  for (const FlowPlan& flow : plan.flows) {
    if (flow.traffic != number) continue;
    ++flows;
    unlimited = flow.bytes == FlowPlan::kUnlimited;
    if (!unlimited) sum += static_cast<double>(flow.bytes);
  }
  for (const LoopPlan& loop : plan.loops) loops += loop.traffic == number ? 1 : 0;
  const TrafficSpec& spec = scenario.traffic[number];
  if (loops > 0)
    return counted(loops, "closed loop") + " with " + counted(spec.depth, "message") + " outstanding";
  if (unlimited) return counted(flows, "flow") + " of unlimited size";
  return counted(flows, "flow") + ", " + with_unit(sum, "B") + " in total";
}

Status print_run(const RunOptions& options, const Job& job, bool only) {
  auto scenario = read_scenario(options.file, job.changes);
  if (!scenario) return fail(scenario.error());
  auto plan = plan_traffic(*scenario);
  if (!plan) return fail(plan.error());
  if (!only) std::printf("\nrun '%s'\n", job.name.c_str());
  print_network(*scenario);
  line("hosts", "congestion control " + scenario->host.congestion_control.profile + ", path MTU " +
                    std::to_string(scenario->path_mtu));
  ROCI_TRY(print_parameters(*scenario));
  print_switches(*scenario);
  print_warnings(*scenario);
  for (uint32_t i = 0; i < scenario->traffic.size(); ++i)
    line("traffic", scenario->traffic[i].name + ": " + flows_of(*scenario, *plan, i));
  line("time", span(scenario->duration) + ", settle time " + span(scenario->settle) + ", drain time up to " +
                   span(scenario->drain) + "; seed " + std::to_string(scenario->seed));
  for (const TimeWindow& window : scenario->windows)
    line("window", window.name + ": " + span(window.from) + " to " + span(window.until));
  for (const RealCable& real : scenario->ports) {
    const Cable& cable = scenario->topology.cables[real.cable];
    line("real port", scenario->topology.name_of(cable.a) + ": " + real.devices[0] + ", and " +
                          scenario->topology.name_of(cable.b) + ": " + real.devices[1]);
  }
  return {};
}

Status explain(const RunOptions& options) {
  auto plan = plan_jobs(options);
  if (!plan) return fail(plan.error());
  auto scenario = read_scenario(options.file, plan->jobs.front().changes);
  if (!scenario) return fail(scenario.error());
  std::printf("%s: %s\n", scenario->name.c_str(), scenario->about.c_str());
  if (!scenario->source.empty()) std::printf("source: %s\n", scenario->source.c_str());
  for (const Job& job : plan->jobs) ROCI_TRY(print_run(options, job, plan->jobs.size() == 1));
  if (!plan->expectations.empty()) std::printf("\nexpected\n");
  for (const Expectation& one : plan->expectations) {
    std::printf("  %s\n      %s\n", one.claim.c_str(), one.that.c_str());
    if (!one.fails.empty()) std::printf("      fails (known): %s\n", one.fails.c_str());
  }
  return {};
}

}  // namespace

int explain_command(const RunOptions& options) {
  const Status done = explain(options);
  if (done) return 0;
  std::fprintf(stderr, "roci-lab: %s\n", done.error().message.c_str());
  return 2;
}

}  // namespace roci::lab

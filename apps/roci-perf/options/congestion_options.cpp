#include "roci-perf/options/congestion_options.hpp"

#include <cstdlib>

#include "base/units.hpp"
#include "device/host/limits.hpp"
#include "roci-perf/options/command_options.hpp"
#include "roci-perf/options/option_values.hpp"

namespace roci::perf {

void add_congestion_options(CommandOptions& command, CongestionOptions& options) {
  constexpr const char* kGroup = "Congestion control";
  auto* chosen = command.text("--cc",
                              "Congestion control: an algorithm (roci-cc list), a profile of the "
                              "configuration file, window or none [set by the file; window with --loopback]",
                              "NAME", kGroup, [&options](const std::string& value) -> Status {
                                options.profile = value;
                                return {};
                              });
  command
      .texts("--cc-set", "Value of a parameter, in its unit; may be repeated", "NAME=N", kGroup,
             [&options](const std::string& value) -> Status {
               const size_t equals = value.find('=');
               const auto number = parse_number(equals == std::string::npos ? "" : value.substr(equals + 1));
               if (equals == 0 || !number) return fail("allowed is PARAMETER=VALUE, such as eta=0.95");
               options.parameters[value.substr(0, equals)] = *number;
               return {};
             })
      ->needs(chosen);
  command.texts("--cc-plugin",
                "Shared object with additional algorithms (roci-cc check FILE); may be repeated", "FILE",
                kGroup, [&options](const std::string& value) -> Status {
                  options.plugins.push_back(value);
                  return {};
                });
  command.text("--cc-base-rtt",
               "Round-trip time of a full packet on idle links, such as 5us, for algorithms that require it",
               "TIME", kGroup, [&options](const std::string& value) -> Status {
                 auto time = parse_duration(value);
                 if (!time) return fail(time.error());
                 if (*time <= Nanos{0} || *time > Nanos{10s})
                   return fail("allowed are times up to 10s, such as 5us");
                 options.base_rtt = *time;
                 return {};
               });
  command.text("--cc-line-rate",
               "Line rate, such as 25Gbps, the initial rate of flows [set by the file or the port; 100Gbps "
               "with --loopback]",
               "RATE", kGroup, [&options](const std::string& value) -> Status {
                 auto rate = parse_rate(value);
                 if (!rate) return fail(rate.error());
                 if (rate->value() == 0) return fail("the rate must be above 0");
                 options.line_rate = *rate;
                 return {};
               });
  command.text("--cc-cores",
               "Dedicated threads for algorithms; 0: they run in the threads of the workers [0]", "N", kGroup,
               [&options](const std::string& value) -> Status {
                 const auto whole = parse_whole(value);
                 if (!whole || *whole > kMaxControlCores)
                   return fail("allowed are whole numbers from 0 to " + std::to_string(kMaxControlCores));
                 options.cores = static_cast<uint32_t>(*whole);
                 return {};
               });
  command.flag("--cc-report", options.report, "Print the congestion control state of each flow at the end",
               kGroup);
  command.text(
      "--cc-trace",
      "Write the algorithms' events and decisions to FILE: CSV for *.csv, otherwise for roci-cc replay",
      "FILE", kGroup, [&options](const std::string& value) -> Status {
        options.trace_file = value;
        return {};
      });
  command.text("--cc-trace-events", "Number of latest events to keep [100000]", "N", kGroup,
               [&options](const std::string& value) -> Status {
                 constexpr uint64_t kMost = 1U << 22;
                 const auto whole = parse_whole(value);
                 if (!whole || *whole < 1 || *whole > kMost)
                   return fail("allowed are whole numbers from 1 to " + std::to_string(kMost));
                 options.trace_events = static_cast<uint32_t>(*whole);
                 return {};
               });
}

Status CongestionOptions::finish(bool loopback) {
  const bool without = profile && (*profile == "none" || *profile == "window");
  if (!parameters.empty() && without)
    return fail("--cc-set has no effect with --cc " + *profile + ", which has no parameters");
  if (base_rtt && without) return fail("--cc-base-rtt has no effect with --cc " + *profile);
  // Elsewhere, the configuration file or the network may select an algorithm.
  if (base_rtt && loopback && !profile && secure_getenv("ROCI_CC") == nullptr)
    return fail("--cc-base-rtt requires --cc with --loopback");
  if (trace_events && trace_file.empty()) return fail("--cc-trace-events requires --cc-trace FILE");
  return {};
}

// Parameters and a base RTT from the command line create a new profile, "command-line", derived from the selected one.
void CongestionOptions::apply(CongestionControlConfig& control) const {
  constexpr const char* kName = "command-line";
  if (profile) control.profile = *profile;
  if (base_rtt) control.base_rtt = *base_rtt;
  if (line_rate) control.line_rate = line_rate->value();
  if (cores) control.cores = *cores;
  if (!trace_file.empty()) control.trace = trace_events.value_or(kTraceEvents);
  control.plugins.insert(control.plugins.end(), plugins.begin(), plugins.end());
  if (control.profile == "none" || control.profile == "window" || (parameters.empty() && !base_rtt)) return;
  const auto known = control.profiles.find(control.profile);
  CongestionProfile changed;
  changed.algorithm = control.profile;
  if (known != control.profiles.end()) changed = known->second;
  for (const auto& [name, value] : parameters) changed.parameters[name] = value;
  if (base_rtt) changed.base_rtt = *base_rtt;
  control.profiles[kName] = std::move(changed);
  control.profile = kName;
}

}  // namespace roci::perf

#include "roci-perf/congestion_options.hpp"

#include "base/units.hpp"
#include "device/limits.hpp"
#include "roci-perf/command_options.hpp"
#include "roci-perf/option_values.hpp"

namespace roci::perf {

void add_congestion_options(CommandOptions& command, CongestionOptions& options) {
  constexpr const char* kGroup = "Congestion control";
  auto* chosen = command.text(
      "--cc",
      "The queue pairs' congestion control: an algorithm (roci-cc list), a profile of the configuration "
      "file, window or none [as the file says; window in a loopback]",
      "NAME", kGroup, [&options](const std::string& value) -> Status {
        options.profile = value;
        return {};
      });
  command
      .texts("--cc-set", "A parameter's value, in the parameter's unit; several times for several", "NAME=N",
             kGroup,
             [&options](const std::string& value) -> Status {
               const size_t equals = value.find('=');
               const auto number = parse_number(equals == std::string::npos ? "" : value.substr(equals + 1));
               if (equals == 0 || !number) return fail("write a parameter and its value, like eta=0.95");
               options.parameters[value.substr(0, equals)] = *number;
               return {};
             })
      ->needs(chosen);
  command.texts("--cc-plugin",
                "A shared object with further algorithms (roci-cc check FILE); several times for several",
                "FILE", kGroup, [&options](const std::string& value) -> Status {
                  options.plugins.push_back(value);
                  return {};
                });
  command.text("--cc-base-rtt",
               "Round trip of a full packet on idle links, like 5us, for algorithms that ask for it", "TIME",
               kGroup, [&options](const std::string& value) -> Status {
                 auto time = parse_duration(value);
                 if (!time) return fail(time.error());
                 options.base_rtt = *time;
                 return {};
               });
  command.text("--cc-line-rate",
               "Rate of the line, like 25Gbps, where flows begin [as the file or the port says; 100Gbps in a "
               "loopback]",
               "RATE", kGroup, [&options](const std::string& value) -> Status {
                 auto rate = parse_rate(value);
                 if (!rate) return fail(rate.error());
                 if (rate->value() == 0) return fail("no line has that rate");
                 options.line_rate = *rate;
                 return {};
               });
  command.text("--cc-cores",
               "Threads that algorithms have to themselves; 0: they run where the packets are [0]", "N",
               kGroup, [&options](const std::string& value) -> Status {
                 const auto whole = parse_whole(value);
                 if (!whole || *whole > kMaxControlCores)
                   return fail("write a whole number from 0 to " + std::to_string(kMaxControlCores));
                 options.cores = static_cast<uint32_t>(*whole);
                 return {};
               });
  command.flag("--cc-report", options.report, "Show at the end what it did with each flow", kGroup);
  command.text(
      "--cc-trace",
      "Write the algorithms' events and decisions to FILE: CSV if it is called so, else for roci-cc replay",
      "FILE", kGroup, [&options](const std::string& value) -> Status {
        options.trace_file = value;
        return {};
      });
  command.number("--cc-trace-events", options.trace_events, 1, 1U << 22,
                 "The last N events are kept [100000]", kGroup);
}

// Parameters and a base RTT from the command line create a new profile, "command-line", derived from the selected one.
void CongestionOptions::apply(CongestionControlConfig& control) const {
  constexpr const char* kName = "command-line";
  if (profile) control.profile = *profile;
  if (base_rtt) control.base_rtt = *base_rtt;
  if (line_rate) control.line_rate = line_rate->value();
  if (cores) control.cores = *cores;
  if (!trace_file.empty()) control.trace = trace_events;
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

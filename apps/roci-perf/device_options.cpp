#include "roci-perf/device_options.hpp"

namespace roci::perf {

namespace {

// Values and a round trip of the command line's make a profile of their own out of the one that they change.
void apply_congestion(const CongestionOptions& options, CongestionControlConfig& control) {
  constexpr const char* kName = "command-line";
  if (options.profile) control.profile = *options.profile;
  if (options.base_rtt) control.base_rtt = *options.base_rtt;
  if (options.cores) control.cores = *options.cores;
  if (!options.trace_file.empty()) control.trace = options.trace_events;
  if (control.profile == "none" || (options.parameters.empty() && !options.base_rtt)) return;
  const auto known = control.profiles.find(control.profile);
  CongestionProfile profile;
  profile.algorithm = control.profile;
  if (known != control.profiles.end()) profile = known->second;
  for (const auto& [name, value] : options.parameters) profile.parameters[name] = value;
  if (options.base_rtt) profile.base_rtt = *options.base_rtt;
  control.profiles[kName] = std::move(profile);
  control.profile = kName;
}

}  // namespace

void apply_device_options(const Options& options, DeviceConfig& config) {
  apply_congestion(options.congestion, config.congestion_control);
  if (options.extensions) config.extensions.mode = *options.extensions;
  if (options.packets_per_ack) config.packets_per_ack = *options.packets_per_ack;
  if (!options.selective_repeat) return;
  config.extensions.selective_repeat = *options.selective_repeat;
  // Who asks for it wants no test without it.
  if (*options.selective_repeat && !options.extensions) config.extensions.mode = ExtensionMode::kOn;
}

}  // namespace roci::perf

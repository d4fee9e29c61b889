#include "roci-perf/options/device_options.hpp"

#include <cstdlib>

#include "congestion/profile.hpp"

namespace roci::perf {

void apply_device_options(const Options& options, DeviceConfig& config) {
  options.congestion.apply(config.congestion_control);
  if (options.extensions) config.extensions.mode = *options.extensions;
  if (options.packets_per_ack) config.packets_per_ack = *options.packets_per_ack;
  if (!options.selective_repeat) return;
  config.extensions.selective_repeat = *options.selective_repeat;
  // An explicitly requested option requires the extensions: without them the test must fail.
  if (*options.selective_repeat && !options.extensions) config.extensions.mode = ExtensionMode::kOn;
}

Status check_congestion_control(const Options& options, const DeviceConfig& config) {
  CongestionControlConfig control = config.congestion_control;
  options.congestion.apply(control);
  std::string source = options.congestion.profile ? "--cc" : "congestion control";
  if (const char* chosen = secure_getenv("ROCI_CC"); chosen != nullptr && *chosen != '\0') {
    control.profile = chosen;
    source = "ROCI_CC";
  }
  const auto profiles = Profiles::create(control);
  if (profiles) return {};
  Error error = profiles.error().within(source);
  if (!options.congestion.base_rtt && control.base_rtt == Nanos{0}) {
    control.base_rtt = 10us;  // any value
    if (Profiles::create(control)) error.message += "; set --cc-base-rtt";
  }
  return fail(std::move(error));
}

}  // namespace roci::perf

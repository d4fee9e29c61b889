#include "roci-perf/options/device_options.hpp"

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

}  // namespace roci::perf

#include "roci-perf/hosts/capture_tap.hpp"

#include <chrono>

#include "roci-perf/connection/control.hpp"

namespace roci::perf {

Result<std::unique_ptr<Port>> with_capture(std::unique_ptr<Port> port, const Options& options,
                                           Status& saved) {
  if (options.capture_file.empty()) return port;
  CaptureConfig config;
  config.path = options.capture_file;
  config.max_packets = options.capture_packets;
  config.saved = &saved;
  config.epoch = std::chrono::system_clock::now().time_since_epoch() - now();
  auto tap = CapturePort::open(std::move(port), config);
  if (!tap) return fail(tap.error().within("--capture"));
  return std::move(*tap);
}

}  // namespace roci::perf

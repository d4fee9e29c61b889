// UDP port and domain of INT in the telemetry tests.
#pragma once

#include <cstdint>

namespace roci::test {

inline constexpr uint16_t kTelemetryPort = 5000;
inline constexpr uint16_t kTelemetryDomain = 7;

}  // namespace roci::test

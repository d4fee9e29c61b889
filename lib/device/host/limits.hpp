// Limits of a device, as query_device() reports and the API enforces them.
#pragma once

#include <cstdint>

#include "base/types.hpp"

namespace roci {

inline constexpr uint32_t kMaxWorkRequests = 32768;  // per queue
inline constexpr uint32_t kMaxSge = 32;
inline constexpr uint32_t kMaxInline = 1024;  // bytes
inline constexpr uint32_t kMaxCqEntries = 1U << 22;
// Half of the number space, so that a random number is free at the second attempt on average.
inline constexpr uint32_t kMaxQueuePairs = 1U << 23;
inline constexpr uint32_t kMaxObjects = 1U << 23;  // of other kinds, each
inline constexpr uint32_t kMaxWorkers = 16;
inline constexpr uint32_t kMaxControlCores = 16;
inline constexpr Nanos kMaxBurst{100'000};  // of congestion control: how early packets may be sent
inline constexpr uint32_t kMaxReceiveFrames = 1U << 20;  // that may wait before CNMs are sent
inline constexpr uint32_t kMaxPacketsPerTurn = 64;
inline constexpr uint32_t kMaxPacketsPerAck = 1024;
inline constexpr uint32_t kMaxReads = 128;  // outstanding READs and atomics per queue pair and direction

}  // namespace roci

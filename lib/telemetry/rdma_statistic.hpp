// Counters under their names in /sys/class/infiniband/DEVICE/ports/1/hw_counters and in `rdma statistic show`, for
// scripts and dashboards made for NICs (mlx5) and for the kernel's soft RoCE (rxe). Counters that Rocinante does not
// have are omitted.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "telemetry/counters.hpp"

namespace roci {

struct RdmaStatistic {
  std::string_view name;
  std::array<Counter, 2> of;  // the value is their sum; kCount: none
};

std::span<const RdmaStatistic> rdma_statistics();

}  // namespace roci

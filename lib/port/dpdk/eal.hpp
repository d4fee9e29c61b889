// Start of DPDK inside a process that has other tasks. By default it needs no hugepages, no root and no NIC, creates no
// files that conflict with another process, and leaves the calling thread unchanged.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace roci {

// Whether packet buffers lie in reserved hugepages (vm.nr_hugepages).
enum class Hugepages : uint8_t {
  kAuto,     // if at least `memory_mib` of them is free; else as kOff
  kOff,      // never; buffers lie in transparent hugepages if the system provides them (madvise)
  kRequire,  // start_eal() fails without them; physical NICs need them
};
std::string_view hugepages_name(Hugepages hugepages);

struct EalConfig {
  Hugepages hugepages = Hugepages::kAuto;
  bool pci = false;           // probe PCI devices
  uint32_t memory_mib = 512;  // for all pools of the process; allocated when a pool is created
  // Without hugepages: packet buffers lie in memory that a device may share with another process, as zero-copy memif
  // and virtio-user do. That memory has no transparent hugepages.
  bool share_buffers = false;
  // DPDK's telemetry socket, through which other processes of the same user query this one
  // (telemetry/endpoint.hpp). It is in DPDK's runtime folder. If the folder cannot be created,
  // the process starts without telemetry and logs a warning.
  bool telemetry = false;
  std::vector<std::string> extra_args{};  // appended to EAL's own arguments

  friend bool operator==(const EalConfig&, const EalConfig&) = default;
};

// Whether pools allocate buffers from DPDK's memory: with hugepages, or with share_buffers. Valid after start_eal().
bool uses_dpdk_memory();
bool eal_is_running();

// Starts the environment abstraction layer, once per process. Later calls succeed with the same config and fail with
// another one. After a failure the start may be repeated, with any config, unless rte_eal_init() was called. If the
// process has called rte_eal_init() itself, that configuration stays in use. Thread-safe. The calling thread becomes
// lcore 0 and keeps its affinity; other threads that use mbufs often should call rte_thread_register(). DPDK's
// messages go to Rocinante's log.
Status start_eal(const EalConfig& config = {});
// The same, with the defaults if the layer has not been started yet, else with the config of its start. Thread-safe.
Status require_eal();

// The first message of error level that DPDK logged on this thread since clear_dpdk_error(), or empty. The first is the
// closest to the cause: drivers log before the layers above them do. For error messages.
std::string last_dpdk_error();
void clear_dpdk_error();

}  // namespace roci

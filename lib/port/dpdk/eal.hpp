// Start of DPDK inside a process that has other tasks. By default it needs no hugepages, no root and no NIC, creates no
// files that conflict with another process, and leaves the calling thread unchanged.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

struct rte_mempool;

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
// another one. If the process has called rte_eal_init() itself, that configuration stays in use. Thread-safe. The
// calling thread becomes lcore 0 and keeps its affinity; other threads that use mbufs often should call
// rte_thread_register(). DPDK's messages go to Rocinante's log.
Status start_eal(const EalConfig& config = {});

// The first message of error level that DPDK logged on this thread since clear_dpdk_error(), or empty. The first is the
// closest to the cause: drivers log before the layers above them do. For error messages.
std::string last_dpdk_error();
void clear_dpdk_error();

// A pool of mbufs, shared by all owners of its buffers. The memory is freed when the last owner releases the pool.
class MbufPool {
 public:
  // `count` buffers, each with `data_room` bytes for a frame after the usual
  // headroom. `name` is for DPDK's tools and need not be unique.
  static Result<std::shared_ptr<MbufPool>> create(const std::string& name, uint32_t count,
                                                  uint16_t data_room);
  ~MbufPool();
  MbufPool(const MbufPool&) = delete;
  MbufPool& operator=(const MbufPool&) = delete;

  [[nodiscard]] rte_mempool* get() const { return pool_; }
  [[nodiscard]] uint32_t size() const;
  // Number of buffers that are neither in the pool nor in a thread's cache. Walks all caches: not for the data path.
  [[nodiscard]] uint32_t in_use() const;

 private:
  explicit MbufPool(rte_mempool* pool) : pool_(pool) {}
  rte_mempool* pool_;
};

}  // namespace roci

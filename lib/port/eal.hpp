// Starting DPDK inside a process that has other things to do: by default without hugepages, root, a NIC,
// files that another process could clash with, or any trace in the caller's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

struct rte_mempool;

namespace roci {

// Whether packet buffers lie in hugepages that the system has reserved (vm.nr_hugepages).
enum class Hugepages : uint8_t {
  kAuto,     // when as many as `memory_mib` are free; else as with kOff
  kOff,      // never; buffers are then in transparent hugepages where the system gives them (madvise)
  kRequire,  // or it does not start; physical NICs want them
};
std::string_view hugepages_name(Hugepages hugepages);

struct EalConfig {
  Hugepages hugepages = Hugepages::kAuto;
  bool pci = false;           // look for PCI devices
  uint32_t memory_mib = 512;  // for all pools of the process; taken when a pool is made
  // Without hugepages: packet buffers in memory that a device may share with another process, as zero-copy memif and
  // virtio-user do. There are no transparent hugepages for it then.
  bool share_buffers = false;
  // DPDK's telemetry socket, by which other processes of the same user may ask this one (telemetry/endpoint.hpp). It is in
  // DPDK's runtime folder; where that cannot be made the process starts without, and says so.
  bool telemetry = false;
  std::vector<std::string> extra_args{};  // appended to EAL's own arguments

  friend bool operator==(const EalConfig&, const EalConfig&) = default;
};

// Whether buffers of pools lie in DPDK's own memory: in hugepages, or with share_buffers. After start_eal().
bool buffers_are_dpdks();
bool eal_is_running();

// Starts the environment abstraction layer, once per process: later calls with the same config succeed at
// once, with another config they fail. A process that has called rte_eal_init() itself keeps its own.
// Thread-safe. The calling thread becomes lcore 0 and keeps its affinity; other threads that use mbufs a lot
// should rte_thread_register(). DPDK's messages go to roci's log.
Status start_eal(const EalConfig& config = {});

// The first message of error level that DPDK has logged on this thread since the last clear, or empty: the
// closest to the cause, because drivers complain before the layers above them do. For error sentences.
std::string last_dpdk_error();
void clear_dpdk_error();

// A pool of mbufs. Shared by whatever holds buffers of it: the memory is given back when the last owner lets
// go.
class MbufPool {
 public:
  // `count` buffers that hold `data_room` bytes of a frame each, behind the usual headroom. The name is for
  // DPDK's tools; it need not be unique.
  static Result<std::shared_ptr<MbufPool>> create(const std::string& name, uint32_t count,
                                                  uint16_t data_room);
  ~MbufPool();
  MbufPool(const MbufPool&) = delete;
  MbufPool& operator=(const MbufPool&) = delete;

  [[nodiscard]] rte_mempool* get() const { return pool_; }
  [[nodiscard]] uint32_t size() const;
  // Buffers that are neither in the pool nor in a thread's cache of it. Counts; not for the data path.
  [[nodiscard]] uint32_t in_use() const;

 private:
  explicit MbufPool(rte_mempool* pool) : pool_(pool) {}
  rte_mempool* pool_;
};

}  // namespace roci

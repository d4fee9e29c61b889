// Pools of packet buffers.
#pragma once

#include <rte_mempool.h>

#include <cstdint>
#include <memory>
#include <string>

#include "roci/result.hpp"

namespace roci {

// A pool of mbufs, shared by all owners of its buffers. The memory is freed when the last owner releases the pool.
class MbufPool {
 public:
  // `count` buffers, each with `data_room` bytes for a frame after the usual
  // headroom. `name` is for DPDK's tools and need not be unique.
  static Result<std::shared_ptr<MbufPool>> create(const std::string& name, uint32_t count,
                                                  uint32_t data_room);
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

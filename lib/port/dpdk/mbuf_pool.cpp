#include "port/dpdk/mbuf_pool.hpp"

#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_mempool.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/log.hpp"
#include "port/dpdk/buffer_memory.hpp"
#include "port/dpdk/eal.hpp"

namespace roci {
namespace {

struct FreePool {
  void operator()(rte_mempool* pool) const { rte_mempool_free(pool); }
};

void give_back(rte_mempool_memhdr* memory, void* /*opaque*/) {
  unmap_buffer_memory(memory->addr, memory->len);
}

// Like rte_pktmbuf_pool_create(), with memory of map_buffer_memory(). Null with rte_errno set.
rte_mempool* create_beside_dpdk(const char* name, uint32_t count, uint32_t cache, uint16_t data_bytes) {
  const auto refuse = [](int code) {
    rte_errno = code;
    return nullptr;
  };
  // A buffer may cross physical pages, because no device uses physical addresses.
  std::unique_ptr<rte_mempool, FreePool> pool(rte_mempool_create_empty(
      name, count, static_cast<unsigned>(sizeof(rte_mbuf)) + data_bytes, cache,
      sizeof(rte_pktmbuf_pool_private), SOCKET_ID_ANY, RTE_MEMPOOL_F_NO_IOVA_CONTIG));
  if (pool == nullptr) return nullptr;
  if (const int code = rte_mempool_set_ops_byname(pool.get(), rte_mbuf_best_mempool_ops(), nullptr);
      code != 0)
    return refuse(-code);
  rte_pktmbuf_pool_private kind{};
  kind.mbuf_data_room_size = data_bytes;
  rte_pktmbuf_pool_init(pool.get(), &kind);
  const size_t each = size_t{pool->header_size} + pool->elt_size + pool->trailer_size;
  const size_t bytes = each * count;
  void* memory = map_buffer_memory(bytes);
  if (memory == nullptr) return refuse(ENOMEM);
  // Without hugepages DPDK has no physical addresses: devices use virtual ones.
  const int made = rte_mempool_populate_iova(pool.get(), static_cast<char*>(memory),
                                             reinterpret_cast<rte_iova_t>(memory), bytes, give_back, nullptr);
  if (made != static_cast<int>(count)) {
    if (made <= 0) unmap_buffer_memory(memory, bytes);
    return refuse(made < 0 ? -made : ENOMEM);
  }
  rte_mempool_obj_iter(pool.get(), rte_pktmbuf_init, nullptr);
  return pool.release();
}

}  // namespace

Result<std::shared_ptr<MbufPool>> MbufPool::create(const std::string& name, uint32_t count,
                                                   uint32_t data_room) {
  static std::atomic<uint32_t> serial{0};
  constexpr size_t kNameLength = 12;  // plus the serial number it fits into RTE_MEMPOOL_NAMESIZE
  constexpr uint32_t kMaxDataRoom = UINT16_MAX - RTE_PKTMBUF_HEADROOM;
  if (count == 0 || data_room == 0 || data_room > kMaxDataRoom) {
    return fail("packet pool \"" + name + "\" cannot have " + std::to_string(count) + " buffers of " +
                std::to_string(data_room) + " bytes; at least 1 buffer of 1 to " +
                std::to_string(kMaxDataRoom) + " bytes");
  }
  // Without EAL the mempool functions crash instead of failing.
  if (!eal_is_running()) return fail("packet pool \"" + name + "\" requires DPDK; call start_eal() first");
  const std::string unique = name.substr(0, kNameLength) + "." + std::to_string(++serial);
  // One cache per thread. Small pools have none, so that every buffer of them can be allocated by any thread.
  const uint32_t cache = count < 1024 ? 0 : std::min<uint32_t>(RTE_MEMPOOL_CACHE_MAX_SIZE / 2, count / 16);
  const auto data_bytes = static_cast<uint16_t>(data_room + RTE_PKTMBUF_HEADROOM);
  rte_mempool* pool =
      uses_dpdk_memory() ? rte_pktmbuf_pool_create(unique.c_str(), count, cache, 0, data_bytes, SOCKET_ID_ANY)
                         : create_beside_dpdk(unique.c_str(), count, cache, data_bytes);
  if (pool == nullptr) {
    const int code = rte_errno;
    const uint64_t mib = (uint64_t{count} * (data_room + RTE_PKTMBUF_HEADROOM + sizeof(rte_mbuf) + 64)) >> 20;
    std::string why = code == ENOMEM ? "no memory: " : std::string(rte_strerror(code)) + ": ";
    return fail(why + "packet pool \"" + name + "\" of " + std::to_string(count) + " buffers of " +
                    std::to_string(data_room) + " bytes needs about " + std::to_string(mib + 1) +
                    " MiB of memory for packet buffers; raise memory_mib or use fewer buffers",
                code);
  }
  return std::shared_ptr<MbufPool>(new MbufPool(pool));
}

MbufPool::~MbufPool() {
  if (const uint32_t missing = in_use(); missing != 0) {
    // Leaking the memory is safer than freeing memory that is still read.
    log().warn("packet pool {} is not freed because {} of its buffers are in use", pool_->name, missing);
    return;
  }
  rte_mempool_free(pool_);
}

uint32_t MbufPool::size() const { return pool_->size; }
uint32_t MbufPool::in_use() const { return rte_mempool_in_use_count(pool_); }

}  // namespace roci

// Memory regions and memory windows. Created by ProtectionDomain.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "roci/result.hpp"

namespace roci {

class Host;
class ProtectionDomain;

class MemoryRegion {
 public:
  // After this every access with the region's keys fails, as does access through windows bound to it.
  ~MemoryRegion();
  MemoryRegion(const MemoryRegion&) = delete;
  MemoryRegion& operator=(const MemoryRegion&) = delete;
  [[nodiscard]] void* address() const { return verbs_.addr; }
  [[nodiscard]] size_t length() const { return verbs_.length; }
  [[nodiscard]] uint32_t lkey() const { return verbs_.lkey; }
  [[nodiscard]] uint32_t rkey() const { return verbs_.rkey; }
  // Address of the first byte in work requests: address(), unless another one was registered.
  [[nodiscard]] uint64_t iova() const { return iova_; }
  [[nodiscard]] int access() const { return access_; }  // ibv_access_flags

  // As ibv_dereg_mr: as the destructor, but fails with EBUSY while windows are bound to the region (IBTA 11.2.8.4).
  [[nodiscard]] Status deregister();
  // As ibv_rereg_mr: `flags` is a set of ibv_rereg_mr_flags that selects the arguments used. The keys do not change.
  // Fails with EBUSY while windows are bound. On error nothing changes (IBV_REREG_MR_ERR_INPUT of ibv_rereg_mr).
  [[nodiscard]] Status reregister(int flags, const ProtectionDomain* pd, void* address, size_t length,
                                  int access);

  // For ibv_mw_bind_info::mr.
  [[nodiscard]] ibv_mr* verbs() { return &verbs_; }

 private:
  friend class ProtectionDomain;
  MemoryRegion(std::shared_ptr<Host> host, uint32_t pd, void* address, size_t length, uint64_t iova,
               int access, uint32_t key);
  std::shared_ptr<Host> host_;
  uint32_t pd_;
  uint64_t iova_;
  int access_;
  bool registered_ = true;
  ibv_mr verbs_{};
};

// Window onto a part of a region, with its own key. IBV_WR_BIND_MW makes the key valid; IBV_WR_LOCAL_INV and the peer's
// IBV_WR_SEND_WITH_INV invalidate it.
// Type 1 is bound by QueuePair::bind_window(); any queue pair of the protection domain may use it.
// Type 2 is type 2B of IBTA: only the queue pair that bound it may use or invalidate it. The low 8 bits of its key are
// the caller's (ibv_inc_rkey).
class MemoryWindow {
 public:
  ~MemoryWindow();
  MemoryWindow(const MemoryWindow&) = delete;
  MemoryWindow& operator=(const MemoryWindow&) = delete;
  [[nodiscard]] ibv_mw_type type() const { return verbs_.type; }
  // Type 1: key of the last bind_window(). Type 2: key of the allocation, for ibv_inc_rkey().
  [[nodiscard]] uint32_t rkey() const { return verbs_.rkey; }
  // For ibv_send_wr::bind_mw.mw.
  [[nodiscard]] ibv_mw* verbs() { return &verbs_; }

 private:
  friend class ProtectionDomain;
  MemoryWindow(std::shared_ptr<Host> host, ibv_mw_type type, uint32_t key);
  std::shared_ptr<Host> host_;
  ibv_mw verbs_{};
};

}  // namespace roci

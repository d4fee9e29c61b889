// Memory that work requests may name, and windows onto parts of it. Made by ProtectionDomain.
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
  ~MemoryRegion();  // from here on every access with its keys fails, and with those of windows bound to it
  MemoryRegion(const MemoryRegion&) = delete;
  MemoryRegion& operator=(const MemoryRegion&) = delete;
  [[nodiscard]] void* address() const { return verbs_.addr; }
  [[nodiscard]] size_t length() const { return verbs_.length; }
  [[nodiscard]] uint32_t lkey() const { return verbs_.lkey; }
  [[nodiscard]] uint32_t rkey() const { return verbs_.rkey; }
  // What work requests name as its first byte: address() unless it was registered with another one.
  [[nodiscard]] uint64_t iova() const { return iova_; }

  // As ibv_dereg_mr: what the destructor does, but EBUSY while windows are bound to the region (IBTA 11.2.8.4).
  [[nodiscard]] Status deregister();
  // As ibv_rereg_mr: `flags` is a set of ibv_rereg_mr_flags that says which of the arguments count. The keys stay.
  // Nothing is changed on error (IBV_REREG_MR_ERR_INPUT in ibv_rereg_mr's words); EBUSY while windows are bound.
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

// A window onto a region, with a key of its own that work requests give out and take back: IBV_WR_BIND_MW,
// IBV_WR_LOCAL_INV and the peer's IBV_WR_SEND_WITH_INV. Type 1 is bound by QueuePair::bind_window(), and any queue pair
// of the domain may use it; type 2 is what IBTA calls 2B: only the queue pair that bound it may use or invalidate it,
// and the low 8 bits of its key are the caller's (ibv_inc_rkey).
class MemoryWindow {
 public:
  ~MemoryWindow();
  MemoryWindow(const MemoryWindow&) = delete;
  MemoryWindow& operator=(const MemoryWindow&) = delete;
  [[nodiscard]] ibv_mw_type type() const { return verbs_.type; }
  // Type 1: the key that the last bind_window() gives it. Type 2: the key of its allocation, for ibv_inc_rkey().
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

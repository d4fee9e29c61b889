// Table of the memory regions and windows of a host, with access checks by key (IBTA 10.6, 9.7.4.1.5).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/containers/id_table.hpp"
#include "base/id_source.hpp"
#include "base/os/spinlock.hpp"
#include "base/result.hpp"
#include "base/types.hpp"
#include "memory/memory_entry.hpp"

namespace roci {

// Access right that an access requires; the values are those of ibv_access_flags.
enum class Access : uint16_t {
  kLocalRead = 0,
  kLocalWrite = 1,
  kRemoteWrite = 2,
  kRemoteRead = 4,
  kRemoteAtomic = 8,
  kFlushGlobal = 256,
};

enum class AccessOutcome : uint8_t {
  kAllowed,
  kUnknownKey,
  kWrongDomain,
  kWrongQueuePair,
  kNotPermitted,
  kOutOfRange,
  kNull,  // a null region: permitted, without memory
};

// Queue pair that accesses memory remotely, or that changes windows.
struct Accessor {
  PdNumber pd{0};
  Qpn qp{0};
};

// Request to bind a window (IBTA 10.6.7.2). Length 0 unbinds a window of type 1.
struct WindowBind {
  MemoryKey window{0};   // a key of the window; only its index is used
  MemoryKey new_key{0};  // R_Key after the bind; only its low 8 bits are used, with the index of the window
  MemoryKey region{0};
  uint64_t start = 0;  // address in the region
  uint64_t length = 0;
  // ibv_access_flags: remote access and IBV_ACCESS_ZERO_BASED; IBV_ACCESS_LOCAL_WRITE has no effect.
  int access = 0;
};

enum class BindOutcome : uint8_t {
  kBound,
  kUnknownWindow,
  kStillBound,   // type 2: must be invalidated first
  kWrongDomain,  // queue pair, window and region must be in one domain
  kEmpty,        // type 2: length 0
  kUnknownRegion,
  kNotBindable,  // the region lacks IBV_ACCESS_MW_BIND
  // Remote write or atomics on a region without local write, or flags that windows do not support.
  kNotPermitted,
  kOutOfRange,
};

// Memory regions and windows by key. The table is modified while no worker reads it: the caller holds the tokens of all
// workers. Exceptions: bind() and invalidate() run on the data path of one worker while others read; they change only
// the content of an entry. Lookups take no lock.
//
// An access that another worker has allowed just before a change of a window still completes. A window of type 2 is
// used by one queue pair, hence by one worker, so it does not change during an access.
class MemoryTable {
 public:
  // Maximum of regions and windows together: half of all key indices, so that a random index is free at the second
  // attempt on average.
  static constexpr size_t kMax = 1 << 23;
  explicit MemoryTable(IdSource& ids, size_t most = kMax) : ids_(ids), most_(most) {}
  ~MemoryTable();
  MemoryTable(const MemoryTable&) = delete;
  MemoryTable& operator=(const MemoryTable&) = delete;

  // Checks of add() that do not depend on the table.
  static Status check_region(const void* address, uint64_t iova, uint64_t length, int access);
  // Registers memory. Work requests address it by its own address, or from 0 with IBV_ACCESS_ZERO_BASED. Fails if
  // access has remote write or atomics without local write, or unknown flags, or if the range wraps; ENOMEM if the
  // table is full.
  Result<MemoryKey> add(PdNumber pd, void* address, uint64_t length, int access);
  // The same, addressed from `iova` in work requests.
  Result<MemoryKey> add(PdNumber pd, void* address, uint64_t length, uint64_t iova, int access);
  // The same with a key chosen by the caller. Also fails if the key is 0 or its index is in use.
  Status add_at(MemoryKey key, PdNumber pd, uint64_t va, void* host, uint64_t length, int access);
  // Replaces the memory of a region's key (IBTA 11.2.8.5). Fails as add() does, on an unknown region, and with EBUSY
  // while windows are bound to it.
  Status replace(MemoryKey key, PdNumber pd, void* address, uint64_t length, uint64_t iova, int access);
  // Whether a region may be removed; EBUSY while windows are bound to it (IBTA 11.2.8.4).
  [[nodiscard]] Status check_removable(MemoryKey key) const;
  // Removes a region or window, even if it is bound; windows on a region are unbound. Returns false for an unknown key.
  bool remove(MemoryKey key);

  // Adds a null region: its key permits local access to any range, without memory. ENOMEM if the table is full.
  Result<MemoryKey> add_null(PdNumber pd);
  // Adds an unbound window; `type` is 1 or 2. ENOMEM if the table is full.
  Result<MemoryKey> add_window(PdNumber pd, int type);
  // Unbinds all windows of a queue pair that is destroyed. Only the token of its worker is required.
  void unbind_windows_of(Qpn qp);

  // May be called by any worker.
  BindOutcome bind(const Accessor& accessor, const WindowBind& request);
  // Invalidates a window of type 2. Returns false if `accessor` may not invalidate the key: regions and windows of type 1
  // cannot be invalidated (IBTA 10.6.7.2.6, o10-37.2.26).
  bool invalidate(const Accessor& accessor, MemoryKey key);

  // Checks access to `length` bytes at `va`. If it is allowed, *where is their address in this process, else null.
  // Length 0 requires no key (IBTA 9.7.4.1.5, C9-88) and leaves *where null. check() is for scatter lists (L_Key),
  // check_remote() for requests of the peer (R_Key).
  AccessOutcome check(MemoryKey key, PdNumber pd, uint64_t va, uint64_t length, Access needed,
                      uint8_t** where) const;
  AccessOutcome check_remote(MemoryKey key, const Accessor& accessor, uint64_t va, uint64_t length,
                             Access needed, uint8_t** where) const;

  // Checks whether `accessor` may use the key of a region or window at all, whichever its range is.
  AccessOutcome check_remote_key(MemoryKey key, const Accessor& accessor, Access needed) const;

  // Region of a key; null if the key is unknown or belongs to a window or a null region.
  [[nodiscard]] const MemoryArea* find_region(MemoryKey key) const;

  [[nodiscard]] size_t size() const { return table_.size(); }

 private:
  [[nodiscard]] Status check_capacity() const;
  bool insert(EntryKind kind, const MemoryArea& area);
  MemoryKey random_key() { return MemoryKey{ids_.next32()}; }
  BindOutcome check_bind(const Accessor& accessor, const WindowBind& request, const MemoryEntry& window,
                         const MemoryEntry* region) const;
  void unbind(MemoryEntry& window);
  static AccessOutcome check_without_region(const MemoryEntry* entry, MemoryKey key, PdNumber pd);
  static AccessOutcome check_area(const MemoryArea& area, MemoryKey key, PdNumber pd, uint64_t va,
                                  uint64_t length, Access needed, uint8_t** where);

  IdSource& ids_;
  const size_t most_;
  IdTable<MemoryEntry> table_;
  Spinlock windows_;                      // held during changes of windows
  std::atomic<uint32_t> bound_type2_{0};  // number of bound windows of type 2; changed under the lock
};

}  // namespace roci

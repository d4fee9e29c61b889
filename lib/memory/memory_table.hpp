// The memory regions and windows of a host: who may touch which bytes with which key (IBTA 10.6, 9.7.4.1.5).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/id_source.hpp"
#include "base/id_table.hpp"
#include "base/result.hpp"
#include "base/spinlock.hpp"
#include "base/types.hpp"
#include "memory/memory_entry.hpp"

namespace roci {

// What an access needs a region to allow; the values are ibv_access_flags.
enum class Access : uint8_t {
  kLocalRead = 0,
  kLocalWrite = 1,
  kRemoteWrite = 2,
  kRemoteRead = 4,
  kRemoteAtomic = 8
};

enum class AccessOutcome : uint8_t {
  kAllowed,
  kUnknownKey,
  kWrongDomain,
  kWrongQueuePair,
  kNotPermitted,
  kOutOfRange
};

// Who asks: the queue pair, for remote access and what changes windows.
struct Accessor {
  PdNumber pd{0};
  Qpn qp{0};
};

// A request to bind a window (IBTA 10.6.7.2). A length of 0 unbinds one of type 1.
struct WindowBind {
  MemoryKey window{0};   // a key of the window; its index counts
  MemoryKey new_key{0};  // its R_Key from now on
  MemoryKey region{0};
  uint64_t start = 0;  // address in the region
  uint64_t length = 0;
  int access = 0;  // ibv_access_flags: remote ones and IBV_ACCESS_ZERO_BASED
};

enum class BindOutcome : uint8_t {
  kBound,
  kUnknownWindow,
  kWrongIndex,   // the new key is not one of the window's
  kStillBound,   // type 2: it must be invalidated first
  kWrongDomain,  // queue pair, window and region must be of one domain
  kEmpty,        // type 2 cannot be bound to nothing
  kUnknownRegion,
  kNotBindable,   // the region lacks IBV_ACCESS_MW_BIND
  kNotPermitted,  // remote write or atomics on a region without local write, or flags that windows do not have
  kOutOfRange,
};

// The table is changed while no worker looks: with all tokens in hand. bind() and invalidate() run on the data path of
// one worker while others look; what they change is the inside of an entry. A look-up takes no lock.
//
// An access that another worker had allowed just before a window changed still ends; windows of type 2 are used by one
// queue pair, hence one worker, and so never change under an access.
class MemoryTable {
 public:
  // Regions and windows together. Half of all key indices: a random one is free at the second attempt on average.
  static constexpr size_t kMost = 1 << 23;
  explicit MemoryTable(IdSource& ids, size_t most = kMost) : ids_(ids), most_(most) {}
  ~MemoryTable();
  MemoryTable(const MemoryTable&) = delete;
  MemoryTable& operator=(const MemoryTable&) = delete;

  // What add() refuses of a region by itself.
  static Status check_region(const void* address, uint64_t iova, uint64_t length, int access);
  // Registers memory that work requests name by its own address, or from 0 on with IBV_ACCESS_ZERO_BASED. Fails when
  // access asks for remote write or atomics without local write, holds unknown flags, or the range wraps; ENOMEM when
  // the table is full.
  Result<MemoryKey> add(PdNumber pd, void* address, uint64_t length, int access);
  // The same, named by another address.
  Result<MemoryKey> add(PdNumber pd, void* address, uint64_t length, uint64_t iova, int access);
  // The same under a key of the caller's choice. Fails when the key is 0 or its index taken, too.
  Status add_at(MemoryKey key, PdNumber pd, uint64_t va, void* host, uint64_t length, int access);
  // Replaces what a region's key stands for (IBTA 11.2.8.5). Fails as add() does, when there is no such region, and
  // while windows are bound to it (EBUSY).
  Status replace(MemoryKey key, PdNumber pd, void* address, uint64_t length, uint64_t iova, int access);
  // Whether a region may be removed; EBUSY while windows are bound to it (IBTA 11.2.8.4).
  [[nodiscard]] Status check_removable(MemoryKey key) const;
  // Takes a region or window away, whatever it is bound to; windows on a region are unbound.
  bool remove(MemoryKey key);

  // A window without memory; type is 1 or 2. ENOMEM when the table is full.
  Result<MemoryKey> add_window(PdNumber pd, int type);
  // The queue pair goes away, and what its windows give access to with it. Needs the token of its worker alone.
  void unbind_windows_of(Qpn qp);

  // Any worker.
  BindOutcome bind(const Accessor& who, const WindowBind& request);
  // Takes away what a window of type 2 gives access to. False when the key is none that `who` may invalidate: regions
  // and windows of type 1 are not (IBTA 10.6.7.2.6, o10-37.2.26).
  bool invalidate(const Accessor& who, MemoryKey key);

  // Whether `length` bytes at `va` may be accessed; *where is their place in this process when they may. A zero
  // length needs no key (IBTA 9.7.4.1.5, C9-88) and leaves *where null. The first is for scatter lists (L_Key), the
  // second for what a peer asks (R_Key).
  AccessOutcome check(MemoryKey key, PdNumber pd, uint64_t va, uint64_t length, Access needed,
                      uint8_t** where) const;
  AccessOutcome check_remote(MemoryKey key, const Accessor& who, uint64_t va, uint64_t length, Access needed,
                             uint8_t** where) const;

  // The region of a key; null when the key is unknown or a window's.
  [[nodiscard]] const MemoryArea* find_region(MemoryKey key) const;

  [[nodiscard]] size_t size() const { return table_.size(); }

 private:
  [[nodiscard]] Status check_room() const;
  bool insert(EntryKind kind, const MemoryArea& area);
  MemoryKey random_key() { return MemoryKey{ids_.next32()}; }
  BindOutcome check_bind(const Accessor& who, const WindowBind& request, const MemoryEntry& window,
                         const MemoryEntry* region) const;
  void unbind(MemoryEntry& window);
  static AccessOutcome check_area(const MemoryArea& area, MemoryKey key, PdNumber pd, uint64_t va,
                                  uint64_t length, Access needed, uint8_t** where);

  IdSource& ids_;
  const size_t most_;
  IdTable<MemoryEntry> table_;
  Spinlock windows_;                      // held by those who change windows
  std::atomic<uint32_t> bound_type2_{0};  // windows of type 2 that are bound; changed under the lock
};

}  // namespace roci

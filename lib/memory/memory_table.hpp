// The memory regions of a host: who may touch which bytes with which key (IBTA 10.6, 9.7.4.1.5).
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/id_source.hpp"
#include "base/id_table.hpp"
#include "base/result.hpp"
#include "base/types.hpp"

namespace roci {

// A protection domain's number; regions and queue pairs of different domains do not meet.
using PdNumber = Strong<struct PdNumberTag, uint32_t>;

// What an access needs a region to allow; the values are ibv_access_flags.
enum class Access : uint8_t {
  kLocalRead = 0,
  kLocalWrite = 1,
  kRemoteWrite = 2,
  kRemoteRead = 4,
  kRemoteAtomic = 8
};

struct MemoryArea {
  MemoryKey key{0};  // serves as L_Key and R_Key
  PdNumber pd{0};
  uint64_t start = 0;   // virtual address as peers name it
  uint64_t length = 0;  // bytes
  uint8_t* host = nullptr;
  int access = 0;  // ibv_access_flags
};

enum class AccessOutcome : uint8_t { kAllowed, kUnknownKey, kWrongDomain, kNotPermitted, kOutOfRange };

// Owned by whoever holds the worker's token of the host; looked up on the data path, so nothing here locks.
class MemoryTable {
 public:
  explicit MemoryTable(IdSource& ids) : ids_(ids) {}
  ~MemoryTable();
  MemoryTable(const MemoryTable&) = delete;
  MemoryTable& operator=(const MemoryTable&) = delete;

  // Fails when access asks for remote write or atomics without local write, holds unknown flags, or the range wraps.
  Result<MemoryKey> add(PdNumber pd, void* address, uint64_t length, int access);
  // The same for a region that peers know by another address than this process does, under a key of the caller's
  // choice. Fails when the key is 0 or taken, too.
  Status add_at(MemoryKey key, PdNumber pd, uint64_t va, void* host, uint64_t length, int access);
  bool remove(MemoryKey key);

  // Whether `length` bytes at `va` may be accessed; *where is their place in this process when they may. A zero
  // length needs no key (IBTA 9.7.4.1.5, C9-88) and leaves *where null.
  AccessOutcome check(MemoryKey key, PdNumber pd, uint64_t va, uint64_t length, Access needed,
                      uint8_t** where) const;

  [[nodiscard]] size_t size() const { return table_.size(); }
  [[nodiscard]] size_t count_in(PdNumber pd) const;

 private:
  bool insert(const MemoryArea& area);

  IdSource& ids_;
  IdTable<MemoryArea> table_;
};

}  // namespace roci

#include "memory/memory_table.hpp"

#include "memory/flush_verbs.hpp"

#include <infiniband/verbs.h>

#include <string>

#include "memory/area_address.hpp"

namespace roci {

static_assert(static_cast<int>(Access::kLocalWrite) == IBV_ACCESS_LOCAL_WRITE);
static_assert(static_cast<int>(Access::kRemoteWrite) == IBV_ACCESS_REMOTE_WRITE);
static_assert(static_cast<int>(Access::kRemoteRead) == IBV_ACCESS_REMOTE_READ);
static_assert(static_cast<int>(Access::kRemoteAtomic) == IBV_ACCESS_REMOTE_ATOMIC);
static_assert(static_cast<int>(Access::kFlushGlobal) == kAccessFlushGlobal);

namespace {
// Flags of the optional range are hints and may be ignored. The processor copies the data, so every region supports
// on-demand paging, and pages of any size.
constexpr int kSupportedAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |
                                 IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB | kAccessFlushGlobal |
                                 static_cast<int>(IBV_ACCESS_OPTIONAL_RANGE);

MemoryArea area_of(MemoryKey key, PdNumber pd, void* address, uint64_t length, uint64_t iova, int access) {
  return {.key = key,
          .pd = pd,
          .start = iova,
          .length = length,
          .host = static_cast<uint8_t*>(address),
          .access = access};
}

}  // namespace

Status MemoryTable::check_region(const void* address, uint64_t iova, uint64_t length, int access) {
  if ((access & ~kSupportedAccess) != 0) {
    return fail("memory region: access flags " + std::to_string(access) +
                " contain unsupported flags; local write, remote write, remote read, remote atomic, window "
                "bind, zero based, on demand, huge pages, flush global and optional flags are allowed");
  }
  if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) != 0 &&
      (access & IBV_ACCESS_LOCAL_WRITE) == 0) {
    return fail("memory region: remote write and remote atomic access require local write access");
  }
  if ((access & IBV_ACCESS_ZERO_BASED) != 0 && iova != 0) {
    return fail("memory region: zero-based addresses must start at 0, not at " + std::to_string(iova));
  }
  const auto first = reinterpret_cast<uint64_t>(address);
  if (first + length < first || iova + length < iova)
    return fail("memory region: address + length exceeds the address space");
  return {};
}

MemoryTable::~MemoryTable() {
  table_.for_each([](uint32_t, MemoryEntry& entry) { delete &entry; });
}

Result<MemoryKey> MemoryTable::add(PdNumber pd, void* address, uint64_t length, int access) {
  const bool zero_based = (access & IBV_ACCESS_ZERO_BASED) != 0;
  return add(pd, address, length, zero_based ? 0 : reinterpret_cast<uint64_t>(address), access);
}

Result<MemoryKey> MemoryTable::add(PdNumber pd, void* address, uint64_t length, uint64_t iova, int access) {
  ROCI_TRY(check_region(address, iova, length, access));
  ROCI_TRY(check_capacity());
  MemoryKey key{0};
  do {
    key = random_key();
  } while (!insert(EntryKind::kRegion, area_of(key, pd, address, length, iova, access)));
  return key;
}

Result<MemoryKey> MemoryTable::add_null(PdNumber pd) {
  ROCI_TRY(check_capacity());
  MemoryKey key{0};
  do {
    key = random_key();
  } while (!insert(EntryKind::kNull, {.key = key, .pd = pd}));
  return key;
}

Status MemoryTable::add_at(MemoryKey key, PdNumber pd, uint64_t va, void* host, uint64_t length, int access) {
  ROCI_TRY(check_region(host, va, length, access));
  ROCI_TRY(check_capacity());
  if (!insert(EntryKind::kRegion, area_of(key, pd, host, length, va, access))) {
    return fail("memory region: key " + std::to_string(key.value()) +
                " is 0 or its index is used by another region or window; any other value is allowed");
  }
  return {};
}

Status MemoryTable::replace(MemoryKey key, PdNumber pd, void* address, uint64_t length, uint64_t iova,
                            int access) {
  ROCI_TRY(check_region(address, iova, length, access));
  ROCI_TRY(check_removable(key));
  MemoryEntry& entry = *table_.find(key_index(key));
  if (!entry.is_region()) return fail("memory region: a null region cannot be re-registered");
  entry.change_region(area_of(key, pd, address, length, iova, access));
  return {};
}

Status MemoryTable::check_removable(MemoryKey key) const {
  const MemoryEntry* entry = table_.find(key_index(key));
  if (entry == nullptr || entry->is_window() || entry->region().key != key)
    return fail("memory region: unknown key " + std::to_string(key.value()));
  if (entry->bound_windows > 0) {
    return fail("memory region: " + std::to_string(entry->bound_windows) +
                    " memory windows are bound to it; they must be invalidated or freed first",
                EBUSY);
  }
  return {};
}

Status MemoryTable::check_capacity() const {
  if (table_.size() < most_) return {};
  return fail(
      "memory: " + std::to_string(most_) + " regions and windows exist, the device's maximum; free one first",
      ENOMEM);
}

// Returns false if the key is 0 or its index is in use.
bool MemoryTable::insert(EntryKind kind, const MemoryArea& area) {
  if (area.key.value() == 0) return false;
  auto owned = std::make_unique<MemoryEntry>(kind, area);
  if (!table_.insert(key_index(area.key), owned.get())) return false;
  static_cast<void>(owned.release());
  return true;
}

bool MemoryTable::remove(MemoryKey key) {
  MemoryEntry* entry = table_.find(key_index(key));
  if (entry == nullptr) return false;
  if (entry->is_window()) {
    unbind(*entry);
  } else if (entry->region().key != key) {
    return false;
  }
  if (entry->bound_windows > 0) {
    table_.for_each([&](uint32_t, MemoryEntry& window) {
      if (window.bound_to == entry) unbind(window);
    });
  }
  const std::unique_ptr<MemoryEntry> owned(table_.erase(key_index(key)));
  return true;
}

AccessOutcome MemoryTable::check_area(const MemoryArea& area, MemoryKey key, PdNumber pd, uint64_t va,
                                      uint64_t length, Access needed, uint8_t** where) {
  if (area.key != key) return AccessOutcome::kUnknownKey;
  if (area.pd != pd) return AccessOutcome::kWrongDomain;
  if (needed != Access::kLocalRead && (area.access & static_cast<int>(needed)) == 0) {
    return AccessOutcome::kNotPermitted;
  }
  const uint64_t offset = va - area.start;  // wraps to a large value if va is below the region
  if (va < area.start || offset > area.length || length > area.length - offset)
    return AccessOutcome::kOutOfRange;
  *where = address_in(area, offset);
  return AccessOutcome::kAllowed;
}

// Windows have no L_Key.
AccessOutcome MemoryTable::check_without_region(const MemoryEntry* entry, MemoryKey key, PdNumber pd) {
  if (entry == nullptr || entry->is_window() || entry->region().key != key) return AccessOutcome::kUnknownKey;
  return entry->pd == pd ? AccessOutcome::kNull : AccessOutcome::kWrongDomain;
}

AccessOutcome MemoryTable::check(MemoryKey key, PdNumber pd, uint64_t va, uint64_t length, Access needed,
                                 uint8_t** where) const {
  *where = nullptr;
  if (length == 0) return AccessOutcome::kAllowed;
  const MemoryEntry* entry = table_.find(key_index(key));
  if (entry == nullptr || !entry->is_region()) [[unlikely]]
    return check_without_region(entry, key, pd);
  return check_area(entry->region(), key, pd, va, length, needed, where);
}

AccessOutcome MemoryTable::check_remote(MemoryKey key, const Accessor& accessor, uint64_t va, uint64_t length,
                                        Access needed, uint8_t** where) const {
  *where = nullptr;
  if (length == 0) return AccessOutcome::kAllowed;
  const MemoryEntry* entry = table_.find(key_index(key));
  if (entry == nullptr) return AccessOutcome::kUnknownKey;
  if (entry->is_region()) return check_area(entry->region(), key, accessor.pd, va, length, needed, where);
  const MemoryArea area = entry->read();
  if (entry->kind == EntryKind::kWindowType2 && area.key == key && area.qp != accessor.qp)
    return AccessOutcome::kWrongQueuePair;
  return check_area(area, key, accessor.pd, va, length, needed, where);
}

AccessOutcome MemoryTable::check_remote_key(MemoryKey key, const Accessor& accessor, Access needed) const {
  const MemoryEntry* entry = table_.find(key_index(key));
  if (entry == nullptr) return AccessOutcome::kUnknownKey;
  const MemoryArea area = entry->is_region() ? entry->region() : entry->read();
  if (entry->kind == EntryKind::kWindowType2 && area.key == key && area.qp != accessor.qp)
    return AccessOutcome::kWrongQueuePair;
  uint8_t* where = nullptr;
  return check_area(area, key, accessor.pd, area.start, 0, needed, &where);
}

const MemoryArea* MemoryTable::find_region(MemoryKey key) const {
  const MemoryEntry* const entry = table_.find(key_index(key));
  return entry == nullptr || !entry->is_region() || entry->region().key != key ? nullptr : &entry->region();
}

}  // namespace roci

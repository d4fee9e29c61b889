#include "memory/memory_table.hpp"

#include <infiniband/verbs.h>

namespace roci {

static_assert(static_cast<int>(Access::kLocalWrite) == IBV_ACCESS_LOCAL_WRITE);
static_assert(static_cast<int>(Access::kRemoteWrite) == IBV_ACCESS_REMOTE_WRITE);
static_assert(static_cast<int>(Access::kRemoteRead) == IBV_ACCESS_REMOTE_READ);
static_assert(static_cast<int>(Access::kRemoteAtomic) == IBV_ACCESS_REMOTE_ATOMIC);

namespace {
constexpr int kSupportedAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_RELAXED_ORDERING;

Status check_region(uint64_t va, uint64_t length, int access) {
  if ((access & ~kSupportedAccess) != 0) {
    return fail(
        "memory region: access flags " + std::to_string(access) +
        " hold unsupported ones; local write, remote write, remote read, remote atomic and relaxed ordering "
        "are allowed");
  }
  if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) != 0 &&
      (access & IBV_ACCESS_LOCAL_WRITE) == 0) {
    return fail("memory region: remote write and remote atomic access need local write access too");
  }
  if (va + length < va) return fail("memory region: address + length goes past the end of the address space");
  return {};
}

}  // namespace

MemoryTable::~MemoryTable() {
  table_.for_each([](uint32_t, MemoryArea& area) { delete &area; });
}

Result<MemoryKey> MemoryTable::add(PdNumber pd, void* address, uint64_t length, int access) {
  const auto va = reinterpret_cast<uint64_t>(address);
  ROCI_TRY(check_region(va, length, access));
  MemoryKey key{0};
  do {
    key = MemoryKey{ids_.next32()};
  } while (!insert({key, pd, va, length, static_cast<uint8_t*>(address), access}));
  return key;
}

Status MemoryTable::add_at(MemoryKey key, PdNumber pd, uint64_t va, void* host, uint64_t length, int access) {
  ROCI_TRY(check_region(va, length, access));
  if (!insert({key, pd, va, length, static_cast<uint8_t*>(host), access})) {
    return fail("memory region: key " + std::to_string(key.value()) +
                " is 0 or belongs to another region; any other value is allowed");
  }
  return {};
}

// False when the key cannot be had.
bool MemoryTable::insert(const MemoryArea& area) {
  if (area.key.value() == 0) return false;
  auto owned = std::make_unique<MemoryArea>(area);
  if (!table_.insert(area.key.value(), owned.get())) return false;
  static_cast<void>(owned.release());
  return true;
}

bool MemoryTable::remove(MemoryKey key) {
  const std::unique_ptr<MemoryArea> area(table_.erase(key.value()));
  return area != nullptr;
}

AccessOutcome MemoryTable::check(MemoryKey key, PdNumber pd, uint64_t va, uint64_t length, Access needed,
                                 uint8_t** where) const {
  *where = nullptr;
  if (length == 0) return AccessOutcome::kAllowed;
  const MemoryArea* area = table_.find(key.value());
  if (area == nullptr) return AccessOutcome::kUnknownKey;
  if (area->pd != pd) return AccessOutcome::kWrongDomain;
  if (needed != Access::kLocalRead && (area->access & static_cast<int>(needed)) == 0) {
    return AccessOutcome::kNotPermitted;
  }
  const uint64_t offset = va - area->start;  // wraps to something huge when va lies before the region
  if (va < area->start || offset > area->length || length > area->length - offset)
    return AccessOutcome::kOutOfRange;
  *where = area->host + offset;
  return AccessOutcome::kAllowed;
}

size_t MemoryTable::count_in(PdNumber pd) const {
  size_t count = 0;
  table_.for_each([&](uint32_t, const MemoryArea& area) { count += area.pd == pd ? 1 : 0; });
  return count;
}

}  // namespace roci

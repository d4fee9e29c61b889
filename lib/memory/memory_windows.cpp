// Binding and invalidation of memory windows. Rule numbers are those of IBTA volume 1.
#include <infiniband/verbs.h>

#include <mutex>

#include "memory/area_address.hpp"
#include "memory/memory_table.hpp"

namespace roci {
namespace {

constexpr int kNeedsLocalWrite = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
// Local write and bind access have no effect, because a window has no L_Key and no windows of its own. Programs set them,
// and NICs accept them. Flags of the optional range are hints.
constexpr int kWindowAccess = kNeedsLocalWrite | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED;
constexpr int kIgnoredAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND | static_cast<int>(IBV_ACCESS_OPTIONAL_RANGE);

}  // namespace

Result<MemoryKey> MemoryTable::add_window(PdNumber pd, int type) {
  ROCI_TRY(check_capacity());
  MemoryKey key{0};
  do {
    key = random_key();
  } while (!insert(type == 1 ? EntryKind::kWindowType1 : EntryKind::kWindowType2, {.key = key, .pd = pd}));
  return key;
}

// The window keeps its key and permits no access.
void MemoryTable::unbind(MemoryEntry& window) {
  const std::scoped_lock guard(windows_);
  MemoryArea area = window.read();
  if (area.qp != Qpn{0}) bound_type2_.fetch_sub(1, std::memory_order_relaxed);
  if (window.bound_to != nullptr) --window.bound_to->bound_windows;
  window.bound_to = nullptr;
  window.write({.key = area.key, .pd = area.pd});
}

void MemoryTable::unbind_windows_of(Qpn qp) {
  if (bound_type2_.load(std::memory_order_relaxed) == 0) return;  // common; scanning a large table is slow
  table_.for_each([&](uint32_t, MemoryEntry& entry) {
    if (entry.kind == EntryKind::kWindowType2 && entry.read().qp == qp) unbind(entry);
  });
}

BindOutcome MemoryTable::check_bind(const Accessor& accessor, const WindowBind& request,
                                    const MemoryEntry& window, const MemoryEntry* region) const {
  const bool type2 = window.kind == EntryKind::kWindowType2;
  if (window.pd != accessor.pd) return BindOutcome::kWrongDomain;                     // C10-72
  if (type2 && window.bound_to != nullptr) return BindOutcome::kStillBound;           // o10-37.2.30
  if (request.length == 0) return type2 ? BindOutcome::kEmpty : BindOutcome::kBound;  // o10-37.2.40
  if (region == nullptr || !region->is_region() || region->region().key != request.region)
    return BindOutcome::kUnknownRegion;
  const MemoryArea& area = region->region();
  if (area.pd != accessor.pd) return BindOutcome::kWrongDomain;                   // C10-72
  if ((area.access & IBV_ACCESS_MW_BIND) == 0) return BindOutcome::kNotBindable;  // C10-73
  // Only windows of type 2 may be zero-based (o10-36.2.2).
  if ((request.access & ~(kWindowAccess | kIgnoredAccess)) != 0 ||
      (!type2 && (request.access & IBV_ACCESS_ZERO_BASED) != 0))
    return BindOutcome::kNotPermitted;
  if ((request.access & kNeedsLocalWrite) != 0 && (area.access & IBV_ACCESS_LOCAL_WRITE) == 0)
    return BindOutcome::kNotPermitted;  // C10-74
  const uint64_t offset = request.start - area.start;
  if (request.start < area.start || offset > area.length || request.length > area.length - offset)
    return BindOutcome::kOutOfRange;  // C10-75
  return BindOutcome::kBound;
}

BindOutcome MemoryTable::bind(const Accessor& accessor, const WindowBind& request) {
  MemoryEntry* window = table_.find(key_index(request.window));
  if (window == nullptr || !window->is_window()) return BindOutcome::kUnknownWindow;
  MemoryEntry* region = table_.find(key_index(request.region));
  const std::scoped_lock guard(windows_);
  const BindOutcome outcome = check_bind(accessor, request, *window, region);
  if (outcome != BindOutcome::kBound) return outcome;
  if (window->bound_to != nullptr) --window->bound_to->bound_windows;
  window->bound_to = nullptr;
  MemoryArea area{.key = with_key_byte(window->read().key, request.new_key), .pd = window->pd};
  if (request.length > 0) {
    const MemoryArea& whole = region->region();
    area.start = (request.access & IBV_ACCESS_ZERO_BASED) != 0 ? 0 : request.start;
    area.length = request.length;
    area.host = address_in(whole, request.start - whole.start);
    area.access = request.access & kWindowAccess;
    if (window->kind == EntryKind::kWindowType2) {
      area.qp = accessor.qp;
      bound_type2_.fetch_add(1, std::memory_order_relaxed);
    }
    window->bound_to = region;
    ++region->bound_windows;
  }
  window->write(area);
  return BindOutcome::kBound;
}

bool MemoryTable::invalidate(const Accessor& accessor, MemoryKey key) {
  MemoryEntry* window = table_.find(key_index(key));
  if (window == nullptr || window->kind != EntryKind::kWindowType2) return false;
  const MemoryArea area = window->read();
  // A queue pair number is never 0, so an unbound window (qp 0) matches no accessor.
  if (area.key != key || area.pd != accessor.pd || area.qp != accessor.qp) return false;
  unbind(*window);
  return true;
}

}  // namespace roci

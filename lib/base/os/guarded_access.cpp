#include "base/os/guarded_access.hpp"

#if ROCI_CHECKS_POISON
#include <sanitizer/asan_interface.h>
#endif

namespace roci {

constinit thread_local MemoryFaults memory_faults;

// Table entry. Distances are relative to the entry, so it needs no relocation in a shared library.
struct GuardedAccess {
  int32_t instruction;
  int32_t behind;
};

// Start and end of the section, defined by the linker. Hidden: each program or shared library has its own table, and a
// handler for that table.
extern const GuardedAccess kFirstGuarded[] asm("__start_roci_guarded")
    __attribute__((weak, visibility("hidden")));
extern const GuardedAccess kGuardedEnd[] asm("__stop_roci_guarded")
    __attribute__((weak, visibility("hidden")));

namespace {

uintptr_t from_here(const int32_t& distance) {
  return reinterpret_cast<uintptr_t>(&distance) + static_cast<uintptr_t>(intptr_t{distance});
}

}  // namespace

// Linear search of a few hundred entries: their order, chosen by the linker, is undefined.
uintptr_t behind_guarded_access(uintptr_t pc) {
  for (const GuardedAccess* one = kFirstGuarded; one != kGuardedEnd; ++one) {
    if (from_here(one->instruction) == pc) return from_here(one->behind);
  }
  return 0;
}

#if ROCI_CHECKS_POISON
void check_poison(const void* at, size_t bytes) {
  // ASan treats non-canonical addresses as poisoned.
  if (reinterpret_cast<uintptr_t>(at) >= uintptr_t{1} << 47) return;
  const void* bad = __asan_region_is_poisoned(const_cast<void*>(at), bytes);
  if (bad != nullptr) static_cast<void>(*static_cast<const volatile char*>(bad));  // reported by ASan
}
#endif

}  // namespace roci

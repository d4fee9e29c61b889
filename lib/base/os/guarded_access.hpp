// Guarded accesses to memory of the application, which may have been unmapped, protected or truncated with its file
// since its registration.
//
// A guarded access is one instruction whose address is in an exception table together with the address at which
// execution continues, as in a kernel that reads user memory. There is no setup before and no cleanup after it, so it
// costs as much as a plain access. On a fault the handler of memory/memory_guard.hpp looks up the instruction in the
// table, records the fault for the thread and continues after the instruction. A copy then runs on with undefined data
// in place of unreadable bytes; its caller checks for a fault with take_memory_fault(). No stack is unwound and no
// destructor skipped. Without the handler, and for all other instructions of the program, faults have their usual
// effect.
//
// Under ThreadSanitizer, which must see the accesses, they are plain accesses and not guarded.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/vector16.hpp"

#if defined(__SANITIZE_THREAD__)
#define ROCI_GUARDS_MEMORY 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ROCI_GUARDS_MEMORY 0
#endif
#endif
#ifndef ROCI_GUARDS_MEMORY
#define ROCI_GUARDS_MEMORY 1
#endif

#if defined(__SANITIZE_ADDRESS__)
#define ROCI_CHECKS_POISON 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ROCI_CHECKS_POISON 1
#endif
#endif
#ifndef ROCI_CHECKS_POISON
#define ROCI_CHECKS_POISON 0
#endif

namespace roci {

// Fault state of a thread. The handler writes `pending`. In a shared library this access may call the loader for the
// thread's TLS block, and a signal handler must not allocate; Host::drive therefore accesses it before the thread's
// first guarded access. The initial-exec TLS model would not need the loader, but would prevent loading the library
// after program start (dlopen), as UCX does.
struct MemoryFaults {
  volatile bool pending = false;  // an access has faulted since the last check
  uint32_t uncounted = 0;         // refused copies that a worker has not counted yet
};
extern constinit thread_local MemoryFaults memory_faults;

// Whether an access of this thread has faulted since the last check; resets the state.
inline bool drop_memory_fault() {
  asm volatile("" ::: "memory");  // the accesses must precede the check
  if (!memory_faults.pending) [[likely]]
    return false;
  memory_faults.pending = false;
  return true;
}
// The same for a copy that is refused on a fault, which is counted.
inline bool take_memory_fault() {
  if (!drop_memory_fault()) [[likely]]
    return false;
  ++memory_faults.uncounted;
  return true;
}

// Address at which execution continues after a fault at `pc`; 0 if the instruction is not guarded.
uintptr_t behind_guarded_access(uintptr_t pc);

#if ROCI_CHECKS_POISON
// Explicit check, because AddressSanitizer does not see accesses in assembly.
void check_poison(const void* at, size_t bytes);
#else
inline void check_poison(const void* /*at*/, size_t /*bytes*/) {}
#endif

template <size_t kBytes>
using ByteRun = uint8_t[kBytes];

#define ROCI_GUARDED_TO(instruction, behind)                                       \
  "771: " instruction                                                              \
  "\n772:\n"                                                                       \
  ".pushsection roci_guarded,\"a?\",@progbits\n.balign 4\n.long 771b - ., " behind \
  " - .\n"                                                                         \
  ".popsection\n"
#define ROCI_GUARDED(instruction) ROCI_GUARDED_TO(instruction, "772b")

// Loads and stores of `value`, with the size of its type; `instruction` and register `kind` must match that size. On
// arm64 the instruction includes its register, as in "ldrb %w0" for loads and "strb %w1" for stores.
#if ROCI_GUARDS_MEMORY && defined(__x86_64__)
#define ROCI_MEMORY "m"
#define ROCI_LOAD(instruction) ROCI_GUARDED(instruction " %1, %0")
#define ROCI_STORE(instruction) ROCI_GUARDED(instruction " %1, %0")
#define ROCI_STORE_GOTO(instruction) ROCI_GUARDED_TO(instruction " %0, %1", "%l[faulted]")
#elif ROCI_GUARDS_MEMORY
#define ROCI_MEMORY "Q"
#define ROCI_LOAD(instruction) ROCI_GUARDED(instruction ", %1")
#define ROCI_STORE(instruction) ROCI_GUARDED(instruction ", %0")
#define ROCI_STORE_GOTO(instruction) ROCI_GUARDED_TO(instruction ", %1", "%l[faulted]")
#endif
#if ROCI_GUARDS_MEMORY
#define ROCI_GUARDED_LOAD(instruction, kind, value, from) \
  check_poison(from, sizeof(value));                      \
  asm inline volatile(ROCI_LOAD(instruction)              \
                      : "=" kind(value)                   \
                      : ROCI_MEMORY(*reinterpret_cast<const ByteRun<sizeof(value)>*>(from)))
#define ROCI_GUARDED_STORE(instruction, kind, value, to)                                \
  check_poison(to, sizeof(value));                                                      \
  asm inline volatile(ROCI_STORE(instruction)                                           \
                      : "=" ROCI_MEMORY(*reinterpret_cast<ByteRun<sizeof(value)>*>(to)) \
                      : kind(value))
// Store as the end of a function that returns whether there was no fault.
#define ROCI_RETURN_GUARDED_STORE(instruction, kind, value, to)                       \
  check_poison(to, sizeof(value));                                                    \
  asm goto(ROCI_STORE_GOTO(instruction)                                               \
           :                                                                          \
           : kind(value), ROCI_MEMORY(*reinterpret_cast<ByteRun<sizeof(value)>*>(to)) \
           : "memory"                                                                 \
           : faulted);                                                                \
  return true;                                                                        \
  faulted:                                                                            \
  return false
#else
#define ROCI_GUARDED_LOAD(instruction, kind, value, from) std::memcpy(&(value), from, sizeof(value))
#define ROCI_GUARDED_STORE(instruction, kind, value, to) std::memcpy(to, &(value), sizeof(value))
#define ROCI_RETURN_GUARDED_STORE(instruction, kind, value, to) \
  std::memcpy(to, &(value), sizeof(value));                     \
  return true
#endif

// Instructions and register kinds for 1, 2, 4, 8 and 16 bytes. ROCI_VECTOR: kind of the register of a Vector16.
#if defined(__x86_64__)
#define ROCI_VECTOR "x"
#define ROCI_LOAD_1 "movb", "q"
#define ROCI_LOAD_2 "movw", "r"
#define ROCI_LOAD_4 "movl", "r"
#define ROCI_LOAD_8 "movq", "r"
#define ROCI_LOAD_16 "movdqu", ROCI_VECTOR
#define ROCI_STORE_1 ROCI_LOAD_1
#define ROCI_STORE_2 ROCI_LOAD_2
#define ROCI_STORE_4 ROCI_LOAD_4
#define ROCI_STORE_8 ROCI_LOAD_8
#define ROCI_STORE_16 ROCI_LOAD_16
#define ROCI_TRY_STORE_16 ROCI_LOAD_16
#else
#define ROCI_VECTOR "w"
#define ROCI_LOAD_1 "ldrb %w0", "r"
#define ROCI_LOAD_2 "ldrh %w0", "r"
#define ROCI_LOAD_4 "ldr %w0", "r"
#define ROCI_LOAD_8 "ldr %x0", "r"
#define ROCI_LOAD_16 "ldr %q0", ROCI_VECTOR
#define ROCI_STORE_1 "strb %w1", "r"
#define ROCI_STORE_2 "strh %w1", "r"
#define ROCI_STORE_4 "str %w1", "r"
#define ROCI_STORE_8 "str %x1", "r"
#define ROCI_STORE_16 "str %q1", ROCI_VECTOR
#define ROCI_TRY_STORE_16 "str %q0", ROCI_VECTOR
#endif
#define ROCI_EXPAND(macro, ...) macro(__VA_ARGS__)

// Integers of up to 8 bytes, and 16 bytes. Wider registers need functions that are compiled for them.
[[gnu::always_inline]] inline void guarded_load(const uint8_t* from, uint8_t& value) {
  ROCI_EXPAND(ROCI_GUARDED_LOAD, ROCI_LOAD_1, value, from);
}
[[gnu::always_inline]] inline void guarded_load(const uint8_t* from, uint16_t& value) {
  ROCI_EXPAND(ROCI_GUARDED_LOAD, ROCI_LOAD_2, value, from);
}
[[gnu::always_inline]] inline void guarded_load(const uint8_t* from, uint32_t& value) {
  ROCI_EXPAND(ROCI_GUARDED_LOAD, ROCI_LOAD_4, value, from);
}
[[gnu::always_inline]] inline void guarded_load(const uint8_t* from, uint64_t& value) {
  ROCI_EXPAND(ROCI_GUARDED_LOAD, ROCI_LOAD_8, value, from);
}
[[gnu::always_inline]] inline void guarded_load(const uint8_t* from, Vector16& value) {
  ROCI_EXPAND(ROCI_GUARDED_LOAD, ROCI_LOAD_16, value, from);
}
[[gnu::always_inline]] inline void guarded_store(uint8_t* to, uint8_t value) {
  ROCI_EXPAND(ROCI_GUARDED_STORE, ROCI_STORE_1, value, to);
}
[[gnu::always_inline]] inline void guarded_store(uint8_t* to, uint16_t value) {
  ROCI_EXPAND(ROCI_GUARDED_STORE, ROCI_STORE_2, value, to);
}
[[gnu::always_inline]] inline void guarded_store(uint8_t* to, uint32_t value) {
  ROCI_EXPAND(ROCI_GUARDED_STORE, ROCI_STORE_4, value, to);
}
[[gnu::always_inline]] inline void guarded_store(uint8_t* to, uint64_t value) {
  ROCI_EXPAND(ROCI_GUARDED_STORE, ROCI_STORE_8, value, to);
}
[[gnu::always_inline]] inline void guarded_store(uint8_t* to, Vector16 value) {
  ROCI_EXPAND(ROCI_GUARDED_STORE, ROCI_STORE_16, value, to);
}
// For loops: stop after the first fault, since each further fault would raise another signal.
[[gnu::always_inline]] inline bool try_guarded_store(uint8_t* to, Vector16 value) {
  ROCI_EXPAND(ROCI_RETURN_GUARDED_STORE, ROCI_TRY_STORE_16, value, to);
}

// Aligned stores with release order.
[[gnu::always_inline]] inline void guarded_store_release(uint8_t* to, uint64_t value) {
#if !ROCI_GUARDS_MEMORY
  std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(to)).store(value, std::memory_order_release);
#elif defined(__x86_64__)
  asm volatile("" ::: "memory");  // the processor does not reorder stores
  guarded_store(to, value);
#else
  asm volatile("" ::: "memory");
  ROCI_GUARDED_STORE("stlr %x1", "r", value, to);
#endif
}
[[gnu::always_inline]] inline void guarded_store_release(uint8_t* to, uint8_t value) {
#if !ROCI_GUARDS_MEMORY
  std::atomic_ref<uint8_t>(*to).store(value, std::memory_order_release);
#elif defined(__x86_64__)
  asm volatile("" ::: "memory");
  guarded_store(to, value);
#else
  asm volatile("" ::: "memory");
  ROCI_GUARDED_STORE("stlrb %w1", "r", value, to);
#endif
}

// Stores 8 aligned bytes at once, after all earlier stores.
inline void guarded_atomic_store(uint64_t* at, uint64_t value) {
#if ROCI_GUARDS_MEMORY
  std::atomic_thread_fence(std::memory_order_release);
  guarded_store(reinterpret_cast<uint8_t*>(at), value);
#else
  std::atomic_ref<uint64_t>(*at).store(value, std::memory_order_release);
#endif
}

// Atomic operations; both return the previous value.
inline uint64_t guarded_fetch_add(uint64_t* at, uint64_t add) {
#if !ROCI_GUARDS_MEMORY
  return std::atomic_ref<uint64_t>(*at).fetch_add(add);
#elif defined(__x86_64__)
  check_poison(at, sizeof *at);
  asm inline volatile(ROCI_GUARDED("lock xaddq %0, %1") : "+r"(add), "+m"(*at) : : "memory", "cc");
  return add;
#else
  check_poison(at, sizeof *at);
  uint64_t before = 0, after = 0;
  uint32_t refused = 0;
  asm volatile("770: " ROCI_GUARDED_TO("ldaxr %0, %3", "773f")  //
               "add %1, %0, %4\n"                               //
               ROCI_GUARDED_TO("stlxr %w2, %1, %3", "773f")     //
               "cbnz %w2, 770b\n773:\n"
               : "+&r"(before), "=&r"(after), "=&r"(refused), "+Q"(*at)
               : "r"(add)
               : "memory");
  return before;
#endif
}
inline uint64_t guarded_compare_swap(uint64_t* at, uint64_t compare, uint64_t swap) {
#if !ROCI_GUARDS_MEMORY
  std::atomic_ref<uint64_t>(*at).compare_exchange_strong(compare, swap);
  return compare;
#elif defined(__x86_64__)
  check_poison(at, sizeof *at);
  asm inline volatile(ROCI_GUARDED("lock cmpxchgq %2, %1")
                      : "+a"(compare), "+m"(*at)
                      : "r"(swap)
                      : "memory", "cc");
  return compare;
#else
  check_poison(at, sizeof *at);
  uint64_t before = 0;
  uint32_t refused = 0;
  asm volatile("770: " ROCI_GUARDED_TO("ldaxr %0, %2", "773f")  //
               "cmp %0, %3\nb.ne 773f\n"                        //
               ROCI_GUARDED_TO("stlxr %w1, %4, %2", "773f")     //
               "cbnz %w1, 770b\n773:\n"
               : "+&r"(before), "=&r"(refused), "+Q"(*at)
               : "r"(compare), "r"(swap)
               : "memory", "cc");
  return before;
#endif
}

}  // namespace roci

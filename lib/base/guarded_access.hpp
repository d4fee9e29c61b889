// Accesses to memory that may not be there: the application's, which may have been unmapped, protected or cut off with its
// file since it was registered.
//
// An access is one instruction whose address stands in a table together with where to go on, as in a kernel that reads a
// user's memory. Nothing is armed before it and nothing undone behind it: it costs what a plain access costs. When it
// faults, the handler of memory/memory_guard.hpp finds the instruction in the table, notes the fault for the thread and goes
// on behind it, so a copy runs to its end, with anything in place of what could not be read; whoever made it asks then
// with take_memory_fault() whether it is worth something. No stack is unwound, no destructor left out. Without the handler,
// and for every other instruction of the program, a fault is what it always was.
//
// Under ThreadSanitizer, which must see accesses, they are plain ones and nothing is guarded.
#pragma once

#include <immintrin.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

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

// Of one thread. The handler writes `pending`, which in a shared library may ask the loader for the thread's memory; that it
// does not have to allocate any, which no handler may, is seen to before the thread's first access (Host::drive). A model of
// thread-local memory that asks nobody would keep programs from loading us later than at their start (dlopen), as UCX does.
struct MemoryFaults {
  volatile bool pending = false;  // an access since the last look
  uint32_t uncounted = 0;         // copies that were refused for it, until a worker counts them
};
extern constinit thread_local MemoryFaults memory_faults;

// Whether an access of this thread has faulted since the last question.
inline bool drop_memory_fault() {
  asm volatile("" ::: "memory");  // the accesses come first
  if (!memory_faults.pending) [[likely]]
    return false;
  memory_faults.pending = false;
  return true;
}
// The same, of a copy that is refused then.
inline bool take_memory_fault() {
  if (!drop_memory_fault()) [[likely]]
    return false;
  ++memory_faults.uncounted;
  return true;
}

// Where to go on when the instruction at `pc` faults; 0 when it is not guarded.
uintptr_t behind_guarded_access(uintptr_t pc);

#if ROCI_CHECKS_POISON
// AddressSanitizer does not see inside assembly, so it is asked.
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

// `value`, of as many bytes as its type has, from and to memory; `instruction` and `kind` of register fit it.
#if ROCI_GUARDS_MEMORY
#define ROCI_GUARDED_LOAD(instruction, kind, value, from) \
  check_poison(from, sizeof(value));                      \
  asm inline volatile(ROCI_GUARDED(instruction " %1, %0") \
                      : "=" kind(value)                   \
                      : "m"(*reinterpret_cast<const ByteRun<sizeof(value)>*>(from)))
#define ROCI_GUARDED_STORE(instruction, kind, value, to)                     \
  check_poison(to, sizeof(value));                                           \
  asm inline volatile(ROCI_GUARDED(instruction " %1, %0")                    \
                      : "=m"(*reinterpret_cast<ByteRun<sizeof(value)>*>(to)) \
                      : kind(value))
// The same, as the end of a function that returns whether there was no fault.
#define ROCI_RETURN_GUARDED_STORE(instruction, kind, value, to)               \
  check_poison(to, sizeof(value));                                            \
  asm goto(ROCI_GUARDED_TO(instruction " %0, %1", "%l[faulted]")              \
           :                                                                  \
           : kind(value), "m"(*reinterpret_cast<ByteRun<sizeof(value)>*>(to)) \
           : "memory"                                                         \
           : faulted);                                                        \
  return true;                                                                \
  faulted:                                                                    \
  return false
#else
#define ROCI_GUARDED_LOAD(instruction, kind, value, from) std::memcpy(&(value), from, sizeof(value))
#define ROCI_GUARDED_STORE(instruction, kind, value, to) std::memcpy(to, &(value), sizeof(value))
#define ROCI_RETURN_GUARDED_STORE(instruction, kind, value, to) \
  std::memcpy(to, &(value), sizeof(value));                     \
  return true
#endif

// Integers of up to 8 bytes and pieces of 16; larger registers need functions of their own, compiled for them.
[[gnu::always_inline]] inline void guarded_load(const uint8_t* from, uint8_t& value) {
  ROCI_GUARDED_LOAD("movb", "q", value, from);
}
[[gnu::always_inline]] inline void guarded_load(const uint8_t* from, uint16_t& value) {
  ROCI_GUARDED_LOAD("movw", "r", value, from);
}
[[gnu::always_inline]] inline void guarded_load(const uint8_t* from, uint32_t& value) {
  ROCI_GUARDED_LOAD("movl", "r", value, from);
}
[[gnu::always_inline]] inline void guarded_load(const uint8_t* from, uint64_t& value) {
  ROCI_GUARDED_LOAD("movq", "r", value, from);
}
[[gnu::always_inline]] inline void guarded_load(const uint8_t* from, __m128i& value) {
  ROCI_GUARDED_LOAD("movdqu", "x", value, from);
}
[[gnu::always_inline]] inline void guarded_store(uint8_t* to, uint8_t value) {
  ROCI_GUARDED_STORE("movb", "q", value, to);
}
[[gnu::always_inline]] inline void guarded_store(uint8_t* to, uint16_t value) {
  ROCI_GUARDED_STORE("movw", "r", value, to);
}
[[gnu::always_inline]] inline void guarded_store(uint8_t* to, uint32_t value) {
  ROCI_GUARDED_STORE("movl", "r", value, to);
}
[[gnu::always_inline]] inline void guarded_store(uint8_t* to, uint64_t value) {
  ROCI_GUARDED_STORE("movq", "r", value, to);
}
[[gnu::always_inline]] inline void guarded_store(uint8_t* to, __m128i value) {
  ROCI_GUARDED_STORE("movdqu", "x", value, to);
}
// For loops: after the first fault the rest need not be tried, a signal each.
[[gnu::always_inline]] inline bool guarded_store_went(uint8_t* to, __m128i value) {
  ROCI_RETURN_GUARDED_STORE("movdqu", "x", value, to);
}

// To a place of their own size and alignment, visible after everything that was stored before.
[[gnu::always_inline]] inline void guarded_store_release(uint8_t* to, uint64_t value) {
#if ROCI_GUARDS_MEMORY
  asm volatile("" ::: "memory");  // the processor keeps stores in order
  guarded_store(to, value);
#else
  std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(to)).store(value, std::memory_order_release);
#endif
}
[[gnu::always_inline]] inline void guarded_store_release(uint8_t* to, uint8_t value) {
#if ROCI_GUARDS_MEMORY
  asm volatile("" ::: "memory");
  guarded_store(to, value);
#else
  std::atomic_ref<uint8_t>(*to).store(value, std::memory_order_release);
#endif
}

// Atomic to everybody; both return what was there before.
inline uint64_t guarded_fetch_add(uint64_t* at, uint64_t add) {
#if ROCI_GUARDS_MEMORY
  check_poison(at, sizeof *at);
  asm inline volatile(ROCI_GUARDED("lock xaddq %0, %1") : "+r"(add), "+m"(*at) : : "memory", "cc");
  return add;
#else
  return std::atomic_ref<uint64_t>(*at).fetch_add(add);
#endif
}
inline uint64_t guarded_compare_swap(uint64_t* at, uint64_t compare, uint64_t swap) {
#if ROCI_GUARDS_MEMORY
  check_poison(at, sizeof *at);
  asm inline volatile(ROCI_GUARDED("lock cmpxchgq %2, %1")
                      : "+a"(compare), "+m"(*at)
                      : "r"(swap)
                      : "memory", "cc");
  return compare;
#else
  std::atomic_ref<uint64_t>(*at).compare_exchange_strong(compare, swap);
  return compare;
#endif
}

}  // namespace roci

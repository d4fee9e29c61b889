// Entry of the memory table for one key index: a memory region, a null region or a memory window (IBTA 10.6.2, 10.6.7).
#pragma once

#include <atomic>
#include <cstdint>

#include "base/types.hpp"

namespace roci {

// Number of a protection domain. Queue pairs access only regions of their own domain.
using PdNumber = Strong<struct PdNumberTag, uint32_t>;

// Index of a key in the table: the upper 24 bits. The consumer may change the low 8 bits, so that an R_Key that was
// given to a peer becomes invalid when the window is bound again (IBTA 10.6.7.2.2).
constexpr uint32_t key_index(MemoryKey key) { return key.value() >> 8; }
// The index of the first key with the low 8 bits of the second one, which the program chooses for a window.
constexpr MemoryKey with_key_byte(MemoryKey key, MemoryKey other) {
  return MemoryKey{(key.value() & ~0xffU) | (other.value() & 0xffU)};
}

// Memory that a key gives access to.
struct MemoryArea {
  MemoryKey key{0};  // of a region: L_Key and R_Key; of a window: R_Key
  PdNumber pd{0};
  uint64_t start = 0;       // address of the first byte in work requests
  uint64_t length = 0;      // bytes
  uint8_t* host = nullptr;  // address of the first byte in this process
  int access = 0;           // ibv_access_flags
  // Windows of type 2: the queue pair that bound it; only this one may use it. 0: not bound.
  Qpn qp{0};
};

// kNull: a region without memory, for scatter lists only. Reads return zeros, writes are discarded.
enum class EntryKind : uint8_t { kRegion, kWindowType1, kWindowType2, kNull };

// Region or window. A region changes only while no worker reads it. A window is bound and unbound by work requests on
// one worker while others read it. A sequence number, odd during a change, makes readers retry.
class MemoryEntry {
 public:
  MemoryEntry(EntryKind of, const MemoryArea& area) : kind(of), pd(area.pd), region_(area) {
    if (of != EntryKind::kNull) write(area);  // read() of a null region returns key 0, so it has no R_Key
  }

  const EntryKind kind;
  PdNumber pd;  // changes only while no worker reads it
  [[nodiscard]] bool is_region() const { return kind == EntryKind::kRegion; }
  [[nodiscard]] bool is_window() const { return !is_region() && kind != EntryKind::kNull; }

  // For regions, and for the key and the domain of null regions.
  [[nodiscard]] const MemoryArea& region() const { return region_; }
  void change_region(const MemoryArea& area) {
    region_ = area;
    pd = area.pd;
  }

  // For windows. One writer at a time. Each stored member is atomic: stores release and loads acquire, so a reader that
  // sees a member of a new binding also sees the odd sequence number.
  [[nodiscard]] MemoryArea read() const {
    for (;;) {
      const uint32_t before = sequence_.load(std::memory_order_acquire);
      MemoryArea area;
      area.key = MemoryKey{key_.load(std::memory_order_acquire)};
      area.pd = pd;
      area.start = start_.load(std::memory_order_acquire);
      area.length = length_.load(std::memory_order_acquire);
      area.host = host_.load(std::memory_order_acquire);
      area.access = access_.load(std::memory_order_acquire);
      area.qp = Qpn{qp_.load(std::memory_order_acquire)};
      if ((before & 1) == 0 && sequence_.load(std::memory_order_relaxed) == before) return area;
    }
  }
  void write(const MemoryArea& area) {
    const uint32_t before = sequence_.load(std::memory_order_relaxed);
    sequence_.store(before + 1, std::memory_order_relaxed);
    key_.store(area.key.value(), std::memory_order_release);
    start_.store(area.start, std::memory_order_release);
    length_.store(area.length, std::memory_order_release);
    host_.store(area.host, std::memory_order_release);
    access_.store(area.access, std::memory_order_release);
    qp_.store(area.qp.value(), std::memory_order_release);
    sequence_.store(before + 2, std::memory_order_release);
  }

  // Protected by MemoryTable::windows_.
  MemoryEntry* bound_to = nullptr;  // region of a window
  uint32_t bound_windows = 0;       // of a region: number of windows bound to it

 private:
  MemoryArea region_;
  std::atomic<uint32_t> sequence_{0};
  std::atomic<uint32_t> key_{0};
  std::atomic<uint64_t> start_{0};
  std::atomic<uint64_t> length_{0};
  std::atomic<uint8_t*> host_{nullptr};
  std::atomic<int> access_{0};
  std::atomic<uint32_t> qp_{0};
};

}  // namespace roci

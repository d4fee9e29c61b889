// What stands behind one key index: a memory region or a memory window (IBTA 10.6.2, 10.6.7).
#pragma once

#include <atomic>
#include <cstdint>

#include "base/types.hpp"

namespace roci {

// A protection domain's number; regions and queue pairs of different domains do not meet.
using PdNumber = Strong<struct PdNumberTag, uint32_t>;

// The low 8 bits of a key are its consumer's to vary, so that a key given away stops working when the window is bound
// again (IBTA 10.6.7.2.2). The 24 bits above them say where it stands.
constexpr uint32_t key_index(MemoryKey key) { return key.value() >> 8; }

// Bytes that a key gives access to.
struct MemoryArea {
  MemoryKey key{0};  // of a region: L_Key and R_Key; of a window: R_Key alone
  PdNumber pd{0};
  uint64_t start = 0;   // address of the first byte as work requests name it
  uint64_t length = 0;  // bytes
  uint8_t* host = nullptr;
  int access = 0;  // ibv_access_flags
  Qpn qp{
      0};  // windows of type 2: the queue pair that bound it, which alone may use it; 0 when it is not bound
};

enum class EntryKind : uint8_t { kRegion, kWindowType1, kWindowType2 };

// A region changes only while no worker looks. A window is bound and unbound by work requests, on one worker, while the
// others go on looking; a sequence number that is odd during a change lets them see that they must look again.
class MemoryEntry {
 public:
  MemoryEntry(EntryKind of, const MemoryArea& area) : kind(of), pd(area.pd), region_(area) { write(area); }

  const EntryKind kind;
  PdNumber pd;  // changes only while no worker looks
  [[nodiscard]] bool is_window() const { return kind != EntryKind::kRegion; }

  // Regions.
  [[nodiscard]] const MemoryArea& region() const { return region_; }
  void change_region(const MemoryArea& area) {
    region_ = area;
    pd = area.pd;
  }

  // Windows. One writer at a time. Every part is an atomic of its own: stores release and loads acquire, so that a part
  // of a new binding cannot be seen without the odd number before it.
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

  // Under the lock of the table's windows.
  MemoryEntry* bound_to = nullptr;  // a window's region
  uint32_t bound_windows = 0;       // of a region

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

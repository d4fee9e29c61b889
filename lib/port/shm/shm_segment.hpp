// Shared memory of the processes of a network on one machine: a slot per process, and a ring of frames (shm_ring.hpp)
// per ordered pair of slots. It is one sealed memfd: it has no name in a file system, cannot change its size, and is
// freed when the last process closes it. Pages are allocated when first written, so unused rings use no memory.
//
// Every process of the network can write to the whole segment. Processes validate values that they read from it
// (shm_ring.hpp, shm_port.hpp). A faulty or hostile process can disturb the traffic of its network, but cannot crash
// other processes or access their memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "base/types.hpp"
#include "port/shm/shm_ring.hpp"
#include "port/wakeup.hpp"

namespace roci {

inline constexpr uint32_t kShmSlots = 33;  // 32 processes and a switch
inline constexpr uint32_t kShmSwitchSlot = 32;
inline constexpr uint32_t kShmRingBytes = 1 << 20;

// State of a slot, in shared memory.
struct ShmSlot {
  // Written by senders.
  alignas(64) WakeupWord wakeups[kWaiters];  // index: Waiter
  std::atomic<uint64_t> pending{0};  // bit per slot that has published frames since the owner's last poll
  std::atomic<int64_t> woken{0};     // time of the last wake-up by a sender (CLOCK_MONOTONIC)
  // Written by the owner at each poll, read by any process.
  alignas(64) std::atomic<int64_t> ran{0};  // engine time in ns: the owner's engine has run or had no work
  std::atomic<int64_t> polled{0};           // time of the last poll (CLOCK_MONOTONIC)
  std::atomic<uint32_t> asleep{0};          // number of the owner's threads that wait for a wake-up
  // Written by the owner when it joins and leaves.
  alignas(64) std::atomic<uint64_t> incarnation{0};  // odd, random per owner; 0: no owner
  std::atomic<uint32_t> pid{0};
  // Written by the owner when it revokes grants (shm_placement.hpp).
  std::atomic<uint32_t> grant_epoch{0};
};
static_assert(sizeof(ShmSlot) == 192);

// A memory region of a slot's process into which another slot's process may place WRITEs
// of one queue pair (shm_placement.hpp). In shared memory. Written by the slot's owner;
// valid while `epoch` and `incarnation` are those of the slot.
struct ShmGrant {
  alignas(64) std::atomic<uint32_t> version{0};  // odd while the entry is modified
  std::atomic<uint32_t> qp{0}, key{0}, epoch{0};
  std::atomic<uint64_t> start{0}, length{0}, host{0}, incarnation{0};
};
static_assert(sizeof(ShmGrant) == 64);

inline constexpr uint32_t kShmGrantsPerPair = 256;
struct ShmGrants {
  alignas(64) std::atomic<uint32_t> placing{0};  // written by the peer: odd while it copies
  ShmGrant entries[kShmGrantsPerPair];           // index: hash of queue pair and key
};

class ShmSegment {
 public:
  static Result<std::shared_ptr<ShmSegment>> create();
  // Opens the segment of a descriptor, "/proc/PID/fd/N". Fails if the descriptor is not such a segment.
  static Result<std::shared_ptr<ShmSegment>> open(const std::string& path);
  ~ShmSegment();
  ShmSegment(const ShmSegment&) = delete;
  ShmSegment& operator=(const ShmSegment&) = delete;

  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] ShmSlot& slot(uint32_t index) const { return layout_->slots[index]; }
  [[nodiscard]] ShmRingControl& control(uint32_t from, uint32_t to) const {
    return layout_->controls[from][to];
  }
  [[nodiscard]] ShmGrants& grants(uint32_t of, uint32_t to) const { return layout_->grants[of][to]; }
  [[nodiscard]] std::byte* ring(uint32_t from, uint32_t to) const {
    return layout_->rings + (size_t{from} * kShmSlots + to) * kShmRingBytes;
  }

 private:
  struct Layout {
    uint64_t magic;
    alignas(64) ShmSlot slots[kShmSlots];
    ShmRingControl controls[kShmSlots][kShmSlots];
    ShmGrants grants[kShmSlots][kShmSlots];
    alignas(4096) std::byte rings[size_t{kShmSlots} * kShmSlots * kShmRingBytes];
  };
  static constexpr uint64_t kMagic = 0x32306d68'69636f72;  // "rocihm02": the layout's version

  ShmSegment(int fd, Layout* layout) : fd_(fd), layout_(layout) {}
  static Result<std::shared_ptr<ShmSegment>> map(int fd);

  const int fd_;
  Layout* const layout_;
};

}  // namespace roci

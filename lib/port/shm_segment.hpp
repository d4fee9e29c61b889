// The memory that the processes of a network of one machine share: a slot for each process, and a ring of frames (shm_ring.hpp)
// for each ordered pair of slots. All of it is one sealed memfd: it has no name in a file system, can neither shrink nor grow,
// and ends with the last process that has it. Pages are allocated when they are first written, so a ring that was never used
// costs nothing.
//
// Every process of the network can write to all of it. Processes validate what they read from it (shm_ring.hpp, shm_port.hpp), so
// a faulty or hostile one can disturb the traffic of its network, and can neither crash the others nor read or write their memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "base/types.hpp"
#include "port/shm_ring.hpp"
#include "port/wakeup.hpp"

namespace roci {

inline constexpr uint32_t kShmSlots = 33;  // 32 processes and a switch
inline constexpr uint32_t kShmSwitchSlot = 32;
inline constexpr uint32_t kShmRingBytes = 1 << 20;

// In shared memory.
struct ShmSlot {
  // Senders write.
  alignas(64) WakeupWord wakeups[kWaiters];  // by Waiter
  std::atomic<uint64_t> pending{0};  // a bit for each slot that has published since the owner last looked
  std::atomic<int64_t> woken{0};     // when a sender last woke the owner (CLOCK_MONOTONIC)
  // The owner writes, each time it polls; anybody reads.
  alignas(64) std::atomic<int64_t> ran{
      0};                           // ns for which the owner's engine has run or had nothing to run for
  std::atomic<int64_t> polled{0};   // when it last polled (CLOCK_MONOTONIC)
  std::atomic<uint32_t> asleep{0};  // threads of it that wait for a wake
  // The owner writes, when it joins and leaves.
  alignas(64) std::atomic<uint64_t> incarnation{0};  // odd, random for each owner; 0: none
  std::atomic<uint32_t> pid{0};
  // The owner writes, when it withdraws what it has granted (shm_placement.hpp).
  std::atomic<uint32_t> grant_epoch{0};
};
static_assert(sizeof(ShmSlot) == 192);

// In shared memory: a region of one slot's process into which another one's may place WRITEs of one queue pair (shm_placement.hpp).
// The slot's owner writes; it is valid as long as `epoch` and `incarnation` are the slot's.
struct ShmGrant {
  alignas(64) std::atomic<uint32_t> version{0};  // odd during a change
  std::atomic<uint32_t> qp{0}, key{0}, epoch{0};
  std::atomic<uint64_t> start{0}, length{0}, host{0}, incarnation{0};
};
static_assert(sizeof(ShmGrant) == 64);

inline constexpr uint32_t kShmGrantsPerPair = 256;
struct ShmGrants {
  alignas(64) std::atomic<uint32_t> placing{0};  // the peer writes: odd while it copies
  ShmGrant entries[kShmGrantsPerPair];           // by hash
};

class ShmSegment {
 public:
  static Result<std::shared_ptr<ShmSegment>> create();
  // The one that a descriptor refers to: "/proc/PID/fd/N". Fails when it is no such memory.
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

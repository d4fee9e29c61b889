// The switch of a network of one machine, at its slot in shared memory (shm_segment.hpp): a port per process of the
// network (shm_port.hpp, `via_switch`). One thread polls all ports, and waits for frames of all ports with wakeup().
#pragma once

#include <array>
#include <memory>
#include <string>

#include "port/port.hpp"
#include "port/shm/shm_link.hpp"
#include "port/shm/shm_slot_owner.hpp"

namespace roci {

class ShmSwitch {
 public:
  struct PortConfig {
    std::string name;
    uint32_t slot = 0;  // of the process; below kShmSwitchSlot
    uint16_t mtu = 4400;
    std::shared_ptr<MbufPool> pool{};  // allocates the buffers of received frames
  };

  // The caller must hold the lock of the switch's slot.
  explicit ShmSwitch(std::shared_ptr<ShmSegment> segment);
  // Opens the port of a slot, one per slot, before join(). The switch must outlive its ports.
  Result<std::unique_ptr<Port>> open_port(PortConfig config);
  // Publishes the switch's slot, so that processes send to it.
  void join() { owner_.join(); }

  [[nodiscard]] PortWakeup& wakeup() { return owner_.wakeup(); }
  // Incarnation of the slot's owner according to shared memory; a killed process
  // still counts until note_exit(). 0: no owner. Any thread.
  [[nodiscard]] uint64_t incarnation_of(uint32_t slot) const { return owner_.incarnation_of(slot); }
  [[nodiscard]] bool is_taken(uint32_t slot) const { return owner_.is_taken(slot); }
  // Marks the slot of an exited process as free, unless it already has its
  // next owner. Frames for a free slot are dropped. Any thread.
  void note_exit(uint32_t slot, uint64_t incarnation) { owner_.release(slot, incarnation); }

 private:
  class MemberPort;
  void note_poll(Nanos now) {
    if (now == owner_.last_poll() && !owner_.has_pending()) return;
    owner_.note_poll(now);
    const uint64_t pending = owner_.take_pending();
    if (pending != 0)
      ready_.store(ready_.load(std::memory_order_relaxed) | pending, std::memory_order_relaxed);
  }

  ShmSlotOwner owner_;
  uint64_t opened_ = 0;             // slots with a port
  std::atomic<uint64_t> ready_{0};  // slots whose rings may have frames; the polling thread writes
};

}  // namespace roci

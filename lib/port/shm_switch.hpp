// The switch of a network of one machine, at its slot in shared memory (shm_segment.hpp): a port for each process of the network
// (shm_port.hpp, `via_switch`). One thread polls all ports, and waits for frames of all of them by wakeup().
#pragma once

#include <array>
#include <memory>
#include <string>

#include "port/port.hpp"
#include "port/shm_link.hpp"
#include "port/shm_slot_owner.hpp"

namespace roci {

class ShmSwitch {
 public:
  struct PortConfig {
    std::string name;
    uint32_t slot = 0;  // of the process; below kShmSwitchSlot
    uint16_t mtu = 4400;
    std::shared_ptr<MbufPool> pool{};  // received frames come from it
  };

  // The caller holds the lock of the switch's slot.
  explicit ShmSwitch(std::shared_ptr<ShmSegment> segment);
  // All ports before join(), one for each slot. The switch outlives them.
  Result<std::unique_ptr<Port>> open_port(PortConfig config);
  // Publishes the switch's slot, so that processes send to it.
  void join() { owner_.join(); }

  [[nodiscard]] PortWakeup& wakeup() { return owner_.wakeup(); }
  // Of the slot's owner, according to the slot itself: a process that was killed still counts. 0: none. Any thread.
  [[nodiscard]] uint64_t incarnation_of(uint32_t slot) const { return owner_.incarnation_of(slot); }
  [[nodiscard]] bool is_taken(uint32_t slot) const { return owner_.is_taken(slot); }
  // Marks the slot as free after its process was killed, unless it has its next owner already; frames for it are dropped. Any
  // thread.
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
  uint64_t opened_ = 0;             // slots that have a port
  std::atomic<uint64_t> ready_{0};  // slots whose rings may have frames; the polling thread writes
};

}  // namespace roci

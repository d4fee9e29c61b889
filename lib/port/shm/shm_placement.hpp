// Placement by the sender (placement.hpp) with process_vm_writev(2) and grants in shared memory (shm_segment.hpp).
//
// The kernel permits it between processes of one user, unless a security module restricts ptrace(2) (Yama with
// ptrace_scope 1 or higher). WRITEs are then sent as packets.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>

#include "port/placement.hpp"
#include "port/shm/shm_segment.hpp"

namespace roci {

class ShmPlacement final : public Placement {
 public:
  using SlotOf = std::function<std::optional<uint32_t>(const MacAddress&)>;
  ShmPlacement(std::shared_ptr<ShmSegment> segment, uint32_t slot, SlotOf slot_of);

  void grant(const MacAddress& peer, const Target& target, const Area& area) override;
  void revoke() override;
  bool place(const MacAddress& peer, const Target& target, uint64_t va, std::span<const iovec> pieces,
             uint64_t length) override;

 private:
  [[nodiscard]] uint32_t epoch() const;

  const std::shared_ptr<ShmSegment> segment_;
  const uint32_t slot_;
  const SlotOf slot_of_;
  bool granted_ = false;  // since the last revoke()
  // Incarnations of owners to whose memory the kernel denies write access.
  std::array<uint64_t, kShmSlots> forbidden_{};
  // A copy of a peer: ShmGrants::placing and its incarnation.
  struct Copy {
    uint32_t placing = 0;
    uint64_t incarnation = 0;
    bool operator==(const Copy&) const = default;
  };
  std::array<Copy, kShmSlots>
      given_up_{};  // copies that revoke() no longer waits for: the peer is stopped or dead
};

}  // namespace roci

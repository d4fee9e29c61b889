// Discovery of the shared memory of a network (shm_segment.hpp). The network's folder has a lock file per slot. The
// slot's owner keeps the file locked (base/os/file_lock.hpp), and the file contains the number of the owner's
// descriptor of the memory. Other processes open the descriptor through /proc.
#pragma once

#include <filesystem>
#include <memory>

#include "base/os/file_lock.hpp"
#include "base/result.hpp"
#include "port/shm/shm_segment.hpp"

namespace roci {

// Files of the network's folder. A process holds join.lock (SharedLock) while it takes a slot and joins.
inline constexpr const char* kShmJoinLock = "join.lock";
inline constexpr const char* kShmSlotFolder = "slots";  // folder of the slots' files

std::filesystem::path shm_slot_file(const std::filesystem::path& folder, uint32_t slot);

// The segment, opened through the owner of any other slot; null if no other slot has an owner.
Result<std::shared_ptr<ShmSegment>> find_segment(const std::filesystem::path& folder, uint32_t own_slot);

// Writes this process's descriptor of the segment into the slot's file, which `lock` has locked.
Status announce_segment(const std::filesystem::path& folder, const ProcessLock& lock,
                        const std::shared_ptr<ShmSegment>& segment);

// The switch's slot. Processes keep their slots when a switch exits; the next switch joins their memory.
struct ShmSwitchSlot {
  ProcessLock lock;
  std::shared_ptr<ShmSegment> segment;
};
Result<ShmSwitchSlot> take_switch_slot(const std::filesystem::path& folder);

}  // namespace roci

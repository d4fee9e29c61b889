// Lets the processes of a network find the memory that they share (shm_segment.hpp). The network's folder has a lock file for each
// slot. Its owner keeps the file locked (base/file_lock.hpp), and the file holds the number of the owner's descriptor of the
// memory; other processes open it through /proc.
#pragma once

#include <filesystem>
#include <memory>

#include "base/file_lock.hpp"
#include "base/result.hpp"
#include "port/shm_segment.hpp"

namespace roci {

// In the network's folder. A process holds join.lock (SharedLock) while it takes a slot and joins.
inline constexpr const char* kShmJoinLock = "join.lock";
inline constexpr const char* kShmSlotFolder = "places";  // of the slots' files

std::filesystem::path shm_slot_file(const std::filesystem::path& folder, uint32_t slot);

// The memory, from the owner of any other slot; null when no other slot has an owner.
Result<std::shared_ptr<ShmSegment>> find_segment(const std::filesystem::path& folder, uint32_t own_slot);

// Writes this process's descriptor of the memory into the slot's file, which `lock` locks.
Status announce_segment(const std::filesystem::path& folder, const ProcessLock& lock,
                        const std::shared_ptr<ShmSegment>& segment);

// The switch's slot. Processes keep their slots when a switch ends; the next one joins their memory.
struct ShmSwitchSlot {
  ProcessLock lock;
  std::shared_ptr<ShmSegment> segment;
};
Result<ShmSwitchSlot> take_switch_slot(const std::filesystem::path& folder);

}  // namespace roci

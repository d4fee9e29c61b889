// How the processes of a network find the memory that they share (shm_segment.hpp). The network's folder has a lock file for each
// slot. The process that has the slot keeps the file locked (base/file_lock.hpp), and the file has the number of its descriptor of
// the memory; others open it through /proc.
#pragma once

#include <filesystem>
#include <memory>

#include "base/file_lock.hpp"
#include "base/result.hpp"
#include "port/shm_segment.hpp"

namespace roci {

// In the network's folder. One process at a time takes a slot and joins, and holds the first of them meanwhile (SharedLock).
inline constexpr const char* kShmJoinLock = "join.lock";
inline constexpr const char* kShmSlotFolder = "places";  // of the slots' files

std::filesystem::path shm_slot_file(const std::filesystem::path& folder, uint32_t slot);

// The memory of the process that has any other slot; null when no other process has one.
Result<std::shared_ptr<ShmSegment>> find_segment(const std::filesystem::path& folder, uint32_t own_slot);

// Writes into the slot's file, which `lock` is of, that this process has the memory.
Status announce_segment(const std::filesystem::path& folder, const ProcessLock& lock,
                        const std::shared_ptr<ShmSegment>& segment);

// What the network's switch has while it runs. It joins processes that are there already: those of a switch that has ended.
struct ShmSwitchSlot {
  ProcessLock lock;
  std::shared_ptr<ShmSegment> segment;
};
Result<ShmSwitchSlot> take_switch_slot(const std::filesystem::path& folder);

}  // namespace roci

#include "port/shm/shm_join.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

#include "port/realtime_runner.hpp"

namespace roci {
namespace {

constexpr Nanos kJoinTimeout = 30s;
// Maximum time between the closing of a killed process's descriptors and the release of its locks by the kernel.
constexpr Nanos kExitTimeout = 5s;
constexpr std::chrono::milliseconds kExitCheck{1};

// The segments of this process by network folder. A process may own several slots, for example in tests.
struct OwnSegments {
  std::mutex mutex;
  std::map<std::filesystem::path, std::weak_ptr<ShmSegment>> by_folder;
};
OwnSegments& own_segments() {
  static OwnSegments segments;
  return segments;
}

std::shared_ptr<ShmSegment> own_segment(const std::filesystem::path& folder) {
  const std::scoped_lock guard(own_segments().mutex);
  return own_segments().by_folder[folder].lock();
}

// The segment of the slot's owner; null if the slot has no owner.
// ENOENT: the owner is exiting, or has closed the descriptor.
Result<std::shared_ptr<ShmSegment>> segment_of_owner(const std::filesystem::path& file) {
  const auto holder = ProcessLock::holder(file);
  if (!holder) return fail(holder.error());
  if (*holder == 0 || *holder == getpid()) return nullptr;
  int fd = -1;
  if (!(std::ifstream{file} >> fd))
    return fail("'" + file.string() + "' does not specify the shared memory; process " +
                    std::to_string(*holder) + " holds the lock",
                ENOENT);
  return ShmSegment::open("/proc/" + std::to_string(*holder) + "/fd/" + std::to_string(fd));
}

}  // namespace

std::filesystem::path shm_slot_file(const std::filesystem::path& folder, uint32_t slot) {
  return folder / kShmSlotFolder / std::to_string(slot);
}

Result<std::shared_ptr<ShmSegment>> find_segment(const std::filesystem::path& folder, uint32_t own_slot) {
  Result<std::shared_ptr<ShmSegment>> found = own_segment(folder);
  if (*found != nullptr) return found;
  for (uint32_t slot = 0; slot < kShmSlots; ++slot) {
    if (slot == own_slot) continue;
    const auto file = shm_slot_file(folder, slot);
    found = segment_of_owner(file);
    for (const Nanos end = monotonic_now() + kExitTimeout;
         !found && found.error().code == ENOENT && monotonic_now() < end; found = segment_of_owner(file))
      std::this_thread::sleep_for(kExitCheck);
    if (!found || *found != nullptr) return found;
  }
  return found;
}

Status announce_segment(const std::filesystem::path& folder, const ProcessLock& lock,
                        const std::shared_ptr<ShmSegment>& segment) {
  {
    const std::scoped_lock guard(own_segments().mutex);
    own_segments().by_folder[folder] = segment;
  }
  const std::string text = std::to_string(segment->fd()) + "\n";
  if (ftruncate(lock.fd(), 0) != 0 ||
      pwrite(lock.fd(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
    return fail("a file in '" + folder.string() + "' cannot be written: " + std::strerror(errno), errno);
  return {};
}

Result<ShmSwitchSlot> take_switch_slot(const std::filesystem::path& folder) {
  const auto joining = SharedLock::wait(folder / kShmJoinLock, kJoinTimeout);
  if (!joining) return fail(joining.error());
  auto lock = ProcessLock::take(shm_slot_file(folder, kShmSwitchSlot));
  if (!lock) return fail(lock.error());
  if (!*lock) return fail("'" + folder.string() + "' already has a switch", EBUSY);
  auto segment = find_segment(folder, kShmSwitchSlot);
  if (segment && *segment == nullptr) segment = ShmSegment::create();
  if (!segment) return fail(segment.error());
  ROCI_TRY(announce_segment(folder, **lock, *segment));
  return ShmSwitchSlot{std::move(**lock), std::move(*segment)};
}

}  // namespace roci

#include "port/shm_join.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>

namespace roci {
namespace {

constexpr Nanos kJoinTimeout = 30s;

// Segments of this process by the network's folder: a process may own several slots, as tests do.
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
    const auto holder = ProcessLock::holder(file);
    if (!holder) return fail(holder.error());
    if (*holder == 0 || *holder == getpid()) continue;
    int fd = -1;
    if (std::ifstream{file} >> fd) {
      found = ShmSegment::open("/proc/" + std::to_string(*holder) + "/fd/" + std::to_string(fd));
    } else {
      found = fail("slot " + std::to_string(slot) + " names no shared memory", EPROTO);
    }
    if (found && *found != nullptr) return found;
    if (const auto still = ProcessLock::holder(file); still && *still != *holder)
      found = nullptr;  // exited meanwhile
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
    return fail("a file of '" + folder.string() + "' cannot be written: " + std::strerror(errno), errno);
  return {};
}

Result<ShmSwitchSlot> take_switch_slot(const std::filesystem::path& folder) {
  const auto joining = SharedLock::wait(folder / kShmJoinLock, kJoinTimeout);
  if (!joining) return fail(joining.error());
  auto lock = ProcessLock::take(shm_slot_file(folder, kShmSwitchSlot));
  if (!lock) return fail(lock.error());
  if (!*lock) return fail("'" + folder.string() + "' has a switch already", EBUSY);
  auto segment = find_segment(folder, kShmSwitchSlot);
  if (segment && *segment == nullptr) segment = ShmSegment::create();
  if (!segment) return fail(segment.error());
  ROCI_TRY(announce_segment(folder, **lock, *segment));
  return ShmSwitchSlot{std::move(**lock), std::move(*segment)};
}

}  // namespace roci

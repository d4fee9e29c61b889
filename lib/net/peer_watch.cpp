#include "net/peer_watch.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/log.hpp"
#include "base/os/event_descriptor.hpp"
#include "base/os/file_lock.hpp"
#include "base/os/thread_start.hpp"
#include "net/net_switch.hpp"
#include "net/runtime_folder.hpp"
#include "port/crash_notice.hpp"
#include "port/realtime_runner.hpp"
#include "port/shm/shm_join.hpp"

namespace roci {
namespace {

// Time within which the peers of an earlier owner of the slot read its crash notifications.
constexpr int kStaleMilliseconds = 5000;
// Interval of the attempts to watch a process that could not be watched.
constexpr int kRetryMilliseconds = 1000;

int open_pidfd(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

}  // namespace

Result<std::unique_ptr<PeerWatch>> PeerWatch::start(ShmPort& port, std::filesystem::path folder,
                                                    std::vector<std::filesystem::path> stale_files) {
  const int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (event < 0) return fail(std::string{"peer watch: eventfd: "} + std::strerror(errno), errno);
  std::unique_ptr<PeerWatch> watch(new PeerWatch(port, std::move(folder), std::move(stale_files), event));
  ROCI_TRY(start_thread(watch->thread_, "peer watch: the thread", [&watch = *watch] { watch.run(); }));
  return watch;
}

PeerWatch::~PeerWatch() {
  stop_.store(true);
  if (thread_.joinable()) {
    eventfd_write(event_, 1);
    thread_.join();
  }
  for (const Peer& peer : peers_) close(peer.pidfd);
  close(event_);
}

void PeerWatch::on_contact(uint32_t slot, const ShmPort::Owner& owner) {
  {
    const std::scoped_lock guard(contacts_mutex_);
    contacts_.emplace_back(slot, owner);
  }
  add_to_eventfd(event_);
}

void PeerWatch::run() {
  pthread_setname_np(pthread_self(), "roci-peers");
  const Nanos remove_at = monotonic_now() + std::chrono::milliseconds{kStaleMilliseconds};
  std::vector<pollfd> waited;
  while (!stop_.load()) {
    waited.assign(1, {.fd = event_, .events = POLLIN, .revents = 0});
    for (const Peer& peer : peers_) waited.push_back({.fd = peer.pidfd, .events = POLLIN, .revents = 0});
    int limit = stale_files_.empty() ? -1 : kStaleMilliseconds;
    if (!unwatched_.empty()) limit = kRetryMilliseconds;
    const int ready = poll(waited.data(), waited.size(), limit);
    if (!stale_files_.empty() && monotonic_now() >= remove_at) remove_stale_files();
    for (size_t i = peers_.size(); i-- > 0;) {
      if (waited[i + 1].revents == 0) continue;
      report(peers_[i].slot, peers_[i].owner);
      close(peers_[i].pidfd);
      peers_.erase(peers_.begin() + static_cast<ptrdiff_t>(i));
    }
    if (ready == 0)
      std::erase_if(unwatched_,
                    [this](const auto& contact) { return watch(contact.first, contact.second).has_value(); });
    if (waited[0].revents != 0) watch_contacts();
  }
}

void PeerWatch::watch_contacts() {
  eventfd_t ignored = 0;
  eventfd_read(event_, &ignored);
  decltype(contacts_) contacts;
  {
    const std::scoped_lock guard(contacts_mutex_);
    contacts.swap(contacts_);
  }
  for (const auto& [slot, owner] : contacts) {
    const Status watched = watch(slot, owner);
    if (watched) continue;
    unwatched_.emplace_back(slot, owner);
    log().warn(
        "process {} of slot {} cannot be monitored: {}; until it can, its exit will be detected by time-outs",
        owner.pid, slot, watched.error().message);
  }
}

// The process id is from the slot in shared memory, so it is compared with the kernel's holder of the slot's lock.
Status PeerWatch::watch(uint32_t slot, const ShmPort::Owner& owner) {
  // The owner has exited, and another process has freed the slot.
  if (port_.owner_of(slot).incarnation != owner.incarnation) {
    report(slot, owner);
    return {};
  }
  for (const Peer& peer : peers_) {
    if (peer.slot == slot && peer.owner.incarnation == owner.incarnation) return {};
  }
  const int pidfd = open_pidfd(owner.pid);
  const int code = errno;
  const auto holder = ProcessLock::holder(shm_slot_file(folder_, slot));
  const bool is_holder = holder && *holder == owner.pid;
  if (pidfd >= 0 && is_holder) {
    peers_.push_back({slot, owner, pidfd});
    return {};
  }
  if (pidfd >= 0) close(pidfd);
  if (!holder) return fail(holder.error());
  if (is_holder) return fail(std::string{"pidfd_open: "} + std::strerror(code), code);
  report(slot, owner);
  return {};
}

void PeerWatch::report(uint32_t slot, const ShmPort::Owner& owner) {
  std::vector<std::vector<uint8_t>> frames;
  const auto file = folder_ / kNetCrashNotices / (slot_name(slot) + "." + std::to_string(owner.pid));
  if (auto left = CrashNoticeReader::read(file)) {
    const MacAddress own = port_.mac();
    for (auto frame = left->next(); !frame.empty(); frame = left->next()) {
      if (reinterpret_cast<const EthernetHeader*>(frame.data())->destination == own)
        frames.emplace_back(frame.begin(), frame.end());
    }
  }
  port_.note_exit(slot, owner.incarnation, std::move(frames));
}

void PeerWatch::remove_stale_files() {
  for (const auto& file : stale_files_) {
    std::error_code ignored;
    std::filesystem::remove(file, ignored);
  }
  stale_files_.clear();
}

}  // namespace roci

// Data transfer of streams, and waiting for it.
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "rdmacm/sockets/options.hpp"
#include "rdmacm/sockets/stream.hpp"

namespace roci::rdmacm::sockets {
namespace {

// A connection without completions for this time is probed while a thread waits for it. An exited peer might not be
// detected otherwise.
constexpr std::chrono::seconds kSilence{1};
constexpr int kKnownFlags =
    MSG_DONTWAIT | MSG_NOSIGNAL | MSG_WAITALL | MSG_PEEK | MSG_MORE | MSG_CMSG_CLOEXEC;

}  // namespace

void Stream::progress() {
  if (stage_ == Stage::kListening || opening()) take_connection_events();
  if (stage_ == Stage::kListening) answer_requests();
  if (link_ == nullptr || (stage_ != Stage::kOpen && stage_ != Stage::kAccepting)) return;
  const bool any = link_->progress();
  const auto time = Clock::now();
  if (any) last_completion_ = time;
  if (any && stage_ == Stage::kAccepting) {
    // The peer sends, so it has received the reply, even if its RTU was lost.
    stage_ = Stage::kOpen;
    if (rdma_notify(id_, IBV_EVENT_COMM_EST) != 0 && errno != EISCONN) link_->fail(errno);
    link_->open();
    link_->progress();
  }
  if (time - last_completion_ < kSilence) return;
  last_completion_ = time;
  take_connection_events();
  link_->probe();
}

void Stream::arm() {
  do {
    progress();
  } while (link_ != nullptr && link_->arm());
}

bool Stream::take_events() {
  const bool completions = link_ != nullptr && link_->take_events();
  return take_connection_events() || completions;
}

Clock::time_point Stream::wake_time() const {
  return stage_ == Stage::kOpen && !link_->is_disconnected() ? last_completion_ + kSilence
                                                             : Clock::time_point::max();
}

// EAGAIN after `until`.
int Stream::wait_until_open(Lock& lock, bool may_sleep, Clock::time_point until) {
  if (wait(lock, may_sleep, until, [&] { return !opening(); }) != 0) return -1;
  if (closed_) return failed(EBADF);
  if (stage_ == Stage::kOpen) return 0;
  return failed(stage_ == Stage::kFailed && pending_error_ != 0 ? pending_error_ : ENOTCONN);
}

bool Stream::may_not_send() const { return closed_ || !link_->sends(); }

// Data transferred before an error is reported first.
ssize_t Stream::moved_or(size_t moved) const { return moved > 0 ? static_cast<ssize_t>(moved) : -1; }

ssize_t Stream::send(std::span<const iovec> from, int flags, const sockaddr* to, socklen_t) {
  if ((flags & ~kKnownFlags) != 0) return failed(EOPNOTSUPP);
  if (to != nullptr) return failed(EISCONN);
  const std::scoped_lock turn(sender_);
  Lock lock(mutex_);
  const auto until = deadline(options_.send_timeout);
  if (wait_until_open(lock, waits(flags), until) != 0) return -1;
  const size_t whole = bytes_in(from);
  Cursor cursor(from);
  size_t sent = 0;
  while (sent < whole) {
    if (wait(lock, waits(flags), until, [&] { return link_->send_space() > 0 || may_not_send(); }) != 0)
      return moved_or(sent);
    if (may_not_send()) {
      errno = link_->error() != 0 ? link_->error() : link_->is_disconnected() ? ECONNRESET : EPIPE;
      return moved_or(sent);
    }
    const auto some = static_cast<uint32_t>(std::min<size_t>(whole - sent, link_->send_space()));
    const Pieces pieces = link_->outgoing(some);
    Cursor after = cursor;
    lock.unlock();
    for (const std::span<uint8_t> piece : pieces) after.copy_out(piece);
    lock.lock();
    if (may_not_send() || link_->send_space() < some) continue;  // a mapping used the last credit
    cursor = after;
    if (!link_->write(some)) return moved_or(sent);
    sent += some;
  }
  return static_cast<ssize_t>(sent);
}

ssize_t Stream::receive(std::span<const iovec> to, int flags, sockaddr* from, socklen_t* length) {
  if ((flags & ~kKnownFlags) != 0) return failed(EOPNOTSUPP);
  const std::scoped_lock turn(receiver_);
  Lock lock(mutex_);
  const auto until = deadline(options_.receive_timeout);
  if (wait_until_open(lock, waits(flags), until) != 0) return -1;
  if (from != nullptr && length != nullptr) give_address(id_->route.addr.dst_addr, from, length);
  const bool peek = (flags & MSG_PEEK) != 0;
  const size_t whole = bytes_in(to);
  Cursor cursor(to);
  size_t received = 0;
  while (received < whole) {
    const auto ready = [&] { return link_->readable() || !link_->receives(); };
    if (wait(lock, waits(flags), until, ready) != 0) return moved_or(received);
    const size_t some = std::min(whole - received, link_->unread());
    if (some == 0) {
      if (received > 0 || closed_ || link_->ended() || link_->error() == 0) break;
      return failed(link_->error());
    }
    const Pieces pieces = link_->incoming(0, some);
    lock.unlock();
    for (const std::span<uint8_t> piece : pieces) cursor.copy_in(piece);
    lock.lock();
    received += some;
    if (peek) break;
    link_->consume(some);
    if ((flags & MSG_WAITALL) == 0) break;
  }
  return static_cast<ssize_t>(received);
}

ssize_t Stream::write_mapped(const void* from, size_t length, off_t offset, int flags) {
  const std::scoped_lock turn(sender_);
  Lock lock(mutex_);
  const auto until = deadline(options_.send_timeout);
  if (wait_until_open(lock, waits(flags), until) != 0) return -1;
  const iovec all{const_cast<void*>(from),
                  length};  // NOLINT(cppcoreguidelines-pro-type-const-cast): only read
  Cursor cursor(std::span(&all, 1));
  auto at = static_cast<uint64_t>(offset);
  size_t written = 0;
  while (written < length) {
    const auto ready = [&] {
      return (link_->direct_space() > 0 && !link_->has_unannounced_mappings()) || may_not_send();
    };
    if (wait(lock, waits(flags), until, ready) != 0) return moved_or(written);
    if (may_not_send()) {
      errno = link_->error() != 0 ? link_->error() : ECONNRESET;
      return moved_or(written);
    }
    const auto mapping = link_->mapping_at(at);
    if (!mapping) {
      errno = EFAULT;
      return moved_or(written);
    }
    const auto some = static_cast<uint32_t>(std::min<uint64_t>(
        {length - written, link_->direct_space(), mapping->area.length - (at - mapping->offset)}));
    for (const std::span<uint8_t> piece : link_->outgoing(some)) cursor.copy_out(piece);
    if (!link_->write_at(some, mapping->area.address + (at - mapping->offset), mapping->area.key))
      return moved_or(written);
    written += some;
    at += some;
  }
  return static_cast<ssize_t>(written);
}

off_t Stream::map(void* memory, size_t length, int protection, off_t offset) {
  Lock lock(mutex_);
  if ((protection & ~PROT_WRITE) != 0 || length == 0) return failed(EINVAL);
  // On an accepted connection the mapping is announced when it opens.
  if (stage_ != Stage::kAccepting && wait_until_open(lock, waits(0), Clock::time_point::max()) != 0)
    return -1;
  const off_t at = offset != -1 ? offset : static_cast<off_t>(reinterpret_cast<uintptr_t>(memory));
  return link_->map(memory, length, (protection & PROT_WRITE) != 0, static_cast<uint64_t>(at)) ? at : -1;
}

int Stream::unmap(void* memory, size_t length) {
  const Lock guard(mutex_);
  if (link_ == nullptr) return failed(EINVAL);
  return link_->unmap(memory, length) ? 0 : -1;
}

short Stream::state() const {
  int out = 0;
  switch (stage_) {
    case Stage::kFresh:
    case Stage::kBound:
      return POLLOUT | POLLWRNORM | POLLHUP;
    case Stage::kListening:
      return accepted_.empty() ? 0 : POLLIN | POLLRDNORM;
    case Stage::kFinding:
    case Stage::kRouting:
    case Stage::kConnecting:
    case Stage::kAccepting:
      return 0;
    case Stage::kFailed:
      return POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM | POLLERR | POLLHUP;
    case Stage::kOpen:
      break;
  }
  if (link_->readable() || !link_->receives()) out |= POLLIN | POLLRDNORM;
  if (link_->send_space() > 0 || !link_->sends()) out |= POLLOUT | POLLWRNORM;
  if (!link_->receives()) out |= POLLRDHUP;
  if (link_->is_finished() && !link_->readable()) out |= POLLHUP;  // programs stop reading after POLLHUP
  if (link_->error() != 0) out |= POLLERR;
  return static_cast<short>(out);
}

}  // namespace roci::rdmacm::sockets

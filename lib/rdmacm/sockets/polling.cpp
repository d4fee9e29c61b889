#include "rdmacm/sockets/polling.hpp"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <vector>

#include "rdmacm/sockets/socket.hpp"

namespace roci::rdmacm::sockets {
namespace {

// Time of busy polling before sleep, as in the calls of streams.
constexpr std::chrono::microseconds kBusyPolling{20};

struct Poll {
  std::span<pollfd> entries;
  std::vector<std::shared_ptr<Socket>> sockets;  // by entry; null: a kernel descriptor
  std::vector<pollfd> kernel;                    // by entry: argument of the kernel's poll()
  std::vector<WaitPoint::Ticket> tickets;        // by entry: of a socket on which the thread sleeps
};

Poll make_poll(std::span<pollfd> entries) {
  Poll out{entries, {}, {}, std::vector<WaitPoint::Ticket>(entries.size())};
  for (const pollfd& entry : entries) {
    out.sockets.push_back(is_socket(entry.fd) ? find(entry.fd) : nullptr);
    out.kernel.push_back({out.sockets.back() != nullptr ? -1 : entry.fd, entry.events, 0});
  }
  return out;
}

// Checks all entries, also after one is ready, so that none starves.
int poll_sockets(Poll& all) {
  const int ready = ::poll(all.kernel.data(), all.kernel.size(), 0);
  if (ready < 0) return -1;
  int count = 0;
  for (size_t i = 0; i < all.entries.size(); ++i) {
    pollfd& entry = all.entries[i];
    entry.revents =
        all.sockets[i] != nullptr ? all.sockets[i]->poll_events(entry.events) : all.kernel[i].revents;
    if (entry.revents != 0) ++count;
  }
  return count;
}

// Prepares all sockets for sleep. Returns false if one of them is ready; the caller then must not sleep.
bool go_to_sleep(Poll& all) {
  for (size_t i = 0; i < all.entries.size(); ++i) {
    if (all.sockets[i] == nullptr) continue;
    const auto ticket = all.sockets[i]->before_sleep(all.entries[i].events);
    if (!ticket) return false;
    all.tickets[i] = *ticket;
    all.kernel[i] = {all.sockets[i]->fd(), POLLIN, 0};
  }
  return true;
}

void wake_up(Poll& all) {
  for (size_t i = 0; i < all.entries.size(); ++i) {
    if (all.sockets[i] == nullptr || all.kernel[i].fd < 0) continue;
    all.sockets[i]->after_sleep(all.tickets[i]);
    all.kernel[i].fd = -1;
  }
}

int sleep_once(Poll& all, Clock::time_point until) {
  int status = 0;
  if (go_to_sleep(all)) {
    for (const auto& socket : all.sockets) {
      if (socket != nullptr) until = std::min(until, socket->next_poll());
    }
    status = ::poll(all.kernel.data(), all.kernel.size(), milliseconds_until(until));
  }
  const int code = errno;
  wake_up(all);
  errno = code;
  return status;
}

}  // namespace

int poll_all(std::span<pollfd> entries, Clock::time_point until) {
  Poll all = make_poll(entries);
  const auto busy_until = Clock::now() + kBusyPolling;
  for (;;) {
    const int count = poll_sockets(all);
    const auto time = Clock::now();
    if (count != 0 || time >= until) return count;
    if (time >= busy_until && sleep_once(all, until) < 0) return -1;
  }
}

int select_all(int count, fd_set* read, fd_set* write, fd_set* except, Clock::time_point until) {
  std::vector<pollfd> entries;
  for (int fd = 0; fd < count; ++fd) {
    const auto in = [&](const fd_set* set) { return set != nullptr && FD_ISSET(fd, set); };
    const int events = (in(read) ? POLLIN : 0) | (in(write) ? POLLOUT : 0) | (in(except) ? POLLPRI : 0);
    if (events != 0) entries.push_back({fd, static_cast<short>(events), 0});
  }
  const int status = poll_all(entries, until);
  if (status < 0) return status;
  int set_bits = 0;
  const auto put = [&](fd_set* set, short requested, int reported) {
    if (set == nullptr) return;
    FD_ZERO(set);
    for (const pollfd& entry : entries) {
      if ((entry.events & requested) == 0 || (entry.revents & reported) == 0) continue;
      FD_SET(entry.fd, set);
      ++set_bits;
    }
  };
  put(read, POLLIN, POLLIN | POLLHUP | POLLERR);
  put(write, POLLOUT, POLLOUT | POLLERR);
  put(except, POLLPRI, POLLPRI);
  return set_bits;
}

}  // namespace roci::rdmacm::sockets

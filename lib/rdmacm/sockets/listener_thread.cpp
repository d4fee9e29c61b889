#include "rdmacm/sockets/listener_thread.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/os/thread_start.hpp"

namespace roci::rdmacm::sockets {
namespace {

// Programs such as riostream set options of the listener between listen and the first accept. A stream has the options of
// the time at which its request was answered.
constexpr int kFirstAnswerMs = 50;

}  // namespace

ListenerThread::ListenerThread(int fd, std::function<void()> serve)
    : stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (stop_ < 0) return;
  // Without the thread, requests are answered in accept().
  static_cast<void>(start_thread(thread_, "", [this, fd, serve = std::move(serve)] { run(fd, serve); }));
}

ListenerThread::~ListenerThread() {
  if (thread_.joinable()) {
    eventfd_write(stop_, 1);
    thread_.join();
  }
  if (stop_ >= 0) ::close(stop_);
}

void ListenerThread::run(int fd, const std::function<void()>& serve) const {
  pthread_setname_np(pthread_self(), "roci-listener");
  pollfd stop{stop_, POLLIN, 0};
  while (::poll(&stop, 1, kFirstAnswerMs) < 0 && errno == EINTR) {
  }
  for (;;) {
    std::array<pollfd, 2> entries{pollfd{fd, POLLIN, 0}, pollfd{stop_, POLLIN, 0}};
    if (::poll(entries.data(), entries.size(), -1) < 0 && errno != EINTR) return;
    if (entries[1].revents != 0 || (entries[0].revents & ~POLLIN) != 0) return;
    if (entries[0].revents != 0) serve();
  }
}

}  // namespace roci::rdmacm::sockets

// Completion channels, and waiting for their events.
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "device/host/host.hpp"
#include "transport/queues/channel_queue.hpp"
#include "verbs/calls/calls.hpp"
#include "verbs/error.hpp"
#include "verbs/live_handles.hpp"
#include "verbs/process/fork_guard.hpp"
#include "verbs/waiting.hpp"

namespace roci::verbs {

namespace {

// Programs poll new completions while they handle an event, and the event of such a completion then finds an empty
// queue. This is more frequent than with a NIC, because the library's thread runs in parallel to the program. Programs
// that use ibv_start_poll treat an empty queue as an error, so the event is taken back; the next completion generates
// an event again. Other programs count events, regardless of the queue. While another queue of the channel has
// completions, the event may be counted as that queue's, so it is not taken back. The caller holds the mutex of the
// channel.
bool is_idle(Channel& channel, Cq& of) {
  if (!of.polled_one_by_one.load(std::memory_order_relaxed)) return false;
  return std::ranges::all_of(channel.queues, [](const Cq* cq) { return cq->queue->empty(); }) &&
         of.queue->take_back_event();
}

// A call of ibv_get_cq_event(). The program may destroy the channel during the call, or cancel the thread. After the
// destruction the call blocks until a signal, as a read(2) of the kernel's descriptor does.
class ChannelReader {
 public:
  explicit ChannelReader(Channel& channel) : channel_(channel) {
    const std::scoped_lock guard(channel_.mutex);
    ++channel_.readers;
  }
  ~ChannelReader() {
    bool last = false;
    {
      const std::scoped_lock guard(channel_.mutex);
      last = --channel_.readers == 0 && channel_.destroyed;
    }
    if (last) delete &channel_;
  }
  ChannelReader(const ChannelReader&) = delete;
  ChannelReader& operator=(const ChannelReader&) = delete;

 private:
  Channel& channel_;
};

int give(Cq& from, ibv_cq** cq, void** user) {
  from.completion_events.count_delivered();
  *cq = from.handle();
  *user = from.verbs.cq_context;
  return 0;
}

}  // namespace

void UnackedEvents::count_delivered() {
  pthread_mutex_lock(&mutex_);
  ++unacknowledged_;
  pthread_mutex_unlock(&mutex_);
}

void UnackedEvents::note_acknowledged(uint32_t count) {
  pthread_mutex_lock(&mutex_);
  completed_ += count;
  pthread_cond_broadcast(&cond_);
  pthread_mutex_unlock(&mutex_);
}

void UnackedEvents::wait_acknowledged() {
  pthread_mutex_lock(&mutex_);
  while (completed_ < unacknowledged_) pthread_cond_wait(&cond_, &mutex_);
  pthread_mutex_unlock(&mutex_);
}

int wait_readable(Device& device, int fd, BlockedThreads& blocked,
                  std::optional<std::chrono::milliseconds> limit) {
  if ((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0) return EAGAIN;
  // A response that arrives soon is processed faster here than by waking a thread.
  constexpr std::chrono::microseconds kBusy{50};
  pollfd entry{.fd = fd, .events = POLLIN, .revents = 0};
  const auto is_readable = [&entry] { return poll(&entry, 1, 0) > 0; };  // EINTR: not readable
  const auto end = std::chrono::steady_clock::now() + kBusy;
  do {
    device.progress();
    if (is_readable()) return 0;
  } while (std::chrono::steady_clock::now() < end);
  device.host().expect_block();
  if (!limit) return blocked.wait(is_readable);
  const int ready = poll(&entry, 1, static_cast<int>(limit->count()));
  if (ready < 0) return errno;
  return ready > 0 ? 0 : ETIMEDOUT;
}

}  // namespace roci::verbs

using namespace roci;         // NOLINT(google-build-using-namespace): functions of the C ABI
using namespace roci::verbs;  // NOLINT(google-build-using-namespace)

extern "C" {

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  if (const int code = refuse_child(); code != 0) return refuse(code);
  auto made = Context::of(context).device->create_channel();
  if (!made) return refuse(made.error());
  auto* channel = new Channel;
  channel->channel = std::move(*made);
  channel->verbs.context = context;
  channel->verbs.fd = channel->channel->fd();
  return &live(channel)->verbs;
}

int ibv_destroy_comp_channel(ibv_comp_channel* handle) {
  if (const int code = check_handle<Channel>(handle); code != 0) return code;
  Channel& channel = of<Channel>(handle);
  if (channel.channel->users() > 0) return refuse_with(EBUSY);
  LiveHandles<Channel>::table().remove(&channel);
  bool is_read = false;
  {
    const std::scoped_lock guard(channel.mutex);
    channel.destroyed = true;
    is_read = channel.readers > 0;
  }
  if (!is_read) delete &channel;
  return 0;
}

int ibv_get_cq_event(ibv_comp_channel* handle, ibv_cq** cq, void** user) {
  if (const int code = refuse_child(); code != 0) return errno = code, -1;
  Channel& channel = of<Channel>(handle);
  const ChannelReader reader(channel);
  Device& device = *Context::of(handle->context).device;
  BlockedThreads& blocked = channel.channel->queue().blocked();
  // A program that has seen an event with poll() does not expect this call to block.
  constexpr std::chrono::milliseconds kNextOne{100};
  Cq* returned = nullptr;
  for (;;) {
    {
      const std::scoped_lock guard(channel.mutex);
      if (const auto event = channel.channel->get_event()) {
        Cq& from = *static_cast<Cq*>(event->context);
        if (!is_idle(channel, from)) return give(from, cq, user);
        returned = &from;  // delivered nevertheless if no other event follows soon
        continue;
      }
    }
    const auto limit = returned != nullptr ? std::optional(kNextOne) : std::nullopt;
    const int code = wait_readable(device, handle->fd, blocked, limit);
    if (code == ETIMEDOUT || (code == EINTR && returned != nullptr)) {
      const std::scoped_lock guard(channel.mutex);
      const bool exists = std::ranges::find(channel.queues, returned) != channel.queues.end();
      if (exists) return give(*returned, cq, user);
      returned = nullptr;
    } else if (code != 0) {
      return errno = code, -1;
    }
  }
}

void ibv_ack_cq_events(ibv_cq* handle, unsigned count) {
  // Another thread may wait for this in ibv_destroy_cq, and has removed the queue.
  of<Cq>(handle).completion_events.note_acknowledged(count);
}

}  // extern "C"

// Event channels: ordered queues of events, for programs that poll, that block, and that use synchronous calls.
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/os/event_descriptor.hpp"
#include "rdmacm/addresses.hpp"
#include "rdmacm/id.hpp"
#include "rdmacm/queue_pair.hpp"

namespace roci::rdmacm {
namespace {

// Removes an event. The caller holds the mutex of the channel.
std::unique_ptr<CmEvent> take(Channel& channel, size_t at) {
  std::unique_ptr<CmEvent> event = std::move(channel.events[at]);
  channel.events.erase(channel.events.begin() + static_cast<ptrdiff_t>(at));
  --event->id->queued;
  if (channel.events.empty()) read_eventfd(channel.verbs.fd);  // fails only if the program closed it
  return event;
}

// The event channels of the process. The table is never destroyed, because threads may outlive main().
class ChannelTable {
 public:
  static ChannelTable& instance() {
    static auto* const table = new ChannelTable;
    return *table;
  }
  void add(Channel& channel) {
    const std::scoped_lock guard(mutex_);
    channels_.insert(&channel);
  }
  // Frees the channel, unless threads read from it.
  void remove(Channel& channel) {
    const std::scoped_lock guard(mutex_);
    channels_.erase(&channel);
    channel.destroyed = true;
    if (channel.readers == 0) delete &channel;
  }
  // False: the channel has been destroyed. `channel` may be an invalid pointer.
  bool begin_read(Channel* channel) {
    const std::scoped_lock guard(mutex_);
    if (!channels_.contains(channel)) return false;
    ++channel->readers;
    return true;
  }
  void end_read(Channel& channel) {
    const std::scoped_lock guard(mutex_);
    if (--channel.readers == 0 && channel.destroyed) delete &channel;
  }

 private:
  std::mutex mutex_;
  std::unordered_set<Channel*> channels_;
};

// Blocks until the process exits if the channel was destroyed during the call. The kernel's file descriptor behaves so,
// and programs such as rping treat any return as a failure.
void block_if_destroyed(const Channel& channel) {
  while (channel.destroyed) pause();
}

// Blocks until an event may be available. Returns 0, EAGAIN on a non-blocking channel, or EINTR after a signal whose
// handler was installed without SA_RESTART.
int wait_for_event(Channel& channel) {
  if ((fcntl(channel.verbs.fd, F_GETFL) & O_NONBLOCK) != 0) return EAGAIN;
  if (cm::Service* const service = channel.service.load(std::memory_order_acquire); service != nullptr)
    service->expect_block();
  pollfd readable{channel.verbs.fd, POLLIN, 0};
  return channel.blocked.wait([&readable] { return poll(&readable, 1, 0) > 0; });
}

// Ends a begin_read(), also when the program cancels the thread.
struct ReadEnd {
  Channel& channel;
  ~ReadEnd() { ChannelTable::instance().end_read(channel); }
};

// Takes the oldest event, and waits for one if necessary. Returns 0 or an errno.
int wait_and_take(Channel& channel, std::unique_ptr<CmEvent>& taken) {
  const ReadEnd end{channel};
  for (;;) {
    block_if_destroyed(channel);
    {
      const std::scoped_lock guard(channel.mutex);
      if (!channel.events.empty()) {
        taken = take(channel, 0);
        const std::scoped_lock counted(taken->id->mutex);
        ++taken->id->reported;
        if (taken->membership != nullptr) ++taken->membership->reported;
        return 0;
      }
    }
    if (const int code = wait_for_event(channel); code != 0) {
      block_if_destroyed(channel);
      return code;
    }
  }
}

// Removes the events that the program has not fetched, and the ids of connection requests among them.
void remove_events_of(Id& id) {
  Channel& channel = id.channel();
  std::deque<std::unique_ptr<CmEvent>> removed;
  {
    const std::scoped_lock guard(channel.mutex);
    // with very many ids, few have events
    for (size_t at = 0; at < channel.events.size() && id.queued > 0;) {
      if (channel.events[at]->id == &id) {
        removed.push_back(take(channel, at));
      } else {
        ++at;
      }
    }
  }
  for (const auto& event : removed) {
    if (event->verbs.event == RDMA_CM_EVENT_CONNECT_REQUEST && event->verbs.id != &id.verbs)
      destroy(Id::of(event->verbs.id));
  }
}

// Sets the fields that require calls of the device, which the handler of the request must not make.
void finish_request(Id& id) {
  id.verbs.verbs = open_device();
  id.verbs.pd = default_pd();
  if (const auto local = ip_of(id.verbs.route.addr.src_addr)) {
    if (const auto source = own_source(id.verbs.verbs, *local)) id.sgid_index = source->gid_index;
  }
  const uint8_t most = path_mtu_of(id);
  set_path(id, id.terms.path_mtu != 0 ? std::min(id.terms.path_mtu, most) : most);
}

// Completes the queue pair after the peer has accepted. Runs in the thread of the program.
void finish_connection(CmEvent& event) {
  Id& id = Id::of(event.verbs.id);
  if (id.verbs.qp == nullptr) return;  // the program owns the queue pair and calls rdma_establish()
  if (connect_queue_pair(id) && id.service->ready(*id.connection, {})) {
    id.phase = Phase::kConnected;
    event.verbs.event = RDMA_CM_EVENT_ESTABLISHED;
    return;
  }
  id.connect_error = true;
  event.verbs.event = RDMA_CM_EVENT_CONNECT_ERROR;
  event.verbs.status = -errno;
  static_cast<void>(id.service->reject(*id.connection, {.reason = CmRejected::kConsumer}));
  static_cast<void>(fail_queue_pair(id));
}

// Events on the way to another channel. Handlers of their ids in other threads wait meanwhile, so that they queue no event in
// the old channel and none before those moved.
struct Move {
  rdma_event_channel* to;
  std::vector<std::unique_lock<std::mutex>> handlers_wait{};
  std::deque<std::unique_ptr<CmEvent>> events{};
};

// A request moves with the listener to which it was reported.
void change_channel(Id& id, Move& move) {
  move.handlers_wait.emplace_back(id.channel_mutex);
  Channel& from = id.channel();
  id.verbs.channel = move.to;
  std::vector<Id*> requests;
  {
    const std::scoped_lock guard(from.mutex);
    for (size_t at = 0; at < from.events.size() && id.queued > 0;) {
      if (from.events[at]->id != &id) {
        ++at;
        continue;
      }
      move.events.push_back(take(from, at));
      Id& reported = Id::of(move.events.back()->verbs.id);
      if (&reported != &id) requests.push_back(&reported);
    }
  }
  for (Id* request : requests) change_channel(*request, move);
}

}  // namespace

void Channel::push(std::unique_ptr<CmEvent> event) {
  const std::scoped_lock guard(mutex);
  ++event->id->queued;
  events.push_back(std::move(event));
  if (events.size() == 1) add_to_eventfd(verbs.fd);  // fails only if the program closed it
  blocked.wake();
}

void Id::push(std::unique_ptr<CmEvent> event) {
  const std::scoped_lock guard(channel_mutex);
  if (event->verbs.id != &verbs) event->verbs.id->channel = verbs.channel;  // a connection request
  channel().push(std::move(event));
}

std::unique_ptr<CmEvent> make_event(Id& id, rdma_cm_event_type type, int status) {
  auto event = std::make_unique<CmEvent>();
  event->id = &id;
  event->verbs.id = &id.verbs;
  event->verbs.event = type;
  event->verbs.status = status;
  return event;
}

void report(Id& id, rdma_cm_event_type type, int status) { id.push(make_event(id, type, status)); }

void acknowledge_own_event(Id& id) {
  if (id.verbs.event == nullptr) return;
  rdma_ack_cm_event(id.verbs.event);
  id.verbs.event = nullptr;
}

int complete(Id& id) {
  if (!id.synchronous) return 0;
  acknowledge_own_event(id);
  if (rdma_get_cm_event(id.verbs.channel, &id.verbs.event) != 0) return -1;
  const rdma_cm_event& event = *id.verbs.event;
  if (event.status == 0) return 0;
  return failed(event.event == RDMA_CM_EVENT_REJECTED ? ECONNREFUSED : std::abs(event.status));
}

int move_to_channel(Id& id, rdma_event_channel* channel, bool own) {
  acknowledge_own_event(id);  // the event of the last synchronous call
  {
    std::unique_lock guard(id.mutex);
    id.acknowledged.wait(guard, [&] { return id.reported == 0; });
  }
  rdma_event_channel* const old = id.verbs.channel;
  if (channel != old) {
    Move move{.to = channel};
    change_channel(id, move);
    Channel::of(channel).service.store(id.service, std::memory_order_release);
    for (auto& event : move.events) Channel::of(channel).push(std::move(event));
  }
  if (id.synchronous && channel != old) rdma_destroy_event_channel(old);
  id.synchronous = own;
  return 0;
}

bool make_synchronous(Id& id) {
  rdma_event_channel* const own = rdma_create_event_channel();
  return own != nullptr && move_to_channel(id, own, true) == 0;
}

void leave_events(Id& id, const Membership& membership) {
  {
    Channel& channel = id.channel();
    const std::scoped_lock guard(channel.mutex);
    for (size_t at = 0; at < channel.events.size();) {
      if (channel.events[at]->membership.get() == &membership) {
        take(channel, at);
      } else {
        ++at;
      }
    }
  }
  std::unique_lock guard(id.mutex);
  id.acknowledged.wait(guard, [&] { return membership.reported == 0; });
}

// Afterwards no events of the id are queued, and the program holds none.
void leave_events(Id& id) {
  acknowledge_own_event(id);
  remove_events_of(id);
  std::unique_lock guard(id.mutex);
  id.acknowledged.wait(guard, [&] { return id.reported == 0; });
}

}  // namespace roci::rdmacm

using namespace roci::rdmacm;  // NOLINT(google-build-using-namespace): this file defines the C API

extern "C" {

rdma_event_channel* rdma_create_event_channel() {
  const int fd = eventfd(0, EFD_CLOEXEC);
  if (fd < 0) return nullptr;
  auto* channel = new Channel;
  channel->verbs.fd = fd;
  ChannelTable::instance().add(*channel);
  return &channel->verbs;
}

void rdma_destroy_event_channel(rdma_event_channel* channel) {
  const int fd = channel->fd;
  ChannelTable::instance().remove(Channel::of(channel));
  close(fd);
}

int rdma_get_cm_event(rdma_event_channel* of, rdma_cm_event** event) {
  for (;;) {
    if (!ChannelTable::instance().begin_read(&Channel::of(of))) return failed(EBADF);
    std::unique_ptr<CmEvent> taken;
    if (const int error = wait_and_take(Channel::of(of), taken); error != 0) return failed(error);
    Id& id = Id::of(taken->verbs.id);
    switch (taken->verbs.event) {
      case RDMA_CM_EVENT_CONNECT_RESPONSE:
        finish_connection(*taken);
        break;
      case RDMA_CM_EVENT_CONNECT_REQUEST:
        finish_request(id);
        if (taken->id->synchronous && !make_synchronous(id)) {
          const int code = errno;
          rdma_ack_cm_event(&taken.release()->verbs);
          destroy(id);
          return failed(code);
        }
        break;
      case RDMA_CM_EVENT_REJECTED:
      case RDMA_CM_EVENT_DISCONNECTED:
        if (id.connect_error) {  // the program knows; as in rdma-core
          rdma_ack_cm_event(&taken.release()->verbs);
          continue;
        }
        // Flushes the receive requests of the program.
        if (taken->verbs.event == RDMA_CM_EVENT_REJECTED) static_cast<void>(fail_queue_pair(id));
        break;
      default:
        break;
    }
    *event = &taken.release()->verbs;
    return 0;
  }
}

int rdma_ack_cm_event(rdma_cm_event* verbs) {
  if (verbs == nullptr) return failed(EINVAL);
  const std::unique_ptr<CmEvent> event(reinterpret_cast<CmEvent*>(verbs));
  const std::scoped_lock guard(event->id->mutex);
  --event->id->reported;
  if (event->membership != nullptr) --event->membership->reported;
  event->id->acknowledged.notify_all();
  return 0;
}

const char* rdma_event_str(rdma_cm_event_type event) {
  constexpr const char* kNames[] = {
      "RDMA_CM_EVENT_ADDR_RESOLVED",  "RDMA_CM_EVENT_ADDR_ERROR",      "RDMA_CM_EVENT_ROUTE_RESOLVED",
      "RDMA_CM_EVENT_ROUTE_ERROR",    "RDMA_CM_EVENT_CONNECT_REQUEST", "RDMA_CM_EVENT_CONNECT_RESPONSE",
      "RDMA_CM_EVENT_CONNECT_ERROR",  "RDMA_CM_EVENT_UNREACHABLE",     "RDMA_CM_EVENT_REJECTED",
      "RDMA_CM_EVENT_ESTABLISHED",    "RDMA_CM_EVENT_DISCONNECTED",    "RDMA_CM_EVENT_DEVICE_REMOVAL",
      "RDMA_CM_EVENT_MULTICAST_JOIN", "RDMA_CM_EVENT_MULTICAST_ERROR", "RDMA_CM_EVENT_ADDR_CHANGE",
      "RDMA_CM_EVENT_TIMEWAIT_EXIT"};
  const auto index = static_cast<size_t>(event);
  return index < std::size(kNames) ? kNames[index] : "UNKNOWN EVENT";
}

}  // extern "C"

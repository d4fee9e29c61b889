// Completion queues and channels of the C++ API.
#include <mutex>
#include <new>
#include <utility>

#include "device/host/host.hpp"
#include "device/host/limits.hpp"
#include "roci/device.hpp"

namespace roci {
namespace {

Status check_entries(int entries) {
  if (entries >= 1 && static_cast<uint32_t>(entries) <= kMaxCqEntries) return {};
  return fail("completion queue: " + std::to_string(entries) + " entries; 1 to " +
              std::to_string(kMaxCqEntries) + " are allowed");
}

auto no_memory_for(int entries) {
  return fail("completion queue: no memory for " + std::to_string(entries) + " entries", ENOMEM);
}

}  // namespace

Result<std::unique_ptr<CompletionQueue>> Device::create_cq(int entries, void* context,
                                                           CompletionChannel* channel, TimeStamps stamps) {
  ROCI_TRY(check_entries(entries));
  const EventObject object{EventSource::kCompletionQueue, host_->next_cq.fetch_add(1), context};
  std::shared_ptr<CompletionRing> ring;
  try {
    ring = std::make_shared<CompletionRing>(
        static_cast<uint32_t>(entries), 0, object, channel != nullptr ? channel->queue_ : nullptr,
        host_->workers() == 1 ? CompletionRing::Producers::kOne : CompletionRing::Producers::kMany);
    if (stamps == TimeStamps::kMonotonic) ring->keep_times();
  } catch (const std::bad_alloc&) {
    return no_memory_for(entries);
  }
  if (const Status counted = host_->take(LimitedObject::kCompletionQueue); !counted)
    return fail(counted.error());
  host_->events().assign(EventSource::kCompletionQueue, object.number, events_);
  return std::unique_ptr<CompletionQueue>(new CompletionQueue(host_, std::move(ring)));
}

Result<std::unique_ptr<CompletionChannel>> Device::create_channel() {
  auto queue = ChannelQueue::create();
  if (!queue) return fail(queue.error().within("device " + name()));
  return std::unique_ptr<CompletionChannel>(new CompletionChannel(std::move(*queue)));
}

CompletionChannel::CompletionChannel(std::shared_ptr<ChannelQueue> queue) : queue_(std::move(queue)) {}
CompletionChannel::~CompletionChannel() = default;
int CompletionChannel::fd() const { return queue_->fd(); }
std::optional<EventObject> CompletionChannel::get_event() { return queue_->take(); }
uint32_t CompletionChannel::users() const { return queue_->users(); }

CompletionQueue::CompletionQueue(std::shared_ptr<Host> host, std::shared_ptr<CompletionRing> ring)
    : host_(std::move(host)), ring_(std::move(ring)) {}

CompletionQueue::~CompletionQueue() {
  const std::scoped_lock guard(host_->all_workers());
  ring_->abandon_events();
  host_->events().remove(EventSource::kCompletionQueue, number());
  host_->release(LimitedObject::kCompletionQueue);
}

uint32_t CompletionQueue::number() const { return ring_->object().number; }
uint32_t CompletionQueue::entries() const { return ring_->capacity(); }

int CompletionQueue::poll(int count, ibv_wc* out) { return poll(count, out, nullptr); }

int CompletionQueue::poll(int count, ibv_wc* out, uint64_t* stamps) {
  const int got = ring_->poll(count, out, stamps);
  if (!host_->application_drives()) return got;
  if (got != 0) {
    host_->note_completions_found();
    return got;
  }
  host_->drive();
  return ring_->poll(count, out, stamps);
}

Status CompletionQueue::resize(int entries) {
  ROCI_TRY(check_entries(entries));
  CompletionRing::Space space;
  try {
    space = ring_->make_space(static_cast<uint32_t>(entries));
  } catch (const std::bad_alloc&) {
    return no_memory_for(entries);
  }
  const std::scoped_lock guard(host_->all_workers());
  if (ring_->resize(static_cast<uint32_t>(entries), space)) return {};
  return fail("completion queue: more than " + std::to_string(entries) +
              " completions are queued; poll them before reducing the size");
}

void CompletionQueue::request_notify(bool solicited_only) {
  ring_->request_notify(solicited_only);
  host_->expect_block();
}
bool CompletionQueue::empty() const { return ring_->empty(); }
bool CompletionQueue::take_back_event() { return ring_->take_back_event(); }
void CompletionQueue::ack_events(uint32_t count) { ring_->ack_events(count); }
uint32_t CompletionQueue::unacknowledged() const { return ring_->unacknowledged(); }

}  // namespace roci

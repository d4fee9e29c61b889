#include <mutex>
#include <new>
#include <utility>

#include "device/host/host.hpp"
#include "device/host/limits.hpp"
#include "roci/device.hpp"
#include "transport/xrc/xrc_receive_queues.hpp"

namespace roci {
namespace {

Status check_max_wr(uint32_t max_wr) {
  if (max_wr >= 1 && max_wr <= kMaxWorkRequests) return {};
  return fail("shared receive queue: max_wr " + std::to_string(max_wr) + " is out of range; 1 to " +
              std::to_string(kMaxWorkRequests) + " is allowed");
}

}  // namespace

Result<std::unique_ptr<SharedReceiveQueue>> ProtectionDomain::create_srq(ibv_srq_init_attr* init) {
  ROCI_TRY(check_max_wr(init->attr.max_wr));
  if (init->attr.max_sge > kMaxSge) {
    return fail("shared receive queue: max_sge " + std::to_string(init->attr.max_sge) +
                " is too large; at most " + std::to_string(kMaxSge) + " is allowed");
  }
  init->attr.max_sge = std::max(1U, init->attr.max_sge);
  std::shared_ptr<SharedReceiveRing> ring;
  try {
    ring = std::make_shared<SharedReceiveRing>(
        init->attr.max_wr, init->attr.max_sge, PdNumber{number_},
        EventObject{EventSource::kSharedReceiveQueue, host_->next_srq.fetch_add(1), init->srq_context});
  } catch (const std::bad_alloc&) {
    return SharedReceiveRing::no_memory_for(init->attr.max_wr);
  }
  if (const Status counted = host_->take(LimitedObject::kSharedReceiveQueue); !counted)
    return fail(counted.error());
  host_->events().assign(EventSource::kSharedReceiveQueue, ring->object().number, events_);
  return std::unique_ptr<SharedReceiveQueue>(new SharedReceiveQueue(host_, std::move(ring)));
}

SharedReceiveQueue::SharedReceiveQueue(std::shared_ptr<Host> host, std::shared_ptr<SharedReceiveRing> ring)
    : host_(std::move(host)), ring_(std::move(ring)) {}

SharedReceiveQueue::~SharedReceiveQueue() {
  const std::scoped_lock guard(host_->all_workers());
  static_cast<void>(ring_->arm(0));  // no user is left for the event
  if (xrc_ != nullptr) leave_domain();
  host_->events().remove(EventSource::kSharedReceiveQueue, number());
  host_->release(LimitedObject::kSharedReceiveQueue);
}

uint32_t SharedReceiveQueue::number() const { return ring_->object().number; }

int SharedReceiveQueue::post_recv(ibv_recv_wr* list, ibv_recv_wr** bad) { return ring_->post(list, bad); }

Status SharedReceiveQueue::modify(const ibv_srq_attr& attr, int mask) {
  if ((mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)) != 0) {
    return fail("shared receive queue: attribute mask " + std::to_string(mask) +
                " contains unknown bits; IBV_SRQ_MAX_WR and IBV_SRQ_LIMIT are allowed");
  }
  const bool resize = (mask & IBV_SRQ_MAX_WR) != 0;
  const bool arm = (mask & IBV_SRQ_LIMIT) != 0;
  // While all tokens are held no worker takes a request, so the event corresponds to the limit that was set.
  const std::scoped_lock guard(host_->all_workers());
  const SharedReceiveRing::Attributes before = ring_->query();
  if (resize) ROCI_TRY(check_max_wr(attr.max_wr));
  if (arm && attr.srq_limit > (resize ? attr.max_wr : before.max_wr)) {
    return fail("shared receive queue: srq_limit " + std::to_string(attr.srq_limit) +
                " is above its max_wr " + std::to_string(resize ? attr.max_wr : before.max_wr));
  }
  if (resize && arm) static_cast<void>(ring_->arm(0));  // only the new limit applies
  if (resize) {
    if (Status resized = ring_->resize(attr.max_wr); !resized) {
      if (arm) static_cast<void>(ring_->arm(before.limit));
      return resized;
    }
  }
  if (!arm) return {};
  const auto due = ring_->arm(attr.srq_limit);
  if (!due) return fail(due.error());
  if (*due && !host_->events().raise({IBV_EVENT_SRQ_LIMIT_REACHED, ring_->object()}))
    host_->worker(0).counters().add(Counter::kEventsLost);
  return {};
}

ibv_srq_attr SharedReceiveQueue::query() const {
  const SharedReceiveRing::Attributes now = ring_->query();
  return {.max_wr = now.max_wr, .max_sge = now.max_sge, .srq_limit = now.limit};
}

Status destroy(std::unique_ptr<SharedReceiveQueue>& queue) {
  if (queue == nullptr) return {};
  if (const uint32_t users = queue->ring_->users; users > 0) {
    return fail("shared receive queue: " + std::to_string(users) + " queue pairs use it; destroy them first",
                EBUSY);
  }
  queue.reset();
  return {};
}

}  // namespace roci

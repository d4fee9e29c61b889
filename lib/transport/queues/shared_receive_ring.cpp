#include "transport/queues/shared_receive_ring.hpp"

#include <bit>
#include <mutex>
#include <new>
#include <string>

#include "base/trace_points.hpp"

namespace roci {
namespace {

constexpr std::align_val_t kAlignment{64};

}  // namespace

// Ring with its memory, which is not touched before it is used.
class SharedReceiveRing::Ring {
  struct Free {
    void operator()(void* p) const { ::operator delete(p, kAlignment); }
  };
  const std::unique_ptr<void, Free> storage_;
  std::atomic<uint32_t> done_{0};

 public:
  Ring(uint32_t capacity, uint32_t trailer)
      : storage_(::operator new(WorkRing<RecvWqe>::bytes(capacity, trailer), kAlignment)),
        requests(capacity, trailer, storage_.get(), done_) {}
  WorkRing<RecvWqe> requests;
};

SharedReceiveRing::SharedReceiveRing(uint32_t max_wr, uint32_t max_sge, PdNumber pd,
                                     const EventObject& object)
    : max_sge_(max_sge), pd_(pd), object_(object), max_wr_(max_wr), ring_(make_ring(max_wr)) {}

SharedReceiveRing::~SharedReceiveRing() = default;

uint32_t SharedReceiveRing::waiting() const { return ring_->requests.posted() - ring_->requests.head(); }

std::unique_ptr<SharedReceiveRing::Ring> SharedReceiveRing::make_ring(uint32_t max_wr) const {
  return std::make_unique<Ring>(std::bit_ceil(max_wr), max_sge_ * static_cast<uint32_t>(sizeof(ibv_sge)));
}

int SharedReceiveRing::post(ibv_recv_wr* list, ibv_recv_wr** bad) {
  const std::scoped_lock guard(lock_);
  for (ibv_recv_wr* wr = list; wr != nullptr; wr = wr->next) {
    int code = ENOMEM;
    if (waiting() < max_wr_) {
      RecvWqe& wqe = ring_->requests.next_free();
      code = wqe.fill(*wr, max_sge_) ? 0 : EINVAL;
      if (code == 0) trace::srq_recv_posted(object_.number, wqe.wr_id, wqe.capacity);
    }
    if (code != 0) {
      if (bad != nullptr) *bad = wr;
      return code;
    }
    ring_->requests.publish();
  }
  return 0;
}

SharedReceiveRing::Taken SharedReceiveRing::take(RecvWqe& slot) {
  const std::scoped_lock guard(lock_);
  if (ring_->requests.empty()) return Taken::kNothing;
  slot.copy(ring_->requests.at(ring_->requests.head()));
  ring_->requests.pop();
  return fire_limit() ? Taken::kRequestAtLimit : Taken::kRequest;
}

bool SharedReceiveRing::fire_limit() {
  if (limit_ == 0 || waiting() >= limit_) return false;
  limit_ = 0;
  return true;
}

SharedReceiveRing::Attributes SharedReceiveRing::query() {
  const std::scoped_lock guard(lock_);
  return {max_wr_, max_sge_, limit_};
}

Status SharedReceiveRing::resize(uint32_t max_wr) {
  std::unique_ptr<Ring> bigger;
  try {
    bigger = make_ring(max_wr);  // outside the lock, which workers may spin on
  } catch (const std::bad_alloc&) {
    return no_memory_for(max_wr);
  }
  {
    const std::scoped_lock guard(lock_);
    if (max_wr < waiting()) {
      return fail("shared receive queue: max_wr " + std::to_string(max_wr) + " is below the " +
                  std::to_string(waiting()) + " queued requests");
    }
    if (max_wr < limit_) {
      return fail("shared receive queue: max_wr " + std::to_string(max_wr) + " is below the armed limit " +
                  std::to_string(limit_));
    }
    for (; !ring_->requests.empty(); ring_->requests.pop()) {
      bigger->requests.next_free().copy(ring_->requests.at(ring_->requests.head()));
      bigger->requests.publish();
    }
    ring_.swap(bigger);
    max_wr_ = max_wr;
  }
  return {};
}

tl::unexpected<Error> SharedReceiveRing::no_memory_for(uint32_t max_wr) {
  return fail("shared receive queue: no memory for " + std::to_string(max_wr) + " requests", ENOMEM);
}

Result<bool> SharedReceiveRing::arm(uint32_t limit) {
  const std::scoped_lock guard(lock_);
  if (limit > max_wr_) {
    return fail("shared receive queue: srq_limit " + std::to_string(limit) + " is above its max_wr " +
                std::to_string(max_wr_));
  }
  limit_ = limit;
  return fire_limit();
}

}  // namespace roci

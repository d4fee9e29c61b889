// A shared receive queue (SRQ, IBTA 10.2.9): receive requests that any application thread posts and that the queue
// pairs of any worker take, one when a message starts.
//
// A queue pair moves the request it takes into a slot of its own, where it stays until the message is complete, so the
// lock is held once a message for the copy of one request, never while data moves.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/result.hpp"
#include "base/spinlock.hpp"
#include "memory/memory_table.hpp"
#include "roci/events.hpp"
#include "transport/work_queue.hpp"

namespace roci {

// Any thread may call anything here.
class SharedReceiveRing {
 public:
  // `max_wr` requests of `max_sge` pieces at once; the memory they name belongs to `pd`.
  SharedReceiveRing(uint32_t max_wr, uint32_t max_sge, PdNumber pd, const EventObject& object);
  ~SharedReceiveRing();
  SharedReceiveRing(const SharedReceiveRing&) = delete;
  SharedReceiveRing& operator=(const SharedReceiveRing&) = delete;

  [[nodiscard]] uint32_t max_sge() const { return max_sge_; }
  [[nodiscard]] PdNumber pd() const { return pd_; }
  // Whom events about this queue name.
  [[nodiscard]] const EventObject& object() const { return object_; }

  // As ibv_post_srq_recv: 0 or an errno with *bad at the request that was not taken.
  int post(ibv_recv_wr* list, ibv_recv_wr** bad);

  enum class Taken : uint8_t {
    kNothing,         // the queue is empty
    kRequest,         //
    kRequestAtLimit,  // and fewer than the limit are left: the caller tells the application, once per arming
  };
  // Moves the oldest request into `slot`, which has room for max_sge() pieces behind it.
  Taken take(RecvWqe& slot);

  struct Attributes {
    uint32_t max_wr = 0;
    uint32_t max_sge = 0;
    uint32_t limit = 0;  // 0: not armed
  };
  [[nodiscard]] Attributes query();
  // Makes room for `max_wr` requests. Fails when more than that wait, or when it is below the armed limit.
  Status resize(uint32_t max_wr);
  // Arms the limit, or disarms it with 0. True when fewer requests than that are there already: then the event is due at
  // once, and the limit not armed any more. Fails when the limit is above max_wr.
  Result<bool> arm(uint32_t limit);

  // Queue pairs that use it. Kept by those that make and destroy them.
  std::atomic<uint32_t> users{0};

 private:
  class Ring;
  [[nodiscard]] std::unique_ptr<Ring> make_ring(uint32_t max_wr) const;
  [[nodiscard]] uint32_t waiting() const;
  // Whether the limit's event is due, which disarms it.
  bool fire_limit();

  const uint32_t max_sge_;
  const PdNumber pd_;
  const EventObject object_;
  Spinlock lock_;    // of everything below
  uint32_t max_wr_;  // the ring may hold more
  std::unique_ptr<Ring> ring_;
  uint32_t limit_ = 0;
};

}  // namespace roci

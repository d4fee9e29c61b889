// Shared receive queue (SRQ, IBTA 10.2.9): receive requests that application threads post and that the queue pairs of
// all workers use, one per message.
//
// A queue pair moves a request into its own slot, where the request stays until the message is complete. The lock is
// therefore held once per message, to copy one request, and never during a copy of data.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/os/spinlock.hpp"
#include "base/result.hpp"
#include "memory/memory_table.hpp"
#include "roci/events.hpp"
#include "transport/queues/work_queue.hpp"

namespace roci {

// SRQ. Thread-safe.
class SharedReceiveRing {
 public:
  // `max_wr`: requests at a time. `max_sge`: scatter/gather elements of each. The requests refer to memory of `pd`.
  // Throws std::bad_alloc.
  SharedReceiveRing(uint32_t max_wr, uint32_t max_sge, PdNumber pd, const EventObject& object);
  ~SharedReceiveRing();
  SharedReceiveRing(const SharedReceiveRing&) = delete;
  SharedReceiveRing& operator=(const SharedReceiveRing&) = delete;

  [[nodiscard]] uint32_t max_sge() const { return max_sge_; }
  [[nodiscard]] PdNumber pd() const { return pd_; }
  // The object that events about this queue contain.
  [[nodiscard]] const EventObject& object() const { return object_; }

  // As ibv_post_srq_recv: returns 0, or an errno with *bad at the rejected request.
  int post(ibv_recv_wr* list, ibv_recv_wr** bad);

  enum class Taken : uint8_t {
    kNothing,         // the queue is empty
    kRequest,         //
    kRequestAtLimit,  // and fewer than the limit are left: the caller raises the event, once per arming
  };
  // Moves the oldest request into `slot`, which has space for max_sge() elements.
  Taken take(RecvWqe& slot);

  struct Attributes {
    uint32_t max_wr = 0;
    uint32_t max_sge = 0;
    uint32_t limit = 0;  // 0: not armed
  };
  [[nodiscard]] Attributes query();
  // Changes the capacity to `max_wr` requests. Fails when more than that are queued, when it is below the armed limit,
  // or without memory.
  Status resize(uint32_t max_wr);
  // Arms the limit; 0 disarms it. True when fewer requests are queued already: the event is due at once, and the limit
  // is disarmed. Fails when the limit exceeds max_wr.
  Result<bool> arm(uint32_t limit);

  // ENOMEM for a queue of `max_wr` requests.
  static tl::unexpected<Error> no_memory_for(uint32_t max_wr);

  // Number of queue pairs that use the SRQ, counted by the code that creates and destroys them.
  std::atomic<uint32_t> users{0};

 private:
  class Ring;
  [[nodiscard]] std::unique_ptr<Ring> make_ring(uint32_t max_wr) const;
  [[nodiscard]] uint32_t waiting() const;
  // Whether the limit event is due; disarms the limit.
  bool fire_limit();

  const uint32_t max_sge_;
  const PdNumber pd_;
  const EventObject object_;
  Spinlock lock_;    // protects everything below
  uint32_t max_wr_;  // the ring's capacity may be larger
  std::unique_ptr<Ring> ring_;
  uint32_t limit_ = 0;
};

}  // namespace roci

// Receive queue that several queue pairs share. Part of roci/device.hpp.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>

#include "roci/result.hpp"

namespace roci {

class Host;
class SharedReceiveRing;
struct XrcReceiveQueue;

// Shared receive queue, as ibv_srq. Created by ProtectionDomain::create_srq(). RC, UC, UD and raw packet queue pairs of
// the device may use it, also those of other protection domains: its requests refer to memory of its own domain (IBTA
// 10.2.3).
//
// A queue pair takes a receive request when a message for it starts. If the queue is empty, RC sends an RNR NAK, and UC
// and UD drop the message. A queue pair in the error state leaves the requests of this queue to the others and raises
// IBV_EVENT_QP_LAST_WQE_REACHED when it no longer holds one. A queue pair that is reset or destroyed during a message
// loses the request that it holds.
//
// An SRQ of an XRC domain serves the targets of the domain: each message contains its number. If it is empty, the
// target sends an RNR NAK. Its completions go to its own completion queue, with the target in qp_num. It may be
// destroyed at any time: the request of a message in progress is then lost, and the target fails with the next packet
// of that message.
class SharedReceiveQueue {
 public:
  // May run while queue pairs use the queue; they keep its data. To detect this case, call destroy(), which fails with
  // EBUSY.
  ~SharedReceiveQueue();
  SharedReceiveQueue(const SharedReceiveQueue&) = delete;
  SharedReceiveQueue& operator=(const SharedReceiveQueue&) = delete;
  [[nodiscard]] uint32_t number() const;  // identifies the queue in asynchronous events
  // As ibv_get_srq_num: number of the queue in messages, 24 bits; 0 if it is not of an XRC domain.
  [[nodiscard]] uint32_t xrc_number() const;

  // As ibv_post_srq_recv: 0, or ENOMEM (full) or EINVAL (too many SGEs) with *bad at the first request not accepted.
  [[nodiscard]] int post_recv(ibv_recv_wr* list, ibv_recv_wr** bad);

  // `mask` is a set of ibv_srq_attr_mask. IBV_SRQ_MAX_WR resizes to exactly max_wr, which must hold the pending
  // requests. IBV_SRQ_LIMIT arms the limit: when fewer than srq_limit requests are pending, IBV_EVENT_SRQ_LIMIT_REACHED
  // is raised and the limit becomes 0. The event is raised at once if fewer are pending already. On error nothing
  // changes.
  [[nodiscard]] Status modify(const ibv_srq_attr& attr, int mask);
  [[nodiscard]] ibv_srq_attr query() const;

 private:
  friend class ProtectionDomain;
  friend Status destroy(std::unique_ptr<SharedReceiveQueue>& queue);
  SharedReceiveQueue(std::shared_ptr<Host> host, std::shared_ptr<SharedReceiveRing> ring);
  void leave_domain();
  std::shared_ptr<Host> host_;
  std::shared_ptr<SharedReceiveRing> ring_;
  std::unique_ptr<XrcReceiveQueue> xrc_;  // null if not of an XRC domain
};

// As ibv_destroy_srq: fails with EBUSY while queue pairs use the queue.
[[nodiscard]] Status destroy(std::unique_ptr<SharedReceiveQueue>& queue);

}  // namespace roci

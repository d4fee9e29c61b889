// A receive queue that several queue pairs share. Part of roci/device.hpp.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>

#include "roci/result.hpp"

namespace roci {

class Host;
class SharedReceiveRing;
struct XrcReceiveQueue;

// As ibv_srq. Made by ProtectionDomain::create_srq(); RC, UC and UD queue pairs of the device may use it, whatever their
// protection domain: its requests name memory of its own domain (IBTA 10.2.3).
//
// A queue pair takes a request when a message for it starts. On an empty queue RC answers "receiver not ready", UC and
// UD drop the message. A queue pair in error leaves what waits here to the others and raises
// IBV_EVENT_QP_LAST_WQE_REACHED when it holds nothing of it any more; one that is reset or destroyed in the midst of a
// message loses the request that it holds.
//
// One of an XRC domain serves the domain's targets instead: each message names it. An empty one answers "receiver not
// ready"; its completions go to a queue of its own and name the target in qp_num. It may go at any time: the request that
// a message under way holds goes with it, and the message's target fails with its next packet.
class SharedReceiveQueue {
 public:
  // Queue pairs that still use the queue keep what they need of it; destroy() refuses instead.
  ~SharedReceiveQueue();
  SharedReceiveQueue(const SharedReceiveQueue&) = delete;
  SharedReceiveQueue& operator=(const SharedReceiveQueue&) = delete;
  [[nodiscard]] uint32_t number() const;  // in asynchronous events
  // As ibv_get_srq_num: what messages name it by, 24 bits; 0 for one that is not of an XRC domain.
  [[nodiscard]] uint32_t xrc_number() const;

  // As ibv_post_srq_recv: 0, or ENOMEM (full) or EINVAL (too many pieces) with *bad at the request that was not taken.
  [[nodiscard]] int post_recv(ibv_recv_wr* list, ibv_recv_wr** bad);

  // `mask` is a set of ibv_srq_attr_mask. IBV_SRQ_MAX_WR resizes to exactly max_wr, which must hold what waits.
  // IBV_SRQ_LIMIT arms the limit: once fewer than srq_limit requests wait, IBV_EVENT_SRQ_LIMIT_REACHED is raised and the
  // limit is 0 again. That is at once when fewer are there already. Nothing is changed on error.
  [[nodiscard]] Status modify(const ibv_srq_attr& attr, int mask);
  [[nodiscard]] ibv_srq_attr query() const;

 private:
  friend class ProtectionDomain;
  friend Status destroy(std::unique_ptr<SharedReceiveQueue>& queue);
  SharedReceiveQueue(std::shared_ptr<Host> host, std::shared_ptr<SharedReceiveRing> ring);
  void leave_domain();
  std::shared_ptr<Host> host_;
  std::shared_ptr<SharedReceiveRing> ring_;
  std::unique_ptr<XrcReceiveQueue> xrc_;  // null for one that is not of an XRC domain
};

// As ibv_destroy_srq: EBUSY, and the queue stays, while queue pairs use it.
Status destroy(std::unique_ptr<SharedReceiveQueue>& queue);

}  // namespace roci

// XRC domains (IBTA annex A14): what the receiving ends of eXtended Reliable Connections and the shared receive queues that
// their messages name have in common. Part of roci/device.hpp.
#pragma once

#include <infiniband/verbs.h>

#include <memory>

#include "roci/result.hpp"

namespace roci {

class Host;
class QueuePair;
struct XrcDomainCore;
class EventQueue;

// As ibv_xrcd. Made by Device::open_xrc_domain(); ProtectionDomain::create_srq() makes shared receive queues in it.
class XrcDomain {
 public:
  // What is in the domain goes on; destroy() refuses instead.
  ~XrcDomain();
  XrcDomain(const XrcDomain&) = delete;
  XrcDomain& operator=(const XrcDomain&) = delete;

  // A queue pair of type XRC_RECV: it answers an XRC_SEND queue pair, and has no queue, completion queue or protection
  // domain of its own. A message takes its receive request from the shared receive queue that it names, which must be of
  // this domain, and may touch what that one's protection domain holds, as far as the target's access flags allow. A
  // message that names any other queue is an invalid request. Of `init` qp_type, which must be XRC_RECV, and qp_context
  // count; init->cap comes back as 0.
  [[nodiscard]] Result<std::unique_ptr<QueuePair>> create_target(ibv_qp_init_attr* init);

 private:
  friend class Device;
  friend class ProtectionDomain;
  friend Status destroy(std::unique_ptr<XrcDomain>& domain);
  XrcDomain(std::shared_ptr<Host> host, std::shared_ptr<EventQueue> events);
  std::shared_ptr<Host> host_;
  std::shared_ptr<EventQueue> events_;  // of who made it
  std::shared_ptr<XrcDomainCore> core_;
};

// As ibv_close_xrcd: EBUSY, and the domain stays, while shared receive queues or targets use it.
Status destroy(std::unique_ptr<XrcDomain>& domain);

}  // namespace roci

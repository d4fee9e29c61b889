// XRC domain (IBTA annex A14): connects the targets of eXtended Reliable Connections with the shared receive queues
// that messages select. Part of roci/device.hpp.
#pragma once

#include <infiniband/verbs.h>

#include <memory>

#include "roci/result.hpp"

namespace roci {

class Host;
class QueuePair;
struct XrcDomainCore;
class EventQueue;

// XRC domain, as ibv_xrcd. Created by Device::open_xrc_domain(). ProtectionDomain::create_srq() creates its SRQs.
class XrcDomain {
 public:
  // May run while shared receive queues or targets use the domain; they continue to work. To detect this case, call
  // destroy(), which fails with EBUSY.
  ~XrcDomain();
  XrcDomain(const XrcDomain&) = delete;
  XrcDomain& operator=(const XrcDomain&) = delete;

  // Creates a queue pair of type XRC_RECV, the responder of an XRC_SEND queue pair. It has no receive queue, completion
  // queue or protection domain. A message takes its receive request from the SRQ that it specifies, which must be of
  // this domain; another queue is an invalid request. The message may access memory of the SRQ's protection domain, as
  // far as the target's access flags allow. Of `init`, qp_type (XRC_RECV) and qp_context are used; init->cap
  // is set to 0.
  [[nodiscard]] Result<std::unique_ptr<QueuePair>> create_target(ibv_qp_init_attr* init);

 private:
  friend class Device;
  friend class ProtectionDomain;
  friend Status destroy(std::unique_ptr<XrcDomain>& domain);
  XrcDomain(std::shared_ptr<Host> host, std::shared_ptr<EventQueue> events);
  std::shared_ptr<Host> host_;
  std::shared_ptr<EventQueue> events_;  // of the Device that created the domain
  std::shared_ptr<XrcDomainCore> core_;
};

// As ibv_close_xrcd: fails with EBUSY while shared receive queues or targets use the domain.
[[nodiscard]] Status destroy(std::unique_ptr<XrcDomain>& domain);

}  // namespace roci

// XRC domains of the C++ API, and their shared receive queues.
#include <mutex>
#include <utility>

#include "device/host/host.hpp"
#include "roci/device.hpp"
#include "transport/xrc/xrc_target.hpp"

namespace roci {

Result<std::unique_ptr<XrcDomain>> Device::open_xrc_domain() {
  return std::unique_ptr<XrcDomain>(new XrcDomain(host_, events_));
}

XrcDomain::XrcDomain(std::shared_ptr<Host> host, std::shared_ptr<EventQueue> events)
    : host_(std::move(host)), events_(std::move(events)), core_(std::make_shared<XrcDomainCore>()) {}
XrcDomain::~XrcDomain() = default;

Status destroy(std::unique_ptr<XrcDomain>& domain) {
  if (domain == nullptr) return {};
  if (const uint32_t users = domain->core_->users; users > 0) {
    return fail("XRC domain: " + std::to_string(users) +
                    " shared receive queues and targets use it; destroy them first",
                EBUSY);
  }
  domain.reset();
  return {};
}

Result<std::unique_ptr<SharedReceiveQueue>> ProtectionDomain::create_srq(ibv_srq_init_attr* init,
                                                                         XrcDomain& domain,
                                                                         CompletionQueue& cq) {
  if (domain.host_ != host_ || cq.host_ != host_) {
    return fail(
        "shared receive queue: the XRC domain, the completion queue and the protection domain must belong to "
        "the same device");
  }
  auto queue = create_srq(init);
  if (!queue) return queue;
  auto xrc = std::make_unique<XrcReceiveQueue>();
  xrc->domain = domain.core_;
  xrc->requests = (*queue)->ring_;
  xrc->completions = cq.ring_;
  const std::scoped_lock guard(host_->all_workers());
  do {
    xrc->number = Srqn{host_->ids().next24()};
  } while (xrc->number.value() == 0 || !host_->xrc_queues().by_number.insert(xrc->number.value(), xrc.get()));
  ++domain.core_->users;
  (*queue)->xrc_ = std::move(xrc);
  return queue;
}

uint32_t SharedReceiveQueue::xrc_number() const { return xrc_ == nullptr ? 0 : xrc_->number.value(); }

// The caller holds all tokens.
void SharedReceiveQueue::leave_domain() {
  host_->xrc_queues().by_number.erase(xrc_->number.value());
  for (uint32_t i = 0; i < host_->workers(); ++i) {
    host_->worker(i).for_each_queue_pair([this](AttachedQueuePair& qp) {
      if (qp.core.config.type == IBV_QPT_XRC_RECV) static_cast<XrcTarget&>(qp.core).detach(*xrc_);
    });
  }
  --xrc_->domain->users;
}

}  // namespace roci

// XRC objects of a LiveHost: domains, shared receive queues, targets, and their invariants.
#include <algorithm>
#include <cerrno>

#include "fuzz/fuzz_opcodes.hpp"
#include "fuzz/live_host.hpp"

namespace roci::test {
namespace {

constexpr uint32_t kQueueLength = 16;
// The target of the second domain permits only READs, so that nothing is written to the memory of the other protection
// domain.
constexpr size_t kFirstQueueOfSecondDomain = 2;

// XRC opcodes that a target receives, or those that an initiator receives.
std::vector<OpcodeInfo> xrc_opcodes(bool requests) {
  std::vector<OpcodeInfo> table;
  for (const OpcodeInfo& info : opcode_table()) {
    if (info.transport == TransportClass::kXrc && info.is_request() == requests) table.push_back(info);
  }
  return table;
}

}  // namespace

const OpcodeInfo& LiveHost::opcode_of(const Step& step, const Slot& slot) const {
  static const std::vector<OpcodeInfo> kRequests = xrc_opcodes(true), kResponses = xrc_opcodes(false);
  if (slot.type == IBV_QPT_RC || (step.opcode & kAnyOpcode) != 0)
    return fuzz::opcode_of(step.opcode & ~kAnyOpcode);
  const auto& table = slot.type == IBV_QPT_XRC_RECV ? kRequests : kResponses;
  return table[step.opcode % table.size()];
}

uint32_t LiveHost::xrc_number_of(const Step& step) const {
  const auto number = [&](size_t queue) {
    return xrc_queues_[queue].srq == nullptr ? 0 : xrc_queues_[queue].srq->xrc_number();
  };
  switch (step.types % 16U) {
    case 4:
      return stale_xrc_number_;
    case 5:
      return srq_->number();
    case 6:
      return 0xffffff;
    case 7:
      return uint32_t{step.extra} << 24U | number(0);
    default:
      return number(step.types % kXrcQueues);
  }
}

void LiveHost::make_xrc_queues() {
  xrc_cq_ = make_cq();
  for (size_t i = 0; i < kXrcQueues; ++i) {
    xrc_queues_[i].cq = i % 2 == 0 ? side_.cq.get() : xrc_cq_.get();
    make_xrc_queue(i);
  }
}

void LiveHost::open_domain(size_t index) {
  domains_[index] = {must(side_.device->open_xrc_domain()), ++domains_opened_};
}

void LiveHost::make_xrc_queue(size_t index) {
  XrcQueue& queue = xrc_queues_[index];
  const LiveDomain& domain = domains_[index < kFirstQueueOfSecondDomain ? 0 : 1];
  ibv_srq_init_attr init{};
  init.attr.max_wr = kQueueLength;
  init.attr.max_sge = 2;
  ProtectionDomain& pd = index == kForeignQueue ? *foreign_pd_ : *side_.pd;
  queue.srq = must(pd.create_srq(&init, *domain.domain, *queue.cq));
  queue.domain = domain.number;
  Step post;
  post.slot = 2;  // a target
  post.types = static_cast<uint8_t>(index - post.slot);
  Step::set(post.length, 2048);
  for (unsigned i = 0; i < setup_.receives % 16U; ++i) receive(post);
}

// The requests of the queue that have no completion now never complete.
void LiveHost::drop_xrc_queue(size_t index) {
  XrcQueue& queue = xrc_queues_[index];
  poll();
  if (queue.srq != nullptr) stale_xrc_number_ = queue.srq->xrc_number();
  must(destroy(queue.srq));
  queue.receives.clear();
}

void LiveHost::make_target(Slot& slot, ibv_qp_init_attr& init) {
  const LiveDomain& domain = domains_[&slot == &slots_[kForeignSlot] ? 1 : 0];
  slot.qp = must(domain.domain->create_target(&init));
  slot.domain = domain.number;
}

void LiveHost::call_xrc(const Step& step) {
  const size_t index = step.slot % kXrcQueues;
  const size_t domain = step.slot % kXrcDomains;
  XrcQueue& queue = xrc_queues_[index];
  ibv_srq_attr attr{};
  switch (static_cast<XrcCall>(step.opcode % kXrcCalls)) {
    case XrcCall::kReplaceQueue:
      drop_xrc_queue(index);
      return make_xrc_queue(index);
    case XrcCall::kDestroyQueue:
      return drop_xrc_queue(index);
    case XrcCall::kMakeQueue:
      if (queue.srq == nullptr) make_xrc_queue(index);
      return;
    case XrcCall::kResizeQueue:
      attr.max_wr = step.value;
      if (queue.srq != nullptr) (void)queue.srq->modify(attr, IBV_SRQ_MAX_WR);  // may hold too many requests
      return;
    case XrcCall::kArmLimit:
      if (queue.srq != nullptr) (void)arm(*queue.srq, step.value % 20U);
      return;
    case XrcCall::kCloseDomain:
      return close_domain(domain);
    case XrcCall::kDropDomain:
      domains_[domain].domain.reset();
      return open_domain(domain);
    case XrcCall::kReplaceDomain:
      return replace_domain(domain, (step.extra & 1) != 0);
  }
}

void LiveHost::close_domain(size_t index) {
  LiveDomain& closed = domains_[index];
  const auto is_user = [&](const auto& object) { return object.domain == closed.number; };
  const bool used =
      std::ranges::any_of(slots_, is_user) || std::ranges::any_of(xrc_queues_, [&](const XrcQueue& queue) {
        return queue.srq != nullptr && is_user(queue);
      });
  const Status status = destroy(closed.domain);
  require(status.has_value() != used, "a domain is closed if and only if no object uses it");
  if (used) {
    require(status.error().code == EBUSY, "the domain is busy");
  } else {
    open_domain(index);
  }
}

void LiveHost::replace_domain(size_t index, bool targets_first) {
  const uint32_t number = domains_[index].number;
  std::vector<size_t> queues, targets;
  for (size_t i = 0; i < kXrcQueues; ++i) {
    if (xrc_queues_[i].srq != nullptr && xrc_queues_[i].domain == number) queues.push_back(i);
  }
  for (size_t i = 0; i < kSlots; ++i) {
    if (slots_[i].domain == number) targets.push_back(i);
  }
  const auto drop_targets = [&] {
    for (const size_t i : targets) {
      forget_work(slots_[i]);
      slots_[i].qp.reset();
    }
  };
  if (targets_first) drop_targets();
  for (const size_t i : queues) drop_xrc_queue(i);
  if (!targets_first) drop_targets();
  must(destroy(domains_[index].domain));
  open_domain(index);
  for (const size_t i : targets) make_slot(i);
  for (const size_t i : queues) make_xrc_queue(i);
}

// False for the completion of another request.
bool LiveHost::take_xrc_completion(const Slot& slot, const ibv_wc& wc, const CompletionQueue& cq) {
  const auto queue =
      std::ranges::find_if(xrc_queues_, [&](const XrcQueue& one) { return one.receives.contains(wc.wr_id); });
  if (queue == xrc_queues_.end()) return false;
  require(slot.type == IBV_QPT_XRC_RECV, "only targets complete requests of XRC queues");
  require(slot.domain == queue->domain, "a target completes requests of its domain");
  require(queue->cq == &cq, "a completion is in the completion queue of its XRC queue");
  require(wc.src_qp == slot.remote_qp, "a completion contains the initiator");
  require(wc.status != IBV_WC_SUCCESS || wc.opcode == IBV_WC_RECV || wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM,
          "an XRC queue completes receives");
  uint64_t& last = queue->completed[static_cast<size_t>(&slot - slots_.data())];
  require(last < wc.wr_id, "a target completes the requests of a queue in order");
  last = wc.wr_id;
  queue->receives.erase(wc.wr_id);
  return true;
}

// A target that is reset or destroyed loses the request of its current message.
void LiveHost::forget_xrc_receive(const Slot& slot) {
  auto& held = core(slot).recv_queue;
  if (held.empty()) return;
  for (XrcQueue& queue : xrc_queues_) queue.receives.erase(held.at(held.head()).wr_id);
}

void LiveHost::check_sent_xrc(const FrameView& view) const {
  if (view.opcode->transport != TransportClass::kXrc) return;
  const auto sender = std::ranges::find(slots_, view.destination_qp().value(), &Slot::remote_qp);
  require(sender != slots_.end(), "an XRC packet goes to a connected queue pair");
  require(sender->type == (view.opcode->is_request() ? IBV_QPT_XRC_SEND : IBV_QPT_XRC_RECV),
          "initiators send requests, targets send responses");
}

// After all targets were stopped: each request without a completion is still in its queue.
void LiveHost::check_xrc_queues() {
  if (may_have_lost()) return;
  for (const XrcQueue& queue : xrc_queues_) {
    if (queue.srq == nullptr) continue;
    uint32_t free_slots = 0;
    ibv_recv_wr wr{};
    ibv_recv_wr* bad = nullptr;
    while (queue.srq->post_recv(&wr, &bad) == 0) ++free_slots;
    require(queue.srq->query().max_wr - free_slots == queue.receives.size(),
            "a request of an XRC queue completes or remains in the queue");
  }
}

}  // namespace roci::test

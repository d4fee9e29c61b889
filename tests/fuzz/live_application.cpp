// Application of a LiveHost.
#include <cstring>

#include "fuzz/live_host.hpp"

namespace roci::test {
namespace {

constexpr ibv_wr_opcode kOpcodes[] = {
    IBV_WR_SEND,      IBV_WR_SEND_WITH_IMM,      IBV_WR_RDMA_WRITE,           IBV_WR_RDMA_WRITE_WITH_IMM,
    IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_BIND_MW,
    IBV_WR_BIND_MW,   IBV_WR_LOCAL_INV,          IBV_WR_SEND_WITH_INV,
};
constexpr uint8_t kRead = 4, kBindTypeOne = 7, kBindTypeTwo = 8;
constexpr uint32_t kMax = 17'000;  // bytes per request; longer than the memory
constexpr unsigned kSendFlags = IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE;

}  // namespace

void LiveHost::post(const Step& step) {
  Slot& slot = slots_[step.slot % kSlots];
  const auto choice = static_cast<uint8_t>(step.opcode % std::size(kOpcodes));
  // Nothing may be written to the memory of its protection domain.
  if (&slot == &slots_[kForeignSlot] && choice >= kRead && choice < kBindTypeOne) return;
  const Opened local = opened_by(step);
  ibv_sge list[2];
  list[0] = {local.address + Step::number(step.offset), Step::number(step.length) % kMax, local.key};
  list[1] = list[0];
  list[1].length = 1;
  ibv_send_wr wr{};
  wr.wr_id = next_id_;
  wr.sg_list = list;
  wr.num_sge = list[0].length == 0 ? 0 : 1 + (step.extra & 1);
  wr.opcode = kOpcodes[choice];
  wr.send_flags = step.flags & kSendFlags;
  if (slot.type == IBV_QPT_XRC_SEND) wr.qp_type.xrc.remote_srqn = xrc_number_of(step);
  // Inline data is copied without a key check, so the address must be valid.
  if ((wr.send_flags & IBV_SEND_INLINE) != 0)
    list[0].addr = list[1].addr = side_.address(kMainAt) + Step::number(step.offset) % (kMain - 128);
  switch (wr.opcode) {
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      list[0].length = 8;
      wr.num_sge = 1;
      wr.wr.atomic = {0x10000, 1, 2, 0x77};
      break;
    case IBV_WR_BIND_MW: {
      if (!has_main()) return;
      const uint64_t at = side_.address(kMainAt) + Step::number(step.offset);
      unsigned access = IBV_ACCESS_REMOTE_WRITE;
      if ((step.extra & 2) != 0) access |= IBV_ACCESS_REMOTE_READ;
      const ibv_mw_bind_info info{side_.region->verbs(), at, list[0].length, access};
      if (choice == kBindTypeOne) {
        ibv_mw_bind bind{};
        bind.wr_id = next_id_;
        bind.send_flags = wr.send_flags;
        bind.bind_info = info;
        if (slot.qp->bind_window(*window_one_, bind) == 0) slot.sends.push_back(next_id_++);
        return;
      }
      wr.num_sge = 0;
      wr.bind_mw = {window_two_->verbs(), window_two_key_, info};
      break;
    }
    case IBV_WR_LOCAL_INV:
      wr.num_sge = 0;
      wr.invalidate_rkey = local.key;
      break;
    case IBV_WR_SEND_WITH_INV:
      wr.invalidate_rkey = 0x77;
      break;
    default:
      if (slot.type == IBV_QPT_UD) {
        wr.wr.ud = {handles_[step.value % handles_.size()]->handle(), slot.remote_qp, kQkey};
      } else {
        wr.wr.rdma = {0x10000, 0x77};
      }
  }
  ibv_send_wr* bad = nullptr;
  if (slot.qp->post_send(&wr, &bad) != 0) return;
  if (choice == kBindTypeTwo) window_two_key_ = ibv_inc_rkey(window_two_key_);
  slot.sends.push_back(next_id_++);
}

void LiveHost::receive(const Step& step) {
  Slot& slot = slots_[step.slot % kSlots];
  XrcQueue* const queue =
      slot.type == IBV_QPT_XRC_RECV ? &xrc_queues_[(step.slot + step.types) % kXrcQueues] : nullptr;
  const bool foreign =
      queue == nullptr ? &slot == &slots_[kForeignSlot] : queue == &xrc_queues_[kForeignQueue];
  if (foreign && (queue == nullptr || step.key % kKeys == kForeignKey)) return;  // same reason
  const Opened local = opened_by(step);
  ibv_sge list{local.address + Step::number(step.offset), Step::number(step.length) % kMax, local.key};
  ibv_recv_wr wr{};
  wr.wr_id = next_id_;
  wr.sg_list = &list;
  wr.num_sge = list.length == 0 ? 0 : 1;
  ibv_recv_wr* bad = nullptr;
  if (queue != nullptr) {
    if (queue->srq != nullptr && queue->srq->post_recv(&wr, &bad) == 0) queue->receives.insert(next_id_++);
  } else if (slot.shared) {
    if (srq_->post_recv(&wr, &bad) == 0) shared_receives_.insert(next_id_++);
  } else if (slot.qp->post_recv(&wr, &bad) == 0) {
    slot.receives.push_back(next_id_++);
  }
}

// The state change removes the outstanding requests: they will not complete.
void LiveHost::forget_work(Slot& slot) {
  poll();
  slot.sends.clear();
  slot.receives.clear();
  if (slot.type == IBV_QPT_XRC_RECV) forget_xrc_receive(slot);
}

void LiveHost::set_state(Slot& slot, ibv_qp_state state) {
  ibv_qp_attr attr{};
  attr.qp_state = state;
  if (!slot.qp->modify(attr, IBV_QP_STATE)) return;
  slot.state = slot.qp->state();
}

void LiveHost::control(const Step& step) {
  const size_t index = step.slot % kSlots;
  Slot& slot = slots_[index];
  check_states();
  switch (static_cast<Control>(step.opcode % kControls)) {
    case Control::kError:
      return set_state(slot, IBV_QPS_ERR);
    case Control::kReconnect:
    case Control::kReset:
      forget_work(slot);
      set_state(slot, IBV_QPS_RESET);
      if (static_cast<Control>(step.opcode % kControls) == Control::kReconnect) connect(slot);
      return;
    case Control::kConnect:
      if (slot.state == IBV_QPS_RESET) connect(slot);
      return;
    case Control::kDrain:
      return set_state(slot, IBV_QPS_SQD);
    case Control::kResume:
      if (slot.state == IBV_QPS_SQD || slot.state == IBV_QPS_SQE) set_state(slot, IBV_QPS_RTS);
      return;
    case Control::kRecreate:
      forget_work(slot);
      slot.qp.reset();
      return make_slot(index);
    case Control::kBlockPort:
      port_->blocked = !port_->blocked;
      return;
    case Control::kDeregister:
      if (!has_main()) return;
      stale_key_ = side_.region->rkey();
      if ((step.extra & 1) != 0) {
        (void)side_.region->deregister();  // rejected while windows are bound
        side_.region.reset();
      } else {
        side_.region.reset();
      }
      golden_ = side_.memory;
      return;
    case Control::kRegister:
      if (!has_main()) register_main();
      return;
    case Control::kPoll:
      return poll();
    case Control::kArmLimit:
      (void)arm(*srq_, step.value % 20U);
      return;
    case Control::kGroup:
      if (slot.type != IBV_QPT_UD) return;
      slot.in_group = !slot.in_group;
      must(slot.in_group ? slot.qp->attach_multicast(gid_of("239.1.2.3"))
                         : slot.qp->detach_multicast(gid_of("239.1.2.3")));
      return;
    case Control::kNotify:
      side_.cq->request_notify((step.extra & 1) != 0);
      if (auto* reliable = dynamic_cast<ReliableQueuePair*>(&core(slot)))
        reliable->requester.request_probe(now_);
      return;
    case Control::kChange:
      return change(slot, step);
    case Control::kNewWindow:
      window_two_.reset();
      window_two_ = must(side_.pd->allocate_window(IBV_MW_TYPE_2));
      window_two_key_ = ibv_inc_rkey(window_two_->rkey());
      return;
  }
}

// Changes attributes that may change in RTS.
void LiveHost::change(Slot& slot, const Step& step) {
  if (slot.state != IBV_QPS_RTS || (slot.type != IBV_QPT_RC && slot.type != IBV_QPT_XRC_RECV)) return;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  if ((step.extra & 1) != 0 && &slot != &slots_[kForeignSlot]) {
    attr.qp_access_flags = IBV_ACCESS_REMOTE_READ;
    if ((step.extra & 2) == 0) attr.qp_access_flags |= IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
    must(slot.qp->modify(attr, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS));
  } else {
    attr.min_rnr_timer = step.value % 32U;
    must(slot.qp->modify(attr, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER));
  }
}

}  // namespace roci::test

#include "rdmacm/sockets/datagram_queues.hpp"

#include <algorithm>
#include <cerrno>

#include "rdmacm/id.hpp"

namespace roci::rdmacm::sockets {
namespace {

constexpr size_t kReceiveSlot = sizeof(ibv_grh) + kDatagramBuffer;
constexpr uint64_t kIsSend = uint64_t{1} << 32;  // bit of request ids; the low bits are the slot

uint32_t slots_for(uint32_t ring, uint32_t queue) {
  return std::clamp(ring / static_cast<uint32_t>(kDatagramBuffer), 1U, queue);
}

}  // namespace

std::unique_ptr<DatagramQueues> DatagramQueues::make(const Sizes& sizes) {
  std::unique_ptr<DatagramQueues> made(new DatagramQueues);
  return made->set_up(sizes) ? std::move(made) : nullptr;
}

bool DatagramQueues::set_up(const Sizes& sizes) {
  if (!make_pair(sizes)) return false;
  send_memory_.resize(send_slots_ * kDatagramBuffer);
  receive_memory_.resize(receive_slots_ * kReceiveSlot);
  send_region_ = ibv_reg_mr(pair_->pd, send_memory_.data(), send_memory_.size(), 0);
  constexpr int kWritten = IBV_ACCESS_LOCAL_WRITE;
  receive_region_ = ibv_reg_mr(pair_->pd, receive_memory_.data(), receive_memory_.size(), kWritten);
  if (send_region_ == nullptr || receive_region_ == nullptr) return false;
  for (uint32_t slot = send_slots_; slot > 0; --slot) free_.push_back(slot - 1);
  for (uint32_t slot = 0; slot < receive_slots_; ++slot) {
    if (!release(slot)) return false;
  }
  return true;
}

bool DatagramQueues::make_pair(const Sizes& sizes) {
  ibv_context* const context = open_device();
  ibv_pd* const domain = default_pd();
  ibv_port_attr port{};
  if (context == nullptr || domain == nullptr || ibv_query_port(context, 1, &port) != 0) return false;
  most_bytes_ = std::min(kDatagramBuffer, size_t{128} << port.active_mtu);
  send_slots_ = slots_for(sizes.send_ring, sizes.send_queue);
  receive_slots_ = slots_for(sizes.receive_ring, sizes.receive_queue);
  most_inline_ = sizes.most_inline;
  if (!completions_.make(context, send_slots_ + receive_slots_)) return false;
  ibv_qp_init_attr attr{};
  attr.send_cq = attr.recv_cq = completions_.queue();
  attr.qp_type = IBV_QPT_UD;
  attr.sq_sig_all = 1;
  attr.cap = {.max_send_wr = send_slots_,
              .max_recv_wr = receive_slots_,
              .max_send_sge = 1,
              .max_recv_sge = 1,
              .max_inline_data = most_inline_};
  pair_ = ibv_create_qp(domain, &attr);
  return pair_ != nullptr && move_to(IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) &&
         move_to(IBV_QPS_RTR, 0) && move_to(IBV_QPS_RTS, IBV_QP_SQ_PSN);
}

bool DatagramQueues::move_to(ibv_qp_state state, int mask) {
  ibv_qp_attr attr{};
  attr.qp_state = state;
  attr.port_num = 1;
  attr.qkey = RDMA_UDP_QKEY;
  const int code = ibv_modify_qp(pair_, &attr, IBV_QP_STATE | mask);
  errno = code;
  return code == 0;
}

DatagramQueues::~DatagramQueues() {
  if (pair_ != nullptr) ibv_destroy_qp(pair_);
  if (send_region_ != nullptr) ibv_dereg_mr(send_region_);
  if (receive_region_ != nullptr) ibv_dereg_mr(receive_region_);
}

bool DatagramQueues::next(ibv_wc& completion) {
  while (ibv_poll_cq(completions_.queue(), 1, &completion) > 0) {
    const auto slot = static_cast<uint32_t>(completion.wr_id);
    if ((completion.wr_id & kIsSend) != 0) {
      free_.push_back(slot);
    } else if (completion.status == IBV_WC_SUCCESS && (completion.wc_flags & IBV_WC_GRH) != 0) {
      return true;
    } else if (completion.status != IBV_WC_WR_FLUSH_ERR && !release(slot)) {
      return false;
    }
  }
  return false;
}

DatagramQueues::Received DatagramQueues::received_of(const ibv_wc& completion) {
  const auto slot = static_cast<uint32_t>(completion.wr_id);
  return {
      slot,
      std::span(receive_memory_).subspan(slot * kReceiveSlot, completion.byte_len).subspan(sizeof(ibv_grh))};
}

ibv_grh* DatagramQueues::grh_of(const ibv_wc& completion) {
  return reinterpret_cast<ibv_grh*>(&receive_memory_[static_cast<uint32_t>(completion.wr_id) * kReceiveSlot]);
}

bool DatagramQueues::release(uint32_t slot) {
  ibv_sge entry{reinterpret_cast<uintptr_t>(&receive_memory_[slot * kReceiveSlot]), kReceiveSlot,
                receive_region_->lkey};
  ibv_recv_wr wr{.wr_id = slot, .next = nullptr, .sg_list = &entry, .num_sge = 1};
  ibv_recv_wr* bad = nullptr;
  const int code = ibv_post_recv(pair_, &wr, &bad);
  errno = code;
  return code == 0;
}

std::span<uint8_t> DatagramQueues::outgoing() {
  return std::span(send_memory_).subspan(free_.back() * kDatagramBuffer, most_bytes_);
}

bool DatagramQueues::send(size_t bytes, ibv_ah* to, uint32_t qpn) {
  const uint32_t slot = free_.back();
  ibv_sge entry{reinterpret_cast<uintptr_t>(&send_memory_[slot * kDatagramBuffer]),
                static_cast<uint32_t>(bytes), send_region_->lkey};
  ibv_send_wr wr{};
  wr.wr_id = kIsSend | slot;
  wr.sg_list = &entry;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = bytes <= most_inline_ ? IBV_SEND_INLINE : 0;
  wr.wr.ud.ah = to;
  wr.wr.ud.remote_qpn = qpn;
  wr.wr.ud.remote_qkey = RDMA_UDP_QKEY;
  ibv_send_wr* bad = nullptr;
  const int code = ibv_post_send(pair_, &wr, &bad);
  if (code == 0) free_.pop_back();
  errno = code;
  return code == 0;
}

}  // namespace roci::rdmacm::sockets

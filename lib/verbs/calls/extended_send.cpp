// ibv_wr_start and related calls: work requests built call by call. ibv_wr_complete
// posts them as one list, all or none, as these calls require.
#include <infiniband/verbs.h>

#include <cstring>

#include "memory/flush_verbs.hpp"
#include "verbs/calls/calls.hpp"
#include "verbs/error.hpp"
#include "verbs/process/fork_guard.hpp"

namespace roci::verbs {
namespace {

// Operations that programs may request when they create a queue pair.
constexpr uint64_t kOperations =
    IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |
    IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
    IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW |
    IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_ATOMIC_WRITE | kQpExWithFlush;

SendList& list_of(ibv_qp_ex* qp) { return *of<Qp>(qp).list; }

ibv_send_wr& begin(ibv_qp_ex* qp, ibv_wr_opcode opcode) {
  SendList& list = list_of(qp);
  ibv_send_wr wr{};
  wr.wr_id = qp->wr_id;
  wr.opcode = opcode;
  wr.send_flags = qp->wr_flags & ~unsigned{IBV_SEND_INLINE};  // set by set_inline()
  list.requests.push_back(wr);
  list.first_piece.push_back(static_cast<uint32_t>(list.pieces.size()));
  return list.requests.back();
}

// The request that is being built. Null if a setter is called before any request; complete() then returns an error.
ibv_send_wr* last(SendList& list) {
  if (!list.requests.empty()) return &list.requests.back();
  list.error = EINVAL;
  return nullptr;
}

void start(ibv_qp_ex* qp) {
  SendList& list = list_of(qp);
  list.mutex.lock();
  list.requests.clear();
  list.first_piece.clear();
  list.pieces.clear();
  list.inline_bytes.clear();
  list.error = 0;
}

int complete(ibv_qp_ex* qp) {
  SendList& list = list_of(qp);
  if (const int code = refuse_child(); code != 0) {
    list.mutex.unlock();
    return code;
  }
  int code = list.error;
  if (code == 0 && !list.requests.empty()) {
    for (size_t i = 0; i < list.requests.size(); ++i) {
      ibv_send_wr& wr = list.requests[i];
      wr.sg_list = list.pieces.data() + list.first_piece[i];
      if ((wr.send_flags & IBV_SEND_INLINE) != 0) {
        for (int p = 0; p < wr.num_sge; ++p)
          wr.sg_list[p].addr += reinterpret_cast<uint64_t>(list.inline_bytes.data());
      }
      wr.next = i + 1 < list.requests.size() ? &list.requests[i + 1] : nullptr;
    }
    code = of<Qp>(qp).queue_pair->post_send_all(list.requests.data());
  }
  list.mutex.unlock();
  Context::of(qp->qp_base.context).device->progress();
  return code;
}

void abort(ibv_qp_ex* qp) { list_of(qp).mutex.unlock(); }

void set_inline(SendList& list, ibv_send_wr& wr, const void* bytes, size_t length) {
  wr.send_flags |= IBV_SEND_INLINE;
  list.pieces.push_back(
      {.addr = list.inline_bytes.size(), .length = static_cast<uint32_t>(length), .lkey = 0});
  ++wr.num_sge;
  const auto* from = static_cast<const uint8_t*>(bytes);
  list.inline_bytes.insert(list.inline_bytes.end(), from, from + length);
}

void set_inline_data(ibv_qp_ex* qp, void* bytes, size_t length) {
  SendList& list = list_of(qp);
  if (ibv_send_wr* wr = last(list)) set_inline(list, *wr, bytes, length);
}

// Inline data may have more pieces than a scatter list: they are merged into one piece.
void set_inline_data_list(ibv_qp_ex* qp, size_t count, const ibv_data_buf* buffers) {
  SendList& list = list_of(qp);
  ibv_send_wr* wr = last(list);
  if (wr == nullptr) return;
  set_inline(list, *wr, nullptr, 0);
  for (size_t i = 0; i < count; ++i) {
    const auto* from = static_cast<const uint8_t*>(buffers[i].addr);
    list.inline_bytes.insert(list.inline_bytes.end(), from, from + buffers[i].length);
    list.pieces.back().length += static_cast<uint32_t>(buffers[i].length);
  }
}

void set_sge_list(ibv_qp_ex* qp, size_t count, const ibv_sge* pieces) {
  SendList& list = list_of(qp);
  ibv_send_wr* wr = last(list);
  if (wr == nullptr) return;
  list.pieces.insert(list.pieces.end(), pieces, pieces + count);
  wr->num_sge += static_cast<int>(count);
}

void set_sge(ibv_qp_ex* qp, uint32_t lkey, uint64_t address, uint32_t length) {
  const ibv_sge piece{.addr = address, .length = length, .lkey = lkey};
  set_sge_list(qp, 1, &piece);
}

void set_ud_address(ibv_qp_ex* qp, ibv_ah* ah, uint32_t remote_qpn, uint32_t remote_qkey) {
  ibv_send_wr* wr = last(list_of(qp));
  if (wr == nullptr) return;
  wr->wr.ud.ah = ah;
  wr->wr.ud.remote_qpn = remote_qpn;
  wr->wr.ud.remote_qkey = remote_qkey;
}

void set_xrc_srqn(ibv_qp_ex* qp, uint32_t number) {
  if (ibv_send_wr* wr = last(list_of(qp))) wr->qp_type.xrc.remote_srqn = number;
}

void begin_rdma(ibv_qp_ex* qp, ibv_wr_opcode opcode, uint32_t rkey, uint64_t address) {
  ibv_send_wr& wr = begin(qp, opcode);
  wr.wr.rdma.remote_addr = address;
  wr.wr.rdma.rkey = rkey;
}

}  // namespace

Status fill_sending(Qp& qp, uint64_t operations) {
  if ((operations & ~kOperations) != 0) {
    return fail("queue pair: send operations " + std::to_string(operations) + " contain unknown bits; " +
                    std::to_string(kOperations) + " is the set of all operations",
                EOPNOTSUPP);
  }
  qp.list = std::make_unique<SendList>();
  WithFlush<ibv_qp_ex>& verbs = qp.verbs;
  verbs.wr_start = start;
  verbs.wr_complete = complete;
  verbs.wr_abort = abort;
  verbs.wr_send = [](ibv_qp_ex* to) { begin(to, IBV_WR_SEND); };
  verbs.wr_send_imm = [](ibv_qp_ex* to, __be32 data) { begin(to, IBV_WR_SEND_WITH_IMM).imm_data = data; };
  verbs.wr_send_inv = [](ibv_qp_ex* to, uint32_t rkey) {
    begin(to, IBV_WR_SEND_WITH_INV).invalidate_rkey = rkey;
  };
  verbs.wr_rdma_write = [](ibv_qp_ex* to, uint32_t rkey, uint64_t address) {
    begin_rdma(to, IBV_WR_RDMA_WRITE, rkey, address);
  };
  verbs.wr_rdma_write_imm = [](ibv_qp_ex* to, uint32_t rkey, uint64_t address, __be32 data) {
    begin_rdma(to, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, address);
    list_of(to).requests.back().imm_data = data;
  };
  verbs.wr_rdma_read = [](ibv_qp_ex* to, uint32_t rkey, uint64_t address) {
    begin_rdma(to, IBV_WR_RDMA_READ, rkey, address);
  };
  verbs.wr_atomic_cmp_swp = [](ibv_qp_ex* to, uint32_t rkey, uint64_t address, uint64_t compare,
                               uint64_t swap) {
    ibv_send_wr& wr = begin(to, IBV_WR_ATOMIC_CMP_AND_SWP);
    wr.wr.atomic = {.remote_addr = address, .compare_add = compare, .swap = swap, .rkey = rkey};
  };
  verbs.wr_atomic_fetch_add = [](ibv_qp_ex* to, uint32_t rkey, uint64_t address, uint64_t add) {
    ibv_send_wr& wr = begin(to, IBV_WR_ATOMIC_FETCH_AND_ADD);
    wr.wr.atomic = {.remote_addr = address, .compare_add = add, .swap = 0, .rkey = rkey};
  };
  verbs.wr_atomic_write = [](ibv_qp_ex* to, uint32_t rkey, uint64_t address, const void* value) {
    begin_rdma(to, IBV_WR_ATOMIC_WRITE, rkey, address);
    SendList& list = list_of(to);
    set_inline(list, list.requests.back(), value, sizeof(uint64_t));
  };
  verbs.wr_flush = [](ibv_qp_ex* to, uint32_t rkey, uint64_t address, size_t length, uint8_t type,
                      uint8_t level) { set_flush(begin(to, kWrFlush), address, length, rkey, level, type); };
  verbs.wr_bind_mw = [](ibv_qp_ex* to, ibv_mw* window, uint32_t rkey, const ibv_mw_bind_info* info) {
    ibv_send_wr& wr = begin(to, IBV_WR_BIND_MW);
    wr.bind_mw.mw = window;
    wr.bind_mw.rkey = rkey;
    wr.bind_mw.bind_info = *info;
  };
  verbs.wr_local_inv = [](ibv_qp_ex* to, uint32_t rkey) {
    begin(to, IBV_WR_LOCAL_INV).invalidate_rkey = rkey;
  };
  verbs.wr_set_sge = set_sge;
  verbs.wr_set_sge_list = set_sge_list;
  verbs.wr_set_inline_data = set_inline_data;
  verbs.wr_set_inline_data_list = set_inline_data_list;
  verbs.wr_set_ud_addr = set_ud_address;
  verbs.wr_set_xrc_srqn = set_xrc_srqn;
  return {};
}

}  // namespace roci::verbs

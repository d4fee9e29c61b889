#include "support/hosts/xrc.hpp"

namespace roci::test {

std::unique_ptr<SharedReceiveQueue> make_xrc_srq(Side& side, XrcDomain& domain, CompletionQueue& cq,
                                                 uint32_t max_wr, uint32_t max_sge) {
  ibv_srq_init_attr init{};
  init.attr.max_wr = max_wr;
  init.attr.max_sge = max_sge;
  return must(side.pd->create_srq(&init, domain, cq));
}

std::unique_ptr<QueuePair> make_target(XrcDomain& domain, void* context) {
  ibv_qp_init_attr init{};
  init.qp_type = IBV_QPT_XRC_RECV;
  init.qp_context = context;
  return must(domain.create_target(&init));
}

int send_xrc(Side& side, QueuePair& qp, const XrcOptions& options) {
  const SendOptions& request = options.request;
  ibv_sge list = side.sge(request.offset, request.length);
  ibv_send_wr wr{};
  wr.wr_id = request.wr_id;
  wr.sg_list = &list;
  wr.num_sge = request.length == 0 ? 0 : 1;
  wr.opcode = request.opcode;
  wr.send_flags = request.flags;
  wr.imm_data = __builtin_bswap32(request.immediate);
  wr.qp_type.xrc.remote_srqn = options.srq;
  if (wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    wr.wr.atomic = {request.remote, options.compare_add, options.swap, request.rkey};
  } else {
    wr.wr.rdma = {request.remote, request.rkey};
  }
  ibv_send_wr* bad = nullptr;
  return qp.post_send(&wr, &bad);
}

Lines completion_lines_of(CompletionQueue& cq) {
  Lines lines;
  ibv_wc wc{};
  while (cq.poll(1, &wc) == 1) {
    std::string line = std::to_string(wc.wr_id) + (wc.status == IBV_WC_SUCCESS ? " SUCCESS " : " status ");
    line += std::to_string(wc.status == IBV_WC_SUCCESS ? wc.byte_len : uint32_t{wc.status});
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace roci::test

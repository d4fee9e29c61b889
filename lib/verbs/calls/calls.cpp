#include "verbs/calls/calls.hpp"

namespace roci::verbs {

void fill_calls(Context& context) {
  verbs_context& verbs = context.verbs;
  verbs.sz = sizeof(verbs_context);
  verbs.query_port = query_port;
  verbs.query_device_ex = query_device_ex;
  verbs.query_rt_values = query_rt_values;
  verbs.advise_mr = advise_mr;
  verbs.alloc_null_mr = alloc_null_mr;
  verbs.alloc_dm = alloc_dm;
  verbs.free_dm = free_dm;
  verbs.reg_dm_mr = reg_dm_mr;
  verbs.alloc_td = alloc_td;
  verbs.dealloc_td = dealloc_td;
  verbs.alloc_parent_domain = alloc_parent_domain;
  verbs.create_cq_ex = create_cq_ex;
  verbs.create_qp_ex = create_qp_ex;
  verbs.ibv_create_flow = create_flow;
  verbs.ibv_destroy_flow = destroy_flow;
  verbs.create_wq = create_wq;
  verbs.modify_wq = modify_wq;
  verbs.destroy_wq = destroy_wq;
  verbs.create_rwq_ind_table = create_rwq_ind_table;
  verbs.destroy_rwq_ind_table = destroy_rwq_ind_table;
  verbs.create_srq_ex = create_srq_ex;
  verbs.get_srq_num = get_srq_num;
  verbs.open_xrcd = open_xrcd;
  verbs.close_xrcd = close_xrcd;
  ibv_context_ops& operations = context.handle()->ops;
  operations.alloc_mw = alloc_mw;
  operations.dealloc_mw = dealloc_mw;
  operations.bind_mw = bind_mw;
  operations.poll_cq = poll_cq;
  operations.req_notify_cq = req_notify_cq;
  operations.post_send = post_send;
  operations.post_recv = post_recv;
  operations.post_srq_recv = post_srq_recv;
}

}  // namespace roci::verbs

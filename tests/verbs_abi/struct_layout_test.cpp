// Layout of the verbs structs that applications were compiled with: sizes, and the members that applications read
// without a function call. The checks run at compile time: with other headers, this file does not compile.
#include <infiniband/verbs.h>

#include <cstddef>

namespace roci {
namespace {

// A provider reads members of its own after ibv_device, so the creator of a device must leave zeros there.
static_assert(sizeof(ibv_device) == 664);
static_assert(offsetof(ibv_device, node_type) == 16);
static_assert(offsetof(ibv_device, name) == 24);
static_assert(offsetof(ibv_device, dev_name) == 88);
static_assert(offsetof(ibv_device, ibdev_path) == 408);

static_assert(sizeof(ibv_context) == 328);
static_assert(offsetof(ibv_context, device) == 0);
static_assert(offsetof(ibv_context, ops) == 8);
static_assert(offsetof(ibv_context, async_fd) == 268);
static_assert(offsetof(ibv_context, num_comp_vectors) == 272);
static_assert(offsetof(ibv_context, abi_compat) == 320);
static_assert(sizeof(ibv_context_ops) == 256);
static_assert(offsetof(ibv_context_ops, alloc_mw) == 56);
static_assert(offsetof(ibv_context_ops, poll_cq) == 88);
static_assert(offsetof(ibv_context_ops, req_notify_cq) == 96);
static_assert(offsetof(ibv_context_ops, post_srq_recv) == 160);
static_assert(offsetof(ibv_context_ops, post_send) == 200);
static_assert(offsetof(ibv_context_ops, post_recv) == 208);

// verbs_context grows at its start: new members precede old ones, and `sz` gives the size.
static_assert(sizeof(verbs_context) == 648);
static_assert(offsetof(verbs_context, query_port) == 0);
static_assert(offsetof(verbs_context, create_cq_ex) == 200);
static_assert(offsetof(verbs_context, priv) == 208);
static_assert(offsetof(verbs_context, sz) == 312);
static_assert(offsetof(verbs_context, context) == 320);

static_assert(sizeof(ibv_qp) == 160);
static_assert(offsetof(ibv_qp, qp_num) == 52);
static_assert(offsetof(ibv_qp, state) == 56);
// Newer versions than rdma-core 44 have one more member at the end.
static_assert(sizeof(ibv_qp_ex) == 352 || sizeof(ibv_qp_ex) == 360);
static_assert(offsetof(ibv_qp_ex, qp_base) == 0);
static_assert(offsetof(ibv_qp_ex, wr_id) == 168);
static_assert(offsetof(ibv_qp_ex, wr_start) == 320);

static_assert(sizeof(ibv_cq) == 128);
static_assert(offsetof(ibv_cq, channel) == 8);
static_assert(offsetof(ibv_cq, cqe) == 28);
static_assert(sizeof(ibv_cq_ex) == 288);
static_assert(offsetof(ibv_cq_ex, status) == 132);
static_assert(offsetof(ibv_cq_ex, start_poll) == 144);
static_assert(sizeof(ibv_wc) == 48);
static_assert(offsetof(ibv_wc, qp_num) == 28);
static_assert(sizeof(ibv_comp_channel) == 16);

static_assert(sizeof(ibv_srq) == 128);
static_assert(sizeof(ibv_mr) == 48);
static_assert(offsetof(ibv_mr, lkey) == 36);
static_assert(offsetof(ibv_mr, rkey) == 40);
static_assert(sizeof(ibv_mw) == 32);
static_assert(sizeof(ibv_pd) == 16);
static_assert(sizeof(ibv_ah) == 24);

static_assert(sizeof(ibv_port_attr) == 52 || sizeof(ibv_port_attr) == 56);  // as of ibv_qp_ex
static_assert(offsetof(ibv_port_attr, port_cap_flags2) == 48);
static_assert(sizeof(ibv_device_attr) == 232);
static_assert(sizeof(ibv_device_attr_ex) == 400);
static_assert(sizeof(ibv_qp_attr) == 144);
static_assert(sizeof(ibv_gid_entry) == 32);

}  // namespace
}  // namespace roci

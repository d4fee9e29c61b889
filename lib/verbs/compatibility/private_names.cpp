// Symbols that rdma-core's providers use (IBVERBS_PRIVATE_34): libmlx5, libefa and others. Programs link
// these providers for vendor-specific calls and load them together with this library. The loader requires
// all of these symbols. Providers call only those that they use at load time, because this library gives
// no provider a device. No public header declares them.
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdint>

#include "verbs/compatibility/gid_type.hpp"

using Pointer = void*;

extern "C" {

// Registration of a provider, which is ignored.
void verbs_register_driver_34(const void* /*operations*/) {}

void __verbs_log(void* /*context*/, uint32_t /*level*/, const char* /*format*/, ...) {}

int ibv_query_gid_type(ibv_context* context, uint8_t port, unsigned index, int* type) {
  return roci::query_gid_type(context, port, index, type);
}

// Data symbol: whether a removed device may be closed without the kernel's confirmation.
bool verbs_allow_disassociate_destroy = false;

// The unsupported calls, by their return type. They ignore their arguments, so they declare none.
#define ROCI_FAILS(name) \
  int name() {           \
    errno = ENOSYS;      \
    return ENOSYS;       \
  }
#define ROCI_FAILS_POINTER(name) \
  Pointer name() {               \
    errno = ENOSYS;              \
    return nullptr;              \
  }
#define ROCI_FAILS_SILENTLY(name) \
  void name() { errno = ENOSYS; }
#define ROCI_NONE(name) \
  unsigned name() { return 0; }

ROCI_FAILS_POINTER(_verbs_init_and_alloc_context)
ROCI_FAILS_POINTER(verbs_open_device)
ROCI_FAILS_SILENTLY(verbs_init_cq)
ROCI_FAILS_SILENTLY(verbs_set_ops)
ROCI_FAILS_SILENTLY(verbs_uninit_context)
ROCI_NONE(__ioctl_final_num_attrs)  // a count
ROCI_FAILS(execute_ioctl)
ROCI_FAILS(ibv_cmd_advise_mr)
ROCI_FAILS(ibv_cmd_alloc_dm)
ROCI_FAILS(ibv_cmd_alloc_mw)
ROCI_FAILS(ibv_cmd_alloc_pd)
ROCI_FAILS(ibv_cmd_attach_mcast)
ROCI_FAILS(ibv_cmd_close_xrcd)
ROCI_FAILS(ibv_cmd_create_ah)
ROCI_FAILS(ibv_cmd_create_counters)
ROCI_FAILS(ibv_cmd_create_cq)
ROCI_FAILS(ibv_cmd_create_cq_ex)
ROCI_FAILS(ibv_cmd_create_cq_ex2)  // rdma-core 56
ROCI_FAILS(ibv_cmd_create_flow)
ROCI_FAILS(ibv_cmd_create_flow_action_esp)
ROCI_FAILS(ibv_cmd_create_qp)
ROCI_FAILS(ibv_cmd_create_qp_ex)
ROCI_FAILS(ibv_cmd_create_qp_ex2)
ROCI_FAILS(ibv_cmd_create_rwq_ind_table)
ROCI_FAILS(ibv_cmd_create_srq)
ROCI_FAILS(ibv_cmd_create_srq_ex)
ROCI_FAILS(ibv_cmd_create_wq)
ROCI_FAILS(ibv_cmd_dealloc_mw)
ROCI_FAILS(ibv_cmd_dealloc_pd)
ROCI_FAILS(ibv_cmd_dereg_mr)
ROCI_FAILS(ibv_cmd_destroy_ah)
ROCI_FAILS(ibv_cmd_destroy_counters)
ROCI_FAILS(ibv_cmd_destroy_cq)
ROCI_FAILS(ibv_cmd_destroy_flow)
ROCI_FAILS(ibv_cmd_destroy_flow_action)
ROCI_FAILS(ibv_cmd_destroy_qp)
ROCI_FAILS(ibv_cmd_destroy_rwq_ind_table)
ROCI_FAILS(ibv_cmd_destroy_srq)
ROCI_FAILS(ibv_cmd_destroy_wq)
ROCI_FAILS(ibv_cmd_detach_mcast)
ROCI_FAILS(ibv_cmd_free_dm)
ROCI_FAILS(ibv_cmd_get_context)
ROCI_FAILS(ibv_cmd_modify_cq)
ROCI_FAILS(ibv_cmd_modify_flow_action_esp)
ROCI_FAILS(ibv_cmd_modify_qp)
ROCI_FAILS(ibv_cmd_modify_qp_ex)
ROCI_FAILS(ibv_cmd_modify_srq)
ROCI_FAILS(ibv_cmd_modify_wq)
ROCI_FAILS(ibv_cmd_open_qp)
ROCI_FAILS(ibv_cmd_open_xrcd)
ROCI_FAILS(ibv_cmd_poll_cq)
ROCI_FAILS(ibv_cmd_post_recv)
ROCI_FAILS(ibv_cmd_post_send)
ROCI_FAILS(ibv_cmd_post_srq_recv)
ROCI_FAILS(ibv_cmd_query_context)
ROCI_FAILS(ibv_cmd_query_device_any)
ROCI_FAILS(ibv_cmd_query_mr)
ROCI_FAILS(ibv_cmd_query_port)
ROCI_FAILS(ibv_cmd_query_qp)
ROCI_FAILS(ibv_cmd_query_srq)
ROCI_FAILS(ibv_cmd_read_counters)
ROCI_FAILS(ibv_cmd_reg_dm_mr)
ROCI_FAILS(ibv_cmd_reg_dmabuf_mr)
ROCI_FAILS(ibv_cmd_reg_mr)
ROCI_FAILS(ibv_cmd_req_notify_cq)
ROCI_FAILS(ibv_cmd_rereg_mr)
ROCI_FAILS(ibv_cmd_resize_cq)

}  // extern "C"

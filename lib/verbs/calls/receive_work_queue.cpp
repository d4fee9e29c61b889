// Receive work queues and indirection tables, for receive side scaling of raw packets.
#include <infiniband/verbs.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <span>

#include "verbs/calls/calls.hpp"
#include "verbs/error.hpp"
#include "verbs/live_handles.hpp"
#include "verbs/process/fork_guard.hpp"

namespace roci::verbs {
namespace {

int post_wq_recv(ibv_wq* wq, ibv_recv_wr* list, ibv_recv_wr** bad) {
  return of<Wq>(wq).queue_pair->post_recv(list, bad);
}

Status move_to(QueuePair& qp, ibv_qp_state state) {
  ibv_qp_attr attr{};
  attr.qp_state = state;
  attr.port_num = 1;
  return qp.modify(attr, IBV_QP_STATE | (state == IBV_QPS_INIT ? static_cast<int>(IBV_QP_PORT) : 0));
}

// The queue pair of a work queue in RESET is in INIT, where requests can be posted; in RDY it is in RTR.
Status move_to(QueuePair& qp, ibv_wq_state state) {
  switch (state) {
    case IBV_WQS_RESET:
      ROCI_TRY(move_to(qp, IBV_QPS_RESET));
      return move_to(qp, IBV_QPS_INIT);
    case IBV_WQS_RDY:
      return qp.state() == IBV_QPS_INIT ? move_to(qp, IBV_QPS_RTR)
                                        : fail("work queue: only a queue in RESET can become RDY");
    case IBV_WQS_ERR:
      return move_to(qp, IBV_QPS_ERR);
    default:
      return fail("work queue: state " + std::to_string(state) + " is unknown");
  }
}

}  // namespace

ibv_wq* create_wq(ibv_context* context, ibv_wq_init_attr* attr) {
  if (const int code = refuse_child(); code != 0) return refuse(code);
  if (attr->wq_type != IBV_WQT_RQ) return refuse(EINVAL);
  if ((attr->comp_mask & ~uint32_t{IBV_WQ_INIT_ATTR_FLAGS}) != 0 ||
      ((attr->comp_mask & IBV_WQ_INIT_ATTR_FLAGS) != 0 && attr->create_flags != 0))
    return refuse(EOPNOTSUPP);
  if (const int code = check_handle<Pd>(attr->pd); code != 0) return refuse(code);
  if (const int code = check_handle<Cq>(attr->cq); code != 0) return refuse(code);
  Pd& pd = of<Pd>(attr->pd);
  Cq& cq = of<Cq>(attr->cq);
  auto wq = std::make_unique<Wq>();
  ibv_qp_init_attr init{};
  init.qp_context = wq.get();
  init.qp_type = IBV_QPT_RAW_PACKET;
  init.cap = {.max_send_wr = 1,
              .max_recv_wr = attr->max_wr,
              .max_send_sge = 1,
              .max_recv_sge = attr->max_sge,
              .max_inline_data = 0};
  auto made = pd.domain->create_qp(&init, *cq.queue, *cq.queue);
  if (!made) return refuse(made.error());
  if (const Status reset = move_to(**made, IBV_QPS_INIT); !reset) return refuse(reset.error());
  wq->queue_pair = std::move(*made);
  wq->verbs.context = context;
  wq->verbs.pd = attr->pd;
  wq->verbs.cq = attr->cq;
  wq->verbs.wq_num = wq->verbs.handle = wq->queue_pair->qp_num();
  wq->verbs.state = IBV_WQS_RESET;
  wq->verbs.wq_type = attr->wq_type;
  wq->verbs.post_recv = post_wq_recv;
  attr->max_wr = init.cap.max_recv_wr;
  attr->max_sge = init.cap.max_recv_sge;
  ++pd.users;
  ++cq.users;
  return &live(wq.release())->verbs;
}

int modify_wq(ibv_wq* handle, ibv_wq_attr* attr) {
  if (const int code = check_handle<Wq>(handle); code != 0) return code;
  constexpr uint32_t kSupported = IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE;
  if ((attr->attr_mask & ~kSupported) != 0) return refuse_with(EOPNOTSUPP);
  if ((attr->attr_mask & IBV_WQ_ATTR_CURR_STATE) != 0 && attr->curr_wq_state != handle->state)
    return refuse_with(EINVAL);
  if ((attr->attr_mask & IBV_WQ_ATTR_STATE) == 0 || attr->wq_state == handle->state) return 0;
  if (const int code = code_of(move_to(*of<Wq>(handle).queue_pair, attr->wq_state)); code != 0) return code;
  handle->state = attr->wq_state;
  return 0;
}

int destroy_wq(ibv_wq* handle) {
  if (const int code = check_handle<Wq>(handle); code != 0) return code;
  Wq& wq = of<Wq>(handle);
  if (wq.users != 0) return refuse_with(EBUSY);
  {
    const std::scoped_lock guard(Context::of(handle->context).async_events);
    wq.queue_pair.reset();
  }
  wq.async_events.wait_acknowledged();
  --of<Pd>(handle->pd).users;
  --of<Cq>(handle->cq).users;
  destroy_handle(wq);
  return 0;
}

ibv_rwq_ind_table* create_rwq_ind_table(ibv_context* context, ibv_rwq_ind_table_init_attr* attr) {
  if (const int code = refuse_child(); code != 0) return refuse(code);
  if (attr->comp_mask != 0) return refuse(EOPNOTSUPP);
  if (attr->log_ind_tbl_size >= 32 || (1U << attr->log_ind_tbl_size) > RssTable::kMaxQueues)
    return refuse(EINVAL);
  const std::span<ibv_wq* const> wanted(attr->ind_tbl, size_t{1} << attr->log_ind_tbl_size);
  for (ibv_wq* wq : wanted) {
    if (const int code = check_handle<Wq>(wq); code != 0) return refuse(code);
    if (wq->context != context) return refuse(EINVAL);
  }
  static std::atomic<int> next{1};
  auto* table = new IndirectionTable;
  table->verbs.context = context;
  table->verbs.ind_tbl_handle = table->verbs.ind_tbl_num = next.fetch_add(1, std::memory_order_relaxed);
  for (ibv_wq* wq : wanted) {
    table->queues.push_back(&of<Wq>(wq));
    ++table->queues.back()->users;
  }
  return &live(table)->verbs;
}

int destroy_rwq_ind_table(ibv_rwq_ind_table* handle) {
  if (const int code = check_handle<IndirectionTable>(handle); code != 0) return code;
  IndirectionTable& table = of<IndirectionTable>(handle);
  if (table.users != 0) return refuse_with(EBUSY);
  for (Wq* wq : table.queues) --wq->users;
  destroy_handle(table);
  return 0;
}

}  // namespace roci::verbs

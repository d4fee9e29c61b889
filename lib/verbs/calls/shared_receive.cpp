// Shared receive queues.
#include <infiniband/verbs.h>

#include "verbs/calls/calls.hpp"
#include "verbs/error.hpp"
#include "verbs/live_handles.hpp"
#include "verbs/process/fork_guard.hpp"

namespace roci::verbs {
namespace {

ibv_srq* hand_out(std::unique_ptr<Srq> srq, ibv_pd* pd, void* user) {
  srq->pd = &of<Pd>(pd);
  ++srq->pd->users;
  srq->verbs.context = pd->context;
  srq->verbs.srq_context = user;
  srq->verbs.pd = pd;
  srq->verbs.handle = srq->queue->number();
  pthread_mutex_init(&srq->verbs.mutex, nullptr);
  pthread_cond_init(&srq->verbs.cond, nullptr);
  return &live(srq.release())->verbs;
}

ibv_srq* create_xrc(const ibv_srq_init_attr_ex& attr, ibv_srq_init_attr& init) {
  if (attr.xrcd == nullptr || attr.cq == nullptr) return refuse(EINVAL);
  auto srq = std::make_unique<Srq>();
  init.srq_context = srq.get();
  srq->cq = &of<Cq>(attr.cq);
  auto queue = of<Pd>(attr.pd).domain->create_srq(&init, *of<Xrcd>(attr.xrcd).domain, *srq->cq->queue);
  if (!queue) return refuse(queue.error());
  srq->queue = std::move(*queue);
  ++srq->cq->users;
  return hand_out(std::move(srq), attr.pd, attr.srq_context);
}

}  // namespace

int post_srq_recv(ibv_srq* srq, ibv_recv_wr* list, ibv_recv_wr** bad) {
  return of<Srq>(srq).queue->post_recv(list, bad);
}

ibv_srq* create_srq_ex(ibv_context*, ibv_srq_init_attr_ex* attr) {
  if (const int code = refuse_child(); code != 0) return refuse(code);
  const bool typed = (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) != 0;
  const ibv_srq_type type = typed ? attr->srq_type : IBV_SRQT_BASIC;
  if (type != IBV_SRQT_BASIC && type != IBV_SRQT_XRC) return refuse(EOPNOTSUPP);
  constexpr uint32_t kXrc = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
  const uint32_t needed = IBV_SRQ_INIT_ATTR_PD | (type == IBV_SRQT_XRC ? kXrc : 0U);
  if ((attr->comp_mask & needed) != needed || attr->pd == nullptr) return refuse(EINVAL);
  ibv_srq_init_attr init{.srq_context = attr->srq_context, .attr = attr->attr};
  ibv_srq* srq = type == IBV_SRQT_XRC ? create_xrc(*attr, init) : ibv_create_srq(attr->pd, &init);
  if (srq != nullptr) attr->attr = init.attr;
  return srq;
}

int get_srq_num(ibv_srq* srq, uint32_t* number) {
  *number = of<Srq>(srq).queue->xrc_number();
  return *number == 0 ? refuse_with(EINVAL) : 0;
}

}  // namespace roci::verbs

using namespace roci;         // NOLINT(google-build-using-namespace): functions of the C ABI
using namespace roci::verbs;  // NOLINT(google-build-using-namespace)

extern "C" {

ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* attr) {
  if (const int code = check_handle<Pd>(pd); code != 0) return refuse(code);
  auto srq = std::make_unique<Srq>();
  ibv_srq_init_attr init = *attr;
  init.srq_context = srq.get();
  auto queue = of<Pd>(pd).domain->create_srq(&init);
  if (!queue) return refuse(queue.error());
  srq->queue = std::move(*queue);
  attr->attr = init.attr;
  return hand_out(std::move(srq), pd, attr->srq_context);
}

int ibv_modify_srq(ibv_srq* srq, ibv_srq_attr* attr, int mask) {
  if (const int code = check_handle<Srq>(srq); code != 0) return code;
  return code_of(of<Srq>(srq).queue->modify(*attr, mask));
}

int ibv_query_srq(ibv_srq* srq, ibv_srq_attr* attr) {
  if (const int code = check_handle<Srq>(srq); code != 0) return code;
  *attr = of<Srq>(srq).queue->query();
  return 0;
}

int ibv_destroy_srq(ibv_srq* handle) {
  if (const int code = check_handle<Srq>(handle); code != 0) return code;
  Srq& srq = of<Srq>(handle);
  {
    const std::scoped_lock guard(Context::of(handle->context).async_events);
    if (const int code = code_of(destroy(srq.queue)); code != 0) return code;
  }
  srq.async_events.wait_acknowledged();
  --srq.pd->users;
  if (srq.cq != nullptr) --srq.cq->users;
  pthread_mutex_destroy(&handle->mutex);
  pthread_cond_destroy(&handle->cond);
  destroy_handle(srq);
  return 0;
}

}  // extern "C"

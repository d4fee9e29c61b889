// Completion queues.
#include <infiniband/verbs.h>

#include "verbs/calls/calls.hpp"
#include "verbs/error.hpp"
#include "verbs/live_handles.hpp"
#include "verbs/process/fork_guard.hpp"

namespace roci::verbs {
namespace {

constexpr uint64_t kStampFlags =
    uint64_t{IBV_WC_EX_WITH_COMPLETION_TIMESTAMP} | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
constexpr uint64_t kWcFlags = uint64_t{IBV_WC_STANDARD_FLAGS} | kStampFlags;

ibv_cq_ex* create(ibv_context* context, int entries, void* user, ibv_comp_channel* channel, int vector,
                  TimeStamps stamps) {
  if (const int code = refuse_child(); code != 0) return refuse(code);
  if (vector < 0 || vector >= context->num_comp_vectors) return refuse(EINVAL);
  auto cq = std::make_unique<Cq>();
  cq->channel = channel == nullptr ? nullptr : &of<Channel>(channel);
  auto queue = Context::of(context).device->create_cq(
      entries, cq.get(), channel == nullptr ? nullptr : cq->channel->channel.get(), stamps);
  if (!queue) return refuse(queue.error());
  cq->queue = std::move(*queue);
  cq->verbs.context = context;
  cq->verbs.channel = channel;
  cq->verbs.cq_context = user;
  cq->verbs.handle = cq->queue->number();
  cq->verbs.cqe = static_cast<int>(cq->queue->entries());
  pthread_mutex_init(&cq->verbs.mutex, nullptr);
  pthread_cond_init(&cq->verbs.cond, nullptr);
  fill_polling(*cq);
  if (cq->channel != nullptr) {
    const std::scoped_lock guard(cq->channel->mutex);
    cq->channel->queues.push_back(cq.get());
  }
  return &live(cq.release())->verbs;
}

}  // namespace

int poll_cq(ibv_cq* cq, int count, ibv_wc* out) { return of<Cq>(cq).queue->poll(count, out); }

int req_notify_cq(ibv_cq* handle, int solicited_only) {
  Cq& cq = of<Cq>(handle);
  cq.queue->request_notify(solicited_only != 0);
  Context::of(handle->context).device->progress();
  return 0;
}

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attr) {
  if ((attr->comp_mask & ~uint32_t{IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD}) != 0)
    return refuse(EINVAL);
  constexpr uint32_t kFlags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
  if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0 && (attr->flags & ~kFlags) != 0)
    return refuse(EOPNOTSUPP);
  if ((attr->wc_flags & ~kWcFlags) != 0) return refuse(EOPNOTSUPP);
  const bool stamped = (attr->wc_flags & kStampFlags) != 0;
  return create(context, static_cast<int>(attr->cqe), attr->cq_context, attr->channel,
                static_cast<int>(attr->comp_vector), stamped ? TimeStamps::kMonotonic : TimeStamps::kNone);
}

}  // namespace roci::verbs

using namespace roci;         // NOLINT(google-build-using-namespace): functions of the C ABI
using namespace roci::verbs;  // NOLINT(google-build-using-namespace)

extern "C" {

ibv_cq* ibv_create_cq(ibv_context* context, int entries, void* user, ibv_comp_channel* channel, int vector) {
  ibv_cq_ex* cq = create(context, entries, user, channel, vector, TimeStamps::kNone);
  return cq == nullptr ? nullptr : ibv_cq_ex_to_cq(cq);
}

int ibv_resize_cq(ibv_cq* handle, int entries) {
  if (const int code = check_handle<Cq>(handle); code != 0) return code;
  Cq& cq = of<Cq>(handle);
  if (const int code = code_of(cq.queue->resize(entries)); code != 0) return code;
  handle->cqe = static_cast<int>(cq.queue->entries());
  return 0;
}

int ibv_destroy_cq(ibv_cq* handle) {
  if (const int code = check_handle<Cq>(handle); code != 0) return code;
  Cq& cq = of<Cq>(handle);
  if (cq.users > 0) return refuse_with(EBUSY);
  {
    const std::scoped_lock guard(Context::of(handle->context).async_events);
    std::unique_lock<std::mutex> channel;
    if (cq.channel != nullptr) {
      channel = std::unique_lock(cq.channel->mutex);
      std::erase(cq.channel->queues, &cq);
    }
    cq.queue.reset();  // also removes its pending events
  }
  cq.completion_events.wait_acknowledged();
  cq.async_events.wait_acknowledged();
  pthread_mutex_destroy(&handle->mutex);
  pthread_cond_destroy(&handle->cond);
  destroy_handle(cq);
  return 0;
}

}  // extern "C"

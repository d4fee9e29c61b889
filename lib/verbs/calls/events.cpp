// Asynchronous events of a context.
#include <infiniband/verbs.h>

#include <memory>

#include "device/api/events.hpp"
#include "verbs/calls/calls.hpp"
#include "verbs/error.hpp"
#include "verbs/live_handles.hpp"
#include "verbs/process/fork_guard.hpp"
#include "verbs/waiting.hpp"

using namespace roci;         // NOLINT(google-build-using-namespace): functions of the C ABI
using namespace roci::verbs;  // NOLINT(google-build-using-namespace)

namespace {

// Events refer to their object by its handle, which exists until the event has been acknowledged.
void name_object(const AsyncEvent& from, ibv_async_event& event) {
  switch (from.object.source) {
    case EventSource::kQueuePair: {
      if (LiveHandles<Wq>::table().contains(from.object.context)) {
        Wq& wq = *static_cast<Wq*>(from.object.context);
        wq.async_events.count_delivered();
        // No other event exists for a queue pair that only receives raw packets.
        event.event_type = IBV_EVENT_WQ_FATAL;
        event.element.wq = &wq.verbs;
        break;
      }
      Qp& qp = *static_cast<Qp*>(from.object.context);
      qp.async_events.count_delivered();
      event.element.qp = qp.handle();
      break;
    }
    case EventSource::kCompletionQueue: {
      Cq& cq = *static_cast<Cq*>(from.object.context);
      cq.async_events.count_delivered();
      event.element.cq = cq.handle();
      break;
    }
    case EventSource::kSharedReceiveQueue: {
      Srq& srq = *static_cast<Srq*>(from.object.context);
      srq.async_events.count_delivered();
      event.element.srq = &srq.verbs;
      break;
    }
    case EventSource::kPort:
      event.element.port_num = static_cast<int>(from.object.number);
  }
}

}  // namespace

extern "C" {

int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  if (const int code = refuse_child(); code != 0) return errno = code, -1;
  Device& device = *Context::of(context).device;
  const std::shared_ptr<EventQueue> events = device.events();
  for (;;) {
    {
      const std::scoped_lock guard(Context::of(context).async_events);
      if (const auto happened = device.get_async_event()) {
        *event = {};
        event->event_type = happened->type;
        name_object(*happened, *event);
        return 0;
      }
    }
    if (const int code = wait_readable(device, context->async_fd, events->blocked()); code != 0)
      return errno = code, -1;
    if (!is_context(*context)) return errno = EBADF, -1;  // closed meanwhile
  }
}

void ibv_ack_async_event(ibv_async_event* event) {
  switch (event->event_type) {
    case IBV_EVENT_CQ_ERR:
      of<Cq>(event->element.cq).async_events.note_acknowledged(1);
      break;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      of<Qp>(event->element.qp).async_events.note_acknowledged(1);
      break;
    case IBV_EVENT_WQ_FATAL:
      of<Wq>(event->element.wq).async_events.note_acknowledged(1);
      break;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      of<Srq>(event->element.srq).async_events.note_acknowledged(1);
      break;
    default:
      break;
  }
}

}  // extern "C"

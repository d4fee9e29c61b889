// Asynchronous events (IBTA 11.6.3): what happens to an object without a completion to say so. The types are those of
// ibv_get_async_event; objects are named by kind, number and the pointer their maker gave them, so that an event never
// points at an object that is gone.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace roci {

enum class EventSource : uint8_t { kQueuePair, kCompletionQueue, kSharedReceiveQueue, kPort };

// What an event is about.
struct EventObject {
  EventSource source = EventSource::kPort;
  uint32_t number =
      0;  // qp_num; CompletionQueue::number(); the like for shared receive queues; the port's number
  void* context = nullptr;  // the caller's: ibv_qp_init_attr::qp_context, create_cq()'s and so on
};

struct AsyncEvent {
  ibv_event_type type = IBV_EVENT_DEVICE_FATAL;
  EventObject object;
};

}  // namespace roci

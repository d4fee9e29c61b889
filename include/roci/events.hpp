// Asynchronous events (IBTA 11.6.3), with the event types of ibv_get_async_event. An event identifies its object by
// kind, number and the pointer given at creation. Destruction of an object removes its queued events; an event that was
// fetched before may name an object that no longer exists.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace roci {

enum class EventSource : uint8_t { kQueuePair, kCompletionQueue, kSharedReceiveQueue, kPort };

// Object of an event.
struct EventObject {
  EventSource source = EventSource::kPort;
  // qp_num, CompletionQueue::number(), SharedReceiveQueue::number() or the port number.
  uint32_t number = 0;
  void* context = nullptr;  // the caller's: ibv_qp_init_attr::qp_context, argument of create_cq(), etc.
};

struct AsyncEvent {
  ibv_event_type type = IBV_EVENT_DEVICE_FATAL;
  EventObject object;
};

}  // namespace roci

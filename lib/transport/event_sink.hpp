// Interface for asynchronous events: conditions that the data path reports and no completion does (IBTA 11.6.3).
#pragma once

#include "roci/events.hpp"

namespace roci {

class EventSink {
 public:
  EventSink() = default;
  EventSink(const EventSink&) = delete;
  EventSink& operator=(const EventSink&) = delete;
  virtual ~EventSink() = default;

  // Any thread. Events are rare, so the implementation may lock. False when the event was lost; the caller counts it.
  virtual bool raise(const AsyncEvent& event) = 0;
};

}  // namespace roci

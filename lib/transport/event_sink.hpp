// Where the data path says that something happened which no completion tells (IBTA 11.6.3).
#pragma once

#include "roci/events.hpp"

namespace roci {

class EventSink {
 public:
  EventSink() = default;
  EventSink(const EventSink&) = delete;
  EventSink& operator=(const EventSink&) = delete;
  virtual ~EventSink() = default;

  // Any thread; rare, so it may lock. False when the event was lost, for the caller to count.
  virtual bool raise(const AsyncEvent& event) = 0;
};

}  // namespace roci

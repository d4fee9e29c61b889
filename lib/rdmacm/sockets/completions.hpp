// A completion queue with a descriptor for sleeping until a completion arrives.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace roci::rdmacm::sockets {

class Completions {
 public:
  Completions() = default;
  ~Completions();  // must follow the destruction of the queue pairs
  Completions(const Completions&) = delete;
  Completions& operator=(const Completions&) = delete;
  // Returns false with errno on failure.
  bool make(ibv_context* context, uint32_t entries);

  [[nodiscard]] int event_fd() const { return channel_->fd; }
  [[nodiscard]] ibv_cq* queue() const { return queue_; }

  [[nodiscard]] bool armed() const { return armed_; }
  // Requests an event for the next completion. Returns false with errno on failure.
  bool arm();
  // Consumes the events of the descriptor. Returns true if there were any.
  bool take_events();

 private:
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* queue_ = nullptr;
  bool armed_ = false;
};

}  // namespace roci::rdmacm::sockets

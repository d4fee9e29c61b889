// A completion queue, and the descriptor by which somebody may sleep until it has something.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace roci::rdmacm::sockets {

class Completions {
 public:
  Completions() = default;
  ~Completions();  // after the queue pairs that use it
  Completions(const Completions&) = delete;
  Completions& operator=(const Completions&) = delete;
  // False, and errno.
  bool make(ibv_context* context, uint32_t entries);

  [[nodiscard]] int event_fd() const { return channel_->fd; }
  [[nodiscard]] ibv_cq* queue() const { return queue_; }

  [[nodiscard]] bool armed() const { return armed_; }
  // The next completion is an event. False, and errno: it cannot be.
  bool arm();
  // Of the descriptor. Whether there were any.
  bool take_events();

 private:
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* queue_ = nullptr;
  bool armed_ = false;
};

}  // namespace roci::rdmacm::sockets

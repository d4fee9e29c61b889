#include "rdmacm/sockets/completions.hpp"

#include <fcntl.h>

#include <cerrno>

namespace roci::rdmacm::sockets {

bool Completions::make(ibv_context* context, uint32_t entries) {
  channel_ = ibv_create_comp_channel(context);
  if (channel_ == nullptr || fcntl(channel_->fd, F_SETFL, O_NONBLOCK) != 0) return false;
  queue_ = ibv_create_cq(context, static_cast<int>(entries), nullptr, channel_, 0);
  return queue_ != nullptr;
}

Completions::~Completions() {
  if (queue_ != nullptr) ibv_destroy_cq(queue_);
  if (channel_ != nullptr) ibv_destroy_comp_channel(channel_);
}

bool Completions::arm() {
  const int code = ibv_req_notify_cq(queue_, 0);
  errno = code;
  armed_ = code == 0;
  return armed_;
}

bool Completions::take_events() {
  bool any = false;
  ibv_cq* from = nullptr;
  void* context = nullptr;
  while (ibv_get_cq_event(channel_, &from, &context) == 0) {
    ibv_ack_cq_events(from, 1);
    armed_ = false;
    any = true;
  }
  return any;
}

}  // namespace roci::rdmacm::sockets

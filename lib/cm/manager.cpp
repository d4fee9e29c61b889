#include "cm/manager.hpp"

namespace roci::cm {

Manager::Manager(Host& host, uint64_t ca_guid, const Limits& limits)
    : host_(host), agent_(*this, host_.ids(), ca_guid, limits) {
  Worker& first = host_.worker(0);
  const std::scoped_lock guard(first.token());
  first.management().set_class(kCmClass, this);
}

Manager::~Manager() {
  Worker& first = host_.worker(0);
  const std::scoped_lock guard(first.token());
  first.management().set_class(kCmClass, nullptr);
}

// Who cannot be reached is as silent as who does not answer.
bool Manager::send(const Route& route, std::span<const uint8_t, kMadBytes> mad, Nanos now) {
  return host_.worker(0).management().send(route, mad, now) != MadSent::kLater;
}

}  // namespace roci::cm

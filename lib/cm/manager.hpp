// The connection manager of a device, as programs reach it: an Agent on queue pair 1 of the host.
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>

#include "cm/agent.hpp"
#include "device/host.hpp"
#include "engine/management.hpp"

namespace roci::cm {

// Handlers of events are called by whoever drives the host or is in with(), with the first worker's token in hand: they must
// neither block nor call the device.
class Manager final : private ManagementClass, private Sender {
 public:
  // At most one for a host, which outlives it.
  Manager(Host& host, uint64_t ca_guid, const Limits& limits = {});
  ~Manager() override;

  // Calls use(agent, now) in between two rounds of the first worker. Any thread that holds no worker's token.
  template <class Use>
  decltype(auto) with(Use&& use) {
    const std::scoped_lock guard(host_.worker(0).token());
    return std::forward<Use>(use)(agent_, host_.time_of_call());
  }

  [[nodiscard]] Host& host() { return host_; }

 private:
  void on_mad(const MadRoute& back, std::span<const uint8_t, kMadBytes> mad, Nanos now) override {
    agent_.on_mad(back, mad, now);
  }
  bool poll(Nanos now) override { return agent_.poll(now); }
  [[nodiscard]] Nanos next_deadline() const override { return agent_.next_deadline(); }
  bool send(const Route& route, std::span<const uint8_t, kMadBytes> mad, Nanos now) override;

  Host& host_;
  Agent agent_;
};

}  // namespace roci::cm

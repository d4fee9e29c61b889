// A port that forwards all calls to a port that it does not own. For owners that require a Port of their own: devices
// on the ends of a simulated link.
#pragma once

#include "port/port.hpp"

namespace roci {

class BorrowedPort : public Port {
 public:
  explicit BorrowedPort(Port& port) : port_(port) {}
  uint16_t rx_burst(std::span<rte_mbuf*> out, Nanos now) override { return port_.rx_burst(out, now); }
  uint16_t tx_burst(std::span<rte_mbuf*> frames, Nanos now) override { return port_.tx_burst(frames, now); }
  DirectBuffer take_direct(const MacAddress& to, uint32_t bytes, Nanos now) override {
    return port_.take_direct(to, bytes, now);
  }
  void receive_in_place() override { port_.receive_in_place(); }
  [[nodiscard]] Nanos next_arrival() const override { return port_.next_arrival(); }
  [[nodiscard]] std::optional<uint32_t> waiting() const override { return port_.waiting(); }
  [[nodiscard]] uint16_t queues() const override { return port_.queues(); }
  [[nodiscard]] PortQueue& queue(uint16_t index) override { return port_.queue(index); }
  [[nodiscard]] const PortCapabilities& capabilities() const override { return port_.capabilities(); }
  [[nodiscard]] MacAddress mac() const override { return port_.mac(); }
  [[nodiscard]] std::string_view name() const override { return port_.name(); }
  [[nodiscard]] PortStats stats() const override { return port_.stats(); }
  [[nodiscard]] bool link_up() const override { return port_.link_up(); }
  [[nodiscard]] PortWakeup* wakeup() override { return port_.wakeup(); }
  [[nodiscard]] PeerPresence* peers() override { return port_.peers(); }
  [[nodiscard]] Placement* placement() override { return port_.placement(); }
  [[nodiscard]] std::vector<Detail> details() const override { return port_.details(); }

 private:
  Port& port_;
};

}  // namespace roci

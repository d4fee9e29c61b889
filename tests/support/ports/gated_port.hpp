// A port around another port, which a test can make refuse all frames, with its link up or down.
#pragma once

#include "port/port.hpp"

namespace roci::test {

class GatedPort final : public Port {
 public:
  explicit GatedPort(Port& inner) : inner_(inner) {}

  bool accepts = true;
  bool up = true;

  uint16_t rx_burst(std::span<rte_mbuf*> out, Nanos now) override { return inner_.rx_burst(out, now); }
  uint16_t tx_burst(std::span<rte_mbuf*> frames, Nanos now) override {
    return accepts ? inner_.tx_burst(frames, now) : uint16_t{0};
  }
  [[nodiscard]] Nanos next_arrival() const override { return inner_.next_arrival(); }
  [[nodiscard]] const PortCapabilities& capabilities() const override { return inner_.capabilities(); }
  [[nodiscard]] MacAddress mac() const override { return inner_.mac(); }
  [[nodiscard]] std::string_view name() const override { return inner_.name(); }
  [[nodiscard]] PortStats stats() const override { return inner_.stats(); }
  [[nodiscard]] bool link_up() const override { return up; }

 private:
  Port& inner_;
};

}  // namespace roci::test

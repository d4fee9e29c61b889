// A port that loses every so-manieth RoCEv2 frame that arrives, for what recovery costs.
#pragma once

#include <rte_mbuf.h>

#include <memory>
#include <utility>

#include "port/port.hpp"

namespace roci::bench {

class LossyPort final : public Port {
 public:
  LossyPort(std::unique_ptr<Port> port, uint32_t one_in) : port_(std::move(port)), one_in_(one_in) {}

  uint16_t rx_burst(std::span<rte_mbuf*> out, Nanos now) override {
    const uint16_t count = port_->rx_burst(out, now);
    uint16_t kept = 0;
    for (uint16_t i = 0; i < count; ++i) {
      if (++arrived_ % one_in_ == 0) {
        rte_pktmbuf_free(out[i]);
        ++lost_;
      } else {
        out[kept++] = out[i];
      }
    }
    return kept;
  }
  uint16_t tx_burst(std::span<rte_mbuf*> frames, Nanos now) override { return port_->tx_burst(frames, now); }
  [[nodiscard]] Nanos next_arrival() const override { return port_->next_arrival(); }
  [[nodiscard]] const PortCapabilities& capabilities() const override { return port_->capabilities(); }
  [[nodiscard]] MacAddress mac() const override { return port_->mac(); }
  [[nodiscard]] std::string_view name() const override { return port_->name(); }
  [[nodiscard]] PortStats stats() const override { return port_->stats(); }
  [[nodiscard]] uint64_t lost() const { return lost_; }

 private:
  std::unique_ptr<Port> port_;
  uint32_t one_in_;
  uint64_t arrived_ = 0, lost_ = 0;
};

}  // namespace roci::bench

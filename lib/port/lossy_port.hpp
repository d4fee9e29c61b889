// A port that drops received frames, around another port: each frame independently with the same probability. A seed
// makes the losses reproducible. With a lossy port at each end, frames are lost in both directions. For measurements on
// real ports; a simulated link (sim_link.hpp) has faults of its own.
#pragma once

#include <memory>

#include "base/rng.hpp"
#include "port/port.hpp"

namespace roci {

// A port with one queue, because the queues of the wrapped port would
// share the generator. Owned by the thread that uses the port.
class LossyPort final : public Port {
 public:
  // `probability` per frame, at least 0 and below 1.
  LossyPort(std::unique_ptr<Port> port, double probability, uint64_t seed);

  uint16_t rx_burst(std::span<rte_mbuf*> out, Nanos now) override;
  uint16_t tx_burst(std::span<rte_mbuf*> frames, Nanos now) override { return port_->tx_burst(frames, now); }
  [[nodiscard]] Nanos next_arrival() const override { return port_->next_arrival(); }
  [[nodiscard]] std::optional<uint32_t> waiting() const override { return port_->waiting(); }
  [[nodiscard]] const PortCapabilities& capabilities() const override { return port_->capabilities(); }
  [[nodiscard]] MacAddress mac() const override { return port_->mac(); }
  [[nodiscard]] std::string_view name() const override { return port_->name(); }
  [[nodiscard]] PortStats stats() const override { return port_->stats(); }
  [[nodiscard]] bool link_up() const override { return port_->link_up(); }
  [[nodiscard]] PortWakeup* wakeup() override { return port_->wakeup(); }
  [[nodiscard]] PeerPresence* peers() override { return port_->peers(); }
  [[nodiscard]] std::vector<Detail> details() const override { return port_->details(); }

  [[nodiscard]] uint64_t lost() const { return lost_; }

 private:
  [[nodiscard]] uint64_t draw_gap();

  std::unique_ptr<Port> port_;
  double probability_;
  Rng rng_;
  uint64_t gap_;  // frames before the next lost one
  uint64_t lost_ = 0;
};

}  // namespace roci

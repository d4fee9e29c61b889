// Real end of a cable: a DPDK port that the user has connected to the port at the other end. A host sends on it no
// faster than the scenario's rate, as on a simulated cable. A switch paces itself.
#pragma once

#include <memory>

#include "base/time/line_clock.hpp"
#include "base/types.hpp"
#include "port/dpdk/ethdev_port.hpp"
#include "port/sim/borrowed_port.hpp"
#include "roci/poller.hpp"

namespace roci::lab {

// Counters of a port, for the results.
struct RealPortCounts {
  std::string cable, device;
  uint64_t rx_packets = 0, tx_packets = 0;
  uint64_t rx_missed = 0;  // no space in the device, or malformed
  uint64_t dropped = 0;    // too long for the port, received or sent
};

// Owned by the thread that runs its node. As a poller, it wakes up a sender that was rejected by a busy line.
class RealPort final : public BorrowedPort, public Poller {
 public:
  // Reports `rate` as link rate. If `paces` is false, it does not limit the rate.
  RealPort(std::unique_ptr<EthdevPort> port, BitsPerSec rate, bool paces);

  uint16_t tx_burst(std::span<rte_mbuf*> frames, Nanos now) override;
  // Unknown: the node polls the port whenever it runs, and its deadlines are those of its timers.
  [[nodiscard]] Nanos next_arrival() const override { return kNever; }
  [[nodiscard]] uint16_t queues() const override { return 1; }
  [[nodiscard]] PortQueue& queue(uint16_t /*index*/) override { return *this; }
  [[nodiscard]] const PortCapabilities& capabilities() const override { return capabilities_; }

  bool poll(Nanos now) override;
  [[nodiscard]] Nanos next_deadline() const override { return refused_ ? line_.free_at() : kNever; }
  [[nodiscard]] std::string_view name() const override { return port_->name(); }

  [[nodiscard]] Status wait_for_link(Nanos timeout) { return port_->wait_for_link(timeout); }
  [[nodiscard]] RealPortCounts counts() const;

 private:
  std::unique_ptr<EthdevPort> port_;
  LineClock line_;
  const bool paces_;
  bool refused_ = false;
  PortCapabilities capabilities_;
};

}  // namespace roci::lab

// An end of a cable that is really there: a port of DPDK's, which the user has connected with the one at the other end. A host
// sends on it no faster than the scenario's rate, as on a simulated cable; a switch keeps to its rate by itself.
#pragma once

#include <memory>

#include "base/line_clock.hpp"
#include "base/poller.hpp"
#include "port/borrowed_port.hpp"
#include "port/ethdev_port.hpp"

namespace roci::lab {

// What went through a port, for whoever reads the results.
struct RealPortCounts {
  std::string cable, device;
  uint64_t rx_packets = 0, tx_packets = 0;
  uint64_t rx_missed = 0;  // the device had no room for them, or they were broken
  uint64_t dropped = 0;    // too long for this port, either way
};

// Of the thread that runs its node. As a poller it wakes a sender that was refused because the line was not free.
class RealPort final : public BorrowedPort, public Poller {
 public:
  // Says what the cable's rate is; sends any number of frames at once when `paces` is false.
  RealPort(std::unique_ptr<EthdevPort> port, BitsPerSec rate, bool paces);

  uint16_t tx_burst(std::span<rte_mbuf*> frames, Nanos now) override;
  // Unknown. The node that it belongs to looks whenever it runs; so deadlines of the node's are those of its timers.
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

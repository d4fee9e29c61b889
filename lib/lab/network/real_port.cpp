#include "lab/network/real_port.hpp"

namespace roci::lab {

RealPort::RealPort(std::unique_ptr<EthdevPort> port, BitsPerSec rate, bool paces)
    : BorrowedPort(*port),
      port_(std::move(port)),
      line_(rate),
      paces_(paces),
      capabilities_(port_->capabilities()) {
  capabilities_.link_rate = rate;
}

uint16_t RealPort::tx_burst(std::span<rte_mbuf*> frames, Nanos now) {
  if (!paces_) return port_->tx_burst(frames, now);
  uint16_t taken = 0;
  while (taken < frames.size()) {
    refused_ = line_.free_at() > now;
    if (refused_) break;
    const Bytes bytes{frames[taken]->pkt_len};
    // A full device is tried again in the next round, since it does not report when it has space.
    if (port_->tx_burst(frames.subspan(taken, 1), now) == 0) break;
    line_.occupy(now, bytes + kEthernetLineOverhead);
    ++taken;
  }
  return taken;
}

bool RealPort::poll(Nanos now) {
  if (next_deadline() > now) return false;
  refused_ = false;
  return true;
}

RealPortCounts RealPort::counts() const {
  const PortStats stats = port_->stats();
  return {.cable = {},
          .device = std::string(name()),
          .rx_packets = stats.rx_packets,
          .tx_packets = stats.tx_packets,
          .rx_missed = port_->device_rx_missed(),
          .dropped = stats.tx_dropped + stats.rx_dropped};
}

}  // namespace roci::lab

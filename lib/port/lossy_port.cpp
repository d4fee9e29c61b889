#include "port/lossy_port.hpp"

#include <cmath>
#include <limits>

namespace roci {

LossyPort::LossyPort(std::unique_ptr<Port> port, double probability, uint64_t seed)
    : port_(std::move(port)), probability_(probability), rng_(seed), gap_(draw_gap()) {}

// Frames between two losses are distributed geometrically, so one draw a loss does instead of one a frame.
uint64_t LossyPort::draw_gap() {
  constexpr uint64_t kForEver = std::numeric_limits<uint64_t>::max();
  if (probability_ <= 0) return kForEver;
  const double gap = std::floor(std::log1p(-rng_.unit()) / std::log1p(-probability_));
  return gap < 1e18 ? static_cast<uint64_t>(gap) : kForEver;
}

uint16_t LossyPort::rx_burst(std::span<rte_mbuf*> out, Nanos now) {
  const uint16_t count = port_->rx_burst(out, now);
  if (count <= gap_) {
    gap_ -= count;
    return count;
  }
  uint16_t kept = 0;
  for (uint16_t i = 0; i < count; ++i) {
    if (gap_ == 0) {
      rte_pktmbuf_free(out[i]);
      ++lost_;
      gap_ = draw_gap();
    } else {
      out[kept++] = out[i];
      --gap_;
    }
  }
  return kept;
}

}  // namespace roci

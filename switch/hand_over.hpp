// How the workers of a switch pass each other what they do not do themselves: bounded rings with one thread at each end. A
// frame goes to the worker that owns the egress port; what one worker learns goes to all.
#pragma once

#include <rte_mbuf.h>

#include <memory>
#include <vector>

#include "base/spsc_ring.hpp"
#include "switch/packet.hpp"
#include "wire/address.hpp"

namespace roci {

struct SwitchHandOver {
  enum class What : uint8_t {
    kFrame,      // to be put into the queue of `egress`
    kAddress,    // `mac` of packet.vlan is behind packet.ingress; no frame
    kNeighbour,  // a copy of an ARP or neighbour message, to learn from
    kFlow,       // a copy of the front of a frame with a CN-TAG, to learn the flow from
    kNotice,     // a copy of a self-defined CNM, for shapers
  };
  What what = What::kFrame;
  uint16_t egress = 0;
  MacAddress mac{};
  SwitchPacket packet{};
};

class SwitchRings {
 public:
  // A worker takes kBurst of each of its rings a round; the rest is for one that has lost its core for a while.
  static constexpr uint32_t kRing = 1024;
  static constexpr uint32_t kBurst = 128;
  using Ring = SpscRing<SwitchHandOver>;

  explicit SwitchRings(uint32_t workers) : workers_(workers), rings_(workers * size_t{workers}) {
    for (size_t i = 0; i < rings_.size(); ++i) {
      if (i / workers != i % workers) rings_[i] = std::make_unique<Ring>(kRing);
    }
  }
  ~SwitchRings() {  // frees what nobody has taken
    SwitchHandOver left;
    for (const auto& ring : rings_) {
      while (ring != nullptr && ring->pop({&left, 1}) == 1) rte_pktmbuf_free(left.packet.frame);
    }
  }
  SwitchRings(const SwitchRings&) = delete;
  SwitchRings& operator=(const SwitchRings&) = delete;

  [[nodiscard]] uint32_t workers() const { return workers_; }
  // Of two different workers.
  [[nodiscard]] Ring& between(uint32_t from, uint32_t to) { return *rings_[from * size_t{workers_} + to]; }

 private:
  uint32_t workers_;
  std::vector<std::unique_ptr<Ring>> rings_;  // null from a worker to itself
};

}  // namespace roci

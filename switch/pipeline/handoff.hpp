// Rings between the workers of a switch: bounded, with one producer and one consumer. A frame is passed to the worker
// of its egress port; learned entries are sent to all workers.
#pragma once

#include <rte_mbuf.h>

#include <memory>
#include <vector>

#include "base/containers/spsc_ring.hpp"
#include "switch/pipeline/packet.hpp"
#include "wire/headers/address.hpp"

namespace roci {

struct SwitchHandoff {
  enum class Kind : uint8_t {
    kFrame,     // to be queued at port `egress`
    kAddress,   // `mac` in packet.vlan is at port packet.ingress; no frame
    kNeighbor,  // copy of an ARP or ND message, to learn from
    kFlow,      // copy of the front of a frame with a CN-TAG, to learn its flow
    kNotice,    // copy of a self-defined CNM, for shapers
  };
  Kind what = Kind::kFrame;
  uint16_t egress = 0;
  MacAddress mac{};
  SwitchPacket packet{};
};

class SwitchRings {
 public:
  // A worker takes at most kBurst entries of each ring per round. The rest of the ring is for a worker that was
  // preempted.
  static constexpr uint32_t kRing = 1024;
  static constexpr uint32_t kBurst = 128;
  using Ring = SpscRing<SwitchHandoff>;

  explicit SwitchRings(uint32_t workers) : workers_(workers), rings_(workers * size_t{workers}) {
    for (size_t i = 0; i < rings_.size(); ++i) {
      if (i / workers != i % workers) rings_[i] = std::make_unique<Ring>(kRing);
    }
  }
  ~SwitchRings() {  // frees frames that were not taken
    SwitchHandoff left;
    for (const auto& ring : rings_) {
      while (ring != nullptr && ring->pop({&left, 1}) == 1) rte_pktmbuf_free(left.packet.frame);
    }
  }
  SwitchRings(const SwitchRings&) = delete;
  SwitchRings& operator=(const SwitchRings&) = delete;

  [[nodiscard]] uint32_t workers() const { return workers_; }
  // `from` and `to` must differ.
  [[nodiscard]] Ring& between(uint32_t from, uint32_t to) { return *rings_[from * size_t{workers_} + to]; }

 private:
  uint32_t workers_;
  std::vector<std::unique_ptr<Ring>> rings_;  // null from a worker to itself
};

}  // namespace roci

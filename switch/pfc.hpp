// Priority-based flow control (802.1Q 36) of the switch's ports: tells neighbours to stop when what they sent has filled
// its place, and does what they tell.
#pragma once

#include <rte_mempool.h>

#include <span>
#include <vector>

#include "switch/buffer.hpp"
#include "switch/egress_port.hpp"
#include "wire/address.hpp"

namespace roci {

// Owned by the switch's thread.
class PauseControl {
 public:
  // What one port has to do with it.
  struct PortView {
    uint16_t port;  // its number
    EgressPort& egress;
    SwitchPortCounters& counters;
    BitsPerSec rate{0};    // of the line, which pauses are measured by; 0 is taken for kAssumedRate
    uint8_t lossless = 0;  // the classes that PFC is on for, a bit for each
  };
  static constexpr BitsPerSec kAssumedRate = 100_Gbps;

  // `ports`: those of one worker, in ascending order.
  PauseControl(SwitchBuffer& buffer, const MacAddress& mac, rte_mempool* pool,
               const std::vector<PortView>& ports);

  // A frame to the link-local address of MAC control has come in. False when it is no PFC frame that means this port.
  bool take(const rte_mbuf* frame, uint16_t port, Nanos now);
  // Puts the PFC frames that are due in front of what waits at their ports. Returns whether there were any.
  bool poll(Nanos now);
  // When a pause must be said again.
  [[nodiscard]] Nanos next_deadline() const;

 private:
  // The longest pause there is, so that it is rarely said again; the end is said too.
  static constexpr uint16_t kQuanta = 0xffff;
  struct State {
    uint8_t stopped = 0;
    Nanos again = kNever;
  };
  static BitsPerSec rate_of(const PortView& view);
  bool tell(const PortView& view, uint8_t stop, uint8_t go);

  SwitchBuffer& buffer_;
  MacAddress mac_;
  rte_mempool* pool_;
  std::vector<PortView> ports_;  // that have lossless classes
  std::vector<State> states_;
};

}  // namespace roci

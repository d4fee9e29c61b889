// Priority-based flow control (802.1Q 36) of the switch's ports: pauses a neighbor whose frames exceed their buffer,
// and obeys the neighbor's PFC frames.
#pragma once

#include <rte_mempool.h>

#include <span>
#include <vector>

#include "switch/pipeline/egress_port.hpp"
#include "switch/qos/buffer.hpp"
#include "wire/headers/address.hpp"

namespace roci {

// Owned by one switch worker.
class PauseControl {
 public:
  // PFC state of one port.
  struct PortView {
    uint16_t port;  // number in the switch
    EgressPort& egress;
    SwitchPortCounters& counters;
    BitsPerSec rate{0};    // of the link, the unit of pause times; 0: kAssumedRate
    uint8_t lossless = 0;  // bitmap of the classes with PFC
  };
  static constexpr BitsPerSec kAssumedRate = 100_Gbps;

  // `ports`: those of one worker, in ascending order.
  PauseControl(SwitchBuffer& buffer, const MacAddress& mac, rte_mempool* pool,
               const std::vector<PortView>& ports);

  // Processes a frame to the MAC control address. Returns false if it is not a PFC frame for this port.
  bool take(const rte_mbuf* frame, uint16_t port, Nanos now);
  // Queues due PFC frames in front of all other frames of their ports. Returns whether any was due.
  bool poll(Nanos now);
  // Time at which the next pause must be renewed.
  [[nodiscard]] Nanos next_deadline() const;

 private:
  // Longest pause, so that renewals are rare. Its end is signaled by a PFC frame too.
  static constexpr uint16_t kQuanta = 0xffff;
  struct State {
    uint8_t stopped = 0;
    uint8_t queued = 0;  // bitmap of the classes in the last PFC frame
    Nanos again = kNever;
  };
  static BitsPerSec rate_of(const PortView& view);
  // Queues a PFC frame for `classes`, which resumes those that are not in `stopped`. False if the pool is empty.
  bool send_pause(const PortView& view, uint8_t classes, uint8_t stopped);

  SwitchBuffer& buffer_;
  MacAddress mac_;
  rte_mempool* pool_;
  std::vector<PortView> ports_;  // with lossless classes
  std::vector<State> states_;
};

}  // namespace roci

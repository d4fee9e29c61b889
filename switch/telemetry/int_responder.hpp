// INT responder: direct telemetry responses (HPCC++ 6.3). When a subscribed packet leaves a congested queue, the switch
// reports this hop to its sender at once, instead of a round trip later by the receiver. The response is a CC_INT_RESP
// (docs/wire-extensions.md) with the hop and with BTH and PSN of the sampled packet, which identify the packet to the
// sender.
//
//   packet leaves -> queue long? -> subscribed? -> sender -> not notified within `spacing`? -> response in the outbox
//
// Subscribed are packets with telemetry and the flag wants_response, packets to which this switch adds such a header,
// and packets with a DSCP in `respond.dscp`. After a response, a flow gets no further one for one to two times
// `spacing` (rotating_bloom.hpp).
#pragma once

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <cstdint>

#include "switch/cnp/key_flow.hpp"
#include "switch/cnp/notify_counters.hpp"
#include "switch/cnp/rotating_bloom.hpp"
#include "switch/cnp/source_qpns.hpp"
#include "switch/pipeline/outbox.hpp"
#include "switch/pipeline/packet.hpp"
#include "switch/telemetry/telemetry.hpp"

namespace roci {

// Owned by one switch worker; counters() may be read by any thread.
class IntResponder {
 public:
  // `senders` may be null when responses are off or go to receivers.
  IntResponder(const TelemetryConfig& config, const MacAddress& mac, rte_mempool* pool, SourceQpns* senders,
               Outbox& outbox);

  // Called for each packet that leaves.
  [[nodiscard]] bool is_due(uint64_t queue_bytes) const { return queue_bytes > above_; }
  // `frame` is the packet before this switch stamps it.
  void consider(const rte_mbuf* frame, const Departure& departure, const HopReport& report);

  [[nodiscard]] const IntResponseCounters& counters() const { return counters_; }

 private:
  [[nodiscard]] bool is_subscribed(std::span<const uint8_t> head, uint32_t length,
                                   const Departure& departure) const;
  IntResponseEvent respond(const rte_mbuf* frame, const RocePeek& packet, const Departure& departure,
                           const HopReport& report);
  [[nodiscard]] Outbox::Counter& counter(IntResponseEvent event) { return counters_.at(event); }

  const TelemetryConfig config_;
  const uint64_t above_;  // bytes; the maximum if responses are off
  MacAddress mac_;
  rte_mempool* pool_;
  SourceQpns* senders_;
  Outbox& outbox_;
  RotatingBloom notified_;
  EventLimit limit_;
  IntResponseCounters counters_;
};

}  // namespace roci

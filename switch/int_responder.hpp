// Direct telemetry responses (HPCC++ 6.3): while a subscribed packet leaves a queue that is congested, its sender is told
// at once how that hop looks, instead of a round trip later by the receiver. A CC_INT_RESP (docs/wire-extensions.md) with
// the hop and the sampled packet's BTH, whose PSN it also bears, so that the sender knows which of its packets met it.
//
//   a packet leaves -> is the queue long? -> subscribed? -> who sends it? -> not told of late? -> a response waits
//
// Subscribed are packets that carry telemetry with the flag for it, those that begin to carry it here with that flag, and
// those of a DSCP that `respond.dscp` names. A sender that has heard within `spacing` is left alone for that long to
// twice that long (rotating_bloom.hpp).
#pragma once

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <cstdint>

#include "switch/key_flow.hpp"
#include "switch/notify_counters.hpp"
#include "switch/outbox.hpp"
#include "switch/packet.hpp"
#include "switch/rotating_bloom.hpp"
#include "switch/source_qpns.hpp"
#include "switch/telemetry.hpp"

namespace roci {

// Owned by the switch's thread; counters() may be read by any.
class IntResponder {
 public:
  // `senders` may be null when responses are off or go to receivers.
  IntResponder(const TelemetryConfig& config, const MacAddress& mac, rte_mempool* pool, SourceQpns* senders,
               Outbox& outbox);

  // Asked for each packet that leaves.
  [[nodiscard]] bool is_due(uint64_t queue_bytes) const { return queue_bytes > above_; }
  // `frame` is the packet as it waited, before this switch has stamped it.
  void consider(const rte_mbuf* frame, const Departure& departure, const HopReport& report);

  [[nodiscard]] const IntResponseCounters& counters() const { return counters_; }

 private:
  [[nodiscard]] bool is_subscribed(std::span<const uint8_t> head, uint32_t length,
                                   const Departure& departure) const;
  IntResponseEvent respond(const rte_mbuf* frame, const RoceGlance& packet, const Departure& departure,
                           const HopReport& report);
  [[nodiscard]] Outbox::Counter& counter(IntResponseEvent event) { return counters_.at(event); }

  const TelemetryConfig config_;
  const uint64_t above_;  // bytes; the largest when responses are off
  MacAddress mac_;
  rte_mempool* pool_;
  SourceQpns* senders_;
  Outbox& outbox_;
  RotatingBloom told_;
  EventLimit limit_;
  IntResponseCounters counters_;
};

}  // namespace roci

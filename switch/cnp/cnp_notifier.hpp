// CNP notifier (L3QCN 5.2.1 and 5.2.2 step 5): a congested queue sends a CNP to the sender of its key flow, half a
// round trip before the receiver could. The sender cannot distinguish it from a CNP of the receiver and requires no
// change.
//
//   frame queued -> queue congested? -> key flow -> sender -> not notified within `spacing`? -> CNP in the outbox
//
// With `suppress`, the switch drops CNPs of receivers and of other switches within `spacing` of its own CNP for the
// same queue pair, or of another one that arrived at the same port. A CNP of another port does not count: it may be
// forged, and the sender may reject it. Of the CNPs that arrive at the congested port, from the receiver's side, one
// within `spacing` replaces the switch's own.
#pragma once

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <memory>
#include <vector>

#include "port/port.hpp"
#include "switch/cnp/key_flow.hpp"
#include "switch/cnp/notify_counters.hpp"
#include "switch/cnp/source_qpns.hpp"
#include "switch/pipeline/outbox.hpp"
#include "switch/pipeline/packet.hpp"
#include "switch/qos/class_points.hpp"
#include "switch/switch_config.hpp"

namespace roci {

// Owned by one switch worker; counters() may be read by any thread.
class CnpNotifier {
 public:
  // `senders` may be null if no class sends CNPs: it is not accessed then.
  CnpNotifier(const SwitchConfig& config, const MacAddress& mac, rte_mempool* pool, SourceQpns* senders,
              Outbox& outbox);

  // Bitmap of the port's classes that send CNPs.
  [[nodiscard]] uint8_t points(uint16_t port) const { return points_.classes(port); }

  // Called for a CNP of a receiver or of another switch that arrived at the port `ingress`. Returns false if it must be
  // dropped.
  bool pass(const RocePeek& cnp, uint16_t ingress, Nanos now);
  // Called after a frame was queued in such a class, which now holds `queue` bytes. `packet` has its ingress port.
  void queued(uint16_t port, const SwitchPacket& packet, const rte_mbuf* frame, uint64_t queue, Nanos now);

  [[nodiscard]] const CnpCounters& counters() const { return counters_; }

 private:
  struct Nothing {};
  // A CNP of another device.
  struct Arrival {
    RoceFlow flow;
    uint16_t ingress = kNoPort;
    friend bool operator==(const Arrival&, const Arrival&) = default;
  };
  struct ArrivalHash {
    uint64_t operator()(const Arrival& one, uint64_t salt) const {
      return RoceFlowHash()(one.flow, salt ^ uint64_t{one.ingress} << 32);
    }
  };
  struct Point {
    Point(const CnpConfig& config, uint64_t seed);
    CnpPacer pacer;
    std::unique_ptr<FlowSketch> sketch;  // null except for Choice::kHeaviest
  };

  void count(CnpEvent event) { bump(counters_.at(event)); }
  // Counts the result of a sample. A CNP in the outbox is counted when it is sent.
  void finish(CnpEvent event) {
    if (event != CnpEvent::kSent) count(event);
  }
  [[nodiscard]] std::optional<KeyFlow> flow_of(const SwitchPacket& packet, const rte_mbuf* frame) const;
  // Source, destination and destination queue pair of a CNP about the flow; empty if the sender is unknown.
  [[nodiscard]] std::optional<RoceFlow> answer_to(const KeyFlow& flow, Nanos now);
  CnpEvent notify(uint16_t port, const KeyFlow& flow, Nanos now);
  CnpEvent send(const KeyFlow& flow, const RoceFlow& answer);

  MacAddress mac_;
  rte_mempool* pool_;
  SourceQpns* senders_;
  Outbox& outbox_;
  uint16_t int_port_;
  bool suppress_;
  ClassPoints<Point> points_;
  std::vector<EventLimit> limits_;  // per port
  // CNPs of the last `spacing`. Those of other devices have a table of their own, so that they cannot fill the first.
  AgeingTable<RoceFlow, Nothing, RoceFlowHash> notified_;
  AgeingTable<Arrival, Nothing, ArrivalHash> forwarded_;
  CnpCounters counters_;
};

}  // namespace roci

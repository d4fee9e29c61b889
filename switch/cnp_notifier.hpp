// Congestion notification packets of a switch (L3QCN 5.2.1 and 5.2.2 step 5): a congested queue tells the sender of its key
// flow, half a round trip before the receiver could. The sender cannot tell them from those of the receiver, and needs
// nothing new.
//
//   a frame is queued -> is the queue congested? -> whose flow matters? -> who sends it? -> not told of late? -> a CNP waits
//
// For each sender's queue pair at most one CNP in `spacing` goes by this switch, whoever makes it: those that pass by, of
// receivers and of other switches, count too, and are dropped when another has just gone.
#pragma once

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <memory>
#include <vector>

#include "port/port.hpp"
#include "switch/class_points.hpp"
#include "switch/key_flow.hpp"
#include "switch/notify_counters.hpp"
#include "switch/outbox.hpp"
#include "switch/packet.hpp"
#include "switch/source_qpns.hpp"
#include "switch/switch_config.hpp"

namespace roci {

// Owned by the switch's thread; counters() may be read by any.
class CnpNotifier {
 public:
  // `senders` may be null when no class sends CNPs: then nothing here is asked.
  CnpNotifier(const SwitchConfig& config, const MacAddress& mac, rte_mempool* pool, SourceQpns* senders,
              Outbox& outbox);

  // The classes of a port that do, a bit for each.
  [[nodiscard]] uint8_t points(uint16_t port) const { return points_.classes(port); }

  // A CNP of somebody else has come by. False when it is not to go on.
  bool pass(const RoceGlance& cnp, Nanos now);
  // A frame has been put into the queue of such a class, which now holds `queue` bytes. `packet` says where it came from.
  void queued(uint16_t port, const SwitchPacket& packet, const rte_mbuf* frame, uint64_t queue, Nanos now);

  [[nodiscard]] const CnpCounters& counters() const { return counters_; }

 private:
  struct Nothing {};
  struct Point {
    Point(const CnpConfig& config, uint64_t seed);
    CnpPacer pacer;
    std::unique_ptr<FlowSketch> sketch;  // of `heaviest`
  };

  void count(CnpEvent event) { bump(counters_.at(event)); }
  // Counts what became of a sample; a CNP that waits is counted when it is sent.
  void finish(CnpEvent event) {
    if (event != CnpEvent::kSent) count(event);
  }
  [[nodiscard]] std::optional<KeyFlow> flow_of(const SwitchPacket& packet, const rte_mbuf* frame) const;
  // What a CNP about the flow says, as a flow: from whom, to whom, and to which queue pair.
  [[nodiscard]] std::optional<RoceFlow> answer_to(const KeyFlow& flow, Nanos now);
  CnpEvent tell(uint16_t port, const KeyFlow& flow, Nanos now);
  CnpEvent send(const KeyFlow& flow, const RoceFlow& answer);

  MacAddress mac_;
  rte_mempool* pool_;
  SourceQpns* senders_;
  Outbox& outbox_;
  uint16_t int_port_;
  bool suppress_;
  ClassPoints<Point> points_;
  std::vector<EventLimit> limits_;  // by port
  // Which CNPs have gone by within `spacing`.
  AgeingTable<RoceFlow, Nothing, RoceFlowHash> told_;
  CnpCounters counters_;
};

}  // namespace roci

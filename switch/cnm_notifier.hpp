// Congestion notification messages (QCN) of a switch: the congestion points of its queues (base/congestion_point.hpp) and the messages (CNMs) that they
// lead to; and at the switch where hosts are attached the table of their flows, by which CNMs that come from beyond
// routers become those that the hosts understand.
//
//   a frame is queued -> is it sampled? -> how congested? -> a message waits -> the switch sends it by its tables
//
// A message is made from the sampled frame while that is at hand, and sent when the stages are through, so that no
// message is sent from within the sending of another frame. CNMs are never answered by CNMs.
#pragma once

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <memory>
#include <optional>
#include <vector>

#include "port/port.hpp"
#include "switch/class_points.hpp"
#include "switch/cnm_point.hpp"
#include "switch/notify_counters.hpp"
#include "switch/outbox.hpp"
#include "switch/packet.hpp"
#include "switch/router.hpp"
#include "switch/switch_config.hpp"
#include "switch/tor_shapers.hpp"
#include "switch/tor_table.hpp"
#include "wire/l3_cnm_guard.hpp"

namespace roci {

// Owned by the switch's thread; counters() may be read by any.
class CnmNotifier {
 public:
  // `shapers`: for whom CNMs may be; null when there are none.
  CnmNotifier(const SwitchConfig& config, const MacAddress& mac, rte_mempool* pool, TorShapers* shapers,
              Outbox& outbox);

  // The classes of a port that have a congestion point, a bit for each.
  [[nodiscard]] uint8_t points(uint16_t port) const { return points_.classes(port); }
  // A frame has been put into the queue of such a class of `out`, its number `port`. `packet` says where it came from.
  void queued(uint16_t port, const SwitchPort& out, const SwitchPacket& packet, const rte_mbuf* frame,
              Nanos now);

  // A frame that waits in a shaper has been sampled.
  void held(size_t shaper, const QcnFeedback& feedback, const SwitchPacket& packet, Nanos now);

  // Whether this is a switch that translates.
  [[nodiscard]] bool is_tor() const { return tor_.capacity() != 0; }
  // Whether CNMs that come may be for it.
  [[nodiscard]] bool takes() const { return is_tor() || shapers_ != nullptr; }
  // A frame with a CN-TAG has come in from a host.
  void learn(const SwitchPacket& packet, Nanos now);
  // Of what was last learnt: whether the other workers' tables are to be told.
  [[nodiscard]] bool is_to_be_told(Nanos now) const { return tor_.is_to_be_told(now); }
  void told(Nanos now) { tor_.told(now); }
  enum class Taken : uint8_t {
    kNotOurs,     // no self-defined CNM, or one for somebody who is not attached here
    kRefused,     // counted; to be dropped
    kTranslated,  // the frame is the CNM for the host now, in packet.vlan
    kShaped,      // it was for a shaper here; to be freed
  };
  Taken take(SwitchPacket& packet, const Router& router, Nanos now);
  // A copy of one that was for a shaper, from another worker.
  void overhear(const rte_mbuf* frame, Nanos now);

  void count(CnmEvent event) { bump(counter(event)); }
  [[nodiscard]] const CnmCounters& counters() const { return counters_; }
  [[nodiscard]] const TorTable& flows() const { return tor_; }

 private:
  [[nodiscard]] Outbox::Counter& counter(CnmEvent event) { return counters_.at(event); }
  [[nodiscard]] bool is_self_defined(const rte_mbuf* frame) const;
  CnmEvent answer(const CnmSample& sample, uint16_t point, bool l3, const SwitchPacket& packet,
                  const rte_mbuf* frame, Nanos now);
  [[nodiscard]] CnmEvent allowed(Nanos now);
  // Whether a message may be believed.
  bool is_believed(std::span<const uint8_t> frame, const L3CnmView& view, Nanos now);
  CnmEvent put_l2(const CnmLink& link, const Cnm& cnm, uint16_t vlan, CnmEvent as, Nanos now);
  CnmEvent put_l3(const FiveTuple& flow, const Cnm& cnm, L3CnmTlvs tlvs, Nanos now);

  MacAddress mac_;
  rte_mempool* pool_;
  TorShapers* shapers_;
  Outbox& outbox_;
  uint16_t udp_port_;
  ClassPoints<CnmPoint> points_;
  bool delivers_unknown_;
  EventLimit sent_;
  EventLimit translated_;
  TorTable tor_;
  // Of signed messages.
  std::optional<SipKey> key_;
  Nanos time_of_day_;
  L3CnmSequence sequence_;
  L3CnmGuard guard_;
  CnmCounters counters_;
};

}  // namespace roci

// CNM notifier: sends congestion notification messages (CNMs) of QCN for the congestion points of a switch's queues
// (base/congestion_point.hpp). A switch with attached hosts (ToR) also has a table of their flows, by which it
// translates CNMs from other networks for these hosts.
//
//   frame queued -> sampled? -> feedback -> CNM in the outbox -> sent by MAC table or by route
//
// A CNM is built from the sampled frame while it is queued, and sent after all ports have been polled. No message is
// therefore sent while another frame is being sent. CNMs are not answered by CNMs.
#pragma once

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <memory>
#include <optional>
#include <vector>

#include "port/port.hpp"
#include "switch/cnp/notify_counters.hpp"
#include "switch/forwarding/router.hpp"
#include "switch/pipeline/outbox.hpp"
#include "switch/pipeline/packet.hpp"
#include "switch/qcn/cnm_point.hpp"
#include "switch/qcn/tor_shapers.hpp"
#include "switch/qcn/tor_table.hpp"
#include "switch/qos/class_points.hpp"
#include "switch/switch_config.hpp"
#include "wire/cnm/l3_cnm_guard.hpp"

namespace roci {

// Owned by one switch worker; counters() may be read by any thread.
class CnmNotifier {
 public:
  // `shapers` process CNMs; null if the switch has none.
  CnmNotifier(const SwitchConfig& config, const MacAddress& mac, rte_mempool* pool, TorShapers* shapers,
              Outbox& outbox);

  // Bitmap of the port's classes that have a congestion point.
  [[nodiscard]] uint8_t points(uint16_t port) const { return points_.classes(port); }
  // Called after a frame was queued in such a class of `out`, the port with number `port`. `packet` has its ingress
  // port.
  void queued(uint16_t port, const SwitchPort& out, const SwitchPacket& packet, const rte_mbuf* frame,
              Nanos now);

  // Called when a frame that waits in a shaper was sampled.
  void held(size_t shaper, const QcnFeedback& feedback, const SwitchPacket& packet, Nanos now);

  // Whether the switch translates CNMs for its attached hosts.
  [[nodiscard]] bool is_tor() const { return tor_.capacity() != 0; }
  // Whether received CNMs may be for this switch.
  [[nodiscard]] bool takes() const { return is_tor() || shapers_ != nullptr; }
  // Learns the flow of a frame with a CN-TAG that a host has sent.
  void learn(const SwitchPacket& packet, Nanos now);
  // Whether the other workers' tables need the flow of the last learn() (AgeingTable).
  [[nodiscard]] bool needs_announcement(Nanos now) const { return tor_.needs_announcement(now); }
  void announced(Nanos now) { tor_.announced(now); }
  enum class Taken : uint8_t {
    kNotHandled,  // no self-defined CNM, or for a host that is not attached here
    kRefused,     // counted; the caller must drop the frame
    kTranslated,  // the frame is now the CNM for the host, in packet.vlan
    kShaped,      // processed by a shaper; the caller must free the frame
  };
  Taken take(SwitchPacket& packet, const Router& router, Nanos now);
  // Processes a copy of a CNM for a shaper that another worker has received.
  void observe(const rte_mbuf* frame, Nanos now);

  void count(CnmEvent event) { bump(counter(event)); }
  [[nodiscard]] const CnmCounters& counters() const { return counters_; }
  [[nodiscard]] const TorTable& flows() const { return tor_; }

 private:
  [[nodiscard]] Outbox::Counter& counter(CnmEvent event) { return counters_.at(event); }
  [[nodiscard]] bool is_self_defined(const rte_mbuf* frame) const;
  CnmEvent answer(const CnmSample& sample, uint16_t point, bool l3, const SwitchPacket& packet,
                  const rte_mbuf* frame, Nanos now);
  [[nodiscard]] CnmEvent allowed(Nanos now);
  // Whether the signature of a message is valid and its sequence number new.
  bool is_authentic(std::span<const uint8_t> frame, const L3CnmView& view, Nanos now);
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
  // For signed messages.
  std::optional<SipKey> key_;
  Nanos time_of_day_;
  L3CnmSequence sequence_;
  L3CnmGuard guard_;
  CnmCounters counters_;
};

}  // namespace roci

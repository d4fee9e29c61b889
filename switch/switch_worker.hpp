// One worker of a switch: the stages that every frame passes which comes in by one of its ports, and the queues behind its
// ports. With several, each on a core of its own, a frame changes hands once, between forward and admit, when its egress
// port is another's; so one core owns a queue, and what telemetry says of it is of one instant.
//
//   rx_burst -> parse -> classify -> learn -> observe -> route -> forward -> | admit -> queue -> schedule -> tx_burst
//                 |         |                              |         |       |   |         |         |
//               PFC in   DSCP, PCP        own MAC: rewrite, answer MAC table |  AQM,    a class   strict, DWRR,
//                                         ARP/ND/echo       or flood     another buffer, each   rate, pauses, AQM
//                                                                        worker's ring         PFC out
//
// parse.cpp, classify.hpp, router.cpp, admit.cpp, with what waits for a rate towards another switch in tor_shapers.cpp,
// buffer.cpp, aqm.cpp; egress_port.cpp has the queues,
// scheduler.cpp says which is next, pfc.cpp speaks with the neighbours; cnm_notifier.cpp (QCN), cnp_notifier.cpp and
// int_responder.cpp with the senders of flows, through an outbox that is emptied when all ports have been looked at.
//
// Ownership: a frame belongs to the switch from rx_burst() until tx_burst() takes it. Unicast moves the frame that came
// in; flooding gives every port but the last a copy of its own, so each egress may change its headers. A stage that
// changes one calls own_front() first, since a frame may arrive sharing memory with its sender.
//
// What workers know of addresses, neighbours and flows each has for itself: what one learns it tells the others, with the
// first frame and again four times in the life of an entry, so no look-up needs a lock.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/growing_ring.hpp"
#include "base/poller.hpp"
#include "base/result.hpp"
#include "port/eal.hpp"
#include "port/port.hpp"
#include "switch/arrivals.hpp"
#include "switch/cnm_notifier.hpp"
#include "switch/cnp_notifier.hpp"
#include "switch/frame_edit.hpp"
#include "switch/hand_over.hpp"
#include "switch/int_responder.hpp"
#include "switch/mac_table.hpp"
#include "switch/outbox.hpp"
#include "switch/pfc.hpp"
#include "switch/route_table.hpp"
#include "switch/router.hpp"
#include "switch/source_qpns.hpp"
#include "switch/switch_config.hpp"
#include "switch/switch_port.hpp"
#include "switch/tor_shapers.hpp"

namespace roci {

// What the workers of a switch share.
struct SwitchShared {
  SwitchConfig config;
  MacAddress mac;
  std::shared_ptr<MbufPool> pool;
  SwitchBuffer buffer;
  SwitchRings rings;
  std::vector<std::unique_ptr<SwitchPort>> ports;
  RouteTable routes;
};

// Threads: one polls; counters may be read by any.
class SwitchWorker final : public Poller, private RouterOutput {
 public:
  SwitchWorker(SwitchShared& shared, uint32_t number);
  ~SwitchWorker() override;
  // Makes its ports, of those that `ports` has, in the order of the configuration, and its router.
  Status open(const std::vector<Port*>& ports);

  // See Switch.
  bool insert(size_t port, rte_mbuf* frame);

  // From now on frames are taken from ports where it says that there are any; it outlives the worker.
  void foresee(SwitchArrivals& arrivals) { arrivals_ = &arrivals; }

  // One burst from every port and from every other worker, and what is due to every port.
  bool poll(Nanos now) override;
  [[nodiscard]] Nanos next_deadline() const override;
  [[nodiscard]] std::string_view name() const override { return name_; }

  [[nodiscard]] const SwitchPortCounters& own_counters() const { return own_counters_; }
  [[nodiscard]] uint64_t mac_moves() const { return mac_moves_.load(std::memory_order_relaxed); }
  [[nodiscard]] uint64_t mac_table_full() const { return mac_table_full_.load(std::memory_order_relaxed); }
  [[nodiscard]] uint32_t mac_table_size() const { return macs_.size(); }  // by the polling thread
  [[nodiscard]] const CnmCounters& cnm_counters() const { return cnms_.counters(); }
  [[nodiscard]] const CnpCounters& cnp_counters() const { return cnps_.counters(); }
  [[nodiscard]] const IntResponseCounters& int_response_counters() const { return responder_.counters(); }
  [[nodiscard]] const TorShapers* shapers() const { return shapers_.get(); }
  [[nodiscard]] const SenderCounters* sender_counters() const {
    return senders_ == nullptr ? nullptr : &senders_->counters();
  }

 private:
  // Frames that are taken from a port in a round. A round over memif moves two cache lines in each direction between cores,
  // for 300 ns each when they are far from each other, so many frames should share them; the buffers of 128 short ones still
  // fit into a first-level cache.
  static constexpr size_t kBurst = 128;
  // A real port that had nothing for so many rounds is asked in one round of so many, until it has something: of many ports few
  // are busy, or connected at all, and asking one that is not costs what it costs to ask one that is.
  static constexpr uint32_t kRoundsUntilRest = 256;
  static constexpr uint32_t kRoundsOfRest = 8;
  static constexpr size_t kMostInserted = 256;

  bool receive_from_all(Nanos now);
  bool receive(uint16_t ingress, Nanos now);
  bool receive_inserted(Nanos now);
  // What has come in by a port, through all stages up to its queues.
  void take_in(uint16_t ingress, std::span<rte_mbuf*> frames, Nanos now);
  void parse_stage(std::span<SwitchPacket> batch, const SwitchPort& in, Nanos now);
  void classify_stage(std::span<SwitchPacket> batch);
  void learn_stage(std::span<SwitchPacket> batch, Nanos now);
  // CN-TAGs, and CNMs for hosts here.
  void notification_stage(std::span<SwitchPacket> batch, Nanos now);
  void translate(SwitchPacket& packet, Nanos now);
  // Who sends which flow of RoCEv2; CNPs of others.
  void observe_stage(std::span<SwitchPacket> batch, Nanos now);
  // False for a CNP that is not to go on.
  bool observe(const SwitchPacket& packet, Nanos now);
  void route_stage(std::span<SwitchPacket> batch, Nanos now);
  void forward_stage(std::span<SwitchPacket> batch, Nanos now);
  void forward_one(SwitchPacket& packet, Nanos now);
  void flood(SwitchPacket& packet, Nanos now);
  [[nodiscard]] bool fits_mtu(const rte_mbuf& frame, const SwitchPort& out) const;
  // Puts the packet's frame into the queue of a port, or counts why not; or gives it to who owns the port. With `copy`, a
  // copy of it, and the frame stays.
  void admit(const SwitchPacket& packet, bool copy, uint16_t egress, Nanos now) {
    SwitchPort& out = *shared_.ports[egress];
    if (out.worker != number_) return hand_over(packet, copy, egress);
    if (copy || shapers_ == nullptr || pass_shaper(packet, egress, now)) admit_here(packet, copy, out, now);
  }
  // Of a port of its own: false when the frame waits for its shaper, or has been dropped.
  bool pass_shaper(const SwitchPacket& packet, uint16_t egress, Nanos now);
  bool release_held(Nanos now);
  void count_refused(const SwitchPacket& packet, uint16_t egress, DropReason reason);
  void admit_here(const SwitchPacket& packet, bool copy, SwitchPort& out, Nanos now);
  // Whether a frame that is to leave with so many bytes may wait at the port, and if not why; and what its class's AQM says.
  struct Admission {
    DropReason refused = DropReason::kNone;
    AqmVerdict verdict = AqmVerdict::kPass;
  };
  Admission ask(const SwitchPacket& packet, uint32_t length, SwitchPort& out, Nanos now);
  void refuse(const SwitchPacket& packet, bool copy, DropReason reason, SwitchPort& out);
  // The frame as it leaves by the port, or a copy that does; null, and counted, when there is no buffer for it.
  rte_mbuf* prepare(const SwitchPacket& packet, bool copy, TagEdit edit, bool mark, SwitchPort& out);
  void notify(const SwitchPacket& packet, const rte_mbuf* frame, const SwitchPort& out, Nanos now);
  bool drain(Nanos now);

  // What the notifiers have made.
  void send_messages(Nanos now);
  // Says where the message is to be counted. When it was not sent, its frame is still there.
  Outbox::Counter* send(const Outbox::Message& message, SwitchPacket& packet, Nanos now);

  // To and from other workers.
  void hand_over(const SwitchPacket& packet, bool copy, uint16_t egress);
  bool tell_others(const SwitchHandOver& what);
  bool take_over(uint32_t from, Nanos now);
  void take(SwitchHandOver& handed, Nanos now);

  void forward(SwitchPacket& packet, Nanos now) override;
  void drop(SwitchPacket& packet, DropReason reason) override;
  SwitchPortCounters& counters_of(const SwitchPacket& packet) override;
  [[nodiscard]] bool is_alone() const { return shared_.rings.workers() == 1; }
  [[nodiscard]] rte_mempool* pool() const { return shared_.pool->get(); }

  SwitchShared& shared_;
  const SwitchConfig& config_;
  const uint32_t number_;
  std::string name_;
  struct OwnPort {
    uint16_t number;
    bool foresees;          // simulated: it says when something comes
    uint32_t empty_rounds;  // since it had something
  };
  std::vector<OwnPort> own_ports_;
  struct Inserted {
    uint16_t ingress = 0;
    rte_mbuf* frame = nullptr;
  };
  GrowingRing<Inserted> inserted_;
  uint32_t round_ = 0;
  uint32_t empty_rounds_ = 0;  // since any port had something
  PortSet busy_;               // of them, those with something to send
  SwitchArrivals* arrivals_ = nullptr;
  std::array<SwitchPacket, kBurst> batch_;
  Outbox outbox_;
  std::unique_ptr<SourceQpns> senders_;  // null when nobody is to be told anything
  std::unique_ptr<TorShapers> shapers_;  // null without any
  CnmNotifier cnms_;
  CnpNotifier cnps_;
  IntResponder responder_;
  Telemetry telemetry_;
  std::unique_ptr<PauseControl> pauses_;
  MacTable macs_;
  Router router_;
  bool cn_tags_ = false;  // the batch has frames with a CN-TAG
  SwitchPortCounters own_counters_;
  std::atomic<uint64_t> mac_moves_{0};
  std::atomic<uint64_t> mac_table_full_{0};
};

}  // namespace roci

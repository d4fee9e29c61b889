// Worker of a switch: the stages for frames received by its ports, and the egress queues of its ports. With several
// workers, each on its own core, a frame is passed once between workers: from forward to admit, if its egress port
// belongs to another worker. One core therefore owns a queue, and its telemetry values are of one instant.
//
//   rx_burst -> parse -> classify -> learn -> observe -> route -> forward -> | admit -> queue -> schedule -> tx_burst
//                 |         |                              |         |       |   |         |         |
//               PFC in   DSCP, PCP        own MAC: rewrite, answer MAC table |  AQM,    one per   strict, DWRR,
//                                         ARP/ND/echo       or flood     another buffer, class  rate, pauses, AQM
//                                                                        worker's ring         PFC out
//
// Between classify and route, as configured: bind (address bindings), learn, notify (CN-TAGs and CNMs), observe (senders
// of flows). Files of the stages: parse.cpp, classify.hpp, router.cpp, tor_shapers.cpp (frames that wait for the rate of a
// shaper), admit.cpp, buffer.cpp, aqm.cpp, egress_port.cpp (queues), scheduler.cpp and pfc.cpp. The notifiers
// cnm_notifier.cpp (QCN), cnp_notifier.cpp and int_responder.cpp send messages through an outbox, which is emptied
// after all ports have been polled.
//
// Ownership: the switch owns a frame from rx_burst() until tx_burst() accepts it. Unicast moves the received frame.
// Flooding gives a copy to each port except the last, so that each egress may change its headers. A stage that changes
// a header calls own_front() first, since a received frame may share memory with its sender.
//
// Each worker has its own tables of addresses, neighbors and flows, so lookups require no lock. A worker announces what
// it learns to the others: with the first frame, and then four times per `ageing`.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/containers/growing_ring.hpp"
#include "base/result.hpp"
#include "base/types.hpp"
#include "port/dpdk/mbuf_pool.hpp"
#include "port/port.hpp"
#include "roci/poller.hpp"
#include "switch/cnp/cnp_notifier.hpp"
#include "switch/cnp/source_qpns.hpp"
#include "switch/forwarding/mac_table.hpp"
#include "switch/forwarding/port_bindings.hpp"
#include "switch/forwarding/route_table.hpp"
#include "switch/forwarding/router.hpp"
#include "switch/pipeline/arrivals.hpp"
#include "switch/pipeline/frame_edit.hpp"
#include "switch/pipeline/handoff.hpp"
#include "switch/pipeline/outbox.hpp"
#include "switch/pipeline/switch_port.hpp"
#include "switch/qcn/cnm_notifier.hpp"
#include "switch/qcn/tor_shapers.hpp"
#include "switch/qos/pfc.hpp"
#include "switch/switch_config.hpp"
#include "switch/telemetry/int_responder.hpp"

namespace roci {

// State that the workers of a switch share.
struct SwitchShared {
  SwitchConfig config;
  MacAddress mac;
  std::shared_ptr<MbufPool> pool;
  SwitchBuffer buffer;
  SwitchRings rings;
  std::vector<std::unique_ptr<SwitchPort>> ports;
  RouteTable routes;
  PortBindings bindings;
};

// Threads: polled by one thread; counters may be read by any.
class SwitchWorker final : public Poller, private RouterOutput {
 public:
  SwitchWorker(SwitchShared& shared, uint32_t number);
  ~SwitchWorker() override;
  // Creates its ports, from those of `ports` in the order of the configuration, and its router.
  Status open(const std::vector<Port*>& ports);

  // See Switch::insert().
  bool insert(size_t port, rte_mbuf* frame);

  // Sets the forecast that selects the ports to poll. It must outlive the worker.
  void report_arrivals_to(SwitchArrivals& arrivals) { arrivals_ = &arrivals; }

  // Receives a burst from each port and each other worker, and sends the due frames of each port.
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
  // Frames received from a port per round. A memif round moves two cache lines per direction between cores, at 300 ns
  // each between distant cores, so many frames should share them. Buffers of 128 short frames fit into the L1 cache.
  static constexpr size_t kBurst = 128;
  // A real port without frames in kRoundsUntilRest rounds is polled in one of kRoundsOfRest rounds, until it has
  // frames. Of many ports, few are busy or connected, and polling an idle port costs as much as polling a busy one.
  static constexpr uint32_t kRoundsUntilRest = 256;
  static constexpr uint32_t kRoundsOfRest = 8;
  static constexpr size_t kMaxInserted = 256;

  bool receive_from_all(Nanos now);
  bool receive(uint16_t ingress, Nanos now);
  bool receive_inserted(Nanos now);
  // Passes frames received by a port through all stages, up to the egress queues.
  void process_received(uint16_t ingress, std::span<rte_mbuf*> frames, Nanos now);
  void parse_stage(std::span<SwitchPacket> batch, const SwitchPort& in, Nanos now);
  void classify_stage(std::span<SwitchPacket> batch);
  // Drops packets with IP addresses that must not arrive at their port.
  void binding_stage(std::span<SwitchPacket> batch);
  void learn_stage(std::span<SwitchPacket> batch, Nanos now);
  // Processes CN-TAGs, and CNMs for attached hosts.
  void notification_stage(std::span<SwitchPacket> batch, Nanos now);
  void translate(SwitchPacket& packet, Nanos now);
  // Learns the senders of RoCEv2 flows, and observes CNPs of other devices.
  void observe_stage(std::span<SwitchPacket> batch, Nanos now);
  // Returns false for a CNP that must be dropped, if this worker `suppresses` CNPs.
  bool observe(const SwitchPacket& packet, bool suppresses, Nanos now);
  void route_stage(std::span<SwitchPacket> batch, Nanos now);
  void forward_stage(std::span<SwitchPacket> batch, Nanos now);
  void forward_one(SwitchPacket& packet, Nanos now);
  void flood(SwitchPacket& packet, Nanos now);
  [[nodiscard]] bool fits_mtu(const rte_mbuf& frame, const SwitchPort& out) const;
  // Queues the packet's frame at a port, counts a drop, or passes the frame to the port's worker. With `copy`, it uses
  // a copy, and the caller keeps the frame.
  void admit(const SwitchPacket& packet, bool copy, uint16_t egress, Nanos now) {
    SwitchPort& out = *shared_.ports[egress];
    if (out.worker != number_) return hand_over(packet, copy, egress);
    if (copy || shapers_ == nullptr || pass_shaper(packet, egress, now)) admit_here(packet, copy, out, now);
  }
  // For a port of this worker. Returns false if the frame waits for its shaper, or was dropped.
  bool pass_shaper(const SwitchPacket& packet, uint16_t egress, Nanos now);
  bool release_held(Nanos now);
  void count_refused(const SwitchPacket& packet, uint16_t egress, DropReason reason);
  void admit_here(const SwitchPacket& packet, bool copy, SwitchPort& out, Nanos now);
  // Result of check_admission(), for a frame that would leave with `length` bytes: reason of a drop, or kNone and the AQM verdict.
  struct Admission {
    DropReason refused = DropReason::kNone;
    AqmVerdict verdict = AqmVerdict::kPass;
  };
  Admission check_admission(const SwitchPacket& packet, uint32_t length, SwitchPort& out, Nanos now);
  void refuse(const SwitchPacket& packet, bool copy, DropReason reason, SwitchPort& out);
  // Returns the frame, or with `copy` a copy, edited for the port. Returns null, and counts the drop, if the pool is
  // empty.
  rte_mbuf* prepare(const SwitchPacket& packet, bool copy, TagEdit edit, bool mark, SwitchPort& out);
  void notify(const SwitchPacket& packet, const rte_mbuf* frame, const SwitchPort& out, Nanos now);
  bool drain(Nanos now);

  // Sends the messages of the notifiers.
  void send_messages(Nanos now);
  // Returns the counter for the result. If the message was not sent, packet.frame is still set.
  Outbox::Counter* send(const Outbox::Message& message, SwitchPacket& packet, Nanos now);

  // Frames and learned entries, to and from other workers.
  void hand_over(const SwitchPacket& packet, bool copy, uint16_t egress);
  bool send_to_others(const SwitchHandoff& what);
  bool drain_handoff(uint32_t from, Nanos now);
  void take(SwitchHandoff& handed, Nanos now);

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
    bool predicts_arrivals;  // simulated: reports its next arrival
    uint32_t empty_rounds;   // since its last frame
  };
  std::vector<OwnPort> own_ports_;
  struct Inserted {
    uint16_t ingress = 0;
    rte_mbuf* frame = nullptr;
  };
  GrowingRing<Inserted> inserted_;
  uint32_t round_ = 0;
  uint32_t empty_rounds_ = 0;  // since the last frame of any port
  PortSet busy_;               // own ports with frames to send
  SwitchArrivals* arrivals_ = nullptr;
  std::array<SwitchPacket, kBurst> batch_;
  Outbox outbox_;
  std::unique_ptr<SourceQpns> senders_;  // null without CNPs and telemetry responses
  std::unique_ptr<TorShapers> shapers_;  // null without shapers
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

// A software switch: a learning VLAN bridge (802.1Q) with static layer 3 forwarding between its VLANs, eight traffic
// classes with their own marking, shares of the line and flow control, and a paced line behind every port.
//
//   rx_burst -> parse -> classify -> learn -> route -> forward -> admit -> queue -> schedule -> tx_burst
//                 |         |                   |         |         |        |         |
//               PFC in   DSCP, PCP   own MAC: rewrite  MAC table  AQM,    a class   strict, DWRR,
//                                    answer ARP/ND/echo  or flood buffer, each      rate, pauses, AQM
//                                                                 PFC out
//
// parse.cpp, classify.cpp, router.cpp, admission here in admit(), buffer.cpp, aqm.cpp; egress_port.cpp has the queues,
// scheduler.cpp says which is next, pfc.cpp speaks with the neighbours; cnm_notifier.cpp (QCN) and cnp_notifier.cpp with
// the senders of flows, through an outbox that is emptied when all ports have been looked at.
//
// Ownership: a frame belongs to the switch from rx_burst() until tx_burst() takes it. Unicast moves the frame that came
// in; flooding gives every port but the last a copy of its own, so each egress may change its headers. A stage that
// changes one calls own_front() first, since a frame may arrive sharing memory with its sender.
//
// Threads: one polls; counters() may be read by any.
#pragma once

#include <array>
#include <bitset>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/poller.hpp"
#include "base/result.hpp"
#include "port/eal.hpp"
#include "port/port.hpp"
#include "switch/cnm_notifier.hpp"
#include "switch/cnp_notifier.hpp"
#include "switch/counters.hpp"
#include "switch/egress_port.hpp"
#include "switch/int_responder.hpp"
#include "switch/mac_table.hpp"
#include "switch/outbox.hpp"
#include "switch/packet.hpp"
#include "switch/pfc.hpp"
#include "switch/router.hpp"
#include "switch/source_qpns.hpp"
#include "switch/switch_config.hpp"

namespace roci {

class Switch final : public Poller, private RouterOutput {
 public:
  // `ports` in the order of config.ports; they must outlive the switch. `pool` gives copies and answers.
  static Result<std::unique_ptr<Switch>> create(const SwitchConfig& config, const std::vector<Port*>& ports,
                                                std::shared_ptr<MbufPool> pool);
  ~Switch() override;

  // One burst from every port, and what is due to every port.
  bool poll(Nanos now) override;
  [[nodiscard]] Nanos next_deadline() const override;
  [[nodiscard]] std::string_view name() const override { return config_.name; }

  [[nodiscard]] size_t port_count() const { return ports_.size(); }
  [[nodiscard]] const SwitchPortConfig& port_config(size_t port) const { return config_.ports[port]; }
  [[nodiscard]] const SwitchPortCounters& counters(size_t port) const { return ports_[port]->counters; }
  // What was dropped of the frames that the switch itself had made.
  [[nodiscard]] const SwitchPortCounters& own_counters() const { return own_counters_; }
  // Addresses that changed their port, and that were not learnt because the table was full.
  [[nodiscard]] uint64_t mac_moves() const { return mac_moves_.load(std::memory_order_relaxed); }
  [[nodiscard]] uint64_t mac_table_full() const { return mac_table_full_.load(std::memory_order_relaxed); }
  [[nodiscard]] uint32_t mac_table_size() const { return macs_.size(); }  // by the polling thread
  // Congestion notification of all ports.
  [[nodiscard]] const SwitchCnmCounters& cnm_counters() const { return cnms_.counters(); }
  [[nodiscard]] const SwitchCnpCounters& cnp_counters() const { return cnps_.counters(); }
  [[nodiscard]] const SwitchIntResponseCounters& int_response_counters() const {
    return responder_.counters();
  }
  // Of flows whose senders it may have to tell something; null when it tells nobody.
  [[nodiscard]] const SwitchSenderCounters* sender_counters() const {
    return senders_ == nullptr ? nullptr : &senders_->counters();
  }
  [[nodiscard]] const MacAddress& mac() const { return mac_; }
  // By the polling thread: curves of a port's classes from now on. Shares, limits and PFC stay as they are; what waits
  // is not touched. Fails as check() does.
  Status configure_marking(size_t port, const ClassConfigs& classes);

 private:
  static constexpr size_t kBurst = 64;

  struct PortState {
    PortState(Port& p, const SwitchPortConfig& config, uint16_t index, uint64_t seed,
              const EgressPort::Surroundings& surroundings);
    [[nodiscard]] bool carries(uint16_t vlan) const { return member.test(vlan); }

    Port& port;
    const PortCapabilities& capabilities;
    uint16_t native;
    TelemetryRole role;
    bool keeps_cn_tags;
    uint8_t cnm_points = 0;    // classes with a congestion point of QCN, a bit for each
    uint8_t cnp_points = 0;    // classes that send CNPs
    std::bitset<4096> member;  // VLANs
    SwitchPortCounters counters;
    EgressPort egress;
  };

  Switch(const SwitchConfig& config, const std::vector<Port*>& ports, std::shared_ptr<MbufPool> pool);

  bool receive(uint16_t ingress, Nanos now);
  void parse_stage(std::span<SwitchPacket> batch, Nanos now);
  void classify_stage(std::span<SwitchPacket> batch);
  void learn_stage(std::span<SwitchPacket> batch, Nanos now);
  // CN-TAGs, and CNMs for hosts here.
  void notification_stage(std::span<SwitchPacket> batch, Nanos now);
  void translate(SwitchPacket& packet, Nanos now);
  // Who sends which flow of RoCEv2; CNPs of others.
  void observe_stage(std::span<SwitchPacket> batch, Nanos now);
  // What the notifiers have made.
  void send_messages(Nanos now);
  // Says where the message is to be counted. When it was not sent, its frame is still there.
  Outbox::Counter* send(const Outbox::Message& message, SwitchPacket& packet, Nanos now);
  void notify(const SwitchPacket& packet, const rte_mbuf* frame, uint16_t egress, Nanos now);
  void route_stage(std::span<SwitchPacket> batch, Nanos now);
  void forward_stage(std::span<SwitchPacket> batch, Nanos now);
  void flood(SwitchPacket& packet, Nanos now);
  [[nodiscard]] bool fits_mtu(const rte_mbuf& frame, const PortState& out) const;
  // Puts the packet's frame into the queue of a port, or counts why not. With `copy`, a copy of it, and the frame stays.
  void admit(const SwitchPacket& packet, bool copy, uint16_t egress, Nanos now);
  bool drain(Nanos now);

  void forward(SwitchPacket& packet, Nanos now) override;
  void drop(SwitchPacket& packet, DropReason reason) override;
  SwitchPortCounters& counters_of(const SwitchPacket& packet) override;

  SwitchConfig config_;
  MacAddress mac_;
  std::shared_ptr<MbufPool> pool_;
  SwitchBuffer buffer_;
  Outbox outbox_;
  std::unique_ptr<SourceQpns> senders_;  // null when nobody is to be told anything
  CnmNotifier cnms_;
  CnpNotifier cnps_;
  IntResponder responder_;
  Telemetry telemetry_;
  std::vector<std::unique_ptr<PortState>> ports_;
  std::unique_ptr<PauseControl> pauses_;
  MacTable macs_;
  Router router_;
  bool cn_tags_ = false;  // the batch has frames with a CN-TAG
  SwitchPortCounters own_counters_;
  std::atomic<uint64_t> mac_moves_{0};
  std::atomic<uint64_t> mac_table_full_{0};
};

}  // namespace roci

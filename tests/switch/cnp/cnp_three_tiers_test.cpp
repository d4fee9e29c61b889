// Notification delay of CNPs from the switch compared with CNPs from the receiver (L3QCN 5.2.1; Q19 of the DCQCN
// discussion, delay of the control loop). Path: hosts - ToR - aggregation - core - aggregation - ToR - hosts, queue
// at the core.
#include <algorithm>
#include <optional>

#include "switch/qcn/cnm_bench.hpp"
#include "switch/switch_bench.hpp"
#include "wire/roce/packet.hpp"
#include "wire/roce/roce_cnp.hpp"

namespace roci {
namespace {

using test::ip;
constexpr uint8_t kDataClass = 7;
constexpr Bytes kThreshold{20'000};

const MacAddress kSenderMac{{2, 0, 0, 0, 1, 1}}, kReceiverMac{{2, 0, 0, 0, 1, 2}};
const Qpn kSenderQp{0x111}, kReceiverQp{0x222};

enum class Learning { kPackets, kConnectionManager, kAcks };

// Sends one packet per `gap` and records the arrival times of CNPs.
class Sender final : public Poller {
 public:
  Sender(Port& port, std::shared_ptr<MbufPool> pool, bool says) : port_(port), pool_(std::move(pool)) {
    packet_ = make_packet(Opcode::kRcWriteMiddle).to(kReceiverQp, Psn{0xfffff0});
    packet_.between(kSenderMac, ip("10.0.0.1"), kReceiverMac, ip("10.0.0.2"));
    packet_.with_traffic_class(kDataClass << 5 | 2).with_payload(ByteVector(1024));
    if (!says) return;
    ExtensionBlock block;
    block.source_qp = kSenderQp;
    packet_.with_extensions(block);
  }
  void say(const Packet& packet, Nanos now) {
    rte_mbuf* frame = test::to_mbuf(*pool_, encode_packet(packet));
    ASSERT_EQ(port_.tx_burst({&frame, 1}, now), 1);
  }
  bool poll(Nanos now) override {
    bool worked = false;
    rte_mbuf* frame = nullptr;
    while (port_.rx_burst({&frame, 1}, now) == 1) {
      worked = true;
      const auto packet = decode_packet(test::bytes_of(frame));
      rte_pktmbuf_free(frame);
      if (!packet) continue;
      if (packet->bth.opcode == Opcode::kRcAcknowledge && !first_ack) first_ack = now;
      if (packet->bth.opcode != Opcode::kCnp) continue;
      EXPECT_EQ(packet->bth.destination_qp, kSenderQp);
      auto& when = packet->source_mac == kReceiverMac ? from_receiver : from_switch;
      if (!when) when = now;
    }
    if (gap > Nanos{0} && now >= next_) {
      say(packet_.finish(), now);
      ++packet_.bth.psn;
      next_ = now + gap;
      worked = true;
    }
    return worked;
  }
  [[nodiscard]] Nanos next_deadline() const override {
    return std::min(port_.next_arrival(), gap > Nanos{0} ? next_ : kNever);
  }
  [[nodiscard]] std::string_view name() const override { return "sender"; }

  Nanos gap{0};  // 0: sends nothing
  std::optional<Nanos> from_switch, from_receiver, first_ack;

 private:
  Port& port_;
  std::shared_ptr<MbufPool> pool_;
  Packet packet_;
  Nanos next_{0};
};

// Acknowledges each packet and sends a CNP for each marked packet without delay, which is faster than any NIC.
class Receiver final : public Poller {
 public:
  Receiver(Port& port, std::shared_ptr<MbufPool> pool) : port_(port), pool_(std::move(pool)) {}
  void answer(Packet packet, uint8_t traffic_class, Nanos now) {
    packet.between(kReceiverMac, ip("10.0.0.2"), kSenderMac, ip("10.0.0.1"))
        .with_traffic_class(traffic_class);
    rte_mbuf* frame = test::to_mbuf(*pool_, encode_packet(packet.finish()));
    ASSERT_EQ(port_.tx_burst({&frame, 1}, now), 1);
  }
  bool poll(Nanos now) override {
    bool worked = false;
    rte_mbuf* frame = nullptr;
    while (port_.rx_burst({&frame, 1}, now) == 1) {
      worked = true;
      const auto packet = decode_packet(test::bytes_of(frame));
      rte_pktmbuf_free(frame);
      if (!packet || packet->bth.destination_qp != kReceiverQp) continue;
      answer(make_packet(Opcode::kRcAcknowledge).to(kSenderQp, packet->bth.psn), kDataClass << 5 | 2, now);
      if (packet->ecn() == Ecn::kCe && now >= next_cnp_) {
        answer(make_packet(Opcode::kCnp).to(kSenderQp, Psn{0}), kFeedbackTrafficClass, now);
        next_cnp_ = now + 50us;
      }
    }
    return worked;
  }
  [[nodiscard]] Nanos next_deadline() const override { return port_.next_arrival(); }
  [[nodiscard]] std::string_view name() const override { return "receiver"; }

 private:
  Port& port_;
  std::shared_ptr<MbufPool> pool_;
  Nanos next_cnp_{0};
};

struct Case {
  Nanos delay;  // of each of the six links
  Learning learning;
  CnpConfig::Choice key_flow;
};

class CnpThreeTiers : public SwitchTest, public testing::WithParamInterface<Case> {
 protected:
  static constexpr size_t kSwitches = 5, kCore = 2;

  void build(bool suppress) {
    for (size_t i = 0; i <= kSwitches; ++i) {
      SimLinkConfig link{.name = "link" + std::to_string(i)};
      link.a_to_b.rate = link.b_to_a.rate = 100_Gbps;
      link.a_to_b.delay = link.b_to_a.delay = GetParam().delay;
      links_.push_back(std::make_unique<SimLink>(link, pool_));
      runner_.add(*links_.back());
    }
    for (size_t i = 0; i < kSwitches; ++i) {
      SwitchConfig config = ports(2);
      config.name = "s" + std::to_string(i);
      for (SwitchPortConfig& port : config.ports) port.rate = 100_Gbps;
      config.cnp.suppress = suppress;
      ClassConfig c;
      c.aqm.mark = {.kmin = kThreshold, .kmax = kThreshold};
      c.notify = ClassConfig::Notify::kCnp;
      c.cnp = {.threshold = kThreshold, .sample = Bytes{10'000}, .key_flow = GetParam().key_flow};
      config.ports[1].classes[kDataClass] = c;
      if (i == kCore) config.ports[1].rate = 10_Gbps;
      auto made = Switch::create(config, {&links_[i]->b(), &links_[i + 1]->a()}, pool_);
      ASSERT_TRUE(made) << made.error().message;
      switches_.push_back(std::move(*made));
      runner_.add(*switches_.back());
    }
    sender_ = std::make_unique<Sender>(links_[0]->a(), pool_, GetParam().learning == Learning::kPackets);
    receiver_ = std::make_unique<Receiver>(links_[kSwitches]->b(), pool_);
    runner_.add(*sender_);
    runner_.add(*receiver_);
  }
  void TearDown() override {
    switches_.clear();
    SwitchTest::TearDown();
  }

  static Packet cm(uint16_t attribute, Qpn own) {
    ByteVector mad(256);
    mad[0] = 1, mad[1] = 7, mad[2] = 2, mad[3] = 3, mad[17] = static_cast<uint8_t>(attribute);
    mad[27] = attribute == 0x10 ? 5 : 6;  // local communication ID of either host
    if (attribute == 0x13) mad[31] = 5;
    const size_t at = attribute == 0x10 ? 24 + 32 : 24 + 12;
    mad[at + 1] = static_cast<uint8_t>(own.value() >> 8);
    mad[at + 2] = static_cast<uint8_t>(own.value());
    return make_packet(Opcode::kUdSendOnly).to(Qpn{1}, Psn{0}).with_payload(mad);
  }
  // Makes both hosts known to the switches and, depending on the case, teaches them the sender's queue pair before
  // there is congestion.
  void begin() {
    if (GetParam().learning == Learning::kConnectionManager) {
      Packet request = cm(0x10, kSenderQp);
      request.between(kSenderMac, ip("10.0.0.1"), kReceiverMac, ip("10.0.0.2"));
      sender_->say(request.finish(), runner_.now());
      wait(GetParam().delay * 7);
      receiver_->answer(cm(0x13, kReceiverQp), 0, runner_.now());
      wait(GetParam().delay * 7);
    }
    sender_->gap = 10us;
    const Nanos start = runner_.now();
    wait(10 * GetParam().delay * 12 + 2ms);
    ASSERT_TRUE(sender_->first_ack);
    round_trip_ = *sender_->first_ack - start;
    ASSERT_FALSE(sender_->from_switch || sender_->from_receiver) << "no congestion yet";
    sender_->gap = 100ns;  // 84 Gb/s
  }

  std::vector<std::unique_ptr<Switch>> switches_;
  std::unique_ptr<Sender> sender_;
  std::unique_ptr<Receiver> receiver_;
  Nanos round_trip_{0};
};

TEST_P(CnpThreeTiers, switch_cnp_arrives_half_a_round_trip_before_receiver_cnp) {
  build(false);
  begin();
  wait(GetParam().delay * 14 + 100us);
  ASSERT_TRUE(sender_->from_switch);
  ASSERT_TRUE(sender_->from_receiver);
  const Nanos earlier = *sender_->from_receiver - *sender_->from_switch;
  RecordProperty("round_trip_ns", std::to_string(round_trip_.count()));
  RecordProperty("earlier_ns", std::to_string(earlier.count()));
  EXPECT_GE(earlier, round_trip_ / 2) << "round trip " << round_trip_.count() << " ns";
}

TEST_P(CnpThreeTiers, switch_suppresses_receiver_cnps) {
  build(true);
  begin();
  wait(GetParam().delay * 14 + 100us);
  ASSERT_TRUE(sender_->from_switch);
  // The switch and the receiver each send at most one CNP per 50 us, so the switch suppresses all CNPs of the
  // receiver.
  EXPECT_FALSE(sender_->from_receiver);
  EXPECT_GT(switches_[kCore]->cnp_counts().of(CnpEvent::kSuppressed), 0U);
}

INSTANTIATE_TEST_SUITE_P(, CnpThreeTiers,
                         testing::Values(Case{1us, Learning::kPackets, CnpConfig::Choice::kSampled},
                                         Case{1us, Learning::kConnectionManager, CnpConfig::Choice::kSampled},
                                         Case{1us, Learning::kAcks, CnpConfig::Choice::kSampled},
                                         Case{5us, Learning::kPackets, CnpConfig::Choice::kHeaviest},
                                         Case{20us, Learning::kAcks, CnpConfig::Choice::kHeaviest}),
                         [](const auto& value) {
                           const Case& c = value.param;
                           const std::string way = c.learning == Learning::kPackets ? "packets"
                                                   : c.learning == Learning::kAcks  ? "acks"
                                                                                    : "connection_manager";
                           return std::to_string(c.delay.count()) + "ns_" + way;
                         });

}  // namespace
}  // namespace roci

// A switch learns the queue pairs of flows from connection management messages, and its CNPs reach exactly these.
#include <map>

#include "cm/manager.hpp"
#include "congestion_control/settings.hpp"

namespace roci::test {
namespace {

constexpr uint64_t kService = cm_service_id(CmPortSpace::kTcp, 4420);

cm::Route route(const Side& from, const Side& to) {
  cm::Route out;
  out.local.bytes = std::bit_cast<std::array<uint8_t, 16>>(must(from.device->query_gid(1)));
  out.remote.bytes = std::bit_cast<std::array<uint8_t, 16>>(must(to.device->query_gid(1)));
  return out;
}

// A connection manager per host. One handshake at a time.
class Introductions final : public cm::EventHandler {
 public:
  void introduce(FanIn& net, Side& from, const QueuePair& qp, const QueuePair& peer) {
    cm::Manager& active = manager(from);
    cm::Manager& passive = manager(net.receiver());
    if (listener_.handler == nullptr) {
      listener_.service = kService;
      listener_.handler = this;
      EXPECT_TRUE(passive.listen(listener_));
    }
    cm::Connection *ours = nullptr, *theirs = nullptr;
    CmRequest request{.service_id = kService, .queue_pair = Qpn{qp.qp_num()}};
    request.remote_response_timeout = request.local_response_timeout = 20;
    EXPECT_TRUE(active.connect(route(from, net.receiver()), request, 0, *this, ours));
    theirs = wait_for(net, cm::EventKind::kRequest);
    EXPECT_TRUE(passive.accept(*theirs, {.queue_pair = Qpn{peer.qp_num()}}, 0));
    EXPECT_EQ(wait_for(net, cm::EventKind::kReply), ours);
    EXPECT_TRUE(active.ready(*ours, {}));
    EXPECT_EQ(wait_for(net, cm::EventKind::kReady), theirs);
  }

  bool on_event(cm::Connection& connection, const cm::Event& event) override {
    told_[event.kind] = &connection;
    return true;
  }

 private:
  cm::Manager& manager(Side& side) {
    auto& one = managers_[&side];
    if (one == nullptr) one = std::make_unique<cm::Manager>(side.device->host());
    return *one;
  }
  cm::Connection* wait_for(FanIn& net, cm::EventKind kind) {
    net.until([&] { return told_.contains(kind); });
    return told_.extract(kind).mapped();
  }

  std::map<Side*, std::unique_ptr<cm::Manager>> managers_;
  std::map<cm::EventKind, cm::Connection*> told_;
  cm::Listener listener_;
};

uint64_t cnps_of(const Side& side, const QueuePair& qp) {
  uint64_t sum = 0;
  for (const CongestionFlowReport& flow : side.device->congestion_report())
    sum += flow.qp_num == qp.qp_num() ? flow.cnps : 0;
  return sum;
}

// Four senders with two connections each, the second of which is idle. The packets do not identify the sender's queue
// pair, and receivers send no CNPs, so all CNPs are the switch's.
TEST(LearnedSender, receives_cnps_of_congested_switch) {
  FanInOptions options;
  options.senders = 4;
  options.flows = 8;
  options.control = with_profile("dcqcn");
  options.control.notification_point.enabled = false;
  options.connects = false;
  Introductions* introductions = nullptr;
  options.introduce = [&](FanIn& net, Side& from, const QueuePair& qp, const QueuePair& peer) {
    introductions->introduce(net, from, qp, peer);
  };
  FanIn net(options, [](SwitchConfig& config) {
    config.cnp.spacing = 4us;
    for (SwitchPortConfig& port : config.ports) {
      for (ClassConfig& one : port.classes) {
        one.notify = ClassConfig::Notify::kCnp;
        one.cnp = {.threshold = Bytes{100'000}, .sample = Bytes{1'000}};
      }
    }
  });
  Introductions of_hosts;  // must outlive the hosts
  introductions = &of_hosts;
  net.run(20ms);
  net.connect_flows(options.flows);
  for (size_t i = options.senders; i < options.flows; ++i) net.stop(i);
  net.drive(kSlowMachine ? 2ms : 5ms);
  const auto rates = net.measure(kSlowMachine ? 1ms : 5ms);

  const auto senders = net.at(0).sender_counts();
  EXPECT_EQ(senders.of(SenderEvent::kFromCm), 2 * options.flows) << "both directions of each connection";
  EXPECT_EQ(senders.of(SenderEvent::kFromAcks), 0U);
  EXPECT_EQ(senders.of(SenderEvent::kFromPacket), 0U);
  uint64_t heard = 0;
  for (size_t i = 0; i < options.flows; ++i) {
    const uint64_t own = cnps_of(*net.hosts[i % options.senders], net.queue_pair(i));
    heard += own;
    if (i < options.senders) {
      EXPECT_GT(own, 10U) << i;
    } else {
      EXPECT_EQ(own, 0U) << i;
    }
    EXPECT_EQ(cnps_of(net.receiver(), net.peer(i)), 0U) << i;
  }
  EXPECT_EQ(net.at(0).cnp_counts().of(CnpEvent::kUnknownSender), 0U);
  EXPECT_GE(net.at(0).cnp_counts().of(CnpEvent::kSent), heard);
  EXPECT_LE(net.at(0).cnp_counts().of(CnpEvent::kSent), heard + options.senders) << "some are on their way";
  // The CNPs have the intended effect.
  EXPECT_GT(rates.sum / net.most_goodput(), 0.85);
  EXPECT_GT(2 * rates.jain, 0.9) << "half of them are idle";
  EXPECT_LT(FanIn::percentile(net.take_queue(), 0.99), 1'000'000U);
}

}  // namespace
}  // namespace roci::test

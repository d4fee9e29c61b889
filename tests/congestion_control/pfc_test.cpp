// Effects of PFC without congestion control (both experiments of the DCQCN note, with RC hosts), and their correction
// by DCQCN.
//
//   unfairness                                victim
//     h1 ----------------\                      h1 --\             /-- 1 Gb/s -- h3
//     h2 --\              switch -- h4                 access -- switch
//     h3 -- access ------/                      h2 --/             \------------ h4
#include "congestion_control/settings.hpp"

namespace roci::test {
namespace {

constexpr BitsPerSec kRate = 10_Gbps;

class TwoSwitches : public Fabric {
 public:
  explicit TwoSwitches(bool controlled) : controlled_(controlled) {}
  ~TwoSwitches() {
    for (Flow& flow : flows_) {
      move_to(*flow.qp, IBV_QPS_ERR);
      move_to(*flow.peer, IBV_QPS_ERR);
    }
    run(5ms);
  }
  SimLink& cable() {
    SimLinkConfig config;
    config.a_to_b = config.b_to_a = {.rate = kRate, .delay = 1us, .queue = 16_KiB};
    return add_link(config);
  }
  void add(const std::string& name, const std::vector<Port*>& ends, const std::vector<BitsPerSec>& rates) {
    SwitchConfig config{.name = name};
    for (size_t i = 0; i < ends.size(); ++i) {
      SwitchPortConfig port{.name = "p" + std::to_string(i), .rate = rates[i]};
      port.classes[kLossless].lossless = LosslessConfig{256_KiB, 192_KiB, 128_KiB};
      port.classes[kLossless].aqm = dcqcn_aqm(rates[i]);
      config.ports.push_back(port);
    }
    add_switch(config, ends);
  }
  Side& host(SimLink& cable) {
    DeviceConfig device;
    device.window_bytes = 8 << 20;
    device.extensions.mode = ExtensionMode::kOff;
    device.flow_control.priorities = 1U << kLossless;
    device.congestion_control.profile = "none";
    if (controlled_)
      device.congestion_control = with_profile("dcqcn", {{"rpg_ai_rate", 20e6}, {"rpg_hai_rate", 200e6}});
    Side& side = add_host(cable.a(), device, kMessage);
    poll_host(side);
    return side;
  }
  size_t flow(Side& from, Side& to) {
    const ibv_qp_cap cap{
        .max_send_wr = 64, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
    Flow flow{&from, &to, make_service(from, IBV_QPT_RC, nullptr, false, cap),
              make_service(to, IBV_QPT_RC, nullptr, false, cap)};
    const ConnectOptions options{.rq_psn = 1000,
                                 .sq_psn = 1000,
                                 .path_mtu = IBV_MTU_1024,
                                 .access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
                                 .traffic_class = kLossless << 5,
                                 .timeout = 18};
    connect_to(*flow.qp, IBV_QPT_RC, must(to.device->query_gid(1)), flow.peer->qp_num(), options);
    connect_to(*flow.peer, IBV_QPT_RC, must(from.device->query_gid(1)), flow.qp->qp_num(), options);
    run(10ms);
    flows_.push_back(std::move(flow));
    return flows_.size() - 1;
  }
  // Payload rate per flow, in Gb/s.
  std::vector<double> measure(Nanos span) {
    std::vector<uint64_t> before;
    for (const Flow& flow : flows_) before.push_back(acknowledged(flow));
    const Nanos end = runner.now() + span;
    while (runner.now() < end) {
      for (Flow& flow : flows_) {
        while (flow.posted < acknowledged(flow) + 2 * kMessage) {
          EXPECT_EQ(send(*flow.from, *flow.qp,
                         {.opcode = IBV_WR_RDMA_WRITE,
                          .length = kMessage,
                          .flags = 0,
                          .remote = flow.to->address(0),
                          .rkey = flow.to->region->rkey()}),
                    0);
          flow.posted += kMessage;
        }
      }
      run(50us);
    }
    std::vector<double> rates;
    for (size_t i = 0; i < flows_.size(); ++i) {
      rates.push_back(static_cast<double>(acknowledged(flows_[i]) - before[i]) * 8 /
                      static_cast<double>(span.count()));
    }
    return rates;
  }
  void expect_no_loss(size_t switches) {
    for (size_t i = 0; i < switches; ++i)
      for (size_t port = 0; port < 3; ++port) EXPECT_EQ(at(i).counters(port).dropped(), 0U);
  }
  uint64_t pauses(size_t of, size_t port) { return at(of).counters(port).classes[kLossless].pauses_sent; }

 private:
  static constexpr size_t kMessage = 1 << 19;
  struct Flow {
    Side *from, *to;
    std::unique_ptr<QueuePair> qp, peer;
    uint64_t posted = 0;
  };
  static uint64_t acknowledged(const Flow& flow) {
    const Qpn number{flow.qp->qp_num()};
    auto& core = flow.from->device->host().worker_of(number).find(number)->core;
    return static_cast<ReliableQueuePair&>(core).requester.flow().acknowledged.value();
  }
  bool controlled_;
  std::vector<Flow> flows_;
};

constexpr Nanos kWarm = 40ms, kSpan = 40ms;
constexpr double kGoodput = 10.0 * 1024 / 1106;

TEST(PfcAndDcqcn, flow_with_own_port_gets_fair_share_only_with_dcqcn) {
  for (const bool controlled : {false, true}) {
    SCOPED_TRACE(controlled);
    TwoSwitches net(controlled);
    SimLink &h1 = net.cable(), &h2 = net.cable(), &h3 = net.cable(), &h4 = net.cable(), &up = net.cable();
    net.add("access", {&h2.b(), &h3.b(), &up.a()}, {kRate, kRate, kRate});
    net.add("switch", {&h1.b(), &up.b(), &h4.b()}, {kRate, kRate, kRate});
    Side &s1 = net.host(h1), &s2 = net.host(h2), &s3 = net.host(h3), &s4 = net.host(h4);
    for (Side* side : {&s1, &s2, &s3}) net.flow(*side, s4);
    net.measure(kWarm);
    const uint64_t before = net.pauses(1, 0) + net.pauses(1, 1);
    const auto rates = net.measure(kSpan);
    const uint64_t pauses = net.pauses(1, 0) + net.pauses(1, 1) - before;
    const std::string name = controlled ? "dcqcn_" : "pfc_";
    for (size_t i = 0; i < 3; ++i) note(name + "f" + std::to_string(i + 1) + "_gbps", rates[i]);
    note(name + "pauses", pauses);
    net.expect_no_loss(2);
    const double sum = rates[0] + rates[1] + rates[2];
    if (controlled) {
      EXPECT_GE(sum, 0.85 * kGoodput);
      for (const double rate : rates) EXPECT_NEAR(rate, sum / 3, 0.15 * sum / 3);
      EXPECT_EQ(pauses, 0U);
    } else {
      EXPECT_GE(sum, 0.99 * kGoodput);
      EXPECT_GE(rates[0], 1.5 * rates[1]);
      EXPECT_GE(rates[0], 1.5 * rates[2]);
      EXPECT_GT(pauses, 100U);
    }
  }
}

TEST(PfcAndDcqcn, flow_next_to_slow_port_keeps_goodput_only_with_dcqcn) {
  for (const bool controlled : {false, true}) {
    SCOPED_TRACE(controlled);
    TwoSwitches net(controlled);
    SimLink &h1 = net.cable(), &h2 = net.cable(), &h3 = net.cable(), &h4 = net.cable(), &up = net.cable();
    net.add("access", {&h1.b(), &h2.b(), &up.a()}, {kRate, kRate, kRate});
    net.add("switch", {&up.b(), &h3.b(), &h4.b()}, {kRate, 1_Gbps, kRate});
    Side &s1 = net.host(h1), &s2 = net.host(h2), &s3 = net.host(h3), &s4 = net.host(h4);
    net.flow(s1, s3);
    net.flow(s2, s4);
    net.measure(kWarm);
    const auto rates = net.measure(kSpan);
    note(controlled ? "dcqcn_f1_gbps" : "pfc_f1_gbps", rates[0]);
    note(controlled ? "dcqcn_victim_gbps" : "pfc_victim_gbps", rates[1]);
    net.expect_no_loss(2);
    EXPECT_GE(rates[0], 0.8 * kGoodput / 10);
    if (controlled) {
      EXPECT_GE(rates[1], 0.85 * (kGoodput - kGoodput / 10));
    } else {
      EXPECT_LE(rates[1], 0.4 * kGoodput) << "it has room for nine tenths of the link";
    }
  }
}

}  // namespace
}  // namespace roci::test

// Hosts that receive congestion notifications from switches, in the same network and through routers, and from each
// other.
#include <algorithm>
#include <map>

#include "device/api/create_device.hpp"
#include "engine/congestion/congestion_control.hpp"
#include "support/ports/frames.hpp"
#include "support/ports/slow_poller.hpp"
#include "switch/qcn/l3_cnm_bench.hpp"
#include "through_switch/fabric.hpp"
#include "wire/cnm/congestion_notification.hpp"

namespace roci::test {
namespace {

constexpr BitsPerSec kFast = 10_Gbps, kSlow = 1_Gbps;

CongestionConfig tags() {
  CongestionConfig config;
  config.tag = true;
  return config;
}

const CongestionRecord& requests_of(const Side& side, const QueuePair& qp) {
  Host& host = side.device->host();
  const Qpn number{qp.qp_num()};
  return host.congestion_flows().requests(host.worker_of(number).find(number)->congestion_flow);
}
const CongestionRecord& responses_of(const Side& side, const QueuePair& qp) {
  Host& host = side.device->host();
  const Qpn number{qp.qp_num()};
  return host.congestion_flows().responses(host.worker_of(number).find(number)->congestion_flow);
}

// Numbers of frames on a link, by kind.
struct Passed {
  size_t tagged_data = 0, bare_data = 0, tagged_answers = 0, cnms = 0, cnms_over_ip = 0;

  SimScript script() {
    return [this](const rte_mbuf& frame, uint64_t) {
      const auto bytes = bytes_of(&frame);
      cnms += parse_cnm_frame(bytes).outcome == CnmOutcome::kAccepted ? 1 : 0;
      cnms_over_ip += parse_l3_cnm(bytes, kCnmPort).accepted() ? 1 : 0;
      if (const auto packet = decode_packet(bytes)) {
        const bool data = opcode_info(packet->bth.opcode).is_data();
        ++(!data ? tagged_answers : packet->cn_flow ? tagged_data : bare_data);
        if (!data && !packet->cn_flow) --tagged_answers;
      }
      return SimVerdict{};
    };
  }
};

// Two hosts at a switch. The line to the second host is slow.
class Pair : public Fabric {
 public:
  Pair(const CongestionConfig& first, const CongestionConfig& second, uint16_t vlan = 0,
       uint32_t workers_of_first = 1) {
    SwitchConfig config{.name = "s", .mac = MacAddress{{2, 0, 0, 0, 9, 1}}};
    config.notify.rate = 1'000'000;
    std::vector<Port*> ports;
    for (size_t i = 0; i < 2; ++i) {
      SimLinkConfig link;
      link.a_to_b = {.rate = kFast, .delay = 1us, .queue = 64_KiB};
      link.b_to_a = {.rate = kFast, .delay = 1us};
      if (i == 0) link.queues[0] = static_cast<uint16_t>(workers_of_first);
      SwitchPortConfig port{.name = "p" + std::to_string(i), .rate = i == 1 ? kSlow : kFast};
      port.classes[kClass].notify = ClassConfig::Notify::kQcn;
      config.ports.push_back(port);
      ports.push_back(&add_link(link).b());
    }
    add_switch(config, ports);
    for (size_t i = 0; i < 2; ++i) {
      DeviceConfig device;
      device.vlan = vlan;
      device.extensions.mode = ExtensionMode::kOff;
      device.congestion = i == 0 ? first : second;
      if (i == 0) device.workers = workers_of_first;
      sides.push_back(&add_host(link(i).a(), device));
      poll_host(*sides.back());
    }
    link(0).set_script(SimLink::kAToB, sent.script());
    link(0).set_script(SimLink::kBToA, heard.script());
  }
  ~Pair() { run(1ms); }

  void connect_them() { connect(*sides[0], *sides[1], {.path_mtu = IBV_MTU_1024, .traffic_class = kTos}); }
  [[nodiscard]] uint64_t count(size_t side, const char* name) const { return sides[side]->counter(name); }

  std::vector<Side*> sides;
  Passed sent, heard;  // by the first host
};

TEST(HostCongestion, switch_sends_cnms_to_the_sender_of_a_tagged_flow) {
  for (const uint16_t vlan : {uint16_t{0}, uint16_t{10}}) {
    SCOPED_TRACE(vlan);
    Pair net(tags(), {}, vlan);
    net.connect_them();
    Side& from = *net.sides[0];
    for (uint64_t i = 0; i < 8; ++i)
      ASSERT_EQ(
          from.post(IBV_WR_RDMA_WRITE, i, 0, 1 << 18, net.sides[1]->address(0), net.sides[1]->region->rkey()),
          0);
    net.run(40ms);
    EXPECT_EQ(successes(from), 8U);
    EXPECT_EQ(net.sent.bare_data, 0U);
    EXPECT_EQ(net.sent.tagged_data, 8U << 8);
    EXPECT_EQ(net.heard.tagged_answers, 0U);
    EXPECT_GT(net.heard.cnms, 5U);
    EXPECT_EQ(net.count(0, "cnms_taken"), net.heard.cnms);
    EXPECT_EQ(net.at(0).cnm_counts().of(CnmEvent::kSent), net.heard.cnms);
    const CongestionRecord& record = requests_of(from, *from.qp);
    EXPECT_EQ(record.notices, net.heard.cnms);
    ASSERT_TRUE(record.latest);
    EXPECT_GT(record.latest->feedback, 0);
    EXPECT_EQ(record.latest->point, (CongestionPointId{net.at(0).mac(), Be16{8 + kClass}}));
    EXPECT_GT(record.latest->queue_offset, 0);
    EXPECT_EQ(net.count(1, "rx_malformed") + net.count(1, "rx_other_protocol"), 0U);
  }
}

TEST(HostCongestion, responder_receives_cnms_for_read_responses) {
  Pair net(tags(), {});
  net.connect_them();
  Side &responder = *net.sides[0], &reader = *net.sides[1];
  for (uint64_t i = 0; i < 4; ++i)
    ASSERT_EQ(reader.post(IBV_WR_RDMA_READ, i, 0, 1 << 18, responder.address(0), responder.region->rkey()),
              0);
  net.run(40ms);
  EXPECT_EQ(successes(reader), 4U);
  EXPECT_GT(net.heard.cnms, 0U);
  EXPECT_EQ(responses_of(responder, *responder.qp).notices, net.heard.cnms);
  EXPECT_EQ(requests_of(responder, *responder.qp).notices, 0U);
}

TEST(HostCongestion, sender_receives_cnms_for_an_ipv6_flow) {
  Pair net(tags(), {});
  std::array<std::unique_ptr<QueuePair>, 2> qps;
  for (size_t i = 0; i < 2; ++i) qps[i] = make_service(*net.sides[i], IBV_QPT_UC);
  for (size_t i = 0; i < 2; ++i) {  // between the link-local addresses
    connect_to(
        *qps[i], IBV_QPT_UC, must(net.sides[1 - i]->device->query_gid(0)), qps[1 - i]->qp_num(),
        {.rq_psn = 1000, .sq_psn = 1000, .path_mtu = IBV_MTU_1024, .traffic_class = kTos, .sgid_index = 0});
  }
  net.run(10ms);
  for (uint64_t i = 0; i < 3; ++i) {
    ASSERT_EQ(send(*net.sides[0], *qps[0],
                   {.wr_id = i,
                    .opcode = IBV_WR_RDMA_WRITE,
                    .length = 1 << 18,
                    .remote = net.sides[1]->address(0),
                    .rkey = net.sides[1]->region->rkey()}),
              0);
  }
  net.run(20ms);
  EXPECT_EQ(net.sent.bare_data, 0U);
  EXPECT_GT(net.heard.cnms, 5U);
  EXPECT_EQ(net.count(0, "cnms_taken"), net.heard.cnms);
  EXPECT_EQ(requests_of(*net.sides[0], *qps[0]).notices, net.heard.cnms);
}

TEST(HostCongestion, untagged_packets_cause_no_cnms) {
  Pair net({}, tags());
  net.connect_them();
  Side& from = *net.sides[0];
  ASSERT_EQ(
      from.post(IBV_WR_RDMA_WRITE, 1, 0, 1 << 19, net.sides[1]->address(0), net.sides[1]->region->rkey()), 0);
  net.run(40ms);
  EXPECT_EQ(successes(from), 1U);
  EXPECT_EQ(net.heard.cnms, 0U);
  EXPECT_GT(net.at(0).cnm_counts().of(CnmEvent::kNoFlow), 0U);
}

TEST(HostCongestion, cnm_reaches_the_worker_of_its_queue_pair) {
  Pair net(tags(), {}, 0, 3);
  std::vector<std::unique_ptr<QueuePair>> ours, theirs;
  for (int i = 0; i < 6; ++i) {
    net.connect_them();
    ours.push_back(std::move(net.sides[0]->qp));
    theirs.push_back(std::move(net.sides[1]->qp));
  }
  for (const auto& qp : ours) {
    ASSERT_EQ(send(*net.sides[0], *qp,
                   {.opcode = IBV_WR_RDMA_WRITE,
                    .length = 1 << 18,
                    .remote = net.sides[1]->address(0),
                    .rkey = net.sides[1]->region->rkey()}),
              0);
  }
  net.run(60ms);
  EXPECT_EQ(successes(*net.sides[0]), 6U);
  uint64_t sum = 0;
  for (const auto& qp : ours) {
    EXPECT_GT(requests_of(*net.sides[0], *qp).notices, 0U);
    sum += requests_of(*net.sides[0], *qp).notices;
  }
  EXPECT_EQ(sum, net.heard.cnms);
  EXPECT_EQ(net.count(0, "cnms_taken"), net.heard.cnms);
  EXPECT_GT(net.count(0, "rx_handed_over"), 0U);
}

// ---------------------------------------------------------------------------------- through routers

// The port of a host, with a MAC address that the bench expects.
class NamedPort final : public BorrowedPort {
 public:
  NamedPort(Port& port, const MacAddress& mac) : BorrowedPort(port), mac_(mac) {}
  [[nodiscard]] MacAddress mac() const override { return mac_; }

 private:
  MacAddress mac_;
};

// Host A - ToR A - spine - ToR B - host B, with congestion at the spine's port to ToR B. Unlike in L3QcnTest the
// hosts are devices.
class HostCongestionThroughRouters : public L3QcnTest {
 protected:
  void make_net(SwitchConfig tor, const CongestionConfig& of_a, QcnConfig::Contents says = {}) {
    SwitchConfig middle = spine();
    middle.ports[1].classes[kClass].qcn = {.l3 = true, .contents = says};
    middle.notify.key = of_a.cnm_key;
    middle.telemetry.enabled = says.port;
    middle.telemetry.udp_port = 5201;
    middle.notify.rate = tor.notify.rate = 100'000;
    build(tor, middle, tor_b());
    tap_ = [this](size_t link, bool right, const rte_mbuf& frame) {
      if (!right) (void)left_scripts_[link](frame, 0);
      if (right) (void)right_scripts_[link](frame, 0);
    };
    for (size_t i = 0; i < 4; ++i) {
      left_scripts_.push_back(left_passed_[i].script());
      right_scripts_.push_back(right_passed_[i].script());
    }
    add_side(a_, links_[0]->a(), kHostA, "10.0.1.2/24", "10.0.1.1", of_a);
    add_side(b_, links_[3]->b(), kHostB, "10.0.2.2/24", "10.0.2.1", {});
  }
  void TearDown() override {
    settle_for(1ms);
    for (Side* side : {&a_, &b_}) *side = Side();
    L3QcnTest::TearDown();
  }
  void settle_for(Nanos span) { ASSERT_TRUE(runner_.run_until(runner_.now() + span)); }
  void add_side(Side& side, Port& port, uint8_t mac, const char* address, const char* gateway,
                const CongestionConfig& congestion) {
    DeviceConfig config;
    config.name = address;
    config.addresses = {address};
    config.gateways = {gateway};
    config.progress = Progress::kExternal;
    config.seed = mac;
    config.extensions.mode = ExtensionMode::kOff;
    config.congestion = congestion;
    if (congestion.listens()) config.congestion_control = control_;
    side.device = must(create_device(std::make_unique<NamedPort>(port, mac_of(mac)), config));
    side.pd = must(side.device->allocate_pd());
    side.cq = must(side.device->create_cq(64));
    side.memory.resize(1 << 20);
    side.region = must(side.pd->register_memory(side.memory.data(), side.memory.size(),
                                                IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
    runner_.add(side.device->poller());
  }
  void write_to_b(uint64_t messages) {
    a_.qp = make_service(a_, IBV_QPT_RC);
    b_.qp = make_service(b_, IBV_QPT_RC);
    const ConnectOptions options{
        .rq_psn = 1000, .sq_psn = 1000, .path_mtu = IBV_MTU_1024, .traffic_class = kTos, .timeout = 14};
    connect_to(*a_.qp, IBV_QPT_RC, must(b_.device->query_gid(1)), b_.qp->qp_num(), options);
    connect_to(*b_.qp, IBV_QPT_RC, must(a_.device->query_gid(1)), a_.qp->qp_num(), options);
    settle_for(10ms);
    for (uint64_t i = 0; i < messages; ++i)
      ASSERT_EQ(a_.post(IBV_WR_RDMA_WRITE, i, 0, 1 << 18, b_.address(0), b_.region->rkey()), 0);
    settle_for(60ms);
    EXPECT_EQ(successes(a_), messages);
  }

  static constexpr SipKey kKey{1, 2, 3, 4};
  CongestionControlConfig control_;  // of the sender
  Side a_, b_;
  std::array<Passed, 4> left_passed_, right_passed_;
  std::vector<SimScript> left_scripts_, right_scripts_;
};

TEST_F(HostCongestionThroughRouters, tor_translates_cnms_for_a_host_with_layer_2_qcn) {
  make_net(tor_a(), tags());
  write_to_b(8);
  EXPECT_EQ(right_passed_[0].bare_data, 0U);
  EXPECT_EQ(right_passed_[1].tagged_data, 0U) << "no router keeps CN-TAGs";
  EXPECT_GT(left_passed_[1].cnms_over_ip, 5U);
  EXPECT_EQ(left_passed_[0].cnms_over_ip, 0U);
  EXPECT_EQ(left_passed_[0].cnms, left_passed_[1].cnms_over_ip);
  EXPECT_EQ(a_.counter("cnms_taken"), left_passed_[0].cnms);
  const CongestionRecord& record = requests_of(a_, *a_.qp);
  EXPECT_EQ(record.notices, left_passed_[0].cnms);
  ASSERT_TRUE(record.latest);
  EXPECT_EQ(record.latest->point, (CongestionPointId{mac_of(kSpine), Be16{8 + kClass}}));
  EXPECT_GT(record.latest->feedback, 0);
}

// Congestion point in the spine, self-defined CNM to the ToR, CNM to the host, reaction point in the host.
TEST_F(HostCongestionThroughRouters, layer_2_qcn_host_limits_the_queue_of_the_spine) {
  control_.profiles["it"] = {"qcn", {{"rpg_time_reset", 300e3}}, Nanos{0}, ""};
  control_.profile = "it";
  make_net(tor_a(), tags());
  write_to_b(0);
  for (uint64_t i = 0; i < 12; ++i)
    ASSERT_EQ(a_.post(IBV_WR_RDMA_WRITE, i, 0, 1 << 19, b_.address(0), b_.region->rkey()), 0);
  uint64_t peak = 0, most = 0;
  for (int i = 0; i < 300; ++i) {
    settle_for(100us);
    const uint64_t queue = spine_->counters(1).queue_bytes.load();
    if (i < 50) peak = std::max(peak, queue);
    if (i >= 150) most = std::max(most, queue);
  }
  const Qpn number{a_.qp->qp_num()};
  const QueuePairCore& core = a_.device->host().worker_of(number).find(number)->core;
  const uint64_t rate = CongestionControl::of(core)->directions[0].flow->published.read().rate;
  EXPECT_GT(left_passed_[0].cnms, 5U);
  EXPECT_LE(rate, 2'000'000'000U) << "of 10 Gb/s, to a line of 1 Gb/s";
  EXPECT_GE(rate, 500'000'000U);
  EXPECT_LE(most, peak / 2);
  RecordProperty("peak", std::to_string(peak)), RecordProperty("later", std::to_string(most));
  settle_for(60ms);
  EXPECT_EQ(successes(a_), 12U);
}

TEST_F(HostCongestionThroughRouters, host_receives_self_defined_cnms_without_tor_support) {
  SwitchConfig router = tor_a();
  router.notify = {};
  CongestionConfig over_ip;
  over_ip.cnm_port = kCnmPort;
  make_net(router, over_ip);
  write_to_b(8);
  EXPECT_EQ(right_passed_[0].tagged_data, 0U);
  EXPECT_GT(left_passed_[0].cnms_over_ip, 5U);
  EXPECT_EQ(a_.counter("cnms_taken"), left_passed_[0].cnms_over_ip);
  EXPECT_EQ(requests_of(a_, *a_.qp).notices, left_passed_[0].cnms_over_ip);
}

TEST_F(HostCongestionThroughRouters, untagged_host_receives_signed_cnms_with_contents_through_a_tor) {
  SwitchConfig tor = tor_a();
  tor.notify.tor_unknown = NotifyConfig::UnknownFlow::kDeliver;
  tor.notify.key = kKey;
  CongestionConfig over_ip;
  over_ip.cnm_port = kCnmPort;
  over_ip.cnm_key = kKey;
  make_net(tor, over_ip, {.port = true, .ecn = true, .available_bandwidth = true});
  write_to_b(8);
  EXPECT_EQ(left_passed_[0].cnms, 0U);
  EXPECT_GT(left_passed_[0].cnms_over_ip, 5U);
  EXPECT_EQ(a_.counter("cnms_taken"), left_passed_[0].cnms_over_ip);
  const CongestionRecord& record = requests_of(a_, *a_.qp);
  ASSERT_TRUE(record.latest);
  const L3CnmTlvs& more = record.latest->more;
  EXPECT_TRUE(more.port && more.ecn && more.available_bandwidth && !more.rate_change);
  EXPECT_GT(more.ecn->packets, 1000U);
}

// ------------------------------------------------------------------- congestion point in the receiver

// A port that does not report the number of waiting frames.
class SilentPort final : public BorrowedPort {
 public:
  using BorrowedPort::BorrowedPort;
  [[nodiscard]] std::optional<uint32_t> waiting() const override { return std::nullopt; }
  [[nodiscard]] PortQueue& queue(uint16_t /*index*/) override { return *this; }
};

CongestionConfig receive_point(uint16_t cnm_port = 0) {
  CongestionConfig config;
  config.receive_point.qeq = 64;
  config.receive_point.sample = 20'000;
  config.cnm_port = cnm_port;
  config.cnm_rate = 1'000'000;
  return config;
}

struct Overload {
  CongestionConfig sender = tags(), receiver = receive_point();
  bool tells = true;
  Nanos round = 100us;  // interval of the receiver's rounds, of 32 frames each
};

// A host that receives more than it can process, at the end of a link.
class SlowReceiver : public Fabric {
 public:
  explicit SlowReceiver(const Overload& options = {}) {
    SimLinkConfig config;
    config.a_to_b = config.b_to_a = {.rate = kFast, .delay = 1us};
    SimLink& line = add_link(config);
    DeviceConfig device;
    device.extensions.mode = ExtensionMode::kOff;
    device.window_bytes = 1 << 20;
    device.congestion = options.sender;
    from = &add_host(line.a(), device);
    device.congestion = options.receiver;
    silent_ = std::make_unique<SilentPort>(line.b());
    to = &add_host(options.tells ? line.b() : *silent_, device);
    poll_host(*from);
    slow_ = std::make_unique<test::SlowPoller>(to->device->poller(), options.round);
    runner.add(*slow_);
    line.set_script(SimLink::kBToA, passed.script());
    connect(*from, *to, {.path_mtu = IBV_MTU_1024, .traffic_class = kTos, .timeout = 18});
  }
  void write(uint64_t messages) {
    for (uint64_t i = 0; i < messages; ++i)
      ASSERT_EQ(from->post(IBV_WR_RDMA_WRITE, i, 0, 1 << 17, to->address(0), to->region->rkey()), 0);
    run(20ms);
    EXPECT_EQ(successes(*from), messages);
  }

  Side *from = nullptr, *to = nullptr;
  Passed passed;  // from the receiver

 private:
  std::unique_ptr<SilentPort> silent_;
  std::unique_ptr<test::SlowPoller> slow_;
};

TEST(ReceiverCongestionPoint, sends_layer_2_cnms_to_senders_of_tagged_packets) {
  for (const bool tells : {true, false}) {
    SCOPED_TRACE(tells);
    SlowReceiver net({.tells = tells});
    net.write(16);
    EXPECT_GT(net.passed.cnms, 5U);
    EXPECT_EQ(net.passed.cnms_over_ip, 0U);
    EXPECT_EQ(net.to->counter("cnms_sent"), net.passed.cnms);
    EXPECT_EQ(net.from->counter("cnms_taken"), net.passed.cnms);
    const CongestionRecord& record = requests_of(*net.from, *net.from->qp);
    EXPECT_EQ(record.notices, net.passed.cnms);
    ASSERT_TRUE(record.latest);
    EXPECT_EQ(record.latest->point, (CongestionPointId{net.to->device->host().mac(), Be16{0}}));
    EXPECT_GT(record.latest->feedback, 0);
  }
}

TEST(ReceiverCongestionPoint, sends_cnms_over_ip_to_untagged_senders_with_a_cnm_port) {
  for (const bool signs : {false, true}) {
    CongestionConfig sender, receiver = receive_point(kCnmPort);
    sender.cnm_port = kCnmPort;
    if (signs) sender.cnm_key = receiver.cnm_key = SipKey{1, 2, 3};
    receiver.cnm_rate = sender.cnm_rate = 100'000;
    SlowReceiver net({.sender = sender, .receiver = receiver});
    net.write(16);
    EXPECT_EQ(net.passed.cnms, 0U);
    EXPECT_GT(net.passed.cnms_over_ip, 5U);
    EXPECT_EQ(net.to->counter("cnms_sent_over_ip"), net.passed.cnms_over_ip);
    EXPECT_EQ(net.from->counter("cnms_taken"), net.passed.cnms_over_ip);
    EXPECT_EQ(requests_of(*net.from, *net.from->qp).notices, net.passed.cnms_over_ip);
  }
}

TEST(ReceiverCongestionPoint, sender_rejects_cnms_signed_with_another_key) {
  CongestionConfig sender, receiver = receive_point(kCnmPort);
  sender.cnm_port = kCnmPort;
  sender.cnm_key = SipKey{1};
  receiver.cnm_key = SipKey{2};
  receiver.cnm_rate = 100'000;
  SlowReceiver net({.sender = sender, .receiver = receiver});
  net.write(16);
  EXPECT_GT(net.passed.cnms_over_ip, 5U);
  EXPECT_EQ(net.from->counter("cnms_unsigned"), net.passed.cnms_over_ip);
  EXPECT_EQ(net.from->counter("cnms_taken"), 0U);
}

TEST(ReceiverCongestionPoint, sends_no_cnms_to_untagged_senders_without_overload_or_when_off) {
  SlowReceiver bare({.sender = {}});
  bare.write(16);
  EXPECT_EQ(bare.passed.cnms + bare.passed.cnms_over_ip, 0U);
  EXPECT_GT(bare.to->counter("cnms_not_sent"), 0U);
  SlowReceiver quick({.round = 2us});
  quick.write(16);
  EXPECT_EQ(quick.passed.cnms, 0U);
  EXPECT_EQ(quick.to->counter("cnms_not_sent"), 0U);
  SlowReceiver off({.receiver = {}});
  off.write(16);
  EXPECT_EQ(off.passed.cnms, 0U);
}

}  // namespace
}  // namespace roci::test

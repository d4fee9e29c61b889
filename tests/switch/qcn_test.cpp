// Congestion notification: what a queue says to the senders of the frames in it, within one layer 2 network and, as
// self-defined CNM, through routers.
#include "switch/qcn.hpp"

#include "switch/switch_bench.hpp"
#include "switch/tor_table.hpp"
#include "wire/l3_congestion_notification.hpp"

namespace roci {
namespace {

using test::FrameSpec;

constexpr uint16_t kCnmPort = 4999;
constexpr uint8_t kClass = 5;
constexpr uint8_t kTos = kClass << 5;

// In tests of switches: the first frame of 1,306 bytes is no congestion, all that come with it are.
constexpr Bytes kQeq{4000};
// What a CNM says when the n-th frame (from 0) of as many bytes has been put into an empty queue.
struct Said {
  Said(uint32_t n, size_t bytes) {
    const auto length = static_cast<int>(bytes);
    const int beyond = static_cast<int>(n + 1) * length - 4000;
    feedback = static_cast<uint32_t>(std::min(63, (beyond + 2 * length) * 63 / 20'000));
    offset = static_cast<uint32_t>(beyond / 64);
    delta = static_cast<uint32_t>(length / 64);
  }
  uint32_t feedback, offset, delta;
};

IpAddress ip(std::string_view text) { return *IpAddress::parse(text); }
IpNetwork net(std::string_view text) { return *IpNetwork::parse(text); }

// --- the congestion point alone

struct Vector {
  uint64_t queue, old_queue;
  int64_t offset, delta;
  uint8_t quantised;
};

// The sample before the one in question leaves `old_queue` behind.
std::optional<QcnFeedback> feedback_of(const QcnConfig& config, uint64_t queue, uint64_t old_queue) {
  CongestionPoint point{config, 1};
  (void)point.sample(old_queue);
  return point.sample(queue);
}

TEST(CongestionPoint, says_what_the_golden_vectors_say) {
  constexpr std::array<Vector, 6> kVectors{{{20000, 15000, -6000, 5000, 1},
                                            {26000, 26000, 0, 0, 0},
                                            {30000, 26000, 4000, 4000, 5},
                                            {50000, 40000, 24000, 10000, 21},
                                            {200000, 100000, 174000, 100000, 63},
                                            {60000, 90000, 34000, -30000, 0}}};
  for (const Vector& v : kVectors) {
    const auto feedback = feedback_of({}, v.queue, v.old_queue);
    EXPECT_EQ(feedback.has_value(), v.quantised != 0) << v.queue << ": nothing is sent but on congestion";
    if (!feedback) continue;
    EXPECT_EQ(feedback->quantised, v.quantised) << v.queue;
    EXPECT_EQ(feedback->offset, v.offset) << v.queue;
    EXPECT_EQ(feedback->delta, v.delta) << v.queue;
  }
}

TEST(CongestionPoint, saturates_exactly_at_the_largest_feedback) {
  // Qeq (2w + 1) = 130,000; a queue that does not grow needs Q = Qeq + 130,000.
  EXPECT_EQ(feedback_of({}, 156'000, 156'000)->quantised, 63);
  EXPECT_EQ(feedback_of({}, 155'999, 155'999)->quantised, 62);
  EXPECT_EQ(feedback_of({}, uint64_t{1} << 40, 0)->quantised, 63);
  EXPECT_FALSE(feedback_of({}, 0, uint64_t{1} << 40));
  // The smallest that is worth a message is 1/63 of it: 2,063.5 bytes.
  EXPECT_FALSE(feedback_of({}, 28'063, 28'063)) << "quantised to 0";
  EXPECT_EQ(feedback_of({}, 28'064, 28'064)->quantised, 1);
}

TEST(CongestionPoint, weighs_growth_by_any_power_of_two) {
  const auto heavy = feedback_of({.weight = 1024}, 36'000, 26'000);
  ASSERT_TRUE(heavy);
  EXPECT_EQ(heavy->quantised, (10'000 + 1024 * 10'000) * 63 / (26'000 * 2049));
  const auto light = feedback_of({.weight = 1.0 / 1024}, 40'000, 0);
  ASSERT_TRUE(light);
  EXPECT_EQ(light->quantised, (14'000 * 1024 + 40'000) * 63 / (26'000LL * 1026));
}

// Bytes between samples that all find a queue of the same length.
std::vector<uint64_t> distances(uint64_t queue, uint64_t seed, size_t count) {
  CongestionPoint point{{}, seed};
  std::vector<uint64_t> found;
  uint64_t bytes = 0;
  while (found.size() < count + 2) {
    ++bytes;
    if (!point.is_due(1)) continue;
    (void)point.sample(queue);
    found.push_back(std::exchange(bytes, 0));
  }
  found.erase(found.begin(), found.begin() + 2);  // of the first sample the queue had grown
  return found;
}

TEST(CongestionPoint, samples_more_often_the_more_congested_it_is) {
  // Feedback of a queue that stands still, with its mean distance by 802.1Q table 30-1.
  constexpr std::array<std::pair<uint64_t, uint64_t>, 8> kMeans{{{26'000, 150'000},
                                                                 {26'000 + 8 * 2064, 75'000},
                                                                 {26'000 + 16 * 2064, 50'000},
                                                                 {26'000 + 24 * 2064, 37'500},
                                                                 {26'000 + 32 * 2064, 30'000},
                                                                 {26'000 + 40 * 2064, 25'000},
                                                                 {26'000 + 48 * 2064, 21'500},
                                                                 {200'000, 18'500}}};
  for (const auto& [queue, mean] : kMeans) {
    const auto found = distances(queue, 7, 200);
    double sum = 0;
    for (const uint64_t d : found) {
      EXPECT_GE(d, mean * 85 / 100);
      EXPECT_LE(d, mean * 115 / 100 + 1);
      sum += static_cast<double>(d);
    }
    EXPECT_NEAR(sum / 200, static_cast<double>(mean), static_cast<double>(mean) * 0.02) << queue;
    EXPECT_LT(*std::min_element(found.begin(), found.end()), mean * 90 / 100) << "there is jitter";
    EXPECT_GT(*std::max_element(found.begin(), found.end()), mean * 110 / 100);
  }
}

TEST(CongestionPoint, the_same_seed_samples_the_same_frames) {
  EXPECT_EQ(distances(30'000, 3, 20), distances(30'000, 3, 20));
  EXPECT_NE(distances(30'000, 3, 20), distances(30'000, 4, 20));
}

// --- the table alone

FiveTuple flow_number(uint32_t n) {
  return {IpAddress::from_v4(0x0a000000 + n), ip("10.9.9.9"), 17, 1000, 4791};
}
TorFlow sent_by(uint8_t host) {
  return {.source = {{2, 0, 0, 0, 0, host}}, .destination = {}, .vlan = 1, .tags = {}};
}

TEST(TorTable, a_full_one_learns_again_when_flows_are_too_old) {
  TorTable table{2, 10ms};
  EXPECT_EQ(table.learn(flow_number(1), sent_by(1), 0ms), TorTable::Learned::kNew);
  EXPECT_EQ(table.learn(flow_number(2), sent_by(2), 1ms), TorTable::Learned::kNew);
  EXPECT_EQ(table.learn(flow_number(3), sent_by(3), 2ms), TorTable::Learned::kFull);
  EXPECT_EQ(table.learn(flow_number(1), sent_by(9), 5ms), TorTable::Learned::kKnown);
  ASSERT_NE(table.find(flow_number(1), 5ms), nullptr);
  EXPECT_EQ(table.find(flow_number(1), 5ms)->source.bytes[5], 9) << "how it was sent last";
  EXPECT_EQ(table.find(flow_number(3), 5ms), nullptr);
  EXPECT_EQ(table.find(flow_number(2), 11ms), nullptr) << "too old, though it is still there";
  EXPECT_EQ(table.learn(flow_number(3), sent_by(3), 11ms), TorTable::Learned::kNew);
  EXPECT_NE(table.find(flow_number(1), 11ms), nullptr);
  EXPECT_EQ(table.size(), 2U);
}

TEST(TorTable, without_a_size_it_knows_nothing) {
  TorTable table{0, 1s};
  EXPECT_EQ(table.learn(flow_number(1), sent_by(1), 0ms), TorTable::Learned::kFull);
  EXPECT_EQ(table.find(flow_number(1), 0ms), nullptr);
}

TEST(TorTable, does_as_a_map_would_under_random_flows) {
  constexpr uint32_t kSize = 64;
  TorTable table{kSize, 50ns};
  std::vector<std::pair<uint32_t, Nanos>> model;  // flow and when it was last heard of
  Rng rng{11};
  for (int64_t t = 0; t < 20'000; ++t) {
    const Nanos now{t};
    const auto n = static_cast<uint32_t>(rng.below(200));
    const auto known = std::find_if(model.begin(), model.end(), [&](auto& m) { return m.first == n; });
    const bool fresh = known != model.end() && now - known->second < 50ns;
    EXPECT_EQ(table.find(flow_number(n), now) != nullptr, fresh);
    if (rng.chance(0.3)) continue;
    const auto learned = table.learn(flow_number(n), sent_by(static_cast<uint8_t>(n)), now);
    if (known != model.end()) {
      EXPECT_EQ(learned, fresh ? TorTable::Learned::kKnown : TorTable::Learned::kNew);
      known->second = now;
      continue;
    }
    std::erase_if(model, [&](auto& m) { return now - m.second >= 50ns; });
    EXPECT_EQ(learned, model.size() < kSize ? TorTable::Learned::kNew : TorTable::Learned::kFull);
    if (model.size() < kSize) model.emplace_back(n, now);
    EXPECT_EQ(table.size(), model.size());
  }
}

// --- in a switch

std::vector<uint8_t> with_cn_tag(const std::vector<uint8_t>& frame, uint16_t flow) {
  std::vector<uint8_t> out = frame;
  size_t at = 12;
  if (out[12] == 0x81 && out[13] == 0) at += 4;
  const std::array<uint8_t, 4> tag{0x22, 0xe9, static_cast<uint8_t>(flow >> 8), static_cast<uint8_t>(flow)};
  out.insert(out.begin() + static_cast<std::ptrdiff_t>(at), tag.begin(), tag.end());
  return out;
}

std::vector<uint8_t> msdu_of(const std::vector<uint8_t>& frame, size_t at) {
  const size_t end = std::min(frame.size(), at + 64);
  return {frame.begin() + static_cast<std::ptrdiff_t>(at), frame.begin() + static_cast<std::ptrdiff_t>(end)};
}

// A CNM's bytes written down field by field.
class CnmBytes {
 public:
  CnmBytes& mac(const MacAddress& m) {
    out_.insert(out_.end(), m.bytes.begin(), m.bytes.end());
    return *this;
  }
  CnmBytes& be16(uint32_t v) {
    out_.push_back(static_cast<uint8_t>(v >> 8));
    out_.push_back(static_cast<uint8_t>(v));
    return *this;
  }
  CnmBytes& bytes(const std::vector<uint8_t>& b) {
    out_.insert(out_.end(), b.begin(), b.end());
    return *this;
  }
  [[nodiscard]] const std::vector<uint8_t>& get() const { return out_; }

 private:
  std::vector<uint8_t> out_;
};

class QcnTest : public SwitchTest {
 protected:
  // Every frame that comes into the class's queues is sampled: no frame is shorter than the distance.
  static ClassConfig every_frame(bool l3 = false) {
    ClassConfig c;
    c.notify = ClassConfig::Notify::kQcn;
    c.qcn = {.qeq = kQeq, .weight = 2, .sample = Bytes{1000}, .l3 = l3};
    return c;
  }
  static constexpr uint32_t kPayload = 1244;  // makes 1306 bytes with a CN-TAG
  static FrameSpec spec_of(const IpAddress& from, const IpAddress& to) {
    return {.from = from, .to = to, .traffic_class = kTos, .payload = kPayload};
  }
  uint64_t events(CnmEvent event) { return switch_->cnm_counters().of(event); }
};

TEST_F(QcnTest, answers_the_source_of_a_sampled_frame_with_its_tags) {
  SwitchConfig config = ports(2);
  config.ports[1].rate = 1_Mbps;
  config.ports[1].classes[kClass] = every_frame();
  make(config);
  introduce({0, 1});
  FrameSpec spec{
      .destination = host_mac(1), .source = host_mac(0), .vlan = 0xa000 | 1, .traffic_class = kTos};
  spec.payload = kPayload;
  const auto sent = with_cn_tag(test::roce_bytes(spec), 0xbeef);
  // The first goes on the line at the end of each poll; those that come together are queued.
  for (int i = 0; i < 3; ++i) send(0, sent);
  settle();
  // Untagged VLAN 1: the switch takes the tag away.
  std::vector<uint8_t> queued = sent;
  queued.erase(queued.begin() + 12, queued.begin() + 16);
  const auto answers = heard(0);
  ASSERT_EQ(answers.size(), 2U) << "one frame is no congestion";
  for (uint32_t i = 0; i < 2; ++i) {
    const Said said{i + 1, queued.size()};
    CnmBytes expected;
    expected.mac(host_mac(0)).mac(switch_->mac());
    expected.be16(0x22e9).be16(0xbeef).be16(0x22e7);
    expected.be16(said.feedback).mac(switch_->mac()).be16(1 * 8 + kClass);
    expected.be16(said.offset).be16(said.delta).be16(kClass << 13).mac(host_mac(1)).be16(64);
    expected.bytes(msdu_of(queued, 16));
    EXPECT_EQ(answers[i], expected.get()) << i;
  }
  EXPECT_EQ(events(CnmEvent::kSent), 2U);
  EXPECT_EQ(events(CnmEvent::kNoCongestion), 1U);
}

TEST_F(QcnTest, a_frame_without_a_cn_tag_is_not_answered) {
  SwitchConfig config = ports(2);
  config.ports[1].rate = 1_Mbps;
  config.ports[1].classes[kClass] = every_frame();
  make(config);
  introduce({0, 1});
  for (int i = 0; i < 3; ++i) {
    send(
        0,
        test::roce_bytes(
            {.destination = host_mac(1), .source = host_mac(0), .traffic_class = kTos, .payload = kPayload}));
  }
  settle();
  EXPECT_EQ(heard(0).size(), 0U);
  EXPECT_EQ(events(CnmEvent::kNoFlow), 2U);
  EXPECT_EQ(events(CnmEvent::kSent), 0U);
}

TEST_F(QcnTest, at_the_edge_of_the_domain_frames_lose_their_cn_tag_and_are_answered_with_it) {
  SwitchConfig config = ports(2);
  config.ports[1].rate = 1_Gbps;
  config.ports[1].keeps_cn_tags = false;
  config.ports[1].classes[kClass] = every_frame();
  make(config);
  introduce({0, 1});
  const auto bare = test::roce_bytes(
      {.destination = host_mac(1), .source = host_mac(0), .traffic_class = kTos, .payload = kPayload});
  for (int i = 0; i < 3; ++i) send(0, with_cn_tag(bare, 77));
  wait(1ms);
  const auto got = heard(1);
  ASSERT_EQ(got.size(), 3U);
  for (const auto& frame : got) EXPECT_EQ(frame, bare);
  EXPECT_EQ(events(CnmEvent::kTagRemoved), 3U);
  const auto answers = heard(0);
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(parse_cnm_frame(answers[0]).link.tags.flow, 77);
}

TEST_F(QcnTest, cnms_are_limited) {
  SwitchConfig config = ports(2);
  config.notify.rate = 1000;
  config.ports[1].rate = 1_Mbps;
  config.ports[1].classes[kClass] = every_frame();
  make(config);
  introduce({0, 1});
  const auto sent = with_cn_tag(
      test::roce_bytes(
          {.destination = host_mac(1), .source = host_mac(0), .traffic_class = kTos, .payload = kPayload}),
      1);
  for (int i = 0; i < 101; ++i) send(0, sent);
  settle();
  EXPECT_EQ(heard(0).size(), size_t{EventLimit::kAtOnce});
  EXPECT_EQ(events(CnmEvent::kLimited), 100U - EventLimit::kAtOnce);
  wait(5ms);
  for (int i = 0; i < 10; ++i) send(0, sent);
  settle();
  EXPECT_EQ(heard(0).size(), 5U) << "1,000 a second";
}

TEST_F(QcnTest, a_cnm_is_not_answered_and_a_source_that_is_not_known_is_not_searched_for) {
  SwitchConfig config = ports(3);
  config.mac_table_size = 1;
  config.ports[1].rate = 1_Mbps;
  for (ClassConfig& c : config.ports[1].classes) c = every_frame();
  make(config);
  introduce({1});
  Cnm cnm;
  std::vector<uint8_t> bytes(1400);
  cnm.feedback = 5;
  const CnmLink link{host_mac(1), host_mac(0), {.flow = 3}};
  build_cnm_frame(link, cnm, bytes);
  for (int i = 0; i < 3; ++i) send(0, bytes);
  settle();
  EXPECT_EQ(events(CnmEvent::kOwnKind), 2U);
  const auto sent = with_cn_tag(
      test::roce_bytes(
          {.destination = host_mac(1), .source = host_mac(0), .traffic_class = kTos, .payload = kPayload}),
      1);
  for (int i = 0; i < 3; ++i) send(0, sent);
  settle();
  EXPECT_EQ(events(CnmEvent::kNoRoute), 2U);
  EXPECT_EQ(heard(0).size() + heard(2).size(), 0U);
}

TEST_F(QcnTest, a_marked_packet_with_a_cn_tag_has_ce) {
  SwitchConfig config = ports(2);
  config.ports[1].classes[kClass].aqm.mark = {.kmin = Bytes{0}, .kmax = Bytes{0}};
  make(config);
  introduce({0, 1});
  FrameSpec spec{.destination = host_mac(1), .source = host_mac(0), .traffic_class = kTos | 2};
  send(0, with_cn_tag(test::roce_bytes(spec), 1));
  settle();
  const auto got = heard(1);
  ASSERT_EQ(got.size(), 1U);
  spec.traffic_class |= 3;
  EXPECT_EQ(got[0], with_cn_tag(test::roce_bytes(spec), 1));
}

// --- through routers: host A - ToR A - spine - ToR B - host B, where the spine is congested towards ToR B

struct Network {
  const char* name;
  uint8_t mac;
  // Of its two ports: VLAN and the switch's own address, the next hop behind it and where that leads.
  std::array<uint16_t, 2> vlan;
  std::array<const char*, 2> address;
  std::array<const char*, 2> neighbour;
  std::array<uint8_t, 2> neighbour_mac;
};

class L3QcnTest : public SwitchTest {
 protected:
  static MacAddress mac_of(uint8_t last) { return {{2, 0, 0, 0, 9, last}}; }
  static constexpr uint8_t kTorA = 1, kSpine = 2, kTorB = 3, kHostA = 0xa, kHostB = 0xb;

  static SwitchConfig config_of(const Network& n) {
    SwitchConfig config = ports(2);
    config.name = n.name;
    config.mac = mac_of(n.mac);
    config.notify.port = kCnmPort;
    for (size_t i = 0; i < 2; ++i) {
      config.ports[i].vlan = n.vlan[i];
      config.ports[i].all_tagged = false;
      config.interfaces.push_back(
          {.name = "i" + std::to_string(i), .vlan = n.vlan[i], .addresses = {net(n.address[i])}});
      config.neighbours.push_back({ip(n.neighbour[i]), mac_of(n.neighbour_mac[i])});
    }
    return config;
  }
  static SwitchConfig tor_a() {
    SwitchConfig config = config_of({.name = "tor_a",
                                     .mac = kTorA,
                                     .vlan = {10, 100},
                                     .address = {"10.0.1.1/24", "10.100.1.1/24"},
                                     .neighbour = {"10.0.1.2", "10.100.1.2"},
                                     .neighbour_mac = {kHostA, kSpine}});
    config.routes = {{net("10.0.2.0/24"), ip("10.100.1.2")}};
    config.notify.tor_size = 4;
    return config;
  }
  static SwitchConfig spine() {
    SwitchConfig config = config_of({.name = "spine",
                                     .mac = kSpine,
                                     .vlan = {100, 200},
                                     .address = {"10.100.1.2/24", "10.100.2.2/24"},
                                     .neighbour = {"10.100.1.1", "10.100.2.1"},
                                     .neighbour_mac = {kTorA, kTorB}});
    config.routes = {{net("10.0.1.0/24"), ip("10.100.1.1")}, {net("10.0.2.0/24"), ip("10.100.2.1")}};
    config.ports[1].rate = 1_Gbps;
    config.ports[1].classes[kClass] = qcn_class(true);
    return config;
  }
  static SwitchConfig tor_b() {
    SwitchConfig config = config_of({.name = "tor_b",
                                     .mac = kTorB,
                                     .vlan = {20, 200},
                                     .address = {"10.0.2.1/24", "10.100.2.1/24"},
                                     .neighbour = {"10.0.2.2", "10.100.2.2"},
                                     .neighbour_mac = {kHostB, kSpine}});
    config.routes = {{net("10.0.1.0/24"), ip("10.100.2.2")}};
    config.notify.tor_size = 4;
    return config;
  }
  static ClassConfig qcn_class(bool l3) {
    ClassConfig c;
    c.notify = ClassConfig::Notify::kQcn;
    c.qcn = {.qeq = kQeq, .weight = 2, .sample = Bytes{1000}, .l3 = l3};
    return c;
  }

  // Links: 0 host A - ToR A, 1 ToR A - spine, 2 spine - ToR B, 3 ToR B - host B; each seen from the left.
  void build(const SwitchConfig& a, const SwitchConfig& s, const SwitchConfig& b) {
    for (size_t i = 0; i < 4; ++i) {
      links_.push_back(std::make_unique<SimLink>(SimLinkConfig{.name = "link" + std::to_string(i)}, pool_));
      runner_.add(*links_.back());
      const auto record = [](std::vector<std::vector<uint8_t>>& to) {
        return [&to](const rte_mbuf& frame, uint64_t) {
          to.push_back(test::bytes_of(&frame));
          return SimVerdict{};
        };
      };
      links_.back()->set_script(SimLink::Direction::kAToB, record(right_[i]));
      links_.back()->set_script(SimLink::Direction::kBToA, record(left_[i]));
    }
    add(tor_a_, a, {&links_[0]->b(), &links_[1]->a()});
    add(spine_, s, {&links_[1]->b(), &links_[2]->a()});
    add(tor_b_, b, {&links_[3]->a(), &links_[2]->b()});
  }
  void add(std::unique_ptr<Switch>& to, const SwitchConfig& config, const std::vector<Port*>& ends) {
    auto made = Switch::create(config, ends, pool_);
    ASSERT_TRUE(made) << made.error().message;
    to = std::move(*made);
    runner_.add(*to);
  }
  void TearDown() override {
    tor_a_.reset();
    spine_.reset();
    tor_b_.reset();
    SwitchTest::TearDown();
  }
  std::vector<std::vector<uint8_t>> at_host_b() {
    std::vector<std::vector<uint8_t>> out;
    rte_mbuf* frame = nullptr;
    while (links_[3]->b().rx_burst({&frame, 1}, runner_.now()) == 1) {
      out.push_back(test::bytes_of(frame));
      rte_pktmbuf_free(frame);
    }
    return out;
  }

  // A flow of host A to host B, as it is on the way behind `hops` routers. The tag's priority is 5.
  static std::vector<uint8_t> frame(unsigned hops, uint32_t number = 0, uint16_t cn_flow = 0x1234) {
    constexpr std::array<std::pair<uint8_t, uint8_t>, 4> kMacs{
        {{kHostA, kTorA}, {kTorA, kSpine}, {kSpine, kTorB}, {kTorB, kHostB}}};
    FrameSpec spec{.destination = mac_of(kMacs[hops].second),
                   .source = mac_of(kMacs[hops].first),
                   .from = ip("10.0.1.2"),
                   .to = ip("10.0.2.2"),
                   .traffic_class = kTos,
                   .payload = 1244,
                   .number = number};
    spec.ttl = static_cast<uint8_t>(64 - hops);
    spec.vlan = 0xa000;  // a priority tag, which stays where VLANs go untagged
    const auto bytes = test::roce_bytes(spec);
    return hops == 0 ? with_cn_tag(bytes, cn_flow) : bytes;
  }
  // What the congestion point says of the n-th frame (from 0) that it has queued.
  static CnmBytes pdu(uint32_t n, const MacAddress& destination, const std::vector<uint8_t>& sampled) {
    const Said said{n, sampled.size()};
    CnmBytes out;
    out.be16(said.feedback).mac(mac_of(kSpine)).be16(1 * 8 + kClass);
    out.be16(said.offset).be16(said.delta).be16(kClass << 13);
    return out.mac(destination).be16(64).bytes(msdu_of(sampled, 16));
  }
  static std::vector<uint8_t> cnm_for_host(uint32_t n, uint32_t number) {
    CnmBytes out;
    out.mac(mac_of(kHostA)).mac(mac_of(kTorA)).be16(0x8100).be16(6 << 13).be16(0x22e9).be16(0x1234);
    return out.be16(0x22e7).bytes(pdu(n, mac_of(kTorA), frame(2, number)).get()).get();
  }
  // The self-defined CNM behind `hops` routers beyond the spine, with checksums made here.
  static std::vector<uint8_t> self_defined(uint32_t n, uint32_t number, uint16_t source_port) {
    const auto payload = pdu(n, mac_of(kTorB), frame(2, number)).get();
    const auto udp = static_cast<uint32_t>(8 + 16 + payload.size());
    CnmBytes ip_part;
    ip_part.be16(0x4500 | 48 << 2 | 2).be16(20 + udp).be16(0).be16(0x4000).be16(64 << 8 | 17);
    auto header = ip_part;
    const std::vector<uint8_t> addresses{10, 0, 2, 2, 10, 0, 1, 2};
    header.be16(0).bytes(addresses);
    CnmBytes body;
    body.be16(source_port).be16(kCnmPort).be16(udp).be16(0);
    body.be16(0x1100).be16(17 << 8).bytes({10, 0, 1, 2, 10, 0, 2, 2}).be16(49152).be16(4791).bytes(payload);
    const auto sum = [](const std::vector<uint8_t>& of, uint32_t start) {
      uint32_t s = start;
      for (size_t i = 0; i < of.size(); i += 2)
        s += static_cast<uint32_t>(of[i] << 8) + (i + 1 < of.size() ? of[i + 1] : 0U);
      while (s >> 16 != 0) s = (s & 0xffff) + (s >> 16);
      return static_cast<uint16_t>(~s);
    };
    const uint16_t ip_sum = sum(header.get(), 0);
    const uint16_t udp_sum = sum(body.get(), 17 + udp + 10 * 256 + 2 * 256 + 2 + 10 * 256 + 1 * 256 + 2);
    CnmBytes out;
    out.mac(mac_of(kTorA))
        .mac(mac_of(kSpine))
        .be16(0x0800)
        .bytes(ip_part.get())
        .be16(ip_sum)
        .bytes(addresses);
    std::vector<uint8_t> tail = body.get();
    tail[6] = static_cast<uint8_t>(udp_sum >> 8);
    tail[7] = static_cast<uint8_t>(udp_sum);
    return out.bytes(tail).get();
  }
  // Bytes as they are in a frame that has come to a host.
  static uint16_t be16_at(const std::vector<uint8_t>& bytes, size_t at) {
    return static_cast<uint16_t>(bytes[at] << 8 | bytes[at + 1]);
  }
  static uint64_t events(const std::unique_ptr<Switch>& of, CnmEvent event) {
    return of->cnm_counters().of(event);
  }
  // A self-defined CNM comes to ToR A from the spine, which is not there.
  void send_to_tor_a(const std::vector<uint8_t>& bytes) {
    rte_mbuf* m = test::to_mbuf(*pool_, bytes);
    ASSERT_EQ(links_[1]->b().tx_burst({&m, 1}, runner_.now()), 1);
    settle();
  }
  // How many frames ToR A has sent to the spine, which is not there.
  size_t discard_from_tor_a() {
    size_t count = 0;
    rte_mbuf* m = nullptr;
    for (; links_[1]->b().rx_burst({&m, 1}, runner_.now()) == 1; ++count) rte_pktmbuf_free(m);
    return count;
  }
  void tor_a_alone(const SwitchConfig& config) {
    for (size_t i = 0; i < 2; ++i) {
      links_.push_back(std::make_unique<SimLink>(SimLinkConfig{.name = "link" + std::to_string(i)}, pool_));
      runner_.add(*links_.back());
    }
    add(tor_a_, config, {&links_[0]->b(), &links_[1]->a()});
  }

  std::array<std::vector<std::vector<uint8_t>>, 4> right_, left_;
  std::unique_ptr<Switch> tor_a_, spine_, tor_b_;
};

TEST_F(L3QcnTest, a_host_hears_of_congestion_beyond_two_routers_as_if_it_were_in_its_own_network) {
  build(tor_a(), spine(), tor_b());
  for (uint32_t i = 0; i < 3; ++i) send(0, frame(0, i));
  wait(1ms);
  // The frames on their way: the CN-TAG ends at the first router.
  for (unsigned hop = 0; hop < 4; ++hop) {
    ASSERT_EQ(right_[hop].size(), 3U) << hop;
    for (uint32_t i = 0; i < 3; ++i) {
      EXPECT_EQ(right_[hop][i], frame(hop, i)) << hop << " " << i;
    }
  }
  EXPECT_EQ(at_host_b().size(), 3U);
  // And the two messages back.
  ASSERT_EQ(left_[1].size(), 2U);
  ASSERT_EQ(left_[0].size(), 2U);
  const auto got = heard(0);
  ASSERT_EQ(got.size(), 2U);
  for (uint32_t i = 0; i < 2; ++i) {
    EXPECT_EQ(left_[1][i], self_defined(i + 1, i + 1, be16_at(left_[1][i], 34))) << i;
    EXPECT_EQ(got[i], cnm_for_host(i + 1, i + 1)) << i;
    EXPECT_EQ(left_[0][i], got[i]);
  }
  EXPECT_TRUE(left_[2].empty());
  EXPECT_TRUE(left_[3].empty());
  EXPECT_EQ(events(tor_a_, CnmEvent::kFlowLearnt), 1U);
  EXPECT_EQ(events(tor_a_, CnmEvent::kTagRemoved), 3U);
  EXPECT_EQ(events(tor_a_, CnmEvent::kTranslated), 2U);
  EXPECT_EQ(events(spine_, CnmEvent::kSentOverIp), 2U);
}

TEST_F(L3QcnTest, a_congested_tor_answers_its_own_host_without_the_detour) {
  SwitchConfig a = tor_a();
  a.ports[1].rate = 1_Gbps;
  a.ports[1].classes[kClass] = qcn_class(true);
  tor_a_alone(a);
  for (uint32_t i = 0; i < 3; ++i) send(0, frame(0, i));
  wait(1ms);
  const auto got = heard(0);
  ASSERT_EQ(got.size(), 2U);
  for (const auto& bytes : got) {
    const auto cnm = parse_cnm_frame(bytes);
    EXPECT_EQ(cnm.outcome, CnmOutcome::kAccepted);
    EXPECT_EQ(cnm.link.destination, mac_of(kHostA));
    EXPECT_EQ(cnm.link.tags.flow, 0x1234);
    EXPECT_EQ(cnm.cnm.destination, mac_of(kTorA)) << "where the host had sent the frame";
    EXPECT_EQ(cnm.cnm.priority, kClass);
  }
  EXPECT_EQ(events(tor_a_, CnmEvent::kSentToOwnHost), 2U);
}

TEST_F(L3QcnTest, without_a_route_to_the_source_nothing_is_sent) {
  SwitchConfig s = spine();
  s.routes.erase(s.routes.begin());
  build(tor_a(), s, tor_b());
  for (uint32_t i = 0; i < 3; ++i) send(0, frame(0, i));
  wait(1ms);
  EXPECT_EQ(events(spine_, CnmEvent::kNoRoute), 2U);
  EXPECT_TRUE(left_[1].empty());
  (void)at_host_b();
}

TEST_F(L3QcnTest, a_message_for_a_flow_that_the_tor_does_not_know_is_dropped) {
  tor_a_alone(tor_a());
  send_to_tor_a(self_defined(1, 1, 0xc000));
  EXPECT_EQ(heard(0).size(), 0U);
  EXPECT_EQ(events(tor_a_, CnmEvent::kUnknownFlow), 1U);
  EXPECT_EQ(tor_a_->counters(1).dropped(DropReason::kNotification), 1U);
}

TEST_F(L3QcnTest, a_flow_is_forgotten_after_its_time) {
  SwitchConfig a = tor_a();
  a.notify.tor_ageing = 10ms;
  tor_a_alone(a);
  send(0, frame(0));
  settle();
  wait(9ms);
  send_to_tor_a(self_defined(1, 1, 0xc000));
  EXPECT_EQ(heard(0).size(), 1U);
  wait(1ms);
  send_to_tor_a(self_defined(1, 1, 0xc000));
  EXPECT_EQ(heard(0).size(), 0U);
  EXPECT_EQ(events(tor_a_, CnmEvent::kUnknownFlow), 1U);
  discard_from_tor_a();
}

TEST_F(L3QcnTest, a_full_table_forwards_what_it_cannot_learn) {
  SwitchConfig a = tor_a();
  a.notify.tor_size = 1;
  tor_a_alone(a);
  send(0, frame(0));
  auto other = frame(0);
  other[14 + 4 + 4 + 20 + 1] ^= 1;  // another UDP source port
  for (int i = 0; i < 2; ++i) send(0, other);
  settle();
  EXPECT_EQ(events(tor_a_, CnmEvent::kFlowLearnt), 1U);
  EXPECT_EQ(events(tor_a_, CnmEvent::kFlowsFull), 2U);
  EXPECT_EQ(discard_from_tor_a(), 3U);
}

TEST_F(L3QcnTest, a_storm_of_messages_is_limited_for_the_host) {
  SwitchConfig a = tor_a();
  a.notify.rate = 1000;
  tor_a_alone(a);
  send(0, frame(0));
  settle();
  for (int i = 0; i < 100; ++i) send_to_tor_a(self_defined(1, 1, 0xc000));
  EXPECT_EQ(heard(0).size(), size_t{EventLimit::kAtOnce});
  EXPECT_EQ(events(tor_a_, CnmEvent::kTooMany), 100U - EventLimit::kAtOnce);
  wait(3ms);
  for (int i = 0; i < 10; ++i) send_to_tor_a(self_defined(1, 1, 0xc000));
  EXPECT_EQ(heard(0).size(), 3U);
  discard_from_tor_a();
}

TEST_F(L3QcnTest, no_damaged_message_reaches_the_host) {
  tor_a_alone(tor_a());
  send(0, frame(0));
  settle();
  const auto right = self_defined(1, 1, 0xc000);
  constexpr size_t kPayload = 14 + 20 + 8;
  for (size_t at = kPayload; at < right.size(); ++at) {
    auto wrong = right;
    wrong[at] ^= 0x10;
    send_to_tor_a(wrong);
  }
  EXPECT_EQ(heard(0).size(), 0U) << "the checksum of UDP";
  EXPECT_EQ(events(tor_a_, CnmEvent::kMalformed), right.size() - kPayload);
  for (size_t at = kPayload; at < right.size(); ++at) {  // as if the sender had meant it
    auto wrong = right;
    wrong[at] ^= 0x10;
    wrong[40] = wrong[41] = 0;  // no checksum
    send_to_tor_a(wrong);
  }
  for (const auto& bytes : heard(0)) EXPECT_EQ(parse_cnm_frame(bytes).outcome, CnmOutcome::kAccepted);
  for (size_t length = 15; length < right.size(); ++length)
    send_to_tor_a({right.begin(), right.begin() + static_cast<std::ptrdiff_t>(length)});
  EXPECT_EQ(heard(0).size(), 0U) << "cut";
  discard_from_tor_a();
}

TEST_F(L3QcnTest, what_is_for_a_host_elsewhere_goes_on) {
  SwitchConfig a = tor_a();
  a.routes.push_back({net("10.0.3.0/24"), ip("10.100.1.2")});
  tor_a_alone(a);
  std::vector<uint8_t> bytes(kMaxL3CnmFrame);
  Cnm cnm;
  cnm.feedback = 3;
  const FiveTuple flow{ip("10.0.3.2"), ip("10.0.1.2"), 17, 1, 2};
  bytes.resize(build_l3_cnm({.source_mac = mac_of(kHostA),
                             .destination_mac = mac_of(kTorA),
                             .source_ip = flow.destination,
                             .destination_ip = flow.source},
                            kCnmPort, flow, cnm, {}, bytes));
  send(0, bytes);
  settle();
  EXPECT_EQ(discard_from_tor_a(), 1U);
  EXPECT_EQ(tor_a_->counters(0).dropped(), 0U);
}

TEST_F(L3QcnTest, tags_from_beyond_the_domain_are_not_believed) {
  SwitchConfig a = tor_a();
  a.ports[0].keeps_cn_tags = false;
  tor_a_alone(a);
  send(0, frame(0));
  settle();
  EXPECT_EQ(events(tor_a_, CnmEvent::kFlowLearnt), 0U);
  EXPECT_EQ(discard_from_tor_a(), 1U) << "but routed, without it";
}

// --- how it is configured

Result<SwitchConfig> read(const std::string& text) {
  SwitchConfig config;
  const Status status = parse_config(text, "s.yaml", [&](ConfigNode& node) {
    return read_switch(node, config, [](ConfigNode&, size_t) -> Status { return {}; });
  });
  if (!status) return fail(status.error());
  return config;
}
std::string error_of(const std::string& text) {
  const auto config = read(text);
  return config ? "" : config.error().message;
}

TEST(QcnConfig, is_read_with_lengths_at_the_rate_of_each_port) {
  const auto config = read(
      "cnm_port: 4999\ncnm_rate: 5000\ntor: {size: 100, ageing: 2s}\n"
      "interfaces: [{name: i, addresses: [10.0.0.1/24]}]\n"
      "classes: [{class: 5, notify: qcn, qcn: {qeq: 20us, weight: 0.5, sample: 75KB, l3: true}}]\n"
      "ports: [{name: a, rate: 10Gbps}, {name: b, rate: 100Gbps, cn_tag: remove, "
      "classes: [{class: 5, notify: none}]}]\n");
  ASSERT_TRUE(config) << config.error().message;
  const ClassConfig& a = config->ports[0].classes[5];
  EXPECT_EQ(a.notify, ClassConfig::Notify::kQcn);
  EXPECT_EQ(a.qcn.qeq, Bytes{25'000});
  EXPECT_EQ(a.qcn.weight, 0.5);
  EXPECT_EQ(a.qcn.sample, Bytes{75'000});
  EXPECT_TRUE(a.qcn.l3);
  EXPECT_TRUE(config->ports[0].keeps_cn_tags);
  EXPECT_FALSE(config->ports[1].keeps_cn_tags);
  EXPECT_EQ(config->ports[1].classes[5].notify, ClassConfig::Notify::kNone);
  EXPECT_EQ(config->ports[1].classes[5].qcn.qeq, Bytes{250'000});
  EXPECT_EQ(config->ports[0].classes[4].notify, ClassConfig::Notify::kNone);
  EXPECT_EQ(config->notify.port, 4999);
  EXPECT_EQ(config->notify.rate, 5000U);
  EXPECT_EQ(config->notify.tor_size, 100U);
  EXPECT_EQ(config->notify.tor_ageing, 2s);
}

TEST(QcnConfig, what_cannot_work_is_one_sentence) {
  const std::string kPorts = "ports: [{name: a}]\n";
  const auto of_class = [&](const std::string& qcn) {
    return error_of(kPorts + "classes: [{class: 5, notify: qcn, qcn: {" + qcn + "}}]\n");
  };
  EXPECT_NE(of_class("weight: 3").find("power of two"), std::string::npos);
  EXPECT_NE(of_class("qeq: 0").find("qeq is not one of"), std::string::npos);
  EXPECT_NE(of_class("qeq: 20us").find("no rate"), std::string::npos);
  EXPECT_NE(of_class("sample: 10").find("samples every"), std::string::npos);
  EXPECT_NE(of_class("l3: true").find("cnm_port"), std::string::npos);
  EXPECT_NE(of_class("threshold: 1").find("unknown key"), std::string::npos);
  EXPECT_NE(error_of(kPorts + "cnm_port: 4999\nclasses: [{class: 5, notify: qcn, qcn: {l3: true}}]\n")
                .find("no interface"),
            std::string::npos);
  EXPECT_NE(error_of(kPorts + "tor: {size: 4}\n").find("cnm_port"), std::string::npos);
  EXPECT_NE(error_of(kPorts + "classes: [{class: 5, notify: cnp}]\n").find("none, qcn"), std::string::npos);
}

}  // namespace
}  // namespace roci

// Traffic classes: classification, bandwidth shares, and marking in a class of a port.
#include <cmath>

#include "support/ports/line_rate_source.hpp"
#include "switch/switch_bench.hpp"

namespace roci {
namespace {

constexpr uint32_t kFrame = 122;  // length of an untagged test frame, in bytes
constexpr uint8_t kEct = 2;

class ClassTest : public SwitchTest {
 protected:
  uint64_t sent_by_class(size_t port, uint8_t c) { return switch_->counters(port).classes[c].tx_bytes; }

  // Offers frames of each class to port 1 at twice the port's rate for `span`.
  void offer(const std::vector<uint8_t>& classes, Nanos span, uint32_t payload = 64) {
    const Nanos end = runner_.now() + span;
    std::vector<std::vector<uint8_t>> frames;
    for (const uint8_t c : classes) frames.push_back(frame(tos(c), payload));
    while (runner_.now() < end) {
      for (const auto& bytes : frames) send(0, bytes);
      wait(BitsPerSec{1'000'000'000}.time_for(Bytes{payload + 58 + 24}));
      discard(1);
    }
  }
  // From host 0 to host 1.
  static std::vector<uint8_t> frame(uint8_t traffic_class, uint32_t payload = 64) {
    return test::roce_bytes({.destination = host_mac(1),
                             .source = host_mac(0),
                             .traffic_class = traffic_class,
                             .payload = payload});
  }
};

TEST_F(ClassTest, frames_are_classified_by_dscp_or_by_pcp) {
  SwitchConfig config = ports(2);
  config.classifier.by_dscp[26] = 5;
  config.classifier.by_pcp[4] = 2;
  config.classifier.untagged = 1;
  make(config);
  introduce({0, 1});
  const auto count = [this](uint8_t c) { return switch_->counters(1).classes[c].tx_packets.load(); };
  const uint64_t before = count(0);
  say(0, 1, {.traffic_class = 26 << 2});
  EXPECT_EQ(count(5), 1U);
  say(0, 1,
      {.from = *IpAddress::parse("fd00::1"), .to = *IpAddress::parse("fd00::2"), .traffic_class = 26 << 2});
  EXPECT_EQ(count(5), 2U) << "IPv6";
  say(0, 1, {.traffic_class = 46 << 2});
  EXPECT_EQ(count(5), 3U) << "46 is in the class of its first three bits, which is 5 too";
  say(0, 1, {.vlan = 4 << 13, .traffic_class = 0});
  EXPECT_EQ(count(0), before + 1) << "IP packets by DSCP, whatever the tag says";
  switch_.reset();
  links_.clear();
  runner_ = VirtualRunner();

  config.classifier.trust = ClassifierConfig::Trust::kPcp;
  make(config);
  introduce({0, 1});
  const uint64_t untagged = count(1);
  say(0, 1, {.vlan = 4 << 13, .traffic_class = 26 << 2});
  EXPECT_EQ(count(2), 1U);
  say(0, 1, {.traffic_class = 26 << 2});
  EXPECT_EQ(count(1), untagged + 1) << "no tag";
}

// 802.1Q 6.9: the tag carries the priority of the frame, also to devices that classify by it.
TEST_F(ClassTest, added_tag_has_the_pcp_of_the_class) {
  SwitchConfig config = ports(2);
  config.classifier.by_dscp[26] = 3;
  config.classifier.by_pcp = {0, 1, 2, 4, 5, 3, 3, 7};  // class 3 has PCP 5
  config.ports[0].vlan = 10;
  config.ports[0].all_tagged = false;
  make(config);
  say(1, 1, {.vlan = 10});
  heard(0);
  say(0, 1, {.traffic_class = 26 << 2});
  say(0, 1, {.traffic_class = 7 << 5});
  const auto got = heard(1);
  ASSERT_EQ(got.size(), 2U);
  EXPECT_EQ(view(got[0]).vlan().tci.get(), 5 << 13 | 10);
  EXPECT_EQ(view(got[1]).vlan().tci.get(), 7 << 13 | 10);
}

TEST_F(ClassTest, bandwidth_shares_follow_the_weights) {
  SwitchConfig config = ports(2);
  config.ports[1].rate = 1_Gbps;
  config.ports[1].queue = 64_KiB;
  const std::array<uint32_t, 4> weights{5, 3, 1, 1};
  for (uint8_t c = 0; c < 4; ++c) config.ports[1].classes[c].weight = weights[c];
  // The classes of a port share its queue limit. Without a limit per class the first class would use all of it.
  config.buffer = {.size = 64_KiB, .alpha = 0.5};
  make(config);
  introduce({0, 1});
  offer({0, 1, 2, 3}, 5ms);
  std::array<uint64_t, 4> begin{};
  for (uint8_t c = 0; c < 4; ++c) begin[c] = sent_by_class(1, c);
  offer({0, 1, 2, 3}, 40ms);
  uint64_t all = 0;
  for (uint8_t c = 0; c < 4; ++c) all += sent_by_class(1, c) - begin[c];
  for (uint8_t c = 0; c < 4; ++c) {
    const double share = static_cast<double>(sent_by_class(1, c) - begin[c]) / static_cast<double>(all);
    EXPECT_NEAR(share, weights[c] / 10.0, 0.02 * weights[c] / 10.0) << "class " << int{c};
  }
}

TEST_F(ClassTest, bandwidth_shares_are_independent_of_frame_length) {
  SwitchConfig config = ports(2);
  config.ports[1].rate = 1_Gbps;
  config.ports[1].queue = 1_MiB;
  config.ports[1].classes[1].weight = 3;
  config.buffer = {.size = 1_MiB, .alpha = 0.5};
  make(config);
  introduce({0, 1});
  const auto both = [this, short_frame = frame(tos(0)), long_frame = frame(tos(1), 4000)](Nanos span) {
    const Nanos end = runner_.now() + span;
    while (runner_.now() < end) {
      for (int i = 0; i < 12; ++i) send(0, short_frame);
      send(0, long_frame);
      wait(16us);
      discard(1);
    }
  };
  both(10ms);
  const uint64_t small = sent_by_class(1, 0), large = sent_by_class(1, 1);
  const auto frames = [this](uint8_t c) { return switch_->counters(1).classes[c].tx_packets.load(); };
  const uint64_t small_frames = frames(0), large_frames = frames(1);
  both(40ms);
  // Shares of the line, including 24 bytes per frame for preamble, FCS and gap.
  const double a = static_cast<double>(sent_by_class(1, 0) - small + 24 * (frames(0) - small_frames));
  const double b = static_cast<double>(sent_by_class(1, 1) - large + 24 * (frames(1) - large_frames));
  EXPECT_NEAR(a / (a + b), 0.25, 0.005);
}

TEST_F(ClassTest, unused_bandwidth_is_available_to_other_classes) {
  SwitchConfig config = ports(2);
  config.ports[1].rate = 1_Gbps;
  config.ports[1].classes[0].weight = 9;
  make(config);
  introduce({0, 1});
  offer({3, 3}, 10ms);
  const uint64_t before = sent_by_class(1, 3);
  offer({3, 3}, 10ms);
  const double bits = static_cast<double>(sent_by_class(1, 3) - before) * 8;
  EXPECT_NEAR(bits, 1e7 * kFrame / (kFrame + 24), 1e5) << "the whole line";
}

TEST_F(ClassTest, strict_class_waits_for_at_most_one_frame) {
  SwitchConfig config = ports(2);
  config.ports[1].rate = 1_Gbps;
  config.ports[1].classes[6].strict = true;
  make(config);
  introduce({0, 1});
  for (uint32_t i = 0; i < 200; ++i)
    send(0,
         test::roce_bytes({.destination = host_mac(1), .source = host_mac(0), .payload = 4000, .number = i}));
  wait(100us);
  heard(1);
  const Nanos longest = (1_Gbps).time_for(Bytes{4000 + 58 + 24});
  const Nanos own = (1_Gbps).time_for(Bytes{kFrame + 24});
  for (uint32_t i = 0; i < 50; ++i) {
    const Nanos begin = runner_.now();
    send(0, test::roce_bytes({.destination = host_mac(1),
                              .source = host_mac(0),
                              .traffic_class = tos(6),
                              .number = 1000 + i}));
    bool come = false;
    const auto done = runner_.run_while([&] {
      for (const auto& bytes : heard(1)) come |= view(bytes).psn().value() == 1000 + i;
      return !come;
    });
    ASSERT_TRUE(done && *done == false ? come : come);
    EXPECT_LE(runner_.now() - begin, longest + own);
    wait(7us);
  }
}

// Keeps a queue of N frames of one length on a line that sends a frame for each arrival: each arriving frame finds N
// frames, each departure leaves N - 1.
class MarkingTest : public ClassTest {
 protected:
  static constexpr int kPackets = 10'000;

  struct Shares {
    double marked = 0, dropped = 0;
  };
  Shares measure(const AqmConfig& aqm, uint32_t depth, uint8_t ecn) {
    switch_.reset();
    links_.clear();
    runner_ = VirtualRunner();
    SwitchConfig config = ports(2);
    config.ports[1].rate = 1_Gbps;
    config.ports[1].queue = 4_MiB;
    config.ports[1].classes[0].aqm = aqm;
    config.seed = 20261121 + depth;
    make(config);
    // The queue is filled with test frames. AQM may drop some of them, so they are repeated until the queue has its
    // depth.
    introduce({0, 1});
    const auto one = [this, bytes = frame(ecn)] {
      send(0, bytes);
      settle();
    };
    const SwitchPortCounters& counters = switch_->counters(1);
    wait(1ms);
    while (counters.classes[0].queue_bytes < uint64_t{depth} * kFrame) one();
    const uint64_t marked = counters.classes[0].marked;
    const uint64_t dropped = counters.dropped(DropReason::kEarlyDrop);
    int asked = 0;
    const Nanos each = (1_Gbps).time_for(Bytes{kFrame + 24});
    for (; asked < kPackets; ++asked) {
      const uint64_t before = counters.classes[0].queue_bytes;
      EXPECT_EQ(before, uint64_t{depth} * kFrame);
      one();
      // After a drop the depth is unchanged and the next frame follows at once. Otherwise one frame must leave first.
      if (counters.classes[0].queue_bytes != before) {
        wait(each);
        discard(1);
      }
    }
    return {static_cast<double>(counters.classes[0].marked - marked) / asked,
            static_cast<double>(counters.dropped(DropReason::kEarlyDrop) - dropped) / asked};
  }
  static double confidence(double p) { return 2.576 * std::sqrt(p * (1 - p) / kPackets); }
};

TEST_F(MarkingTest, mark_probability_follows_the_curve_at_each_queue_depth) {
  AqmConfig aqm;
  aqm.mark = {.kmin = Bytes{20 * kFrame}, .kmax = Bytes{60 * kFrame}, .pmax = 0.5};
  for (const auto at : {AqmConfig::MarkAt::kEnqueue, AqmConfig::MarkAt::kDequeue}) {
    aqm.mark_at = at;
    for (const uint32_t depth : {10U, 19U, 20U, 30U, 40U, 50U, 59U, 60U, 70U}) {
      const double p = depth < 20 ? 0 : depth >= 60 ? 1 : (depth - 20) / 40.0 * 0.5;
      const Shares shares = measure(aqm, depth, kEct);
      EXPECT_NEAR(shares.marked, p, confidence(p)) << depth << " frames, " << static_cast<int>(at);
      EXPECT_EQ(shares.dropped, 0);
    }
  }
}

TEST_F(MarkingTest, drop_probability_of_non_ect_packets_follows_the_curve) {
  AqmConfig aqm;
  aqm.mark = {.kmin = Bytes{5 * kFrame}, .kmax = Bytes{5 * kFrame}};
  aqm.drop = {.kmin = Bytes{20 * kFrame}, .kmax = Bytes{60 * kFrame}, .pmax = 0.5};
  for (const uint32_t depth : {10U, 19U, 20U, 30U, 40U, 50U, 59U}) {
    const double p = depth <= 20 ? 0 : (depth - 20) / 40.0 * 0.5;
    const Shares shares = measure(aqm, depth, 0);
    EXPECT_NEAR(shares.dropped, p, confidence(p)) << depth << " frames";
    EXPECT_EQ(shares.marked, 0);
  }
}

TEST_F(MarkingTest, marked_packets_have_ce_and_a_valid_icrc) {
  SwitchConfig config = ports(2);
  config.ports[1].classes[0].aqm.mark = {.kmin = Bytes{0}, .kmax = Bytes{0}};
  make(config);
  introduce({0, 1});
  for (const uint8_t ecn : std::initializer_list<uint8_t>{1, 2, 3, 0}) {
    say(0, 1, {.traffic_class = ecn});
    const auto got = heard(1);
    ASSERT_EQ(got.size(), 1U);
    EXPECT_TRUE(icrc_is_right(got[0]));
    EXPECT_EQ(view(got[0]).ecn(), ecn == 0 ? Ecn::kNotEct : Ecn::kCe);
  }
  EXPECT_EQ(switch_->counters(1).classes[0].marked, 3U);
}

TEST_F(ClassTest, changed_curves_apply_from_the_next_frame_without_loss) {
  SwitchConfig config = ports(2);
  config.ports[1].rate = 1_Gbps;
  make(config);
  introduce({0, 1});
  for (int i = 0; i < 10; ++i)
    send(0, test::roce_bytes({.destination = host_mac(1), .source = host_mac(0), .traffic_class = kEct}));
  settle();
  ClassConfigs classes{};
  classes[0].aqm.mark = {.kmin = Bytes{0}, .kmax = Bytes{0}};
  ASSERT_TRUE(switch_->configure_marking(1, classes));
  say(0, 1, {.traffic_class = kEct});
  wait(1ms);
  const auto got = heard(1);
  ASSERT_EQ(got.size(), 11U);
  for (size_t i = 0; i < 11; ++i) EXPECT_EQ(view(got[i]).ecn(), i < 10 ? Ecn::kEct0 : Ecn::kCe);
  classes[0].aqm.mark = {.kmin = Bytes{2}, .kmax = Bytes{1}};
  EXPECT_FALSE(switch_->configure_marking(1, classes));
}

TEST_F(ClassTest, one_port_cannot_use_the_whole_buffer) {
  SwitchConfig config = ports(3);
  for (size_t i = 1; i < 3; ++i) config.ports[i].rate = BitsPerSec{1000};
  config.buffer = {.size = Bytes{100 * kFrame}, .alpha = 1};
  make(config);
  introduce({0, 1, 2});
  for (int i = 0; i < 200; ++i)
    send(0, test::roce_bytes({.destination = host_mac(1), .source = host_mac(0)}));
  settle();
  // q <= 1 (100 - q): half of the buffer.
  EXPECT_EQ(switch_->counters(1).classes[0].queue_bytes, 50 * kFrame);
  EXPECT_EQ(dropped(1, DropReason::kBufferFull), 149U);
  for (int i = 0; i < 200; ++i)
    send(0, test::roce_bytes({.destination = host_mac(2), .source = host_mac(0)}));
  settle();
  EXPECT_EQ(switch_->counters(2).classes[0].queue_bytes, 25 * kFrame) << "half of what is left";
}

}  // namespace
}  // namespace roci

// Congestion control between switches: host A - ToR A - spine - ToR B - host B. The spine's port to ToR B is slow.
// ToR A shapes the traffic to it.
#include "switch/qcn/tor_shapers.hpp"

#include "switch/qcn/l3_cnm_bench.hpp"

namespace roci {
namespace {

using test::ip;
using test::kClass;
using test::kCnmPort;
using test::L3QcnTest;
using test::net;

class TorShapersTest : public L3QcnTest {
 protected:
  static SwitchShaperConfig shaper() {
    SwitchShaperConfig s;
    s.prefix = net("10.0.2.0/24");
    s.traffic_class = kClass;
    s.rate = 1_Gbps;
    s.queue = 2_MiB;
    s.reaction = {.time_reset = 1ms, .byte_reset = Bytes{15'000}, .ai = 1_Mbps, .hai = 2_Mbps};
    return s;
  }
  static SwitchConfig shaping_tor() {
    SwitchConfig a = tor_a();
    a.shapers = {shaper()};
    return a;
  }
  static SwitchConfig slow_spine() {
    SwitchConfig s = spine();
    s.ports[1].rate = 100_Mbps;
    s.ports[1].queue = 2_MiB;
    s.ports[1].classes[kClass].qcn = {.qeq = Bytes{15'000}, .weight = 2, .sample = Bytes{15'000}, .l3 = true};
    return s;
  }
  // Host A sends `frames` frames at 200 Mb/s. Then time passes for all to arrive.
  void load(uint32_t frames) {
    for (uint32_t i = 0; i < frames; ++i) {
      send(0, frame(0, i));
      wait(53us);
    }
    wait(200ms);
  }
  void expect_all_in_order(uint32_t frames) {
    ASSERT_EQ(right_[3].size(), frames);
    for (uint32_t i = 0; i < frames; ++i) ASSERT_EQ(right_[3][i], frame(3, i)) << i;
    EXPECT_EQ(at_host_b().size(), frames);
  }
};

TEST_F(TorShapersTest, shaper_reduces_its_rate_instead_of_notifying_hosts) {
  build(shaping_tor(), slow_spine(), tor_b());
  load(1000);
  expect_all_in_order(1000);
  EXPECT_EQ(heard(0).size(), 0U);
  EXPECT_GT(events(tor_a_, CnmEvent::kShaped), 5U);
  EXPECT_EQ(events(tor_a_, CnmEvent::kShaped), events(spine_, CnmEvent::kSentOverIp));
  const ShaperCounts counts = tor_a_->shaper_counts(0);
  EXPECT_EQ(counts.notices, events(tor_a_, CnmEvent::kShaped));
  EXPECT_GT(counts.held, 500U);
  EXPECT_EQ(counts.queue_bytes, 0U);
  EXPECT_EQ(counts.dropped, 0U);
  // Without the shaper half of 1.3 MB would wait at the spine.
  const uint64_t at_spine = spine_->counters(1).queue_peak_bytes;
  EXPECT_LT(at_spine, 150'000U);
  EXPECT_GT(counts.queue_peak_bytes, 300'000U);
}

// The longest prefix has a shaper of another class only: that of the shorter prefix applies to the class.
TEST_F(TorShapersTest, shaper_of_a_shorter_prefix_applies_to_the_classes_that_a_longer_one_lacks) {
  SwitchConfig a = shaping_tor();
  a.shapers[0].prefix = net("10.0.0.0/8");
  a.shapers.push_back(shaper());
  a.shapers[1].traffic_class = kClass == 0 ? 1 : 0;
  build(a, slow_spine(), tor_b());
  load(1000);
  expect_all_in_order(1000);
  EXPECT_GT(tor_a_->shaper_counts(0).notices, 5U);
  EXPECT_EQ(tor_a_->shaper_counts(0).notices, events(tor_a_, CnmEvent::kShaped));
  EXPECT_EQ(tor_a_->shaper_counts(1).notices, 0U);
  EXPECT_GT(tor_a_->shaper_counts(0).held, 500U);
}

TEST_F(TorShapersTest, without_a_shaper_the_queue_builds_up_at_the_spine) {
  build(tor_a(), slow_spine(), tor_b());
  load(1000);
  expect_all_in_order(1000);
  EXPECT_GT(spine_->counters(1).queue_peak_bytes, 500'000U);
  EXPECT_GT(heard(0).size(), 5U);
}

TEST_F(TorShapersTest, shaper_applies_explicit_rate_changes) {
  SwitchConfig s = slow_spine();
  s.ports[1].classes[kClass].qcn.contents = {.rate_change = true};
  s.ports[1].classes[kClass].qcn.rtt = 2ms;
  build(shaping_tor(), s, tor_b());
  double least = 1e12, most = 0;
  for (uint32_t i = 0; i < 2000; ++i) {
    send(0, frame(0, i));
    wait(53us);
    if (i < 1000) continue;
    const auto rate = static_cast<double>(tor_a_->shaper_counts(0).rate);
    least = std::min(least, rate);
    most = std::max(most, rate);
  }
  EXPECT_GT(least, 80e6);
  EXPECT_LT(most, 120e6);
  wait(300ms);
  expect_all_in_order(2000);
  EXPECT_LT(spine_->counters(1).queue_peak_bytes, 100'000U);
  EXPECT_EQ(heard(0).size(), 0U);
}

TEST_F(TorShapersTest, shaper_queue_sends_cnms_to_local_hosts) {
  SwitchConfig a = shaping_tor();
  a.shapers[0].qcn = QcnConfig{.qeq = Bytes{50'000}, .weight = 2, .sample = Bytes{15'000}, .l3 = true};
  build(a, slow_spine(), tor_b());
  load(300);
  expect_all_in_order(300);
  const auto got = heard(0);
  ASSERT_GT(got.size(), 3U);
  for (const auto& bytes : got) {
    const auto cnm = parse_cnm_frame(bytes);
    ASSERT_EQ(cnm.outcome, CnmOutcome::kAccepted);
    EXPECT_EQ(cnm.link.tags.flow, 0x1234) << "as the host has sent it";
    EXPECT_EQ(cnm.cnm.point, (CongestionPointId{mac_of(kTorA), Be16{0x8000}}));
    EXPECT_GT(cnm.cnm.feedback, 0U);
  }
  EXPECT_EQ(events(tor_a_, CnmEvent::kSentToOwnHost), got.size());
}

TEST_F(TorShapersTest, shaper_queue_drops_frames_by_its_curve) {
  SwitchConfig a = shaping_tor();
  a.shapers[0].aqm.drop = {.kmin = Bytes{30'000}, .kmax = Bytes{30'000}};
  build(a, slow_spine(), tor_b());
  load(300);
  const ShaperCounts counts = tor_a_->shaper_counts(0);
  EXPECT_GT(counts.dropped, 10U);
  EXPECT_EQ(tor_a_->counters(1).dropped(DropReason::kEarlyDrop), counts.dropped);
  EXPECT_LE(counts.queue_peak_bytes, 30'000U + 1306);
  EXPECT_EQ(at_host_b().size(), 300 - counts.dropped);
}

TEST_F(TorShapersTest, shaper_marks_frames_with_ce) {
  SwitchConfig a = shaping_tor();
  a.shapers[0].aqm.mark = {.kmin = Bytes{5'000}, .kmax = Bytes{5'000}};
  build(a, slow_spine(), tor_b());
  for (uint32_t i = 0; i < 300; ++i) {
    send(0, ecn_capable(frame(0, i)));
    wait(53us);
  }
  wait(200ms);
  uint64_t marked = 0;
  for (const auto& bytes : at_host_b()) marked += static_cast<uint64_t>((bytes[14 + 4 + 1] & 3) == 3);
  EXPECT_GT(marked, 50U);
  EXPECT_EQ(marked, tor_a_->shaper_counts(0).marked);
}

TEST_F(TorShapersTest, full_shaper_queue_drops_and_counts_frames) {
  SwitchConfig a = shaping_tor();
  a.shapers[0].queue_frames = 20;
  build(a, slow_spine(), tor_b());
  load(300);
  const ShaperCounts counts = tor_a_->shaper_counts(0);
  EXPECT_GT(counts.dropped, 10U);
  EXPECT_EQ(tor_a_->counters(1).dropped(DropReason::kQueueFull), counts.dropped);
  EXPECT_EQ(counts.queue_peak_bytes, 20 * frame(1).size());
  EXPECT_EQ(at_host_b().size(), 300 - counts.dropped);
}

// Frames that wait in the shaper count for their ingress port, so a lossless class pauses the host and drops nothing.
TEST_F(TorShapersTest, shaper_queue_counts_toward_pfc_of_the_ingress_port) {
  SwitchConfig a = shaping_tor();
  for (SwitchPortConfig& port : a.ports)
    port.classes[kClass].lossless = {.xoff = Bytes{30'000}, .xon = Bytes{20'000}, .headroom = Bytes{900'000}};
  build(a, slow_spine(), tor_b());
  load(300);
  expect_all_in_order(300);
  EXPECT_GT(tor_a_->counters(0).classes[kClass].pauses_sent, 0U);
  EXPECT_EQ(tor_a_->counters(1).classes[kClass].pauses_sent, 0U);
  heard(0);
}

TEST_F(TorShapersTest, other_classes_and_other_networks_are_not_shaped) {
  for (const bool other_class : {true, false}) {
    SwitchConfig a = shaping_tor();
    if (other_class) {
      a.shapers[0].traffic_class = kClass - 1;
    } else {
      a.shapers[0].prefix = net("10.0.3.0/24");
    }
    build(a, slow_spine(), tor_b());
    load(100);
    expect_all_in_order(100);
    EXPECT_GT(heard(0).size(), 1U) << "the host hears of it";
    EXPECT_EQ(tor_a_->shaper_counts(0).notices, 0U);
    EXPECT_EQ(tor_a_->shaper_counts(0).held, 0U);
    start_over();
  }
}

TEST_F(TorShapersTest, cnm_reaches_the_shapers_of_all_workers) {
  SwitchConfig a = shaping_tor();
  a.ports[0].worker = 1;
  build(a, slow_spine(), tor_b());
  load(200);
  expect_all_in_order(200);
  EXPECT_GT(events(tor_a_, CnmEvent::kShaped), 1U);
  EXPECT_EQ(tor_a_->shaper_counts(0).notices, 2 * events(tor_a_, CnmEvent::kShaped));
  EXPECT_GT(tor_a_->shaper_counts(0).held, 50U);
}

// A dynamic threshold above the limit of the shaper's queue. The host needs no pause for these frames.
TEST_F(TorShapersTest, shaper_queue_limit_does_not_apply_to_lossless_classes) {
  SwitchConfig a = shaping_tor();
  a.buffer.size = 2_MiB;
  for (SwitchPortConfig& port : a.ports)
    port.classes[kClass].lossless = {.headroom = Bytes{60'000}, .alpha = 1, .hysteresis = Bytes{3'000}};
  a.shapers[0].queue = Bytes{70'000};
  build(a, slow_spine(), tor_b());
  load(300);
  const ShaperCounts counts = tor_a_->shaper_counts(0);
  EXPECT_GT(counts.queue_peak_bytes, 70'000U);
  EXPECT_EQ(counts.dropped, 0U);
  expect_all_in_order(300);
}

// Worker 1 has the port to host A, and sends nothing to the shaped prefix.
TEST_F(TorShapersTest, cnm_does_not_limit_a_worker_without_traffic) {
  SwitchConfig a = shaping_tor();
  a.ports[0].worker = 1;
  build(a, slow_spine(), tor_b());
  uint32_t limited = 0;
  for (uint32_t i = 0; i < 400; ++i) {
    send(0, frame(0, i));
    wait(53us);
    const ShaperCounts counts = tor_a_->shaper_counts(0);
    EXPECT_LE(counts.limiting, 1U);
    if (counts.limiting == 0) {
      EXPECT_EQ(counts.rate, 0U);
      continue;
    }
    ++limited;
    EXPECT_GT(counts.rate, (1_Gbps).value()) << "that of the other worker is included";
  }
  EXPECT_GT(limited, 100U);
  wait(300ms);
  expect_all_in_order(400);
}

TEST_F(TorShapersTest, queued_frames_are_freed_with_the_switch) {
  build(shaping_tor(), slow_spine(), tor_b());
  for (uint32_t i = 0; i < 300; ++i) {
    send(0, frame(0, i));
    wait(53us);
  }
  EXPECT_GT(tor_a_->shaper_counts(0).queue_bytes, 0U);
  at_host_b();
}

TEST_F(TorShapersTest, invalid_shapers_are_rejected_with_the_reason) {
  const auto said = [](const std::function<void(SwitchConfig&)>& change) {
    SwitchConfig a = shaping_tor();
    change(a);
    const Status status = check(a);
    return status ? std::string{"nothing"} : status.error().message;
  };
  EXPECT_EQ(said([](SwitchConfig&) {}), "nothing");
  EXPECT_EQ(said([](SwitchConfig& a) {
              a.notify.port = 0;
              a.notify.tor_size = 0;
            }),
            "switch 'tor_a': shapers require cnm_port");
  EXPECT_EQ(said([](SwitchConfig& a) { a.shapers.push_back(a.shapers[0]); }),
            "switch 'tor_a': shaper of class 5 to 10.0.2.0/24: duplicate");
  EXPECT_EQ(said([](SwitchConfig& a) { a.shapers[0].reaction.min = 1_Gbps; }),
            "switch 'tor_a': shaper of class 5 to 10.0.2.0/24: reaction: min must be above 0 and below the "
            "shaper's rate");
  EXPECT_EQ(said([](SwitchConfig& a) {
              a.ports[0].classes[kClass].lossless = {Bytes{400'000}, Bytes{1}, Bytes{500'000}};
              a.shapers[0].queue = 800_KiB;
            }),
            "switch 'tor_a': shaper of class 5 to 10.0.2.0/24: xoff and headroom of port 'p0' exceed the "
            "shaper's queue");
}

}  // namespace
}  // namespace roci

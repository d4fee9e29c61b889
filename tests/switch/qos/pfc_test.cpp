// Priority-based flow control: lossless operation and its effect on other traffic.
#include "support/ports/line_rate_source.hpp"
#include "support/ports/slow_poller.hpp"
#include "support/sanitizer.hpp"
#include "switch/switch_bench.hpp"

namespace roci {
namespace {

using test::LineRateSource;

constexpr uint8_t kStorage = 3;  // the lossless class
constexpr uint32_t kPacketPayload = 1024;
constexpr uint32_t kFrameBytes = kPacketPayload + 58;

constexpr uint64_t kManyPackets = test::kSanitized ? 100'000 : 1'000'000;

class PfcTest : public SwitchTest {
 protected:
  static SwitchConfig lossless_ports(size_t count, BitsPerSec rate, const LosslessConfig& lossless) {
    SwitchConfig config = ports(count);
    for (SwitchPortConfig& port : config.ports) {
      port.rate = rate;
      port.classes[kStorage].lossless = lossless;
    }
    return config;
  }
  // Links with this rate and a delay of 1 us.
  static SimLinkConfig cable(BitsPerSec rate) {
    SimLinkConfig link;
    link.a_to_b = {.rate = rate, .delay = 1us};
    link.b_to_a = {.rate = rate, .delay = 1us};
    return link;
  }
  LineRateSource& source(size_t from, size_t to, uint64_t count = UINT64_MAX,
                         uint8_t traffic_class = kStorage, BitsPerSec rate = 10_Gbps,
                         Nanos begin = Nanos{0}) {
    sources_.push_back(
        std::make_unique<LineRateSource>(links_[from]->a(), pool_,
                                         LineRateSource::Config{.rate = rate,
                                                                .frame = {.destination = host_mac(to),
                                                                          .source = host_mac(from),
                                                                          .traffic_class = tos(traffic_class),
                                                                          .payload = kPacketPayload},
                                                                .traffic_class = traffic_class,
                                                                .count = count,
                                                                .begin = begin}));
    runner_.add(*sources_.back());
    return *sources_.back();
  }
  // A receiver that sends nothing.
  LineRateSource& sink(size_t at) { return source(at, at, 0); }
  void send_pause(size_t host, uint8_t traffic_class, uint16_t quanta) {
    PauseMessage message{.source = host_mac(host), .classes = static_cast<uint8_t>(1U << traffic_class)};
    message.quanta[traffic_class] = quanta;
    std::vector<uint8_t> bytes(kPauseFrameBytes);
    build_pause(message, std::span<uint8_t, kPauseFrameBytes>(bytes.data(), kPauseFrameBytes));
    send(host, bytes);
    settle();
  }
  // Drops, without the frames that introduce() sent.
  uint64_t all_drops() {
    uint64_t sum = 0;
    for (size_t i = 0; i < switch_->port_count(); ++i)
      sum += switch_->counters(i).dropped() - dropped(i, DropReason::kSamePort);
    return sum;
  }
  void TearDown() override {
    sources_.clear();
    SwitchTest::TearDown();
  }
  std::vector<std::unique_ptr<LineRateSource>> sources_;
};

constexpr LosslessConfig kSmall{.xoff = 64_KiB, .xon = 32_KiB, .headroom = 16_KiB};

TEST_F(PfcTest, four_to_one_incast_loses_no_packet) {
  make(lossless_ports(5, 10_Gbps, kSmall), cable(10_Gbps));
  introduce({0, 1, 2, 3, 4});
  wait(100us);
  LineRateSource& receiver = sink(4);
  for (size_t i = 0; i < 4; ++i) source(i, 4, kManyPackets / 4);
  const Nanos begin = runner_.now();
  const auto done = runner_.run_while([&] { return receiver.received() < kManyPackets; }, begin + 10s);
  ASSERT_TRUE(done);
  EXPECT_EQ(receiver.received(), kManyPackets);
  EXPECT_EQ(all_drops(), 0U);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_GT(switch_->counters(i).classes[kStorage].pauses_sent, 0U) << "port " << i;
    EXPECT_GT(sources_[i + 1]->pauses(), 0U);
  }
  // The line to the receiver was never idle: the queue covers the delay of an XON.
  const auto wanted =
      static_cast<double>((10_Gbps).time_for(Bytes{kManyPackets * (kFrameBytes + 24)}).count());
  EXPECT_LT(static_cast<double>((runner_.now() - begin).count()), 1.01 * wanted);
}

// Four senders at line rate to one port. A buffer of 1 MiB with 16 KiB of headroom for each of five ports and alpha 1/8:
// F KiB are free when each of the four ports holds F / 8. F = 1024 - 80 - 4 F / 8, so that they are paused at 78.7 KiB.
TEST_F(PfcTest, dynamic_threshold_is_a_fraction_of_the_free_buffer) {
  constexpr LosslessConfig kDynamic{.headroom = 16_KiB, .alpha = 0.125, .hysteresis = 3_KiB};
  SwitchConfig config = lossless_ports(5, 10_Gbps, kDynamic);
  config.buffer.size = 1_MiB;
  make(config, cable(10_Gbps));
  introduce({0, 1, 2, 3, 4});
  wait(100us);
  LineRateSource& receiver = sink(4);
  for (size_t i = 0; i < 4; ++i) source(i, 4);
  wait(2ms);
  constexpr double kSize = 1024 - 5 * 16, kThreshold = 0.125 * kSize / (1 + 4 * 0.125);  // KiB
  double most = 0, least = kSize;
  for (int sample = 0; sample < 1000; ++sample) {
    wait(5us);
    const double held = static_cast<double>(switch_->buffer_used()) / 1024;
    most = std::max(most, held);
    least = std::min(least, held);
  }
  EXPECT_LT(most, 4 * (kThreshold + 16));
  EXPECT_GT(most, 4 * kThreshold);
  EXPECT_GT(least, 4 * (kThreshold - 16));
  EXPECT_EQ(all_drops(), 0U);
  // The line to the receiver was never idle.
  const auto line = static_cast<uint64_t>(7ms / (10_Gbps).time_for(Bytes{kFrameBytes + 24}));
  EXPECT_GT(receiver.received(), line * 99 / 100);
  for (size_t i = 0; i < 4; ++i)
    EXPECT_GT(switch_->counters(i).classes[kStorage].pauses_sent, 0U) << "port " << i;
}

// The sum of the accounts of four ingress ports exceeds the queue's limit, which does not apply to lossless classes.
TEST_F(PfcTest, incast_loses_no_packet_if_the_accounts_exceed_the_queue_limit) {
  constexpr LosslessConfig kLarge{.xoff = 256_KiB, .xon = 192_KiB, .headroom = 64_KiB};
  SwitchConfig config = lossless_ports(5, 10_Gbps, kLarge);
  for (SwitchPortConfig& port : config.ports) port.queue = 512_KiB;
  make(config, cable(10_Gbps));
  introduce({0, 1, 2, 3, 4});
  wait(100us);
  LineRateSource& receiver = sink(4);
  for (size_t i = 0; i < 4; ++i) source(i, 4, 5000);
  wait(25ms);
  EXPECT_EQ(receiver.received(), 20'000U);
  EXPECT_EQ(all_drops(), 0U);
  EXPECT_GT(switch_->counters(4).queue_peak_bytes, (512_KiB).value());
}

// Frames of a class without PFC fill the buffer up to its limit, but not the headroom of lossless classes.
TEST_F(PfcTest, reserved_headroom_is_not_occupied_by_other_classes) {
  constexpr LosslessConfig kDynamic{.headroom = 64_KiB, .alpha = 0.0625, .hysteresis = 3_KiB};
  SwitchConfig config = lossless_ports(4, 10_Gbps, kDynamic);
  config.buffer.size = 1_MiB;
  for (SwitchPortConfig& port : config.ports) port.queue = 4_MiB;
  config.ports[3].rate = 1_Gbps;
  make(config, cable(10_Gbps));
  introduce({0, 1, 2, 3});
  wait(100us);
  LineRateSource& receiver = sink(3);
  source(0, 3, UINT64_MAX, 0);
  wait(2ms);
  EXPECT_GT(dropped(3, DropReason::kBufferFull), 0U);
  source(1, 3, 500);
  wait(20ms);
  EXPECT_EQ(receiver.received_of(host_mac(1)), 500U);
}

// The threshold decreases while other ports fill the buffer: a single sender is paused later than each of four.
TEST_F(PfcTest, dynamic_threshold_of_a_single_sender_is_higher) {
  constexpr LosslessConfig kDynamic{.headroom = 16_KiB, .alpha = 0.125, .hysteresis = 3_KiB};
  SwitchConfig config = lossless_ports(5, 10_Gbps, kDynamic);
  config.buffer.size = 1_MiB;
  config.ports[4].rate = 1_Gbps;
  make(config, cable(10_Gbps));
  introduce({0, 1, 2, 3, 4});
  wait(100us);
  sink(4);
  source(0, 4);
  double most = 0;
  for (int sample = 0; sample < 1000; ++sample) {
    wait(5us);
    most = std::max(most, static_cast<double>(switch_->buffer_used()) / 1024);
  }
  constexpr double kSize = 1024 - 5 * 16, kThreshold = 0.125 * kSize / (1 + 0.125);
  EXPECT_GT(most, kThreshold);
  EXPECT_LT(most, kThreshold + 16);
  EXPECT_EQ(all_drops(), 0U);
}

TEST_F(PfcTest, incast_without_pfc_loses_three_of_four_packets) {
  SwitchConfig config = ports(5);
  for (auto& port : config.ports) {
    port.rate = 10_Gbps;
    port.queue = 256_KiB;
  }
  make(config, cable(10_Gbps));
  introduce({0, 1, 2, 3, 4});
  wait(100us);
  sink(4);
  for (size_t i = 0; i < 4; ++i) source(i, 4, 5000);
  wait(20ms);
  EXPECT_NEAR(static_cast<double>(dropped(4, DropReason::kQueueFull)), 15'000, 500);
}

// DCQCN note, "unfairness": f1 enters through port 0; f2 and f3 share port 1. PFC pauses each ingress port for its
// own share of the buffer, so f1 gets as much as f2 and f3 together.
TEST_F(PfcTest, pauses_share_bandwidth_by_ingress_port_and_not_by_flow) {
  SwitchConfig config = lossless_ports(3, 10_Gbps, kSmall);
  make(config, cable(10_Gbps));
  introduce({0, 1, 2});
  wait(100us);
  LineRateSource& receiver = sink(2);
  source(0, 2);
  source(1, 2);  // represents f2 and f3, which share this port
  wait(20ms);
  const auto f1 = static_cast<double>(receiver.received_of(host_mac(0)));
  const auto others = static_cast<double>(receiver.received_of(host_mac(1)));
  EXPECT_EQ(all_drops(), 0U);
  EXPECT_NEAR(f1 / (f1 + others), 0.5, 0.02) << "one flow against two, and half of the line";
}

// "Victim flow": f1 and f2 enter through port 0. f1 goes to port 1, which is congested. f2 goes to port 2, which is
// idle, and is paused together with f1.
TEST_F(PfcTest, victim_flow_to_an_idle_port_is_paused_with_the_congested_flow) {
  for (const bool lossless : {true, false}) {
    sources_.clear();
    switch_.reset();
    links_.clear();
    runner_ = VirtualRunner();
    SwitchConfig config = lossless ? lossless_ports(4, 10_Gbps, kSmall) : ports(4);
    config.ports[1].rate = 1_Gbps;
    make(config, cable(10_Gbps));
    introduce({0, 1, 2, 3});
    wait(100us);
    sink(1);
    LineRateSource& idle = sink(2);
    // Two flows of 5 Gb/s from one host, with alternating frames.
    source(0, 1, UINT64_MAX, kStorage, 5_Gbps);
    LineRateSource& congested = *sources_.back();
    sources_.push_back(
        std::make_unique<LineRateSource>(links_[0]->a(), pool_,
                                         LineRateSource::Config{.rate = 5_Gbps,
                                                                .frame = {.destination = host_mac(2),
                                                                          .source = host_mac(0),
                                                                          .traffic_class = tos(kStorage),
                                                                          .payload = kPacketPayload},
                                                                .traffic_class = kStorage}));
    // The pause frames concern both flows, but the first to be polled consumes the frame. The second flow follows the
    // first one's state.
    sources_.back()->follow(congested);
    runner_.add(*sources_.back());
    wait(20ms);
    const double rate = static_cast<double>(idle.received()) * (kFrameBytes + 24) * 8 / 20e-3;
    if (lossless) {
      EXPECT_LT(rate, 1.3e9) << "the rate of the congested port";
      EXPECT_EQ(all_drops(), 0U);
    } else {
      EXPECT_GT(rate, 4.9e9) << "without pauses it has its own";
    }
  }
}

TEST_F(PfcTest, paused_class_waits_and_other_classes_do_not) {
  make(lossless_ports(2, 1_Gbps, kSmall));
  introduce({0, 1});
  wait(10us);
  const Nanos begin = runner_.now();
  send_pause(1, kStorage, 1000);  // 512 us at 1 Gb/s
  say(0, 1, {.traffic_class = tos(kStorage), .number = 1});
  say(0, 1, {.traffic_class = tos(0), .number = 2});
  auto got = heard(1);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(view(got[0]).psn().value(), 2U);
  const auto come = runner_.run_while([&] {
    got = heard(1);
    return got.empty();
  });
  ASSERT_TRUE(come);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(runner_.now() - begin, 512us) << "to the nanosecond";
  const SwitchClassCounters& counters = switch_->counters(1).classes[kStorage];
  EXPECT_EQ(counters.pauses_received, 1U);
  EXPECT_EQ(counters.paused_nanos, 512'000U);
}

TEST_F(PfcTest, pause_of_zero_quanta_ends_a_pause) {
  make(lossless_ports(2, 1_Gbps, kSmall));
  introduce({0, 1});
  wait(10us);
  send_pause(1, kStorage, 0xffff);
  say(0, 1, {.traffic_class = tos(kStorage)});
  wait(100us);
  EXPECT_TRUE(heard(1).empty());
  send_pause(1, kStorage, 0);
  EXPECT_EQ(heard(1).size(), 1U);
  EXPECT_EQ(switch_->counters(1).classes[kStorage].paused_nanos, 100'000U);
}

TEST_F(PfcTest, lossy_classes_are_not_paused_and_pfc_frames_are_not_forwarded) {
  make(lossless_ports(3, 1_Gbps, kSmall));
  introduce({0, 1, 2});
  send_pause(1, 0, 0xffff);
  say(0, 1, {.traffic_class = tos(0)});
  EXPECT_EQ(heard(1).size(), 1U);
  EXPECT_TRUE(heard(0).empty());
  EXPECT_TRUE(heard(2).empty());
  EXPECT_EQ(all_drops(), 0U);
}

TEST_F(PfcTest, pfc_frames_are_dropped_as_link_local_without_a_lossless_class) {
  make(ports(2));
  introduce({0, 1});
  send_pause(1, kStorage, 0xffff);
  EXPECT_EQ(dropped(1, DropReason::kLinkLocal), 1U);
}

// The quantum of a pause is 512 bit times of the link (802.3 31B.2), whatever the port's own rate.
TEST_F(PfcTest, pause_times_are_those_of_the_link) {
  SwitchConfig config = lossless_ports(2, BitsPerSec{0}, kSmall);
  make(config, cable(1_Gbps));
  introduce({0, 1});
  wait(100us);
  send_pause(1, kStorage, 1000);  // 512 us at 1 Gb/s; at the assumed 100 Gb/s 5 us
  say(0, 1, {.traffic_class = tos(kStorage)});
  wait(400us);
  EXPECT_TRUE(heard(1).empty());
  wait(200us);
  EXPECT_EQ(heard(1).size(), 1U);
}

// Both ports accept no frames: the pauses for the sender are not queued one behind the other.
TEST_F(PfcTest, port_that_accepts_no_frames_keeps_one_pfc_frame) {
  make(lossless_ports(2, 10_Gbps, kSmall));
  introduce({0, 1});
  const uint32_t before = pool_->in_use();
  gates_[0]->accepts = gates_[1]->accepts = false;
  for (int i = 0; i < 64; ++i) {
    send(0, test::roce_bytes({.destination = host_mac(1),
                              .source = host_mac(0),
                              .traffic_class = tos(kStorage),
                              .payload = kPacketPayload}));
  }
  for (int i = 0; i < 900; ++i) wait(1ms);
  EXPECT_LE(pool_->in_use(), before + 64 + 2);  // one on the line, one waiting
  gates_[0]->accepts = true;
  wait(1ms);
  EXPECT_EQ(heard(0).size(), 2U);
}

// A pause that was replaced before it was sent still resumes the classes that have been resumed meanwhile.
TEST_F(PfcTest, replaced_pfc_frame_resumes_and_stops_the_right_classes) {
  SwitchConfig config = lossless_ports(2, 10_Gbps, kSmall);
  for (SwitchPortConfig& port : config.ports) port.classes[4].lossless = kSmall;
  make(config);
  introduce({0, 1});
  const auto fill = [this](uint8_t traffic_class) {
    for (int i = 0; i < 64; ++i) {
      send(0, test::roce_bytes({.destination = host_mac(1),
                                .source = host_mac(0),
                                .traffic_class = tos(traffic_class),
                                .payload = kPacketPayload}));
    }
    wait(1us);
  };
  gates_[1]->accepts = false;
  fill(kStorage);
  const auto first = heard(0);
  ASSERT_EQ(first.size(), 1U);
  gates_[0]->accepts = false;
  fill(4);  // on the line, not accepted
  wait(1us);
  gates_[1]->accepts = true;
  send_pause(1, 4, 0xffff);
  wait(200us);  // class 3 resumes
  send_pause(1, 4, 0);
  wait(200us);  // class 4 resumes
  gates_[0]->accepts = true;
  wait(1us);
  const auto rest = heard(0);
  ASSERT_EQ(rest.size(), 2U);
  const ParsedPause last = parse_pause(rest.back(), host_mac(0));
  ASSERT_EQ(last.outcome, PauseOutcome::kAccepted);
  EXPECT_EQ(last.message.classes, 1U << kStorage | 1U << 4);
  EXPECT_EQ(last.message.quanta[kStorage], 0U);
  EXPECT_EQ(last.message.quanta[4], 0U);
}

// A receiver that is gone: its queue is discarded, so that its senders are resumed.
TEST_F(PfcTest, queue_of_a_port_that_accepts_no_frames_is_discarded) {
  for (const bool up : {true, false}) {
    SCOPED_TRACE(up);
    make(lossless_ports(3, 10_Gbps, kSmall), cable(10_Gbps));
    introduce({0, 1, 2});
    wait(100us);
    LineRateSource& sender = source(0, 1, 70);
    gates_[1]->accepts = false;
    gates_[1]->up = up;
    wait(100us);
    EXPECT_TRUE(sender.paused(runner_.now()));
    EXPECT_GT(switch_->buffer_used(), 64U * 1024);
    wait(5ms);
    EXPECT_TRUE(sender.paused(runner_.now()));
    // Twice the time: the sender sends its last frames when it is resumed. A port does not signal that it accepts frames,
    // so the switch must be polled.
    for (int i = 0; i < (up ? 2100 : 50); ++i) wait(1ms);
    EXPECT_FALSE(sender.paused(runner_.now()));
    EXPECT_EQ(switch_->buffer_used(), 0U);
    EXPECT_EQ(dropped(1, DropReason::kPortRefused), 70U);
    EXPECT_EQ(switch_->counters(1).queue_packets, 0U);
    gates_[1]->accepts = gates_[1]->up = true;
    heard(1);
    say(0, 1, {.traffic_class = tos(kStorage)});
    wait(10us);
    EXPECT_EQ(heard(1).size(), 1U) << "works again";
    sources_.clear();
    switch_.reset();
    gates_.clear();
    links_.clear();
    runner_ = VirtualRunner();
  }
}

TEST_F(PfcTest, frames_beyond_the_headroom_are_dropped_at_the_ingress_port) {
  make(lossless_ports(2, BitsPerSec{1000}, kSmall));
  introduce({0, 1});
  for (int i = 0; i < 200; ++i) {
    send(0, test::roce_bytes({.destination = host_mac(1),
                              .source = host_mac(0),
                              .traffic_class = tos(kStorage),
                              .payload = kPacketPayload}));
  }
  settle();
  const uint64_t room = (64 + 16) * 1024 / kFrameBytes;
  EXPECT_EQ(switch_->counters(1).classes[kStorage].queue_bytes, room * kFrameBytes);
  EXPECT_GE(dropped(0, DropReason::kHeadroomFull), 200 - room - 1);
  EXPECT_EQ(dropped(1, DropReason::kHeadroomFull), 0U) << "counted where it came in";
}

TEST_F(PfcTest, long_pause_is_refreshed_before_it_ends) {
  make(lossless_ports(2, 10_Gbps, kSmall), cable(10_Gbps));
  introduce({0, 1});
  wait(100us);
  // The receiver pauses the switch, so the switch must pause the sender and refresh the pause.
  LineRateSource& sender = source(0, 1);
  send_pause(1, kStorage, 0xffff);
  wait(3ms);
  send_pause(1, kStorage, 0xffff);
  const uint64_t sent = sender.sent();
  for (int i = 0; i < 30; ++i) {
    wait(100us);
    if (i == 15) send_pause(1, kStorage, 0xffff);
    EXPECT_TRUE(sender.paused(runner_.now()));
  }
  EXPECT_EQ(sender.sent(), sent);
  EXPECT_EQ(all_drops(), 0U);
  EXPECT_GT(switch_->counters(0).classes[kStorage].pauses_sent, 2U);
}

TEST_F(PfcTest, endless_pause_stops_a_class_for_200_ms_by_default) {
  make(lossless_ports(2, 1_Gbps, kSmall));
  introduce({0, 1});
  wait(10us);
  send_pause(1, kStorage, 0xffff);
  say(0, 1, {.traffic_class = tos(kStorage)});
  for (int i = 0; i < 19; ++i) {
    wait(10ms);
    send_pause(1, kStorage, 0xffff);  // 33.5 ms
    EXPECT_TRUE(heard(1).empty()) << i;
  }
  for (int i = 0; i < 3; ++i) {
    wait(10ms);
    send_pause(1, kStorage, 0xffff);
  }
  EXPECT_EQ(heard(1).size(), 1U);
  EXPECT_EQ(switch_->counters(1).classes[kStorage].pause_storms, 1U);
}

TEST_F(PfcTest, watchdog_ends_a_pause_storm_and_restores_pfc_after_it) {
  SwitchConfig config = lossless_ports(2, 1_Gbps, kSmall);
  config.ports[1].watchdog = {.detect = 5ms, .restore = 10ms};
  make(config);
  introduce({0, 1});
  wait(10us);
  const Nanos begin = runner_.now();
  say(0, 1);  // the line is busy at first
  heard(1);
  send_pause(1, kStorage, 0xffff);  // 33.5 ms
  say(0, 1, {.traffic_class = tos(kStorage)});
  wait(4ms);
  send_pause(1, kStorage, 0xffff);
  EXPECT_TRUE(heard(1).empty());
  wait(begin + 5ms - runner_.now());
  EXPECT_EQ(heard(1).size(), 1U) << "paused for 5 ms without a break";
  EXPECT_EQ(switch_->counters(1).classes[kStorage].pause_storms, 1U);
  wait(1ms);
  send_pause(1, kStorage, 0xffff);
  say(0, 1, {.traffic_class = tos(kStorage)});
  EXPECT_EQ(heard(1).size(), 1U) << "not listened to";
  wait(10ms);
  send_pause(1, kStorage, 0xffff);
  say(0, 1, {.traffic_class = tos(kStorage)});
  EXPECT_TRUE(heard(1).empty()) << "after 10 ms of silence a pause is a pause again";
}

// Both frames are received in one burst, so the class sends nothing between them.
TEST_F(PfcTest, resume_followed_by_a_pause_does_not_restart_the_detection_time) {
  SwitchConfig config = lossless_ports(2, 1_Gbps, kSmall);
  config.ports[1].watchdog = {.detect = 5ms, .restore = 10ms};
  make(config);
  introduce({0, 1});
  wait(10us);
  const auto send_pair = [this] {
    for (const uint16_t quanta : {uint16_t{0}, uint16_t{0xffff}}) {
      PauseMessage message{.source = host_mac(1), .classes = 1U << kStorage};
      message.quanta[kStorage] = quanta;
      std::vector<uint8_t> bytes(kPauseFrameBytes);
      build_pause(message, std::span<uint8_t, kPauseFrameBytes>(bytes.data(), kPauseFrameBytes));
      send(1, bytes);
    }
    settle();
  };
  for (int i = 0; i < 10; ++i) {  // without frames that wait: no storm
    send_pair();
    wait(1ms);
  }
  EXPECT_EQ(switch_->counters(1).classes[kStorage].pause_storms, 0U);
  send_pause(1, kStorage, 0);
  say(0, 1, {.traffic_class = tos(kStorage)});
  EXPECT_EQ(heard(1).size(), 1U);
  send_pause(1, kStorage, 0xffff);
  say(0, 1, {.traffic_class = tos(kStorage)});
  for (int i = 0; i < 4; ++i) {
    wait(1ms);
    send_pair();
    EXPECT_TRUE(heard(1).empty()) << i;
  }
  wait(1ms);
  EXPECT_EQ(heard(1).size(), 1U) << "stopped for 5 ms";
  EXPECT_EQ(switch_->counters(1).classes[kStorage].pause_storms, 1U);
}

class WatchdogOff : public PfcTest, public testing::WithParamInterface<Nanos> {};

TEST_P(WatchdogOff, endless_pause_stops_a_class_until_it_ends) {
  SwitchConfig config = lossless_ports(2, 1_Gbps, kSmall);
  config.ports[1].watchdog.detect = GetParam();
  make(config);
  introduce({0, 1});
  wait(10us);
  send_pause(1, kStorage, 0xffff);
  say(0, 1, {.traffic_class = tos(kStorage)});
  for (int i = 0; i < 30; ++i) {
    wait(10ms);
    send_pause(1, kStorage, 0xffff);  // 33.5 ms
  }
  EXPECT_TRUE(heard(1).empty());
  wait(34ms);
  EXPECT_EQ(heard(1).size(), 1U) << "the pause has ended";
  EXPECT_EQ(switch_->counters(1).classes[kStorage].pause_storms, 0U);
}

INSTANTIATE_TEST_SUITE_P(Detect, WatchdogOff, testing::Values(Nanos{0}, kNever));

// Queues are served before frames are received: PFC frames that have arrived meanwhile do not extend a pause that has
// expired.
TEST_F(PfcTest, class_is_served_if_its_pause_has_expired_at_a_late_poll) {
  make(lossless_ports(2, 1_Gbps, kSmall));
  runner_ = VirtualRunner();
  for (const auto& link : links_) runner_.add(*link);
  test::SlowPoller slow(*switch_, 1ms);
  runner_.add(slow);
  for (const size_t host : {0U, 1U}) say(host, host);
  wait(2ms);
  heard(1);
  send_pause(1, kStorage, 1000);  // 512 us
  say(0, 1, {.traffic_class = tos(kStorage)});
  wait(1ms);
  EXPECT_TRUE(heard(1).empty());
  send_pause(1, kStorage, 1000);
  wait(1ms);
  EXPECT_EQ(heard(1).size(), 1U);
  EXPECT_EQ(switch_->counters(1).classes[kStorage].pauses_received, 2U);
  EXPECT_EQ(switch_->counters(1).classes[kStorage].pause_storms, 0U);
  runner_ = VirtualRunner();  // refers to `slow`
}

}  // namespace
}  // namespace roci

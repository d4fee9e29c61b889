// Hosts and a switch with PFC: packets of a lossless priority arrive, and other priorities do not wait for them.
#include <deque>
#include <functional>

#include "support/ports/frames.hpp"
#include "support/ports/slow_poller.hpp"
#include "support/sanitizer.hpp"
#include "through_switch/fabric.hpp"
#include "wire/net/pause.hpp"

namespace roci::test {
namespace {

constexpr uint8_t kStorage = 3;  // the lossless priority
constexpr BitsPerSec kRate = 10_Gbps;
constexpr uint8_t tos(uint8_t priority) { return static_cast<uint8_t>(priority << 5); }

FlowControlConfig lossless() {
  FlowControlConfig config;
  config.priorities = 1U << kStorage;
  return config;
}

// Receive ring of a NIC: drops frames when it is full, whether or not the host polls.
class RingPort final : public Port, public Poller {
 public:
  RingPort(Port& port, size_t frames, bool tells) : port_(port), frames_(frames), tells_(tells) {}
  ~RingPort() override {
    for (rte_mbuf* frame : ring_) rte_pktmbuf_free(frame);
  }
  bool poll(Nanos now) override {
    bool worked = false;
    for (rte_mbuf* frame = nullptr; port_.rx_burst({&frame, 1}, now) == 1; worked = true) {
      if (ring_.size() < frames_) {
        ring_.push_back(frame);
      } else {
        rte_pktmbuf_free(frame);
        ++lost;
      }
    }
    return worked;
  }
  [[nodiscard]] Nanos next_deadline() const override { return port_.next_arrival(); }
  uint16_t rx_burst(std::span<rte_mbuf*> out, Nanos /*now*/) override {
    uint16_t count = 0;
    for (; count < out.size() && !ring_.empty(); ring_.pop_front()) out[count++] = ring_.front();
    return count;
  }
  uint16_t tx_burst(std::span<rte_mbuf*> frames, Nanos now) override { return port_.tx_burst(frames, now); }
  [[nodiscard]] Nanos next_arrival() const override { return ring_.empty() ? kNever : Nanos{0}; }
  [[nodiscard]] std::optional<uint32_t> waiting() const override {
    return tells_ ? std::optional(static_cast<uint32_t>(ring_.size())) : std::nullopt;
  }
  [[nodiscard]] const PortCapabilities& capabilities() const override { return port_.capabilities(); }
  [[nodiscard]] MacAddress mac() const override { return port_.mac(); }
  [[nodiscard]] std::string_view name() const override { return "ring"; }
  [[nodiscard]] PortStats stats() const override { return port_.stats(); }

  uint64_t lost = 0;

 private:
  Port& port_;
  size_t frames_;
  bool tells_;
  std::deque<rte_mbuf*> ring_;
};

// WRITEs of 64 KiB from one host to another, with a limited number outstanding.
class Stream {
 public:
  static constexpr size_t kMessage = 65536;

  Stream(Fabric& net, Side& from, Side& to, uint8_t priority, uint32_t at_a_time, uint8_t timeout = 12)
      : from_(from), to_(to) {
    net.connect(from, to, {.path_mtu = IBV_MTU_1024, .traffic_class = tos(priority), .timeout = timeout});
    qp_ = std::move(from.qp);
    peer_ = std::move(to.qp);
    cq_slots_ = at_a_time;
  }
  // Posts missing WRITEs. `number` identifies this stream's completions.
  void keep_going(uint64_t number) {
    for (; posted_ < limit && posted_ - done < cq_slots_; ++posted_) {
      ASSERT_EQ(send(from_, *qp_,
                     {.wr_id = number,
                      .opcode = IBV_WR_RDMA_WRITE,
                      .length = kMessage,
                      .remote = to_.address(0),
                      .rkey = to_.region->rkey()}),
                0);
    }
  }
  [[nodiscard]] uint64_t packets() const { return done * kMessage / 1024; }
  QueuePair& qp() { return *qp_; }

  uint64_t done = 0;
  uint64_t limit = UINT64_MAX;

 private:
  Side& from_;
  Side& to_;
  std::unique_ptr<QueuePair> qp_, peer_;
  uint64_t posted_ = 0;
  uint32_t cq_slots_;
};

struct StarOptions {
  size_t hosts = 3;
  FlowControlConfig flow = lossless();
  FlowControlConfig flow_of_last = lossless();
  size_t ring_of_last = 0;  // frames; 0: unlimited
  bool ring_tells = true;
  Nanos slow{0};  // interval of the last host's rounds
};

// Hosts at a switch whose class 3 is lossless.
class Star : public Fabric {
 public:
  explicit Star(const StarOptions& options = {}) {
    SwitchConfig config{.name = "s"};
    std::vector<Port*> ports;
    for (size_t i = 0; i < options.hosts; ++i) {
      SimLinkConfig link;
      // A pause cannot stop frames that the host has passed to its port: 16 KiB here.
      link.a_to_b = {.rate = kRate, .delay = 1us, .queue = 16_KiB};
      link.b_to_a = {.rate = kRate, .delay = 1us};
      SwitchPortConfig port{.name = "p" + std::to_string(i), .rate = kRate, .queue = 768_KiB};
      port.classes[kStorage].lossless = LosslessConfig{.xoff = 64_KiB, .xon = 32_KiB, .headroom = 160_KiB};
      config.ports.push_back(port);
      ports.push_back(&add_link(link).b());
    }
    add_switch(config, ports);
    for (size_t i = 0; i < options.hosts; ++i) {
      const bool last = i + 1 == options.hosts;
      DeviceConfig device;
      device.tx_buffers = 4096;
      device.window_bytes = 4 << 20;
      device.extensions.mode = ExtensionMode::kOff;
      device.congestion_control.profile = "none";
      device.flow_control = last ? options.flow_of_last : options.flow;
      Port* port = &link(i).a();
      if (last && options.ring_of_last > 0) {
        ring = std::make_unique<RingPort>(*port, options.ring_of_last, options.ring_tells);
        runner.add(*ring);
        port = ring.get();
      }
      sides.push_back(&add_host(*port, device));
      if (last && options.slow > Nanos{0}) {
        slow_ = std::make_unique<test::SlowPoller>(sides.back()->device->poller(), options.slow);
        runner.add(*slow_);
      } else {
        poll_host(*sides.back());
      }
    }
  }
  ~Star() { run(1ms); }

  // Runs all streams in short steps, so that none is without work, until `until` returns true.
  void drive(std::vector<Stream*> streams, const std::function<bool()>& until, Nanos most = 2s) {
    const Nanos end = runner.now() + most;
    while (!until() && runner.now() < end) {
      for (size_t i = 0; i < streams.size(); ++i) streams[i]->keep_going(i);
      run(20us);
      for (Side* side : sides) {
        for (const ibv_wc& wc : side->completions()) {
          ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
          ++streams[wc.wr_id]->done;
        }
      }
    }
  }
  [[nodiscard]] uint64_t total(const std::string& counter) const {
    uint64_t sum = 0;
    for (const Side* side : sides) sum += side->counter(counter);
    return sum;
  }
  // Sends a pause frame to a host as from the switch's port.
  void send_pause(size_t host, uint16_t quanta, uint8_t priority = kStorage) {
    PauseMessage message{.source = MacAddress::local(77), .classes = static_cast<uint8_t>(1U << priority)};
    message.quanta[priority] = quanta;
    std::vector<uint8_t> bytes(kPauseFrameBytes);
    build_pause(message, std::span<uint8_t, kPauseFrameBytes>(bytes.data(), kPauseFrameBytes));
    rte_mbuf* frame = to_mbuf(*pool(), bytes);
    ASSERT_EQ(link(host).b().tx_burst({&frame, 1}, runner.now()), 1);
  }

  std::vector<Side*> sides;
  std::unique_ptr<RingPort> ring;

 private:
  std::unique_ptr<test::SlowPoller> slow_;
};

constexpr uint64_t kPackets = test::kSanitized ? 30'000 : 200'000;

TEST(HostPfc, two_to_one_incast_loses_no_packet) {
  Star net;
  Stream one(net, *net.sides[0], *net.sides[2], kStorage, 60),
      two(net, *net.sides[1], *net.sides[2], kStorage, 60);
  const Nanos begin = net.runner.now();
  net.drive({&one, &two}, [&] { return one.packets() + two.packets() >= kPackets; });
  EXPECT_GE(one.packets() + two.packets(), kPackets);
  EXPECT_EQ(net.total("packets_retransmitted"), 0U);
  EXPECT_EQ(net.total("timeouts"), 0U);
  EXPECT_GT(net.sides[0]->counter("pauses_received"), 10U);
  EXPECT_EQ(net.total("pause_storms"), 0U);
  for (size_t port = 0; port < 3; ++port) {
    EXPECT_EQ(net.at(0).counters(port).dropped(DropReason::kHeadroomFull), 0U);
    EXPECT_EQ(net.at(0).counters(port).dropped(DropReason::kQueueFull), 0U);
  }
  // Both get the same share, and the line to the third host is rarely idle.
  EXPECT_NEAR(static_cast<double>(one.done) / static_cast<double>(two.done), 1, 0.1);
  const double seconds = static_cast<double>((net.runner.now() - begin).count()) / 1e9;
  const double goodput = static_cast<double>((one.done + two.done) * Stream::kMessage) * 8 / seconds;
  EXPECT_GT(goodput, 0.9 * static_cast<double>(kRate.value()) * 1024 / 1106);
}

TEST(HostPfc, hosts_that_ignore_pauses_retransmit_lost_packets) {
  Star net({.flow = {}});
  Stream one(net, *net.sides[0], *net.sides[2], kStorage, 60),
      two(net, *net.sides[1], *net.sides[2], kStorage, 60);
  net.drive({&one, &two}, [&] { return net.total("packets_retransmitted") > 0; });
  EXPECT_GT(net.total("packets_retransmitted"), 0U);
  EXPECT_GT(net.sides[0]->counter("pauses_ignored"), 0U);
  EXPECT_EQ(net.sides[0]->counter("pauses_received"), 0U);
}

TEST(HostPfc, other_priorities_do_not_wait_for_a_paused_one) {
  Star net({.hosts = 4});
  Stream one(net, *net.sides[0], *net.sides[3], kStorage, 60),
      two(net, *net.sides[1], *net.sides[3], kStorage, 60);
  Stream victim(net, *net.sides[0], *net.sides[2], 0, 8);
  const Nanos begin = net.runner.now();
  net.drive({&one, &two, &victim}, [&] { return one.packets() + two.packets() >= kPackets / 2; });
  const double seconds = static_cast<double>((net.runner.now() - begin).count()) / 1e9;
  EXPECT_GT(net.sides[0]->counter("pauses_received"), 10U);
  EXPECT_EQ(net.total("packets_retransmitted"), 0U);
  // The victim always gets half of its host's line.
  EXPECT_GT(static_cast<double>(victim.done * Stream::kMessage) * 8 / seconds, 4.4e9);
}

TEST(HostPfc, paused_queue_pair_uses_no_retries_and_resumes_after_the_pause) {
  Star net;
  Stream stream(net, *net.sides[0], *net.sides[2], kStorage, 1, 10);  // 4.2 ms
  Stream other(net, *net.sides[0], *net.sides[2], 0, 1);
  stream.limit = 1;
  other.limit = 1;
  // Its acknowledgments are lost, so its timer runs.
  SimFaults dead;
  dead.loss = 1;
  net.link(2).set_faults(SimLink::kAToB, dead);
  stream.keep_going(0);
  net.run(1ms);
  for (int i = 0; i < 50; ++i) {
    net.send_pause(0, 0xffff);
    net.run(1ms);
  }
  EXPECT_EQ(net.total("timeouts"), 0U);
  net.link(2).set_faults(SimLink::kAToB, {});
  // Another priority is not paused.
  net.drive(
      {&stream, &other}, [&] { return other.done == 1; }, 2ms);
  EXPECT_EQ(other.done, 1U);
  EXPECT_EQ(stream.done, 0U);
  net.send_pause(0, 0);
  const Nanos go = net.runner.now();
  net.drive(
      {&stream, &other}, [&] { return stream.done == 1; }, 100ms);
  EXPECT_EQ(stream.done, 1U);
  EXPECT_GE(net.runner.now() - go, Nanos{4ms}) << "a whole time-out from then on";
  EXPECT_EQ(net.total("timeouts"), 1U);
}

TEST(HostPfc, pause_ends_after_its_quanta) {
  Star net;
  Stream stream(net, *net.sides[0], *net.sides[2], kStorage, 1);
  stream.limit = 1;
  net.send_pause(0, 20'000);  // 1.024 ms
  net.run(10us);
  stream.keep_going(0);
  const uint64_t before = net.sides[0]->counter("tx_frames");
  net.run(1ms);
  EXPECT_EQ(net.sides[0]->counter("tx_frames"), before);
  net.run(100us);
  EXPECT_GT(net.sides[0]->counter("tx_frames"), before);
}

TEST(HostPfc, watchdog_ends_a_pause_storm) {
  FlowControlConfig watched = lossless();
  watched.watchdog_detect = 5ms;
  watched.watchdog_restore = 10ms;
  Star net({.flow = watched});
  Stream stream(net, *net.sides[0], *net.sides[2], kStorage, 1);
  stream.limit = 1;
  net.send_pause(0, 0xffff);
  net.run(10us);
  stream.keep_going(0);
  const Nanos begin = net.runner.now();
  for (int i = 0; i < 12; ++i) {
    net.send_pause(0, 0xffff);
    net.drive(
        {&stream}, [&] { return stream.done == 1; }, 1ms);
  }
  EXPECT_EQ(stream.done, 1U);
  EXPECT_GT(net.runner.now() - begin, Nanos{4900us});
  EXPECT_EQ(net.sides[0]->counter("pause_storms"), 1U);
  net.run(20ms);  // no pause frames for 20 ms: pauses are obeyed again
  net.send_pause(0, 20'000);
  net.run(10us);
  stream.limit = 2;
  net.drive(
      {&stream}, [&] { return stream.done == 2; }, 900us);
  EXPECT_EQ(stream.done, 1U);
  net.drive(
      {&stream}, [&] { return stream.done == 2; }, 1ms);
  EXPECT_EQ(stream.done, 2U);
}

// Each pause has expired at the next poll, but the next pause frame is processed before the queue pairs are served.
TEST(HostPfc, watchdog_ends_a_pause_storm_if_pauses_expire_between_polls) {
  constexpr Nanos kInterval = 500us;
  constexpr uint16_t kQuarterMillisecond = 4883;  // quanta at 10 Gb/s
  FlowControlConfig watched = lossless();
  watched.watchdog_detect = 5ms;
  watched.watchdog_restore = 10ms;
  Star net({.flow_of_last = watched, .slow = kInterval});
  Stream stream(net, *net.sides[2], *net.sides[0], kStorage, 1);
  stream.limit = 1;
  net.run(2ms);
  net.send_pause(2, kQuarterMillisecond);
  net.run(kInterval);
  const Nanos begin = net.runner.now();
  const auto one_interval = [&] {
    net.send_pause(2, kQuarterMillisecond);
    net.drive(
        {&stream}, [&] { return stream.done == 1; }, kInterval);
  };
  while (stream.done == 0 && net.runner.now() < begin + 8ms) one_interval();
  EXPECT_EQ(stream.done, 1U);
  EXPECT_GT(net.runner.now() - begin, Nanos{4ms});
  EXPECT_EQ(net.sides[2]->counter("pause_storms"), 1U);
}

// A frame that is sent between two pauses restarts the time of the watchdog.
TEST(HostPfc, watchdog_ignores_pauses_between_which_frames_are_sent) {
  FlowControlConfig watched = lossless();
  watched.watchdog_detect = 2ms;
  Star net({.flow = watched});
  Stream stream(net, *net.sides[0], *net.sides[2], kStorage, 1);
  for (int i = 0; i < 20; ++i) {
    net.send_pause(0, 5000);  // 256 us
    net.drive(
        {&stream}, [] { return false; }, 400us);
  }
  EXPECT_GT(stream.done, 2U);
  EXPECT_EQ(net.sides[0]->counter("pauses_received"), 20U);
  EXPECT_EQ(net.sides[0]->counter("pause_storms"), 0U);
}

// No frame waits: each pause is one of its own, also if the host is not polled between them.
TEST(HostPfc, watchdog_ignores_pauses_of_an_idle_priority) {
  constexpr Nanos kInterval = 500us;
  constexpr uint16_t kQuarterMillisecond = 4883;  // quanta at 10 Gb/s
  FlowControlConfig watched = lossless();
  watched.watchdog_detect = 5ms;
  Star net({.flow_of_last = watched, .slow = kInterval});
  for (int i = 0; i < 30; ++i) {
    net.send_pause(2, kQuarterMillisecond);
    net.run(kInterval);
  }
  EXPECT_EQ(net.sides[2]->counter("pauses_received"), 30U);
  EXPECT_EQ(net.sides[2]->counter("pause_storms"), 0U);
}

TEST(HostPfc, queue_pair_in_error_is_flushed_while_its_priority_is_paused) {
  Star net;
  Stream stream(net, *net.sides[0], *net.sides[2], kStorage, 4);
  stream.limit = 4;
  net.send_pause(0, 0xffff);
  net.run(10us);
  stream.keep_going(0);
  net.run(10us);
  move_to(stream.qp(), IBV_QPS_ERR);
  net.run(10us);
  EXPECT_EQ(net.sides[0]->completions().size(), 4U);
}

TEST(HostPfc, datagrams_wait_for_the_priority_of_their_address_handle) {
  Star net;
  const auto from = make_service(*net.sides[0], IBV_QPT_UD), to = make_service(*net.sides[2], IBV_QPT_UD);
  open_datagrams(*from);
  open_datagrams(*to);
  const ibv_gid gid = must(net.sides[2]->device->query_gid(1));
  const auto free = must(net.sides[0]->pd->create_address_handle(address_of(gid, tos(0))));
  const auto held = must(net.sides[0]->pd->create_address_handle(address_of(gid, tos(kStorage))));
  for (uint64_t i = 0; i < 4; ++i) ASSERT_EQ(receive(*net.sides[2], *to, i, 0, 1100), 0);
  const auto say = [&](const AddressHandle& where) {
    ASSERT_EQ(send(*net.sides[0], *from, {.length = 100, .to = &where, .remote_qp = to->qp_num()}), 0);
    net.run(100us);
  };
  say(*free);
  EXPECT_EQ(successes(*net.sides[2]), 1U);
  net.send_pause(0, 0xffff);
  net.run(10us);
  say(*free);
  EXPECT_EQ(successes(*net.sides[2]), 1U);
  say(*held);
  say(*free);
  EXPECT_EQ(successes(*net.sides[2]), 0U) << "in the order of its queue pair";
  net.send_pause(0, 0);
  net.run(100us);
  EXPECT_EQ(successes(*net.sides[2]), 2U);
}

TEST(HostPfc, slow_host_pauses_its_switch_and_loses_no_frame) {
  for (const bool tells : {true, false}) {
    FlowControlConfig slow = lossless();
    slow.xoff = 256;
    slow.xon = 64;
    Star net({.flow_of_last = slow, .ring_of_last = 1024, .ring_tells = tells, .slow = 100us});
    Stream one(net, *net.sides[0], *net.sides[2], kStorage, 30, 16),
        two(net, *net.sides[1], *net.sides[2], kStorage, 30, 16);
    net.drive({&one, &two}, [&] { return one.packets() + two.packets() >= 20'000; });
    EXPECT_GE(one.packets() + two.packets(), 20'000U);
    EXPECT_EQ(net.ring->lost, 0U) << "a port that " << (tells ? "can" : "cannot") << " tell";
    EXPECT_EQ(net.total("packets_retransmitted"), 0U);
    EXPECT_GT(net.sides[2]->counter("pauses_sent"), 2U);
    EXPECT_GT(net.at(0).counters(2).classes[kStorage].pauses_received, 0U);
  }
  Star silent({.ring_of_last = 1024, .slow = 100us});
  Stream one(silent, *silent.sides[0], *silent.sides[2], kStorage, 30, 16),
      two(silent, *silent.sides[1], *silent.sides[2], kStorage, 30, 16);
  silent.drive(
      {&one, &two}, [] { return false; }, 20ms);
  EXPECT_GT(silent.ring->lost, 0U) << "without a word from it";
}

}  // namespace
}  // namespace roci::test

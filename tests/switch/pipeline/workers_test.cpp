// A switch with several workers: each is polled separately in virtual time, or runs in a thread.
#include <atomic>
#include <thread>

#include "base/containers/spsc_ring.hpp"
#include "support/ports/line_rate_source.hpp"
#include "switch/qcn/cnm_bench.hpp"
#include "switch/switch_bench.hpp"
#include "wire/net/arp.hpp"
#include "wire/roce/packet.hpp"

namespace roci {
namespace {

using test::ip;
using test::net;

class WorkersTest : public SwitchTest {
 protected:
  // Ports 0 and 1 belong to worker 0, the others to worker 1.
  static SwitchConfig shared_out(size_t count) {
    SwitchConfig config = ports(count);
    for (size_t i = 2; i < count; ++i) config.ports[i].worker = 1;
    return config;
  }
  void make_apart(const SwitchConfig& config) {
    std::vector<Port*> ends;
    for (size_t i = 0; i < config.ports.size(); ++i) {
      links_.push_back(
          std::make_unique<SimLink>(SimLinkConfig{.name = "link" + std::to_string(i), .seed = i + 1}, pool_));
      ends.push_back(&links_.back()->b());
      runner_.add(*links_.back());
    }
    auto made = Switch::create(config, ends, pool_);
    ASSERT_TRUE(made) << made.error().message;
    switch_ = std::move(*made);
    for (size_t i = 0; i < switch_->worker_count(); ++i) runner_.add(switch_->worker(i));
  }
};

TEST_F(WorkersTest, forwards_frames_to_ports_of_another_worker) {
  make_apart(shared_out(4));
  ASSERT_EQ(switch_->worker_count(), 2U);
  introduce({0, 1, 2, 3});
  say(0, 3);
  EXPECT_EQ(counts(), (Counts{0, 0, 0, 1}));
  say(3, 1);
  EXPECT_EQ(counts(), (Counts{0, 1, 0, 0}));
  say(0, 1);
  EXPECT_EQ(counts(), (Counts{0, 1, 0, 0}));
}

TEST_F(WorkersTest, learned_addresses_are_shared_between_workers) {
  make_apart(shared_out(4));
  say(2, 9);  // unknown destination
  EXPECT_EQ(counts(), (Counts{1, 1, 0, 1}));
  EXPECT_EQ(switch_->mac_table_size(0), 1U);
  EXPECT_EQ(switch_->mac_table_size(1), 1U);
  say(0, 2);
  EXPECT_EQ(counts(), (Counts{0, 0, 1, 0}));
  // An address moves to a port of another worker.
  say(1, host_mac(9), {});
  counts();
  test::FrameSpec moved{.destination = host_mac(9), .source = host_mac(2)};
  send(1, test::roce_bytes(moved));
  settle();
  counts();
  say(3, 2);
  EXPECT_EQ(counts(), (Counts{0, 1, 0, 0}));
}

// An active address is refreshed at the other worker often enough not to age out, but not with every frame.
TEST_F(WorkersTest, active_addresses_are_refreshed_at_the_other_worker) {
  SwitchConfig config = shared_out(3);
  config.mac_ageing = 100ms;
  make_apart(config);
  introduce({0, 2});
  for (int i = 0; i < 1000; ++i) {
    say(2, 9);
    wait(1ms);
  }
  counts();
  say(0, 2);
  EXPECT_EQ(counts(), (Counts{0, 0, 1})) << "not flooded";
  wait(100ms);
  say(0, 2);
  EXPECT_EQ(counts(), (Counts{0, 1, 1})) << "forgotten by both";
}

TEST_F(WorkersTest, frames_of_a_flow_stay_in_order) {
  make_apart(shared_out(4));
  introduce({0, 1, 2, 3});
  for (uint32_t i = 0; i < 200; ++i) {
    send(0, test::roce_bytes({.destination = host_mac(3), .source = host_mac(0), .number = i}));
    if (i % 7 == 0) settle();
  }
  settle();
  const auto got = heard(3);
  ASSERT_EQ(got.size(), 200U);
  for (uint32_t i = 0; i < 200; ++i)
    EXPECT_EQ(got[i], test::roce_bytes({.destination = host_mac(3), .source = host_mac(0), .number = i}))
        << i;
}

// Worker 1 is not polled.
TEST_F(WorkersTest, full_hand_over_ring_drops_are_counted_at_the_ingress_port) {
  const SwitchConfig config = shared_out(3);
  std::vector<Port*> ends;
  for (size_t i = 0; i < 3; ++i) {
    links_.push_back(std::make_unique<SimLink>(SimLinkConfig{.name = "link" + std::to_string(i)}, pool_));
    ends.push_back(&links_.back()->b());
  }
  switch_ = std::move(*Switch::create(config, ends, pool_));
  const auto poll = [&](size_t worker) {
    for (auto& link : links_) link->poll(1us);
    while (switch_->worker(worker).poll(1us)) {
    }
  };
  const auto put = [&](size_t from, size_t to) {
    rte_mbuf* frame =
        test::to_mbuf(*pool_, test::roce_bytes({.destination = host_mac(to), .source = host_mac(from)}));
    ASSERT_EQ(links_[from]->a().tx_burst({&frame, 1}, 1us), 1);
  };
  put(2, 0);
  poll(1);
  poll(0);  // learns host 2
  constexpr uint32_t kFrames = SwitchRings::kRing + 100;
  for (uint32_t i = 0; i < kFrames; ++i) {
    put(0, 2);
    poll(0);
  }
  // The first frame also sends a message with host 0's address through the ring.
  EXPECT_EQ(dropped(0, DropReason::kHandOverFull), 101U);
  poll(1);
  ASSERT_TRUE(runner_.run_until(1us));
  EXPECT_EQ(heard(2).size(), size_t{SwitchRings::kRing} - 1);
  EXPECT_GE(heard(0).size(), 1U);
  heard(1);
}

TEST_F(WorkersTest, next_hop_at_another_workers_port_is_resolved) {
  SwitchConfig config = shared_out(4);
  config.ports[0].vlan = 10;
  config.ports[2].vlan = 20;
  config.interfaces = {{.name = "left", .vlan = 10, .addresses = {net("10.0.1.1/24")}},
                       {.name = "right", .vlan = 20, .addresses = {net("10.0.2.1/24")}}};
  make_apart(config);
  say(0, switch_->mac(), {.from = ip("10.0.1.2"), .to = ip("10.0.2.2")});
  const auto asked = heard(2);
  ASSERT_EQ(asked.size(), 1U) << "worker 0 asks by worker 1's port";
  std::vector<uint8_t> reply(60);
  reply.resize(build_arp({.destination = switch_->mac(), .source = host_mac(2)},
                         {.operation = ArpOperation::kReply,
                          .sender_mac = host_mac(2),
                          .sender_ip = ip("10.0.2.2"),
                          .target_mac = switch_->mac(),
                          .target_ip = ip("10.0.2.1")},
                         reply));
  send(2, reply);
  settle();
  EXPECT_EQ(heard(2).size(), 1U) << "and hears the answer that comes to worker 1";
}

// 2:1 congestion in one lossless class. The queue belongs to worker 1, the paused ports to worker 0.
TEST_F(WorkersTest, lossless_class_loses_no_frame_across_workers) {
  SwitchConfig config = shared_out(3);
  for (SwitchPortConfig& port : config.ports) {
    port.rate = 10_Gbps;
    port.queue = 1_MiB;
    port.classes[3].lossless = LosslessConfig{.xoff = 64_KiB, .xon = 32_KiB, .headroom = 64_KiB};
  }
  std::vector<Port*> ends;
  for (size_t i = 0; i < 3; ++i) {
    SimLinkConfig link{.name = "link" + std::to_string(i)};
    link.a_to_b = link.b_to_a = {.rate = 10_Gbps, .delay = 1us};
    links_.push_back(std::make_unique<SimLink>(link, pool_));
    ends.push_back(&links_.back()->b());
    runner_.add(*links_.back());
  }
  switch_ = std::move(*Switch::create(config, ends, pool_));
  for (size_t i = 0; i < 2; ++i) runner_.add(switch_->worker(i));
  constexpr uint64_t kEach = 20'000;
  std::vector<std::unique_ptr<test::LineRateSource>> hosts;
  for (size_t i = 0; i < 3; ++i) {
    hosts.push_back(std::make_unique<test::LineRateSource>(
        links_[i]->a(), pool_,
        test::LineRateSource::Config{.rate = 10_Gbps,
                                     .frame = {.destination = host_mac(2),
                                               .source = host_mac(i),
                                               .traffic_class = 3 << 5,
                                               .payload = 1024},
                                     .traffic_class = 3,
                                     .count = i == 2 ? 1 : kEach,
                                     .begin = i == 2 ? 0ns : 10us}));
    runner_.add(*hosts.back());
  }
  ASSERT_TRUE(runner_.run_until(100ms));
  EXPECT_EQ(hosts[2]->received(), 2 * kEach);
  EXPECT_GT(hosts[0]->pauses(), 10U);
  EXPECT_GT(hosts[1]->pauses(), 10U);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(switch_->counters(i).dropped(DropReason::kHeadroomFull), 0U);
}

// The queue belongs to worker 1. Data arrives at worker 0, and the acknowledgments that identify the sender at worker
// 1.
TEST_F(WorkersTest, congested_queue_identifies_senders_at_another_worker) {
  SwitchConfig config = shared_out(3);
  config.ports[2].rate = 1_Mbps;
  config.ports[2].classes[7].notify = ClassConfig::Notify::kCnp;
  config.ports[2].classes[7].cnp = {.threshold = Bytes{2000}, .sample = Bytes{1000}};
  make_apart(config);
  introduce({0, 2});
  size_t told = 0;
  for (uint32_t psn = 0; psn < 40; ++psn) {
    Packet data = make_packet(Opcode::kRcWriteMiddle).to(Qpn{0x200}, Psn{psn});
    data.between(host_mac(0), ip("10.0.0.1"), host_mac(2), ip("10.0.0.3")).with_traffic_class(7 << 5 | 2);
    send(0, encode_packet(data.with_payload(ByteVector(1024)).finish()));
    wait(1us);
    Packet ack = make_packet(Opcode::kRcAcknowledge).to(Qpn{0x100}, Psn{psn});
    ack.between(host_mac(2), ip("10.0.0.3"), host_mac(0), ip("10.0.0.1"));
    send(2, encode_packet(ack.finish()));
    settle();
    for (const auto& bytes : heard(0)) {
      const auto packet = decode_packet(bytes);
      told += packet && packet->bth.opcode == Opcode::kCnp && packet->bth.destination_qp == Qpn{0x100};
    }
  }
  EXPECT_EQ(told, 1U);
}

TEST_F(WorkersTest, each_worker_must_have_a_port) {
  SwitchConfig config = ports(2);
  config.ports[1].worker = 2;
  EXPECT_NE(
      check(config).error().message.find("worker 2 has a port, and a worker with a lower number has none"),
      std::string::npos);
  config.ports[1].worker = kMaxSwitchWorkers;
  EXPECT_NE(check(config).error().message.find("allowed are workers 0 to 15"), std::string::npos);
}

// A port between two threads.
class ThreadPort final : public Port {
 public:
  uint16_t rx_burst(std::span<rte_mbuf*> out, Nanos /*now*/) override {
    return static_cast<uint16_t>(to_switch.pop(out));
  }
  uint16_t tx_burst(std::span<rte_mbuf*> frames, Nanos /*now*/) override {
    return static_cast<uint16_t>(from_switch.push(frames));
  }
  [[nodiscard]] Nanos next_arrival() const override { return Nanos{0}; }
  [[nodiscard]] const PortCapabilities& capabilities() const override { return capabilities_; }
  [[nodiscard]] MacAddress mac() const override { return MacAddress::local(1); }
  [[nodiscard]] std::string_view name() const override { return "thread"; }
  [[nodiscard]] PortStats stats() const override { return {}; }

  SpscRing<rte_mbuf*> to_switch{256}, from_switch{256};

 private:
  PortCapabilities capabilities_;
};

// Four ports, two workers with one thread each. Each host sends to all others.
TEST_F(WorkersTest, threads_lose_and_reorder_no_frame) {
  constexpr size_t kPorts = 4;
  constexpr uint32_t kEach = 3000;  // frames per pair of hosts
  SwitchConfig config = shared_out(kPorts);
  config.buffer = {.size = 64_MiB, .alpha = 8};
  config.telemetry.enabled = true;
  config.telemetry.udp_port = 5201;
  for (SwitchPortConfig& port : config.ports) {
    port.queue = 8_MiB;
    port.classes[0].notify = ClassConfig::Notify::kCnp;
    port.classes[0].cnp = {.threshold = Bytes{100}, .sample = Bytes{1000}};
    port.telemetry = TelemetryRole::kSource;
  }
  std::vector<ThreadPort> ends(kPorts);
  std::vector<Port*> as_ports;
  for (ThreadPort& end : ends) as_ports.push_back(&end);
  switch_ = std::move(*Switch::create(config, as_ports, pool_));
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < switch_->worker_count(); ++i) {
    threads.emplace_back([&, i] {
      for (Nanos now{1}; !stop.load(std::memory_order_relaxed); now += 100ns) {
        if (!switch_->worker(i).poll(now)) std::this_thread::yield();
      }
    });
  }
  std::array<std::array<uint32_t, kPorts>, kPorts> sent{}, received{};
  const auto take = [&] {
    for (size_t to = 0; to < kPorts; ++to) {
      std::array<rte_mbuf*, 32> frames;
      const uint32_t count = ends[to].from_switch.pop(frames);
      for (uint32_t i = 0; i < count; ++i) {
        const auto* bytes = rte_pktmbuf_mtod(frames[i], const uint8_t*);
        const size_t from = bytes[11];
        if (bytes[5] == to && from < kPorts && from != to) {  // not a flooded frame
          uint32_t number = 0;
          std::memcpy(&number, bytes + frames[i]->pkt_len - 8, sizeof number);
          EXPECT_EQ(number, received[from][to]++) << from << " to " << to;
        }
        rte_pktmbuf_free(frames[i]);
      }
    }
  };
  const auto put = [&](size_t from, size_t to, uint32_t number) {
    auto bytes = test::roce_bytes({.destination = host_mac(to), .source = host_mac(from), .number = 0});
    std::memcpy(&bytes[bytes.size() - 8], &number, sizeof number);
    rte_mbuf* frame = test::to_mbuf(*pool_, bytes);
    if (frame == nullptr) return false;
    if (ends[from].to_switch.push({&frame, 1}) == 1) return true;
    rte_pktmbuf_free(frame);
    return false;
  };
  // Both workers learn all hosts before the test checks the order.
  for (size_t i = 0; i < kPorts; ++i) {
    while (!put(i, 9, 0)) take();
  }
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  const auto known = [&] {
    uint64_t in = 0;
    for (size_t i = 0; i < kPorts; ++i) in += switch_->counters(i).tx_packets;
    return in >= kPorts * (kPorts - 1);
  };
  while (!known() && std::chrono::steady_clock::now() < deadline) take();
  uint64_t left = kPorts * (kPorts - 1) * kEach;
  uint64_t under_way = 0;
  while (left + under_way > 0 && std::chrono::steady_clock::now() < deadline) {
    for (size_t from = 0; from < kPorts; ++from) {
      for (size_t to = 0; to < kPorts; ++to) {
        if (from == to || sent[from][to] == kEach || under_way > 500) continue;
        if (put(from, to, sent[from][to])) ++sent[from][to], --left;
      }
    }
    take();
    uint64_t out = 0, in = 0;
    for (size_t a = 0; a < kPorts; ++a) {
      for (size_t b = 0; b < kPorts; ++b) in += sent[a][b], out += received[a][b];
    }
    under_way = in - out;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  for (size_t from = 0; from < kPorts; ++from) {
    for (size_t to = 0; to < kPorts; ++to) EXPECT_EQ(received[from][to], from == to ? 0U : kEach);
  }
  take();
  rte_mbuf* frame = nullptr;
  for (ThreadPort& end : ends) {
    while (end.to_switch.pop({&frame, 1}) == 1) rte_pktmbuf_free(frame);
    while (end.from_switch.pop({&frame, 1}) == 1) rte_pktmbuf_free(frame);
  }
}

}  // namespace
}  // namespace roci

// Experiment setup: many senders and one receiver at a switch, in virtual time, by default with 100 Gb/s links of 1
// us. Every flow always has work. Measured are acknowledged bytes, and the queue to the receiver once per
// microsecond.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

#include "engine/congestion/congestion_control.hpp"
#include "support/ports/frames.hpp"
#include "through_switch/fabric.hpp"
#include "wire/roce/packet.hpp"

namespace roci::test {

inline constexpr uint16_t kTelemetryPort = 5201;
inline constexpr uint8_t kLossless = 3;  // the priority with PFC

class FanIn;

struct FanInOptions {
  size_t senders = 16;
  size_t flows = 16;  // distributed over the senders
  BitsPerSec rate{100'000'000'000};
  Nanos delay = 1us;
  ibv_mtu mtu = IBV_MTU_1024;
  size_t message = 1 << 20;
  size_t at_a_time = 2;  // outstanding messages per flow
  CongestionControlConfig control{};
  ExtensionConfig extensions{};
  HostTelemetryConfig telemetry{};
  AqmConfig aqm{};
  Bytes buffer = 64_MiB;  // of the port to the receiver
  uint8_t traffic_class = 0;
  bool reads = false;    // the data are transferred by READ responses
  bool connects = true;  // at construction
  // Called with both queue pairs before they are connected.
  std::function<void(FanIn&, Side& from, const QueuePair& qp, const QueuePair& peer)> introduce = nullptr;
  std::optional<LosslessConfig> lossless{};  // PFC for all data, which then have priority 3
  bool attacker = false;                     // adds a port for the test itself: inject()
  bool qcn = false;                          // the switch sends CNMs with Qeq `qeq`, and hosts process them
  Bytes qeq{260'000};
  uint64_t seed = 1;  // of marks, QPNs, jitter of flows
};

class FanIn : public Fabric {
 public:
  explicit FanIn(const FanInOptions& of, const std::function<void(SwitchConfig&)>& change = nullptr)
      : options(of) {
    SwitchConfig config{.name = "s"};
    config.seed = of.seed;
    std::vector<Port*> ports;
    for (size_t i = 0; i <= of.senders + (of.attacker ? 1 : 0); ++i) {
      SimLinkConfig link;
      link.mtu = 4400;  // space for telemetry in addition to the largest path MTU
      link.a_to_b = {.rate = of.rate, .delay = of.delay, .queue = 32_KiB};
      link.b_to_a = {.rate = of.rate, .delay = of.delay};
      SwitchPortConfig port{.name = "p" + std::to_string(i), .rate = of.rate, .queue = of.buffer};
      port.queue_frames = 1U << 16;
      for (ClassConfig& one : port.classes) {
        one.aqm = of.aqm;
        if (of.lossless && &one == &port.classes[kLossless]) one.lossless = of.lossless;
        if (!of.qcn) continue;
        one.notify = ClassConfig::Notify::kQcn;
        one.qcn.qeq = of.qeq;
      }
      config.ports.push_back(port);
      ports.push_back(&add_link(link).b());
    }
    if (of.telemetry.enabled()) {
      config.telemetry.enabled = true;
      config.telemetry.udp_port = of.telemetry.udp_port;
      config.telemetry.domain = of.telemetry.domain;
      config.telemetry.switch_id = 1;
    }
    if (change) change(config);
    add_switch(config, ports);
    for (size_t i = 0; i <= of.senders; ++i) {
      DeviceConfig device;
      device.window_bytes = 64 << 20;
      device.extensions = of.extensions;
      device.telemetry = of.telemetry;
      device.congestion_control = of.control;
      device.congestion.tag = of.qcn;
      if (of.lossless) device.flow_control.priorities = 1U << kLossless;
      device.seed = 1000 * (of.seed - 1) + i + 1;
      // Limited by the memory of the test for all hosts together.
      device.tx_buffers = static_cast<uint32_t>(std::min<size_t>(4096, 65536 / (of.senders + 1)));
      hosts.push_back(&add_host(link(i).a(), device, of.message));
      poll_host(*hosts.back());
      for (const auto& core : hosts.back()->device->host().control_cores()) runner.add(*core);
    }
    runner.add(sampler_);
    if (of.connects) connect_flows(of.flows);
  }
  ~FanIn() {
    for (size_t i = 0; i < links(); ++i) {  // objects that the scripts use may have been destroyed
      link(i).set_script(SimLink::kAToB, nullptr);
      link(i).set_script(SimLink::kBToA, nullptr);
    }
    for (Flow& flow : flows_) {
      move_to(*flow.qp, IBV_QPS_ERR);
      move_to(*flow.peer, IBV_QPS_ERR);
    }
    run(1ms);
    if (options.attacker) {  // frames that were flooded to this port
      for (rte_mbuf* m = nullptr; link(options.senders + 1).a().rx_burst({&m, 1}, runner.now()) == 1;)
        rte_pktmbuf_free(m);
    }
    for (int i = 0; i < 100 && port_counters().queue_bytes > 0; ++i) run(1ms);
  }

  // Creates connected queue pairs without work; start() starts all of them.
  void connect_flows(size_t count, const std::string& control = "") {
    for (size_t i = 0; i < count; ++i) {
      Side& sender = *hosts[flows_.size() % options.senders];
      Flow flow;
      const ibv_qp_cap cap{
          .max_send_wr = 64, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
      flow.from = &sender;
      flow.qp = make_service(sender, IBV_QPT_RC, nullptr, false, cap);
      flow.peer = make_service(receiver(), IBV_QPT_RC, nullptr, false, cap);
      if (!control.empty()) must(flow.qp->set_congestion_control(control));
      if (!control.empty()) must(flow.peer->set_congestion_control(control));
      ConnectOptions connect{
          .path_mtu = options.mtu,
          .access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
          .traffic_class = options.lossless ? uint8_t{kLossless << 5} : options.traffic_class,
          .timeout = 14};
      if (options.introduce) options.introduce(*this, sender, *flow.qp, *flow.peer);
      connect_to(*flow.qp, IBV_QPT_RC, must(receiver().device->query_gid(1)), flow.peer->qp_num(), connect);
      std::swap(connect.rq_psn, connect.sq_psn);
      connect.sq_psn = 100, connect.rq_psn = 5000;
      connect_to(*flow.peer, IBV_QPT_RC, must(sender.device->query_gid(1)), flow.qp->qp_num(), connect);
      flows_.push_back(std::move(flow));
    }
    run(20ms);  // address resolution and capability exchange
  }

  [[nodiscard]] Side& receiver() { return *hosts.back(); }
  [[nodiscard]] size_t flow_count() const { return flows_.size(); }
  // QueuePairCore of a queue pair, also of one that a test has created. core() is that of the data's sender,
  // peer_core() that of its receiver, which is the requester of READs.
  static QueuePairCore* find(const Side& side, const QueuePair& qp) {
    Host& host = side.device->host();
    return &host.worker_of(Qpn{qp.qp_num()}).find(Qpn{qp.qp_num()})->core;
  }
  [[nodiscard]] QueuePair& queue_pair(size_t flow) { return *flows_[flow].qp; }
  [[nodiscard]] QueuePair& peer(size_t flow) { return *flows_[flow].peer; }
  [[nodiscard]] QueuePairCore& core(size_t flow) { return *find(*flows_[flow].from, *flows_[flow].qp); }
  [[nodiscard]] QueuePairCore& peer_core(size_t flow) { return *find(receiver(), *flows_[flow].peer); }

  void post(size_t flow, size_t length, unsigned flags = 0) {
    Flow& of = flows_[flow];
    Side &requester = options.reads ? receiver() : *of.from, &other = options.reads ? *of.from : receiver();
    ASSERT_EQ(send(requester, options.reads ? *of.peer : *of.qp,
                   {.wr_id = flow,
                    .opcode = options.reads ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
                    .length = length,
                    .flags = flags,
                    .remote = other.address(0),
                    .rkey = other.region->rkey()}),
              0);
    of.posted += length;
  }
  // Runs for `span`. Flows with less than the configured number of outstanding messages get more.
  void drive(Nanos span) {
    const Nanos end = runner.now() + span;
    const Nanos step = 20us;
    while (runner.now() < end) {
      for (size_t i = 0; i < flows_.size(); ++i) {
        Flow& flow = flows_[i];
        if (flow.stopped) continue;
        while (flow.posted < acknowledged(i) + options.at_a_time * options.message) post(i, options.message);
      }
      run(std::min(step, end - runner.now()));
    }
  }
  // Runs until the condition holds and returns the duration. Fails the test after `limit`.
  Nanos until(const std::function<bool()>& so, Nanos limit = 100ms) {
    const Nanos begin = runner.now();
    EXPECT_TRUE(must(runner.run_while([&] { return !so(); }, begin + limit))) << "not within the limit";
    return runner.now() - begin;
  }
  // Duration from the post to the acknowledgment of the last byte, without other requests.
  Nanos time_of(size_t flow, size_t length) {
    const uint64_t end = acknowledged(flow) + length;
    post(flow, length);
    return until([&] { return acknowledged(flow) >= end; });
  }
  // Like drive(), until the condition holds.
  void drive_until(const std::function<bool()>& so, Nanos limit = 5ms) {
    const Nanos end = runner.now() + limit;
    while (!so() && runner.now() < end) drive(100ns);
    EXPECT_TRUE(so()) << "not within the limit";
  }
  void stop(size_t flow) { flows_[flow].stopped = true; }
  void go_on(size_t flow) { flows_[flow].stopped = false; }

  // Payload bytes that the sender knows to have arrived; for READs, that the reader has received.
  [[nodiscard]] uint64_t acknowledged(size_t flow) {
    const auto of = [](QueuePairCore & end) -> auto& {
      return static_cast<ReliableQueuePair&>(end).requester;
    };
    return options.reads ? of(peer_core(flow)).response_flow().received.value()
                         : of(core(flow)).flow().acknowledged.value();
  }
  [[nodiscard]] std::vector<uint64_t> all_acknowledged() {
    std::vector<uint64_t> all;
    for (size_t i = 0; i < flows_.size(); ++i) all.push_back(acknowledged(i));
    return all;
  }
  // Acknowledged bytes since `before`, in bit/s over all flows, and Jain's fairness index.
  struct Rates {
    double sum = 0;
    double jain = 0;
    double least = 0;
    double most = 0;
    std::vector<double> each;
  };
  Rates rates_since(const std::vector<uint64_t>& before, Nanos span) {
    Rates rates;
    double squares = 0;
    for (size_t i = 0; i < before.size(); ++i) {
      const double rate =
          static_cast<double>(acknowledged(i) - before[i]) * 8e9 / static_cast<double>(span.count());
      rates.each.push_back(rate);
      rates.sum += rate;
      squares += rate * rate;
    }
    const auto [least, most] = std::minmax_element(rates.each.begin(), rates.each.end());
    rates.least = *least;
    rates.most = *most;
    rates.jain = squares == 0 ? 0 : rates.sum * rates.sum / (static_cast<double>(before.size()) * squares);
    return rates;
  }
  Rates measure(Nanos span) {
    const auto before = all_acknowledged();
    drive(span);
    return rates_since(before, span);
  }

  // Sends a frame from the attacker's port.
  void inject(const ByteVector& frame) {
    rte_mbuf* m = to_mbuf(*pool(), frame);
    if (link(options.senders + 1).a().tx_burst({&m, 1}, runner.now()) == 0) rte_pktmbuf_free(m);
  }
  // Changes packets to a flow's sender and counts the changes. The length must stay the same.
  struct Changed {
    uint64_t count = 0;
  };
  void change_feedback(size_t sender, Changed& changed, const std::function<bool(Packet&)>& change) {
    link(sender).set_script(SimLink::kBToA, [&changed, change](const rte_mbuf& frame, uint64_t) {
      auto packet = decode_packet(bytes_of(&frame));
      if (!packet || !change(*packet)) return SimVerdict{};
      const ByteVector bytes = encode_packet(packet->finish());
      if (bytes.size() != frame.pkt_len || frame.nb_segs != 1) return SimVerdict{};
      std::memcpy(rte_pktmbuf_mtod(&frame, uint8_t*), bytes.data(), bytes.size());
      ++changed.count;
      return SimVerdict{};
    });
  }

  // Counters of the port to the receiver.
  [[nodiscard]] const SwitchPortCounters& port_counters() { return at(0).counters(options.senders); }
  // Number of PFC pauses sent to senders, including refreshes.
  [[nodiscard]] uint64_t pauses() {
    uint64_t sum = 0;
    for (size_t i = 0; i < options.senders; ++i) sum += at(0).counters(i).classes[kLossless].pauses_sent;
    return sum;
  }
  // Queue samples in bytes since the last call, in the order of time.
  std::vector<uint64_t> take_queue() { return std::exchange(sampler_.samples, {}); }
  static uint64_t percentile(std::vector<uint64_t> samples, double part) {
    if (samples.empty()) return 0;
    std::ranges::sort(samples);
    return samples[static_cast<size_t>(part * static_cast<double>(samples.size() - 1))];
  }
  [[nodiscard]] uint64_t total(const std::string& counter) const {
    uint64_t sum = 0;
    for (const Side* side : hosts) sum += side->counter(counter);
    return sum;
  }
  // Congestion control state of a direction of the sending queue pair.
  [[nodiscard]] ControlFlow* control(size_t flow, uint32_t direction = ROCI_CC_REQUESTS) {
    ControlledQueuePair* controlled = CongestionControl::of(core(flow));
    return controlled == nullptr ? nullptr : controlled->directions[direction].flow;
  }
  // Maximum payload rate of the line, in bit/s.
  [[nodiscard]] double most_goodput(uint32_t beside = 0) const {
    const double payload = 128U << options.mtu;
    return static_cast<double>(options.rate.value()) * payload / (payload + 58 + 24 + beside);
  }

  const FanInOptions options;
  std::vector<Side*> hosts;  // the last is the receiver

 private:
  struct Flow {
    Side* from = nullptr;
    std::unique_ptr<QueuePair> qp, peer;
    uint64_t posted = 0;
    bool stopped = false;
  };
  class Sampler final : public Poller {
   public:
    explicit Sampler(FanIn& of) : of_(of) {}
    bool poll(Nanos now) override {
      if (now < next_) return false;
      next_ = now + 1us;
      samples.push_back(of_.port_counters().queue_bytes.load());
      return true;
    }
    [[nodiscard]] Nanos next_deadline() const override { return next_; }
    [[nodiscard]] std::string_view name() const override { return "sampler"; }
    std::vector<uint64_t> samples;

   private:
    FanIn& of_;
    Nanos next_{0};
  };

  std::vector<Flow> flows_;
  Sampler sampler_{*this};
};

// A device-wide profile of one algorithm.
inline CongestionControlConfig with_profile(const std::string& algorithm,
                                            const std::map<std::string, double>& values = {},
                                            Nanos base_rtt = 4500ns) {
  CongestionControlConfig config;
  config.profiles["it"] = {algorithm, values, base_rtt, ""};
  config.profile = "it";
  return config;
}

}  // namespace roci::test

// The experiments of the DCQCN publication on the effects of PFC alone ("unfairness" and "victim flow"), in virtual
// time with senders at line rate. Prints the rate of each flow over time as a table for bench/pictures.py.
//
//   unfairness                                victim
//     h1 ----------------\                      h1 --\             /-- 1 Gb/s -- h3
//     h2 --\              switch -- h4                 access -- switch
//     h3 -- access ------/                      h2 --/             \------------ h4
//
// Usage: roci-pfc-over-time unfairness|victim pfc|none
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "base/time/virtual_runner.hpp"
#include "port/dpdk/eal.hpp"
#include "port/sim/sim_link.hpp"
#include "support/must.hpp"
#include "support/ports/line_rate_source.hpp"
#include "switch/switch.hpp"

namespace roci {
namespace {

using test::LineRateSource;
using test::must;

constexpr BitsPerSec kRate = 10_Gbps;
constexpr uint8_t kStorage = 3;  // traffic class of all flows
constexpr uint32_t kPayload = 1024;
constexpr uint64_t kOnLine = kPayload + 58 + 24;  // bytes per frame
constexpr Nanos kStep = 100us, kEnd = 10ms;

MacAddress mac_of(size_t host) { return {{2, 0, 0, 0, 1, static_cast<uint8_t>(host)}}; }

class Network {
 public:
  explicit Network(bool pfc) : pfc_(pfc), pool_(must(MbufPool::create("pictures", 16383, 2048))) {}
  ~Network() {
    hosts_.clear();
    switches_.clear();
    links_.clear();
  }
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // Adds a cable with a delay of 1 us.
  SimLink& cable() {
    SimLinkConfig config{.name = "l" + std::to_string(links_.size()), .seed = links_.size() + 1};
    config.a_to_b = config.b_to_a = {.rate = kRate, .delay = 1us};
    runner_.add(*links_.emplace_back(std::make_unique<SimLink>(config, pool_)));
    return *links_.back();
  }
  // `rates`: of the ports' queues.
  void add_switch(const std::string& name, const std::vector<Port*>& ends,
                  const std::vector<BitsPerSec>& rates) {
    SwitchConfig config{.name = name};
    for (size_t i = 0; i < ends.size(); ++i) {
      SwitchPortConfig port{.name = "p" + std::to_string(i)};
      port.rate = rates[i];
      if (pfc_) port.classes[kStorage].lossless = LosslessConfig{64_KiB, 48_KiB, 64_KiB};
      config.ports.push_back(port);
    }
    runner_.add(*switches_.emplace_back(must(Switch::create(config, ends, pool_))));
  }
  // Adds a host that sends `count` frames to `to` from time `begin`, or a host that only receives.
  void add_sender(size_t host, Port& port, size_t to, Nanos begin, uint64_t count = UINT64_MAX) {
    test::FrameSpec frame{.destination = mac_of(to),
                          .source = mac_of(host),
                          .traffic_class = kStorage << 5,
                          .payload = kPayload};
    add_host(host, port,
             {.rate = kRate, .frame = frame, .traffic_class = kStorage, .count = count, .begin = begin});
  }
  void add_receiver(size_t host, Port& port) {
    add_host(host, port, {.rate = kRate, .frame = {}, .traffic_class = kStorage, .count = 0});
  }
  // Announces the address of every host to the switches before the measurement.
  void introduce() {
    for (auto& [host, port] : ports_) {
      rte_mbuf* frame =
          test::to_mbuf(*pool_, test::roce_bytes({.destination = mac_of(99), .source = mac_of(host)}));
      if (port->tx_burst({&frame, 1}, runner_.now()) == 0) rte_pktmbuf_free(frame);
    }
  }
  void run_to(Nanos until) { must(runner_.run_until(until)); }
  [[nodiscard]] uint64_t received(size_t at, size_t from) { return hosts_.at(at)->received_of(mac_of(from)); }
  [[nodiscard]] uint64_t dropped() const {
    uint64_t sum = 0;
    for (const auto& sw : switches_) {
      for (size_t i = 0; i < sw->port_count(); ++i) sum += sw->counters(i).dropped();
    }
    return sum;
  }

 private:
  void add_host(size_t host, Port& port, const LineRateSource::Config& config) {
    ports_[host] = &port;
    runner_.add(*hosts_.emplace(host, std::make_unique<LineRateSource>(port, pool_, config)).first->second);
  }

  bool pfc_;
  std::shared_ptr<MbufPool> pool_;
  VirtualRunner runner_;
  std::vector<std::unique_ptr<SimLink>> links_;
  std::vector<std::unique_ptr<Switch>> switches_;
  std::map<size_t, Port*> ports_;
  std::map<size_t, std::unique_ptr<LineRateSource>> hosts_;
};

struct Flow {
  size_t from, to;
};

constexpr Nanos kIntroduced = 100us;

// Prints a line per step: time in ms, and the rate in Gb/s at which each flow arrived in this step.
void measure(Network& network, const std::vector<Flow>& flows) {
  std::vector<uint64_t> before;
  network.introduce();
  network.run_to(kIntroduced);
  const uint64_t dropped = network.dropped();
  for (const Flow& flow : flows) before.push_back(network.received(flow.to, flow.from));
  for (Nanos at = kStep; at <= kEnd; at += kStep) {
    network.run_to(kIntroduced + at);
    std::printf("%.1f", static_cast<double>(at.count()) * 1e-6);
    for (size_t i = 0; i < flows.size(); ++i) {
      const uint64_t now = network.received(flows[i].to, flows[i].from);
      const auto bits = static_cast<double>((now - std::exchange(before[i], now)) * kOnLine * 8);
      std::printf("\t%.3f", bits / static_cast<double>(kStep.count()));
    }
    std::printf("\n");
  }
  std::printf("# dropped %llu\n", static_cast<unsigned long long>(network.dropped() - dropped));
}

// One flow has its own ingress port, two share another. The result is each flow's share of the egress port.
void unfairness(bool pfc) {
  Network network(pfc);
  SimLink &h1 = network.cable(), &h2 = network.cable(), &h3 = network.cable(), &h4 = network.cable(),
          &up = network.cable();
  network.add_switch("access", {&h2.b(), &h3.b(), &up.a()}, {kRate, kRate, kRate});
  network.add_switch("switch", {&h1.b(), &up.b(), &h4.b()}, {kRate, kRate, kRate});
  network.add_receiver(4, h4.a());
  network.add_sender(1, h1.a(), 4, kIntroduced);
  network.add_sender(2, h2.a(), 4, kIntroduced + 2ms);
  network.add_sender(3, h3.a(), 4, kIntroduced + 4ms);
  measure(network, {{1, 4}, {2, 4}, {3, 4}});
}

// Two flows share a link. From 2 ms, the other flow sends to a slow port.
void victim(bool pfc) {
  Network network(pfc);
  SimLink &h1 = network.cable(), &h2 = network.cable(), &h3 = network.cable(), &h4 = network.cable(),
          &up = network.cable();
  network.add_switch("access", {&h1.b(), &h2.b(), &up.a()}, {kRate, kRate, kRate});
  network.add_switch("switch", {&up.b(), &h3.b(), &h4.b()}, {kRate, 1_Gbps, kRate});
  network.add_receiver(3, h3.a());
  network.add_receiver(4, h4.a());
  // With PFC: the amount that the slow port transmits in 5 ms. Without: the amount that the sender transmits in 5 ms.
  const uint64_t count = (pfc ? 1'000'000'000 : 10'000'000'000) / 200 / 8 / kOnLine;
  network.add_sender(1, h1.a(), 3, kIntroduced + 2ms, count);
  network.add_sender(2, h2.a(), 4, kIntroduced);
  measure(network, {{1, 3}, {2, 4}});
}

int main_(int argc, char** argv) {
  const std::string what = argc == 3 ? argv[1] : "", how = argc == 3 ? argv[2] : "";
  if ((what != "unfairness" && what != "victim") || (how != "pfc" && how != "none")) {
    std::fprintf(stderr, "usage: roci-pfc-over-time unfairness|victim pfc|none\n");
    return 2;
  }
  must(start_eal());
  (what == "victim" ? victim : unfairness)(how == "pfc");
  return 0;
}

}  // namespace
}  // namespace roci

int main(int argc, char** argv) { return roci::main_(argc, argv); }

// Base class for tests of congestion notification through routers: host A - ToR A - spine - ToR B - host B. The
// spine's port to ToR B is congested.
#pragma once

#include <functional>

#include "switch/qcn/cnm_bench.hpp"
#include "switch/switch_bench.hpp"

namespace roci::test {

struct Network {
  const char* name;
  uint8_t mac;
  // Per port: VLAN, address of the switch, next hop, and the next hop's MAC.
  std::array<uint16_t, 2> vlan;
  std::array<const char*, 2> address;
  std::array<const char*, 2> neighbor;
  std::array<uint8_t, 2> neighbor_mac;
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
      config.neighbors.push_back({ip(n.neighbor[i]), mac_of(n.neighbor_mac[i])});
    }
    return config;
  }
  static SwitchConfig tor_a() {
    SwitchConfig config = config_of({.name = "tor_a",
                                     .mac = kTorA,
                                     .vlan = {10, 100},
                                     .address = {"10.0.1.1/24", "10.100.1.1/24"},
                                     .neighbor = {"10.0.1.2", "10.100.1.2"},
                                     .neighbor_mac = {kHostA, kSpine}});
    config.routes = {{net("10.0.2.0/24"), {ip("10.100.1.2")}}};
    config.notify.tor_size = 4;
    return config;
  }
  static SwitchConfig spine() {
    SwitchConfig config = config_of({.name = "spine",
                                     .mac = kSpine,
                                     .vlan = {100, 200},
                                     .address = {"10.100.1.2/24", "10.100.2.2/24"},
                                     .neighbor = {"10.100.1.1", "10.100.2.1"},
                                     .neighbor_mac = {kTorA, kTorB}});
    config.routes = {{net("10.0.1.0/24"), {ip("10.100.1.1")}}, {net("10.0.2.0/24"), {ip("10.100.2.1")}}};
    config.ports[1].rate = 1_Gbps;
    config.ports[1].classes[kClass] = qcn_class(true);
    return config;
  }
  static SwitchConfig tor_b() {
    SwitchConfig config = config_of({.name = "tor_b",
                                     .mac = kTorB,
                                     .vlan = {20, 200},
                                     .address = {"10.0.2.1/24", "10.100.2.1/24"},
                                     .neighbor = {"10.0.2.2", "10.100.2.2"},
                                     .neighbor_mac = {kHostB, kSpine}});
    config.routes = {{net("10.0.1.0/24"), {ip("10.100.2.2")}}};
    config.notify.tor_size = 4;
    return config;
  }

  // Links: 0 host A - ToR A, 1 ToR A - spine, 2 spine - ToR B, 3 ToR B - host B. The first end is the a side of the
  // link.
  void build(const SwitchConfig& a, const SwitchConfig& s, const SwitchConfig& b) {
    for (size_t i = 0; i < 4; ++i) {
      links_.push_back(std::make_unique<SimLink>(SimLinkConfig{.name = "link" + std::to_string(i)}, pool_));
      runner_.add(*links_.back());
      const auto record = [this, i](bool right) {
        return [this, i, right](const rte_mbuf& frame, uint64_t) {
          (right ? right_ : left_)[i].push_back(test::bytes_of(&frame));
          if (tap_) tap_(i, right, frame);
          return SimVerdict{};
        };
      };
      links_.back()->set_script(SimLink::Direction::kAToB, record(true));
      links_.back()->set_script(SimLink::Direction::kBToA, record(false));
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
  // Removes the complete network, so that the test can build another one.
  void start_over() {
    TearDown();
    for (auto& seen : right_) seen.clear();
    for (auto& seen : left_) seen.clear();
    runner_ = VirtualRunner{};
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

  // A frame from host A to host B after `hops` routers. The priority of its tag is 5.
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
    spec.vlan = 0xa000;  // a priority tag; untagged VLANs keep it
    const auto bytes = test::roce_bytes(spec);
    return hops == 0 ? with_cn_tag(bytes, cn_flow) : bytes;
  }
  // The frame of a host without QCN.
  static std::vector<uint8_t> without_cn_tag(std::vector<uint8_t> bytes) {
    bytes.erase(bytes.begin() + 16, bytes.begin() + 20);
    return bytes;
  }
  // The frame of host A with ECT(0).
  static std::vector<uint8_t> ecn_capable(std::vector<uint8_t> bytes) {
    constexpr size_t kIp = 14 + 4 + 4;
    bytes[kIp + 1] |= 2;
    // Adjusts the IP checksum, which is larger than 2.
    bytes[kIp + 11] = static_cast<uint8_t>(bytes[kIp + 11] - 2);
    return bytes;
  }
  // Expected CNM of the congestion point for the n-th queued frame (from 0).
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
  // Expected self-defined CNM after `hops` routers from the spine, with independently computed checksums.
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
  // Reads a field of a received frame.
  static uint16_t be16_at(const std::vector<uint8_t>& bytes, size_t at) {
    return static_cast<uint16_t>(bytes[at] << 8 | bytes[at + 1]);
  }
  static uint64_t events(const std::unique_ptr<Switch>& of, CnmEvent event) {
    return of->cnm_counts().of(event);
  }
  // Sends a self-defined CNM to ToR A as from the spine, which is not part of this network.
  void send_to_tor_a(const std::vector<uint8_t>& bytes) {
    rte_mbuf* m = test::to_mbuf(*pool_, bytes);
    ASSERT_EQ(links_[1]->b().tx_burst({&m, 1}, runner_.now()), 1);
    settle();
  }
  // Frees the frames that ToR A has sent to the missing spine, and returns their number.
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

  // The frames of each link, and a function that is called for each: link, whether to the right, frame.
  std::array<std::vector<std::vector<uint8_t>>, 4> right_, left_;
  std::function<void(size_t, bool, const rte_mbuf&)> tap_;
  std::unique_ptr<Switch> tor_a_, spine_, tor_b_;
};

}  // namespace roci::test

#include "switch/addresses.hpp"
#include "switch/switch_bench.hpp"
#include "wire/net/arp.hpp"
#include "wire/net/icmp.hpp"
#include "wire/net/nd.hpp"

namespace roci {
namespace {

using test::FrameSpec;
using test::ip;
using test::net;

// Port 0 is in VLAN 10 with 10.0.1.0/24 and fd01::/64, port 1 in VLAN 20 with 10.0.2.0/24 and fd02::/64. The
// addresses of host i end in 2.
class RouterTest : public SwitchTest {
 protected:
  static SwitchConfig two_networks() {
    SwitchConfig config = ports(2);
    config.ports[0].vlan = 10;
    config.ports[1].vlan = 20;
    config.ports[0].all_tagged = config.ports[1].all_tagged = false;
    config.interfaces = {{.name = "left", .vlan = 10, .addresses = {net("10.0.1.1/24"), net("fd01::1/64")}},
                         {.name = "right", .vlan = 20, .addresses = {net("10.0.2.1/24"), net("fd02::1/64")}}};
    return config;
  }
  // Host 0 sends through the switch to address `to`.
  void send_to(const IpAddress& to, FrameSpec spec = {}) {
    spec.to = to;
    spec.from = to.is_v4() ? ip("10.0.1.2") : ip("fd01::2");
    say(0, switch_->mac(), spec);
  }
  void answer_arp(size_t host, const IpAddress& own, const IpAddress& asker) {
    std::vector<uint8_t> bytes(kMaxArpFrame);
    bytes.resize(build_arp({.destination = switch_->mac(), .source = host_mac(host)},
                           {.operation = ArpOperation::kReply,
                            .sender_mac = host_mac(host),
                            .sender_ip = own,
                            .target_mac = switch_->mac(),
                            .target_ip = asker},
                           bytes));
    send(host, bytes);
    settle();
  }
  static std::optional<ArpMessage> arp_in(const std::vector<uint8_t>& bytes) {
    const FrameView v = view(bytes);
    if (v.kind != FrameKind::kArp) return std::nullopt;
    return parse_arp(std::span{bytes}.subspan(v.l3_offset));
  }
};

TEST_F(RouterTest, packet_waits_for_arp_and_leaves_with_new_macs_and_lower_ttl) {
  make(two_networks());
  const FrameSpec spec{.traffic_class = 0x6a, .ttl = 17, .payload = 512, .number = 7};
  send_to(ip("10.0.2.2"), spec);
  auto asked = heard(1);
  ASSERT_EQ(asked.size(), 1U);
  const auto arp = arp_in(asked[0]);
  ASSERT_TRUE(arp);
  EXPECT_EQ(arp->operation, ArpOperation::kRequest);
  EXPECT_EQ(arp->target_ip, ip("10.0.2.2"));
  EXPECT_EQ(arp->sender_ip, ip("10.0.2.1"));
  EXPECT_EQ(arp->sender_mac, switch_->mac());

  answer_arp(1, ip("10.0.2.2"), ip("10.0.2.1"));
  const auto got = heard(1);
  ASSERT_EQ(got.size(), 1U);
  FrameSpec expected = spec;
  expected.source = switch_->mac();
  expected.destination = host_mac(1);
  expected.from = ip("10.0.1.2");
  expected.to = ip("10.0.2.2");
  expected.ttl = 16;
  EXPECT_EQ(got[0], test::roce_bytes(expected)) << "checksum and ICRC included";
  EXPECT_EQ(switch_->counters(0).routed, 1U);

  send_to(ip("10.0.2.2"), spec);  // the address is resolved now
  EXPECT_EQ(heard(1).size(), 1U);
}

TEST_F(RouterTest, routes_ipv6_packets) {
  SwitchConfig config = two_networks();
  config.neighbors = {{ip("fd02::2"), host_mac(1)}};
  make(config);
  introduce({1});
  send_to(ip("fd02::2"), {.traffic_class = 1, .ttl = 2});
  const auto got = heard(1);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0], test::roce_bytes({.destination = host_mac(1),
                                      .source = switch_->mac(),
                                      .from = ip("fd01::2"),
                                      .to = ip("fd02::2"),
                                      .traffic_class = 1,
                                      .ttl = 1}));
}

TEST_F(RouterTest, tag_is_rewritten_to_the_egress_vlan_even_on_the_same_port) {
  SwitchConfig config = two_networks();
  for (SwitchPortConfig& port : config.ports) port = {.name = port.name};
  config.neighbors = {{ip("10.0.2.2"), host_mac(0)}};
  make(config);
  introduce({0}, 20);
  send_to(ip("10.0.2.2"), {.vlan = 0x6000 | 10});
  const auto got = heard(0);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(view(got[0]).vlan().tci.get(), 0x6000 | 20);
  EXPECT_TRUE(icrc_is_right(got[0]));
  EXPECT_EQ(view(got[0]).ipv4().ttl, 63);
}

TEST_F(RouterTest, packet_with_ttl_0_or_1_is_dropped) {
  SwitchConfig config = two_networks();
  config.neighbors = {{ip("10.0.2.2"), host_mac(1)}, {ip("fd02::2"), host_mac(1)}};
  make(config);
  for (const uint8_t ttl : {uint8_t{0}, uint8_t{1}}) {
    send_to(ip("10.0.2.2"), {.ttl = ttl});
    send_to(ip("fd02::2"), {.ttl = ttl});
  }
  EXPECT_EQ(counts(), (Counts{0, 0}));
  EXPECT_EQ(dropped(0, DropReason::kTtlExpired), 4U);
  send_to(ip("10.0.2.2"), {.ttl = 2});
  EXPECT_EQ(counts(), (Counts{0, 1}));
}

TEST_F(RouterTest, longest_prefix_match_selects_the_route) {
  SwitchConfig config = two_networks();
  config.routes = {{net("0.0.0.0/0"), {ip("10.0.2.9")}},
                   {net("10.9.0.0/16"), {ip("10.0.2.3")}},
                   {net("10.9.1.0/24"), {ip("10.0.2.4")}},
                   {net("fd09::/16"), {ip("fd02::5")}}};
  const auto hop = [](uint8_t n) { return MacAddress{{2, 0, 0, 0, 9, n}}; };
  config.neighbors = {
      {ip("10.0.2.9"), hop(9)}, {ip("10.0.2.3"), hop(3)}, {ip("10.0.2.4"), hop(4)}, {ip("fd02::5"), hop(5)}};
  make(config);
  const std::pair<const char*, uint8_t> rows[] = {
      {"10.9.1.77", 4}, {"10.9.2.77", 3}, {"192.0.2.1", 9}, {"fd09::1", 5}};
  for (const auto& [to, n] : rows) {
    send_to(ip(to));
    const auto got = heard(1);
    ASSERT_EQ(got.size(), 1U) << to;
    EXPECT_EQ(view(got[0]).ethernet().destination, hop(n)) << to;
  }
  send_to(ip("fe09::1"));
  send_to(ip("fd10::1"));
  EXPECT_EQ(dropped(0, DropReason::kNoRoute), 2U);
}

TEST_F(RouterTest, drops_multicast_broadcast_and_packets_without_a_route) {
  make(two_networks());
  for (const char* to :
       {"10.0.3.2", "224.0.0.5", "255.255.255.255", "10.0.2.255", "fd03::1", "ff02::5", "fe80::1"}) {
    send_to(ip(to));
  }
  EXPECT_EQ(counts(), (Counts{0, 0}));
  EXPECT_EQ(dropped(0, DropReason::kNoRoute), 7U);
}

// RFC 1812 4.2.2.11, 5.3.5.1, 5.3.7; RFC 3927 2.7; RFC 4291 2.5.2, 2.5.3, 2.5.6, 2.7.
TEST_F(RouterTest, packets_with_addresses_that_are_not_forwarded_are_dropped) {
  SwitchConfig config = two_networks();
  config.routes = {{net("0.0.0.0/0"), {ip("10.0.2.2")}}, {net("::/0"), {ip("fd02::2")}}};
  config.neighbors = {{ip("10.0.2.2"), host_mac(1)}, {ip("fd02::2"), host_mac(1)}};
  make(config);
  introduce({1});
  const auto reach = [this](const IpAddress& from, const IpAddress& to) {
    say(0, switch_->mac(), {.from = from, .to = to});
    return heard(1).size();
  };
  const IpAddress v4 = ip("10.0.1.2"), v6 = ip("fd01::2");
  EXPECT_EQ(reach(v4, ip("10.9.9.9")), 1U);
  EXPECT_EQ(reach(v6, ip("fd09::9")), 1U);
  for (const char* source :
       {"127.0.0.1", "0.0.0.0", "0.1.2.3", "224.0.0.1", "255.255.255.255", "169.254.0.1"})
    EXPECT_EQ(reach(ip(source), ip("10.9.9.9")), 0U) << source;
  for (const char* source : {"::", "::1", "fe80::1", "ff02::1"})
    EXPECT_EQ(reach(ip(source), ip("fd09::9")), 0U) << source;
  EXPECT_EQ(reach(v4, ip("127.0.0.1")), 0U);
  EXPECT_EQ(reach(v4, ip("0.0.0.0")), 0U);
  EXPECT_EQ(reach(v4, ip("255.255.255.255")), 0U);
  EXPECT_EQ(reach(v4, ip("169.254.255.1")), 0U);
  EXPECT_EQ(reach(v4, ip("169.253.255.1")), 1U);
  EXPECT_EQ(reach(v6, ip("::1")), 0U);
  EXPECT_EQ(reach(v6, ip("::")), 0U);
  EXPECT_EQ(dropped(0, DropReason::kNoRoute), 16U);
}

TEST_F(RouterTest, packet_with_a_damaged_ip_header_is_dropped) {
  make(two_networks());
  FrameSpec spec{
      .destination = switch_->mac(), .source = host_mac(0), .from = ip("10.0.1.2"), .to = ip("10.0.2.2")};
  auto checksum = test::roce_bytes(spec);
  checksum[14 + 10] ^= 1;
  auto longer = test::roce_bytes(spec);
  longer.resize(longer.size() - 20);
  auto version = test::roce_bytes(spec);
  version[14] = 0x65;
  for (const auto& bytes : {checksum, longer, version}) send(0, bytes);
  settle();
  EXPECT_EQ(dropped(0, DropReason::kBadIp), 3U);
  EXPECT_EQ(counts(), (Counts{0, 0}));
}

TEST_F(RouterTest, packets_for_an_unresolvable_neighbor_are_dropped) {
  make(two_networks());
  for (int i = 0; i < 5; ++i) send_to(ip("10.0.2.2"));
  wait(10s);
  EXPECT_EQ(dropped(0, DropReason::kNeighborUnresolved), 5U);
  const auto asked = heard(1);
  EXPECT_EQ(asked.size(), 7U) << "solicitations";
  EXPECT_EQ(pool_->in_use(), 0U);
}

TEST_F(RouterTest, number_of_waiting_packets_is_limited) {
  make(two_networks());
  for (size_t i = 0; i < Router::kMaxWaitingOfPort + 10; ++i) send_to(ip("10.0.2.2"));
  EXPECT_EQ(dropped(0, DropReason::kNeighborUnresolved), 10U);
  heard(1);
  answer_arp(1, ip("10.0.2.2"), ip("10.0.2.1"));
  EXPECT_EQ(heard(1).size(), Router::kMaxWaitingOfPort);
}

// Host 0 sends a flood to addresses of no host. Expects that packets of host 1 still wait for their next hop, and that
// the switch resolves it.
TEST_F(RouterTest, flood_to_unused_addresses_does_not_stop_the_resolution_of_other_ports) {
  make(two_networks());
  const auto flood = [&](uint32_t count) {
    for (uint32_t i = 0; i < count; ++i)
      send(0, test::roce_bytes({.destination = switch_->mac(),
                                .source = host_mac(0),
                                .from = ip("10.0.1.2"),
                                .to = IpAddress::from_v4(0x0a000200 + 3 + i % 250)}));
    settle();
  };
  for (int i = 0; i < 30; ++i) {  // 3 s
    flood(500);
    wait(100ms);
    heard(0);
  }
  flood(500);
  EXPECT_LE(heard(1).size(), 3 * 64U * 7) << "solicitations";
  say(1, switch_->mac(), {.from = ip("10.0.2.2"), .to = ip("10.0.1.9")});
  EXPECT_EQ(dropped(1, DropReason::kNeighborUnresolved), 0U);
  const auto asked = heard(0);
  ASSERT_EQ(asked.size(), 1U);
  const auto arp = arp_in(asked[0]);
  ASSERT_TRUE(arp);
  EXPECT_EQ(arp->target_ip, ip("10.0.1.9"));
  answer_arp(0, ip("10.0.1.9"), ip("10.0.1.1"));
  EXPECT_EQ(heard(0).size(), 1U);
}

TEST_F(RouterTest, waiting_packets_are_freed_with_the_switch) {
  make(two_networks());
  for (int i = 0; i < 5; ++i) send_to(ip("10.0.2.2"));
}  // TearDown() checks that the pool has no frames in use

TEST_F(RouterTest, shared_frame_is_copied_before_its_header_is_modified) {
  SwitchConfig config = two_networks();
  config.neighbors = {{ip("10.0.2.2"), host_mac(1)}};
  make(config);
  // A simulated link would copy the frame. This port passes the shared mbuf to the switch.
  class Sharing final : public Port {
   public:
    uint16_t rx_burst(std::span<rte_mbuf*> out, Nanos) override {
      if (frame == nullptr) return 0;
      out[0] = std::exchange(frame, nullptr);
      return 1;
    }
    uint16_t tx_burst(std::span<rte_mbuf*> frames, Nanos) override {
      for (rte_mbuf* m : frames) rte_pktmbuf_free(m);
      sent += frames.size();
      return static_cast<uint16_t>(frames.size());
    }
    [[nodiscard]] Nanos next_arrival() const override { return kNever; }
    [[nodiscard]] const PortCapabilities& capabilities() const override { return capabilities_; }
    [[nodiscard]] MacAddress mac() const override { return {}; }
    [[nodiscard]] std::string_view name() const override { return "sharing"; }
    [[nodiscard]] PortStats stats() const override { return stats_; }
    rte_mbuf* frame = nullptr;
    size_t sent = 0;
    PortCapabilities capabilities_;
    PortStats stats_;
  } in, out;
  auto made = Switch::create(config, {&in, &out}, pool_);
  ASSERT_TRUE(made);
  const auto original = test::roce_bytes(
      {.destination = (*made)->mac(), .source = host_mac(0), .from = ip("10.0.1.2"), .to = ip("10.0.2.2")});
  rte_mbuf* kept = test::to_mbuf(*pool_, original);
  rte_mbuf_refcnt_update(kept, 1);
  in.frame = kept;
  EXPECT_TRUE((*made)->poll(0ns));
  EXPECT_EQ(out.sent, 1U);
  EXPECT_EQ(test::bytes_of(kept), original);
  EXPECT_EQ(rte_mbuf_refcnt_read(kept), 1);
  rte_pktmbuf_free(kept);
}

TEST_F(RouterTest, replies_to_arp_for_the_interface_address_only) {
  make(two_networks());
  for (const char* target : {"10.0.1.1", "10.0.2.1", "10.0.1.77"}) {
    std::vector<uint8_t> bytes(kMaxArpFrame);
    bytes.resize(build_arp({.destination = MacAddress::broadcast(), .source = host_mac(0)},
                           {.operation = ArpOperation::kRequest,
                            .sender_mac = host_mac(0),
                            .sender_ip = ip("10.0.1.2"),
                            .target_mac = {},
                            .target_ip = ip(target)},
                           bytes));
    send(0, bytes);
  }
  settle();
  const auto got = heard(0);
  ASSERT_EQ(got.size(), 1U);
  const auto reply = arp_in(got[0]);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->operation, ArpOperation::kReply);
  EXPECT_EQ(reply->sender_ip, ip("10.0.1.1"));
  EXPECT_EQ(reply->sender_mac, switch_->mac());
  EXPECT_EQ(heard(1).size(), 0U);
}

TEST_F(RouterTest, replies_to_neighbor_solicitations_and_sends_them) {
  make(two_networks());
  const auto send_nd = [this](size_t host, const MacAddress& to, const NeighborMessage& message) {
    std::vector<uint8_t> bytes(128);
    bytes.resize(build_nd({.destination = to, .source = host_mac(host)}, message, bytes));
    send(host, bytes);
    settle();
  };
  const auto nd_in = [](const std::vector<uint8_t>& bytes) {
    const FrameView v = view(bytes);
    return v.kind == FrameKind::kIpv6
               ? parse_nd(v, std::span{bytes}.subspan(v.l3_offset + sizeof(Ipv6Header)))
               : std::nullopt;
  };
  const IpAddress group = ip("fd01::1").solicited_node();
  send_nd(
      0, multicast_mac(group),
      {.source = ip("fd01::2"), .destination = group, .target = ip("fd01::1"), .link_layer = host_mac(0)});
  auto got = heard(0);
  ASSERT_EQ(got.size(), 1U);
  const auto advertisement = nd_in(got[0]);
  ASSERT_TRUE(advertisement);
  EXPECT_TRUE(advertisement->advertisement);
  EXPECT_EQ(advertisement->target, ip("fd01::1"));
  EXPECT_EQ(advertisement->link_layer, switch_->mac());

  send_to(ip("fd02::2"));
  got = heard(1);
  ASSERT_EQ(got.size(), 1U);
  const auto solicitation = nd_in(got[0]);
  ASSERT_TRUE(solicitation);
  EXPECT_EQ(solicitation->target, ip("fd02::2"));
  send_nd(1, switch_->mac(),
          {.advertisement = true,
           .source = ip("fd02::2"),
           .destination = solicitation->source,
           .target = ip("fd02::2"),
           .link_layer = host_mac(1),
           .solicited = true,
           .override_cache = true});
  got = heard(1);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_TRUE(icrc_is_right(got[0]));
  EXPECT_EQ(view(got[0]).ethernet().destination, host_mac(1));
}

TEST_F(RouterTest, replies_to_ping_at_its_own_addresses) {
  make(two_networks());
  introduce({0});
  const std::pair<const char*, const char*> rows[] = {
      {"10.0.1.2", "10.0.1.1"}, {"10.0.1.2", "10.0.2.1"}, {"fd01::2", "fd01::1"}};
  for (const auto& [from, to] : rows) {
    answer_arp(0, ip("10.0.1.2"), ip("10.0.1.1"));
    const std::vector<uint8_t> body{0x12, 0x34, 0, 1, 'h', 'i'};
    std::vector<uint8_t> bytes(256);
    bytes.resize(build_echo({.destination = switch_->mac(), .source = host_mac(0)},
                            {.source = ip(from), .destination = ip(to), .body = body}, bytes));
    send(0, bytes);
    settle();
    const auto got = heard(0);
    ASSERT_EQ(got.size(), 1U) << to;
    const FrameView v = view(got[0]);
    const size_t header = v.ipv6 ? sizeof(Ipv6Header) : sizeof(Ipv4Header);
    const auto echo = parse_echo(v, std::span{got[0]}.subspan(v.l3_offset + header));
    ASSERT_TRUE(echo) << to;
    EXPECT_TRUE(echo->reply);
    EXPECT_EQ(echo->source, ip(to));
    EXPECT_TRUE(std::equal(body.begin(), body.end(), echo->body.begin(), echo->body.end()));
  }
}

TEST_F(RouterTest, arp_nd_and_echo_of_the_switch_are_classified) {
  SwitchConfig config = two_networks();
  config.classifier.untagged = 6;
  config.classifier.by_dscp[0] = 5;
  make(config);
  answer_arp(0, ip("10.0.1.2"), ip("10.0.1.1"));
  const auto sent = [this](size_t port, size_t traffic_class) {
    return switch_->counters(port).classes[traffic_class].tx_packets.load();
  };
  send_to(ip("10.0.2.2"));  // the switch sends an ARP request
  EXPECT_EQ(sent(1, 6), 1U);
  send_to(ip("fd02::2"));  // and a neighbor solicitation
  EXPECT_EQ(sent(1, 5), 1U);
  std::vector<uint8_t> bytes(256);
  const std::vector<uint8_t> body{0x12, 0x34, 0, 1};
  bytes.resize(build_echo({.destination = switch_->mac(), .source = host_mac(0)},
                          {.source = ip("10.0.1.2"), .destination = ip("10.0.1.1"), .body = body}, bytes));
  send(0, bytes);
  settle();
  EXPECT_EQ(sent(0, 5), 1U);
  EXPECT_EQ(sent(0, 0) + sent(1, 0), 0U);
  EXPECT_EQ(counts(), (Counts{1, 2}));
}

// Frames with an S-TAG or a second tag belong to a VLAN that the switch does not know.
TEST_F(RouterTest, ignores_arp_nd_and_ping_in_frames_with_further_tags) {
  make(two_networks());
  const std::vector<uint8_t> second_tag{0x81, 0, 0, 10, 0x81, 0, 0, 0}, s_tag{0x88, 0xa8, 0, 10};
  const auto build = [](const MacAddress& to, bool echo) {
    const LinkHeader link{.destination = to, .source = host_mac(0)};
    std::vector<uint8_t> bytes(256);
    if (echo) {
      const std::vector<uint8_t> body{0x12, 0x34, 0, 1};
      bytes.resize(
          build_echo(link, {.source = ip("10.0.1.2"), .destination = ip("10.0.1.1"), .body = body}, bytes));
    } else if (to == multicast_mac(ip("fd01::1").solicited_node())) {
      bytes.resize(build_nd(link,
                            {.source = ip("fd01::2"),
                             .destination = ip("fd01::1").solicited_node(),
                             .target = ip("fd01::1"),
                             .link_layer = host_mac(0)},
                            bytes));
    } else {
      bytes.resize(build_arp(link,
                             {.operation = ArpOperation::kRequest,
                              .sender_mac = host_mac(0),
                              .sender_ip = ip("10.0.1.2"),
                              .target_mac = {},
                              .target_ip = ip("10.0.1.1")},
                             bytes));
    }
    return bytes;
  };
  for (const auto& tags : {second_tag, s_tag}) {
    for (const MacAddress& to :
         {MacAddress::broadcast(), multicast_mac(ip("fd01::1").solicited_node()), switch_->mac()}) {
      auto bytes = build(to, false);
      bytes.insert(bytes.begin() + 12, tags.begin(), tags.end());
      send(0, bytes);
    }
    auto bytes = build(switch_->mac(), true);
    bytes.insert(bytes.begin() + 12, tags.begin(), tags.end());
    send(0, bytes);
  }
  settle();
  EXPECT_EQ(heard(0).size(), 0U);
  EXPECT_EQ(switch_->counters(0).answered, 0U);
  EXPECT_EQ(dropped(0, DropReason::kLocalUnanswered), 4U) << "ARP and echo to the MAC of the switch";
  // Host 0 was not learned.
  say(1, switch_->mac(), {.from = ip("10.0.2.2"), .to = ip("10.0.1.2")});
  const auto asked = heard(0);
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_TRUE(arp_in(asked[0]));
}

TEST_F(RouterTest, drops_other_packets_to_its_own_addresses) {
  make(two_networks());
  send_to(ip("10.0.1.1"));
  send_to(ip("fd02::1"));
  EXPECT_EQ(dropped(0, DropReason::kLocalUnanswered), 2U);
  auto strange = test::roce_bytes({.destination = switch_->mac(), .source = host_mac(0)});
  strange[12] = 0x88;
  strange[13] = 0xb5;
  send(0, strange);
  settle();
  EXPECT_EQ(dropped(0, DropReason::kLocalUnanswered), 3U);
}

TEST_F(RouterTest, vlan_without_an_interface_is_bridged_only) {
  SwitchConfig config = two_networks();
  config.ports[0].vlan = config.ports[1].vlan = 30;
  make(config);
  send_to(ip("10.0.2.2"));
  const auto got = heard(1);
  ASSERT_EQ(got.size(), 1U) << "flooded as any other unknown MAC";
  EXPECT_EQ(view(got[0]).ipv4().ttl, 64);
}

struct BadConfig {
  const char* what;
  std::function<void(SwitchConfig&)> spoil;
  const char* message;
};

TEST_F(RouterTest, invalid_configurations_are_rejected_with_the_reason) {
  const BadConfig rows[] = {
      {"no ports", [](SwitchConfig& c) { c.ports.clear(); }, "switch 's1': at least one port is required"},
      {"same name", [](SwitchConfig& c) { c.ports[1].name = "p0"; },
       "switch 's1': port 'p0': duplicate name"},
      {"vlan 0", [](SwitchConfig& c) { c.ports[1].vlan = 0; },
       "switch 's1': port 'p1': VLAN 0 is out of range; allowed are 1 to 4094"},
      {"same vlan", [](SwitchConfig& c) { c.interfaces[1].vlan = 10; },
       "switch 's1': interface 'right': VLAN 10 already has an interface"},
      {"overlap", [](SwitchConfig& c) { c.interfaces[1].addresses[0] = net("10.0.0.1/16"); },
       "switch 's1': interface 'right': 10.0.0.1/16 overlaps 10.0.1.1/24"},
      {"no address", [](SwitchConfig& c) { c.interfaces[1].addresses.clear(); },
       "switch 's1': interface 'right' has no address"},
      {"far hop",
       [](SwitchConfig& c) {
         c.routes = {{net("10.9.0.0/16"), {ip("10.7.0.1")}}};
       },
       "switch 's1': route 10.9.0.0/16 via 10.7.0.1: the next hop is in no interface's network"},
      {"own hop",
       [](SwitchConfig& c) {
         c.routes = {{net("10.9.0.0/16"), {ip("10.0.1.1")}}};
       },
       "switch 's1': route 10.9.0.0/16 via 10.0.1.1: the next hop is the switch itself"},
      {"mixed",
       [](SwitchConfig& c) {
         c.routes = {{net("10.9.0.0/16"), {ip("fd01::2")}}};
       },
       "switch 's1': route 10.9.0.0/16 via fd01::2 mixes IPv4 and IPv6"},
      {"empty table", [](SwitchConfig& c) { c.mac_table_size = 0; },
       "switch 's1': mac_table: size 0 is out of range; allowed are 1 to 16777216"},
      {"ageing 0", [](SwitchConfig& c) { c.mac_ageing = Nanos{0}; },
       "switch 's1': mac_table: ageing must be at least 1 ms"},
      {"telemetry interval",
       [](SwitchConfig& c) {
         c.telemetry.enabled = true;
         c.telemetry.udp_port = 5201;
         c.telemetry.when = TelemetryConfig::When::kInterval;
         c.telemetry.interval = kNever;
       },
       "switch 's1': telemetry: interval must be at most 1 h"},
      {"multicast", [](SwitchConfig& c) { c.mac = MacAddress::broadcast(); },
       "switch 's1': mac: ff:ff:ff:ff:ff:ff is a multicast address"},
  };
  for (const BadConfig& row : rows) {
    SwitchConfig config = two_networks();
    row.spoil(config);
    const Status status = check(config);
    ASSERT_FALSE(status) << row.what;
    EXPECT_EQ(status.error().message, row.message);
  }
  EXPECT_TRUE(check(two_networks()));
}

}  // namespace
}  // namespace roci

// Bindings of MAC and IP addresses to ports, and the ports' parts of the MAC table.
#include "switch/config_text.hpp"
#include "switch/qcn/cnm_bench.hpp"
#include "switch/switch_bench.hpp"
#include "wire/net/arp.hpp"
#include "wire/net/nd.hpp"

namespace roci {
namespace {

using test::ip;
using test::net;

// Hosts 0 and 1 have bound addresses, port 2 is an uplink without.
class PortBindingsTest : public SwitchTest {
 protected:
  static SwitchConfig bound() {
    SwitchConfig config = ports(3);
    for (size_t i = 0; i < 2; ++i) {
      config.ports[i].macs = {host_mac(i)};
      config.ports[i].addresses = {IpNetwork::host(address(i)), IpNetwork::host(address(i, true))};
    }
    return config;
  }
  static IpAddress address(size_t host, bool ipv6 = false) {
    return ip((ipv6 ? "fd00::" : "10.0.0.") + std::to_string(host + 1));
  }
  // A packet from the port of a host with these source addresses, to all hosts. Returns whether it was forwarded.
  bool passes(size_t port, const MacAddress& source, const IpAddress& from) {
    const uint64_t before = dropped(port, DropReason::kNotBound);
    send(port, test::roce_bytes({.destination = MacAddress::broadcast(),
                                 .source = source,
                                 .from = from,
                                 .to = from.is_v4() ? ip("10.0.0.77") : ip("fd00::77")}));
    settle();
    const Counts got = counts();
    const bool forwarded = got[(port + 1) % 3] + got[(port + 2) % 3] == 2;
    EXPECT_EQ(dropped(port, DropReason::kNotBound), before + (forwarded ? 0 : 1));
    return forwarded;
  }
  bool passes_arp(size_t port, const MacAddress& sender, const IpAddress& from) {
    std::vector<uint8_t> bytes(kMaxArpFrame);
    bytes.resize(build_arp({.destination = MacAddress::broadcast(), .source = host_mac(port)},
                           {.operation = ArpOperation::kReply,
                            .sender_mac = sender,
                            .sender_ip = from,
                            .target_mac = host_mac(2),
                            .target_ip = address(2)},
                           bytes));
    send(port, bytes);
    settle();
    return heard((port + 1) % 3).size() == 1;
  }
  bool passes_advertisement(size_t port, const IpAddress& from, const IpAddress& target) {
    NeighborMessage message;
    message.advertisement = message.override_cache = true;
    message.source = from;
    message.destination = ip("ff02::1");
    message.target = target;
    message.link_layer = host_mac(port);
    const LinkHeader link{.destination = multicast_mac(message.destination), .source = host_mac(port)};
    std::vector<uint8_t> bytes(nd_frame_length(link, message));
    build_nd(link, message, bytes);
    send(port, bytes);
    settle();
    return heard((port + 1) % 3).size() == 1;
  }
};

TEST_F(PortBindingsTest, bound_addresses_pass_at_their_port_only) {
  make(bound());
  for (const bool ipv6 : {false, true}) {
    EXPECT_TRUE(passes(0, host_mac(0), address(0, ipv6)));
    EXPECT_TRUE(passes(1, host_mac(1), address(1, ipv6)));
    EXPECT_TRUE(passes(2, host_mac(2), address(2, ipv6)));
    EXPECT_FALSE(passes(0, host_mac(1), address(0, ipv6))) << "MAC of another port";
    EXPECT_FALSE(passes(0, host_mac(9), address(0, ipv6))) << "MAC of no port";
    EXPECT_FALSE(passes(0, host_mac(0), address(1, ipv6))) << "IP address of another port";
    EXPECT_FALSE(passes(0, host_mac(0), address(8, ipv6))) << "IP address of no port";
    EXPECT_FALSE(passes(2, host_mac(1), address(2, ipv6))) << "the uplink with the MAC of a host";
    EXPECT_FALSE(passes(2, host_mac(2), address(1, ipv6))) << "the uplink with the IP address of a host";
  }
}

// The address of host 1 stays at its port, although port 0 sends with it.
TEST_F(PortBindingsTest, forged_source_mac_does_not_move_an_address) {
  make(bound());
  EXPECT_TRUE(passes(1, host_mac(1), address(1)));
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(passes(0, host_mac(1), address(0)));
  EXPECT_EQ(switch_->mac_moves(), 0U);
  send(2, test::roce_bytes({.destination = host_mac(1), .source = host_mac(2), .from = address(2)}));
  settle();
  EXPECT_EQ(counts(), (Counts{0, 1, 0}));
}

TEST_F(PortBindingsTest, forged_arp_and_neighbor_advertisements_are_dropped) {
  make(bound());
  EXPECT_TRUE(passes_arp(0, host_mac(0), address(0)));
  EXPECT_TRUE(passes_arp(0, host_mac(0), ip("0.0.0.0"))) << "duplicate address detection";
  EXPECT_FALSE(passes_arp(0, host_mac(0), address(1)));
  EXPECT_FALSE(passes_arp(0, host_mac(1), address(0)));
  EXPECT_FALSE(passes_arp(2, host_mac(2), address(1))) << "the uplink";
  EXPECT_TRUE(passes_advertisement(0, address(0, true), address(0, true)));
  EXPECT_TRUE(passes_advertisement(0, ip("fe80::1"), address(0, true)));
  EXPECT_FALSE(passes_advertisement(0, address(0, true), address(1, true))) << "valid source, forged target";
  EXPECT_FALSE(passes_advertisement(2, ip("fe80::1"), address(1, true))) << "the uplink";
}

TEST_F(PortBindingsTest, prefixes_bind_networks_and_a_longer_prefix_takes_precedence) {
  SwitchConfig config = ports(3);
  config.ports[0].addresses = {net("10.0.0.0/24")};
  config.ports[1].addresses = {net("10.0.0.9/32")};
  make(config);
  EXPECT_TRUE(passes(0, host_mac(0), ip("10.0.0.8")));
  EXPECT_FALSE(passes(0, host_mac(0), ip("10.0.0.9")));
  EXPECT_TRUE(passes(1, host_mac(1), ip("10.0.0.9")));
  EXPECT_FALSE(passes(1, host_mac(1), ip("10.0.0.8")));
  EXPECT_FALSE(passes(0, host_mac(0), ip("10.0.1.1")));
  EXPECT_TRUE(passes(2, host_mac(2), ip("10.0.1.1")));
}

// A second tag would hide the addresses from the check.
TEST_F(PortBindingsTest, double_tagged_frames_are_dropped_at_ports_with_addresses) {
  make(bound());
  for (const size_t port : {size_t{0}, size_t{2}}) {
    auto bytes = test::roce_bytes({.destination = MacAddress::broadcast(),
                                   .source = host_mac(port),
                                   .vlan = uint16_t{5},
                                   .from = address(1)});
    const uint8_t tag[] = {0x81, 0, 0, 1};
    bytes.insert(bytes.begin() + 12, std::begin(tag), std::end(tag));
    send(port, bytes);
    settle();
    EXPECT_EQ(dropped(port, DropReason::kNotBound), port == 0 ? 1U : 0U);
  }
}

// Receivers accept a frame whose innermost VID is 0 as untagged. The switch removes the outer C-TAG, and forwards an
// S-TAG unchanged.
TEST_F(PortBindingsTest, addresses_after_an_inner_priority_tag_are_checked) {
  using Tags = std::vector<uint8_t>;
  const auto passes_with = [this](const Tags& tags, const IpAddress& from) {
    auto bytes =
        test::roce_bytes({.destination = MacAddress::broadcast(), .source = host_mac(2), .from = from});
    bytes.insert(bytes.begin() + 12, tags.begin(), tags.end());
    send(2, bytes);
    settle();
    const Counts got = counts();
    EXPECT_EQ(got[0], got[1]);
    return got[0] == 1;
  };
  make(bound());
  const Tags inner_priority{0x81, 0, 0, 1, 0x81, 0, 0, 0}, s_priority{0x88, 0xa8, 0, 0};
  const Tags s_and_priority{0x88, 0xa8, 0, 5, 0x81, 0, 0, 0};
  for (const Tags& tags : {inner_priority, s_priority, s_and_priority}) {
    EXPECT_FALSE(passes_with(tags, address(1))) << "bound to another port";
    EXPECT_TRUE(passes_with(tags, address(2)));
  }
  EXPECT_EQ(dropped(2, DropReason::kNotBound), 3U);
  const Tags inner_vlan{0x81, 0, 0, 1, 0x81, 0, 0, 5}, three{0x81, 0, 0, 1, 0x81, 0, 0, 0, 0x81, 0, 0, 0};
  EXPECT_TRUE(passes_with(inner_vlan, address(1))) << "of a VLAN that the switch does not know";
  EXPECT_FALSE(passes_with(three, address(2)));
  EXPECT_FALSE(passes_with({0x22, 0xe9, 0, 7, 0x81, 0, 0, 0}, address(2))) << "CN-TAG in front of a VLAN tag";
}

// The router of the switch must not read what the bindings have not checked.
TEST_F(PortBindingsTest, router_learns_no_bound_address_from_a_double_tagged_frame) {
  SwitchConfig config = bound();
  config.interfaces = {{.name = "i", .vlan = 1, .addresses = {net("10.0.0.100/24")}}};
  make(config);
  introduce({0, 1, 2});
  std::vector<uint8_t> bytes(kMaxArpFrame);
  bytes.resize(build_arp({.destination = MacAddress::broadcast(), .source = host_mac(2)},
                         {.operation = ArpOperation::kRequest,
                          .sender_mac = host_mac(2),
                          .sender_ip = address(1),
                          .target_mac = {},
                          .target_ip = ip("10.0.0.100")},
                         bytes));
  const uint8_t tags[] = {0x81, 0, 0, 1, 0x81, 0, 0, 5};
  bytes.insert(bytes.begin() + 12, std::begin(tags), std::end(tags));
  send(2, bytes);
  settle();
  counts();
  say(0, switch_->mac(), {.from = address(0), .to = address(1)});
  const auto got = heard(2);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(view(got[0]).kind, FrameKind::kArp) << "the switch resolves the address; it has no entry";
}

TEST_F(PortBindingsTest, a_flood_of_addresses_at_one_port_leaves_entries_for_the_others) {
  SwitchConfig config = ports(4);
  config.mac_table_size = 64;  // 8 are reserved for each port
  make(config);
  for (uint8_t i = 0; i < 100; ++i) {
    send(0, test::roce_bytes({.destination = host_mac(0), .source = MacAddress{{2, 7, 7, 7, 7, i}}}));
    settle();
    counts();
  }
  EXPECT_EQ(switch_->mac_table_size(), 64U - 3 * 8);
  EXPECT_EQ(switch_->mac_table_full(), 60U);
  introduce({1, 2, 3});
  say(1, 2);
  EXPECT_EQ(counts(), (Counts{0, 0, 1, 0})) << "learned, so not flooded";
  EXPECT_EQ(switch_->mac_table_full(), 60U);
  wait(config.mac_ageing);
  for (uint8_t i = 0; i < 100; ++i) {  // the entries have expired: the part of port 1 is as large
    send(1, test::roce_bytes({.destination = host_mac(0), .source = MacAddress{{2, 7, 7, 7, 7, i}}}));
    settle();
    counts();
  }
  EXPECT_EQ(switch_->mac_table_size(), 64U - 3 * 8);
}

TEST(PortBindingsText, reads_macs_and_addresses) {
  const auto config = test::read_switch_text(
      "ports:\n"
      "  - {name: a, macs: [\"02:00:00:00:00:01\"], addresses: [10.0.0.1, \"fd00::/64\"]}\n"
      "  - {name: b}\n");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->ports[0].macs, std::vector{*MacAddress::parse("02:00:00:00:00:01")});
  EXPECT_EQ(config->ports[0].addresses, (std::vector{net("10.0.0.1/32"), net("fd00::/64")}));
  EXPECT_TRUE(config->ports[1].macs.empty());
  EXPECT_TRUE(config->ports[1].addresses.empty());
}

TEST(PortBindingsText, invalid_bindings_are_rejected_with_the_reason) {
  const auto error = [](const std::string& first, const std::string& second) {
    return test::switch_text_error("ports:\n  - {name: a, " + first + "}\n  - {name: b, " + second + "}\n");
  };
  const auto has = [](const std::string& text, std::string_view part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(error("macs: [\"01:00:5e:00:00:01\"]", "vlan: 1"),
      "port 'a': macs: 01:00:5e:00:00:01 is not a unicast");
  has(error("macs: [\"02:00:00:00:00:01\"]", "macs: [\"02:00:00:00:00:01\"]"),
      "port 'b': macs: 02:00:00:00:00:01 is bound to port 'a' already");
  has(error("addresses: [10.0.0.0/24]", "addresses: [10.0.0.7/24]"),
      "port 'b': addresses: 10.0.0.7/24 is bound to port 'a' already");
  has(error("addresses: [224.0.0.1]", "vlan: 1"), "224.0.0.1/32 is multicast");
  has(error("addresses: [10.0.0.1.2]", "vlan: 1"), "10.0.0.1.2");
}

}  // namespace
}  // namespace roci

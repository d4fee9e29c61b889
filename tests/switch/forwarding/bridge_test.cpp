#include "switch/switch_bench.hpp"

namespace roci {
namespace {

using test::FrameSpec;

class BridgeTest : public SwitchTest {};

TEST_F(BridgeTest, unknown_destination_is_flooded_and_known_destination_is_not) {
  make(ports(4));
  say(0, 1);  // the switch has not learned any address
  EXPECT_EQ(counts(), (Counts{0, 1, 1, 1}));
  say(1, 0);  // the switch has learned the address of 0
  EXPECT_EQ(counts(), (Counts{1, 0, 0, 0}));
  say(0, 1);  // and that of 1
  EXPECT_EQ(counts(), (Counts{0, 1, 0, 0}));
  EXPECT_EQ(switch_->counters(0).flooded, 1U);
}

TEST_F(BridgeTest, broadcast_and_multicast_are_forwarded_to_all_other_ports) {
  make(ports(3));
  introduce({0, 1, 2});
  say(0, MacAddress::broadcast());
  EXPECT_EQ(counts(), (Counts{0, 1, 1}));
  say(1, MacAddress{{0x33, 0x33, 0, 0, 0, 1}});
  EXPECT_EQ(counts(), (Counts{1, 0, 1}));
}

TEST_F(BridgeTest, forwards_frames_unchanged) {
  make(ports(3));
  introduce({0, 1});
  FrameSpec spec;
  spec.source = host_mac(0);
  spec.destination = host_mac(1);
  spec.payload = 1024;
  spec.vlan = 0x6000;  // priority tag
  const auto bytes = test::roce_bytes(spec);
  send(0, bytes);
  settle();
  const auto got = heard(1);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0], bytes);
}

TEST_F(BridgeTest, inserted_frame_is_forwarded_like_a_received_frame) {
  make(ports(3));
  introduce({0, 1});
  const auto bytes = test::roce_bytes({.destination = host_mac(1), .source = host_mac(0)});
  ASSERT_TRUE(switch_->insert(0, test::to_mbuf(*pool_, bytes)));
  settle();
  const auto got = heard(1);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0], bytes);
  EXPECT_TRUE(heard(2).empty());
}

TEST_F(BridgeTest, inserted_frames_are_limited_and_freed_with_the_switch) {
  make(ports(3));
  size_t most = 0;
  for (;; ++most) {
    rte_mbuf* frame =
        test::to_mbuf(*pool_, test::roce_bytes({.destination = host_mac(1), .source = host_mac(0)}));
    if (switch_->insert(0, frame)) continue;
    rte_pktmbuf_free(frame);
    break;
  }
  EXPECT_EQ(most, 256U);
}

TEST_F(BridgeTest, each_flooded_copy_has_its_own_buffer) {
  make(ports(3));
  say(0, MacAddress::broadcast());
  rte_mbuf *a = nullptr, *b = nullptr;
  ASSERT_EQ(links_[1]->a().rx_burst({&a, 1}, runner_.now()), 1);
  ASSERT_EQ(links_[2]->a().rx_burst({&b, 1}, runner_.now()), 1);
  EXPECT_EQ(test::bytes_of(a), test::bytes_of(b));
  EXPECT_NE(a->buf_addr, b->buf_addr);
  EXPECT_EQ(rte_mbuf_refcnt_read(a), 1);
  EXPECT_TRUE(RTE_MBUF_DIRECT(a) && RTE_MBUF_DIRECT(b));
  rte_pktmbuf_free(a);
  rte_pktmbuf_free(b);
}

TEST_F(BridgeTest, address_expires_exactly_at_the_ageing_time) {
  SwitchConfig config = ports(3);
  config.mac_ageing = 10s;
  make(config);
  introduce({0});
  wait(10s - 1ns);
  say(1, 0);
  EXPECT_EQ(counts(), (Counts{1, 0, 0}));
  wait(1ns);
  say(1, 0);
  EXPECT_EQ(counts(), (Counts{1, 0, 1})) << "flooded again";
}

TEST_F(BridgeTest, received_frame_refreshes_its_source_address) {
  SwitchConfig config = ports(3);
  config.mac_ageing = 10s;
  make(config);
  introduce({0});
  wait(6s);
  introduce({0});
  wait(6s);
  say(1, 0);
  EXPECT_EQ(counts(), (Counts{1, 0, 0}));
}

TEST_F(BridgeTest, moved_host_is_relearned_with_its_first_frame) {
  make(ports(3));
  introduce({0, 1});
  // The address of 0 moved to port 2.
  send(2, test::roce_bytes({.destination = host_mac(1), .source = host_mac(0)}));
  settle();
  EXPECT_EQ(counts(), (Counts{0, 1, 0}));
  EXPECT_EQ(switch_->mac_moves(), 1U);
  say(1, 0);
  EXPECT_EQ(counts(), (Counts{0, 0, 1}));
}

TEST_F(BridgeTest, full_table_keeps_its_entries_and_learns_again_after_ageing) {
  SwitchConfig config = ports(3);
  config.mac_table_size = 2;
  config.mac_ageing = 10s;
  make(config);
  introduce({0, 1});
  wait(5s);
  introduce({0});
  introduce({2});
  EXPECT_EQ(switch_->mac_table_full(), 1U);
  EXPECT_EQ(switch_->mac_table_size(), 2U);
  say(2, 0);
  say(2, 1);
  EXPECT_EQ(counts(), (Counts{1, 1, 0})) << "0 and 1 are still known";
  say(0, 2);
  EXPECT_EQ(counts(), (Counts{0, 1, 1})) << "2 is not";
  wait(5s);  // the entry of 1 has aged out
  introduce({2});
  say(0, 2);
  EXPECT_EQ(counts(), (Counts{0, 0, 1}));
}

TEST_F(BridgeTest, addresses_are_learned_per_vlan) {
  make(ports(3));
  introduce({0, 1}, 10);
  say(0, 1, {.vlan = 10});
  EXPECT_EQ(counts(), (Counts{0, 1, 0}));
  say(0, 1, {.vlan = 20});  // the address is unknown in VLAN 20
  EXPECT_EQ(counts(), (Counts{0, 1, 1}));
}

TEST_F(BridgeTest, vlan_frames_reach_member_ports_only) {
  SwitchConfig config = ports(4);
  config.ports[0].vlan = 10;
  config.ports[1].vlan = 10;
  config.ports[2].vlan = 20;
  for (size_t i = 0; i < 3; ++i) config.ports[i].all_tagged = false;
  config.ports[3].all_tagged = false;
  config.ports[3].tagged = {10, 20};
  make(config);
  const auto original = test::roce_bytes({.destination = MacAddress::broadcast(), .source = host_mac(0)});
  send(0, original);
  settle();
  // The access port of the VLAN sends the frame unchanged, the trunk adds a tag, the port of the other VLAN gets
  // nothing.
  const auto access = heard(1), other = heard(2), trunk = heard(3);
  ASSERT_EQ(access.size(), 1U);
  EXPECT_EQ(access[0], original);
  EXPECT_EQ(other.size(), 0U);
  ASSERT_EQ(trunk.size(), 1U);
  EXPECT_EQ(view(trunk[0]).vlan_id(), 10);
  EXPECT_TRUE(icrc_is_right(trunk[0]));

  // A frame from the trunk is forwarded by its tag. The access port removes the tag.
  send(3,
       test::roce_bytes({.destination = host_mac(2), .source = host_mac(3), .vlan = uint16_t{0x6000 | 20}}));
  settle();
  const auto untagged = heard(2);
  ASSERT_EQ(untagged.size(), 1U);
  EXPECT_EQ(untagged[0], test::roce_bytes({.destination = host_mac(2), .source = host_mac(3)}));
  EXPECT_EQ(counts(), (Counts{0, 0, 0, 0}));

  // A frame with the tag of a VLAN that the port does not belong to is dropped.
  say(0, MacAddress::broadcast(), {.vlan = 20});
  say(3, MacAddress::broadcast(), {.vlan = 30});
  EXPECT_EQ(counts(), (Counts{0, 0, 0, 0}));
  EXPECT_EQ(dropped(0, DropReason::kNotMember), 1U);
  EXPECT_EQ(dropped(3, DropReason::kNotMember), 1U);
}

TEST_F(BridgeTest, priority_tag_keeps_its_priority_when_a_vlan_is_assigned) {
  SwitchConfig config = ports(2);
  config.ports[0].vlan = 10;
  make(config);
  say(0, MacAddress::broadcast(), {.vlan = 0x6000});
  const auto got = heard(1);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(view(got[0]).vlan().tci.get(), 0x6000 | 10);
}

TEST_F(BridgeTest, frames_that_may_not_be_forwarded_are_dropped_and_counted) {
  make(ports(2));
  send(0, std::vector<uint8_t>(5, 0xff));
  send(0, std::vector<uint8_t>(13, 0));
  EXPECT_EQ(dropped(0, DropReason::kRunt), 0U);
  settle();
  EXPECT_EQ(dropped(0, DropReason::kRunt), 2U);
  auto cut_tag = test::roce_bytes({.vlan = 5});
  cut_tag.resize(16);
  send(0, cut_tag);
  settle();
  EXPECT_EQ(dropped(0, DropReason::kRunt), 3U);
  send(0, test::roce_bytes({.source = MacAddress::broadcast()}));
  send(0, test::roce_bytes({.source = MacAddress{}}));
  send(0, test::roce_bytes({.source = switch_->mac()}));
  settle();
  EXPECT_EQ(dropped(0, DropReason::kBadSource), 3U);
  say(0, MacAddress{{0x01, 0x80, 0xc2, 0, 0, 1}});
  EXPECT_EQ(dropped(0, DropReason::kLinkLocal), 1U);
  say(0, 0);  // the destination is learned from this frame
  EXPECT_EQ(dropped(0, DropReason::kSamePort), 1U);
  EXPECT_EQ(counts(), (Counts{0, 0}));
  EXPECT_EQ(switch_->counters(0).dropped(), 8U);
  EXPECT_EQ(switch_->counters(0).rx_packets, 8U);
}

TEST_F(BridgeTest, frame_in_a_vlan_without_another_port_is_dropped) {
  SwitchConfig config = ports(2);
  config.ports[1].all_tagged = false;
  make(config);
  say(0, 1, {.vlan = 77});
  EXPECT_EQ(dropped(0, DropReason::kNoEgress), 1U);
}

TEST_F(BridgeTest, frame_longer_than_the_egress_mtu_is_dropped) {
  SwitchConfig config = ports(2);
  std::vector<Port*> ends;
  const std::array<uint16_t, 2> mtus{4200, 1500};
  for (size_t i = 0; i < 2; ++i) {
    links_.push_back(std::make_unique<SimLink>(SimLinkConfig{.mtu = mtus[i]}, pool_));
    ends.push_back(&links_.back()->b());
  }
  switch_ = std::move(*Switch::create(config, ends, pool_));
  runner_.add(*switch_);
  say(0, 1, {.payload = 1456});  // an IP packet of 1500 bytes
  say(0, 1, {.payload = 1460});
  EXPECT_EQ(counts(), (Counts{0, 1}));
  EXPECT_EQ(dropped(1, DropReason::kTooLong), 1U);
}

TEST_F(BridgeTest, chain_of_small_segments_is_forwarded_with_an_inserted_tag) {
  SwitchConfig config = ports(2);
  config.ports[1].vlan = 9;  // the switch must insert a VLAN tag
  make(config);
  const auto bytes =
      test::roce_bytes({.destination = MacAddress::broadcast(), .source = host_mac(0), .payload = 256});
  // Segments of ten bytes.
  rte_mbuf* chain = nullptr;
  for (size_t at = 0; at < bytes.size(); at += 10) {
    const auto end = std::min(at + 10, bytes.size());
    rte_mbuf* piece = test::to_mbuf(
        *pool_, {bytes.begin() + static_cast<long>(at), bytes.begin() + static_cast<long>(end)});
    if (chain == nullptr) {
      chain = piece;
    } else {
      ASSERT_EQ(rte_pktmbuf_chain(chain, piece), 0);
    }
  }
  send(0, chain);
  settle();
  auto got = heard(1);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(view(got[0]).vlan_id(), 1);
  EXPECT_TRUE(icrc_is_right(got[0]));
}

TEST_F(BridgeTest, burst_is_forwarded_in_order) {
  make(ports(2));
  introduce({0, 1});
  for (uint32_t i = 0; i < 200; ++i)
    send(0, test::roce_bytes({.destination = host_mac(1), .source = host_mac(0), .number = i}));
  settle();
  const auto got = heard(1);
  ASSERT_EQ(got.size(), 200U);
  for (uint32_t i = 0; i < 200; ++i) EXPECT_EQ(view(got[i]).psn().value(), i);
}

TEST_F(BridgeTest, random_frames_cause_no_crash_or_leak) {
  SwitchConfig config = ports(3);
  config.ports[1].vlan = 2;
  config.interfaces = {{.name = "i1",
                        .vlan = 1,
                        .addresses = {*IpNetwork::parse("10.0.1.1/24"), *IpNetwork::parse("fd01::1/64")}},
                       {.name = "i2", .vlan = 2, .addresses = {*IpNetwork::parse("10.0.2.1/24")}}};
  make(config);
  Rng rng{99};
  const auto valid = test::roce_bytes(
      {.destination = switch_->mac(), .source = host_mac(0), .to = *IpAddress::parse("10.0.2.5")});
  for (int i = 0; i < 20'000; ++i) {
    std::vector<uint8_t> bytes;
    if (rng.chance(0.5)) {
      bytes = valid;
      for (uint64_t flips = rng.between(1, 6); flips > 0; --flips) {
        bytes[rng.between(12, bytes.size() - 1)] = static_cast<uint8_t>(rng.next());
      }
      if (rng.chance(0.3)) bytes.resize(rng.below(bytes.size()));
    } else {
      bytes.resize(rng.below(200));
      for (uint8_t& b : bytes) b = static_cast<uint8_t>(rng.next());
      static constexpr std::array<uint16_t, 4> kTypes{0x0800, 0x0806, 0x86dd, 0x8100};
      if (bytes.size() > 14) {
        std::copy(switch_->mac().bytes.begin(), switch_->mac().bytes.end(), bytes.begin());
        if (rng.chance(0.3)) std::fill_n(bytes.begin(), 6, uint8_t{0xff});
        bytes[6] = 2;
        const uint16_t type = kTypes[rng.below(4)];
        bytes[12] = static_cast<uint8_t>(type >> 8);
        bytes[13] = static_cast<uint8_t>(type);
      }
    }
    send(rng.below(3), bytes);
    if (i % 50 == 0) {
      wait(1ms);
      counts();
    }
  }
  wait(60s);  // the remaining address resolutions time out
  counts();
}

}  // namespace
}  // namespace roci

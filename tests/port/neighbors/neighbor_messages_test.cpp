// ARP and ND messages: effect on the neighbor table, and responses of the host.
#include "port/neighbors/neighbors_fixture.hpp"

namespace roci {
namespace {

TEST_F(NeighborsTest, ignores_invalid_and_conflicting_arp_replies) {
  NeighborRef ref = host().hold(*host().resolve(kPeer, 0s).entry);
  sink_->clear();
  arp_reply(0s, MacAddress{});
  arp_reply(0s, *MacAddress::parse("01:00:5e:00:00:01"));
  arp_reply(0s, kMac);
  EXPECT_EQ(host().stats().malformed, 2U);
  EXPECT_EQ(host().use(*ref, 0s), Resolution::kPending);
  // Another host claims this host's address.
  receive_arp({ArpOperation::kReply, kOtherMac, kIp, kMac, kIp}, 0s, kMac);
  EXPECT_EQ(host().stats().conflicts, 1U);
  EXPECT_EQ(host().resolve(kIp, 0s).entry->mac, kMac);
  // Frames to other MAC addresses and of other VLANs are ignored.
  EXPECT_FALSE(receive_arp({ArpOperation::kReply, kPeerMac, kPeer, kMac, kIp}, 0s, kOtherMac));
  EXPECT_FALSE(receive_arp({ArpOperation::kReply, kPeerMac, kPeer, kMac, kIp}, 0s, kMac, 9));
  EXPECT_EQ(host().use(*ref, 0s), Resolution::kPending);
}

TEST_F(NeighborsTest, replies_to_broadcast_and_unicast_arp_requests) {
  for (const MacAddress& to : {MacAddress::broadcast(), kMac}) {
    EXPECT_TRUE(receive_arp({ArpOperation::kRequest, kPeerMac, kPeer, MacAddress{}, kIp}, 0s, to));
    const auto sent = sent_arp();
    ASSERT_EQ(sent.size(), 1U);
    EXPECT_EQ(sent[0].first.destination, kPeerMac);
    EXPECT_EQ(sent[0].second.operation, ArpOperation::kReply);
    EXPECT_EQ(sent[0].second.sender_ip, kIp);
    EXPECT_EQ(sent[0].second.sender_mac, kMac);
    EXPECT_EQ(sent[0].second.target_ip, kPeer);
    EXPECT_EQ(sent[0].second.target_mac, kPeerMac);
  }
  // A probe for a free address is answered, but its sender is not learned.
  EXPECT_TRUE(receive_arp({ArpOperation::kRequest, kOtherMac, IpAddress::from_v4(0), MacAddress{}, kIp}, 0s));
  EXPECT_EQ(sent_arp().size(), 1U);
  EXPECT_EQ(host().table().size(), 3U);  // two own addresses and the peer
  // Request for another address: no reply.
  receive_arp({ArpOperation::kRequest, kPeerMac, kPeer, MacAddress{}, *IpAddress::parse("10.0.0.3")}, 0s);
  EXPECT_TRUE(sink_->frames.empty());
}

TEST_F(NeighborsTest, resolves_addresses_within_its_vlan) {
  config_.vlan_id = 42;
  host().resolve(kPeer, 0s);
  const auto sent = sent_arp();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].first.vlan_id, 42);
  EXPECT_FALSE(receive_arp({ArpOperation::kReply, kPeerMac, kPeer, kMac, kIp}, 0s, kMac, 0));
  EXPECT_TRUE(receive_arp({ArpOperation::kReply, kPeerMac, kPeer, kMac, kIp}, 0s, kMac, 42));
  EXPECT_EQ(host().resolve(kPeer, 0s).result, Resolution::kResolved);
}

TEST_F(NeighborsTest, ipv6_is_solicited_by_multicast_and_probed_by_unicast) {
  NeighborRef ref = host().hold(*host().resolve(kPeer6, 0s).entry);
  auto sent = sent_nd();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].first, *MacAddress::parse("33:33:ff:00:00:02"));
  EXPECT_FALSE(sent[0].second.advertisement);
  EXPECT_EQ(sent[0].second.source, kIp6);
  EXPECT_EQ(sent[0].second.destination, kPeer6.solicited_node());
  EXPECT_EQ(sent[0].second.target, kPeer6);
  EXPECT_EQ(sent[0].second.link_layer, kMac);
  EXPECT_TRUE(receive_nd(advertisement(kPeerMac, true, true), 1ms));
  EXPECT_EQ(host().use(*ref, 1ms), Resolution::kResolved);
  EXPECT_EQ(host().use(*ref, 31s), Resolution::kResolved);
  sent = sent_nd();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].first, kPeerMac);
  EXPECT_EQ(sent[0].second.destination, kPeer6);
  // The response to a unicast probe may omit the link-layer address.
  receive_nd(advertisement(std::nullopt, true, true), 31s);
  EXPECT_EQ(ref->state, NeighborState::kReachable);
  EXPECT_EQ(host().use(*ref, 60s), Resolution::kResolved);
  EXPECT_TRUE(sink_->frames.empty());
}

TEST_F(NeighborsTest, advertisements_follow_rfc_4861_7_2_5) {
  struct Row {
    bool resolved;  // before the message
    std::optional<MacAddress> mac;
    bool solicited, override_cache;
    Resolution result;
    MacAddress after;
    bool stale;
  };
  const Row rows[] = {
      {false, kPeerMac, true, true, Resolution::kResolved, kPeerMac, false},
      {false, kPeerMac, true, false, Resolution::kResolved, kPeerMac, false},
      {false, kPeerMac, false, true, Resolution::kResolved, kPeerMac, true},
      {false, std::nullopt, true, true, Resolution::kPending, MacAddress{}, false},
      {true, kPeerMac, false, true, Resolution::kResolved, kPeerMac, false},
      // Deviation: the peer is confirmed, so its known MAC address is probed first.
      {true, kOtherMac, false, true, Resolution::kResolved, kPeerMac, true},
      {true, kOtherMac, true, true, Resolution::kResolved, kPeerMac, true},
      {true, kOtherMac, false, false, Resolution::kResolved, kPeerMac, true},
      {true, kOtherMac, true, false, Resolution::kResolved, kPeerMac, true},
      {true, std::nullopt, false, false, Resolution::kResolved, kPeerMac, false},
  };
  for (size_t i = 0; i < std::size(rows); ++i) {
    const Row& row = rows[i];
    neighbors_.reset();
    host().resolve(kPeer6, 0s);
    if (row.resolved) receive_nd(advertisement(kPeerMac, true, true), 0s);
    receive_nd(advertisement(row.mac, row.solicited, row.override_cache), 1s);
    sink_->clear();
    const Lookup lookup = host().resolve(kPeer6, 1s);
    EXPECT_EQ(lookup.result, row.result) << "row " << i;
    EXPECT_EQ(lookup.entry->mac, row.after) << "row " << i;
    EXPECT_EQ(!sink_->frames.empty(), row.stale) << "row " << i;
    sink_->clear();
  }
}

// As in claims_of_another_host_do_not_replace_a_confirmed_neighbor, with advertisements and solicitations.
TEST_F(NeighborsTest, advertisements_of_another_host_do_not_replace_a_confirmed_neighbor) {
  NeighborRef ref = host().hold(*host().resolve(kPeer6, 0s).entry);
  receive_nd(advertisement(kPeerMac, true, true), 0s);
  sink_->clear();
  NeighborMessage forged;
  forged.source = kPeer6;
  forged.destination = kIp6;
  forged.target = kIp6;
  forged.link_layer = kOtherMac;
  size_t probes = 0;
  for (Nanos now = 1s; now < 2s; now += 1ms) {
    for (const bool solicited : {false, true}) receive_nd(advertisement(kOtherMac, solicited, true), now);
    receive_nd(forged, now);
    sink_->clear();  // the replies
    EXPECT_EQ(host().use(*ref, now), Resolution::kResolved);
    host().poll(now);
    const auto sent = sent_nd();
    for (const auto& [mac, nd] : sent) EXPECT_EQ(mac, kPeerMac);
    probes += sent.size();
    receive_nd(advertisement(kOtherMac, true, true), now);
    if (!sent.empty()) receive_nd(advertisement(kPeerMac, true, true), now);
  }
  EXPECT_EQ(ref->mac, kPeerMac);
  EXPECT_EQ(probes, 10U);
}

TEST_F(NeighborsTest, replies_to_neighbor_solicitations) {
  NeighborMessage ask;
  ask.source = kPeer6;
  ask.destination = kIp6.solicited_node();
  ask.target = kIp6;
  ask.link_layer = kPeerMac;
  EXPECT_TRUE(receive_nd(ask, 0s, multicast_mac(ask.destination)));
  auto sent = sent_nd();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].first, kPeerMac);
  EXPECT_TRUE(sent[0].second.advertisement && sent[0].second.solicited && sent[0].second.override_cache);
  EXPECT_FALSE(sent[0].second.router);
  EXPECT_EQ(sent[0].second.destination, kPeer6);
  EXPECT_EQ(sent[0].second.target, kIp6);
  EXPECT_EQ(sent[0].second.link_layer, kMac);
  EXPECT_EQ(host().resolve(kPeer6, 0s).result, Resolution::kResolved);
  sink_->clear();
  // Duplicate address detection by another host: the response goes to all nodes.
  ask.source = IpAddress{};
  ask.link_layer.reset();
  EXPECT_TRUE(receive_nd(ask, 0s, multicast_mac(ask.destination)));
  sent = sent_nd();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].first, *MacAddress::parse("33:33:00:00:00:01"));
  EXPECT_FALSE(sent[0].second.solicited);
  ask.target = kPeer6;
  ask.destination = kPeer6.solicited_node();
  receive_nd(ask, 0s, multicast_mac(ask.destination));
  EXPECT_TRUE(sink_->frames.empty());
}

TEST_F(NeighborsTest, replies_to_ping_for_its_own_addresses_only) {
  const std::vector<uint8_t> body = {0x12, 0x34, 0, 1, 'h', 'e', 'l', 'l', 'o'};
  const auto ping = [&](const IpAddress& from, const IpAddress& to, const MacAddress& mac) {
    sink_->clear();
    receive(
        [&](std::span<uint8_t> out) {
          return build_echo({mac, kPeerMac, 0}, {false, from, to, 0, body}, out);
        },
        0s);
    return sink_->frames.size();
  };
  for (const auto& [from, to] : {std::pair{kPeer, kIp}, std::pair{kPeer6, kIp6}}) {
    ASSERT_EQ(ping(from, to, kMac), 1U);
    const FrameView view = view_of(sink_->frames[0]);
    EXPECT_EQ(view.ethernet().destination, kPeerMac);
    const auto reply = parse_echo(view, body_of(sink_->frames[0]));
    ASSERT_TRUE(reply);
    EXPECT_TRUE(reply->reply);
    EXPECT_EQ(reply->source, to);
    EXPECT_EQ(reply->destination, from);
    EXPECT_TRUE(std::equal(reply->body.begin(), reply->body.end(), body.begin(), body.end()));
  }
  EXPECT_EQ(ping(kPeer, *IpAddress::parse("10.0.0.9"), kMac), 0U);
  EXPECT_EQ(ping(kPeer, kIp, MacAddress::broadcast()), 0U);
  EXPECT_EQ(ping(kPeer, *IpAddress::parse("10.0.0.255"), MacAddress::broadcast()), 0U);
  EXPECT_EQ(ping(*IpAddress::parse("224.0.0.1"), kIp, kMac), 0U);
  EXPECT_EQ(ping(*IpAddress::parse("10.0.0.255"), kIp, kMac), 0U);
}

TEST_F(NeighborsTest, replies_to_ping_in_several_segments) {
  std::vector<uint8_t> body(1400, 7);
  std::vector<uint8_t> bytes(1600);
  bytes.resize(build_echo({kMac, kPeerMac, 0}, {false, kPeer, kIp, 0, body}, bytes));
  rte_mbuf* frame = make_frame(*pool_, static_cast<uint32_t>(bytes.size()), 0, 400);
  size_t at = 0;
  for (rte_mbuf* m = frame; m != nullptr; m = m->next) {
    std::memcpy(rte_pktmbuf_mtod(m, uint8_t*), &bytes[at], m->data_len);
    at += m->data_len;
  }
  EXPECT_TRUE(host().handle(view_of(frame), frame, 0s));
  rte_pktmbuf_free(frame);
  ASSERT_EQ(sink_->frames.size(), 1U);
  const auto reply = parse_echo(view_of(sink_->frames[0]), body_of(sink_->frames[0]));
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->body.size(), body.size());
}

// Another worker of the host responds. Expects that this one learns the same and sends nothing.
TEST_F(NeighborsTest, learns_neighbors_when_replies_are_disabled) {
  config_.answers = false;
  EXPECT_TRUE(receive_arp({ArpOperation::kRequest, kPeerMac, kPeer, MacAddress{}, kIp}, 0s));
  NeighborMessage question;
  question.source = kPeer6;
  question.destination = kIp6.solicited_node();
  question.target = kIp6;
  question.link_layer = kPeerMac;
  EXPECT_TRUE(receive(
      [&](std::span<uint8_t> out) {
        build_nd({multicast_mac(question.destination), kPeerMac, 0}, question, out);
        return nd_frame_length({multicast_mac(question.destination), kPeerMac, 0}, question);
      },
      0s));
  const std::vector<uint8_t> body(8);
  EXPECT_TRUE(receive(
      [&](std::span<uint8_t> out) {
        return build_echo({kMac, kPeerMac, 0}, {false, kPeer, kIp, 0, body}, out);
      },
      0s));
  EXPECT_TRUE(sink_->frames.empty());
  for (const IpAddress& peer : {kPeer, kPeer6}) {
    ASSERT_NE(host().resolve(peer, 0s).entry, nullptr);
    EXPECT_EQ(host().resolve(peer, 0s).entry->mac, kPeerMac);
  }
}

TEST_F(NeighborsTest, announces_every_address) {
  host().announce(0s);
  ASSERT_EQ(sink_->frames.size(), 2U);
  const auto arp = parse_arp(body_of(sink_->frames[0]));
  ASSERT_TRUE(arp);
  EXPECT_TRUE(arp->is_gratuitous());
  const auto nd = parse_nd(view_of(sink_->frames[1]), body_of(sink_->frames[1]));
  ASSERT_TRUE(nd);
  EXPECT_TRUE(nd->advertisement && nd->override_cache && !nd->solicited);
}

}  // namespace
}  // namespace roci

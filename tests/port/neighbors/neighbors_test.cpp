// Address resolution: requests, and states of the entries.
#include "base/rng.hpp"
#include "port/neighbors/neighbors_fixture.hpp"

namespace roci {
namespace {

TEST_F(NeighborsTest, sends_broadcast_request_and_resolves_on_reply) {
  EXPECT_EQ(host().next_deadline(), kNever);
  const Lookup first = host().resolve(kPeer, 5ms);
  EXPECT_EQ(first.result, Resolution::kPending);
  ASSERT_NE(first.entry, nullptr);
  const auto sent = sent_arp();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].first.destination, MacAddress::broadcast());
  EXPECT_EQ(sent[0].first.source, kMac);
  EXPECT_EQ(sent[0].second.operation, ArpOperation::kRequest);
  EXPECT_EQ(sent[0].second.sender_ip, kIp);
  EXPECT_EQ(sent[0].second.sender_mac, kMac);
  EXPECT_EQ(sent[0].second.target_ip, kPeer);
  // A second user of the same entry sends no request.
  EXPECT_EQ(host().resolve(kPeer, 6ms).entry, first.entry);
  EXPECT_TRUE(sink_->frames.empty());

  const uint64_t generation = host().generation();
  arp_reply(7ms);
  EXPECT_NE(host().generation(), generation);
  const Lookup second = host().resolve(kPeer, 7ms);
  EXPECT_EQ(second.result, Resolution::kResolved);
  EXPECT_EQ(second.entry, first.entry);
  EXPECT_EQ(second.entry->mac, kPeerMac);
  EXPECT_TRUE(run_until(20s).empty());
}

// After 30 ms, then twice as long each time, at most one second.
TEST_F(NeighborsTest, fails_after_seven_requests_and_retries_after_the_hold_time) {
  NeighborRef ref = host().hold(*host().resolve(kPeer, 1s).entry);
  uint64_t generation = host().generation();
  EXPECT_EQ(run_until(60s), (std::vector<Nanos>{1'030ms, 1'090ms, 1'210ms, 1'450ms, 1'930ms, 2'890ms}));
  EXPECT_EQ(host().stats().failures, 1U);
  EXPECT_NE(host().generation(), generation);
  EXPECT_EQ(host().next_deadline(), kNever);
  // The last request expires at 3.89 s; a hold time of 5 s follows.
  EXPECT_EQ(host().use(*ref, 3'890ms), Resolution::kFailed);
  EXPECT_EQ(host().use(*ref, 8'889ms), Resolution::kFailed);
  sink_->clear();
  EXPECT_EQ(host().use(*ref, 8'890ms), Resolution::kPending);
  EXPECT_EQ(sink_->frames.size(), 1U);
  arp_reply(9s);
  EXPECT_EQ(host().use(*ref, 9s), Resolution::kResolved);
}

TEST_F(NeighborsTest, stale_entry_is_probed_by_unicast_at_its_next_use_and_stays_usable) {
  NeighborRef ref = host().hold(*host().resolve(kPeer, 0s).entry);
  arp_reply(0s);
  sink_->clear();
  EXPECT_EQ(host().use(*ref, 29s), Resolution::kResolved);
  EXPECT_TRUE(sink_->frames.empty());
  // Not used for an hour: nothing is sent.
  EXPECT_TRUE(run_until(3600s).empty());
  EXPECT_EQ(host().use(*ref, 3600s), Resolution::kResolved);
  auto sent = sent_arp();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].first.destination, kPeerMac);
  const uint32_t version = ref->version;
  arp_reply(3600s);
  EXPECT_EQ(ref->state, NeighborState::kReachable);
  EXPECT_EQ(ref->version, version);
  EXPECT_EQ(host().use(*ref, 3629s), Resolution::kResolved);
  EXPECT_TRUE(sink_->frames.empty());
}

TEST_F(NeighborsTest, unanswered_probes_lead_to_broadcasts_and_then_to_failure) {
  NeighborRef ref = host().hold(*host().resolve(kPeer, 0s).entry);
  arp_reply(0s);
  host().use(*ref, 30s);
  sink_->clear();
  run_until(32'889ms);
  EXPECT_EQ(host().use(*ref, 32'889ms), Resolution::kResolved);
  auto sent = sent_arp();
  ASSERT_EQ(sent.size(), 6U);
  for (const auto& [link, arp] : sent) EXPECT_EQ(link.destination, kPeerMac);
  run_until(35'779ms);
  EXPECT_EQ(host().use(*ref, 35'779ms), Resolution::kPending);
  sent = sent_arp();
  ASSERT_EQ(sent.size(), 7U);
  for (const auto& [link, arp] : sent) EXPECT_EQ(link.destination, MacAddress::broadcast());
  run_until(35'780ms);
  EXPECT_EQ(host().use(*ref, 35'780ms), Resolution::kFailed);
}

TEST_F(NeighborsTest, acknowledged_traffic_replaces_probes) {
  NeighborRef ref = host().hold(*host().resolve(kPeer, 0s).entry);
  arp_reply(0s);
  sink_->clear();
  for (Nanos now = 1s; now < 200s; now += 1s) {
    host().confirm(*ref, now);
    EXPECT_EQ(host().use(*ref, now), Resolution::kResolved);
  }
  EXPECT_TRUE(sink_->frames.empty());
}

// Every message from the neighbor in every state of its entry.
TEST_F(NeighborsTest, state_transitions_follow_the_message_table) {
  enum Start { kAbsent, kIncomplete, kReachable, kProbing, kFailed, kStatic };
  enum Message { kReply, kReplyOther, kRequest, kRequestOther, kGratuitous, kGratuitousOther, kForOthers };
  struct Row {
    Start start;
    Message message;
    std::string_view state;  // after the message; "absent" for no entry
    bool other_mac;          // after the message
    bool stale;              // a probe is sent at the next use
  };
  const Row rows[] = {
      {kAbsent, kReply, "absent", false, false},
      {kAbsent, kGratuitous, "absent", false, false},
      {kAbsent, kForOthers, "absent", false, false},
      {kAbsent, kRequest, "reachable", false, true},  // the sender will expect a response
      {kIncomplete, kReply, "reachable", false, false},
      {kIncomplete, kRequest, "reachable", false, true},
      {kIncomplete, kGratuitous, "reachable", false, true},
      {kIncomplete, kForOthers, "reachable", false, true},
      {kReachable, kReply, "reachable", false, false},
      {kReachable, kRequest, "reachable", false, false},
      {kReachable, kGratuitous, "reachable", false, false},
      {kReachable, kReplyOther, "reachable", false, true},  // the known MAC address is probed
      {kReachable, kRequestOther, "reachable", false, true},
      {kReachable, kGratuitousOther, "reachable", false, true},
      {kProbing, kReply, "reachable", false, false},
      {kProbing, kReplyOther, "probing", false, false},  // the probe was sent to the known MAC address
      {kProbing, kRequest, "probing", false, false},
      {kProbing, kGratuitousOther, "probing", false, false},
      {kFailed, kReply, "reachable", false, true},
      {kFailed, kRequest, "reachable", false, true},
      {kFailed, kGratuitous, "reachable", false, true},
      {kStatic, kReply, "permanent", false, false},
      {kStatic, kReplyOther, "permanent", false, false},
      {kStatic, kRequestOther, "permanent", false, false},
      {kStatic, kGratuitousOther, "permanent", false, false},
  };
  for (size_t i = 0; i < std::size(rows); ++i) {
    const Row& row = rows[i];
    neighbors_.reset();
    config_.static_entries.clear();
    if (row.start == kStatic) config_.static_entries = {{kPeer, kPeerMac}};
    Nanos now{0};
    if (row.start != kAbsent && row.start != kStatic) host().resolve(kPeer, now);
    if (row.start == kReachable || row.start == kProbing) arp_reply(now);
    if (row.start == kReachable) now = 1s;
    if (row.start == kProbing) host().resolve(kPeer, now = 31s);
    if (row.start == kFailed) run_until(now = 4s);

    const MacAddress mac =
        row.message == kReplyOther || row.message == kRequestOther || row.message == kGratuitousOther
            ? kOtherMac
            : kPeerMac;
    switch (row.message) {
      case kReply:
      case kReplyOther:
        arp_reply(now, mac);
        break;
      case kRequest:
      case kRequestOther:
        receive_arp({ArpOperation::kRequest, mac, kPeer, MacAddress{}, kIp}, now);
        break;
      case kGratuitous:
      case kGratuitousOther:
        receive_arp({ArpOperation::kRequest, mac, kPeer, MacAddress{}, kPeer}, now);
        break;
      case kForOthers:
        receive_arp({ArpOperation::kRequest, mac, kPeer, MacAddress{}, *IpAddress::parse("10.0.0.9")}, now);
        break;
    }
    sink_->clear();
    const Neighbor* entry = nullptr;
    const_cast<NeighborTable&>(host().table()).for_each([&](Neighbor& e) {
      if (e.address == kPeer) entry = &e;
    });
    EXPECT_EQ(entry == nullptr ? "absent" : neighbor_state_name(entry->state), row.state) << "row " << i;
    if (entry == nullptr || row.state == "absent") continue;
    EXPECT_EQ(entry->mac, row.other_mac ? kOtherMac : kPeerMac) << "row " << i;
    EXPECT_EQ(host().resolve(kPeer, now).result, Resolution::kResolved) << "row " << i;
    EXPECT_EQ(!sink_->frames.empty(), row.stale) << "row " << i;
    sink_->clear();
  }
}

// ARP requests, replies and announcements of another host, with the address of the peer. Expects that the MAC address of
// the peer is kept and proved by at most one probe per 100 ms.
TEST_F(NeighborsTest, claims_of_another_host_do_not_replace_a_confirmed_neighbor) {
  NeighborRef ref = host().hold(*host().resolve(kPeer, 0s).entry);
  arp_reply(0s);
  sink_->clear();
  const uint32_t version = ref->version;
  size_t probes = 0;
  for (Nanos now = 1s; now < 3s; now += 1ms) {
    arp_reply(now, kOtherMac);
    receive_arp({ArpOperation::kRequest, kOtherMac, kPeer, MacAddress{}, kPeer}, now);
    receive_arp({ArpOperation::kRequest, kOtherMac, kPeer, MacAddress{}, *IpAddress::parse("10.0.0.9")}, now);
    EXPECT_EQ(host().use(*ref, now), Resolution::kResolved);
    host().poll(now);
    const auto sent = sent_arp();
    for (const auto& [link, arp] : sent) EXPECT_EQ(link.destination, kPeerMac);
    probes += sent.size();
    arp_reply(now, kOtherMac);
    if (!sent.empty()) arp_reply(now);
  }
  EXPECT_EQ(ref->mac, kPeerMac);
  EXPECT_EQ(ref->version, version);
  EXPECT_EQ(probes, 20U);
  EXPECT_EQ(host().stats().claims, 8000U);
}

// The address has moved to another host, which announces it. Expects that it is resolved again within 1.1 s of the
// announcement, after five probes without an answer.
TEST_F(NeighborsTest, claimed_address_is_resolved_again_when_the_known_neighbor_is_silent) {
  NeighborRef ref = host().hold(*host().resolve(kPeer, 0s).entry);
  arp_reply(0s);
  sink_->clear();
  receive_arp({ArpOperation::kRequest, kOtherMac, kPeer, MacAddress{}, kPeer}, 50ms);
  EXPECT_EQ(host().use(*ref, 99ms), Resolution::kResolved);
  EXPECT_TRUE(sink_->frames.empty());
  EXPECT_EQ(host().use(*ref, 100ms), Resolution::kResolved);
  EXPECT_EQ(run_until(1029ms), (std::vector<Nanos>{130ms, 190ms, 310ms, 550ms}));
  auto sent = sent_arp();
  ASSERT_EQ(sent.size(), 5U);
  for (const auto& [link, arp] : sent) EXPECT_EQ(link.destination, kPeerMac);
  EXPECT_EQ(host().use(*ref, 1029ms), Resolution::kResolved);
  run_until(1030ms);
  sent = sent_arp();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].first.destination, MacAddress::broadcast());
  arp_reply(1031ms, kOtherMac);
  EXPECT_EQ(host().use(*ref, 1031ms), Resolution::kResolved);
  EXPECT_EQ(ref->mac, kOtherMac);
}

// An address that was only learned from a request is replaced at once: nothing proves it.
TEST_F(NeighborsTest, unconfirmed_neighbor_is_replaced_by_the_next_message) {
  receive_arp({ArpOperation::kRequest, kOtherMac, kPeer, MacAddress{}, kIp}, 0s);
  receive_arp({ArpOperation::kRequest, kPeerMac, kPeer, MacAddress{}, kIp}, 1s);
  sink_->clear();
  EXPECT_EQ(host().resolve(kPeer, 1s).entry->mac, kPeerMac);
  const auto sent = sent_arp();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].first.destination, kPeerMac);
}

// Requester 0 sends to addresses of no host. Expects that its unanswered resolutions are limited, that requester 1 is
// not affected, and that answered, failed and evicted resolutions no longer count.
TEST_F(NeighborsTest, unanswered_resolutions_of_a_requester_are_limited) {
  config_.requesters = 2;
  config_.pending_per_requester = 8;
  config_.solicitations_per_second = 0;
  config_.capacity = 16;
  const auto address = [](uint32_t n) { return IpAddress::from_v4(0x0a000010 + n); };
  const auto started = [&](uint32_t first, uint32_t count, uint16_t requester, Nanos now) {
    uint32_t pending = 0;
    for (uint32_t n = first; n < first + count; ++n)
      pending += host().resolve(address(n), now, requester).result == Resolution::kPending ? 1 : 0;
    sink_->clear();
    return pending;
  };
  EXPECT_EQ(started(0, 50, 0, 0s), 8U);
  EXPECT_EQ(host().stats().refused, 42U);
  EXPECT_EQ(started(50, 4, 1, 0s), 4U);
  EXPECT_EQ(started(0, 8, 0, 0s), 8U) << "pending already";
  for (uint32_t n = 0; n < 3; ++n)
    receive_arp({ArpOperation::kReply, kPeerMac, address(n), kMac, kIp}, 1ms, kMac);
  EXPECT_EQ(started(100, 50, 0, 2ms), 3U);
  run_until(4s);
  sink_->clear();
  EXPECT_EQ(started(150, 50, 0, 4s), 8U) << "all others have failed";
  for (uint32_t n = 60; n < 90; ++n) host().resolve(address(n), 4s);  // evicts them
  EXPECT_EQ(started(200, 20, 0, 4s), 8U);
}

TEST_F(NeighborsTest, resolves_group_broadcast_and_own_addresses_without_a_request) {
  const std::pair<const char*, const char*> rows[] = {
      {"239.1.2.3", "01:00:5e:01:02:03"},       {"ff02::5", "33:33:00:00:00:05"},
      {"255.255.255.255", "ff:ff:ff:ff:ff:ff"}, {"10.0.0.255", "ff:ff:ff:ff:ff:ff"},
      {"10.0.0.1", "02:00:00:00:00:01"},        {"fd00::1", "02:00:00:00:00:01"},
  };
  for (const auto& [address, mac] : rows) {
    const Lookup lookup = host().resolve(*IpAddress::parse(address), 0s);
    EXPECT_EQ(lookup.result, Resolution::kResolved) << address;
    EXPECT_EQ(lookup.entry->mac, *MacAddress::parse(mac)) << address;
  }
  EXPECT_TRUE(sink_->frames.empty());
}

TEST_F(NeighborsTest, resolves_other_subnets_through_the_gateway_or_fails_without_one) {
  const IpAddress far = *IpAddress::parse("192.168.7.7");
  const IpAddress far6 = *IpAddress::parse("2001:db8::7");
  EXPECT_EQ(host().resolve(far, 0s).result, Resolution::kFailed);
  EXPECT_EQ(host().resolve(far, 0s).entry, nullptr);
  EXPECT_EQ(host().resolve(far6, 0s).entry, nullptr);
  EXPECT_TRUE(sink_->frames.empty());
  neighbors_.reset();
  config_.gateway_v4 = kPeer;
  config_.gateway_v6 = kPeer6;
  const Lookup lookup = host().resolve(far, 0s);
  EXPECT_EQ(lookup.result, Resolution::kPending);
  EXPECT_EQ(lookup.entry->address, kPeer);
  EXPECT_EQ(host().resolve(*IpAddress::parse("192.168.8.8"), 0s).entry, lookup.entry);
  EXPECT_EQ(host().resolve(far6, 0s).entry->address, kPeer6);
  EXPECT_EQ(host().resolve(*IpAddress::parse("fe80::9"), 0s).entry->address, *IpAddress::parse("fe80::9"));
}

// For answers to unauthenticated requests.
TEST_F(NeighborsTest, known_mac_is_that_of_the_next_hop_and_unknown_hosts_get_no_entry) {
  config_.gateway_v4 = *IpAddress::parse("10.0.0.254");
  const IpAddress far = *IpAddress::parse("192.0.2.9");
  EXPECT_EQ(host().known_mac(kPeer, 0s), std::nullopt);
  EXPECT_EQ(host().known_mac(far, 0s), std::nullopt);
  EXPECT_TRUE(sink_->frames.empty());
  EXPECT_EQ(host().table().size(), 2U) << "the own addresses";

  host().resolve(kPeer, 0s);
  EXPECT_EQ(host().known_mac(kPeer, 0s), std::nullopt) << "asked, not answered";
  arp_reply(0s);
  EXPECT_EQ(host().known_mac(kPeer, 0s), kPeerMac);
  EXPECT_EQ(host().known_mac(kIp, 0s), kMac);
  host().resolve(far, 0s);
  receive_arp({ArpOperation::kReply, kOtherMac, *config_.gateway_v4, kMac, kIp}, 0s, kMac);
  EXPECT_EQ(host().known_mac(far, 0s), kOtherMac);
  // A stale entry is probed, as with every use.
  sink_->clear();
  EXPECT_EQ(host().known_mac(kPeer, 31s), kPeerMac);
  EXPECT_EQ(sink_->frames.size(), 1U);
}

TEST_F(NeighborsTest, full_table_evicts_the_oldest_entry_except_held_and_static_ones) {
  config_.capacity = 4;
  config_.static_entries = {{kPeer, kPeerMac}};
  const auto address = [](uint32_t n) { return IpAddress::from_v4(0x0a000010 + n); };
  std::vector<NeighborRef> held;
  for (uint32_t n = 0; n < 3; ++n) held.push_back(host().hold(*host().resolve(address(n), 0s).entry));
  for (uint32_t n = 10; n < 60; ++n) EXPECT_NE(host().resolve(address(n), 0s).entry, nullptr);
  for (uint32_t n = 0; n < 3; ++n) EXPECT_EQ(held[n]->address, address(n));
  held.push_back(host().hold(*host().resolve(address(100), 0s).entry));
  EXPECT_EQ(host().resolve(kPeer, 0s).entry->mac, kPeerMac);
  // A flood of requests from unknown hosts does not enlarge the table.
  for (uint32_t n = 0; n < 200; ++n) {
    receive_arp({ArpOperation::kRequest, kOtherMac, address(n), MacAddress{}, kIp}, 0s);
    sink_->clear();
  }
  EXPECT_EQ(host().stats().replies, 200U);
  EXPECT_LE(host().table().size(), 4U + 3U);
}

// More peers are in use than the table's capacity. Expects that the table grows and held entries keep their
// addresses.
TEST_F(NeighborsTest, table_grows_with_the_neighbors_in_use) {
  config_.capacity = 4;
  const auto address = [](uint32_t n) { return IpAddress::from_v4(0x0a000010 + n); };
  std::vector<NeighborRef> held;
  std::vector<const Neighbor*> places;
  for (uint32_t n = 0; n < 100; ++n) {
    held.push_back(host().hold(*host().resolve(address(n), 0s).entry));
    places.push_back(&*held.back());
    receive_arp({ArpOperation::kReply, MacAddress::local(n + 10), address(n), kMac, kIp}, 0s, kMac);
    sink_->clear();
  }
  for (uint32_t n = 0; n < 100; ++n) {
    const Lookup lookup = host().resolve(address(n), 0s);
    EXPECT_EQ(lookup.entry, places[n]);
    EXPECT_EQ(lookup.result, Resolution::kResolved);
    EXPECT_EQ(lookup.entry->mac, MacAddress::local(n + 10));
  }
  EXPECT_EQ(host().stats().table_full, 0U);
}

TEST_F(NeighborsTest, requests_and_replies_have_separate_rate_limits) {
  config_.solicitations_per_second = 100;
  config_.replies_per_second = 50;
  for (uint32_t n = 0; n < 100; ++n) host().resolve(IpAddress::from_v4(0x0a000010 + n), 0s);
  EXPECT_EQ(sink_->frames.size(), 11U);  // the burst of a tenth of a second, and one
  sink_->clear();
  for (int n = 0; n < 100; ++n) receive_arp({ArpOperation::kRequest, kPeerMac, kPeer, MacAddress{}, kIp}, 0s);
  EXPECT_EQ(sink_->frames.size(), 6U);
  EXPECT_GT(host().stats().rate_limited, 150U);
  sink_->clear();
  // The waiting requests are sent as the rate permits.
  for (Nanos now = 1ms; now <= 500ms; now += 1ms) host().poll(now);
  EXPECT_EQ(sink_->frames.size(), 50U);
}

TEST_F(NeighborsTest, request_without_a_buffer_is_delayed_and_is_not_an_attempt) {
  sink_->dry = true;
  NeighborRef ref = host().hold(*host().resolve(kPeer, 0s).entry);
  run_until(10ms);
  EXPECT_EQ(host().stats().no_buffer, 11U);
  sink_->dry = false;
  EXPECT_EQ(run_until(3'500ms), (std::vector<Nanos>{11ms, 41ms, 101ms, 221ms, 461ms, 941ms, 1'901ms}));
  EXPECT_EQ(host().use(*ref, 3'500ms), Resolution::kFailed);
}

TEST_F(NeighborsTest, invalid_settings_are_rejected_with_the_reason) {
  const auto expect = [&](std::string_view part) {
    EXPECT_NE(creation_error().find(part), std::string::npos) << creation_error();
  };
  const NeighborConfig good = config_;
  config_.mac = MacAddress::broadcast();
  expect("ff:ff:ff:ff:ff:ff is not a valid MAC address of a host");
  config_ = good;
  config_.vlan_id = 4095;
  expect("VLAN 4095");
  config_ = good;
  config_.gateway_v4 = *IpAddress::parse("10.1.0.1");
  expect("gateway 10.1.0.1 is in none");
  config_ = good;
  config_.static_entries = {{kIp, kPeerMac}};
  expect("10.0.0.1 has more than one entry");
  config_.static_entries = {{kPeer, MacAddress{}}};
  expect("static neighbor 10.0.0.2");
  config_ = good;
  config_.addresses.push_back(*IpNetwork::parse("224.0.0.1/24"));
  expect("224.0.0.1 is not a unicast host address");
  config_ = good;
  config_.capacity = 0;
  expect("0 entries");
  config_ = good;
  config_.attempts = 0;
  expect("attempts must be at least 1");
  config_ = good;
  config_.first_wait = 2s;
  expect("the first wait at most the longest");
}

// Two hosts with random frame loss: finally both have resolved each other, and no buffer is lost.
TEST_F(NeighborsTest, resolved_addresses_are_correct_over_a_lossy_link) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Rng rng{seed};
    CollectingSink sinks[2] = {CollectingSink(pool_), CollectingSink(pool_)};
    const MacAddress macs[2] = {kMac, kPeerMac};
    const IpAddress addresses[2][2] = {{kIp, kIp6}, {kPeer, kPeer6}};
    std::unique_ptr<Neighbors> hosts[2];
    for (size_t h = 0; h < 2; ++h) {
      NeighborConfig config;
      config.mac = macs[h];
      config.addresses = {{addresses[h][0], 24}, {addresses[h][1], 64}};
      config.failed_hold = 2s;
      hosts[h] = *Neighbors::create(config, sinks[h]);
    }
    for (Nanos now{0}; now < 300s; now += 250ms) {
      for (size_t h = 0; h < 2; ++h) {
        hosts[h]->poll(now);
        if (rng.chance(0.1)) hosts[h]->resolve(addresses[1 - h][rng.below(2)], now);
        auto frames = std::exchange(sinks[h].frames, {});
        for (rte_mbuf* frame : frames) {
          if (!rng.chance(0.3)) hosts[1 - h]->handle(view_of(frame), frame, now);
          rte_pktmbuf_free(frame);
        }
      }
    }
    for (size_t h = 0; h < 2; ++h) {
      for (const IpAddress& peer : addresses[1 - h]) {
        const Lookup lookup = hosts[h]->resolve(peer, 300s);
        ASSERT_NE(lookup.entry, nullptr);
        if (lookup.result == Resolution::kResolved) {
          EXPECT_EQ(lookup.entry->mac, macs[1 - h]) << "seed " << seed;
        }
      }
      EXPECT_GT(hosts[h]->stats().replies, 0U);
    }
  }
}

TEST_F(NeighborsTest, random_frames_keep_the_table_bounded_and_own_addresses_unchanged) {
  Rng rng{11};
  config_.capacity = 16;
  std::vector<NeighborRef> held;
  Nanos now{0};
  for (int round = 0; round < 20'000; ++round) {
    now += Nanos{static_cast<int64_t>(rng.below(50'000'000))};
    const IpAddress some = IpAddress::from_v4(0x0a000000 + static_cast<uint32_t>(rng.below(40)));
    const Lookup lookup = host().resolve(some, now);
    if (lookup.entry != nullptr && rng.chance(0.05)) held.push_back(host().hold(*lookup.entry));
    if (!held.empty() && rng.chance(0.06)) held.pop_back();
    host().poll(now);
    receive(
        [&](std::span<uint8_t> out) {
          const MacAddress to = rng.chance(0.5) ? kMac : MacAddress::broadcast();
          uint32_t length = 0;
          if (rng.chance(0.5)) {
            const ArpMessage arp{rng.chance(0.5) ? ArpOperation::kRequest : ArpOperation::kReply,
                                 MacAddress::local(rng.below(50)), some, kMac, rng.chance(0.8) ? kIp : some};
            length = build_arp({to, kPeerMac, 0}, arp, out);
          } else {
            NeighborMessage nd =
                advertisement(MacAddress::local(rng.below(4)), rng.chance(0.5), rng.chance(0.5));
            nd.advertisement = rng.chance(0.5);
            nd.target = rng.chance(0.5) ? kIp6 : kPeer6;
            length = build_nd({to, kPeerMac, 0}, nd, out);
          }
          if (rng.chance(0.3)) out[rng.below(length)] = static_cast<uint8_t>(rng.next());
          return rng.chance(0.1) ? static_cast<uint32_t>(rng.below(length + 1)) : length;
        },
        now);
    sink_->clear();
  }
  EXPECT_GT(host().stats().replies, 1'000U);
  EXPECT_GT(host().stats().conflicts, 100U);
  EXPECT_GT(host().stats().malformed, 100U);
  EXPECT_LE(host().table().size(), host().table().capacity());
  EXPECT_EQ(host().resolve(kIp, now).entry->mac, kMac);
  EXPECT_EQ(host().resolve(kIp6, now).entry->mac, kMac);
  held.clear();
}

}  // namespace
}  // namespace roci

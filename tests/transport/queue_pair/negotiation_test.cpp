// Capability exchange between hosts. Extensions are sent only to peers that negotiated them.
#include <gtest/gtest.h>

#include <algorithm>
#include <unordered_set>

#include "support/hosts/capability_exchange.hpp"
#include "support/hosts/services.hpp"
#include "support/hosts/two_hosts.hpp"
#include "wire/mad/capability_mad.hpp"

namespace roci::test {
namespace {

constexpr ExtensionConfig kAutoOnly{.mode = ExtensionMode::kAuto};
constexpr ExtensionConfig kEverything{.mode = ExtensionMode::kAuto,
                                      .selective_repeat = true,
                                      .authenticate = true,
                                      .timestamps = true,
                                      .source_qpn = true,
                                      .data_lsn = false};

bool is_standard(const Packet& packet) {
  return packet.bth.reserved7 == 0 && !packet.extensions && !opcode_info(packet.bth.opcode).is_private();
}

ExtensionBlock lsn_block() {
  ExtensionBlock block;
  block.lsn = Lsn{0};
  return block;
}

// Does not wake the queue pair, because that would create its session.
const ExtensionSession* session_so_far(const Side& side) { return TwoHosts::core(side).session.get(); }

// Exchanges messages of all kinds in both directions.
void exchange(TwoHosts& net) {
  constexpr size_t kLength = 3000;
  fill_all(net.a, 1);
  fill_all(net.b, 100);
  for (uint64_t i = 0; i < 4; ++i) {
    ASSERT_EQ(net.b.receive(i, 500'000 + i * kLength, kLength), 0);
    ASSERT_EQ(net.a.post(IBV_WR_SEND, i, 0, kLength), 0);
    ASSERT_EQ(net.write(i, 0, kLength, 100 + i * kLength), 0);
    ASSERT_EQ(net.read(i, 100'000 + i * kLength, kLength, 100 + i * kLength), 0);
    ASSERT_EQ(net.b.post(IBV_WR_RDMA_READ, i, 100'000 + i * kLength, kLength, net.a.address(100),
                         net.a.region->rkey()),
              0);
  }
  net.run(100ms);
  const auto done_a = net.a.completions(), done_b = net.b.completions();
  EXPECT_EQ(done_a.size(), 12U);
  for (const ibv_wc& wc : done_a) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(done_b.size(), 8U);
  for (const ibv_wc& wc : done_b) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  for (size_t shift = 0; shift < 4 * kLength; shift += kLength) {
    EXPECT_TRUE(same_bytes(net.a, 0, net.b, 500'000 + shift, kLength)) << "SEND";
    EXPECT_TRUE(same_bytes(net.a, 0, net.b, 100 + shift, kLength)) << "WRITE";
    EXPECT_TRUE(same_bytes(net.a, 0, net.a, 100'000 + shift, kLength)) << "READ of what was written";
    EXPECT_TRUE(same_bytes(net.a, 100, net.b, 100'000 + shift, kLength)) << "READ of b";
  }
}

TEST(Negotiation, hosts_agree_on_the_extensions_that_both_enable) {
  TwoHosts net(
      {.extensions_a = kEverything, .extensions_b = {.mode = ExtensionMode::kAuto, .timestamps = true}});
  net.connect();
  ASSERT_TRUE(is_confirmed(net.a));
  ASSERT_TRUE(is_confirmed(net.b));
  EXPECT_EQ(session(net.a)->terms.capabilities, session(net.b)->terms.capabilities);
  EXPECT_FALSE(session(net.a)->terms.has(Capability::kSelectiveRepeat)) << "only one end wants it";
  EXPECT_FALSE(session(net.a)->terms.authenticate);
  EXPECT_EQ(net.a.counter("mads_sent"), 2U) << "one request, one answer";
  exchange(net);
}

// Connects new queue pairs between hosts that have already exchanged capabilities.
void connect_again(TwoHosts& net) {
  net.connect();
  net.run(100ms);
  net.make_qp(net.a);
  net.make_qp(net.b);
  net.connect();
}

TEST(Negotiation, queue_pair_creates_its_session_at_the_first_packet) {
  TwoHosts net({.extensions_a = kEverything, .extensions_b = kEverything});
  connect_again(net);
  EXPECT_EQ(session_so_far(net.a), nullptr);
  EXPECT_EQ(session_so_far(net.b), nullptr);
  EXPECT_FALSE(TwoHosts::core(net.b).extensions_undecided) << "but it is known what the peer speaks";
  const size_t before = net.a.device->host().arena().taken();
  bool with_block = false;
  net.watch = [&](const Packet& packet, char direction) {
    with_block |= direction == '>' && packet.extensions.has_value();
    return SimVerdict{};
  };
  ASSERT_EQ(net.write(0, 0, 100), 0);
  net.run(10ms);
  EXPECT_TRUE(with_block) << "the first packet is one of the session already";
  EXPECT_NE(session_so_far(net.a), nullptr);
  EXPECT_NE(session_so_far(net.b), nullptr);
  EXPECT_GT(net.a.device->host().arena().taken(), before);
  EXPECT_EQ(net.a.completions().size(), 1U);
  exchange(net);
}

// The receive window must apply before the queue pair receives its first packet, so the session is created at once.
TEST(Negotiation, host_with_a_receive_window_creates_the_session_at_once) {
  ExtensionConfig narrow = kAutoOnly;
  narrow.receive_window = 4096;
  TwoHosts net({.extensions_a = kAutoOnly, .extensions_b = narrow});
  connect_again(net);
  EXPECT_NE(session_so_far(net.b), nullptr);
  EXPECT_EQ(TwoHosts::core(net.a).requester.flow().receiver_window, 4096U);
}

TEST(Negotiation, both_ends_negotiate_selective_repeat_and_authentication) {
  TwoHosts net({.extensions_a = kEverything, .extensions_b = kEverything});
  net.connect();
  ASSERT_TRUE(is_confirmed(net.a));
  EXPECT_TRUE(session(net.a)->terms.has(Capability::kSelectiveRepeat));
  ASSERT_TRUE(session(net.a)->terms.authenticate);
  EXPECT_EQ(session(net.a)->terms.send_key, session(net.b)->terms.receive_key);
  EXPECT_EQ(session(net.b)->terms.send_key, session(net.a)->terms.receive_key);
  EXPECT_NE(session(net.a)->terms.send_key, session(net.a)->terms.receive_key);
  exchange(net);
  EXPECT_EQ(net.a.counter("feedback_unsigned"), 0U);
}

TEST(Negotiation, standard_peer_receives_mads_and_standard_packets_only) {
  TwoHosts net({.extensions_a = kEverything});
  uint32_t mads = 0, others = 0;
  net.watch = [&](const Packet& packet, char) {
    if (is_mad(packet)) {
      ++mads;
    } else {
      EXPECT_TRUE(is_standard(packet)) << opcode_info(packet.bth.opcode).name;
      ++others;
    }
    return SimVerdict{};
  };
  net.connect();
  exchange(net);
  net.run(1s);
  EXPECT_EQ(mads, Peers::kAttempts);
  EXPECT_GT(others, 20U);
  EXPECT_EQ(session(net.a), nullptr);
  EXPECT_FALSE(TwoHosts::core(net.a).extensions_undecided);
  EXPECT_EQ(net.b.counter("rx_unknown_qp"), Peers::kAttempts);
}

TEST(Negotiation, capability_request_is_repeated_after_a_loss) {
  for (const bool lose_answers : {false, true}) {
    TwoHosts net({.extensions_a = kAutoOnly, .extensions_b = kAutoOnly});
    uint32_t to_lose = 3;
    net.watch = [&](const Packet& packet, char direction) {
      SimVerdict verdict;
      if (!is_mad(packet) || direction != (lose_answers ? '<' : '>') || to_lose == 0) return verdict;
      --to_lose;
      verdict.drop = true;
      return verdict;
    };
    net.connect();
    EXPECT_FALSE(is_confirmed(net.a));
    net.run(1s);
    EXPECT_EQ(to_lose, 0U);
    EXPECT_TRUE(is_confirmed(net.a));
    exchange(net);
  }
}

// b has answered a, so b accepts extensions. a has not answered b, because b's requests are lost.
TEST(Negotiation, no_extension_is_sent_before_the_peer_has_confirmed) {
  TwoHosts net({.extensions_a = kEverything, .extensions_b = kEverything});
  net.watch = [&](const Packet& packet, char direction) {
    SimVerdict verdict;
    verdict.drop = is_mad(packet) && direction == '<' &&
                   parse_capability_mad(packet.payload).message.response;  // a never receives a response
    EXPECT_TRUE(is_mad(packet) || direction == '<' || is_standard(packet));
    return verdict;
  };
  net.connect();
  EXPECT_TRUE(is_confirmed(net.b));
  EXPECT_NE(session(net.a), nullptr);
  EXPECT_FALSE(is_confirmed(net.a));
  exchange(net);
  net.run(1s);
  EXPECT_FALSE(is_confirmed(net.a));
  exchange(net);
}

uint64_t error_events(Side& side) {
  uint64_t count = 0;
  while (const auto event = side.device->get_async_event())
    count += event->type == IBV_EVENT_QP_FATAL ? 1 : 0;
  return count;
}

TEST(Negotiation, mode_on_fails_for_standard_peers_and_waits_for_rocinante_peers) {
  TwoHosts without({.extensions_a = {.mode = ExtensionMode::kOn}});
  without.connect();
  ASSERT_EQ(without.a.post(IBV_WR_SEND, 1, 0, 100), 0);
  without.run(1s);
  EXPECT_EQ(without.a.qp->state(), IBV_QPS_ERR);
  ASSERT_EQ(without.a.completions().size(), 1U);
  EXPECT_EQ(error_events(without.a), 1U);
  EXPECT_TRUE(std::ranges::none_of(without.wire, [](const auto& line) { return line.starts_with("> RC_"); }));

  TwoHosts with({.extensions_a = {.mode = ExtensionMode::kOn}, .extensions_b = kAutoOnly});
  uint32_t to_lose = 2;
  with.watch = [&](const Packet& packet, char direction) {
    SimVerdict verdict;
    verdict.drop = is_mad(packet) && direction == '>' && to_lose > 0 && to_lose-- > 0;
    EXPECT_TRUE(is_mad(packet) || direction == '<' || is_confirmed(with.a));
    return verdict;
  };
  with.connect();
  exchange(with);
}

// A peer that has sent a request supports extensions, so the host repeats its own request more often before it gives
// up.
TEST(Negotiation, mode_on_waits_longer_for_a_peer_that_has_sent_a_request) {
  for (const Nanos silence : {Nanos{2s}, Nanos{100s}}) {
    TwoHosts net({.extensions_a = {.mode = ExtensionMode::kOn}, .extensions_b = kAutoOnly});
    net.watch = [&](const Packet& packet, char direction) {
      SimVerdict verdict;
      verdict.drop = is_mad(packet) && direction == '<' && net.now() < silence &&
                     parse_capability_mad(packet.payload).message.response;
      return verdict;
    };
    net.connect();
    ASSERT_EQ(net.write(1, 0, 100), 0);
    net.run(1s);
    EXPECT_EQ(net.a.completions().size(), 0U);
    EXPECT_EQ(net.a.qp->state(), IBV_QPS_RTS);
    net.run(10s);
    const auto done = net.a.completions();
    ASSERT_EQ(done.size(), 1U);
    EXPECT_EQ(done[0].status, silence < 10s ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR);
  }
}

// No work request is posted, so no completion can report the failure.
TEST(Negotiation, mode_on_raises_an_event_when_an_idle_queue_pair_fails) {
  TwoHosts net({.extensions_a = {.mode = ExtensionMode::kOn}});
  net.connect();
  net.run(1s);
  EXPECT_EQ(net.a.qp->state(), IBV_QPS_ERR);
  EXPECT_EQ(error_events(net.a), 1U);
}

class CapabilityExchange : public CapabilityPeer {};

TEST_F(CapabilityExchange, request_is_answered_and_its_extensions_are_received_but_not_sent) {
  const auto back = tell(mad(request()));
  ASSERT_EQ(back.size(), 1U);
  EXPECT_TRUE(back[0].response);
  EXPECT_TRUE(answers(back[0], request()));
  ASSERT_NE(session(host.side), nullptr);
  EXPECT_FALSE(is_confirmed(host.side));
  Packet send = host.request(Opcode::kRcSendOnly, 0, 8);
  ASSERT_EQ(host.side.receive(1, LoneHost::kGuard, 100), 0);
  send.with_extensions(lsn_block());
  EXPECT_EQ(host.receive(send), Lines{"RC_ACK 0 1f"});
  const auto wcs = host.side.completions();
  ASSERT_EQ(wcs.size(), 1U);
  EXPECT_EQ(wcs[0].byte_len, 8U) << "the block is no payload";
}

TEST_F(CapabilityExchange, block_is_dropped_while_undecided_and_is_payload_without_agreement) {
  ASSERT_TRUE(host.core().extensions_undecided);
  ASSERT_EQ(host.side.receive(1, LoneHost::kGuard, 100), 0);
  Packet send = host.request(Opcode::kRcSendOnly, 0, 8);
  send.with_extensions(lsn_block());
  EXPECT_TRUE(host.receive(send).empty());
  EXPECT_EQ(counter("extensions_refused"), 1U);
  host.wait(1s);  // no response arrives
  TwoHosts::wake(host.side);
  ASSERT_FALSE(host.core().extensions_undecided);
  EXPECT_EQ(host.receive(send), Lines{"RC_ACK 0 1f"});
  const auto wcs = host.side.completions();
  ASSERT_EQ(wcs.size(), 1U);
  EXPECT_EQ(wcs[0].byte_len, 8U + 12U) << "to the standard it is a reserved bit, and everything is payload";
}

TEST_F(CapabilityExchange, private_opcodes_are_unknown_unless_negotiated) {
  const auto receive_each = [&] {
    for (const Opcode opcode : {Opcode::kCcProbe, Opcode::kCcProbeResponse, Opcode::kCcReadAcknowledge,
                                Opcode::kCcIntResponse, Opcode::kCcRxWindow}) {
      EXPECT_TRUE(host.receive(host.request(opcode, 0)).empty());
    }
  };
  receive_each();
  EXPECT_EQ(counter("rx_unknown_opcode"), 5U);
  // Compatible, but without any capability that permits these opcodes.
  EXPECT_EQ(tell(mad(request())).size(), 1U);
  receive_each();
  EXPECT_EQ(counter("rx_unknown_opcode"), 10U);
}

TEST_F(CapabilityExchange, probe_is_answered_only_after_the_peer_has_confirmed) {
  CapabilityMessage asking = request();
  asking.offer.capabilities |= static_cast<uint32_t>(Capability::kProbes);
  EXPECT_EQ(tell(mad(asking)).size(), 1U);  // this request may be spoofed
  EXPECT_TRUE(host.receive(host.request(Opcode::kCcProbe, 0)).empty());
  EXPECT_EQ(counter("rx_unknown_opcode"), 1U);
  answer_its_request(asking.offer);
  EXPECT_EQ(host.receive(host.request(Opcode::kCcProbe, 0)), Lines{"CC_PROBE_RESP 0"});
}

TEST_F(CapabilityExchange, unexpected_feedback_is_counted_and_dropped) {
  CapabilityMessage message = request();
  message.offer.capabilities |=
      static_cast<uint32_t>(Capability::kProbes) | static_cast<uint32_t>(Capability::kReadAcks);
  tell(mad(message));
  answer_its_request(message.offer);
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(host.receive(host.request(Opcode::kCcProbeResponse, 0)).empty());
    EXPECT_TRUE(host.receive(host.request(Opcode::kCcReadAcknowledge, 0)).empty());
    EXPECT_TRUE(host.receive(host.request(Opcode::kCcIntResponse, 0)).empty());
  }
  EXPECT_EQ(counter("responses_ghost"), 200U);
  EXPECT_EQ(counter("rx_unknown_opcode"), 100U);
  // The host answers one probe per round: the latest of a burst.
  host.port().sent.clear();
  for (int i = 0; i < 32; ++i) host.port().put(encode_packet(host.request(Opcode::kCcProbe, 0).finish()));
  EXPECT_EQ(host.work().size(), 1U);
}

// The request may be forged. A restarted peer answers the host's own request.
TEST_F(CapabilityExchange, restarted_peer_is_queried_and_used_with_its_response) {
  answer_its_request();
  ASSERT_TRUE(is_confirmed(host.side));
  const ExtensionTerms before = session(host.side)->terms;
  const auto back = tell(mad(request_with(signing_offer(8))));
  ASSERT_EQ(back.size(), 2U);
  EXPECT_TRUE(back[0].response);
  EXPECT_FALSE(back[1].response) << "and asks for itself";
  EXPECT_NE(back[1].transaction, back[0].transaction);
  EXPECT_TRUE(is_confirmed(host.side));
  EXPECT_EQ(session(host.side)->terms, before) << "the request itself changes nothing";
  CapabilityOffer restarted = offer(8);
  restarted.capabilities &= ~static_cast<uint32_t>(Capability::kSelectiveRepeat);
  tell(mad(response_to(back[1], restarted)));
  EXPECT_TRUE(is_confirmed(host.side));
  EXPECT_FALSE(session(host.side)->terms.has(Capability::kSelectiveRepeat)) << "the terms of the response";
}

// The sender of the requests may be any host that spoofs the peer's address.
TEST_F(CapabilityExchange, forged_requests_cause_a_limited_number_of_queries) {
  answer_its_request();
  size_t questions = 0;
  const Nanos begin = host.now;
  for (uint64_t i = 0; i < 1000; ++i) {
    host.now += 100us;
    for (const CapabilityMessage& sent : tell(mad(request(100 + i)))) {
      if (sent.response) continue;
      ++questions;
      tell(mad(response_to(sent, offer())));
    }
  }
  EXPECT_GE(questions, 2U);
  EXPECT_LE(questions, static_cast<size_t>((host.now - begin) / Peers::kCausedInterval) + 1);
  EXPECT_TRUE(is_confirmed(host.side));
}

TEST_F(CapabilityExchange, response_without_a_matching_request_is_rejected) {
  host.port().sent.clear();
  CapabilityMessage response;
  response.response = true;
  response.transaction = 12345;
  response.offer = offer();
  tell(mad(response));
  EXPECT_EQ(counter("mads_refused"), 1U);
  EXPECT_EQ(session(host.side), nullptr);
  host.wait(1s);
  tell(mad(response));
  EXPECT_EQ(counter("mads_refused"), 2U);
}

TEST_F(CapabilityExchange, invalid_mads_are_counted_and_not_answered) {
  uint64_t refused = 0;
  const auto expect_refused = [&](const char* what, Packet packet) {
    EXPECT_TRUE(tell(std::move(packet)).empty()) << what;
    EXPECT_EQ(counter("mads_refused"), ++refused) << what;
  };
  Packet p = mad(request());
  p.deth->qkey = QKey{1};
  expect_refused("another Q_Key", p);
  p = mad(request());
  p.deth->source_qp = Qpn{17};
  expect_refused("not from queue pair 1", p);
  p = mad(request());
  p.payload.resize(255);
  p.pad.assign(1, 0);
  expect_refused("short", p);
  p = mad(request());
  p.payload.resize(0);
  expect_refused("empty", p);
  p = mad(request());
  p.payload[1] = 0x07;
  expect_refused("another class", p);
  p = mad(request());
  p.payload[40] ^= 1;
  expect_refused("bad magic", p);
  Packet send = host.request(Opcode::kRcSendOnly, 0, 256);
  send.to(kManagementQp, Psn{0});
  expect_refused("RC to queue pair 1", send);
  p = mad(request());
  p.destination = IpAddress::from_v4(0x0a000009);
  EXPECT_TRUE(tell(p).empty());
  EXPECT_EQ(counter("rx_not_for_host"), 1U) << "to another address";
  EXPECT_EQ(session(host.side), nullptr);
}

TEST_F(CapabilityExchange, request_flood_is_answered_at_a_limited_rate) {
  size_t answered = 0;
  for (int i = 0; i < 3000; ++i) answered += tell(mad(request())).size();
  EXPECT_GE(answered, 900U);
  EXPECT_LE(answered, 1010U) << "a tenth of a second's 10,000 at one instant";
  EXPECT_GT(counter("mads_refused"), 1900U);
}

TEST_F(CapabilityExchange, unknown_peers_are_limited_and_never_evict_one_in_use) {
  answer_its_request();
  const Peers& peers = host.side.device->host().worker(0).peers();
  ASSERT_EQ(peers.size(), 1U);
  size_t most = 0;
  for (uint32_t i = 0; i < Peers::kMax + 1000; ++i) {
    host.now += 150us;  // below the limit of the response rate
    Packet packet = mad(request());
    packet.source = IpAddress::from_v4(0x0b000000 + i);
    tell(packet);
    most = std::max(most, peers.size());
  }
  EXPECT_EQ(most, Peers::kMax);
  EXPECT_LE(peers.size(), 1002U);  // the oldest were evicted together
  EXPECT_TRUE(is_confirmed(host.side));
}

// A look-up of a peer must not cost more for addresses that a sender has chosen.
TEST_F(CapabilityExchange, peers_with_one_unkeyed_hash_do_not_share_a_chain) {
  constexpr uint32_t kPeers = 1000;
  std::unordered_set<IpAddress> unkeyed;
  while (unkeyed.size() <= kPeers)
    unkeyed.insert(IpAddress::from_v4(0x0a000002 + static_cast<uint32_t>(unkeyed.size())));
  const size_t buckets = unkeyed.bucket_count();
  const Peers& peers = host.side.device->host().worker(0).peers();
  uint32_t sent = 0;
  for (uint32_t n = 0; sent < kPeers; ++n) {
    const IpAddress source = IpAddress::from_v4(0x0b000000 + n);
    if (std::hash<IpAddress>{}(source) % buckets != 0) continue;
    host.now += 150us;  // below the limit of the response rate
    Packet packet = mad(request());
    packet.source = source;
    tell(packet);
    ++sent;
  }
  EXPECT_EQ(peers.size(), kPeers + 1);
  EXPECT_LE(peers.longest_chain(), 16U);
}

// The answer contains the key material for the host with the source address. Another host of the link, which sees only
// frames to its own MAC address, must not get it.
TEST_F(CapabilityExchange, answer_goes_to_the_known_neighbor_and_not_to_the_source_mac) {
  const auto destinations = [&](const IpAddress& source) {
    Packet asked = mad(request());
    asked.source = source;
    asked.source_mac = MacAddress::local(9);
    host.port().put(encode_packet(asked.finish()));
    std::vector<MacAddress> out;
    for (const Packet& sent : host.work_for_packets()) {
      if (is_mad(sent) && sent.destination == source) out.push_back(sent.destination_mac);
    }
    return out;
  };
  EXPECT_EQ(destinations(IpAddress::from_v4(0x0a000002)), std::vector{MacAddress::local(2)});
  // An unknown host gets the answer without address resolution, so that requests cannot fill the neighbor table.
  EXPECT_EQ(destinations(IpAddress::from_v4(0x0a000007)), std::vector{MacAddress::local(9)});
}

TEST_F(CapabilityExchange, rejected_request_makes_the_peer_standard_at_once) {
  Packet refusal = mad(its_request());  // the response of kernels without an agent
  refusal.payload[3] = 0x81;
  refusal.payload[5] = 0x0c;
  tell(refusal);
  ASSERT_EQ(host.side.receive(1, LoneHost::kGuard, 100), 0);
  host.receive(host.request(Opcode::kRcSendOnly, 0, 8));
  EXPECT_FALSE(host.core().extensions_undecided);
  EXPECT_EQ(session(host.side), nullptr);
  EXPECT_TRUE(datagrams().empty());
  host.wait(1s);
  EXPECT_EQ(counter("mads_sent"), 2U) << "at the start and the one that was refused";
}

}  // namespace
}  // namespace roci::test

// Authentication of feedback: it survives forged capability requests and new sessions, and can be required.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "support/hosts/capability_exchange.hpp"
#include "support/hosts/services.hpp"
#include "support/hosts/two_hosts.hpp"
#include "transport/queue_pair/auth_history.hpp"

namespace roci::test {
namespace {

constexpr SipKey kKey{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
constexpr SipKey kOtherKey{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 17};

ExtensionConfig prefer(std::optional<SipKey> key = {}) {
  return {.mode = ExtensionMode::kAuto, .selective_repeat = true, .authenticate = true, .network_key = key};
}
ExtensionConfig require(const SipKey& key = kKey) {
  ExtensionConfig config = prefer(key);
  config.require_authentication = true;
  return config;
}
LoneHostOptions with(const ExtensionConfig& extensions) {
  LoneHostOptions o;
  o.extensions = extensions;
  return o;
}

class AuthenticatedPeer : public CapabilityPeer {
 protected:
  AuthenticatedPeer() : CapabilityPeer(options(true)) {}
  // Confirms the peer; one of its signed acknowledgments has arrived.
  void begin() {
    answer_its_request(signing_offer());
    ASSERT_TRUE(is_confirmed(host.side));
    ASSERT_TRUE(session(host.side)->terms.authenticate);
    post_send(1);
    host.receive_bytes(signed_ack(0, 0));
    ASSERT_EQ(host.statuses(), Statuses{IBV_WC_SUCCESS});
  }
  // Expects that the peer is still confirmed, and that only signed feedback is accepted.
  void expect_authenticated(int ahead, uint64_t sequence) {
    EXPECT_TRUE(is_confirmed(host.side));
    const uint64_t refused = counter("feedback_unsigned");
    post_send(2);
    host.receive(host.response(Opcode::kRcAcknowledge, ahead));
    EXPECT_TRUE(host.statuses().empty()) << "an unsigned acknowledgment";
    EXPECT_EQ(counter("feedback_unsigned"), refused + 1);
    host.receive_bytes(signed_ack(ahead, sequence));
    EXPECT_EQ(host.statuses(), Statuses{IBV_WC_SUCCESS}) << "a signed one";
    EXPECT_EQ(counter("feedback_unsigned"), refused + 1);
    EXPECT_EQ(counter("extensions_refused"), 0U);
  }
};

TEST_F(AuthenticatedPeer, forged_request_without_capabilities_changes_nothing) {
  begin();
  const ExtensionTerms before = session(host.side)->terms;
  CapabilityOffer nothing;
  nothing.incarnation = 0x666;
  const auto back = tell(mad(request_with(nothing)));
  ASSERT_EQ(back.size(), 2U);
  EXPECT_FALSE(back[1].response) << "the peer is asked whether it restarted";
  ASSERT_NE(session(host.side), nullptr);
  EXPECT_EQ(session(host.side)->terms, before);
  expect_authenticated(1, 1);
  // The peer answers that it did not restart.
  tell(mad(response_to(back[1], signing_offer())));
  EXPECT_EQ(session(host.side)->terms, before);
  expect_authenticated(2, 2);
}

// Any host can ask the peer for its incarnation.
TEST_F(AuthenticatedPeer, forged_request_with_the_incarnation_of_the_peer_changes_nothing) {
  begin();
  const ExtensionTerms before = session(host.side)->terms;
  EXPECT_EQ(tell(mad(request())).size(), 1U) << "no AUTH; answered, and the peer is not asked";
  CapabilityOffer other_material = signing_offer();
  other_material.auth.fill(0x66);
  EXPECT_EQ(tell(mad(request_with(other_material))).size(), 1U);
  ASSERT_NE(session(host.side), nullptr);
  EXPECT_EQ(session(host.side)->terms, before);
  expect_authenticated(1, 1);
}

TEST_F(AuthenticatedPeer, forged_request_before_confirmation_does_not_replace_the_agreement) {
  tell(mad(request_with(signing_offer())));
  ASSERT_NE(session(host.side), nullptr);
  ASSERT_TRUE(session(host.side)->terms.authenticate);
  CapabilityOffer nothing;
  nothing.incarnation = 0x666;
  tell(mad(request_with(nothing)));
  ASSERT_NE(session(host.side), nullptr);
  EXPECT_TRUE(session(host.side)->terms.authenticate);
}

TEST_F(AuthenticatedPeer, restarted_peer_is_used_with_its_new_key) {
  begin();
  const ExtensionTerms before = session(host.side)->terms;
  const auto back = tell(mad(request_with(signing_offer(8))));
  ASSERT_EQ(back.size(), 2U);
  tell(mad(response_to(back[1], signing_offer(8))));
  ASSERT_TRUE(is_confirmed(host.side));
  EXPECT_NE(session(host.side)->terms.send_key, before.send_key);
}

// The sequences of AUTH in the acknowledgments that the host sends for a request.
class ReconnectedQueuePair : public AuthenticatedPeer {
 protected:
  uint32_t sequence_of_ack(int ahead) {
    EXPECT_EQ(host.side.receive(1, LoneHost::kGuard, 100), 0);
    host.port().put(encode_packet(host.request(Opcode::kRcSendOnly, ahead, 8).finish()));
    for (const Packet& sent : host.work_for_packets()) {
      if (sent.bth.opcode != Opcode::kRcAcknowledge) continue;
      EXPECT_TRUE(sent.extensions && sent.extensions->auth);
      return sent.extensions->auth->sequence;
    }
    ADD_FAILURE() << "no acknowledgment";
    return 0;
  }
  void reconnect() {
    host.to_bare(IBV_QPS_RESET);
    host.connect();
    (void)host.statuses();
  }
};

TEST_F(ReconnectedQueuePair, refuses_recorded_feedback_of_its_earlier_session) {
  begin();
  post_send(2);
  const ByteVector first = signed_ack(0, 0), second = signed_ack(1, 1);
  host.receive_bytes(second);
  ASSERT_EQ(host.statuses(), Statuses{IBV_WC_SUCCESS});
  const SipKey key = session(host.side)->terms.receive_key;
  reconnect();
  post_send(1);
  ASSERT_EQ(session(host.side)->terms.receive_key, key) << "the same two queue pairs";
  host.receive_bytes(first);
  host.receive_bytes(second);
  EXPECT_TRUE(host.statuses().empty());
  EXPECT_EQ(counter("feedback_unsigned"), 2U);
  host.receive(host.response(Opcode::kRcAcknowledge, 0));
  EXPECT_TRUE(host.statuses().empty()) << "unsigned feedback of a peer that has signed";
  host.receive_bytes(signed_ack(0, 2));
  EXPECT_EQ(host.statuses(), Statuses{IBV_WC_SUCCESS});
}

TEST_F(ReconnectedQueuePair, never_signs_two_packets_with_one_sequence) {
  begin();
  std::set<uint32_t> sequences;
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(sequences.insert(sequence_of_ack(0)).second) << round;
    EXPECT_TRUE(sequences.insert(sequence_of_ack(1)).second) << round;
    reconnect();
  }
}

// Both ends reset and connect their queue pairs again, so both derive the keys of the earlier connection.
TEST(Authentication, both_ends_continue_after_a_reset) {
  TwoHosts net({.extensions_a = prefer(), .extensions_b = prefer()});
  for (int round = 0; round < 3; ++round) {
    net.connect();
    for (uint64_t i = 0; i < 5; ++i) ASSERT_EQ(net.write(i, 0, 3000), 0);
    net.run(100ms);
    const auto done = net.a.completions();
    ASSERT_EQ(done.size(), 5U) << round;
    for (const ibv_wc& wc : done) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    for (Side* side : {&net.a, &net.b}) {
      ASSERT_TRUE(is_confirmed(*side)) << round;
      EXPECT_TRUE(session(*side)->terms.authenticate) << round;
      EXPECT_EQ(side->counter("feedback_unsigned"), 0U);
      ibv_qp_attr attr{};
      attr.qp_state = IBV_QPS_RESET;
      must(side->qp->modify(attr, IBV_QP_STATE));
    }
  }
}

TEST(AuthHistory, stores_the_highest_sequence_of_each_key) {
  AuthHistory history;
  ASSERT_TRUE(history.prepare());
  EXPECT_EQ(history.next(kKey), 0U);
  history.store(kKey, 5);
  history.store(kOtherKey, 7);
  history.store(kKey, 3);
  EXPECT_EQ(history.next(kKey), 5U);
  EXPECT_EQ(history.next(kOtherKey), 7U);
  history.store(kKey, 9);
  EXPECT_EQ(history.next(kKey), 9U);
  // Equal first bytes select the same set of 8; the oldest entry is replaced.
  for (uint8_t i = 100; i < 107; ++i) {
    SipKey key = kKey;
    key[15] = i;
    history.store(key, i);
  }
  EXPECT_EQ(history.next(kKey), 0U);
  EXPECT_EQ(history.next(kOtherKey), 7U);
}

// SENDs and READs of a, and WRITEs of b.
void expect_works(TwoHosts& net) {
  constexpr size_t kLength = 3000, kSent = 0, kRead = 10'000, kWritten = 20'000, kArrives = 500'000;
  fill_all(net.a, 1);
  fill_all(net.b, 100);
  for (uint64_t i = 0; i < 4; ++i) {
    const size_t shift = i * kLength;
    ASSERT_EQ(net.b.receive(i, kArrives + shift, kLength), 0);
    ASSERT_EQ(net.a.post(IBV_WR_SEND, i, kSent, kLength), 0);
    ASSERT_EQ(net.read(i, kArrives + shift, kLength, kRead), 0);
    ASSERT_EQ(net.b.post(IBV_WR_RDMA_WRITE, i, kWritten, kLength, net.a.address(600'000 + shift),
                         net.a.region->rkey()),
              0);
  }
  net.run(100ms);
  for (Side* side : {&net.a, &net.b}) {
    const auto done = side->completions();
    EXPECT_EQ(done.size(), 8U);
    for (const ibv_wc& wc : done) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  }
  for (size_t shift = 0; shift < 4 * kLength; shift += kLength) {
    EXPECT_TRUE(same_bytes(net.a, kSent, net.b, kArrives + shift, kLength)) << "SEND";
    EXPECT_TRUE(same_bytes(net.b, kRead, net.a, kArrives + shift, kLength)) << "READ";
    EXPECT_TRUE(same_bytes(net.b, kWritten, net.a, 600'000 + shift, kLength)) << "WRITE";
  }
}

TEST(RequiredAuthentication, connects_hosts_with_the_same_network_key) {
  TwoHosts net({.extensions_a = require(), .extensions_b = require()});
  uint32_t acknowledgments = 0;
  net.watch = [&](const Packet& packet, char) {
    if (packet.bth.opcode == Opcode::kRcAcknowledge) {
      ++acknowledgments;
      EXPECT_TRUE(packet.extensions && packet.extensions->auth);
    }
    return SimVerdict{};
  };
  net.connect();
  ASSERT_TRUE(is_confirmed(net.a));
  ASSERT_TRUE(session(net.a)->terms.authenticate);
  EXPECT_EQ(session(net.a)->terms.send_key, session(net.b)->terms.receive_key);
  EXPECT_EQ(session(net.b)->terms.send_key, session(net.a)->terms.receive_key);
  expect_works(net);
  EXPECT_GT(acknowledgments, 0U);
  for (Side* side : {&net.a, &net.b}) {
    EXPECT_EQ(side->counter("feedback_unsigned"), 0U);
    EXPECT_EQ(side->counter("mads_refused"), 0U);
    EXPECT_EQ(side->counter("rx_unauthenticated"), 0U);
  }
}

// Whether a queue pair of `a` sent a packet other than management datagrams.
bool sends(const TwoHosts& net) {
  return std::ranges::any_of(net.wire, [](const auto& line) { return line.starts_with("> RC_"); });
}

TEST(RequiredAuthentication, fails_queue_pairs_with_other_peers_in_both_directions) {
  const std::pair<const char*, ExtensionConfig> peers[] = {
      {"another network key", require(kOtherKey)},
      {"another network key, preferred", prefer(kOtherKey)},
      {"AUTH without a network key", prefer()},
      {"extensions without AUTH", {.mode = ExtensionMode::kAuto}},
      {"no extensions", {.mode = ExtensionMode::kOff}}};
  for (const auto& [what, peer] : peers) {
    SCOPED_TRACE(what);
    TwoHosts net({.extensions_a = require(), .extensions_b = peer});
    net.connect();
    const bool receives = net.a.qp->state() == IBV_QPS_RTS;
    if (receives) {
      ASSERT_EQ(net.a.receive(1, 0, 4000), 0);
    }
    ASSERT_EQ(net.a.post(IBV_WR_SEND, 1, 0, 100), 0);
    ASSERT_EQ(net.b.post(IBV_WR_SEND, 2, 0, 100), 0);
    const auto untouched = net.a.memory;
    net.run(10s);
    EXPECT_EQ(net.a.qp->state(), IBV_QPS_ERR);
    EXPECT_FALSE(sends(net)) << "nor an acknowledgment";
    EXPECT_EQ(net.a.counter("requests_received"), 0U);
    EXPECT_TRUE(net.a.memory == untouched);
    const auto flushed = net.a.completions(), failed = net.b.completions();
    EXPECT_EQ(flushed.size(), receives ? 2U : 1U);
    for (const ibv_wc& wc : flushed) EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(failed.size(), 1U);
    for (const ibv_wc& wc : failed) EXPECT_NE(wc.status, IBV_WC_SUCCESS);
  }
}

TEST(RequiredAuthentication, connects_with_a_host_that_prefers_it_with_the_same_key) {
  TwoHosts net({.extensions_a = require(), .extensions_b = prefer(kKey)});
  net.connect();
  ASSERT_TRUE(is_confirmed(net.a));
  EXPECT_TRUE(session(net.b)->terms.authenticate);
  expect_works(net);
}

TEST(PreferredAuthentication, falls_back_to_exchanged_keys_without_a_common_network_key) {
  for (const auto& peer : {prefer(), prefer(kOtherKey)}) {
    TwoHosts net({.extensions_a = prefer(kKey), .extensions_b = peer});
    net.connect();
    ASSERT_TRUE(is_confirmed(net.a));
    EXPECT_TRUE(session(net.a)->terms.authenticate);
    EXPECT_FALSE(session(net.a)->terms.has(Capability::kNetworkAuth));
    EXPECT_EQ(session(net.a)->terms.send_key, session(net.b)->terms.receive_key);
    expect_works(net);
    EXPECT_EQ(net.a.counter("feedback_unsigned"), 0U);
  }
}

TEST(RequiredAuthentication, refuses_queue_pair_types_without_it) {
  LoneHost host(with(require()));
  for (const ibv_qp_type type : {IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND}) {
    ibv_qp_init_attr init{};
    init.qp_type = type;
    init.cap = {
        .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
    const auto made = host.side.pd->create_qp(&init, *host.side.cq, *host.side.cq);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, EOPNOTSUPP);
    EXPECT_NE(made.error().message.find("authenticate: require"), std::string::npos) << made.error().message;
  }
}

TEST(RequiredAuthentication, is_rejected_without_a_network_key_or_with_mode_off) {
  ExtensionConfig no_key = require();
  no_key.network_key.reset();
  ExtensionConfig off = require();
  off.mode = ExtensionMode::kOff;
  ExtensionConfig unused_key = prefer(kKey);
  unused_key.authenticate = false;
  for (const ExtensionConfig& wrong : {no_key, off, unused_key})
    EXPECT_THROW(LoneHost{with(wrong)}, std::exception);
}

class RequiringHost : public CapabilityPeer {
 protected:
  RequiringHost() : CapabilityPeer(with(require())) {}
  // Sends a request with the expected PSN. Expects that the host drops it without an answer.
  void expect_closed() {
    const uint64_t before = counter("rx_unauthenticated");
    EXPECT_TRUE(host.receive(host.request(Opcode::kRcSendOnly, 0, 8)).empty());
    EXPECT_EQ(counter("rx_unauthenticated"), before + 1);
    EXPECT_EQ(counter("requests_received"), 0U);
    EXPECT_EQ(session(host.side), nullptr);
  }
  NetworkKeys wrong_keys() { return derive_network_keys(kOtherKey); }
};

TEST_F(RequiringHost, drops_every_packet_until_the_peer_has_authenticated) {
  ASSERT_EQ(host.side.receive(1, LoneHost::kGuard, 100), 0);
  expect_closed();
  tell(mad(request_with(network_offer())));  // unsigned
  expect_closed();
  tell(mad(request_with(network_offer()), wrong_keys()));
  expect_closed();
  tell(mad(request_with(network_offer()), network));  // signed; may be replayed, so it does not confirm
  expect_closed();
  answer_its_request(network_offer(), network);
  ASSERT_TRUE(is_confirmed(host.side));
  EXPECT_EQ(host.receive(host.request(Opcode::kRcSendOnly, 0, 8)), Lines{"RC_ACK 0 1f"});
}

TEST_F(RequiringHost, accepts_only_signed_responses) {
  const CapabilityMessage asked = its_request();
  EXPECT_EQ(asked.offer.auth, AuthMaterial{}) << "no AUTH without the network key";
  for (const CapabilityOffer& with : {offer(), signing_offer(), network_offer()}) {
    tell(mad(response_to(asked, with)));
    tell(mad(response_to(asked, with), wrong_keys()));
  }
  // A signed response of another exchange.
  CapabilityMessage old = response_to(asked, network_offer());
  ++old.transaction;
  tell(mad(old, network));
  EXPECT_EQ(session(host.side), nullptr);
  EXPECT_EQ(counter("mads_refused"), 7U);
  tell(mad(response_to(asked, network_offer()), network));
  EXPECT_TRUE(is_confirmed(host.side));
}

TEST_F(RequiringHost, established_peer_is_not_changed_by_unauthenticated_datagrams) {
  answer_its_request(network_offer(), network);
  const ExtensionTerms before = session(host.side)->terms;
  const auto expect_unchanged = [&] {
    ASSERT_NE(session(host.side), nullptr);
    EXPECT_EQ(session(host.side)->terms, before);
    EXPECT_EQ(host.side.qp->state(), IBV_QPS_RTS);
  };
  const auto back = tell(mad(request(8)));
  ASSERT_EQ(back.size(), 2U);
  expect_unchanged();
  // A host that reads the question forges its response, or a refusal.
  tell(mad(response_to(back[1], offer(8))));
  tell(mad(response_to(back[1], network_offer(8)), wrong_keys()));
  Packet refusal = mad(back[1]);
  refusal.payload[3] = 0x81;
  refusal.payload[5] = 0x0c;
  tell(refusal);
  expect_unchanged();
  host.wait(10s);  // nor does silence
  expect_unchanged();
  post_send(1);
  host.receive(host.response(Opcode::kRcAcknowledge, 0));
  EXPECT_TRUE(host.statuses().empty()) << "unsigned feedback is refused from the start";
  host.receive_bytes(signed_ack(0, 0));
  EXPECT_EQ(host.statuses(), Statuses{IBV_WC_SUCCESS});
}

TEST_F(RequiringHost, restarted_peer_authenticates_again) {
  answer_its_request(network_offer(), network);
  const ExtensionTerms before = session(host.side)->terms;
  const auto back = tell(mad(request_with(network_offer(8)), network));
  ASSERT_EQ(back.size(), 2U);
  EXPECT_EQ(session(host.side)->terms, before) << "the request may be replayed";
  tell(mad(response_to(back[1], network_offer(8)), network));
  ASSERT_TRUE(is_confirmed(host.side));
  EXPECT_NE(session(host.side)->terms.send_key, before.send_key);
  EXPECT_NE(session(host.side)->terms.receive_key, before.receive_key)
      << "no key outlives an incarnation of either host";
}

}  // namespace
}  // namespace roci::test

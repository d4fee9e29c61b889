// Wire mechanisms for LDCP (draft-dai-tsvwg-rdma-ldcp section 3): byte sequences in both directions, reliable echo of
// ECN marks, acknowledged READ responses, round-trip times, and validation of this feedback.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "engine/worker/flow_count.hpp"
#include "support/hosts/lone_host.hpp"
#include "support/hosts/two_hosts.hpp"
#include "wire/extensions/extension_auth.hpp"

namespace roci::test {
namespace {

constexpr ExtensionConfig kAuto{.mode = ExtensionMode::kAuto};
constexpr ExtensionConfig kTimed{.mode = ExtensionMode::kAuto, .timestamps = true};
constexpr ExtensionConfig kSigned{.mode = ExtensionMode::kAuto, .authenticate = true};

void expect_all_successful(const std::vector<ibv_wc>& completions, size_t count) {
  EXPECT_EQ(completions.size(), count);
  for (const ibv_wc& wc : completions) EXPECT_EQ(wc.status, IBV_WC_SUCCESS) << wc.wr_id;
}

// SENDs, WRITEs, READs and atomics from a to b: 3 x (1500 + 5000 + 7000) bytes and 3 x 8.
void mixed_traffic(TwoHosts& net) {
  for (uint64_t i = 0; i < 3; ++i) {
    ASSERT_EQ(net.b.receive(i, 500'000, 4000), 0);
    ASSERT_EQ(net.a.post(IBV_WR_SEND, i, 0, 1500), 0);
    ASSERT_EQ(net.write(i, 0, 5000, 1000), 0);
    ASSERT_EQ(net.read(i, 20000, 7000, 1000), 0);
    ASSERT_EQ(net.a.atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, i, 64, net.b.address(64), net.b.region->rkey(), 1),
              0);
  }
  net.run(1s);
  expect_all_successful(net.a.completions(), 12);
}

void expect_same_bytes_at_both_ends(TwoHosts& net) {
  const Requester& requester = TwoHosts::core(net.a).requester;
  const Responder& responder = TwoHosts::core(net.b).responder;
  EXPECT_EQ(requester.flow().next, requester.flow().acknowledged);
  EXPECT_EQ(requester.flow().next, responder.flow().received);
  EXPECT_EQ(requester.response_flow().received, responder.response_flow().next);
}

TEST(Ldcp, both_ends_count_the_same_bytes_in_each_direction) {
  for (const auto& extensions : {ExtensionConfig{.mode = ExtensionMode::kOff}, kAuto}) {
    TwoHosts net({.extensions_a = extensions, .extensions_b = extensions});
    net.connect();
    mixed_traffic(net);
    expect_same_bytes_at_both_ends(net);
    // A READ request counts as its RETH and an atomic as its header. Responses have a byte sequence of their own.
    EXPECT_EQ(TwoHosts::core(net.a).requester.flow().next, Lsn{3 * (1500 + 5000 + 16 + 28)});
    EXPECT_EQ(TwoHosts::core(net.a).requester.response_flow().received, Lsn{3 * (7000 + 8)});
  }
}

TEST(Ldcp, retransmitted_bytes_are_counted_once) {
  TwoHosts net({.timeout = 8, .extensions_a = kAuto, .extensions_b = kAuto});
  net.connect();
  uint32_t seen = 0;
  net.lose = [&](const std::string&) { return ++seen % 7 == 0; };
  mixed_traffic(net);
  expect_same_bytes_at_both_ends(net);
  EXPECT_EQ(net.a.counter("feedback_impossible"), 0U);
}

TEST(Ldcp, byte_sequence_continues_beyond_32_bits) {
  TwoHosts net({.extensions_a = kAuto, .extensions_b = kAuto});
  net.connect();
  const Lsn start{0xffff'fffe};
  TwoHosts::core(net.a).requester.set_first_lsn(start);
  TwoHosts::core(net.b).responder.set_first_lsn(start);
  std::vector<uint64_t> told;
  net.watch = [&](const Packet& packet, char direction) {
    if (direction == '<' && packet.extensions && packet.extensions->lsn)
      told.push_back(packet.extensions->lsn->value());
    return SimVerdict{};
  };
  ASSERT_EQ(net.write(1, 0, 5000), 0);
  net.run();
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.back(), start.value() + 5000);
  EXPECT_EQ(net.a.counter("feedback_impossible"), 0U);
}

// Receives one-packet requests in one burst. A request is marked CE where `marks` has a 'C'.
void put_burst(LoneHost& host, const std::string& marks) {
  for (size_t i = 0; i < marks.size(); ++i) {
    Packet packet = host.write(Opcode::kRcWriteOnly, static_cast<int>(i), 8 * i, 8, 8);
    if (marks[i] == 'C') packet.with_traffic_class(3);
    host.port().put(encode_packet(packet.finish()));
  }
}
Lines acks_of_burst(LoneHost& host, const std::string& marks) {
  put_burst(host, marks);
  Lines acks;
  for (const Packet& sent : host.work_for_packets()) {
    if (sent.bth.opcode == Opcode::kCnp) continue;  // tested in notification_point_test.cpp
    EXPECT_EQ(sent.bth.opcode, Opcode::kRcAcknowledge);
    acks.push_back(std::to_string(sent.bth.psn - Psn{100}) + (sent.bth.becn ? " marked" : ""));
  }
  return acks;
}

TEST(Ldcp, acknowledgments_are_split_where_ce_marks_change) {
  const auto acks = [](const std::string& marks) {
    LoneHost host;
    return acks_of_burst(host, marks);
  };
  EXPECT_EQ(acks("....."), (Lines{"4"}));
  EXPECT_EQ(acks("..CC."), (Lines{"1", "3 marked", "4"}));
  EXPECT_EQ(acks("C"), (Lines{"0 marked"}));
  EXPECT_EQ(acks("CCCC"), (Lines{"3 marked"}));
  EXPECT_EQ(acks(".C.C."), (Lines{"0", "1 marked", "2", "3 marked", "4"}));
}

TEST(Ldcp, one_acknowledgment_covers_at_most_m_packets) {
  LoneHost one({.packets_per_ack = 1});
  EXPECT_EQ(acks_of_burst(one, "...."), (Lines{"0", "1", "2", "3"}));
  LoneHost three({.packets_per_ack = 3});
  EXPECT_EQ(acks_of_burst(three, "........"), (Lines{"2", "5", "7"}));
  LoneHost marked({.packets_per_ack = 3});
  EXPECT_EQ(acks_of_burst(marked, "....C..."), (Lines{"2", "3", "4 marked", "7"}));
}

TEST(Ldcp, mark_is_acknowledged_when_acknowledgments_cannot_be_split) {
  LoneHost host({.packets_per_ack = 1});
  host.port().blocked = true;
  // More packets than the stage has frames, so the responder cannot send all acknowledgments at once.
  std::string marks(200, '.');
  marks[150] = 'C';
  put_burst(host, marks);
  for (int round = 0; round < 20; ++round) host.side.device->poller().poll(host.now);
  host.port().blocked = false;
  uint32_t last = 0;
  bool marked = false;
  for (const Packet& sent : host.work_for_packets()) {
    const auto psn = static_cast<uint32_t>(sent.bth.psn - Psn{100});
    if (sent.bth.becn) marked = psn >= 150;
    last = psn;
  }
  EXPECT_EQ(last, 199U);
  EXPECT_TRUE(marked);
}

TEST(Ldcp, marked_write_is_acknowledged_before_the_next_read_is_answered) {
  LoneHost host;
  Packet write = host.write(Opcode::kRcWriteOnly, 0, 0, 8, 8);
  write.with_traffic_class(3);
  host.port().put(encode_packet(write.finish()));
  host.port().put(encode_packet(host.read(1, 0, 8).finish()));
  const auto sent = host.work_for_packets();
  ASSERT_EQ(sent.size(), 3U);
  EXPECT_EQ(sent[0].bth.opcode, Opcode::kCnp);
  EXPECT_EQ(sent[1].bth.opcode, Opcode::kRcAcknowledge);
  EXPECT_TRUE(sent[1].bth.becn);
  EXPECT_EQ(sent[2].bth.opcode, Opcode::kRcReadResponseOnly);
}

// Posts 20 WRITEs of 8000 bytes at a: 160 packets, ECN-capable so that they may be marked.
void ecn_capable_writes(TwoHosts& net) {
  TwoHosts::core(net.a).attributes.path.traffic_class = 2;
  TwoHosts::core(net.a).set_peer_mac(TwoHosts::core(net.a).attributes.path.destination_mac);
  for (uint64_t i = 0; i < 20; ++i) ASSERT_EQ(net.write(i, 0, 8000), 0);
  net.run(1s);
}

TEST(Ldcp, sender_counts_all_marked_packets) {
  for (const auto& extensions : {ExtensionConfig{.mode = ExtensionMode::kOff}, kAuto}) {
    TwoHosts net({.extensions_a = extensions, .extensions_b = extensions});
    net.connect();
    uint64_t packets = 0, marked = 0;
    net.watch = [&](const Packet& packet, char direction) {
      SimVerdict verdict;
      if (direction != '>' || !opcode_info(packet.bth.opcode).is_request()) return verdict;
      verdict.mark = ++packets % 5 == 0 || packets / 20 == 3;
      marked += verdict.mark ? 1 : 0;
      return verdict;
    };
    ecn_capable_writes(net);
    const SendFlow& flow = TwoHosts::core(net.a).requester.flow();
    EXPECT_EQ(packets, 160U);
    EXPECT_EQ(flow.packets_acked, packets);
    EXPECT_EQ(flow.packets_marked, marked);
    EXPECT_EQ(net.b.counter("np_ecn_marked_roce_packets"), marked);
  }
}

TEST(Ldcp, mark_count_is_exact_with_lost_acknowledgments) {
  TwoHosts net({.timeout = 8, .extensions_a = kAuto, .extensions_b = kAuto});
  net.connect();
  uint64_t requests = 0, answers = 0;
  net.watch = [&](const Packet& packet, char direction) {
    SimVerdict verdict;
    if (direction == '<') verdict.drop = ++answers % 2 == 0;
    if (direction == '>' && opcode_info(packet.bth.opcode).is_request()) verdict.mark = ++requests % 3 == 0;
    return verdict;
  };
  ecn_capable_writes(net);
  expect_all_successful(net.a.completions(), 20);
  const SendFlow& flow = TwoHosts::core(net.a).requester.flow();
  EXPECT_EQ(flow.packets_marked, net.b.counter("np_ecn_marked_roce_packets"));
  EXPECT_EQ(flow.packets_acked, requests) << "arrived, some of them twice";
}

// READ response bytes that b has sent and a has not acknowledged: current value and maximum.
struct ResponsesInFlight {
  uint64_t now = 0, most = 0;
  void watch(TwoHosts& net) {
    net.watch = [this](const Packet& packet, char direction) {
      if (opcode_info(packet.bth.opcode).operation == Operation::kReadResponse) now += packet.payload.size();
      if (direction == '>' && packet.bth.opcode == Opcode::kCcReadAcknowledge) now = 0;
      most = std::max(most, now);
      return SimVerdict{};
    };
  }
};

TEST(Ldcp, read_responses_are_acknowledged_and_limited_by_the_window) {
  TwoHosts net(
      {.path_mtu = IBV_MTU_1024, .window_bytes = 8192, .extensions_a = kAuto, .extensions_b = kAuto});
  net.connect();
  ResponsesInFlight in_flight;
  in_flight.watch(net);
  ASSERT_EQ(net.read(0, 0, 2000), 0);
  net.run(1s);  // the first acknowledgment shows the responder that the requester acknowledges
  in_flight = {};
  ASSERT_EQ(net.read(1, 0, 300'000), 0);
  net.run(1s);
  expect_all_successful(net.a.completions(), 2);
  EXPECT_LE(in_flight.most, 2 * 8192U) << "what is on its way and what was acknowledged behind it";
  EXPECT_GT(in_flight.most, 4096U);
  expect_same_bytes_at_both_ends(net);
  const SendFlow& flow = TwoHosts::core(net.b).responder.response_flow();
  EXPECT_EQ(flow.acknowledged, flow.next);
}

TEST(Ldcp, concurrent_reads_share_the_window_of_the_responder) {
  TwoHosts net({.extensions_a = kAuto, .extensions_b = kAuto});
  net.connect();
  TwoHosts::core(net.b).config.window_bytes = 4096;  // a requests more than b may have in flight
  ResponsesInFlight in_flight;
  in_flight.watch(net);
  ASSERT_EQ(net.read(0, 0, 2000), 0);
  net.run(1s);
  in_flight = {};
  for (uint64_t i = 1; i <= 12; ++i) ASSERT_EQ(net.read(i, 0, 10'000), 0);
  net.run(1s);
  expect_all_successful(net.a.completions(), 13);
  EXPECT_LE(in_flight.most, 2 * 4096U);
  EXPECT_EQ(net.a.counter("timeouts"), 0U) << "nobody waited for a window that never opened";
  expect_same_bytes_at_both_ends(net);
}

TEST(Ldcp, atomic_responses_are_acknowledged_like_read_responses) {
  TwoHosts net({.extensions_a = kAuto, .extensions_b = kAuto});
  net.connect();
  TwoHosts::core(net.b).config.window_bytes = 16;  // two responses
  ASSERT_EQ(net.read(0, 0, 8), 0);
  net.run(1s);
  for (uint64_t i = 1; i <= 20; ++i)
    ASSERT_EQ(net.a.atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, i, 64, net.b.address(64), net.b.region->rkey(), 1),
              0);
  net.run(1s);
  expect_all_successful(net.a.completions(), 21);
  EXPECT_EQ(net.a.counter("timeouts"), 0U);
  const SendFlow& flow = TwoHosts::core(net.b).responder.response_flow();
  EXPECT_EQ(flow.acknowledged, flow.next);
}

// An out-of-order response contains nothing that the requester could acknowledge.
TEST(Ldcp, read_acknowledgments_start_with_the_first_in_order_response) {
  TwoHosts net({.extensions_a = kAuto, .extensions_b = kAuto});
  net.connect();
  bool lost = false;
  net.lose = [&](const std::string& line) {
    return !lost && line == "< RC_READ_RESP_FIRST 0" && (lost = true);
  };
  std::vector<uint32_t> acknowledged;
  net.watch = [&](const Packet& packet, char) {
    if (packet.bth.opcode == Opcode::kCcReadAcknowledge)
      acknowledged.push_back(static_cast<uint32_t>(packet.bth.psn - Psn{0x1000}));
    return SimVerdict{};
  };
  ASSERT_EQ(net.read(1, 0, 4000), 0);
  net.run(1s);
  expect_all_successful(net.a.completions(), 1);
  ASSERT_FALSE(acknowledged.empty());
  for (const uint32_t psn : acknowledged) EXPECT_LE(psn, 3U);
  EXPECT_EQ(net.b.counter("responses_ghost"), 0U);
}

void lose_read_acknowledgements(TwoHosts& net) {
  net.watch = [](const Packet& packet, char) {
    SimVerdict verdict;
    verdict.drop = packet.bth.opcode == Opcode::kCcReadAcknowledge;
    return verdict;
  };
}

TEST(Ldcp, concurrent_reads_complete_with_lost_read_acknowledgments) {
  TwoHosts net({.timeout = 8, .extensions_a = kAuto, .extensions_b = kAuto});
  net.connect();
  TwoHosts::core(net.b).config.window_bytes = 4096;
  ASSERT_EQ(net.read(0, 0, 2000), 0);
  net.run(100ms);
  lose_read_acknowledgements(net);
  for (uint64_t i = 1; i <= 6; ++i) ASSERT_EQ(net.read(i, 0, 10'000), 0);
  net.run(5s);
  expect_all_successful(net.a.completions(), 7);
}

// The acknowledgment of a WRITE and those of a READ's responses are lost. The responder waits for the latter; the
// requester repeats the WRITE before the READ. The responder must acknowledge the duplicate (IBTA 9.7.5.1.2).
TEST(Ldcp, duplicate_is_acknowledged_while_a_later_read_waits_for_its_window) {
  for (const bool selective : {false, true}) {
    ExtensionConfig extensions = kAuto;
    extensions.selective_repeat = selective;
    TwoHosts net({.timeout = 8, .extensions_a = extensions, .extensions_b = extensions});
    net.connect();
    TwoHosts::core(net.b).config.window_bytes = 4096;
    ASSERT_EQ(net.read(0, 0, 2000), 0);
    net.run(100ms);
    const Nanos until = net.now() + 500us;
    net.lose = [&](const std::string& line) { return line.starts_with("<") && net.now() < until; };
    ASSERT_EQ(net.write(1, 0, 100), 0);
    ASSERT_EQ(net.read(2, 0, 20'000), 0);
    net.run(5s);
    expect_all_successful(net.a.completions(), 3);
    EXPECT_LE(net.a.counter("timeouts"), 2U) << (selective ? "with" : "without") << " selective repeat";
  }
}

TEST(Ldcp, read_completes_with_lost_read_acknowledgments) {
  TwoHosts net({.path_mtu = IBV_MTU_1024,
                .timeout = 8,
                .window_bytes = 8192,
                .extensions_a = kAuto,
                .extensions_b = kAuto});
  net.connect();
  ASSERT_EQ(net.read(0, 0, 2000), 0);
  net.run(100ms);
  lose_read_acknowledgements(net);
  ASSERT_EQ(net.read(1, 0, 50'000), 0);
  net.run(1s);
  expect_all_successful(net.a.completions(), 2);
}

TEST(Ldcp, lost_read_response_is_requested_again_without_a_nak) {
  TwoHosts net({.extensions_a = kAuto, .extensions_b = kAuto});
  net.connect();
  bool done = false;
  net.lose = [&](const std::string& line) {
    return !done && line == "< RC_READ_RESP_MIDDLE 3" && (done = true);
  };
  ASSERT_EQ(net.read(1, 0, 9000), 0);
  net.run();
  expect_all_successful(net.a.completions(), 1);
  EXPECT_EQ(net.a.counter("reads_reissued"), 1U);
  EXPECT_EQ(std::ranges::count(net.wire, "> RC_READ_REQUEST 3"), 1);
  EXPECT_TRUE(
      std::ranges::none_of(net.wire, [](const auto& l) { return l.find("nak") != std::string::npos; }));
  expect_same_bytes_at_both_ends(net);
}

TEST(Ldcp, measured_rtt_matches_the_link_with_and_without_timestamps) {
  for (const auto& extensions : {ExtensionConfig{.mode = ExtensionMode::kOff}, kAuto, kTimed}) {
    TwoHosts net({.delay = 50us, .extensions_a = extensions, .extensions_b = extensions});
    net.connect();
    ASSERT_EQ(net.write(1, 0, 100), 0);
    net.run();
    const SendFlow& flow = TwoHosts::core(net.a).requester.flow();
    EXPECT_EQ(flow.rtt_samples, 1U);
    EXPECT_GE(flow.rtt, Nanos{100us});
    EXPECT_LE(flow.rtt, Nanos{101us});
  }
}

TEST(Ldcp, retransmission_yields_an_rtt_only_with_timestamps) {
  for (const auto& extensions : {ExtensionConfig{.mode = ExtensionMode::kOff}, kTimed}) {
    TwoHosts net({.timeout = 8, .delay = 50us, .extensions_a = extensions, .extensions_b = extensions});
    net.connect();
    bool lost = false;
    net.lose = [&](const std::string& line) { return !lost && line == "> RC_WRITE_ONLY 0" && (lost = true); };
    ASSERT_EQ(net.write(1, 0, 100), 0);
    net.run();
    ASSERT_TRUE(lost);
    const SendFlow& flow = TwoHosts::core(net.a).requester.flow();
    if (extensions.timestamps) {
      EXPECT_LE(flow.rtt, Nanos{101us});
    } else {
      EXPECT_EQ(flow.rtt_samples, 0U) << "it cannot be told which copy was answered";
    }
  }
}

TEST(Ldcp, probe_measures_the_rtt_and_expires_if_lost) {
  TwoHosts net({.delay = 50us, .extensions_a = kAuto, .extensions_b = kAuto});
  net.connect();
  TwoHosts::wake(net.a, net.now());
  TwoHosts::wake(net.b, net.now());
  Requester& requester = TwoHosts::core(net.a).requester;
  ASSERT_TRUE(requester.request_probe(net.now()));
  EXPECT_FALSE(requester.request_probe(net.now())) << "one at a time";
  TwoHosts::wake(net.a, net.now());
  net.run(1ms);
  EXPECT_EQ(requester.flow().rtt_samples, 1U);
  EXPECT_GE(requester.flow().rtt, Nanos{100us});
  EXPECT_LE(requester.flow().rtt, Nanos{101us});
  EXPECT_EQ(net.b.counter("probes_answered"), 1U);
  // A lost probe is abandoned after a timeout.
  net.lose = [](const std::string& line) { return line.starts_with("> CC_PROBE"); };
  ASSERT_TRUE(requester.request_probe(net.now()));
  TwoHosts::wake(net.a, net.now());
  net.run(5ms);
  EXPECT_FALSE(requester.request_probe(net.now()));
  net.run(10ms);
  EXPECT_TRUE(requester.request_probe(net.now()));
}

TEST(Ldcp, receiver_window_limits_the_sender) {
  ExtensionConfig narrow = kAuto;
  narrow.receive_window = 4096;
  TwoHosts net({.extensions_a = kAuto, .extensions_b = narrow});
  net.connect();
  ASSERT_EQ(net.write(0, 0, 100), 0);
  net.run(100ms);  // the first acknowledgment reports the window
  EXPECT_EQ(TwoHosts::core(net.a).requester.flow().receiver_window, 4096U);
  int64_t in_flight = 0, most = 0;
  net.watch = [&](const Packet& packet, char direction) {
    in_flight = direction == '>' ? in_flight + static_cast<int64_t>(packet.payload.size()) : 0;
    most = std::max(most, in_flight);
    return SimVerdict{};
  };
  ASSERT_EQ(net.write(1, 0, 100'000), 0);
  net.run(100ms);
  expect_all_successful(net.a.completions(), 2);
  EXPECT_LE(most, 4096);
}

TEST(Ldcp, window_change_without_acknowledgments_is_sent_separately) {
  for (const auto& extensions : {kAuto, kSigned}) {
    TwoHosts net({.extensions_a = extensions, .extensions_b = extensions});
    net.connect();
    TwoHosts::wake(net.a, net.now());
    TwoHosts::wake(net.b, net.now());
    TwoHosts::core(net.b).session->set_receiver_window(12345);
    TwoHosts::wake(net.b, net.now());
    net.run(1ms);
    EXPECT_EQ(net.wire, (std::vector<std::string>{"< CC_RXW -1"}));
    EXPECT_EQ(TwoHosts::core(net.a).requester.flow().receiver_window, 12345U);
    EXPECT_EQ(net.a.counter("feedback_unsigned"), 0U);
  }
}

TEST(Ldcp, receiver_advertises_no_zero_and_no_unlimited_window) {
  TwoHosts net({.extensions_a = kAuto, .extensions_b = kAuto});
  net.connect();
  TwoHosts::wake(net.a, net.now());
  TwoHosts::wake(net.b, net.now());
  const auto told = [&net](uint32_t window) {
    TwoHosts::core(net.b).session->set_receiver_window(window);
    TwoHosts::wake(net.b, net.now());
    net.run(1ms);
    return TwoHosts::core(net.a).requester.flow().receiver_window;
  };
  EXPECT_EQ(told(0), 1U);
  EXPECT_EQ(told(UINT32_MAX), UINT32_MAX - 1);
  EXPECT_EQ(net.a.counter("windows_impossible"), 0U);
}

TEST(Ldcp, receiver_reports_the_number_of_flows) {
  TwoHosts net({.extensions_a = kAuto, .extensions_b = kAuto});
  net.connect();
  ASSERT_EQ(net.write(0, 0, 100'000), 0);
  net.run(100ms);
  EXPECT_EQ(TwoHosts::core(net.a).requester.flow().flows_at_receiver, 1U);
}

TEST(FlowCount, counts_each_queue_pair_once_per_epoch) {
  FlowCount flows;
  std::array<uint32_t, 5> seen{};
  Nanos now{0};
  for (int round = 0; round < 3; ++round) {
    for (uint32_t& one : seen) flows.note(one, now);
  }
  EXPECT_EQ(flows.count(), 5U);
  now += FlowCount::kEpoch;
  flows.note(seen[0], now);
  EXPECT_EQ(flows.count(), 5U) << "the epoch before still counts";
  now += FlowCount::kEpoch;
  flows.note(seen[0], now);
  EXPECT_EQ(flows.count(), 1U);
  now += 5 * FlowCount::kEpoch;
  flows.advance(now);
  EXPECT_EQ(flows.count(), 0U);
}

TEST(Ldcp, peer_without_extensions_is_not_probed) {
  TwoHosts net;
  net.connect();
  EXPECT_FALSE(TwoHosts::core(net.a).requester.request_probe(net.now()));
}

TEST(Ldcp, retransmitted_packets_are_ecn_capable) {
  TwoHosts net({.timeout = 8});
  net.connect();
  std::map<uint32_t, std::vector<Ecn>> by_psn;
  net.watch = [&](const Packet& packet, char direction) {
    if (direction == '>') by_psn[packet.bth.psn.value()].push_back(packet.ecn());
    return SimVerdict{};
  };
  net.lose = [lost = 0](const std::string& line) mutable {
    return line == "> RC_WRITE_MIDDLE 1" && lost++ == 0;
  };
  ASSERT_EQ(net.write(1, 0, 4000), 0);
  net.run();
  EXPECT_EQ(by_psn[0x1000], (std::vector{Ecn::kNotEct}));
  EXPECT_EQ(by_psn[0x1001], (std::vector{Ecn::kNotEct, Ecn::kEct0}));
  EXPECT_EQ(by_psn[0x1003], (std::vector{Ecn::kNotEct, Ecn::kEct0}));
}

TEST(Ldcp, requests_contain_no_block_that_exceeds_the_port_mtu) {
  // Path MTU 4096 on a port with MTU 4200 leaves 20 bytes.
  ExtensionConfig wide{
      .mode = ExtensionMode::kAuto, .timestamps = true, .source_qpn = true, .data_lsn = true};
  for (const auto& [mtu, has_block] : {std::pair{IBV_MTU_4096, false}, {IBV_MTU_2048, true}}) {
    TwoHosts net({.path_mtu = mtu, .extensions_a = wide, .extensions_b = wide});
    net.connect();
    bool seen = false;
    net.watch = [&](const Packet& packet, char direction) {
      if (direction == '>' && opcode_info(packet.bth.opcode).is_request())
        seen |= packet.extensions.has_value();
      return SimVerdict{};
    };
    for (uint64_t i = 0; i < 3; ++i) ASSERT_EQ(net.write(i, 0, 20000), 0);
    net.run();
    expect_all_successful(net.a.completions(), 3);
    // The capability offer assumes the port's largest path MTU, 4096: the limit is 20 bytes for any path MTU.
    EXPECT_FALSE(seen && !has_block);
  }
}

// b signs the acknowledgments for a. An attacker on the path can drop them, but a replayed copy is rejected.
TEST(Ldcp, feedback_of_a_duplicate_acknowledgment_is_rejected) {
  TwoHosts net({.extensions_a = kSigned, .extensions_b = kSigned});
  net.connect();
  ASSERT_EQ(net.write(1, 0, 100), 0);
  net.run(100ms);
  expect_all_successful(net.a.completions(), 1);
  EXPECT_EQ(net.a.counter("feedback_unsigned"), 0U);
  // From here on each acknowledgment arrives twice.
  net.watch = [](const Packet& packet, char direction) {
    SimVerdict verdict;
    if (direction == '<' && packet.bth.opcode == Opcode::kRcAcknowledge) verdict.duplicates = 1;
    return verdict;
  };
  ASSERT_EQ(net.write(2, 0, 100), 0);
  net.run(100ms);
  expect_all_successful(net.a.completions(), 1);
  EXPECT_EQ(net.a.counter("feedback_unsigned"), 1U) << "the second copy";
}

}  // namespace
}  // namespace roci::test

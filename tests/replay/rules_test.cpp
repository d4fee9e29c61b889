// Statements of docs/interop.md about single packets: which are answered, dropped or rejected, and with which
// response.
#include <gtest/gtest.h>

#include <functional>

#include "replay/lines.hpp"
#include "replay/replay_host.hpp"

namespace roci::test {
namespace {

constexpr uint32_t kKey = 0x500;
constexpr uint64_t kVa = 0x10000;
constexpr uint32_t kFirst = 1000;  // PSN
constexpr Qpn kQpn{0x11};

// Requests as from make_packet(): from 10.0.0.1 to 10.0.0.2.
ReplayHost::Config host_config() {
  ReplayHost::Config config = ReplayHost::Config::receiver_of(make_packet(Opcode::kRcSendOnly));
  config.qpn = kQpn;
  config.peer_qpn = Qpn{0x12};
  config.first_psn = Psn{kFirst};
  config.min_rnr_timer = 14;
  config.regions[kKey] = {kVa, ByteVector(8192, 7)};
  return config;
}

Packet request(Opcode opcode, uint32_t psn, uint32_t payload) {
  Packet p = make_packet(opcode).to(kQpn, Psn{psn}).with_payload(ByteVector(payload, 1));
  if (find_opcode(static_cast<uint8_t>(opcode))->has(Header::kReth))
    p.with_reth(kVa, MemoryKey{kKey}, payload);
  return p;
}
Packet write_only(uint32_t psn, uint32_t payload = 16) {
  return request(Opcode::kRcWriteOnly, psn, payload).requesting_ack();
}
Packet read_request(uint32_t psn, uint64_t va, uint32_t length) {
  return request(Opcode::kRcReadRequest, psn, 0).with_reth(va, MemoryKey{kKey}, length).requesting_ack();
}

// A host, and its responses as lines with the MSN: "RC_ACK 1000 1f msn 1".
class Fed {
 public:
  explicit Fed(const ReplayHost::Config& config = host_config()) : host(config) {}
  Lines as_is(const Packet& packet) {
    const ByteVector bytes = encode_packet(packet);
    Lines lines;
    for (const Packet& answer : host.feed({&bytes, 1})) {
      lines.push_back(answer_line(answer) +
                      (answer.aeth ? " msn " + std::to_string(answer.aeth->msn.value()) : std::string()));
    }
    return lines;
  }
  Lines operator()(Packet packet) { return as_is(packet.finish()); }
  ReplayHost host;
};

struct Change {
  const char* what;
  std::function<void(Packet&)> make;
};

TEST(ResponderRules, invalid_or_misaddressed_packets_are_dropped_silently) {
  const std::pair<Change, Counter> rows[] = {
      {{"transport version", [](Packet& p) { p.bth.version = 1; }}, Counter::kRxMalformed},
      {{"P_Key", [](Packet& p) { p.bth.pkey = PKey{0x8001}; }}, Counter::kRxWrongPkey},
      {{"unknown queue pair", [](Packet& p) { p.bth.destination_qp = Qpn{0x99}; }}, Counter::kRxUnknownQp},
      {{"source address", [](Packet& p) { p.source = *IpAddress::parse("10.0.0.77"); }},
       Counter::kRxWrongSource},
      {{"destination address", [](Packet& p) { p.destination = *IpAddress::parse("10.0.0.77"); }},
       Counter::kRxWrongSource},
      {{"opcode of UC", [](Packet& p) { p.bth.opcode = Opcode::kUcWriteOnly; }}, Counter::kRxWrongTransport},
      {{"unknown opcode", [](Packet& p) { p.bth.opcode = static_cast<Opcode>(0x1f); }},
       Counter::kRxUnknownOpcode},
      {{"VLAN", [](Packet& p) { p.with_vlan(5); }}, Counter::kRxNotForHost},
  };
  Fed fed;
  for (const auto& [change, counter] : rows) {
    const uint64_t before = fed.host.counters().get(counter);
    Packet p = write_only(kFirst);
    change.make(p);
    EXPECT_EQ(fed(p), Lines{}) << change.what;
    EXPECT_EQ(fed.host.counters().get(counter), before + 1) << change.what;
  }
  Packet damaged = write_only(kFirst).finish();
  damaged.icrc ^= 0x100;
  EXPECT_EQ(fed.as_is(damaged), Lines{});
  EXPECT_EQ(fed.host.counters().get(Counter::kRxIcrcErrors), 1U);
  EXPECT_EQ(fed(write_only(kFirst)), Lines{"RC_ACK 1000 1f msn 1"});
}

TEST(ResponderRules, irrelevant_fields_are_ignored) {
  const Change changes[] = {
      {"MigReq", [](Packet& p) { p.bth.mig_req = true; }},
      {"FECN", [](Packet& p) { p.bth.fecn = true; }},
      {"BECN", [](Packet& p) { p.bth.becn = true; }},
      {"reserved bits", [](Packet& p) { p.bth.reserved6 = 0x3f, p.bth.reserved7 = 0x7f; }},
      {"limited member's P_Key", [](Packet& p) { p.bth.pkey = PKey{0x7fff}; }},
      {"UDP source port", [](Packet& p) { p.udp_source_port = 1; }},
      {"UDP checksum", [](Packet& p) { p.udp_checksum = 1; }},  // finish() computes the correct one
      {"CE", [](Packet& p) { p.with_traffic_class(3); }},
      {"TTL 1", [](Packet& p) { p.v4().ttl = 1; }},
      {"priority tag", [](Packet& p) { p.with_vlan(0x6000); }},
      {"bytes behind the packet", [](Packet& p) { p.trailing = ByteVector(9, 0xee); }},
  };
  Fed fed;
  uint32_t psn = kFirst;
  for (const Change& change : changes) {
    Packet p = write_only(psn);
    change.make(p);
    const std::string msn = std::to_string(psn - kFirst + 1);
    Lines answers = fed(p);
    std::erase(answers, "CNP 0");  // to the marked packet
    EXPECT_EQ(answers, Lines{"RC_ACK " + std::to_string(psn) + " 1f msn " + msn}) << change.what;
    ++psn;
  }
}

// RFC 1122 4.1.3.4. The ICRC is correct.
TEST(ResponderRules, packet_with_wrong_udp_checksum_is_dropped_silently) {
  Fed fed;
  Packet p = write_only(kFirst);
  p.udp_checksum = 1;
  p.finish();
  p.udp_checksum ^= 0x5555;
  EXPECT_EQ(fed.as_is(p), Lines{});
  EXPECT_EQ(fed.host.counters().get(Counter::kRxMalformed), 1U);
  EXPECT_EQ(fed(write_only(kFirst)), Lines{"RC_ACK 1000 1f msn 1"});
}

TEST(ResponderRules, one_nak_is_sent_per_gap) {
  Fed fed;
  EXPECT_EQ(fed(write_only(kFirst + 1)), Lines{"RC_ACK 1000 60 msn 0"});
  EXPECT_EQ(fed(write_only(kFirst + 2)), Lines{});
  EXPECT_EQ(fed(write_only(kFirst)), Lines{"RC_ACK 1000 1f msn 1"});
  EXPECT_EQ(fed(write_only(kFirst + 2)), Lines{"RC_ACK 1001 60 msn 1"});
}

// rxe acknowledges PSN ffffff.
TEST(ResponderRules, duplicate_before_first_request_is_dropped) {
  Fed fed;
  EXPECT_EQ(fed(write_only(kFirst - 1)), Lines{});
  EXPECT_EQ(fed.host.counters().get(Counter::kRxBadState), 1U);
}

TEST(ResponderRules, duplicate_is_acknowledged_at_once_with_last_executed_psn) {
  Fed fed;
  EXPECT_EQ(fed(write_only(kFirst)), Lines{"RC_ACK 1000 1f msn 1"});
  EXPECT_EQ(fed(write_only(kFirst + 1)), Lines{"RC_ACK 1001 1f msn 2"});
  EXPECT_EQ(fed(request(Opcode::kRcWriteOnly, kFirst, 16)), Lines{"RC_ACK 1001 1f msn 2"});  // without AckReq
}

// The responses to the READ and to the atomic were lost. rxe as the requester takes an ACK with the PSN of either for the
// response, and completes the request without data.
TEST(ResponderRules, duplicate_is_never_acknowledged_with_psn_of_read_or_atomic) {
  Fed fed;
  EXPECT_EQ(fed(write_only(kFirst)), Lines{"RC_ACK 1000 1f msn 1"});
  EXPECT_EQ(fed(read_request(kFirst + 1, kVa, 2000)).size(), 2U);
  Packet add = request(Opcode::kRcFetchAdd, kFirst + 3, 0);
  add.atomic_eth->va = kVa;
  add.atomic_eth->rkey = MemoryKey{kKey};
  EXPECT_EQ(fed(add).size(), 1U);
  EXPECT_EQ(fed(write_only(kFirst)), Lines{"RC_ACK 1000 1f msn 3"});
  EXPECT_EQ(fed(write_only(kFirst + 4)), Lines{"RC_ACK 1004 1f msn 4"});
  EXPECT_EQ(fed(write_only(kFirst)), Lines{"RC_ACK 1004 1f msn 4"});
}

TEST(ResponderRules, repeated_read_may_be_any_part_ending_at_a_packet_boundary) {
  Fed fed;
  EXPECT_EQ(fed(read_request(kFirst, kVa, 4000)).size(), 4U);
  EXPECT_EQ(fed(write_only(kFirst + 4)), Lines{"RC_ACK 1004 1f msn 2"});
  EXPECT_EQ(fed(read_request(kFirst + 2, kVa + 2048, 1952)),
            (Lines{"RC_READ_RESP_FIRST 1002 1f msn 1", "RC_READ_RESP_LAST 1003 1f msn 1"}));
  EXPECT_EQ(fed(read_request(kFirst + 3, kVa + 3072, 928)), Lines{"RC_READ_RESP_ONLY 1003 1f msn 1"});
  EXPECT_EQ(fed(read_request(kFirst + 1, kVa + 1024, 1024)), Lines{"RC_READ_RESP_ONLY 1001 1f msn 1"});
  EXPECT_EQ(fed(read_request(kFirst, kVa, 2048)),
            (Lines{"RC_READ_RESP_FIRST 1000 1f msn 1", "RC_READ_RESP_LAST 1001 1f msn 1"}));
  // The complete READ again, after a part of it.
  EXPECT_EQ(fed(read_request(kFirst, kVa, 4000)).size(), 4U);
}

TEST(ResponderRules, repeated_read_outside_the_original_is_dropped) {
  Fed fed;
  EXPECT_EQ(fed(read_request(kFirst, kVa, 3000)).size(), 3U);
  EXPECT_EQ(fed(read_request(kFirst + 1, kVa, 1976)), Lines{});         // the address does not match the PSN
  EXPECT_EQ(fed(read_request(kFirst + 1, kVa + 1024, 3000)), Lines{});  // beyond the end
  EXPECT_EQ(fed(read_request(kFirst, kVa, 1000)), Lines{});             // ends within a packet
  EXPECT_EQ(fed(read_request(kFirst, kVa, 0)), Lines{});
  Packet other_key = read_request(kFirst, kVa, 3000);
  other_key.reth->rkey = MemoryKey{kKey + 1};
  EXPECT_EQ(fed(other_key), Lines{});
  EXPECT_EQ(fed.host.counters().get(Counter::kReplaysRefused), 5U);
}

TEST(ResponderRules, missing_receive_buffer_causes_rnr_nak_without_ack_request) {
  Fed fed;
  EXPECT_EQ(fed(request(Opcode::kRcSendFirst, kFirst, 1024)), Lines{"RC_ACK 1000 2e msn 0"});
  EXPECT_EQ(fed(request(Opcode::kRcSendLast, kFirst + 1, 10)), Lines{});  // rxe sends another NAK 60
  fed.host.post_receive(2000);
  EXPECT_EQ(fed(request(Opcode::kRcSendFirst, kFirst, 1024)), Lines{});
  EXPECT_EQ(fed(request(Opcode::kRcSendLast, kFirst + 1, 10).requesting_ack()),
            Lines{"RC_ACK 1001 1f msn 1"});
}

TEST(ResponderRules, zero_length_transfer_requires_no_key) {
  Fed fed;
  Packet write = write_only(kFirst, 0);
  write.reth->rkey = MemoryKey{0xdead};
  EXPECT_EQ(fed(write), Lines{"RC_ACK 1000 1f msn 1"});
  Packet read = read_request(kFirst + 1, 0, 0);
  read.reth->rkey = MemoryKey{0xdead};
  EXPECT_EQ(fed(read), Lines{"RC_READ_RESP_ONLY 1001 1f msn 2"});
}

TEST(ResponderRules, reads_beyond_negotiated_depth_are_rejected) {
  ReplayHost host(host_config());
  std::vector<ByteVector> burst;
  for (uint32_t i = 0; i <= ReplayHost::kReads; ++i)
    burst.push_back(encode_packet(read_request(kFirst + i, kVa, 8).finish()));
  const auto answers = host.feed(burst);
  ASSERT_EQ(answers.size(), ReplayHost::kReads + 1U);
  EXPECT_EQ(answer_line(answers.front()), "RC_READ_RESP_ONLY 1000 1f");
  EXPECT_EQ(answer_line(answers.back()), "RC_ACK 1016 61");
}

// The responder rejects the request and moves the queue pair to the error state; later requests are dropped.
TEST(ResponderRules, invalid_requests_are_rejected_with_specified_nak_code) {
  struct Case {
    const char* what;
    std::vector<Packet> requests;
    const char* answer;
    int access = ReplayHost::kEverything;         // of the queue pair
    int region_access = ReplayHost::kEverything;  // of the region
  };
  const Packet first = request(Opcode::kRcWriteFirst, kFirst, 1024).with_reth(kVa, MemoryKey{kKey}, 2000);
  Packet bad_pad = write_only(kFirst, 13);
  bad_pad.pad.resize(1);  // must be 3 bytes
  const Packet atomic = request(Opcode::kRcFetchAdd, kFirst, 0);
  const Case cases[] = {
      {"RETH length is not the payload's", {write_only(kFirst).with_reth(kVa, MemoryKey{kKey}, 20)}, "61"},
      {"pad and payload do not fit", {bad_pad}, "61"},
      {"FIRST shorter than the MTU",
       {request(Opcode::kRcWriteFirst, kFirst, 1000).with_reth(kVa, MemoryKey{kKey}, 2000)},
       "61"},
      {"ONLY longer than the MTU", {write_only(kFirst, 1028)}, "61"},
      {"empty LAST", {first, request(Opcode::kRcWriteLast, kFirst + 1, 0)}, "61"},
      {"LAST without FIRST", {request(Opcode::kRcWriteLast, kFirst, 16)}, "61"},
      {"message within a message", {first, write_only(kFirst + 1)}, "61"},
      {"SEND within a WRITE", {first, request(Opcode::kRcSendLast, kFirst + 1, 16)}, "61"},
      {"READ of more than 2 GiB", {read_request(kFirst, kVa, 0x80000001)}, "61"},
      {"atomic not allowed by the queue pair", {atomic}, "61", IBV_ACCESS_REMOTE_READ},
      {"SEND that invalidates what is no window", {request(Opcode::kRcSendOnlyInv, kFirst, 16)}, "62"},
      {"SEND longer than the receive buffer", {request(Opcode::kRcSendOnly, kFirst, 101)}, "61"},
      {"WRITE not allowed by the queue pair", {write_only(kFirst)}, "61", IBV_ACCESS_REMOTE_READ},
      {"READ not allowed by the queue pair", {read_request(kFirst, kVa, 8)}, "61", IBV_ACCESS_REMOTE_WRITE},
      {"unknown key", {write_only(kFirst).with_reth(kVa, MemoryKey{kKey + 1}, 16)}, "62"},
      {"before the region", {write_only(kFirst).with_reth(kVa - 1, MemoryKey{kKey}, 16)}, "62"},
      {"end of the message outside the region, seen at its first packet",
       {request(Opcode::kRcWriteFirst, kFirst, 1024).with_reth(kVa, MemoryKey{kKey}, 8193)},
       "62"},
      {"READ outside the region", {read_request(kFirst, kVa + 1, 8192)}, "62"},
      {"WRITE not allowed by the region",
       {write_only(kFirst)},
       "62",
       ReplayHost::kEverything,
       IBV_ACCESS_REMOTE_READ},
      {"READ not allowed by the region", {read_request(kFirst, kVa, 8)}, "62", ReplayHost::kEverything, 0},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    ReplayHost::Config config = host_config();
    config.access = c.access;
    config.region_access = c.region_access;
    Fed fed(config);
    fed.host.post_receive(100);
    for (size_t i = 0; i + 1 < c.requests.size(); ++i) EXPECT_EQ(fed(c.requests[i]), Lines{});
    const std::string psn = std::to_string(c.requests.back().bth.psn.value());
    EXPECT_EQ(fed(c.requests.back()), Lines{"RC_ACK " + psn + " " + c.answer + " msn 0"});
    EXPECT_EQ(fed.host.state(), IBV_QPS_ERR);
    EXPECT_EQ(fed(c.requests.back()), Lines{});
  }
}

// The queue pair enters the error state before it has resolved the MAC of its peer.
TEST(ResponderRules, invalid_first_packet_is_rejected_with_a_nak) {
  ReplayHost::Config config = host_config();
  config.had_turn = false;
  Fed fed(config);
  EXPECT_EQ(fed(request(Opcode::kRcWriteLast, kFirst, 16)), Lines{"RC_ACK 1000 61 msn 0"});
  EXPECT_EQ(fed.host.state(), IBV_QPS_ERR);
}

}  // namespace
}  // namespace roci::test

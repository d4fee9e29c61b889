// Congestion notification messages (CNM) at a host: CN-TAGs in its packets, and validation of received messages.
#include <gtest/gtest.h>

#include "support/hosts/lone_host.hpp"
#include "support/hosts/services.hpp"
#include "support/ports/frames.hpp"
#include "wire/cnm/congestion_notification.hpp"
#include "wire/cnm/l3_congestion_notification.hpp"

namespace roci::test {
namespace {

constexpr uint16_t kCnmPort = 4999;
constexpr SipKey kCnmKey{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
const MacAddress kSwitch{{2, 0, 0, 0, 9, 9}};

CongestionConfig tags() {
  CongestionConfig config;
  config.tag = true;
  return config;
}

// A host and its switch. The test builds the messages that the switch sends.
class Told : public LoneHost {
 public:
  explicit Told(const CongestionConfig& config = tags(), uint16_t vlan = 0)
      : LoneHost({.rq_psn = 100, .path_mtu = IBV_MTU_256, .congestion = config, .vlan = vlan}) {}

  // Returns the frames that the host sends for an RDMA WRITE of `length` bytes.
  std::vector<ByteVector> written(size_t length) {
    EXPECT_EQ(post(IBV_WR_RDMA_WRITE, 1, length), 0);
    return sent_now();
  }
  std::vector<ByteVector> sent_now() {
    Poller& poller = side.device->poller();
    while (poller.poll(now)) {
    }
    return std::exchange(port().sent, {});
  }
  static Cnm cnm_about(const ByteVector& frame, uint8_t feedback = 21) {
    Cnm cnm = *sample_frame(frame, 5);
    cnm.feedback = feedback;
    cnm.point = {kSwitch, Be16{13}};
    cnm.queue_offset = 100;
    cnm.queue_delta = -3;
    return cnm;
  }
  // A layer 2 CNM, as the switch sends it to the sender of `frame`.
  static ByteVector answer(const ByteVector& frame, const Cnm& cnm) {
    const CnmLink link = *CnmLink::answering(frame, kSwitch);
    ByteVector out(kMaxCnmFrame);
    out.resize(build_cnm_frame(link, cnm, out));
    return out;
  }
  static ByteVector answer(const ByteVector& frame) { return answer(frame, cnm_about(frame)); }
  // A CNM in UDP/IP, for a sender that is reached through routers.
  static ByteVector answer_over_ip(const ByteVector& frame, const FiveTuple& flow, L3CnmTlvs more = {}) {
    RocePath path;
    path.source_mac = kSwitch;
    path.destination_mac = MacAddress::local(1);
    path.source_ip = flow.destination;
    path.destination_ip = flow.source;
    ByteVector out(kMaxL3CnmFrame);
    out.resize(build_l3_cnm(path, kCnmPort, flow, cnm_about(frame), more, out));
    return out;
  }
  static ByteVector answer_over_ip(const ByteVector& frame, L3CnmTlvs more = {}) {
    return answer_over_ip(frame, *read_five_tuple(frame), more);
  }
  void hear(const ByteVector& frame) { receive_bytes(frame); }
  [[nodiscard]] uint64_t count(const std::string& name) const { return side.counter(name); }
  // Expects that counter `name` is `times` and that all other CNM counters are 0.
  void expect_only(const std::string& name, uint64_t times) const {
    for (const char* counter : {"cnms_taken", "cnms_malformed", "cnms_unsigned", "cnms_old",
                                "cnms_unknown_flow", "cnms_mismatched", "cnms_unproven", "cnms_too_many"}) {
      EXPECT_EQ(count(counter), counter == name ? times : 0U) << counter;
    }
  }
  [[nodiscard]] uint16_t flow_of(const QueuePair& qp) const {
    const Qpn number{qp.qp_num()};
    return side.device->host().worker_of(number).find(number)->congestion_flow;
  }
  [[nodiscard]] CongestionRecord& requests() const {
    return side.device->host().congestion_flows().requests(flow_of(*side.qp));
  }
  [[nodiscard]] CongestionRecord& responses() const {
    return side.device->host().congestion_flows().responses(flow_of(*side.qp));
  }
};

std::optional<uint16_t> tag_of(const ByteVector& frame) { return decode_packet(frame)->cn_flow; }

TEST(CnTags, are_added_to_requests_and_read_responses_only) {
  Told host;
  const uint16_t flow = host.flow_of(*host.side.qp);
  ASSERT_NE(flow, 0);
  const auto writes = host.written(600);
  ASSERT_EQ(writes.size(), 3U);
  for (const ByteVector& frame : writes) {
    EXPECT_EQ(tag_of(frame), flow);
    const FrameView view =
        parse_frame(frame.data(), static_cast<uint32_t>(frame.size()), static_cast<uint32_t>(frame.size()));
    EXPECT_EQ(stored_icrc(view), compute_icrc(view));
    EXPECT_EQ(frame.size(), encode_packet(*decode_packet(frame)).size());
  }
  host.port().put(encode_packet(host.read(0, 0, 500).finish()));
  const auto responses = host.sent_now();
  ASSERT_EQ(responses.size(), 2U);
  for (const ByteVector& frame : responses) EXPECT_EQ(tag_of(frame), flow);
  host.port().put(encode_packet(host.write(Opcode::kRcWriteOnly, 2, 0, 64, 64).finish()));
  const auto acks = host.sent_now();
  ASSERT_EQ(acks.size(), 1U);
  EXPECT_EQ(decode_packet(acks[0])->bth.opcode, Opcode::kRcAcknowledge);
  EXPECT_EQ(tag_of(acks[0]), std::nullopt);
}

TEST(CnTags, follow_the_vlan_tag) {
  Told host(tags(), 10);
  const auto writes = host.written(16);
  ASSERT_EQ(writes.size(), 1U);
  const uint16_t flow = host.flow_of(*host.side.qp);
  const ByteVector front(writes[0].begin() + 12, writes[0].begin() + 22);
  EXPECT_EQ(front, (ByteVector{0x81, 0, 0, 10, 0x22, 0xe9, static_cast<uint8_t>(flow >> 8),
                               static_cast<uint8_t>(flow), 8, 0}));
  host.hear(Told::answer(writes[0]));
  host.expect_only("cnms_taken", 1);
}

TEST(CnTags, are_added_for_the_configured_priorities_only) {
  for (const bool named : {true, false}) {
    CongestionConfig config = tags();
    config.priorities = named ? 1 : 2;  // the queue pair has priority 0
    Told host(config);
    EXPECT_EQ(tag_of(host.written(16)[0]).has_value(), named);
  }
}

TEST(CnTags, of_datagrams_contain_the_flow_of_their_queue_pair) {
  Told host;
  const auto qp = make_service(host.side, IBV_QPT_UD);
  open_datagrams(*qp);
  const auto to = must(host.side.pd->create_address_handle(address_of(gid_of("10.0.0.2"))));
  ASSERT_EQ(send(host.side, *qp, {.offset = LoneHost::kGuard, .length = 64, .to = to.get(), .remote_qp = 7}),
            0);
  const auto sent = host.sent_now();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(tag_of(sent[0]), host.flow_of(*qp));
  EXPECT_NE(host.flow_of(*qp), host.flow_of(*host.side.qp));
  host.hear(Told::answer(sent[0]));
  host.expect_only("cnms_taken", 1);
  EXPECT_EQ(host.side.device->host().congestion_flows().requests(host.flow_of(*qp)).notices, 1U);
  // The sampled packet names another queue pair of the same host.
  ByteVector forged = sent[0];
  forged[14 + 4 + 20 + 8 + 12 + 7] ^= 1;  // DETH: source queue pair
  host.hear(Told::answer(forged));
  EXPECT_EQ(host.count("cnms_mismatched"), 1U);
}

TEST(CnTags, are_ignored_in_received_packets_without_configuration) {
  Told host((CongestionConfig()));
  Packet write = host.write(Opcode::kRcWriteOnly, 0, 8, 64, 64);
  write.with_cn_tag(0x1234);
  const Lines acknowledged = host.receive(write);
  EXPECT_EQ(acknowledged, (Lines{"RC_ACK 0 1f"}));
  EXPECT_EQ(host.side.memory[LoneHost::kGuard + 8], 1);
  EXPECT_EQ(host.flow_of(*host.side.qp), 0) << "a host without the configuration has no flows";
}

TEST(CnTags, are_omitted_for_queue_pairs_beyond_65535_flows) {
  Told host;
  CongestionFlows& flows = host.side.device->host().congestion_flows();
  while (flows.size() < CongestionFlows::kMax) ASSERT_NE(flows.enter(Qpn{0x999}, nullptr), 0);
  EXPECT_EQ(host.count("cn_flows_full"), 0U);
  const uint16_t before = host.flow_of(*host.side.qp);
  host.to_bare(IBV_QPS_RESET);
  host.connect();
  EXPECT_EQ(host.flow_of(*host.side.qp), before) << "the only one that is free";
  const auto second = make_service(host.side, IBV_QPT_UC);
  connect_to(*second, IBV_QPT_UC, gid_of("10.0.0.2"), 5);
  EXPECT_EQ(host.flow_of(*second), 0);
  EXPECT_EQ(host.count("cn_flows_full"), 1U);
  ASSERT_EQ(send(host.side, *second, {.offset = LoneHost::kGuard, .length = 64}), 0);
  const auto sent = host.sent_now();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(tag_of(sent[0]), std::nullopt);
  host.hear(Told::answer(sent[0]));
  host.expect_only("cnms_unknown_flow", 1);
}

TEST(Cnms, are_recorded_for_the_flow_of_the_sampled_packet) {
  Told host;
  const auto writes = host.written(600);
  EXPECT_FALSE(host.requests().latest);
  host.now += 5us;
  host.hear(Told::answer(writes[1]));
  host.expect_only("cnms_taken", 1);
  ASSERT_TRUE(host.requests().latest);
  const CongestionNotice& notice = *host.requests().latest;
  EXPECT_EQ(notice.at, host.now);
  EXPECT_EQ(notice.feedback, 21);
  EXPECT_EQ(notice.priority, 5);
  EXPECT_EQ(notice.point, (CongestionPointId{kSwitch, Be16{13}}));
  EXPECT_EQ(notice.queue_offset, 6400);
  EXPECT_EQ(notice.queue_delta, -192);
  EXPECT_EQ(host.responses().notices, 0U);
  host.hear(Told::answer(writes[2], Told::cnm_about(writes[2], 63)));
  EXPECT_EQ(host.requests().notices, 2U);
  EXPECT_EQ(host.requests().latest->feedback, 63);
  // Acknowledgments of the peer are processed as before.
  EXPECT_EQ(host.receive(host.response(Opcode::kRcAcknowledge, 2)), Lines{});
  EXPECT_EQ(host.statuses(), Statuses{IBV_WC_SUCCESS});
}

TEST(Cnms, about_read_responses_are_recorded_for_the_response_flow) {
  Told host;
  host.port().put(encode_packet(host.read(0, 0, 500).finish()));
  const auto sent = host.sent_now();
  host.hear(Told::answer(sent[1]));
  host.expect_only("cnms_taken", 1);
  EXPECT_EQ(host.responses().notices, 1U);
  EXPECT_EQ(host.requests().notices, 0U);
}

TEST(Cnms, over_ip_are_recorded_like_those_of_layer_2) {
  CongestionConfig config;
  config.cnm_port = kCnmPort;
  Told host(config);
  const auto writes = host.written(16);
  EXPECT_EQ(tag_of(writes[0]), std::nullopt);
  L3CnmTlvs more;
  more.available_bandwidth = 25'000;
  more.rate_change = -70;
  more.ecn = EcnCounts{100, 3};
  host.hear(Told::answer_over_ip(writes[0], more));
  host.expect_only("cnms_taken", 1);
  ASSERT_TRUE(host.requests().latest);
  const CongestionNotice over_ip = *host.requests().latest;
  EXPECT_EQ(over_ip.more, more);
  host.hear(Told::answer(writes[0]));
  EXPECT_EQ(host.count("cnms_taken"), 2U);
  const CongestionNotice& in_layer_2 = *host.requests().latest;
  EXPECT_EQ(in_layer_2.more, L3CnmTlvs());
  EXPECT_EQ(in_layer_2.feedback, over_ip.feedback);
  EXPECT_EQ(in_layer_2.point, over_ip.point);
  EXPECT_EQ(in_layer_2.queue_offset, over_ip.queue_offset);
  EXPECT_EQ(in_layer_2.queue_delta, over_ip.queue_delta);
}

TEST(Cnms, are_counted_as_another_protocol_without_configuration) {
  Told host((CongestionConfig()));
  const auto writes = host.written(16);
  host.hear(Told::answer(writes[0]));
  host.hear(Told::answer_over_ip(writes[0]));
  host.expect_only("cnms_taken", 0);
  EXPECT_EQ(host.count("rx_other_protocol"), 2U);
}

// A change that makes the sampled packet invalid, and the counter that must increment.
struct Forgery {
  const char* what;
  void (*change)(ByteVector& sampled);
  const char* counter;
};
constexpr size_t kIp = 18, kUdp = kIp + 20, kBth = kUdp + 8;  // after the CN-TAG

TEST(Cnms, about_a_packet_that_was_not_sent_are_rejected) {
  constexpr Forgery kForgeries[] = {
      {"another CN-TAG", [](ByteVector& f) { f[14] ^= 0x40; }, "cnms_unknown_flow"},
      {"no IP packet", [](ByteVector& f) { f[kIp - 1] = 6; }, "cnms_mismatched"},
      {"from another host", [](ByteVector& f) { f[kIp + 15] = 9; }, "cnms_mismatched"},
      {"to another host", [](ByteVector& f) { f[kIp + 19] = 9; }, "cnms_mismatched"},
      {"not in UDP", [](ByteVector& f) { f[kIp + 9] = 6; }, "cnms_mismatched"},
      {"another source port", [](ByteVector& f) { f[kUdp + 1] ^= 1; }, "cnms_mismatched"},
      {"another destination port", [](ByteVector& f) { f[kUdp + 3] ^= 1; }, "cnms_mismatched"},
      {"an opcode that is none", [](ByteVector& f) { f[kBth] = 0x1f; }, "cnms_mismatched"},
      {"another service", [](ByteVector& f) { f[kBth] |= 0x20; }, "cnms_mismatched"},
      {"an acknowledgement", [](ByteVector& f) { f[kBth] = 0x11; }, "cnms_mismatched"},
      {"another queue pair", [](ByteVector& f) { f[kBth + 7] ^= 1; }, "cnms_mismatched"},
      {"a PSN that is not used yet",
       [](ByteVector& f) { f[kBth + 11] = static_cast<uint8_t>(f[kBth + 11] + 1); }, "cnms_mismatched"},
      {"a PSN of long ago", [](ByteVector& f) { f[kBth + 9] = 0xf0; }, "cnms_mismatched"},
      {"a READ response that nobody asked for", [](ByteVector& f) { f[kBth] = 0x0d; }, "cnms_mismatched"},
  };
  for (const Forgery& forgery : kForgeries) {
    SCOPED_TRACE(forgery.what);
    Told host;
    ByteVector sampled = host.written(16)[0];
    forgery.change(sampled);
    host.hear(Told::answer(sampled));
    host.expect_only(forgery.counter, 1);
    EXPECT_EQ(host.requests().notices + host.responses().notices, 0U);
  }
}

TEST(Cnms, that_are_malformed_or_multicast_are_rejected) {
  Told host;
  const auto writes = host.written(16);
  ByteVector version = Told::answer(writes[0]);
  const size_t pdu = 14 + 4;
  version[pdu] |= 0x10;
  host.hear(version);
  ByteVector reserved = Told::answer(writes[0]);
  reserved[pdu] |= 1;
  host.hear(reserved);
  ByteVector cut = Told::answer(writes[0]);
  cut.resize(cut.size() - 1);
  host.hear(cut);
  host.expect_only("cnms_malformed", 3);
  // A multicast destination MAC would address flows of several hosts.
  ByteVector group = Told::answer(writes[0]);
  group[0] = 0xff;
  host.hear(group);
  EXPECT_EQ(host.count("rx_not_for_host"), 1U);
  // A frame in several segments is processed like a contiguous one.
  host.receive_bytes(Told::answer(writes[0]), 20);
  EXPECT_EQ(host.count("cnms_taken"), 1U);
}

TEST(Cnms, with_short_samples_are_accepted_only_if_configured) {
  for (const bool believed : {false, true}) {
    CongestionConfig config = tags();
    config.short_samples = believed;
    Told host(config);
    const auto writes = host.written(16);
    for (const size_t bytes : {0, 2, 30, 41}) {
      Cnm cnm = Told::cnm_about(writes[0]);
      cnm.msdu = cnm.msdu.first(bytes);
      host.hear(Told::answer(writes[0], cnm));
    }
    host.expect_only(believed ? "cnms_taken" : "cnms_unproven", 4);
    // The part of the packet that the message contains must still match.
    ByteVector other = writes[0];
    other[kIp + 19] = 9;
    Cnm cnm = Told::cnm_about(other);
    cnm.msdu = cnm.msdu.first(30);
    host.hear(Told::answer(other, cnm));
    EXPECT_EQ(host.count("cnms_mismatched"), 1U);
  }
}

TEST(Cnms, about_a_reset_or_failed_queue_pair_are_rejected) {
  Told host;
  const ByteVector old = host.written(16)[0];
  const uint16_t before = host.flow_of(*host.side.qp);
  host.to_bare(IBV_QPS_RESET);
  EXPECT_EQ(host.flow_of(*host.side.qp), 0) << "somebody else may have the number";
  host.hear(Told::answer(old));
  host.expect_only("cnms_unknown_flow", 1);
  host.connect();
  EXPECT_NE(host.flow_of(*host.side.qp), before);
  host.hear(Told::answer(old));
  host.expect_only("cnms_unknown_flow", 2);
  // A queue pair in the error state sends nothing that could be rate limited.
  const ByteVector young = host.written(16)[0];
  host.to_bare(IBV_QPS_ERR);
  host.hear(Told::answer(young));
  host.expect_only("cnms_unknown_flow", 3);
}

TEST(Cnms, over_ip_are_rejected_if_sample_and_flow_do_not_match) {
  CongestionConfig config;
  config.cnm_port = kCnmPort;
  Told host(config);
  const ByteVector frame = host.written(16)[0];
  FiveTuple other = *read_five_tuple(frame);
  other.source_port ^= 1;
  host.hear(Told::answer_over_ip(frame, other));
  host.expect_only("cnms_mismatched", 1);
  ByteVector strange = frame;
  strange[kBth - 4 + 7] ^= 1;  // this frame has no CN-TAG
  host.hear(Told::answer_over_ip(strange));
  EXPECT_EQ(host.count("cnms_unknown_flow"), 1U) << "no queue pair sends there";
  ByteVector damaged = Told::answer_over_ip(frame);
  damaged.back() ^= 1;
  host.hear(damaged);
  EXPECT_EQ(host.count("cnms_malformed"), 1U);
  EXPECT_EQ(host.count("cnms_taken"), 0U);
}

TEST(Cnms, over_ip_require_a_signature_and_a_new_sequence_if_a_key_is_set) {
  CongestionConfig config;
  config.cnm_port = kCnmPort;
  config.cnm_key = kCnmKey;
  Told host(config);
  const ByteVector frame = host.written(16)[0];
  host.hear(Told::answer_over_ip(frame));
  host.expect_only("cnms_unsigned", 1);
  const auto signed_with = [&](uint32_t sequence, const SipKey& key) {
    L3CnmTlvs more;
    more.auth_sequence = sequence;
    ByteVector bytes = Told::answer_over_ip(frame, more);
    EXPECT_TRUE(sign_l3_cnm(bytes, kCnmPort, key));
    return bytes;
  };
  SipKey other = kCnmKey;
  other[0] ^= 1;
  host.hear(signed_with(7, other));
  host.expect_only("cnms_unsigned", 2);
  host.hear(signed_with(7, kCnmKey));
  EXPECT_EQ(host.count("cnms_taken"), 1U);
  host.hear(signed_with(7, kCnmKey));
  host.hear(signed_with(6, kCnmKey));
  EXPECT_EQ(host.count("cnms_old"), 2U);
  host.hear(signed_with(8, kCnmKey));
  EXPECT_EQ(host.count("cnms_taken"), 2U);
  host.hear(signed_with(600'000, kCnmKey));  // 6 s ahead of the clock
  EXPECT_EQ(host.count("cnms_old"), 3U);
  host.now += 6s;
  host.hear(signed_with(9, kCnmKey));
  EXPECT_EQ(host.count("cnms_old"), 4U);
  EXPECT_EQ(host.requests().notices, 2U);
}

TEST(Cnms, are_limited_to_the_configured_rate) {
  CongestionConfig config = tags();
  config.cnm_rate = 100;  // burst of 10 messages
  Told host(config);
  const ByteVector frame = host.written(16)[0];
  for (int i = 0; i < 50; ++i) host.hear(Told::answer(frame));
  EXPECT_EQ(host.count("cnms_taken"), 11U);
  EXPECT_EQ(host.count("cnms_too_many"), 39U);
  ByteVector forged = frame;
  forged[kBth + 7] ^= 1;
  host.hear(Told::answer(forged));
  EXPECT_EQ(host.count("cnms_mismatched"), 1U) << "and what is forged takes nobody's place";
  host.now += 1s;
  host.hear(Told::answer(frame));
  EXPECT_EQ(host.count("cnms_taken"), 12U);
}

}  // namespace
}  // namespace roci::test

// Floods, forgeries and restarts by a peer or a spoofed sender. The host's reaction is bounded by the received
// packets, the round-trip time or a retry count.
#include <gtest/gtest.h>

#include "base/rng.hpp"
#include "support/hosts/lone_host.hpp"
#include "support/hosts/services.hpp"
#include "transport/queue_pair/reorder_buffer.hpp"
#include "transport/queue_pair/send_gate.hpp"
#include "transport/rc/reliable_queue_pair.hpp"

namespace roci::test {
namespace {

constexpr uint32_t kWindow = 64;  // packets
constexpr Nanos kRoundTrip = 100us;

// A long WRITE whose first packet was acknowledged after one round trip. The rest of the window is in flight.
struct NakFlood : testing::Test {
  static LoneHostOptions options() {
    LoneHostOptions o;
    o.region = 1 << 20;
    o.window_bytes = kWindow * 256;
    o.control.profile = "none";  // constant window
    return o;
  }
  void SetUp() override {
    ASSERT_EQ(host.post(IBV_WR_RDMA_WRITE, 1, 1 << 20), 0);
    ASSERT_EQ(host.work().size(), kWindow);
    host.now += kRoundTrip;
    ASSERT_EQ(host.receive(host.response(Opcode::kRcAcknowledge, 0)).size(), 1U);
  }
  size_t nak(int psn) { return host.receive(host.response(Opcode::kRcAcknowledge, psn, 0x60)).size(); }
  LoneHost host{options()};
};

TEST_F(NakFlood, sender_retransmits_at_most_four_windows_per_round_trip) {
  size_t sent = 0;
  constexpr int kNaks = 1000;
  for (int i = 1; i <= kNaks; ++i) {
    host.now += 1us;
    sent += nak(i);
  }
  // Each NAK acknowledges one packet and so permits one new packet. Per round trip four windows are retransmitted.
  // The shortest round trip under this flood is 64 us: a window at one NAK per microsecond.
  EXPECT_LE(sent, kNaks + (kNaks / kWindow + 1) * 4 * kWindow);
  EXPECT_GE(host.side.counter("naks_suppressed"), 930U);
  EXPECT_EQ(host.side.qp->state(), IBV_QPS_RTS);
}

TEST_F(NakFlood, repeated_nak_uses_one_retry_per_round_trip) {
  size_t sent = 0;
  for (int i = 0; i < 90; ++i) {
    host.now += 1us;
    sent += nak(1);
  }
  EXPECT_EQ(sent, kWindow);
  EXPECT_EQ(host.side.counter("packets_retransmitted"), kWindow);
  for (int round = 0; round < 3; ++round) {  // three retries
    host.now += kRoundTrip;
    nak(1);
  }
  EXPECT_EQ(host.statuses(), Statuses{IBV_WC_RETRY_EXC_ERR});
}

// The first NAK already triggered the retransmission, so ignoring an early duplicate loses nothing.
TEST_F(NakFlood, loss_after_a_suppressed_nak_is_recovered_by_the_next_one) {
  ASSERT_EQ(nak(1), kWindow);
  host.now += 10us;
  EXPECT_EQ(nak(1), 0U) << "what was sent again cannot have been missed yet";
  EXPECT_EQ(nak(5), kWindow) << "what was sent again has arrived up to there";
  host.now += kRoundTrip;
  EXPECT_EQ(nak(9), kWindow);
  EXPECT_EQ(host.side.counter("naks_suppressed"), 1U);
}

TEST(ResponseStorm, read_gaps_cause_at_most_four_requests_per_round_trip) {
  LoneHostOptions options;
  options.region = 1 << 20;
  LoneHost host(options);
  ASSERT_EQ(host.post(IBV_WR_RDMA_READ, 1, 512 * 256), 0);
  ASSERT_EQ(host.work(), Lines{"RC_READ_REQUEST 0"});
  host.now += kRoundTrip;
  EXPECT_EQ(host.receive(host.response(Opcode::kRcReadResponseFirst, 0, 0x1f, 256)), Lines{});
  size_t sent = 0;
  for (int i = 1; i < 500; ++i) {  // a response after the gap, then the missing one
    host.now += 1us;
    sent += host.receive(host.response(Opcode::kRcReadResponseMiddle, i + 1, 0, 256)).size();
    sent += host.receive(host.response(Opcode::kRcReadResponseMiddle, i, 0, 256)).size();
  }
  EXPECT_LE(sent, 24U);  // 500 us, at most four retransmissions per round trip
  EXPECT_GE(sent, 1U);
  EXPECT_EQ(host.side.qp->state(), IBV_QPS_RTS);
}

TEST(CnpFlood, packets_are_only_counted) {
  LoneHost host;
  ASSERT_EQ(host.post(IBV_WR_RDMA_WRITE, 1, 256), 0);
  host.work();
  Packet cnp = make_packet(Opcode::kCnp);
  cnp.between(MacAddress::local(2), IpAddress::from_v4(0x0a000002), MacAddress::local(1),
              IpAddress::from_v4(0x0a000001));
  cnp.to(Qpn{host.side.qp->qp_num()}, Psn{0});
  const ByteVector bytes = encode_packet(cnp.finish());
  for (int i = 0; i < 10'000; ++i) EXPECT_EQ(host.receive_bytes(bytes), Lines{});
  EXPECT_EQ(host.side.counter("rx_cnp"), 10'000U);
  EXPECT_EQ(host.pool().in_use(), 0U);
  EXPECT_EQ(host.receive(host.response(Opcode::kRcAcknowledge, 0)), Lines{});
  EXPECT_EQ(host.statuses(), Statuses{IBV_WC_SUCCESS});
}

// A QCN notification (802.1Q 33.4.1) without congestion control that expects it.
TEST(CnmFlood, frames_are_only_counted) {
  LoneHost host;
  const Packet honest = host.write(Opcode::kRcWriteOnly, 0, 0, 4, 4);
  ByteVector bytes = encode_packet(Packet(honest).finish());
  bytes[12] = 0x22;  // EtherType 0x22e7
  bytes[13] = 0xe7;
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(host.receive_bytes(bytes), Lines{});
  EXPECT_EQ(host.side.counter("rx_other_protocol"), 1000U);
  EXPECT_EQ(host.receive(honest), Lines{"RC_ACK 0 1f"});
}

TEST(RequestStorm, requests_after_a_gap_get_one_nak) {
  LoneHost host;
  Lines all;
  for (int i = 1; i <= 10'000; ++i) {
    const Lines lines = host.receive(host.write(Opcode::kRcWriteOnly, i, 0, 4, 4));
    all.insert(all.end(), lines.begin(), lines.end());
  }
  EXPECT_EQ(all, Lines{"RC_ACK 0 60"});
  EXPECT_EQ(host.side.counter("requests_out_of_order"), 10'000U);
}

TEST(RequestStorm, duplicates_get_one_acknowledgment_per_burst) {
  LoneHost host;
  const ByteVector bytes = encode_packet(host.write(Opcode::kRcWriteOnly, 0, 0, 4, 4).finish());
  for (int i = 0; i < 320; ++i) host.port().put(bytes);
  EXPECT_EQ(host.work().size(), 10U);  // of 32 each
  EXPECT_EQ(host.side.counter("requests_received"), 1U);
  EXPECT_EQ(host.side.counter("requests_duplicate"), 319U);
}

TEST(RequestStorm, sends_without_a_receive_get_one_rnr_nak_per_burst) {
  LoneHost host;
  const ByteVector bytes = encode_packet(host.request(Opcode::kRcSendOnly, 0, 4).finish());
  for (int i = 0; i < 320; ++i) host.port().put(bytes);
  EXPECT_EQ(host.work().size(), 10U);
  EXPECT_EQ(host.side.counter("rnr_naks_sent"), 10U);
  EXPECT_EQ(host.pool().in_use(), 0U);
}

// Congestion control holds back the response to a READ. Linux 6.2 and later fail the connection when an ACK of an earlier
// packet arrives within the response, so the ACK of the duplicate follows it.
TEST(RequestStorm, no_acknowledgment_is_sent_within_a_paced_read_response) {
  LoneHostOptions options;
  options.control.profiles["paced"] = {"static_rate", {}, 10us, "none"};
  options.control.profile = "paced";
  LoneHost host(options);
  EXPECT_EQ(host.receive(host.write(Opcode::kRcWriteOnly, 0, 0, 4, 4).requesting_ack()),
            Lines{"RC_ACK 0 1f"});
  ASSERT_NE(host.core().gates, nullptr);
  host.core().gates->responses.set_pace(1'000'000'000, 10us);
  Lines all = host.receive(host.read(1, 0, 1024));
  EXPECT_EQ(all, Lines{"RC_READ_RESP_FIRST 1"});
  Lines more = host.receive(host.write(Opcode::kRcWriteOnly, 0, 0, 4, 4));
  all.insert(all.end(), more.begin(), more.end());
  for (int i = 0; i < 40; ++i) {
    host.now += 1us;
    more = host.work();
    all.insert(all.end(), more.begin(), more.end());
  }
  EXPECT_EQ(all, (Lines{"RC_READ_RESP_FIRST 1", "RC_READ_RESP_MIDDLE 2", "RC_READ_RESP_MIDDLE 3",
                        "RC_READ_RESP_LAST 4", "RC_ACK 0 1f"}));
}

// The responder answers a duplicate READ: a peer could request the same bytes with new READs. Copies in one burst get
// one response.
TEST(RequestStorm, duplicate_reads_of_a_burst_get_at_most_two_responses) {
  LoneHost host;
  EXPECT_EQ(host.receive(host.read(0, 0, 8192)).size(), 32U);
  const ByteVector bytes = encode_packet(host.read(0, 0, 8192).finish());
  for (int i = 0; i < 32; ++i) host.port().put(bytes);
  EXPECT_LE(host.work().size(), 2 * 32U);
  EXPECT_EQ(host.side.counter("read_replays"), 32U);
}

// An off-path attacker knows addresses and queue pair numbers, and guesses the PSN (24 bits) and the key (32 bits).
TEST(SpoofedPackets, with_guessed_psns_and_keys_are_rejected) {
  LoneHost host;
  ASSERT_EQ(host.post(IBV_WR_RDMA_WRITE, 1, 512), 0);
  host.work();
  ASSERT_EQ(host.side.receive(2, LoneHost::kGuard, 256), 0);
  const std::vector<uint8_t> before = host.side.memory;
  Rng rng{7};
  constexpr Opcode kOpcodes[] = {Opcode::kRcWriteOnly,        Opcode::kRcSendOnly,
                                 Opcode::kRcReadRequest,      Opcode::kRcAcknowledge,
                                 Opcode::kRcReadResponseOnly, Opcode::kRcAtomicAcknowledge,
                                 Opcode::kRcWriteMiddle,      Opcode::kRcFetchAdd};
  size_t answers = 0;
  for (int i = 0; i < 20'000; ++i) {
    const Opcode opcode = kOpcodes[rng.below(std::size(kOpcodes))];
    Packet packet = host.request(opcode, 0, opcode == Opcode::kRcWriteOnly ? 16 : 0);
    packet.bth.psn = Psn{static_cast<uint32_t>(rng.below(1 << 24))};
    if (packet.reth)
      packet.with_reth(host.side.address(LoneHost::kGuard), MemoryKey{static_cast<uint32_t>(rng.next())}, 16);
    if (packet.aeth) packet.with_aeth(static_cast<uint8_t>(rng.below(256)), Msn{1});
    answers += host.receive(packet).size();
  }
  EXPECT_EQ(host.side.memory, before);
  EXPECT_LE(answers, 1U);  // NAK for the first packet with a future PSN
  EXPECT_EQ(host.statuses(), Statuses{});
  // Each of them reached the queue pair, and was refused there for its PSN.
  EXPECT_EQ(host.side.counter("requests_out_of_order") + host.side.counter("rx_bad_state") +
                host.side.counter("responses_ghost") + host.side.counter("responses_duplicate"),
            20'000U);
  EXPECT_EQ(host.side.qp->state(), IBV_QPS_RTS);
  host.receive(host.response(Opcode::kRcAcknowledge, 1));
  EXPECT_EQ(host.statuses(), Statuses{IBV_WC_SUCCESS});
  EXPECT_EQ(host.receive(host.request(Opcode::kRcSendOnly, 0, 16)), Lines{"RC_ACK 0 1f"});
  // The same packet with the right PSN and key is executed.
  Packet right = host.request(Opcode::kRcWriteOnly, 1, 16);
  right.with_reth(host.side.address(LoneHost::kGuard), MemoryKey{host.side.region->rkey()}, 16);
  EXPECT_EQ(host.receive(right), Lines{"RC_ACK 1 1f"});
  EXPECT_NE(host.side.memory, before);
}

// Between packets of the peer. Each NAK makes the peer retransmit and reduce its window.
TEST(SpoofedPackets, with_psns_far_ahead_cause_at_most_ten_naks_per_second) {
  LoneHost host;
  const auto naks_after = [&](int ahead, int sent) {
    const Lines lines = host.receive(host.write(Opcode::kRcWriteOnly, sent + ahead, 0, 8, 8));
    EXPECT_EQ(host.receive(host.write(Opcode::kRcWriteOnly, sent, 0, 8, 8)),
              Lines{"RC_ACK " + std::to_string(sent) + " 1f"});
    return lines.size();
  };
  size_t naks = 0;
  int sent = 0;
  for (; sent < 1000; ++sent) {
    naks += naks_after(65'537 + sent * 7919, sent);
    host.wait(1ms);
  }
  EXPECT_GE(naks, 10U);
  EXPECT_LE(naks, 11U) << "one in each interval of 100 ms";
  for (; sent < 1100; ++sent) EXPECT_EQ(naks_after(65'536, sent), 1U) << "a gap that a peer may have";
}

TEST(PeerRestart, fails_the_connection_and_permits_a_new_one) {
  TwoHosts hosts({.timeout = 8, .retry_count = 3});
  hosts.connect();
  fill(hosts.a, 0, 100'000, 1);
  ASSERT_EQ(hosts.a.post(IBV_WR_RDMA_WRITE, 1, 0, 100'000, hosts.b.address(0), hosts.b.region->rkey()), 0);
  ASSERT_EQ(hosts.a.post(IBV_WR_RDMA_READ, 2, 0, 1000, hosts.b.address(0), hosts.b.region->rkey()), 0);
  hosts.run(5us);
  const uint32_t old_number = hosts.b.qp->qp_num();
  const uint32_t old_key = hosts.b.region->rkey();
  hosts.b.qp.reset();  // loses its state
  hosts.b.region.reset();
  hosts.b.region = must(hosts.b.pd->register_memory(hosts.b.memory.data(), hosts.b.memory.size(),
                                                    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
  hosts.make_qp(hosts.b);
  EXPECT_NE(hosts.b.qp->qp_num(), old_number);
  EXPECT_NE(hosts.b.region->rkey(), old_key);
  hosts.run(1s);
  const auto all = hosts.a.completions();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(all[1].status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_GT(hosts.b.counter("rx_unknown_qp"), 0U);

  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RESET;
  must(hosts.a.qp->modify(attr, IBV_QP_STATE));
  hosts.to_rts(hosts.a, hosts.b, 77, 88);
  hosts.to_rts(hosts.b, hosts.a, 88, 77);
  fill(hosts.a, 0, 5000, 9);
  ASSERT_EQ(hosts.a.post(IBV_WR_RDMA_WRITE, 3, 0, 5000, hosts.b.address(0), hosts.b.region->rkey()), 0);
  hosts.run(1s);
  EXPECT_EQ(completion_lines(hosts.a), Lines{"3 SUCCESS 5000"});
  EXPECT_TRUE(holds(hosts.b, 0, 5000, 9));
}

TEST(BufferBudget, insert_beyond_the_budget_fails_and_all_buffers_are_freed) {
  BufferBudget budget{.most = 2};
  {
    ReorderBuffer first(8, budget);
    ReorderBuffer second(8, budget);
    auto pool = must(MbufPool::create("keep_budget", 63, 100));
    std::array<rte_mbuf*, 3> frames{};
    ASSERT_EQ(rte_pktmbuf_alloc_bulk(pool->get(), frames.data(), 3), 0);
    EXPECT_TRUE(first.insert(Psn{1}, frames[0]));
    EXPECT_TRUE(second.insert(Psn{1}, frames[1]));
    EXPECT_FALSE(first.insert(Psn{2}, frames[2]));
    EXPECT_FALSE(second.insert(Psn{2}, frames[2]));
    rte_mbuf* const taken = second.take(Psn{1});
    EXPECT_EQ(taken, frames[1]);
    rte_pktmbuf_free(taken);
    EXPECT_TRUE(first.insert(Psn{2}, frames[2]));
    first.clear();
    rte_pktmbuf_free_bulk(frames.data(), 3);
    EXPECT_EQ(pool->in_use(), 0U);
  }
  EXPECT_EQ(budget.kept, 0U);
}

}  // namespace
}  // namespace roci::test

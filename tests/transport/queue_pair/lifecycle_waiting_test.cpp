// Wait conditions of a queue pair and their limits: address resolution, port and pool without space, acknowledgments,
// RNR NAKs, windows.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/hosts/lone_host.hpp"
#include "wire/net/arp.hpp"

namespace roci::test {
namespace {

// --- address resolution

ByteVector arp_reply(const MacAddress& mac) {
  ArpMessage reply;
  reply.operation = ArpOperation::kReply;
  reply.sender_mac = mac;
  reply.sender_ip = IpAddress::from_v4(0x0a000002);
  reply.target_mac = MacAddress::local(1);
  reply.target_ip = IpAddress::from_v4(0x0a000001);
  ByteVector frame(kMaxArpFrame);
  frame.resize(build_arp({MacAddress::local(1), mac}, reply, frame));
  return frame;
}

TEST(Lifecycle, unresolved_peer_fails_posted_requests) {
  LoneHostOptions options;
  options.static_peer = false;
  LoneHost host(options);
  for (uint64_t id = 1; id <= 3; ++id) ASSERT_EQ(host.post(IBV_WR_RDMA_WRITE, id, 8), 0);
  EXPECT_EQ(host.wait(1s), Lines{});
  EXPECT_EQ(host.statuses(), Statuses{});
  host.wait(10s);
  EXPECT_EQ(host.statuses(), (Statuses{IBV_WC_RETRY_EXC_ERR, IBV_WC_WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR}));
}

// The reply to the solicitation may be lost. The responder uses the source MAC of its peer's request, but not that of
// a packet from another host.
TEST(Lifecycle, responder_uses_the_source_mac_of_an_unresolved_peer) {
  LoneHostOptions options;
  options.static_peer = false;
  LoneHost host(options);
  const Packet request = host.write(Opcode::kRcWriteOnly, 0, 0, 8, 8);
  Packet from_unknown_peer = request;
  from_unknown_peer.between(MacAddress::local(9), IpAddress::from_v4(0x0a000009), MacAddress::local(1),
                            IpAddress::from_v4(0x0a000001));
  EXPECT_EQ(host.receive(from_unknown_peer), Lines{});
  EXPECT_EQ(host.side.counter("rx_wrong_source"), 1U);
  EXPECT_EQ(host.receive(request), Lines{"RC_ACK 0 1f"});
  // The peer changes its MAC address. Expects the next packet at the new address.
  host.receive_bytes(arp_reply(MacAddress::local(77)));
  host.port().put(encode_packet(host.write(Opcode::kRcWriteOnly, 1, 0, 8, 8).finish()));
  const auto packets = host.work_for_packets();
  ASSERT_EQ(packets.size(), 1U);
  EXPECT_EQ(packets[0].destination_mac, MacAddress::local(77));
}

// --- blocked port and exhausted pool

TEST(Lifecycle, worker_idles_on_a_blocked_port_and_sends_when_it_opens) {
  LoneHost host;
  host.port().blocked = true;
  for (uint64_t id = 1; id <= 4; ++id) ASSERT_EQ(host.post(IBV_WR_RDMA_WRITE, id, 8192), 0);  // 128 packets
  EXPECT_EQ(host.work(), Lines{});                                                            // returns
  EXPECT_FALSE(host.side.device->poller().poll(host.now));
  host.port().blocked = false;
  EXPECT_EQ(host.work().size(), 128U);
  host.receive(host.response(Opcode::kRcAcknowledge, 127));
  EXPECT_EQ(host.statuses(), Statuses(4, IBV_WC_SUCCESS));
}

TEST(Lifecycle, blocked_port_exhausts_the_retries) {
  LoneHost host;
  host.port().blocked = true;
  ASSERT_EQ(host.post(IBV_WR_RDMA_WRITE, 1, 8), 0);
  host.wait(1s);
  EXPECT_EQ(host.statuses(), Statuses{IBV_WC_RETRY_EXC_ERR});
}

TEST(Lifecycle, worker_waits_for_an_empty_buffer_pool) {
  LoneHostOptions options;
  options.tx_buffers = 8;  // fewer than a worker stages
  LoneHost host(options);
  host.port().blocked = true;
  ASSERT_EQ(host.post(IBV_WR_RDMA_WRITE, 1, 8192), 0);
  EXPECT_EQ(host.work(), Lines{});
  EXPECT_FALSE(host.side.device->poller().poll(host.now));
  EXPECT_GT(host.side.counter("tx_no_buffer"), 0U);
  host.port().blocked = false;
  EXPECT_EQ(host.work().size(), 32U);
}

// The program may use its memory for another purpose after it has moved the queue pair to the error state.
TEST(Lifecycle, no_memory_is_read_for_the_peer_after_the_error_state) {
  LoneHostOptions options;
  options.region = 65536;
  LoneHost host(options);
  host.port().blocked = true;
  host.receive(host.read(0, 0, 65536));
  const std::vector<uint8_t> before = host.side.memory;
  host.to_bare(IBV_QPS_ERR);
  std::fill(host.side.memory.begin(), host.side.memory.end(), uint8_t{0xee});
  host.port().blocked = false;
  const auto packets = host.work_for_packets();
  EXPECT_LT(packets.size(), 65536U / 256) << "only packets that were staged before";
  for (const Packet& packet : packets)
    EXPECT_EQ(std::count(packet.payload.begin(), packet.payload.end(), 0xee), 0) << packet.bth.psn.value();
  host.side.region.reset();
  EXPECT_EQ(host.work(), Lines{});
  EXPECT_EQ(host.side.device->get_async_event(), std::nullopt);
}

// A long READ by the peer does not delay this host's requests.
TEST(Lifecycle, requests_are_sent_during_a_long_read_response) {
  LoneHostOptions options;
  options.region = 1 << 20;
  LoneHost host(options);
  host.port().put(encode_packet(host.read(0, 0, 1 << 20).finish()));
  ASSERT_EQ(host.post(IBV_WR_RDMA_WRITE, 1, 8), 0);
  const Lines lines = host.work();
  EXPECT_EQ(lines.size(), 4097U);
  const auto mine = std::find(lines.begin(), lines.end(), "RC_WRITE_ONLY 0");
  EXPECT_LT(mine - lines.begin(), 64);
}

// --- retries, timers, windows

TEST(Lifecycle, window_delays_further_reads_but_not_a_single_one) {
  LoneHostOptions options;
  options.window_bytes = 512;
  LoneHost host(options);
  ASSERT_EQ(host.post(IBV_WR_RDMA_READ, 1, 1024), 0);
  ASSERT_EQ(host.post(IBV_WR_RDMA_READ, 2, 16), 0);
  EXPECT_EQ(host.work(), Lines{"RC_READ_REQUEST 0"});
  EXPECT_EQ(host.receive(host.response(Opcode::kRcReadResponseFirst, 0, 0x1f, 256)), Lines{});
  for (int i = 1; i < 3; ++i)
    EXPECT_EQ(host.receive(host.response(Opcode::kRcReadResponseMiddle, i, 0x1f, 256)), Lines{});
  EXPECT_EQ(host.receive(host.response(Opcode::kRcReadResponseLast, 3, 0x1f, 256)),
            Lines{"RC_READ_REQUEST 4"});
}

TEST(Lifecycle, retries_are_counted_and_limited) {
  LoneHost host;  // 3 retries of 4.2 ms each
  ASSERT_EQ(host.post(IBV_WR_RDMA_WRITE, 1, 8), 0);
  EXPECT_EQ(host.wait(16'700us), Lines(4, "RC_WRITE_ONLY 0"));
  EXPECT_EQ(host.statuses(), Statuses{});
  EXPECT_EQ(host.wait(100us), Lines{});
  EXPECT_EQ(host.statuses(), Statuses{IBV_WC_RETRY_EXC_ERR});
  EXPECT_EQ(host.side.counter("timeouts"), 4U);
  EXPECT_EQ(host.side.counter("packets_retransmitted"), 3U);
}

TEST(Lifecycle, timer_stops_when_all_requests_are_acknowledged) {
  LoneHost host;
  ASSERT_EQ(host.post(IBV_WR_RDMA_WRITE, 1, 8), 0);
  host.work();
  EXPECT_EQ(host.side.device->poller().next_deadline(), host.now + Nanos{4096 << 10});
  host.receive(host.response(Opcode::kRcAcknowledge, 0));
  EXPECT_EQ(host.side.device->poller().next_deadline(), kNever);
}

TEST(Lifecycle, progress_resets_the_retry_count) {
  LoneHost host;
  ASSERT_EQ(host.post(IBV_WR_RDMA_WRITE, 1, 1280), 0);  // 5 packets
  host.work();
  for (int packet = 0; packet < 5; ++packet) {
    host.wait(12'000us);  // two timeouts
    EXPECT_EQ(host.statuses(), Statuses{});
    host.receive(host.response(Opcode::kRcAcknowledge, packet));
  }
  EXPECT_EQ(host.statuses(), Statuses{IBV_WC_SUCCESS});
}

TEST(Lifecycle, sequence_nak_uses_a_retry_and_its_duplicates_do_not) {
  LoneHost host;
  ASSERT_EQ(host.post(IBV_WR_RDMA_WRITE, 1, 768), 0);
  host.work();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(host.receive(host.response(Opcode::kRcAcknowledge, 0, 0x60)).size(), 3U);
  }
  host.receive(host.response(Opcode::kRcAcknowledge, 0, 0x60));
  EXPECT_EQ(host.statuses(), Statuses{IBV_WC_RETRY_EXC_ERR});

  LoneHost patient;
  ASSERT_EQ(patient.post(IBV_WR_RDMA_WRITE, 1, 768), 0);
  patient.work();
  for (int i = 0; i < 20; ++i)  // the same NAK 20 times in one batch: nothing was sent in between
    patient.port().put(encode_packet(patient.response(Opcode::kRcAcknowledge, 0, 0x60).finish()));
  EXPECT_EQ(patient.work().size(), 3U);
  EXPECT_EQ(patient.side.qp->state(), IBV_QPS_RTS);
}

TEST(Lifecycle, rnr_nak_delays_retries_up_to_the_rnr_retry_count) {
  LoneHost host;  // 3 RNR retries
  ASSERT_EQ(host.post(IBV_WR_SEND, 1, 300), 0);
  EXPECT_EQ(host.work(), (Lines{"RC_SEND_FIRST 0", "RC_SEND_LAST 1"}));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(host.receive(host.response(Opcode::kRcAcknowledge, 0, 0x2c)), Lines{});  // 640 us
    EXPECT_EQ(host.receive(host.response(Opcode::kRcAcknowledge, 0, 0x2c)), Lines{});  // a duplicate NAK
    EXPECT_EQ(host.wait(639us), Lines{});
    EXPECT_EQ(host.wait(2us), (Lines{"RC_SEND_FIRST 0", "RC_SEND_LAST 1"}));
  }
  host.receive(host.response(Opcode::kRcAcknowledge, 0, 0x2c));
  EXPECT_EQ(host.statuses(), Statuses{IBV_WC_RNR_RETRY_EXC_ERR});
}

TEST(Lifecycle, progress_resets_the_rnr_retry_count) {
  LoneHost host;  // 3 RNR retries
  for (uint64_t id = 1; id <= 3; ++id) ASSERT_EQ(host.post(IBV_WR_SEND, id, 8), 0);
  host.work();
  for (int message = 0; message < 3; ++message) {
    for (int i = 0; i < 3; ++i) {
      host.receive(host.response(Opcode::kRcAcknowledge, message, 0x2c));
      host.wait(641us);
    }
    host.receive(host.response(Opcode::kRcAcknowledge, message));
  }
  EXPECT_EQ(host.statuses(), Statuses(3, IBV_WC_SUCCESS));
}

TEST(Lifecycle, rnr_retry_count_of_seven_is_unlimited) {
  LoneHostOptions options;
  options.rnr_retry = 7;
  LoneHost host(options);
  ASSERT_EQ(host.post(IBV_WR_SEND, 1, 8), 0);
  host.work();
  for (int i = 0; i < 50; ++i) {
    host.receive(host.response(Opcode::kRcAcknowledge, 0, 0x2c));
    EXPECT_EQ(host.wait(641us), Lines{"RC_SEND_ONLY 0"});
  }
  host.receive(host.response(Opcode::kRcAcknowledge, 0));
  EXPECT_EQ(host.statuses(), Statuses{IBV_WC_SUCCESS});
}

TEST(Lifecycle, requests_posted_during_an_rnr_wait_are_delayed) {
  LoneHost host;
  ASSERT_EQ(host.post(IBV_WR_SEND, 1, 8), 0);
  host.work();
  host.receive(host.response(Opcode::kRcAcknowledge, 0, 0x2c));
  ASSERT_EQ(host.post(IBV_WR_RDMA_WRITE, 2, 8), 0);
  EXPECT_EQ(host.work(), Lines{});
  EXPECT_EQ(host.wait(1ms), (Lines{"RC_SEND_ONLY 0", "RC_WRITE_ONLY 1"}));
}

// One packet acknowledges all of the 2^23 PSNs that may be outstanding. Expects that the requester processes it.
TEST(Lifecycle, one_acknowledgment_covers_all_outstanding_psns) {
  LoneHostOptions options;
  options.timeout = 0;
  LoneHost host(options);
  // A READ of 2^31 - 256 bytes uses 2^23 - 1 PSNs, the WRITE after it uses the last one.
  constexpr uint32_t kPsns = (1U << 23) - 1;
  const size_t huge = size_t{kPsns} * 256;
  auto region = must(host.side.pd->register_memory(
      nullptr, huge, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND));  // never accessed
  ibv_sge sge{0, static_cast<uint32_t>(huge), region->lkey()};
  ibv_send_wr wr{};
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_RDMA_READ;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(host.side.qp->post_send(&wr, &bad), 0);
  ASSERT_EQ(host.post(IBV_WR_RDMA_WRITE, 2, 8), 0);
  ASSERT_EQ(host.post(IBV_WR_RDMA_WRITE, 3, 8), 0);
  // No PSN is left for the third.
  EXPECT_EQ(host.work(), (Lines{"RC_READ_REQUEST 0", "RC_WRITE_ONLY 8388607"}));
  // The WRITE is acknowledged, so the READ's responses were lost. Expects that the requester repeats the READ.
  EXPECT_EQ(host.receive(host.response(Opcode::kRcAcknowledge, static_cast<int>(kPsns))),
            Lines{"RC_READ_REQUEST 0"});
}

}  // namespace
}  // namespace roci::test

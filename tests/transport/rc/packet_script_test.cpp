// Packet scripts: the exact packet sequence without a fault and with one fault.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "support/hosts/two_hosts.hpp"
#include "transport/once.hpp"

namespace roci::test {
namespace {

// Fills the sender's memory with a recognizable pattern.
void fill_with_salt(Side& side, size_t offset, size_t length, uint8_t salt) {
  for (size_t i = 0; i < length; ++i)
    side.memory[offset + i] = static_cast<uint8_t>(salt + 31 * i + (i >> 8));
}

bool same(const Side& x, size_t x_offset, const Side& y, size_t y_offset, size_t length) {
  return std::equal(x.memory.begin() + static_cast<ptrdiff_t>(x_offset),
                    x.memory.begin() + static_cast<ptrdiff_t>(x_offset + length),
                    y.memory.begin() + static_cast<ptrdiff_t>(y_offset));
}

void expect_success(const std::vector<ibv_wc>& completions, std::initializer_list<uint64_t> ids) {
  ASSERT_EQ(completions.size(), ids.size());
  size_t i = 0;
  for (const uint64_t id : ids) {
    EXPECT_EQ(completions[i].wr_id, id);
    EXPECT_EQ(completions[i].status, IBV_WC_SUCCESS);
    ++i;
  }
}

TEST(PacketScript, write_of_three_packets_is_acknowledged_up_to_its_last_packet) {
  TwoHosts net;
  net.connect();
  fill_with_salt(net.a, 0, 2500, 1);
  ASSERT_EQ(net.write(7, 0, 2500, 100), 0);
  net.run();
  ASSERT_GE(net.wire.size(), 4U);
  EXPECT_EQ(Lines(net.wire.begin(), net.wire.begin() + 3),
            (Lines{"> RC_WRITE_FIRST 0", "> RC_WRITE_MIDDLE 1", "> RC_WRITE_LAST 2"}));
  EXPECT_EQ(net.wire.back(), "< RC_ACK 2 ack");
  expect_success(net.a.completions(), {7});
  EXPECT_TRUE(same(net.a, 0, net.b, 100, 2500));
  EXPECT_TRUE(net.b.completions().empty());
}

TEST(PacketScript, lost_middle_packet_causes_a_nak_and_go_back_n) {
  TwoHosts net;
  net.connect();
  fill_with_salt(net.a, 0, 4096, 2);
  net.lose = once("> RC_WRITE_MIDDLE 1");
  ASSERT_EQ(net.write(1, 0, 4096), 0);
  net.run(1ms);  // well below the timeout: the NAK causes the repair
  EXPECT_EQ(net.wire, (Lines{"> RC_WRITE_FIRST 0", "> RC_WRITE_MIDDLE 1 lost", "> RC_WRITE_MIDDLE 2",
                             "> RC_WRITE_LAST 3", "< RC_ACK 0 ack", "< RC_ACK 1 nak 0", "> RC_WRITE_MIDDLE 1",
                             "> RC_WRITE_MIDDLE 2", "> RC_WRITE_LAST 3", "< RC_ACK 1 ack", "< RC_ACK 2 ack",
                             "< RC_ACK 3 ack"}));
  expect_success(net.a.completions(), {1});
  EXPECT_TRUE(same(net.a, 0, net.b, 0, 4096));
  EXPECT_EQ(net.b.counter("naks_sequence_sent"), 1U);
  EXPECT_EQ(net.a.counter("timeouts"), 0U);
}

TEST(PacketScript, tail_probe_recovers_from_a_lost_nak) {
  TwoHosts net;
  net.connect();
  fill_with_salt(net.a, 0, 3000, 3);
  Lines lost{"> RC_WRITE_MIDDLE 1", "< RC_ACK 1 nak 0"};
  net.lose = [&](const std::string& line) {
    const auto it = std::find(lost.begin(), lost.end(), line);
    if (it == lost.end()) return false;
    lost.erase(it);
    return true;
  };
  ASSERT_EQ(net.write(1, 0, 3000), 0);
  net.run(900us);
  EXPECT_TRUE(net.a.completions().empty());
  net.run();
  expect_success(net.a.completions(), {1});
  EXPECT_EQ(net.a.counter("tail_probes"), 1U);
  EXPECT_EQ(net.a.counter("timeouts"), 0U);
  EXPECT_TRUE(same(net.a, 0, net.b, 0, 3000));
}

TEST(PacketScript, lost_ack_is_covered_by_a_later_ack) {
  TwoHosts net;
  net.connect();
  net.lose = once("< RC_ACK 0 ack");
  ASSERT_EQ(net.write(1, 0, 64), 0);
  net.run(100us);
  ASSERT_EQ(net.write(2, 0, 64), 0);
  net.run();
  EXPECT_EQ(net.wire,
            (Lines{"> RC_WRITE_ONLY 0", "< RC_ACK 0 ack lost", "> RC_WRITE_ONLY 1", "< RC_ACK 1 ack"}));
  expect_success(net.a.completions(), {1, 2});
}

TEST(PacketScript, duplicate_after_a_lost_ack_is_acknowledged_and_not_executed) {
  TwoHosts net;
  net.connect();
  fill_with_salt(net.a, 0, 1500, 4);
  net.lose = once("< RC_ACK 1 ack");
  ASSERT_EQ(net.b.receive(50, 0, 4096), 0);
  ASSERT_EQ(net.b.receive(51, 4096, 4096), 0);
  ASSERT_EQ(net.a.post(IBV_WR_SEND, 1, 0, 1500), 0);
  net.run();
  expect_success(net.a.completions(), {1});
  const auto received = net.b.completions();
  expect_success(received, {50});  // one completion, although the message arrived twice
  EXPECT_EQ(received[0].byte_len, 1500U);
  EXPECT_EQ(net.b.counter("requests_duplicate"), 1U);
  EXPECT_EQ(net.a.counter("tail_probes"), 1U);
  EXPECT_EQ(net.wire.back(), "< RC_ACK 1 ack");
}

TEST(PacketScript, lost_last_packet_is_retransmitted) {
  TwoHosts net;
  net.connect();
  fill_with_salt(net.a, 0, 2048, 5);
  net.lose = once("> RC_WRITE_LAST 1");
  ASSERT_EQ(net.write(1, 0, 2048), 0);
  net.run();
  expect_success(net.a.completions(), {1});
  EXPECT_EQ(net.wire, (Lines{"> RC_WRITE_FIRST 0", "> RC_WRITE_LAST 1 lost", "< RC_ACK 0 ack",
                             "> RC_WRITE_LAST 1", "< RC_ACK 1 ack"}));
  EXPECT_TRUE(same(net.a, 0, net.b, 0, 2048));
}

TEST(PacketScript, rnr_nak_delays_the_retransmission) {
  TwoHosts net;
  net.connect();
  fill_with_salt(net.a, 0, 100, 6);
  ASSERT_EQ(net.a.post(IBV_WR_SEND_WITH_IMM, 1, 0, 100, 0, 0, 0, 0x01020304), 0);
  net.run(700us);  // one RNR wait (640 us), then the second RNR NAK
  EXPECT_EQ(net.wire,
            (Lines{"> RC_SEND_ONLY_IMM 0", "< RC_ACK 0 rnr", "> RC_SEND_ONLY_IMM 0", "< RC_ACK 0 rnr"}));
  ASSERT_EQ(net.b.receive(9, 500, 100), 0);
  net.run();
  expect_success(net.a.completions(), {1});
  const auto received = net.b.completions();
  expect_success(received, {9});
  EXPECT_EQ(received[0].opcode, IBV_WC_RECV);
  EXPECT_EQ(received[0].wc_flags, static_cast<unsigned>(IBV_WC_WITH_IMM));
  EXPECT_EQ(received[0].imm_data, 0x01020304U);
  EXPECT_TRUE(same(net.a, 0, net.b, 500, 100));
}

TEST(PacketScript, packets_after_an_rnr_nak_are_dropped_without_another_nak) {
  TwoHosts net;
  net.connect();
  ASSERT_EQ(net.a.post(IBV_WR_SEND, 1, 0, 3000), 0);
  net.run(100us);
  EXPECT_EQ(net.wire,
            (Lines{"> RC_SEND_FIRST 0", "> RC_SEND_MIDDLE 1", "> RC_SEND_LAST 2", "< RC_ACK 0 rnr"}));
  ASSERT_EQ(net.b.receive(9, 0, 3000), 0);
  net.run();
  expect_success(net.a.completions(), {1});
}

TEST(PacketScript, read_is_answered_with_its_data) {
  TwoHosts net;
  net.connect();
  fill_with_salt(net.b, 0, 2500, 7);
  ASSERT_EQ(net.read(3, 100, 2500), 0);
  net.run();
  EXPECT_EQ(net.wire, (Lines{"> RC_READ_REQUEST 0", "< RC_READ_RESP_FIRST 0", "< RC_READ_RESP_MIDDLE 1",
                             "< RC_READ_RESP_LAST 2"}));
  const auto done = net.a.completions();
  expect_success(done, {3});
  EXPECT_EQ(done[0].opcode, IBV_WC_RDMA_READ);
  EXPECT_TRUE(same(net.a, 100, net.b, 0, 2500));
}

TEST(PacketScript, lost_read_response_is_requested_again_from_the_gap) {
  TwoHosts net;
  net.connect();
  fill_with_salt(net.b, 0, 4096, 8);
  net.lose = once("< RC_READ_RESP_MIDDLE 1");
  ASSERT_EQ(net.read(3, 0, 4096), 0);
  net.run();
  EXPECT_EQ(net.wire, (Lines{"> RC_READ_REQUEST 0", "< RC_READ_RESP_FIRST 0", "< RC_READ_RESP_MIDDLE 1 lost",
                             "< RC_READ_RESP_MIDDLE 2", "< RC_READ_RESP_LAST 3", "> RC_READ_REQUEST 1",
                             "< RC_READ_RESP_FIRST 1", "< RC_READ_RESP_MIDDLE 2", "< RC_READ_RESP_LAST 3"}));
  expect_success(net.a.completions(), {3});
  EXPECT_TRUE(same(net.a, 0, net.b, 0, 4096));
  EXPECT_EQ(net.a.counter("timeouts"), 0U);
}

TEST(PacketScript, lost_last_read_response_is_requested_again) {
  TwoHosts net;
  net.connect();
  fill_with_salt(net.b, 0, 2048, 9);
  net.lose = once("< RC_READ_RESP_LAST 1");
  ASSERT_EQ(net.read(3, 0, 2048), 0);
  net.run();
  EXPECT_EQ(net.wire, (Lines{"> RC_READ_REQUEST 0", "< RC_READ_RESP_FIRST 0", "< RC_READ_RESP_LAST 1 lost",
                             "> RC_READ_REQUEST 1", "< RC_READ_RESP_ONLY 1"}));
  expect_success(net.a.completions(), {3});
  EXPECT_TRUE(same(net.a, 0, net.b, 0, 2048));
}

TEST(PacketScript, ack_of_a_later_write_reissues_an_unanswered_read) {
  TwoHosts net;
  net.connect();
  fill_with_salt(net.b, 0, 100, 10);
  net.lose = once("< RC_READ_RESP_ONLY 0");
  ASSERT_EQ(net.read(1, 0, 100), 0);
  ASSERT_EQ(net.write(2, 200, 8, 5000), 0);
  net.run(1ms);
  expect_success(net.a.completions(), {1, 2});
  EXPECT_EQ(net.a.counter("timeouts"), 0U);
  EXPECT_EQ(net.a.counter("reads_reissued"), 1U);
  EXPECT_TRUE(same(net.a, 0, net.b, 0, 100));
}

TEST(PacketScript, lost_read_request_is_repeated_after_the_timeout) {
  TwoHosts net;
  net.connect();
  net.lose = once("> RC_READ_REQUEST 0");
  ASSERT_EQ(net.read(3, 0, 2048), 0);
  net.run();
  expect_success(net.a.completions(), {3});
  EXPECT_EQ(net.a.counter("timeouts"), 1U);
}

TEST(PacketScript, psn_wraps_within_a_message_with_a_loss) {
  TwoHostsOptions options;
  options.psn_a = 0xfffffd;
  TwoHosts net(options);
  net.connect();
  fill_with_salt(net.a, 0, 10'000, 11);
  fill_with_salt(net.b, 20'000, 10'000, 12);
  // The PSN wraps within the WRITE. A loss directly after the wrap makes the requester go back across it.
  net.lose = once("> RC_WRITE_MIDDLE 4");
  ASSERT_EQ(net.write(1, 0, 10'000), 0);
  ASSERT_EQ(net.read(2, 30'000, 10'000, 20'000), 0);
  net.run();
  expect_success(net.a.completions(), {1, 2});
  EXPECT_TRUE(same(net.a, 0, net.b, 0, 10'000));
  EXPECT_TRUE(same(net.a, 30'000, net.b, 20'000, 10'000));
  EXPECT_EQ(net.a.qp->state(), IBV_QPS_RTS);
}

TEST(PacketScript, psn_wraps_within_read_responses_with_a_loss) {
  TwoHostsOptions options;
  options.psn_a = 0xfffffe;
  TwoHosts net(options);
  net.connect();
  fill_with_salt(net.b, 0, 8192, 13);
  net.lose = once("< RC_READ_RESP_MIDDLE 2");  // PSN 0
  ASSERT_EQ(net.read(1, 0, 8192), 0);
  net.run();
  expect_success(net.a.completions(), {1});
  EXPECT_TRUE(same(net.a, 0, net.b, 0, 8192));
}

TEST(PacketScript, lsn_continues_beyond_4_gib) {
  TwoHosts net;
  net.connect();
  const Lsn start{(1ULL << 32) - 3000};
  net.core(net.a).requester.set_first_lsn(start);
  fill_with_salt(net.a, 0, 600'000, 14);
  net.lose = once("> RC_WRITE_MIDDLE 4");  // after the 4 GiB mark, so the window spans it
  ASSERT_EQ(net.write(1, 0, 600'000), 0);
  net.run();
  expect_success(net.a.completions(), {1});
  EXPECT_EQ(net.core(net.a).requester.flow().next.value(), start.value() + 600'000);
  EXPECT_TRUE(same(net.a, 0, net.b, 0, 600'000));
}

TEST(PacketScript, unreachable_peer_exhausts_the_retries) {
  TwoHostsOptions options;
  options.retry_count = 3;
  options.timeout = 14;  // 67 ms
  TwoHosts net(options);
  net.connect();
  net.lose = [](const std::string& line) { return line[0] == '>'; };
  ASSERT_EQ(net.write(1, 0, 100), 0);
  ASSERT_EQ(net.write(2, 0, 100), 0);
  net.run();
  // The first transmission and three retries.
  EXPECT_EQ(std::count(net.wire.begin(), net.wire.end(), "> RC_WRITE_ONLY 0 lost"), 4);
  const auto done = net.a.completions();
  ASSERT_EQ(done.size(), 2U);
  EXPECT_EQ(done[0].status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(done[1].status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(net.a.qp->state(), IBV_QPS_ERR);
}

TEST(PacketScript, missing_receive_exhausts_the_rnr_retries) {
  TwoHostsOptions options;
  options.rnr_retry = 2;
  TwoHosts net(options);
  net.connect();
  ASSERT_EQ(net.a.post(IBV_WR_SEND, 1, 0, 100), 0);
  net.run();
  EXPECT_EQ(std::count(net.wire.begin(), net.wire.end(), "> RC_SEND_ONLY 0"), 3);
  const auto done = net.a.completions();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].status, IBV_WC_RNR_RETRY_EXC_ERR);
}

struct NakCase {
  const char* name;
  ibv_wr_opcode opcode;
  size_t remote_offset;
  size_t length;
  bool bad_key;
  int access;  // access flags of b's queue pair and region
  ibv_wc_status requester;
  const char* line;
};

TEST(PacketScript, remote_errors_set_the_status_and_flush_later_requests) {
  constexpr int kAll = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  const NakCase cases[] = {
      {"unknown key", IBV_WR_RDMA_WRITE, 0, 100, true, kAll, IBV_WC_REM_ACCESS_ERR, "< RC_ACK 0 nak 2"},
      {"past the end", IBV_WR_RDMA_WRITE, (1 << 20) - 50, 100, false, kAll, IBV_WC_REM_ACCESS_ERR,
       "< RC_ACK 0 nak 2"},
      {"read with unknown key", IBV_WR_RDMA_READ, 0, 100, true, kAll, IBV_WC_REM_ACCESS_ERR,
       "< RC_ACK 0 nak 2"},
      {"write not enabled", IBV_WR_RDMA_WRITE, 0, 100, false, IBV_ACCESS_LOCAL_WRITE, IBV_WC_REM_INV_REQ_ERR,
       "< RC_ACK 0 nak 1"},
      {"read not enabled", IBV_WR_RDMA_READ, 0, 100, false, IBV_ACCESS_LOCAL_WRITE, IBV_WC_REM_INV_REQ_ERR,
       "< RC_ACK 0 nak 1"},
  };
  for (const NakCase& c : cases) {
    SCOPED_TRACE(c.name);
    TwoHostsOptions options;
    options.access = c.access;
    TwoHosts net(options);
    net.connect();
    const std::vector<uint8_t> before = net.b.memory;
    const uint32_t key = net.b.region->rkey() ^ (c.bad_key ? 0x5a5a5a5aU : 0U);
    ASSERT_EQ(net.b.receive(90, 0, 10), 0);
    ASSERT_EQ(net.a.post(c.opcode, 1, 0, c.length, net.b.address(c.remote_offset), key), 0);
    ASSERT_EQ(net.write(2, 0, 8), 0);
    net.run();
    EXPECT_TRUE(std::find(net.wire.begin(), net.wire.end(), c.line) != net.wire.end());
    const auto done = net.a.completions();
    ASSERT_EQ(done.size(), 2U);
    EXPECT_EQ(done[0].status, c.requester);
    EXPECT_EQ(done[1].status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(net.b.qp->state(), IBV_QPS_ERR);
    const auto flushed = net.b.completions();
    ASSERT_EQ(flushed.size(), 1U);
    EXPECT_EQ(flushed[0].status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(flushed[0].wr_id, 90U);
    EXPECT_EQ(net.b.memory, before);
  }
}

TEST(PacketScript, send_larger_than_the_receive_buffer_fails_on_both_sides) {
  TwoHosts net;
  net.connect();
  ASSERT_EQ(net.b.receive(9, 0, 50), 0);
  ASSERT_EQ(net.a.post(IBV_WR_SEND, 1, 0, 100), 0);
  net.run();
  const auto done = net.a.completions();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].status, IBV_WC_REM_INV_REQ_ERR);
  const auto received = net.b.completions();
  ASSERT_EQ(received.size(), 1U);
  EXPECT_EQ(received[0].status, IBV_WC_LOC_LEN_ERR);
}

TEST(PacketScript, invalid_local_key_fails_in_order_without_a_packet) {
  TwoHosts net;
  net.connect();
  ASSERT_EQ(net.write(1, 0, 100), 0);
  ibv_sge sge = net.a.sge(0, 100);
  sge.lkey ^= 0x1234;
  ibv_send_wr wr{};
  wr.wr_id = 2;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.wr.rdma.remote_addr = net.b.address(0);
  wr.wr.rdma.rkey = net.b.region->rkey();
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(net.a.qp->post_send(&wr, &bad), 0);
  ASSERT_EQ(net.write(3, 0, 100), 0);
  net.run();
  EXPECT_EQ(net.wire, (Lines{"> RC_WRITE_ONLY 0", "< RC_ACK 0 ack"}));
  const auto done = net.a.completions();
  ASSERT_EQ(done.size(), 3U);
  EXPECT_EQ(done[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(done[1].status, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(done[2].status, IBV_WC_WR_FLUSH_ERR);
}

TEST(PacketScript, send_gathers_and_receive_scatters_several_segments) {
  TwoHosts net;
  net.connect();
  fill_with_salt(net.a, 0, 9000, 15);
  ibv_sge from[] = {net.a.sge(0, 1000), net.a.sge(3000, 1), net.a.sge(5000, 2000)};
  ibv_sge to[] = {net.b.sge(100, 700), net.b.sge(2000, 1500), net.b.sge(6000, 1000)};
  ibv_recv_wr recv{};
  recv.wr_id = 5;
  recv.sg_list = to;
  recv.num_sge = 3;
  ibv_recv_wr* bad_recv = nullptr;
  ASSERT_EQ(net.b.qp->post_recv(&recv, &bad_recv), 0);
  ibv_send_wr wr{};
  wr.wr_id = 4;
  wr.sg_list = from;
  wr.num_sge = 3;
  wr.opcode = IBV_WR_SEND;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(net.a.qp->post_send(&wr, &bad), 0);
  net.run();
  expect_success(net.a.completions(), {4});
  expect_success(net.b.completions(), {5});
  std::vector<uint8_t> sent;
  for (const auto& s : from) {
    const auto* p = reinterpret_cast<const uint8_t*>(s.addr);
    sent.insert(sent.end(), p, p + s.length);
  }
  std::vector<uint8_t> got;
  for (const auto& s : to) {
    const auto* p = reinterpret_cast<const uint8_t*>(s.addr);
    got.insert(got.end(), p, p + s.length);
  }
  got.resize(sent.size());
  EXPECT_EQ(got, sent);
}

TEST(PacketScript, inline_data_is_copied_at_the_post) {
  TwoHosts net;
  net.connect();
  fill_with_salt(net.a, 0, 64, 16);
  const std::vector<uint8_t> original(net.a.memory.begin(), net.a.memory.begin() + 64);
  ASSERT_EQ(net.write(1, 0, 64, 0, IBV_SEND_INLINE), 0);
  std::fill_n(net.a.memory.begin(), 64, uint8_t{0});
  net.run();
  EXPECT_TRUE(std::equal(original.begin(), original.end(), net.b.memory.begin()));
  EXPECT_EQ(net.write(2, 0, 65, 0, IBV_SEND_INLINE), EINVAL);
}

TEST(PacketScript, unsignaled_requests_produce_no_completion) {
  TwoHostsOptions options;
  options.signal_all = false;
  TwoHosts net(options);
  net.connect();
  for (uint64_t id = 1; id <= 10; ++id) {
    ASSERT_EQ(net.write(id, 0, 8, 0, id == 10 ? static_cast<unsigned>(IBV_SEND_SIGNALED) : 0U), 0);
  }
  net.run();
  expect_success(net.a.completions(), {10});
}

TEST(PacketScript, empty_messages_complete) {
  TwoHosts net;
  net.connect();
  ASSERT_EQ(net.b.receive(9, 0, 10), 0);
  ASSERT_EQ(net.a.post(IBV_WR_RDMA_WRITE, 1, 0, 0, 0, 0), 0);
  ASSERT_EQ(net.a.post(IBV_WR_RDMA_READ, 2, 0, 0, 0, 0), 0);
  ASSERT_EQ(net.a.post(IBV_WR_SEND, 3, 0, 0), 0);
  net.run();
  expect_success(net.a.completions(), {1, 2, 3});
  const auto received = net.b.completions();
  expect_success(received, {9});
  EXPECT_EQ(received[0].byte_len, 0U);
}

TEST(PacketScript, fenced_request_waits_for_earlier_reads) {
  TwoHosts net;
  net.connect();
  ASSERT_EQ(net.read(1, 0, 8), 0);
  ASSERT_EQ(net.write(2, 100, 8, 0, IBV_SEND_FENCE), 0);
  net.run();
  EXPECT_EQ(net.wire,
            (Lines{"> RC_READ_REQUEST 0", "< RC_READ_RESP_ONLY 0", "> RC_WRITE_ONLY 1", "< RC_ACK 1 ack"}));
}

TEST(PacketScript, outstanding_reads_do_not_exceed_the_depth) {
  TwoHostsOptions options;
  options.reads = 2;
  TwoHosts net(options);
  net.connect();
  for (uint64_t id = 1; id <= 6; ++id) {
    ASSERT_EQ(net.read(id, 0, 8), 0);
  }
  net.run();
  expect_success(net.a.completions(), {1, 2, 3, 4, 5, 6});
  int under_way = 0;
  int most = 0;
  for (const std::string& line : net.wire) {
    under_way += line[0] == '>' ? 1 : -1;
    most = std::max(most, under_way);
  }
  EXPECT_EQ(most, 2);
}

TEST(PacketScript, transfers_over_ipv4_and_ipv6_with_every_path_mtu) {
  for (const bool ipv6 : {false, true}) {
    for (const ibv_mtu mtu : {IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024, IBV_MTU_2048, IBV_MTU_4096}) {
      TwoHostsOptions options;
      options.ipv6 = ipv6;
      options.path_mtu = mtu;
      TwoHosts net(options);
      net.connect();
      fill_with_salt(net.a, 0, 50'000, 17);
      fill_with_salt(net.b, 100'000, 50'000, 18);
      ASSERT_EQ(net.write(1, 0, 50'000), 0);
      ASSERT_EQ(net.read(2, 100'000, 50'000, 100'000), 0);
      net.run();
      expect_success(net.a.completions(), {1, 2});
      EXPECT_TRUE(same(net.a, 0, net.b, 0, 50'000));
      EXPECT_TRUE(same(net.a, 100'000, net.b, 100'000, 50'000));
    }
  }
}

TEST(PacketScript, window_limits_packets_in_flight) {
  TwoHostsOptions options;
  options.window_bytes = 4096;
  options.delay = 50us;
  TwoHosts net(options);
  net.connect();
  ASSERT_EQ(net.write(1, 0, 64 * 1024), 0);
  net.run();
  expect_success(net.a.completions(), {1});
  int in_flight = 0;
  for (const std::string& line : net.wire) {
    if (line[0] == '>') {
      EXPECT_LE(++in_flight, 4);
    } else {
      in_flight = 0;  // the ACK of the batch of four packets, or of a part of it
    }
  }
}

TEST(PacketScript, cq_overflow_returns_the_first_completions_in_order_and_an_error) {
  TwoHostsOptions options;
  options.cq_entries = 4;
  TwoHosts net(options);
  net.connect();
  for (uint64_t id = 1; id <= 8; ++id) {
    ASSERT_EQ(net.write(id, 0, 8), 0);
  }
  net.run();
  expect_success(net.a.completions(), {1, 2, 3, 4});
  ibv_wc wc{};
  EXPECT_EQ(net.a.cq->poll(1, &wc), -1);
  EXPECT_EQ(net.a.qp->state(), IBV_QPS_ERR);
}

}  // namespace
}  // namespace roci::test

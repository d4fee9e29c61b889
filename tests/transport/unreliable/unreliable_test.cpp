// UC between two hosts: received messages, completions, and the effect of losses.
#include <gtest/gtest.h>

#include "support/hosts/services.hpp"

namespace roci::test {
namespace {

// A connected pair of UC queue pairs, one on each host.
class Unreliable : public testing::Test {
 protected:
  explicit Unreliable(const TwoHostsOptions& options = {}) : hosts_(options) {
    hosts_.connect();
    a_ = make_service(hosts_.a, IBV_QPT_UC);
    b_ = make_service(hosts_.b, IBV_QPT_UC);
    const ibv_gid gid_a = must(hosts_.a.device->query_gid(1));
    const ibv_gid gid_b = must(hosts_.b.device->query_gid(1));
    connect_to(*a_, IBV_QPT_UC, gid_b, b_->qp_num(), {.rq_psn = 0x2000, .sq_psn = 0x1000});
    connect_to(*b_, IBV_QPT_UC, gid_a, a_->qp_num(), {.rq_psn = 0x1000, .sq_psn = 0x2000});
    fill(hosts_.a, 0, 4096, 7);
  }

  Lines sends(const SendOptions& options) {
    EXPECT_EQ(send(hosts_.a, *a_, options), 0);
    hosts_.run(1ms);
    return completion_lines(hosts_.a);
  }
  SendOptions write(ibv_wr_opcode opcode, size_t length) {
    return {.opcode = opcode,
            .length = length,
            .immediate = 77,
            .remote = hosts_.b.address(0),
            .rkey = hosts_.b.region->rkey()};
  }

  TwoHosts hosts_;
  std::unique_ptr<QueuePair> a_, b_;
};

class UnreliableV6 : public Unreliable {
 protected:
  UnreliableV6() : Unreliable({.ipv6 = true}) {}
};

TEST_F(Unreliable, send_is_segmented_by_path_mtu_and_not_acknowledged) {
  ASSERT_EQ(receive(hosts_.b, *b_, 9, 0, 1000), 0);
  EXPECT_EQ(sends({.wr_id = 3, .length = 600}), Lines{"3 SUCCESS 600"});
  EXPECT_EQ(hosts_.wire, (Lines{"> UC_SEND_FIRST 0", "> UC_SEND_MIDDLE 1", "> UC_SEND_LAST 2"}));
  const auto all = hosts_.b.completions();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].wr_id, 9U);
  EXPECT_EQ(all[0].byte_len, 600U);
  EXPECT_EQ(all[0].opcode, IBV_WC_RECV);
  EXPECT_EQ(all[0].qp_num, b_->qp_num());
  EXPECT_EQ(all[0].src_qp, a_->qp_num());
  EXPECT_TRUE(holds(hosts_.b, 0, 600, 7));
}

TEST_F(UnreliableV6, send_arrives_over_ipv6) {
  ASSERT_EQ(receive(hosts_.b, *b_, 9, 0, 1000), 0);
  EXPECT_EQ(sends({.length = 600}), Lines{"1 SUCCESS 600"});
  EXPECT_EQ(completion_lines(hosts_.b), Lines{"9 SUCCESS 600"});
}

TEST_F(Unreliable, immediate_data_is_in_the_last_packet_of_a_send) {
  ASSERT_EQ(receive(hosts_.b, *b_, 9, 0, 1000), 0);
  sends({.opcode = IBV_WR_SEND_WITH_IMM, .length = 300, .immediate = 0x01020304});
  EXPECT_EQ(hosts_.wire, (Lines{"> UC_SEND_FIRST 0", "> UC_SEND_LAST_IMM 1"}));
  const auto all = hosts_.b.completions();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].wc_flags, static_cast<unsigned>(IBV_WC_WITH_IMM));
  EXPECT_EQ(all[0].imm_data, __builtin_bswap32(0x01020304));
}

TEST_F(Unreliable, write_consumes_no_receive_request) {
  ASSERT_EQ(receive(hosts_.b, *b_, 9, 2048, 1000), 0);
  EXPECT_EQ(sends(write(IBV_WR_RDMA_WRITE, 700)), Lines{"1 SUCCESS 700"});
  EXPECT_EQ(hosts_.wire, (Lines{"> UC_WRITE_FIRST 0", "> UC_WRITE_MIDDLE 1", "> UC_WRITE_LAST 2"}));
  EXPECT_TRUE(holds(hosts_.b, 0, 700, 7));
  EXPECT_EQ(completion_lines(hosts_.b), Lines{});
}

TEST_F(Unreliable, write_with_immediate_consumes_a_receive_request) {
  ASSERT_EQ(receive(hosts_.b, *b_, 9, 2048, 0), 0);
  sends(write(IBV_WR_RDMA_WRITE_WITH_IMM, 300));
  const auto all = hosts_.b.completions();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(all[0].byte_len, 300U);
  EXPECT_EQ(all[0].imm_data, __builtin_bswap32(77));
  EXPECT_TRUE(holds(hosts_.b, 0, 300, 7));
}

TEST_F(Unreliable, empty_message_is_sent_in_one_packet) {
  ASSERT_EQ(receive(hosts_.b, *b_, 9, 0, 10), 0);
  sends({.length = 0});
  sends(write(IBV_WR_RDMA_WRITE, 0));
  EXPECT_EQ(hosts_.wire, (Lines{"> UC_SEND_ONLY 0", "> UC_WRITE_ONLY 1"}));
  EXPECT_EQ(completion_lines(hosts_.b), Lines{"9 SUCCESS 0"});
}

TEST_F(Unreliable, inline_data_may_change_after_posting) {
  ASSERT_EQ(receive(hosts_.b, *b_, 9, 0, 100), 0);
  ASSERT_EQ(send(hosts_.a, *a_, {.length = 50, .flags = IBV_SEND_INLINE}), 0);
  fill(hosts_.a, 0, 50, 200);
  hosts_.run(1ms);
  EXPECT_EQ(completion_lines(hosts_.b), Lines{"9 SUCCESS 50"});
  EXPECT_TRUE(holds(hosts_.b, 0, 50, 7));
}

TEST_F(Unreliable, only_signaled_requests_complete) {
  auto quiet = make_service(hosts_.a, IBV_QPT_UC, nullptr, false);
  connect_to(*quiet, IBV_QPT_UC, must(hosts_.b.device->query_gid(1)), b_->qp_num());
  ASSERT_EQ(send(hosts_.a, *quiet, {.wr_id = 1, .length = 8}), 0);
  ASSERT_EQ(send(hosts_.a, *quiet, {.wr_id = 2, .length = 8, .flags = IBV_SEND_SIGNALED}), 0);
  hosts_.run(1ms);
  EXPECT_EQ(completion_lines(hosts_.a), Lines{"2 SUCCESS 8"});
}

TEST_F(Unreliable, solicited_message_raises_a_solicited_only_event) {
  auto channel = must(hosts_.b.device->create_channel());
  auto cq = must(hosts_.b.device->create_cq(16, nullptr, channel.get()));
  ibv_qp_init_attr init{};
  init.qp_type = IBV_QPT_UC;
  init.cap = kUsualCap;
  auto peer = must(hosts_.b.pd->create_qp(&init, *cq, *cq));
  auto from = make_service(hosts_.a, IBV_QPT_UC);
  connect_to(*from, IBV_QPT_UC, must(hosts_.b.device->query_gid(1)), peer->qp_num());
  connect_to(*peer, IBV_QPT_UC, must(hosts_.a.device->query_gid(1)), from->qp_num(), {.rq_psn = 5000});
  cq->request_notify(true);
  for (uint64_t i = 1; i <= 2; ++i) ASSERT_EQ(receive(hosts_.b, *peer, i, 0, 100), 0);
  ASSERT_EQ(send(hosts_.a, *from, {.length = 8}), 0);
  hosts_.run(1ms);
  EXPECT_FALSE(channel->get_event());
  ASSERT_EQ(send(hosts_.a, *from, {.length = 8, .flags = IBV_SEND_SOLICITED}), 0);
  hosts_.run(1ms);
  const auto event = channel->get_event();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->number, cq->number());
}

TEST_F(Unreliable, lost_packet_drops_only_its_message) {
  for (uint64_t i = 1; i <= 3; ++i) ASSERT_EQ(receive(hosts_.b, *b_, i, 1000 * i, 1000), 0);
  hosts_.lose = [](const std::string& line) { return line == "> UC_SEND_MIDDLE 1"; };
  // The requester completes the message when it is sent.
  EXPECT_EQ(sends({.wr_id = 1, .length = 600}), Lines{"1 SUCCESS 600"});
  sends({.wr_id = 2, .offset = 100, .length = 500});
  sends({.wr_id = 3, .offset = 200, .length = 20});
  // The next message uses the receive request of the lost message.
  EXPECT_EQ(completion_lines(hosts_.b), (Lines{"1 SUCCESS 500", "2 SUCCESS 20"}));
  EXPECT_TRUE(holds(hosts_.b, 1000, 500, 107));
  EXPECT_EQ(hosts_.b.counter("uc_messages_dropped"), 1U);
  EXPECT_EQ(b_->state(), IBV_QPS_RTS);
}

TEST_F(Unreliable, loss_of_a_whole_message_is_not_counted) {
  ASSERT_EQ(receive(hosts_.b, *b_, 1, 0, 1000), 0);
  hosts_.lose = [](const std::string& line) { return line == "> UC_SEND_ONLY 0"; };
  sends({.length = 20});
  sends({.length = 30});
  EXPECT_EQ(completion_lines(hosts_.b), Lines{"1 SUCCESS 30"});
  EXPECT_EQ(hosts_.b.counter("uc_messages_dropped"), 0U);
}

TEST_F(Unreliable, loss_of_a_first_or_last_packet_drops_the_message) {
  ASSERT_EQ(receive(hosts_.b, *b_, 1, 0, 1000), 0);
  hosts_.lose = [](const std::string& line) {
    return line == "> UC_SEND_FIRST 0" || line == "> UC_SEND_LAST 5";
  };
  sends({.length = 600});
  EXPECT_EQ(hosts_.b.counter("rx_no_message"), 2U);
  sends({.length = 600});
  sends({.offset = 50, .length = 40});
  EXPECT_EQ(completion_lines(hosts_.b), Lines{"1 SUCCESS 40"});
  EXPECT_TRUE(holds(hosts_.b, 0, 40, 57));
  EXPECT_EQ(hosts_.b.counter("uc_messages_dropped"), 1U);
}

TEST_F(Unreliable, psn_wraps_within_a_message) {
  auto wrapping = make_service(hosts_.a, IBV_QPT_UC);
  auto peer = make_service(hosts_.b, IBV_QPT_UC);
  connect_to(*wrapping, IBV_QPT_UC, must(hosts_.b.device->query_gid(1)), peer->qp_num(),
             {.sq_psn = 0xfffffe});
  connect_to(*peer, IBV_QPT_UC, must(hosts_.a.device->query_gid(1)), wrapping->qp_num(),
             {.rq_psn = 0xfffffe});
  ASSERT_EQ(receive(hosts_.b, *peer, 9, 0, 2000), 0);
  ASSERT_EQ(send(hosts_.a, *wrapping, {.length = 1200}), 0);
  hosts_.run(1ms);
  EXPECT_EQ(completion_lines(hosts_.b), Lines{"9 SUCCESS 1200"});
  ibv_qp_attr attr{};
  wrapping->query(&attr, nullptr);
  EXPECT_EQ(attr.sq_psn, 3U);
  peer->query(&attr, nullptr);
  EXPECT_EQ(attr.rq_psn, 3U);
}

TEST_F(Unreliable, local_protection_error_stops_the_send_queue_without_a_packet) {
  for (uint64_t i = 1; i <= 2; ++i) ASSERT_EQ(receive(hosts_.b, *b_, i, 0, 1000), 0);
  ASSERT_EQ(receive(hosts_.a, *a_, 50, 3000, 1000), 0);
  ibv_sge list{hosts_.a.address(0), 600, hosts_.a.region->lkey() ^ 0x100};
  ibv_send_wr wr{};
  wr.wr_id = 4;
  wr.sg_list = &list;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  ASSERT_EQ(a_->post_send(&wr, nullptr), 0);
  EXPECT_EQ(sends({.wr_id = 5, .length = 10}), (Lines{"4 LOC_PROT_ERR", "5 WR_FLUSH_ERR"}));
  EXPECT_EQ(a_->state(), IBV_QPS_SQE);
  EXPECT_EQ(hosts_.wire, Lines{});
  // A request posted now is flushed as well. Messages are still received.
  EXPECT_EQ(sends({.wr_id = 6, .length = 10}), Lines{"6 WR_FLUSH_ERR"});
  ASSERT_EQ(send(hosts_.b, *b_, {.length = 10}), 0);
  hosts_.run(1ms);
  EXPECT_EQ(completion_lines(hosts_.a), Lines{"50 SUCCESS 10"});
  completion_lines(hosts_.b);
  // After the transition to RTS the requester continues with the next PSN.
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  must(a_->modify(attr, IBV_QP_STATE));
  hosts_.wire.clear();
  EXPECT_EQ(sends({.wr_id = 7, .length = 10}), Lines{"7 SUCCESS 10"});
  EXPECT_EQ(hosts_.wire, Lines{"> UC_SEND_ONLY 0"});
}

// In order: the message before it is sent.
TEST_F(Unreliable, operations_of_other_services_complete_with_an_error) {
  for (const ibv_wr_opcode opcode :
       {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_SEND_WITH_INV}) {
    SCOPED_TRACE(opcode);
    ASSERT_EQ(send(hosts_.a, *a_, {.wr_id = 1, .length = 10}), 0);
    SendOptions options = write(opcode, 8);
    options.wr_id = 2;
    ASSERT_EQ(send(hosts_.a, *a_, options), 0);
    hosts_.wire.clear();
    EXPECT_EQ(sends({.wr_id = 3, .length = 10}),
              (Lines{"1 SUCCESS 10", "2 LOC_QP_OP_ERR", "3 WR_FLUSH_ERR"}));
    EXPECT_EQ(hosts_.wire.size(), 1U);
    EXPECT_EQ(a_->state(), IBV_QPS_SQE);
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTS;
    must(a_->modify(attr, IBV_QP_STATE));
  }
  EXPECT_EQ(send(hosts_.a, *a_, {.opcode = IBV_WR_TSO}), EOPNOTSUPP);
}

TEST_F(Unreliable, error_state_flushes_both_queues) {
  ASSERT_EQ(receive(hosts_.a, *a_, 50, 3000, 1000), 0);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  must(a_->modify(attr, IBV_QP_STATE));
  EXPECT_EQ(sends({.wr_id = 5, .length = 10}), (Lines{"5 WR_FLUSH_ERR", "50 WR_FLUSH_ERR"}));
}

TEST_F(Unreliable, started_message_is_flushed_first) {
  for (uint64_t i = 1; i <= 2; ++i) ASSERT_EQ(receive(hosts_.b, *b_, i, 0, 1000), 0);
  hosts_.lose = [](const std::string& line) { return line == "> UC_SEND_LAST 2"; };
  sends({.length = 600});
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  must(b_->modify(attr, IBV_QP_STATE));
  hosts_.run(1ms);
  EXPECT_EQ(completion_lines(hosts_.b), (Lines{"1 WR_FLUSH_ERR", "2 WR_FLUSH_ERR"}));
}

TEST_F(Unreliable, sends_to_an_unresolved_host_are_dropped_and_complete) {
  auto qp = make_service(hosts_.a, IBV_QPT_UC);
  connect_to(*qp, IBV_QPT_UC, gid_of("10.0.0.77"), 5);
  ASSERT_EQ(send(hosts_.a, *qp, {.wr_id = 1, .length = 600}), 0);
  hosts_.run(1s);
  EXPECT_EQ(completion_lines(hosts_.a), Lines{});
  hosts_.run(10s);
  EXPECT_EQ(completion_lines(hosts_.a), Lines{"1 SUCCESS 600"});
  EXPECT_EQ(hosts_.a.counter("tx_unreachable"), 1U);
  EXPECT_EQ(qp->state(), IBV_QPS_RTS);
}

// The operation is not supported, whether the host is resolved or not.
TEST_F(Unreliable, read_to_an_unresolved_host_fails) {
  auto qp = make_service(hosts_.a, IBV_QPT_UC);
  connect_to(*qp, IBV_QPT_UC, gid_of("10.0.0.77"), 5);
  ASSERT_EQ(send(hosts_.a, *qp, {.wr_id = 1, .opcode = IBV_WR_RDMA_READ, .length = 600}), 0);
  ASSERT_EQ(send(hosts_.a, *qp, {.wr_id = 2, .length = 600}), 0);
  hosts_.run(10s);
  EXPECT_EQ(completion_lines(hosts_.a), (Lines{"1 LOC_QP_OP_ERR", "2 WR_FLUSH_ERR"}));
  EXPECT_EQ(hosts_.a.counter("tx_unreachable"), 0U);
  EXPECT_EQ(qp->state(), IBV_QPS_SQE);
}

TEST_F(Unreliable, one_mib_message_completes) {
  ConnectOptions options{.path_mtu = IBV_MTU_4096};
  auto a = make_service(hosts_.a, IBV_QPT_UC);
  auto b = make_service(hosts_.b, IBV_QPT_UC);
  connect_to(*a, IBV_QPT_UC, must(hosts_.b.device->query_gid(1)), b->qp_num(), options);
  options = {.rq_psn = 5000, .path_mtu = IBV_MTU_4096};
  connect_to(*b, IBV_QPT_UC, must(hosts_.a.device->query_gid(1)), a->qp_num(), options);
  fill(hosts_.a, 0, 1 << 20, 3);
  SendOptions big = write(IBV_WR_RDMA_WRITE, 1 << 20);
  ASSERT_EQ(send(hosts_.a, *a, big), 0);
  hosts_.run(10ms);
  EXPECT_EQ(completion_lines(hosts_.a), Lines{"1 SUCCESS 1048576"});
  EXPECT_TRUE(holds(hosts_.b, 0, 1 << 20, 3));
}

}  // namespace
}  // namespace roci::test

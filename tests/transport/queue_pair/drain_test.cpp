// SQD: started requests complete, no new request starts, an event reports the drained state, and attributes may
// change.
#include <gtest/gtest.h>

#include "support/hosts/lone_host.hpp"
#include "support/hosts/services.hpp"

namespace roci::test {
namespace {

Status drain(QueuePair& qp, bool notify = true) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_SQD;
  attr.en_sqd_async_notify = notify ? 1 : 0;
  return qp.modify(attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY);
}

Status resume(QueuePair& qp) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  return qp.modify(attr, IBV_QP_STATE);
}

bool is_draining(const QueuePair& qp) {
  ibv_qp_attr attr{};
  qp.query(&attr, nullptr);
  return attr.sq_draining != 0;
}

TEST(Drain, started_messages_complete_and_none_starts_until_resume) {
  LoneHostOptions options;
  options.window_bytes = 4096;
  LoneHost host(options);
  host.post(IBV_WR_RDMA_WRITE, 1, 8192);  // 32 packets; the window permits 16
  host.post(IBV_WR_SEND, 2, 8);
  EXPECT_EQ(host.work().size(), 16U);
  ASSERT_TRUE(drain(*host.side.qp));
  EXPECT_EQ(host.side.qp->state(), IBV_QPS_SQD);
  EXPECT_TRUE(is_draining(*host.side.qp));
  EXPECT_TRUE(event_lines(host.side).empty());
  EXPECT_EQ(host.receive(host.response(Opcode::kRcAcknowledge, 15)).size(), 16U) << "the rest of the message";
  EXPECT_FALSE(resume(*host.side.qp)) << "not before it has drained";
  host.post(IBV_WR_SEND, 3, 8);
  EXPECT_EQ(host.receive(host.response(Opcode::kRcAcknowledge, 31)), Lines{});
  EXPECT_FALSE(is_draining(*host.side.qp));
  EXPECT_EQ(event_lines(host.side), Lines{"SQ_DRAINED " + std::to_string(host.side.qp->qp_num())});
  EXPECT_EQ(host.statuses(), Statuses{IBV_WC_SUCCESS});
  EXPECT_EQ(host.wait(1s), Lines{});
  ASSERT_TRUE(resume(*host.side.qp));
  EXPECT_EQ(host.work(), (Lines{"RC_SEND_ONLY 32", "RC_SEND_ONLY 33"}));
  EXPECT_TRUE(event_lines(host.side).empty());
}

TEST(Drain, lost_packets_are_retransmitted_while_draining) {
  LoneHost host;
  host.post(IBV_WR_SEND, 1, 8);
  host.post(IBV_WR_RDMA_READ, 2, 8);
  host.work();
  ASSERT_TRUE(drain(*host.side.qp));
  EXPECT_EQ(host.wait(5ms), Lines{"RC_SEND_ONLY 0"});
  EXPECT_EQ(host.receive(host.response(Opcode::kRcAcknowledge, 0, 0x60)).size(), 2U);
  host.receive(host.response(Opcode::kRcAcknowledge, 0));
  EXPECT_TRUE(is_draining(*host.side.qp)) << "a READ waits for its data";
  host.receive(host.response(Opcode::kRcReadResponseOnly, 1, 0x1f, 8));
  EXPECT_FALSE(is_draining(*host.side.qp));
  EXPECT_EQ(host.statuses(), (Statuses{IBV_WC_SUCCESS, IBV_WC_SUCCESS}));
}

TEST(Drain, idle_queue_is_drained_and_resumed_without_a_poll_of_the_worker) {
  LoneHost host;
  host.work();
  ASSERT_TRUE(drain(*host.side.qp));
  EXPECT_FALSE(is_draining(*host.side.qp));
  EXPECT_EQ(event_lines(host.side), Lines{"SQ_DRAINED " + std::to_string(host.side.qp->qp_num())});
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_SQD;
  attr.min_rnr_timer = 5;
  EXPECT_TRUE(host.side.qp->modify(attr, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER));
  ASSERT_TRUE(resume(*host.side.qp));
  ASSERT_TRUE(drain(*host.side.qp, false));
  ASSERT_TRUE(resume(*host.side.qp));
  host.work();
  EXPECT_TRUE(event_lines(host.side).empty());
}

TEST(Drain, idle_queue_drains_at_once_with_an_event_only_if_requested) {
  LoneHost host;
  ASSERT_TRUE(drain(*host.side.qp, false));
  host.work();
  EXPECT_FALSE(is_draining(*host.side.qp));
  EXPECT_TRUE(event_lines(host.side).empty());
  ASSERT_TRUE(resume(*host.side.qp));
  ASSERT_TRUE(drain(*host.side.qp, true));
  host.work();
  EXPECT_EQ(event_lines(host.side).size(), 1U);
}

TEST(Drain, completes_while_the_peer_address_is_unresolved) {
  LoneHostOptions options;
  options.static_peer = false;
  LoneHost host(options);
  host.post(IBV_WR_SEND, 1, 8);
  host.work();
  ASSERT_TRUE(drain(*host.side.qp));
  host.work();
  EXPECT_EQ(event_lines(host.side).size(), 1U);
  EXPECT_EQ(host.statuses(), Statuses{}) << "what was not begun stays posted";
}

TEST(Drain, drained_queue_pair_continues_to_receive) {
  LoneHost host;
  ASSERT_TRUE(drain(*host.side.qp));
  host.side.receive(1, LoneHost::kGuard, 64);
  EXPECT_EQ(host.receive(host.request(Opcode::kRcSendOnly, 0, 8)), Lines{"RC_ACK 0 1f"});
  EXPECT_EQ(host.receive(host.read(1, 0, 300)), (Lines{"RC_READ_RESP_FIRST 1", "RC_READ_RESP_LAST 2"}));
  EXPECT_EQ(host.statuses(), Statuses{IBV_WC_SUCCESS});
}

TEST(Drain, local_operations_wait_until_resume) {
  LoneHostOptions options;
  options.access |= IBV_ACCESS_MW_BIND;
  LoneHost host(options);
  ASSERT_TRUE(drain(*host.side.qp));
  const auto window = must(host.side.pd->allocate_window(IBV_MW_TYPE_1));
  const ibv_mw_bind bind{.wr_id = 1,
                         .send_flags = IBV_SEND_SIGNALED,
                         .bind_info = {host.side.region->verbs(), host.side.address(LoneHost::kGuard), 8,
                                       IBV_ACCESS_REMOTE_READ}};
  ASSERT_EQ(host.side.qp->bind_window(*window, bind), 0);
  host.work();
  EXPECT_EQ(host.statuses(), Statuses{});
  ASSERT_TRUE(resume(*host.side.qp));
  host.work();
  EXPECT_EQ(host.statuses(), Statuses{IBV_WC_SUCCESS});
}

TEST(Drain, error_while_draining_flushes_remaining_requests_in_order) {
  LoneHost host;
  host.post(IBV_WR_SEND, 1, 8);
  host.work();
  ASSERT_TRUE(drain(*host.side.qp));
  host.post(IBV_WR_SEND, 2, 8);
  host.receive(host.response(Opcode::kRcAcknowledge, 0, 0x62));
  EXPECT_EQ(host.side.qp->state(), IBV_QPS_ERR);
  EXPECT_EQ(host.statuses(), (Statuses{IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR}));
  EXPECT_TRUE(event_lines(host.side).empty()) << "it never drained";
  EXPECT_FALSE(is_draining(*host.side.qp));
}

TEST(Drain, unresponsive_peer_exhausts_the_retries) {
  LoneHost host;
  host.post(IBV_WR_SEND, 1, 8);
  host.work();
  ASSERT_TRUE(drain(*host.side.qp));
  host.wait(1s);
  EXPECT_EQ(host.statuses(), Statuses{IBV_WC_RETRY_EXC_ERR});
}

TEST(Drain, reset_and_error_are_permitted_while_draining) {
  for (const ibv_qp_state to : {IBV_QPS_RESET, IBV_QPS_ERR}) {
    LoneHost host;
    host.post(IBV_WR_SEND, 1, 8);
    host.work();
    ASSERT_TRUE(drain(*host.side.qp));
    host.to_bare(to);
    host.work();
    EXPECT_EQ(host.statuses(), to == IBV_QPS_ERR ? Statuses{IBV_WC_WR_FLUSH_ERR} : Statuses{});
    EXPECT_TRUE(event_lines(host.side).empty());
  }
}

TEST(Drain, transport_attributes_can_be_modified_when_drained) {
  LoneHost host;
  ASSERT_TRUE(drain(*host.side.qp));
  host.work();
  ibv_qp_attr attr{};
  attr.port_num = 1;
  attr.timeout = 8;
  attr.retry_cnt = 1;
  attr.rnr_retry = 2;
  attr.max_rd_atomic = 1;
  attr.max_dest_rd_atomic = 5;
  attr.min_rnr_timer = 9;
  constexpr int kMask = IBV_QP_PORT | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                        IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  ASSERT_TRUE(host.side.qp->modify(attr, kMask));
  ibv_qp_attr now{};
  host.side.qp->query(&now, nullptr);
  EXPECT_EQ(now.qp_state, IBV_QPS_SQD);
  EXPECT_EQ(now.timeout, 8);
  EXPECT_EQ(now.max_rd_atomic, 1);
  EXPECT_EQ(now.max_dest_rd_atomic, 5);
  ASSERT_TRUE(resume(*host.side.qp));
  for (uint64_t i = 0; i < 2; ++i) host.post(IBV_WR_RDMA_READ, i, 8);
  EXPECT_EQ(host.work(), Lines{"RC_READ_REQUEST 0"}) << "one READ at a time from now on";
  EXPECT_EQ(host.wait(1s).size(), 1U) << "and one retry";
  EXPECT_EQ(host.statuses(), (Statuses{IBV_WC_RETRY_EXC_ERR, IBV_WC_WR_FLUSH_ERR}));
}

TEST(Drain, responder_keeps_its_latest_reads_when_their_depth_changes) {
  for (const uint8_t reads : {uint8_t{1}, uint8_t{2}, uint8_t{4}}) {
    SCOPED_TRACE(int{reads});
    LoneHost host;  // accepts 2 READs
    for (int i = 0; i < 3; ++i) host.receive(host.read(i, 0, 8));
    ASSERT_TRUE(drain(*host.side.qp));
    host.work();
    ibv_qp_attr attr{};
    attr.max_dest_rd_atomic = reads;
    ASSERT_TRUE(host.side.qp->modify(attr, IBV_QP_MAX_DEST_RD_ATOMIC));
    EXPECT_EQ(host.receive(host.read(2, 0, 8)), Lines{"RC_READ_RESP_ONLY 2"});
    EXPECT_EQ(host.receive(host.read(1, 0, 8)), reads == 1 ? Lines{} : Lines{"RC_READ_RESP_ONLY 1"});
    for (int i = 3; i < 8; ++i)
      EXPECT_EQ(host.receive(host.read(i, 0, 8)), Lines{"RC_READ_RESP_ONLY " + std::to_string(i)});
    for (int i = 0; i < 8; ++i)
      EXPECT_EQ(host.receive(host.read(i, 0, 8)).size(), i >= 8 - reads ? 1U : 0U) << i;
  }
}

TEST(Drain, read_depth_cannot_change_while_a_read_is_answered) {
  LoneHostOptions options;
  options.region = 65536;
  LoneHost host(options);
  ASSERT_TRUE(drain(*host.side.qp));
  host.work();
  host.port().blocked = true;
  host.receive(host.read(0, 0, 65536));
  ibv_qp_attr attr{};
  attr.max_dest_rd_atomic = 8;
  const Status busy = host.side.qp->modify(attr, IBV_QP_MAX_DEST_RD_ATOMIC);
  ASSERT_FALSE(busy);
  EXPECT_EQ(busy.error().code, EBUSY);
  host.port().blocked = false;
  EXPECT_EQ(host.work().size(), 256U);
  EXPECT_TRUE(host.side.qp->modify(attr, IBV_QP_MAX_DEST_RD_ATOMIC));
}

TEST(Drain, path_can_be_modified_when_drained) {
  LoneHostOptions options;
  LoneHost host(options);
  ASSERT_TRUE(drain(*host.side.qp));
  host.work();
  ibv_qp_attr attr{};
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = 1;
  attr.ah_attr.grh.sgid_index = 1;
  attr.ah_attr.grh.traffic_class = 0x20;
  attr.ah_attr.grh.dgid = gid_of("10.0.0.2");
  ASSERT_TRUE(host.side.qp->modify(attr, IBV_QP_AV));
  ASSERT_TRUE(resume(*host.side.qp));
  host.post(IBV_WR_SEND, 1, 8);
  Poller& poller = host.side.device->poller();
  while (poller.poll(host.now)) {
  }
  const auto packets = host.take_packets();
  ASSERT_EQ(packets.size(), 1U);
  EXPECT_EQ(packets[0].v4().tos & 0xfc, 0x20);
  EXPECT_GE(packets[0].udp_source_port, 0xc000);
  attr.ah_attr.grh.sgid_index = 9;
  EXPECT_FALSE(host.side.qp->modify(attr, IBV_QP_AV)) << "in RTS";
}

TEST(Drain, started_uc_message_is_sent_completely) {
  LoneHostOptions options;
  options.region = 65536;
  LoneHost host(options);
  auto qp = make_service(host.side, IBV_QPT_UC);
  connect_to(*qp, IBV_QPT_UC, gid_of("10.0.0.2"), LoneHost::kPeerQp.value());
  host.work();
  host.port().blocked = true;
  ASSERT_EQ(send(host.side, *qp, {.wr_id = 1, .offset = LoneHost::kGuard, .length = 65536}), 0);
  ASSERT_EQ(send(host.side, *qp, {.wr_id = 2, .offset = LoneHost::kGuard, .length = 8}), 0);
  host.work();
  ASSERT_TRUE(drain(*qp));
  EXPECT_TRUE(is_draining(*qp));
  host.port().blocked = false;
  EXPECT_EQ(host.work().size(), 256U);
  EXPECT_FALSE(is_draining(*qp));
  EXPECT_EQ(event_lines(host.side), Lines{"SQ_DRAINED " + std::to_string(qp->qp_num())});
  EXPECT_EQ(completion_lines(host.side).size(), 1U);
  ASSERT_TRUE(resume(*qp));
  EXPECT_EQ(host.work().size(), 1U);
}

TEST(Drain, ud_queue_drains_at_once_and_datagrams_wait_until_resume) {
  LoneHost host;
  auto qp = make_service(host.side, IBV_QPT_UD);
  open_datagrams(*qp);
  ASSERT_TRUE(drain(*qp));
  const auto to = must(host.side.pd->create_address_handle(address_of(gid_of("10.0.0.2"))));
  ASSERT_EQ(send(host.side, *qp, {.offset = LoneHost::kGuard, .length = 8, .to = to.get(), .remote_qp = 5}),
            0);
  EXPECT_EQ(host.work(), Lines{});
  EXPECT_EQ(event_lines(host.side), Lines{"SQ_DRAINED " + std::to_string(qp->qp_num())});
  ASSERT_TRUE(resume(*qp));
  EXPECT_EQ(host.work().size(), 1U);
}

}  // namespace
}  // namespace roci::test

// Queue pair states: attributes out of range, permitted posts, and the effect of state changes and object destruction
// on pending packets, timers, doorbells and completions.
#include <gtest/gtest.h>

#include <functional>

#include "support/hosts/lone_host.hpp"
#include "transport/queue_pair/qp_transitions.hpp"

namespace roci::test {
namespace {

constexpr int kInitMask = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
constexpr int kRtrMask = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int kRtsMask =
    IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;

struct BadAttribute {
  const char* name;
  int at;  // target state of the transition
  std::function<void(ibv_qp_attr&)> change;
  const char* sentence;  // expected part of the error message
};

TEST(Lifecycle, modify_names_an_attribute_out_of_range_and_keeps_the_state) {
  const BadAttribute kRows[] = {
      {"pkey_index", IBV_QPS_INIT, [](ibv_qp_attr& a) { a.pkey_index = 1; }, "pkey_index 1"},
      {"port", IBV_QPS_INIT, [](ibv_qp_attr& a) { a.port_num = 2; }, "port 2"},
      {"path MTU 0", IBV_QPS_RTR, [](ibv_qp_attr& a) { a.path_mtu = ibv_mtu{}; }, "path MTU code 0"},
      {"path MTU 6", IBV_QPS_RTR, [](ibv_qp_attr& a) { a.path_mtu = static_cast<ibv_mtu>(6); },
       "path MTU code 6"},
      {"no GRH", IBV_QPS_RTR, [](ibv_qp_attr& a) { a.ah_attr.is_global = 0; }, "GRH"},
      {"sgid_index", IBV_QPS_RTR, [](ibv_qp_attr& a) { a.ah_attr.grh.sgid_index = 9; }, "sgid_index 9"},
      {"IPv6 peer for an IPv4 GID", IBV_QPS_RTR, [](ibv_qp_attr& a) { a.ah_attr.grh.dgid.raw[0] = 0xfd; },
       "IP versions"},
      {"multicast peer", IBV_QPS_RTR, [](ibv_qp_attr& a) { a.ah_attr.grh.dgid.raw[12] = 224; }, "224.0.0.2"},
      {"dest_qp_num", IBV_QPS_RTR, [](ibv_qp_attr& a) { a.dest_qp_num = 0x1000000; }, "dest_qp_num"},
      {"rq_psn", IBV_QPS_RTR, [](ibv_qp_attr& a) { a.rq_psn = 0x1000000; }, "rq_psn"},
      {"min_rnr_timer", IBV_QPS_RTR, [](ibv_qp_attr& a) { a.min_rnr_timer = 32; }, "min_rnr_timer"},
      {"max_dest_rd_atomic", IBV_QPS_RTR, [](ibv_qp_attr& a) { a.max_dest_rd_atomic = 129; },
       "max_dest_rd_atomic"},
      {"sq_psn", IBV_QPS_RTS, [](ibv_qp_attr& a) { a.sq_psn = 0x1000000; }, "sq_psn"},
      {"timeout", IBV_QPS_RTS, [](ibv_qp_attr& a) { a.timeout = 32; }, "timeout"},
      {"retry_cnt", IBV_QPS_RTS, [](ibv_qp_attr& a) { a.retry_cnt = 8; }, "retry_cnt"},
      {"rnr_retry", IBV_QPS_RTS, [](ibv_qp_attr& a) { a.rnr_retry = 8; }, "rnr_retry"},
      {"max_rd_atomic", IBV_QPS_RTS, [](ibv_qp_attr& a) { a.max_rd_atomic = 129; }, "max_rd_atomic"},
  };
  for (const BadAttribute& row : kRows) {
    SCOPED_TRACE(row.name);
    LoneHost host;
    ibv_qp_attr good{};
    host.side.qp->query(&good, nullptr);
    host.to_bare(IBV_QPS_RESET);
    if (row.at != IBV_QPS_INIT) host.to_init();
    if (row.at == IBV_QPS_RTS) host.to_rtr();
    const ibv_qp_state before = host.side.qp->state();
    ibv_qp_attr bad = good;
    bad.qp_state = static_cast<ibv_qp_state>(row.at);
    bad.rq_psn = bad.sq_psn = 0;
    row.change(bad);
    const int mask = row.at == IBV_QPS_INIT ? kInitMask : row.at == IBV_QPS_RTR ? kRtrMask : kRtsMask;
    const Status status = host.side.qp->modify(bad, IBV_QP_STATE | mask);
    ASSERT_FALSE(status);
    EXPECT_NE(status.error().message.find(row.sentence), std::string::npos) << status.error().message;
    EXPECT_EQ(host.side.qp->state(), before);
  }
}

TEST(Lifecycle, modify_checks_the_current_state_if_given) {
  LoneHost host;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  attr.cur_qp_state = IBV_QPS_RTR;
  attr.min_rnr_timer = 3;
  constexpr int kMask = IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_MIN_RNR_TIMER;
  EXPECT_FALSE(host.side.qp->modify(attr, kMask));
  ibv_qp_attr now{};
  host.side.qp->query(&now, nullptr);
  EXPECT_EQ(now.min_rnr_timer, 12);
  attr.cur_qp_state = IBV_QPS_RTS;
  EXPECT_TRUE(host.side.qp->modify(attr, kMask));
  host.side.qp->query(&now, nullptr);
  EXPECT_EQ(now.min_rnr_timer, 3);
}

TEST(Lifecycle, query_returns_the_attributes_set_in_earlier_states) {
  LoneHost host;
  const auto expect_path = [&](ibv_qp_state state) {
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    host.side.qp->query(&attr, &init);
    EXPECT_EQ(attr.qp_state, state);
    EXPECT_EQ(attr.path_mtu, IBV_MTU_256);
    EXPECT_EQ(attr.dest_qp_num, LoneHost::kPeerQp.value());
    EXPECT_EQ(attr.ah_attr.grh.sgid_index, 1);
    EXPECT_EQ(attr.ah_attr.grh.dgid.raw[15], 2);
    EXPECT_EQ(attr.timeout, 10);
    EXPECT_EQ(attr.retry_cnt, 3);
    EXPECT_EQ(attr.max_rd_atomic, 2);
    EXPECT_EQ(attr.max_dest_rd_atomic, 2);
    EXPECT_EQ(attr.rq_psn, 100U);
    EXPECT_EQ(attr.sq_psn, 5000U);
    EXPECT_EQ(init.cap.max_send_wr, 16U);
  };
  expect_path(IBV_QPS_RTS);
  ibv_qp_attr attr{};
  attr.qp_access_flags = IBV_ACCESS_REMOTE_READ;
  must(host.side.qp->modify(attr, IBV_QP_ACCESS_FLAGS));
  expect_path(IBV_QPS_RTS);
  EXPECT_EQ(host.receive(host.write(Opcode::kRcWriteOnly, 0, 0, 4, 4)), Lines{"RC_ACK 0 61"});
  expect_path(IBV_QPS_ERR);
}

TEST(Lifecycle, only_the_path_migration_state_migrated_can_be_set) {
  LoneHost host;
  ibv_qp_attr attr{};
  attr.path_mig_state = IBV_MIG_MIGRATED;
  EXPECT_TRUE(host.side.qp->modify(attr, IBV_QP_PATH_MIG_STATE));
  for (const ibv_mig_state state : {IBV_MIG_REARM, IBV_MIG_ARMED}) {
    attr.path_mig_state = state;
    const Status set = host.side.qp->modify(attr, IBV_QP_PATH_MIG_STATE);
    ASSERT_FALSE(set);
    EXPECT_EQ(set.error().code, EOPNOTSUPP);
  }
}

// --- posting

TEST(Lifecycle, accepts_sends_in_rts_and_error_and_receives_from_init_on) {
  for (const ibv_qp_state state : {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_ERR}) {
    SCOPED_TRACE(qp_state_name(state));
    LoneHost host;
    if (state == IBV_QPS_ERR) {
      host.to_bare(IBV_QPS_ERR);
    } else if (state != IBV_QPS_RTS) {
      host.to_bare(IBV_QPS_RESET);
      if (state != IBV_QPS_RESET) host.to_init();
      if (state == IBV_QPS_RTR) host.to_rtr();
    }
    EXPECT_EQ(host.post(IBV_WR_RDMA_WRITE, 1, 8), state == IBV_QPS_RTS || state == IBV_QPS_ERR ? 0 : EINVAL);
    EXPECT_EQ(host.side.receive(2, LoneHost::kGuard, 8), state == IBV_QPS_RESET ? EINVAL : 0);
    EXPECT_EQ(host.work(), state == IBV_QPS_RTS ? Lines{"RC_WRITE_ONLY 0"} : Lines{});
    EXPECT_EQ(host.statuses(),
              state == IBV_QPS_ERR ? (Statuses{IBV_WC_WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR}) : Statuses{});
  }
}

TEST(Lifecycle, post_stops_at_the_first_invalid_request_and_returns_it) {
  LoneHost host;
  ibv_sge sges[3] = {host.side.sge(0, 8), host.side.sge(0, 8), host.side.sge(0, 8)};
  const std::pair<std::function<void(ibv_send_wr&)>, int> kRows[] = {
      {[](ibv_send_wr& wr) { wr.opcode = IBV_WR_DRIVER1; }, EOPNOTSUPP},
      {[](ibv_send_wr& wr) { wr.opcode = IBV_WR_TSO; }, EOPNOTSUPP},
      {[](ibv_send_wr& wr) { wr.num_sge = 3; }, EINVAL},
      {[](ibv_send_wr& wr) { wr.num_sge = -1; }, EINVAL},
      {[](ibv_send_wr& wr) { wr.opcode = IBV_WR_RDMA_READ, wr.send_flags = IBV_SEND_INLINE; }, EINVAL},
      {[&](ibv_send_wr& wr) { sges[0].length = 65, wr.send_flags = IBV_SEND_INLINE; }, EINVAL},
      {[&](ibv_send_wr& wr) { sges[0].length = 0x80000000, wr.num_sge = 2; }, EINVAL},
  };
  for (const auto& [change, code] : kRows) {
    sges[0].length = 8;
    ibv_send_wr wrs[3] = {};
    ibv_sge good = host.side.sge(0, 8);
    for (int i = 0; i < 3; ++i) {
      wrs[i].opcode = IBV_WR_SEND;
      wrs[i].sg_list = i == 1 ? sges : &good;
      wrs[i].num_sge = 1;
      wrs[i].next = i < 2 ? &wrs[i + 1] : nullptr;
    }
    change(wrs[1]);
    const uint32_t posted = host.core().send_queue.posted();
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(host.side.qp->post_send(wrs, &bad), code);
    EXPECT_EQ(bad, &wrs[1]);
    // The request before it is accepted, the request after it is not.
    EXPECT_EQ(host.core().send_queue.posted(), posted + 1);
  }
}

TEST(Lifecycle, post_to_a_full_queue_returns_enomem) {
  LoneHost host;
  for (uint64_t id = 0; id < 16; ++id) {
    EXPECT_EQ(host.post(IBV_WR_RDMA_WRITE, id, 8), 0);
    EXPECT_EQ(host.side.receive(id, LoneHost::kGuard, 8), 0);
  }
  EXPECT_EQ(host.post(IBV_WR_RDMA_WRITE, 16, 8), ENOMEM);
  EXPECT_EQ(host.side.receive(16, LoneHost::kGuard, 8), ENOMEM);
  host.work();
  host.receive(host.response(Opcode::kRcAcknowledge, 0));
  EXPECT_EQ(host.post(IBV_WR_RDMA_WRITE, 16, 8), 0);  // the slot of the completed request
  EXPECT_EQ(host.post(IBV_WR_RDMA_WRITE, 17, 8), ENOMEM);
}

TEST(Lifecycle, creation_with_invalid_parameters_is_rejected) {
  LoneHost host;
  LoneHost other;
  ibv_qp_init_attr init{};
  init.qp_type = IBV_QPT_RC;
  const auto refused = [&](CompletionQueue& cq) {
    auto qp = host.side.pd->create_qp(&init, *host.side.cq, cq);
    return qp ? std::string() : qp.error().message;
  };
  EXPECT_NE(refused(*other.side.cq).find("same device"), std::string::npos);
  init.cap.max_send_wr = 1 << 20;
  EXPECT_NE(refused(*host.side.cq).find("max_send_wr"), std::string::npos);
  init.cap = {};
  init.cap.max_inline_data = 1 << 20;
  EXPECT_NE(refused(*host.side.cq).find("max_inline_data"), std::string::npos);
  init.cap = {};
  init.qp_type = IBV_QPT_DRIVER;
  EXPECT_NE(refused(*host.side.cq).find("RC, UC, UD, XRC and raw packets"), std::string::npos);
  init.qp_type = IBV_QPT_RC;
  EXPECT_EQ(refused(*host.side.cq), "");

  EXPECT_FALSE(host.side.device->create_cq(0));
  EXPECT_FALSE(host.side.device->create_cq(-1));
  EXPECT_FALSE(host.side.device->query_gid(-1));
  EXPECT_FALSE(host.side.device->query_gid(2));
  EXPECT_FALSE(host.side.pd->register_memory(host.side.memory.data(), 8, IBV_ACCESS_REMOTE_WRITE));
  EXPECT_FALSE(host.side.pd->register_memory(host.side.memory.data(), 8, 1 << 9));
  EXPECT_FALSE(host.side.pd->register_memory(host.side.memory.data(), SIZE_MAX, 0));
}

// --- state changes and destruction with work in flight

TEST(Lifecycle, reset_discards_packets_in_flight_and_timers) {
  LoneHost host;
  ASSERT_EQ(host.side.receive(1, LoneHost::kGuard, 512), 0);
  ASSERT_EQ(host.post(IBV_WR_RDMA_WRITE, 2, 1000), 0);
  host.work();
  host.receive(host.request(Opcode::kRcSendFirst, 0, 256));
  host.to_bare(IBV_QPS_RESET);
  EXPECT_EQ(host.wait(1s), Lines{});  // no timeout of a request from before the reset
  EXPECT_EQ(host.side.counter("timeouts"), 0U);
  host.connect();
  EXPECT_EQ(host.statuses(), Statuses{});
  // Packets from before the reset arrive late. Expects that they are ignored and the started message does not
  // continue.
  EXPECT_EQ(host.receive(host.response(Opcode::kRcAcknowledge, 3)), Lines{});
  EXPECT_EQ(host.receive(host.request(Opcode::kRcSendLast, 1, 10)), Lines{"RC_ACK 0 60"});
  ASSERT_EQ(host.side.receive(3, LoneHost::kGuard, 512), 0);
  EXPECT_EQ(host.receive(host.request(Opcode::kRcSendOnly, 0, 10)), Lines{"RC_ACK 0 1f"});
  ASSERT_EQ(host.post(IBV_WR_RDMA_WRITE, 4, 8), 0);
  EXPECT_EQ(host.work(), Lines{"RC_WRITE_ONLY 0"});
  host.receive(host.response(Opcode::kRcAcknowledge, 0));
  EXPECT_EQ(host.statuses(), (Statuses{IBV_WC_SUCCESS, IBV_WC_SUCCESS}));
}

TEST(Lifecycle, reset_removes_unpolled_completions) {
  LoneHost host;
  ASSERT_EQ(host.post(IBV_WR_RDMA_WRITE, 2, 8), 0);
  host.work();
  host.receive(host.response(Opcode::kRcAcknowledge, 0));
  host.to_bare(IBV_QPS_RESET);
  EXPECT_EQ(host.statuses(), Statuses{});
}

TEST(Lifecycle, error_with_packets_in_flight_flushes_both_queues_once_and_in_order) {
  LoneHost host;
  for (uint64_t id = 1; id <= 3; ++id) ASSERT_EQ(host.side.receive(id, LoneHost::kGuard, 512), 0);
  for (uint64_t id = 11; id <= 13; ++id) ASSERT_EQ(host.post(IBV_WR_RDMA_READ, id, 1000), 0);
  host.work();
  host.receive(host.request(Opcode::kRcSendFirst, 0, 256));  // consumes the first receive
  host.to_bare(IBV_QPS_ERR);
  EXPECT_EQ(host.wait(1s), Lines{});
  host.receive(host.response(Opcode::kRcReadResponseFirst, 0, 0x1f, 256));
  host.receive(host.request(Opcode::kRcSendLast, 1, 10));
  std::vector<uint64_t> sends, receives;
  for (const ibv_wc& wc : host.side.completions()) {
    EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
    (wc.wr_id > 10 ? sends : receives).push_back(wc.wr_id);
  }
  EXPECT_EQ(sends, (std::vector<uint64_t>{11, 12, 13}));
  EXPECT_EQ(receives, (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_EQ(host.side.counter("timeouts"), 0U);
  // The only transition out of the error state is to RESET.
  EXPECT_THROW(host.to_init(), std::runtime_error);
}

TEST(Lifecycle, queue_pair_can_be_destroyed_with_timers_and_frames_pending) {
  LoneHost host;
  ASSERT_EQ(host.post(IBV_WR_RDMA_WRITE, 1, 1000), 0);
  host.port().blocked = true;
  host.work();                                          // frames are staged and the timer is armed
  ASSERT_EQ(host.post(IBV_WR_RDMA_WRITE, 2, 1000), 0);  // rings the doorbell
  const Packet late = host.response(Opcode::kRcAcknowledge, 0);
  host.side.qp.reset();
  host.port().blocked = false;
  EXPECT_EQ(host.wait(1s).size(), 4U);  // the staged frames
  host.receive(late);
  EXPECT_EQ(host.side.counter("rx_unknown_qp"), 1U);
  EXPECT_EQ(host.side.counter("timeouts"), 0U);
}

TEST(Lifecycle, device_can_be_destroyed_before_its_objects) {
  LoneHost host;
  ASSERT_EQ(host.post(IBV_WR_RDMA_WRITE, 1, 1000), 0);
  host.side.device.reset();
  host.side.pd.reset();
  host.side.cq.reset();
  EXPECT_EQ(host.post(IBV_WR_RDMA_WRITE, 2, 1000), 0);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  EXPECT_TRUE(host.side.qp->modify(attr, IBV_QP_STATE));
  host.side.region.reset();
  host.side.qp.reset();
}

TEST(Lifecycle, deregistration_during_a_message_fails_it_without_memory_access) {
  LoneHostOptions options;
  options.window_bytes = 512;
  LoneHost host(options);
  ASSERT_EQ(host.post(IBV_WR_RDMA_WRITE, 1, 8), 0);
  ASSERT_EQ(host.post(IBV_WR_RDMA_WRITE, 2, 2000), 0);
  EXPECT_EQ(host.work().size(), 2U);
  host.side.region.reset();
  host.receive(host.response(Opcode::kRcAcknowledge, 0));  // the window opens
  EXPECT_EQ(host.statuses(), (Statuses{IBV_WC_SUCCESS, IBV_WC_LOC_PROT_ERR}));
  EXPECT_EQ(host.side.qp->state(), IBV_QPS_ERR);

  LoneHost target;  // the same at the responder
  target.receive(target.write(Opcode::kRcWriteFirst, 0, 0, 256, 512));
  target.side.region.reset();
  EXPECT_EQ(target.receive(target.request(Opcode::kRcWriteLast, 1, 256)), Lines{"RC_ACK 1 62"});
  EXPECT_EQ(target.side.memory[LoneHost::kGuard + 256], 0xa5);
}

TEST(Lifecycle, cq_overflow_moves_the_queue_pair_to_error) {
  LoneHostOptions options;
  options.cq_entries = 2;
  LoneHost host(options);
  for (uint64_t id = 1; id <= 3; ++id) ASSERT_EQ(host.side.receive(id, LoneHost::kGuard, 8), 0);
  for (int i = 0; i < 3; ++i) host.receive(host.request(Opcode::kRcSendOnly, i, 8));
  EXPECT_EQ(host.side.qp->state(), IBV_QPS_ERR);
  EXPECT_GE(host.side.counter("cq_overflows"), 1U);
  EXPECT_EQ(host.statuses().size(), 2U);
  ibv_wc wc{};
  EXPECT_EQ(host.side.cq->poll(1, &wc), -1);
}

// --- contents of requests and responses

TEST(Lifecycle, msn_counts_completed_messages) {
  LoneHost host;
  const auto msn_after = [&](const Packet& packet) {
    Packet copy = packet;
    host.port().put(encode_packet(copy.finish()));
    const auto packets = host.work_for_packets();
    return packets.empty() ? ~0U : packets.back().aeth->msn.value();
  };
  EXPECT_EQ(msn_after(host.write(Opcode::kRcWriteFirst, 0, 0, 256, 300)), 0U);
  EXPECT_EQ(msn_after(host.request(Opcode::kRcWriteLast, 1, 44)), 1U);
  EXPECT_EQ(msn_after(host.read(2, 0, 16)), 2U);
  EXPECT_EQ(msn_after(host.write(Opcode::kRcWriteOnly, 3, 0, 4, 4)), 3U);
  // A duplicate does not increment the MSN.
  EXPECT_EQ(msn_after(host.write(Opcode::kRcWriteOnly, 3, 0, 4, 4)), 3U);
}

TEST(Lifecycle, last_packet_is_solicited_for_messages_that_consume_a_receive) {
  const std::pair<ibv_wr_opcode, bool> kRows[] = {{IBV_WR_SEND, true},
                                                  {IBV_WR_SEND_WITH_IMM, true},
                                                  {IBV_WR_RDMA_WRITE, false},
                                                  {IBV_WR_RDMA_WRITE_WITH_IMM, true}};
  for (const unsigned flags : {0U, static_cast<unsigned>(IBV_SEND_SOLICITED)}) {
    for (const auto& [opcode, may] : kRows) {
      LoneHost host;
      ASSERT_EQ(host.post(opcode, 1, 300, flags), 0);
      const auto packets = host.work_for_packets();
      ASSERT_EQ(packets.size(), 2U);
      EXPECT_FALSE(packets[0].bth.solicited);
      EXPECT_EQ(packets[1].bth.solicited, may && flags != 0);
    }
  }
}

TEST(Lifecycle, failed_unsignaled_requests_complete) {
  LoneHostOptions options;
  options.signal_all = false;
  LoneHost host(options);
  for (uint64_t id = 1; id <= 3; ++id) ASSERT_EQ(host.post(IBV_WR_RDMA_WRITE, id, 8), 0);
  host.work();
  host.receive(host.response(Opcode::kRcAcknowledge, 1, 0x62));
  const auto completions = host.side.completions();
  ASSERT_EQ(completions.size(), 2U);
  EXPECT_EQ(completions[0].wr_id, 2U);
  EXPECT_EQ(completions[0].status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(completions[1].wr_id, 3U);
  EXPECT_EQ(completions[1].status, IBV_WC_WR_FLUSH_ERR);
}

}  // namespace
}  // namespace roci::test

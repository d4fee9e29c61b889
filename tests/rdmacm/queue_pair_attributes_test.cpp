// Attributes of the state transitions that rdma_init_qp_attr() returns to programs with queue pairs of their own.
#include <gtest/gtest.h>
#include <rdma/rdma_cma.h>

#include <cerrno>
#include <cstring>

#include "rdmacm/addresses.hpp"
#include "rdmacm/fake_device.hpp"
#include "rdmacm/id.hpp"

namespace roci::rdmacm {
namespace {

using fake::kOwn;
using fake::kPeer;

class QueuePairAttributes : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(rdma_create_id(nullptr, &verbs, nullptr, RDMA_PS_TCP), 0);
    sockaddr_storage own{}, peer{};
    write_address(kOwn, 0, false, own);
    write_address(kPeer, 7, false, peer);
    ASSERT_EQ(
        rdma_resolve_addr(verbs, reinterpret_cast<sockaddr*>(&own), reinterpret_cast<sockaddr*>(&peer), 1000),
        0);
    ASSERT_EQ(rdma_resolve_route(verbs, 1000), 0);
    Id& id = Id::of(verbs);
    id.terms.path_mtu = IBV_MTU_2048;
    id.terms.remote_qpn = 0x123;
    id.terms.rq_psn = 0x1111;
    id.terms.sq_psn = 0x2222;
    id.terms.responder_resources = 3;
    id.terms.initiator_depth = 5;
    id.terms.ack_timeout = 14;
    id.terms.retry_count = 6;
    id.terms.rnr_retry_count = 4;
  }
  void TearDown() override { EXPECT_EQ(rdma_destroy_id(verbs), 0); }

  // Attributes of a program that does not initialize its struct.
  ibv_qp_attr of(ibv_qp_state state) {
    ibv_qp_attr attr;
    std::memset(static_cast<void*>(&attr), 0xa5, sizeof attr);
    attr.qp_state = state;
    mask = 0;
    EXPECT_EQ(rdma_init_qp_attr(verbs, &attr, &mask), 0);
    EXPECT_EQ(attr.qp_state, state);
    return attr;
  }

  rdma_cm_id* verbs = nullptr;
  int mask = 0;
};

TEST_F(QueuePairAttributes, init_sets_partition_key_port_and_access) {
  const ibv_qp_attr attr = of(IBV_QPS_INIT);
  EXPECT_EQ(mask, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  EXPECT_EQ(attr.pkey_index, 0);
  EXPECT_EQ(attr.port_num, 1);
  EXPECT_EQ(attr.qp_access_flags,
            unsigned{IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC});
}

TEST_F(QueuePairAttributes, ready_to_receive_sets_path_and_responder) {
  const ibv_qp_attr attr = of(IBV_QPS_RTR);
  EXPECT_EQ(mask, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  EXPECT_EQ(attr.path_mtu, IBV_MTU_2048);
  EXPECT_EQ(attr.dest_qp_num, 0x123U);
  EXPECT_EQ(attr.rq_psn, 0x1111U);
  EXPECT_EQ(attr.max_dest_rd_atomic, 3);
  EXPECT_EQ(attr.min_rnr_timer, 0);
  EXPECT_EQ(attr.ah_attr.is_global, 1);
  EXPECT_EQ(attr.ah_attr.port_num, 1);
  EXPECT_EQ(attr.ah_attr.dlid, 0);
  EXPECT_EQ(attr.ah_attr.sl, 0);
  EXPECT_EQ(std::memcmp(&attr.ah_attr.grh.dgid, &verbs->route.addr.addr.ibaddr.dgid, sizeof(ibv_gid)), 0);
}

TEST_F(QueuePairAttributes, ready_to_send_sets_requester) {
  const ibv_qp_attr attr = of(IBV_QPS_RTS);
  EXPECT_EQ(mask, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                      IBV_QP_MAX_QP_RD_ATOMIC);
  EXPECT_EQ(attr.sq_psn, 0x2222U);
  EXPECT_EQ(attr.timeout, 14);
  EXPECT_EQ(attr.retry_cnt, 6);
  EXPECT_EQ(attr.rnr_retry, 4);
  EXPECT_EQ(attr.max_rd_atomic, 5);
}

// Linux copies the whole struct, so attributes outside of the mask are 0 too.
TEST_F(QueuePairAttributes, attributes_outside_of_the_mask_are_zero) {
  for (const ibv_qp_state state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
    const ibv_qp_attr attr = of(state);
    EXPECT_EQ(attr.qkey, 0U);
    EXPECT_EQ(attr.alt_pkey_index, 0);
    EXPECT_EQ(attr.alt_ah_attr.grh.flow_label, 0U);
    EXPECT_EQ(attr.cap.max_send_wr, 0U);
    EXPECT_EQ(attr.alt_timeout, 0);
  }
}

// The struct of programs compiled with headers before `rate_limit` ends before that member.
TEST_F(QueuePairAttributes, rate_limit_is_not_written) {
  EXPECT_EQ(of(IBV_QPS_INIT).rate_limit, 0xa5a5a5a5U);
}

TEST_F(QueuePairAttributes, other_states_are_rejected) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_SQD;
  EXPECT_EQ(rdma_init_qp_attr(verbs, &attr, &mask), -1);
  EXPECT_EQ(errno, EINVAL);
}

}  // namespace
}  // namespace roci::rdmacm

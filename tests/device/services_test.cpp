// Rejected calls for UC, UD and shared receive queues, and their error messages.
#include <gtest/gtest.h>

#include "device/host/limits.hpp"
#include "support/hosts/services.hpp"

namespace roci::test {
namespace {

template <class T>
std::string error_of(const Result<T>& result) {
  return result ? std::string() : result.error().message;
}

class Services : public testing::Test {
 protected:
  Side& side() { return hosts_.a; }
  TwoHosts hosts_;
};

TEST_F(Services, shared_receive_queue_creation_rejects_invalid_sizes) {
  ibv_srq_init_attr init{};
  EXPECT_EQ(error_of(side().pd->create_srq(&init)),
            "shared receive queue: max_wr 0 is out of range; 1 to 32768 is allowed");
  init.attr.max_wr = kMaxWorkRequests + 1;
  EXPECT_EQ(error_of(side().pd->create_srq(&init)),
            "shared receive queue: max_wr 32769 is out of range; 1 to 32768 is allowed");
  init.attr.max_wr = 1;
  init.attr.max_sge = kMaxSge + 1;
  EXPECT_EQ(error_of(side().pd->create_srq(&init)),
            "shared receive queue: max_sge 33 is too large; at most 32 is allowed");
}

TEST_F(Services, shared_receive_queue_has_the_requested_size) {
  ibv_srq_init_attr init{};
  init.attr = {.max_wr = 5, .max_sge = 0, .srq_limit = 3};
  const auto srq = must(side().pd->create_srq(&init));
  EXPECT_EQ(init.attr.max_wr, 5U);
  EXPECT_EQ(init.attr.max_sge, 1U);
  const ibv_srq_attr now = srq->query();
  EXPECT_EQ(now.max_wr, 5U);
  EXPECT_EQ(now.max_sge, 1U);
  EXPECT_EQ(now.srq_limit, 0U);  // creation does not arm the limit
}

TEST_F(Services, shared_receive_queue_is_modified_completely_or_not_at_all) {
  const auto srq = make_srq(side(), 8);
  for (uint64_t i = 0; i < 6; ++i) ASSERT_EQ(receive(side(), *srq, i, 0, 8), 0);
  const auto modify = [&](uint32_t max_wr, uint32_t limit, int mask) {
    ibv_srq_attr attr{};
    attr.max_wr = max_wr;
    attr.srq_limit = limit;
    return error_of(srq->modify(attr, mask));
  };
  EXPECT_EQ(modify(5, 0, IBV_SRQ_MAX_WR), "shared receive queue: max_wr 5 is below the 6 queued requests");
  EXPECT_EQ(modify(0, 0, IBV_SRQ_MAX_WR),
            "shared receive queue: max_wr 0 is out of range; 1 to 32768 is allowed");
  EXPECT_EQ(modify(0, 9, IBV_SRQ_LIMIT), "shared receive queue: srq_limit 9 is above its max_wr 8");
  EXPECT_EQ(modify(10, 11, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT),
            "shared receive queue: srq_limit 11 is above its max_wr 10");
  EXPECT_EQ(modify(10, 2, 0x10),
            "shared receive queue: attribute mask 16 contains unknown bits; IBV_SRQ_MAX_WR and IBV_SRQ_LIMIT "
            "are allowed");
  EXPECT_EQ(srq->query().max_wr, 8U);
  EXPECT_EQ(modify(0, 4, IBV_SRQ_LIMIT), "");
  // Both in one call: the new limit may exceed the old size, the new size may be below the old limit.
  EXPECT_EQ(modify(5, 1, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT),
            "shared receive queue: max_wr 5 is below the 6 queued requests");
  EXPECT_EQ(srq->query().srq_limit, 4U);  // still armed
  EXPECT_EQ(modify(20, 6, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), "");
  EXPECT_EQ(srq->query().max_wr, 20U);
  EXPECT_EQ(srq->query().srq_limit, 6U);
  EXPECT_EQ(modify(0, 0, 0), "");
  EXPECT_EQ(event_lines(side()), std::vector<std::string>{});
}

TEST_F(Services, destroyed_shared_receive_queue_removes_its_events) {
  auto srq = make_srq(side(), 8);
  ASSERT_EQ(arm(*srq, 1), 0);
  EXPECT_EQ(srq->query().srq_limit, 0U);  // raised at once
  srq.reset();
  EXPECT_EQ(event_lines(side()), std::vector<std::string>{});
}

TEST_F(Services, shared_receive_queue_event_contains_its_context) {
  int mine = 0;
  ibv_srq_init_attr init{};
  init.srq_context = &mine;
  init.attr.max_wr = 4;
  const auto srq = must(side().pd->create_srq(&init));
  ASSERT_EQ(arm(*srq, 1), 0);
  const auto event = side().device->get_async_event();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->type, IBV_EVENT_SRQ_LIMIT_REACHED);
  EXPECT_EQ(event->object.source, EventSource::kSharedReceiveQueue);
  EXPECT_EQ(event->object.number, srq->number());
  EXPECT_EQ(event->object.context, &mine);
}

TEST_F(Services, shared_receive_queue_of_another_device_is_rejected) {
  const auto foreign = make_srq(hosts_.b, 8);
  ibv_qp_init_attr init{};
  init.qp_type = IBV_QPT_RC;
  EXPECT_EQ(error_of(side().pd->create_qp(&init, *side().cq, *side().cq, foreign.get())),
            "queue pair: the shared receive queue and the protection domain must belong to the same device");
  ibv_srq none{};
  init.srq = &none;
  EXPECT_EQ(error_of(side().pd->create_qp(&init, *side().cq, *side().cq)),
            "queue pair: init->srq must be null; pass the shared receive queue as a separate argument");
}

TEST_F(Services, queue_pair_with_a_shared_receive_queue_has_no_receive_queue) {
  const auto srq = make_srq(side(), 8);
  ibv_qp_init_attr init{};
  init.qp_type = IBV_QPT_UC;
  init.cap = kUsualCap;
  const auto qp = must(side().pd->create_qp(&init, *side().cq, *side().cq, srq.get()));
  EXPECT_EQ(init.cap.max_recv_wr, 0U);
  EXPECT_EQ(init.cap.max_recv_sge, 0U);
  EXPECT_EQ(init.cap.max_send_wr, 16U);
  ibv_qp_attr attr{};
  ibv_qp_init_attr got{};
  qp->query(&attr, &got);
  EXPECT_EQ(got.qp_type, IBV_QPT_UC);
}

TEST_F(Services, address_handle_creation_rejects_invalid_addresses) {
  const auto refused = [&](const ibv_ah_attr& attr) {
    return error_of(side().pd->create_address_handle(attr));
  };
  ibv_ah_attr attr = address_of(gid_of("10.0.0.2"));
  EXPECT_EQ(refused(attr), "");
  attr.port_num = 2;
  EXPECT_EQ(refused(attr), "address handle: port 2 does not exist; the only port is 1");
  attr = address_of(gid_of("10.0.0.2"));
  attr.is_global = 0;
  EXPECT_EQ(refused(attr),
            "address handle: the address vector has no GRH; RoCE requires one (is_global = 1)");
  attr = address_of(gid_of("10.0.0.2"));
  attr.grh.sgid_index = 2;
  EXPECT_EQ(refused(attr), "address handle: sgid_index 2 does not exist; 0 to 1 are valid");
  EXPECT_EQ(refused(address_of(gid_of("fd00::2"))),
            "address handle: the peer's GID fd00::2 and the local GID 10.0.0.1 have different IP versions");
  EXPECT_EQ(refused(address_of(gid_of("239.1.2.3"))), "");  // a multicast address
}

TEST_F(Services, address_handle_of_another_device_is_rejected) {
  const auto qp = make_service(side(), IBV_QPT_UD);
  open_datagrams(*qp);
  const auto own = must(side().pd->create_address_handle(address_of(must(hosts_.b.device->query_gid(1)))));
  const auto foreign =
      must(hosts_.b.pd->create_address_handle(address_of(must(side().device->query_gid(1)))));
  EXPECT_EQ(send(side(), *qp, {.length = 8, .to = own.get(), .remote_qp = 5}), 0);
  EXPECT_EQ(send(side(), *qp, {.length = 8, .to = foreign.get(), .remote_qp = 5}), EINVAL);
}

TEST_F(Services, device_reports_limits_of_srqs_address_handles_and_groups) {
  const ibv_device_attr attr = side().device->query_device();
  EXPECT_EQ(attr.max_srq_wr, static_cast<int>(kMaxWorkRequests));
  EXPECT_EQ(attr.max_srq_sge, static_cast<int>(kMaxSge));
  EXPECT_GT(attr.max_srq, 0);
  EXPECT_GT(attr.max_ah, 0);
  EXPECT_EQ(attr.max_mcast_grp, 8192);
  EXPECT_EQ(attr.max_mcast_qp_attach, 240);
  EXPECT_EQ(attr.max_total_mcast_qp_attach, 8192 * 240);
}

TEST_F(Services, ud_queue_pair_requires_a_qkey_and_no_address_vector) {
  const auto qp = make_service(side(), IBV_QPT_UD);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  EXPECT_FALSE(qp->modify(attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT));
  EXPECT_FALSE(qp->modify(attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
  must(qp->modify(attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
  attr.qp_state = IBV_QPS_RTR;
  EXPECT_FALSE(qp->modify(attr, IBV_QP_STATE | IBV_QP_AV));
  must(qp->modify(attr, IBV_QP_STATE));
  attr.qp_state = IBV_QPS_RTS;
  EXPECT_FALSE(qp->modify(attr, IBV_QP_STATE));
  must(qp->modify(attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
}

TEST_F(Services, uc_queue_pair_rejects_attributes_of_rc) {
  const auto qp = make_service(side(), IBV_QPT_UC);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  must(qp->modify(attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.ah_attr = address_of(gid_of("10.0.0.2"));
  const int needed = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  EXPECT_FALSE(qp->modify(attr, needed | IBV_QP_MIN_RNR_TIMER));
  EXPECT_FALSE(qp->modify(attr, needed | IBV_QP_MAX_DEST_RD_ATOMIC));
  must(qp->modify(attr, needed));
  attr.qp_state = IBV_QPS_RTS;
  EXPECT_FALSE(qp->modify(attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT));
  must(qp->modify(attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
}

}  // namespace
}  // namespace roci::test

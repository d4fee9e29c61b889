// Shared receive queue for queue pairs of all three services: order of consumption, events, and failure of one of the
// queue pairs.
#include <gtest/gtest.h>

#include "support/hosts/services.hpp"

namespace roci::test {
namespace {

// Three queue pairs of host b share a receive queue. Each has a peer on host a.
class SharedReceive : public testing::Test {
 protected:
  explicit SharedReceive(ibv_qp_type type = IBV_QPT_RC) {
    hosts_.connect();
    srq_ = make_srq(hosts_.b, 16);
    const ibv_gid gid_a = must(hosts_.a.device->query_gid(1));
    const ibv_gid gid_b = must(hosts_.b.device->query_gid(1));
    for (size_t i = 0; i < 3; ++i) {
      from_.push_back(make_service(hosts_.a, type));
      to_.push_back(make_service(hosts_.b, type, srq_.get()));
      connect_to(*from_[i], type, gid_b, to_[i]->qp_num(), {.sq_psn = 0x1000});
      connect_to(*to_[i], type, gid_a, from_[i]->qp_num(), {.rq_psn = 0x1000});
    }
    hosts_.run(1ms);
    fill(hosts_.a, 0, 4096, 7);
  }

  void give(uint64_t first, uint64_t count, size_t length = 1000) {
    for (uint64_t i = first; i < first + count; ++i)
      ASSERT_EQ(receive(hosts_.b, *srq_, i, 1000 * i, length), 0);
  }
  void sends(size_t who, size_t length, size_t offset = 0) {
    ASSERT_EQ(send(hosts_.a, *from_.at(who), {.offset = offset, .length = length}), 0);
  }
  void to_state(QueuePair& qp, ibv_qp_state state) {
    ibv_qp_attr attr{};
    attr.qp_state = state;
    must(qp.modify(attr, IBV_QP_STATE));
    hosts_.run(1ms);
  }
  std::string last_wqe(size_t who) { return "QP_LAST_WQE_REACHED " + std::to_string(to_.at(who)->qp_num()); }
  std::string limit_reached() { return "SRQ_LIMIT_REACHED " + std::to_string(srq_->number()); }

  TwoHosts hosts_;
  std::unique_ptr<SharedReceiveQueue> srq_;
  std::vector<std::unique_ptr<QueuePair>> from_, to_;
};

class SharedReceiveUc : public SharedReceive {
 protected:
  SharedReceiveUc() : SharedReceive(IBV_QPT_UC) {}
};

TEST_F(SharedReceive, messages_consume_requests_in_the_order_of_their_start) {
  give(1, 3);
  hosts_.run(1ms);
  // Only the first packet of the long message arrives; the rest arrives after the other messages.
  hosts_.lose = [](const std::string& line) {
    return line == "> RC_SEND_MIDDLE 1" || line == "> RC_SEND_LAST 2";
  };
  sends(0, 600);
  hosts_.run(100us);
  sends(1, 10, 100);
  sends(2, 20, 200);
  hosts_.run(100us);
  hosts_.lose = nullptr;
  EXPECT_EQ(completion_lines(hosts_.b), (Lines{"2 SUCCESS 10", "3 SUCCESS 20"}));
  hosts_.run(100ms);
  EXPECT_EQ(completion_lines(hosts_.b), Lines{"1 SUCCESS 600"});
  EXPECT_TRUE(holds(hosts_.b, 1000, 600, 7));
  EXPECT_TRUE(holds(hosts_.b, 2000, 10, 107));
  EXPECT_TRUE(holds(hosts_.b, 3000, 20, 207));
}

TEST_F(SharedReceive, completions_name_the_queue_pair_that_consumed_the_request) {
  give(1, 2);
  sends(2, 10);
  hosts_.run(1ms);
  sends(0, 10);
  hosts_.run(1ms);
  const auto all = hosts_.b.completions();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].qp_num, to_[2]->qp_num());
  EXPECT_EQ(all[1].qp_num, to_[0]->qp_num());
}

TEST_F(SharedReceive, empty_queue_causes_rnr_naks_until_a_post) {
  sends(0, 600);
  sends(1, 10);
  hosts_.run(100us);
  EXPECT_EQ(hosts_.b.counter("rnr_naks_sent"), 2U);
  EXPECT_EQ(completion_lines(hosts_.a), Lines{});
  give(1, 2);
  hosts_.run(10ms);
  EXPECT_EQ(completion_lines(hosts_.a), (Lines{"1 SUCCESS 600", "1 SUCCESS 10"}));
  EXPECT_EQ(completion_lines(hosts_.b), (Lines{"1 SUCCESS 600", "2 SUCCESS 10"}));
}

TEST_F(SharedReceive, messages_complete_once_while_the_queue_repeatedly_runs_empty) {
  for (int round = 0; round < 4; ++round) {
    for (size_t who = 0; who < 3; ++who) {
      for (int i = 0; i < 4; ++i) sends(who, 300);
    }
    Lines received;
    while (received.size() < 12) {
      ASSERT_EQ(receive(hosts_.b, *srq_, 1, 0, 1000), 0);
      hosts_.run(2ms);
      const Lines some = completion_lines(hosts_.b);
      received.insert(received.end(), some.begin(), some.end());
    }
    hosts_.run(100ms);
    EXPECT_EQ(received, Lines(12, "1 SUCCESS 300"));
    EXPECT_EQ(completion_lines(hosts_.a), Lines(12, "1 SUCCESS 300"));
    EXPECT_EQ(completion_lines(hosts_.b), Lines{});
  }
}

TEST_F(SharedReceive, write_with_immediate_consumes_a_request_at_its_end) {
  const SendOptions write{.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
                          .length = 600,
                          .immediate = 5,
                          .remote = hosts_.b.address(50'000),
                          .rkey = hosts_.b.region->rkey()};
  ASSERT_EQ(send(hosts_.a, *from_[0], write), 0);
  hosts_.run(100us);
  EXPECT_EQ(hosts_.b.counter("rnr_naks_sent"), 1U);
  give(4, 1, 0);
  hosts_.run(10ms);
  EXPECT_EQ(completion_lines(hosts_.b), Lines{"4 SUCCESS 600"});
  EXPECT_TRUE(holds(hosts_.b, 50'000, 600, 7));
}

TEST_F(SharedReceive, limit_event_is_raised_once_per_arming) {
  give(1, 4);
  ASSERT_EQ(arm(*srq_, 3), 0);
  EXPECT_EQ(event_lines(hosts_.b), Lines{});
  sends(0, 8);
  hosts_.run(1ms);
  EXPECT_EQ(event_lines(hosts_.b), Lines{});  // 3 left
  sends(1, 8);
  hosts_.run(1ms);
  EXPECT_EQ(event_lines(hosts_.b), Lines{limit_reached()});
  EXPECT_EQ(srq_->query().srq_limit, 0U);
  sends(2, 8);
  hosts_.run(1ms);
  EXPECT_EQ(event_lines(hosts_.b), Lines{});
  give(5, 3);
  ASSERT_EQ(arm(*srq_, 4), 0);
  EXPECT_EQ(srq_->query().srq_limit, 4U);
  sends(0, 8);
  hosts_.run(1ms);
  EXPECT_EQ(event_lines(hosts_.b), Lines{limit_reached()});
  ASSERT_EQ(arm(*srq_, 10), 0);  // the queue already holds fewer
  EXPECT_EQ(event_lines(hosts_.b), Lines{limit_reached()});
  ASSERT_EQ(arm(*srq_, 3), 0);
  ASSERT_EQ(arm(*srq_, 0), 0);  // disarmed
  sends(0, 8);
  hosts_.run(1ms);
  EXPECT_EQ(event_lines(hosts_.b), Lines{});
}

TEST_F(SharedReceive, queue_pair_in_error_leaves_the_requests_to_other_queue_pairs) {
  give(1, 2);
  to_state(*to_[0], IBV_QPS_ERR);
  EXPECT_EQ(completion_lines(hosts_.b), Lines{});
  EXPECT_EQ(event_lines(hosts_.b), Lines{last_wqe(0)});
  sends(1, 10);
  hosts_.run(1ms);
  EXPECT_EQ(completion_lines(hosts_.b), Lines{"1 SUCCESS 10"});
  EXPECT_EQ(event_lines(hosts_.b), Lines{});  // reported only once
}

TEST_F(SharedReceive, request_of_a_started_message_is_flushed_with_the_event) {
  give(1, 2);
  hosts_.lose = [](const std::string& line) { return line != "> RC_SEND_FIRST 0"; };
  sends(0, 600);
  hosts_.run(100us);
  to_state(*to_[0], IBV_QPS_ERR);
  EXPECT_EQ(completion_lines(hosts_.b), Lines{"1 WR_FLUSH_ERR"});
  EXPECT_EQ(event_lines(hosts_.b), Lines{last_wqe(0)});
  // Reported again after the next transition to the error state.
  to_state(*to_[0], IBV_QPS_RESET);
  to_state(*to_[0], IBV_QPS_ERR);
  EXPECT_EQ(event_lines(hosts_.b), Lines{last_wqe(0)});
}

TEST_F(SharedReceive, failed_queue_pair_raises_last_wqe_reached) {
  give(1, 2, 100);
  sends(0, 600);
  hosts_.run(1ms);
  EXPECT_EQ(completion_lines(hosts_.b), Lines{"1 LOC_LEN_ERR"});
  EXPECT_EQ(to_[0]->state(), IBV_QPS_ERR);
  EXPECT_EQ(event_lines(hosts_.b), Lines{last_wqe(0)});
}

TEST_F(SharedReceive, reset_during_a_message_discards_its_request) {
  give(1, 2);
  hosts_.lose = [](const std::string& line) { return line != "> RC_SEND_FIRST 0"; };
  sends(0, 600);
  hosts_.run(100us);
  to_state(*to_[0], IBV_QPS_RESET);
  EXPECT_EQ(completion_lines(hosts_.b), Lines{});
  hosts_.lose = nullptr;
  sends(1, 10);
  hosts_.run(1ms);
  EXPECT_EQ(completion_lines(hosts_.b), Lines{"2 SUCCESS 10"});
}

TEST_F(SharedReceive, destroy_returns_busy_while_queue_pairs_use_the_queue) {
  for (size_t left = 3; left > 0; --left) {
    const Status status = destroy(srq_);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, EBUSY);
    EXPECT_EQ(status.error().message,
              "shared receive queue: " + std::to_string(left) + " queue pairs use it; destroy them first");
    to_.pop_back();
  }
  must(destroy(srq_));
  EXPECT_EQ(srq_, nullptr);
}

TEST_F(SharedReceive, queue_pairs_receive_after_the_queue_object_is_deleted) {
  give(1, 2);
  ASSERT_EQ(arm(*srq_, 1), 0);
  srq_.reset();
  sends(0, 10);
  sends(1, 10);
  hosts_.run(1ms);
  EXPECT_EQ(completion_lines(hosts_.b), (Lines{"1 SUCCESS 10", "2 SUCCESS 10"}));
  EXPECT_EQ(event_lines(hosts_.b), Lines{});  // the application's object no longer exists
}

TEST_F(SharedReceive, attached_queue_pairs_reject_receive_requests) {
  EXPECT_EQ(receive(hosts_.b, *to_[0], 1, 0, 100), EINVAL);
}

TEST_F(SharedReceive, resize_keeps_posted_requests) {
  give(1, 16, 500);
  EXPECT_EQ(receive(hosts_.b, *srq_, 99, 0, 10), ENOMEM);
  ibv_srq_attr attr{};
  attr.max_wr = 20;
  must(srq_->modify(attr, IBV_SRQ_MAX_WR));
  EXPECT_EQ(srq_->query().max_wr, 20U);
  give(17, 4, 500);
  EXPECT_EQ(receive(hosts_.b, *srq_, 99, 0, 10), ENOMEM);
  for (int i = 0; i < 7; ++i) {
    for (size_t who = 0; who < 3; ++who) {
      if (3 * i + static_cast<int>(who) < 20) sends(who, 10);
    }
    hosts_.run(1ms);
  }
  const auto all = hosts_.b.completions();
  ASSERT_EQ(all.size(), 20U);
  for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i].wr_id, i + 1);
}

TEST_F(SharedReceive, receive_memory_belongs_to_the_protection_domain_of_the_queue) {
  auto other = must(hosts_.b.device->allocate_pd());
  std::vector<uint8_t> memory(1000);
  auto region = must(other->register_memory(memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE));
  ibv_srq_init_attr init{};
  init.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0};
  auto srq = must(other->create_srq(&init));
  ibv_sge list{reinterpret_cast<uint64_t>(memory.data()), 1000, region->lkey()};
  ibv_recv_wr wr{};
  wr.sg_list = &list;
  wr.num_sge = 1;
  ASSERT_EQ(srq->post_recv(&wr, nullptr), 0);
  auto from = make_service(hosts_.a, IBV_QPT_RC);
  auto to = make_service(hosts_.b, IBV_QPT_RC, srq.get());
  connect_to(*from, IBV_QPT_RC, must(hosts_.b.device->query_gid(1)), to->qp_num(), {.sq_psn = 0x1000});
  connect_to(*to, IBV_QPT_RC, must(hosts_.a.device->query_gid(1)), from->qp_num(), {.rq_psn = 0x1000});
  ASSERT_EQ(send(hosts_.a, *from, {.length = 8}), 0);
  hosts_.run(1ms);
  EXPECT_EQ(completion_lines(hosts_.b), Lines{"0 SUCCESS 8"});
  EXPECT_EQ(memory[0], 7);
}

TEST_F(SharedReceiveUc, message_is_dropped_if_the_queue_is_empty) {
  sends(0, 600);
  hosts_.run(1ms);
  EXPECT_EQ(hosts_.b.counter("rx_no_receive"), 1U);
  give(1, 1);
  sends(1, 600);
  hosts_.run(1ms);
  EXPECT_EQ(completion_lines(hosts_.b), Lines{"1 SUCCESS 600"});
}

TEST_F(SharedReceiveUc, request_of_an_abandoned_message_completes_with_an_error) {
  give(1, 3);
  hosts_.lose = [](const std::string& line) { return line == "> UC_SEND_LAST 2"; };
  sends(0, 600);
  hosts_.run(1ms);
  sends(1, 10);
  hosts_.run(1ms);
  EXPECT_EQ(completion_lines(hosts_.b), Lines{"2 SUCCESS 10"});
  sends(0, 20);
  hosts_.run(1ms);
  EXPECT_EQ(completion_lines(hosts_.b), (Lines{"1 REM_INV_REQ_ERR", "3 SUCCESS 20"}));
  EXPECT_EQ(to_[0]->state(), IBV_QPS_RTS);
}

TEST_F(SharedReceiveUc, message_longer_than_its_buffer_completes_with_an_error) {
  give(1, 1, 400);
  give(2, 1);
  sends(0, 600);
  hosts_.run(1ms);
  EXPECT_EQ(completion_lines(hosts_.b), Lines{"1 LOC_LEN_ERR"});
  sends(0, 600);
  hosts_.run(1ms);
  EXPECT_EQ(completion_lines(hosts_.b), Lines{"2 SUCCESS 600"});
}

TEST_F(SharedReceiveUc, all_three_services_share_one_queue) {
  auto from_rc = make_service(hosts_.a, IBV_QPT_RC);
  auto to_rc = make_service(hosts_.b, IBV_QPT_RC, srq_.get());
  connect_to(*from_rc, IBV_QPT_RC, must(hosts_.b.device->query_gid(1)), to_rc->qp_num(), {.sq_psn = 0x1000});
  connect_to(*to_rc, IBV_QPT_RC, must(hosts_.a.device->query_gid(1)), from_rc->qp_num(), {.rq_psn = 0x1000});
  auto from_ud = make_service(hosts_.a, IBV_QPT_UD);
  auto to_ud = make_service(hosts_.b, IBV_QPT_UD, srq_.get());
  open_datagrams(*from_ud);
  open_datagrams(*to_ud);
  auto address = must(hosts_.a.pd->create_address_handle(address_of(gid_of("10.0.0.2"))));
  give(1, 3);
  ASSERT_EQ(send(hosts_.a, *from_ud, {.length = 8, .to = address.get(), .remote_qp = to_ud->qp_num()}), 0);
  hosts_.run(1ms);
  ASSERT_EQ(send(hosts_.a, *from_rc, {.length = 9}), 0);
  hosts_.run(1ms);
  sends(0, 10);
  hosts_.run(1ms);
  EXPECT_EQ(completion_lines(hosts_.b), (Lines{"1 SUCCESS 48", "2 SUCCESS 9", "3 SUCCESS 10"}));
  // A datagram that is too long consumes its receive request.
  give(4, 1, 47);
  ASSERT_EQ(send(hosts_.a, *from_ud, {.length = 8, .to = address.get(), .remote_qp = to_ud->qp_num()}), 0);
  hosts_.run(1ms);
  EXPECT_EQ(completion_lines(hosts_.b), Lines{"4 LOC_LEN_ERR"});
  to_state(*to_ud, IBV_QPS_ERR);
  EXPECT_EQ(event_lines(hosts_.b).back(), "QP_LAST_WQE_REACHED " + std::to_string(to_ud->qp_num()));
}

}  // namespace
}  // namespace roci::test

// Completion queues and channels of the C++ API.
#include <gtest/gtest.h>
#include <poll.h>

#include "support/hosts/lone_host.hpp"

namespace roci::test {
namespace {

bool readable(int fd) {
  pollfd descriptor{fd, POLLIN, 0};
  return poll(&descriptor, 1, 0) == 1;
}

TEST(Completion, resize_keeps_completions_and_rejects_invalid_sizes) {
  LoneHost host;
  for (uint64_t i = 0; i < 5; ++i) host.post(IBV_WR_SEND, i, 8);
  host.work();
  host.receive(host.response(Opcode::kRcAcknowledge, 4));
  EXPECT_EQ(host.side.cq->entries(), 64U);
  const Status small = host.side.cq->resize(4);
  ASSERT_FALSE(small);
  EXPECT_NE(small.error().message.find("more than 4 completions are queued"), std::string::npos);
  EXPECT_FALSE(host.side.cq->resize(0));
  EXPECT_FALSE(host.side.cq->resize(-1));
  EXPECT_FALSE(host.side.cq->resize((1 << 22) + 1));
  EXPECT_EQ(host.side.cq->entries(), 64U);
  ASSERT_TRUE(host.side.cq->resize(5));
  EXPECT_EQ(host.side.cq->entries(), 5U);
  ASSERT_TRUE(host.side.cq->resize(1000));
  const auto completions = host.side.completions();
  ASSERT_EQ(completions.size(), 5U);
  for (uint64_t i = 0; i < 5; ++i) EXPECT_EQ(completions[i].wr_id, i);
}

TEST(Completion, destroyed_queue_pair_removes_its_completions) {
  TwoHosts hosts;
  hosts.connect();
  for (uint64_t i = 0; i < 3; ++i)
    ASSERT_EQ(hosts.a.post(IBV_WR_RDMA_WRITE, i, 0, 8, hosts.b.address(0), hosts.b.region->rkey()), 0);
  hosts.run();
  EXPECT_FALSE(hosts.a.cq->empty());
  hosts.a.qp.reset();
  EXPECT_TRUE(hosts.a.cq->empty());
}

TEST(Completion, channel_event_contains_the_queue_and_its_context) {
  LoneHost host;
  int mine = 0;
  const auto channel = must(host.side.device->create_channel());
  auto cq = must(host.side.device->create_cq(16, &mine, channel.get()));
  EXPECT_EQ(channel->users(), 1U);
  ibv_qp_init_attr init{};
  init.qp_type = IBV_QPT_RC;
  init.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
  host.side.qp = must(host.side.pd->create_qp(&init, *cq, *cq));
  host.connect();
  cq->request_notify(true);
  host.side.receive(1, LoneHost::kGuard, 64);
  host.side.receive(2, LoneHost::kGuard, 64);
  host.receive(host.request(Opcode::kRcSendOnly, 0, 8));
  EXPECT_FALSE(readable(channel->fd()));
  Packet solicited = host.request(Opcode::kRcSendOnly, 1, 8);
  solicited.bth.solicited = true;
  host.receive(solicited);
  EXPECT_TRUE(readable(channel->fd()));
  const auto event = channel->get_event();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->number, cq->number());
  EXPECT_EQ(event->context, &mine);
  EXPECT_EQ(cq->unacknowledged(), 1U);
  cq->ack_events(1);
  EXPECT_EQ(cq->unacknowledged(), 0U);
  EXPECT_FALSE(channel->get_event());
  // Completions of the queue pair after the queue was destroyed cause no event.
  cq->request_notify(false);
  cq.reset();
  EXPECT_EQ(channel->users(), 0U);
  host.to_bare(IBV_QPS_ERR);
  host.work();
  EXPECT_FALSE(readable(channel->fd()));
}

// A program may exit with its last message, and no other thread would send the acknowledgment then.
TEST(Completion, becomes_visible_after_the_acknowledgment_was_sent) {
  LoneHost host;
  ASSERT_EQ(host.side.receive(1, LoneHost::kGuard, 64), 0);
  std::vector<size_t> visible;  // number of completions when each burst was sent
  host.port().on_burst = [&] { visible.push_back(host.side.completions().size()); };
  EXPECT_EQ(host.receive(host.request(Opcode::kRcSendOnly, 0, 64)), Lines{"RC_ACK 0 1f"});
  EXPECT_EQ(visible, std::vector<size_t>{0});
  EXPECT_EQ(host.statuses(), Statuses{IBV_WC_SUCCESS});
}

TEST(Completion, overflow_moves_each_queue_pair_to_error_at_its_next_activity) {
  LoneHostOptions options;
  options.cq_entries = 1;
  LoneHost host(options);
  ibv_qp_init_attr init{};
  init.qp_type = IBV_QPT_RC;
  init.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
  auto idle = std::exchange(host.side.qp, must(host.side.pd->create_qp(&init, *host.side.cq, *host.side.cq)));
  host.connect();
  for (uint64_t i = 0; i < 3; ++i) host.post(IBV_WR_SEND, i, 8, IBV_SEND_SIGNALED);
  host.work();
  host.receive(host.response(Opcode::kRcAcknowledge, 2));
  EXPECT_EQ(host.side.qp->state(), IBV_QPS_ERR);
  EXPECT_EQ(host.side.device->get_async_event()->type, IBV_EVENT_CQ_ERR);
  EXPECT_EQ(host.side.device->get_async_event()->object.number, host.side.qp->qp_num());
  EXPECT_FALSE(host.side.device->get_async_event());
  std::swap(idle, host.side.qp);
  host.post(IBV_WR_SEND, 9, 8);
  EXPECT_TRUE(host.work().empty());
  EXPECT_EQ(host.side.qp->state(), IBV_QPS_ERR);
  const auto event = host.side.device->get_async_event();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->type, IBV_EVENT_QP_FATAL);
  EXPECT_EQ(event->object.number, host.side.qp->qp_num());
}

}  // namespace
}  // namespace roci::test

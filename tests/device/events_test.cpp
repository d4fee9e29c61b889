// Queue of asynchronous events: order, limit, file descriptor, and events of destroyed objects.
#include "device/api/events.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include "base/rng.hpp"
#include "support/hosts/two_hosts.hpp"
#include "support/process/pending_cancellation.hpp"

namespace roci::test {
namespace {

AsyncEvent qp_event(uint32_t number, ibv_event_type type = IBV_EVENT_QP_FATAL) {
  return {type, {EventSource::kQueuePair, number, nullptr}};
}

bool readable(const EventQueue& queue) {
  pollfd descriptor{queue.fd(), POLLIN, 0};
  return poll(&descriptor, 1, 0) == 1;
}

TEST(Events, are_returned_in_order_and_make_the_descriptor_readable) {
  const auto queue = must(EventQueue::create());
  EXPECT_FALSE(readable(*queue));
  EXPECT_FALSE(queue->take());
  EXPECT_TRUE(queue->raise(qp_event(1)));
  EXPECT_TRUE(queue->raise(qp_event(2)));
  EXPECT_TRUE(readable(*queue));
  EXPECT_EQ(queue->take()->object.number, 1U);
  EXPECT_TRUE(readable(*queue));
  EXPECT_EQ(queue->take()->object.number, 2U);
  EXPECT_FALSE(readable(*queue));
  EXPECT_FALSE(queue->take());
}

TEST(Events, are_not_lost_when_threads_are_canceled) {
  const auto queue = must(EventQueue::create());
  EXPECT_TRUE(returns_with_pending_cancellation([&] { queue->raise(qp_event(1)); }));
  EXPECT_TRUE(readable(*queue));
  bool taken = false;
  EXPECT_TRUE(returns_with_pending_cancellation([&] { taken = queue->take().has_value(); }));
  EXPECT_TRUE(taken);
  EXPECT_FALSE(readable(*queue));
}

TEST(Events, are_not_queued_again_while_an_identical_one_is_queued) {
  const auto queue = must(EventQueue::create());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(queue->raise(qp_event(1)));
  EXPECT_TRUE(queue->raise(qp_event(1, IBV_EVENT_COMM_EST)));
  EXPECT_TRUE(queue->raise({IBV_EVENT_QP_FATAL, {EventSource::kSharedReceiveQueue, 1, nullptr}}));
  EXPECT_EQ(queue->take()->type, IBV_EVENT_QP_FATAL);
  EXPECT_EQ(queue->take()->type, IBV_EVENT_COMM_EST);
  EXPECT_EQ(queue->take()->object.source, EventSource::kSharedReceiveQueue);
  EXPECT_FALSE(queue->take());
  EXPECT_TRUE(queue->raise(qp_event(1)));  // was reported, so it may be raised again
  EXPECT_TRUE(queue->take());
}

TEST(Events, full_queue_keeps_queued_events_and_rejects_new_ones) {
  const auto queue = must(EventQueue::create());
  for (uint32_t i = 0; i < EventQueue::kCapacity; ++i) ASSERT_TRUE(queue->raise(qp_event(i)));
  EXPECT_FALSE(queue->raise(qp_event(EventQueue::kCapacity)));
  EXPECT_TRUE(queue->raise(qp_event(7)));  // already queued
  for (uint32_t i = 0; i < EventQueue::kCapacity; ++i) ASSERT_EQ(queue->take()->object.number, i);
  EXPECT_FALSE(queue->take());
}

TEST(Events, of_a_removed_object_are_removed_at_any_queue_position) {
  const auto queue = must(EventQueue::create());
  Rng rng(1);
  std::deque<AsyncEvent> model;
  for (int step = 0; step < 20'000; ++step) {
    const auto number = static_cast<uint32_t>(rng.next() >> 60);
    switch (rng.next() >> 62) {
      case 0:
      case 1: {
        const AsyncEvent event =
            qp_event(number, (rng.next() >> 63) != 0 ? IBV_EVENT_QP_FATAL : IBV_EVENT_COMM_EST);
        const auto same = [&](const AsyncEvent& e) {
          return e.type == event.type && e.object.number == number;
        };
        if (std::none_of(model.begin(), model.end(), same)) model.push_back(event);
        ASSERT_TRUE(queue->raise(event));
        break;
      }
      case 2: {
        const auto got = queue->take();
        ASSERT_EQ(got.has_value(), !model.empty());
        if (!got) break;
        ASSERT_EQ(got->object.number, model.front().object.number);
        ASSERT_EQ(got->type, model.front().type);
        model.pop_front();
        break;
      }
      default:
        std::erase_if(model, [&](const AsyncEvent& e) { return e.object.number == number; });
        queue->remove(EventSource::kQueuePair, number);
    }
    ASSERT_EQ(readable(*queue), !model.empty());
  }
}

TEST(Events, destroyed_queue_pair_or_completion_queue_removes_its_events) {
  TwoHosts hosts;
  hosts.connect();
  while (hosts.a.device->get_async_event()) {
  }
  EventRouter& queue = hosts.a.device->host().events();
  const auto cq = must(hosts.a.device->create_cq(1));
  queue.raise(qp_event(hosts.a.qp->qp_num()));
  queue.raise({IBV_EVENT_CQ_ERR, {EventSource::kCompletionQueue, hosts.a.cq->number(), nullptr}});
  queue.raise({IBV_EVENT_CQ_ERR, {EventSource::kCompletionQueue, cq->number(), nullptr}});
  hosts.a.qp.reset();
  hosts.a.cq.reset();
  const auto left = hosts.a.device->get_async_event();
  ASSERT_TRUE(left);
  EXPECT_EQ(left->object.number, cq->number());
  EXPECT_FALSE(hosts.a.device->get_async_event());
}

}  // namespace
}  // namespace roci::test

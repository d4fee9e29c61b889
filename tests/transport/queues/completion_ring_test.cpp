#include "transport/queues/completion_ring.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "base/rng.hpp"
#include "support/process/pending_cancellation.hpp"
#include "support/sanitizer.hpp"

namespace roci {
namespace {

ibv_wc completion(uint64_t id, uint32_t qp = 1) {
  ibv_wc wc{};
  wc.wr_id = id;
  wc.qp_num = qp;
  return wc;
}

bool is_readable(int fd) {
  pollfd p{fd, POLLIN, 0};
  return ::poll(&p, 1, 0) == 1;
}
std::shared_ptr<ChannelQueue> make_channel() { return *ChannelQueue::create(); }

// Compares the ring with a std::deque under random push, poll, reset and resize, across the wrap of its indices.
TEST(CompletionRing, matches_a_deque_under_random_operations_and_index_wrap) {
  for (uint32_t capacity : {1U, 2U, 3U, 5U, 64U, 100U}) {
    CompletionRing ring(capacity, 0U - 150);
    std::deque<ibv_wc> model;
    Rng rng{capacity};
    uint64_t id = 0;
    for (int step = 0; step < 2000; ++step) {
      const uint64_t what = rng.below(100);
      if (what < 70) {  // the ring is full most of the time
        if (model.size() == capacity) continue;
        model.push_back(completion(++id, static_cast<uint32_t>(rng.below(3))));
        ASSERT_TRUE(ring.push(model.back(), false));
      } else if (what < 97) {
        std::array<ibv_wc, 7> out{};
        const int got = ring.poll(static_cast<int>(rng.below(3)), out.data());
        ASSERT_GE(got, 0);
        for (int i = 0; i < got; ++i) {
          ASSERT_EQ(out[static_cast<size_t>(i)].wr_id, model.front().wr_id);
          model.pop_front();
        }
      } else if (what < 98) {
        const auto wanted = static_cast<uint32_t>(1 + rng.below(130));
        CompletionRing::Space space = ring.make_space(wanted);
        ASSERT_EQ(ring.resize(wanted, space), model.size() <= wanted);
        if (model.size() <= wanted) capacity = wanted;
        ASSERT_EQ(ring.capacity(), capacity);
      } else {
        const auto qp = static_cast<uint32_t>(rng.below(3));
        ring.remove(qp);
        std::erase_if(model, [&](const ibv_wc& wc) { return wc.qp_num == qp; });
      }
      ASSERT_EQ(ring.empty(), model.empty());
    }
  }
}

TEST(CompletionRing, returns_queued_completions_and_then_an_error_after_an_overflow) {
  CompletionRing ring(3);
  for (uint64_t id = 1; id <= 3; ++id) EXPECT_TRUE(ring.push(completion(id), false));
  EXPECT_FALSE(ring.push(completion(4), false));
  std::array<ibv_wc, 8> out{};
  EXPECT_EQ(ring.poll(8, out.data()), 3);
  EXPECT_EQ(out[2].wr_id, 3U);
  EXPECT_EQ(ring.poll(8, out.data()), -1);
}

TEST(CompletionRing, resize_does_not_clear_the_overflow_error) {
  CompletionRing ring(1);
  ring.push(completion(1), false);
  EXPECT_FALSE(ring.push(completion(2), false));
  CompletionRing::Space space = ring.make_space(8);
  EXPECT_TRUE(ring.resize(8, space));
  std::array<ibv_wc, 8> out{};
  EXPECT_EQ(ring.poll(8, out.data()), 1);
  EXPECT_EQ(ring.poll(8, out.data()), -1);
}

TEST(CompletionRing, notifies_once_per_request_for_all_or_solicited_completions) {
  const auto channel = make_channel();
  CompletionRing ring(16, 0, {EventSource::kCompletionQueue, 5, nullptr}, channel);
  ring.push(completion(0), true);
  EXPECT_FALSE(is_readable(channel->fd()));  // no notification was requested
  ring.request_notify(false);
  EXPECT_FALSE(is_readable(channel->fd()));  // a completion that is already queued is no event
  EXPECT_TRUE(ring.push(completion(1), false));
  EXPECT_TRUE(is_readable(channel->fd()));
  EXPECT_EQ(channel->take()->number, 5U);
  EXPECT_FALSE(is_readable(channel->fd()));
  ring.push(completion(2), false);
  EXPECT_FALSE(is_readable(channel->fd()));  // one notification per request

  ring.request_notify(true);
  ring.push(completion(3), false);
  EXPECT_FALSE(channel->take());
  ring.push(completion(4), true);
  EXPECT_TRUE(channel->take());

  ring.request_notify(true);
  ibv_wc failed = completion(5);
  failed.status = IBV_WC_WR_FLUSH_ERR;
  ring.push(failed, false);  // an error completion counts as solicited
  EXPECT_TRUE(channel->take());

  ring.request_notify(false);
  ring.request_notify(true);  // does not reduce the pending request for all completions to solicited ones
  ring.push(completion(6), false);
  EXPECT_TRUE(channel->take());
  ring.request_notify(true);
  ring.request_notify(false);  // extends the pending request for solicited completions to all
  ring.push(completion(7), false);
  EXPECT_TRUE(channel->take());
}

TEST(CompletionRing, events_are_not_lost_when_threads_are_canceled) {
  const auto channel = make_channel();
  CompletionRing ring(16, 0, {EventSource::kCompletionQueue, 5, nullptr}, channel);
  ring.request_notify(false);
  EXPECT_TRUE(test::returns_with_pending_cancellation([&] { ring.push(completion(1), false); }));
  EXPECT_TRUE(is_readable(channel->fd()));
  bool taken = false;
  EXPECT_TRUE(test::returns_with_pending_cancellation([&] { taken = channel->take().has_value(); }));
  EXPECT_TRUE(taken);
  EXPECT_FALSE(is_readable(channel->fd()));
}

TEST(CompletionRing, queues_on_one_channel_alternate_and_count_events_separately) {
  const auto channel = make_channel();
  const auto make = [&](uint32_t number) {
    return std::make_unique<CompletionRing>(
        16, 0, EventObject{EventSource::kCompletionQueue, number, nullptr}, channel);
  };
  auto one = make(1), two = make(2), three = make(3);
  EXPECT_EQ(channel->users(), 3U);
  const auto event = [](CompletionRing& ring) {
    ring.request_notify(false);
    ring.push(completion(1), false);
  };
  for (int i = 0; i < 3; ++i) event(*one);
  event(*two);
  event(*three);
  std::vector<uint32_t> order;
  for (int i = 0; i < 2; ++i) order.push_back(channel->take()->number);
  EXPECT_EQ(one->unacknowledged(), 1U);
  two->ack_events(1);
  EXPECT_EQ(two->unacknowledged(), 0U);
  three.reset();  // also removes its event
  EXPECT_EQ(channel->users(), 2U);
  while (const auto next = channel->take()) order.push_back(next->number);
  EXPECT_EQ(order, (std::vector<uint32_t>{1, 2, 1, 1}));
  EXPECT_FALSE(is_readable(channel->fd()));
  EXPECT_EQ(one->unacknowledged(), 3U);
  one->ack_events(2);
  EXPECT_EQ(one->unacknowledged(), 1U);
  one->ack_events(9);
  EXPECT_EQ(one->unacknowledged(), 0U);
}

TEST(CompletionRing, reset_removes_the_events_of_the_queue_from_the_channel) {
  for (uint32_t gone = 0; gone < 3; ++gone) {
    const auto channel = make_channel();
    std::vector<std::unique_ptr<CompletionRing>> rings;
    for (uint32_t i = 0; i < 3; ++i) {
      rings.push_back(std::make_unique<CompletionRing>(
          16, 0, EventObject{EventSource::kCompletionQueue, i, nullptr}, channel));
      for (int twice = 0; twice < 2; ++twice) {
        rings[i]->request_notify(false);
        rings[i]->push(completion(1), false);
      }
    }
    rings[gone].reset();
    std::vector<uint32_t> left;
    while (const auto event = channel->take()) left.push_back(event->number);
    EXPECT_EQ(left.size(), 4U);
    EXPECT_EQ(std::count(left.begin(), left.end(), gone), 0);
    EXPECT_FALSE(is_readable(channel->fd()));
    auto& last = *rings[gone == 2 ? 1 : 2];
    last.request_notify(false);
    last.push(completion(1), false);
    EXPECT_TRUE(channel->take());
  }
}

TEST(CompletionRing, raises_no_event_without_a_channel) {
  CompletionRing ring(4);
  ring.request_notify(false);
  EXPECT_TRUE(ring.push(completion(1), true));
  EXPECT_EQ(ring.unacknowledged(), 0U);
}

TEST(CompletionRing, takes_an_event_back_only_if_its_completions_were_polled) {
  const auto channel = make_channel();
  CompletionRing ring(4, 0, {}, channel);
  ibv_wc out{};
  ring.request_notify(false);
  ring.push(completion(1), false);
  ASSERT_EQ(ring.poll(1, &out), 1);
  ASSERT_TRUE(channel->take());
  EXPECT_TRUE(ring.take_back_event());
  EXPECT_EQ(ring.unacknowledged(), 0U);
  EXPECT_FALSE(channel->take());
  ring.push(completion(2), false);  // no notification is requested again
  ASSERT_TRUE(channel->take());
  EXPECT_FALSE(ring.take_back_event());
  EXPECT_EQ(ring.unacknowledged(), 1U);
}

// A batch has the completions of all queues before its first event, and events in the order of the completions. perftest
// with -e waits for the event of any queue, and then polls the queue whose completion must precede it.
TEST(CompletionBatch, completions_precede_events_which_have_the_order_of_completions) {
  constexpr uint32_t kRounds = test::repetitions(4'000), kQueues = 16;
  const auto channel = make_channel();
  std::vector<std::unique_ptr<CompletionRing>> queues;
  for (uint32_t number = 0; number < kQueues; ++number)
    queues.push_back(std::make_unique<CompletionRing>(8U, 0U, EventObject{.number = number}, channel,
                                                      CompletionRing::Producers::kOne));
  std::atomic<uint32_t> served{0};
  std::atomic<bool> failed{false};
  const auto next_event = [&] {
    std::optional<EventObject> event;
    while (!(event = channel->take())) std::this_thread::yield();
    return event->number;
  };
  std::thread program{[&] {
    for (uint32_t round = 0; round < kRounds && !failed.load(); ++round) {
      std::vector<uint32_t> order{next_event()};
      uint32_t polled = 0;
      for (size_t number = kQueues; number-- > 0;) {
        ibv_wc wc{};
        polled += static_cast<uint32_t>(queues[number]->poll(1, &wc));
      }
      while (order.size() < kQueues) order.push_back(next_event());
      EXPECT_EQ(polled, kQueues) << "round " << round;
      EXPECT_TRUE(std::ranges::is_sorted(order)) << "round " << round;
      if (testing::Test::HasFailure()) failed.store(true);
      served.store(round + 1);
    }
  }};
  CompletionBatch batch;
  for (uint32_t round = 0; round < kRounds && !failed.load(); ++round) {
    for (const auto& queue : queues) {
      queue->request_notify(false);
      queue->push(completion(round), false, &batch);
    }
    batch.publish();
    while (served.load() <= round) std::this_thread::yield();
  }
  program.join();
}

}  // namespace
}  // namespace roci

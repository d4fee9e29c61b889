// Ring of a shared receive queue: comparison with a naive model, and limit events.
#include "transport/queues/shared_receive_ring.hpp"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <thread>

#include "base/rng.hpp"

namespace roci::test {
namespace {

using Taken = SharedReceiveRing::Taken;

constexpr EventObject kObject{EventSource::kSharedReceiveQueue, 1, nullptr};

// A receive WQE with space for segments, as in a queue pair.
struct Slot {
  RecvWqe wqe;
  std::array<ibv_sge, 4> pieces{};
};
static_assert(offsetof(Slot, pieces) == sizeof(RecvWqe));

int post(SharedReceiveRing& ring, uint64_t wr_id, int pieces = 1) {
  std::array<ibv_sge, 8> list{};
  for (size_t i = 0; i < list.size(); ++i) list[i] = {wr_id * 100 + i, 10, static_cast<uint32_t>(wr_id)};
  ibv_recv_wr wr{};
  wr.wr_id = wr_id;
  wr.sg_list = list.data();
  wr.num_sge = pieces;
  return ring.post(&wr, nullptr);
}

TEST(SharedReceiveRing, returns_complete_requests_in_posting_order) {
  SharedReceiveRing ring(4, 4, PdNumber{3}, kObject);
  EXPECT_EQ(ring.pd(), PdNumber{3});
  ASSERT_EQ(post(ring, 1, 3), 0);
  ASSERT_EQ(post(ring, 2, 0), 0);
  Slot slot;
  ASSERT_EQ(ring.take(slot.wqe), Taken::kRequest);
  EXPECT_EQ(slot.wqe.wr_id, 1U);
  EXPECT_EQ(slot.wqe.capacity, 30U);
  EXPECT_EQ(slot.wqe.sge_count, 3U);
  EXPECT_EQ(slot.pieces[2].addr, 102U);
  ASSERT_EQ(ring.take(slot.wqe), Taken::kRequest);
  EXPECT_EQ(slot.wqe.wr_id, 2U);
  EXPECT_EQ(slot.wqe.capacity, 0U);
  EXPECT_EQ(ring.take(slot.wqe), Taken::kNothing);
}

TEST(SharedReceiveRing, rejects_invalid_segment_counts_and_posts_beyond_max_wr) {
  SharedReceiveRing ring(3, 2, PdNumber{1}, kObject);
  EXPECT_EQ(post(ring, 1, 3), EINVAL);
  EXPECT_EQ(post(ring, 1, -1), EINVAL);
  std::array<ibv_recv_wr, 5> list{};
  for (size_t i = 0; i < list.size(); ++i) {
    list[i].wr_id = i;
    list[i].next = i + 1 < list.size() ? &list[i + 1] : nullptr;
  }
  ibv_recv_wr* bad = nullptr;
  // The limit is max_wr, although the ring size is a power of two.
  EXPECT_EQ(ring.post(list.data(), &bad), ENOMEM);
  EXPECT_EQ(bad, &list[3]);
}

TEST(SharedReceiveRing, limit_fires_once_when_fewer_requests_are_left) {
  SharedReceiveRing ring(8, 1, PdNumber{1}, kObject);
  for (uint64_t i = 0; i < 4; ++i) ASSERT_EQ(post(ring, i), 0);
  ASSERT_FALSE(*ring.arm(3));
  Slot slot;
  EXPECT_EQ(ring.take(slot.wqe), Taken::kRequest);  // 3 left
  EXPECT_EQ(ring.take(slot.wqe), Taken::kRequestAtLimit);
  EXPECT_EQ(ring.query().limit, 0U);
  EXPECT_EQ(ring.take(slot.wqe), Taken::kRequest);
  ASSERT_FALSE(*ring.arm(1));
  EXPECT_EQ(ring.take(slot.wqe), Taken::kRequestAtLimit);
}

TEST(SharedReceiveRing, arming_above_the_number_of_requests_fires_at_once) {
  SharedReceiveRing ring(8, 1, PdNumber{1}, kObject);
  ASSERT_EQ(post(ring, 1), 0);
  EXPECT_FALSE(*ring.arm(1));
  EXPECT_TRUE(*ring.arm(2));
  EXPECT_EQ(ring.query().limit, 0U);
  EXPECT_FALSE(ring.arm(9));
}

TEST(SharedReceiveRing, matches_a_queue_model_under_random_operations_and_resizes) {
  Rng rng(7);
  SharedReceiveRing ring(5, 4, PdNumber{1}, kObject);
  std::deque<std::pair<uint64_t, int>> model;
  uint32_t room = 5;
  uint32_t limit = 0;
  uint64_t next = 0;
  for (int step = 0; step < 20'000; ++step) {
    switch (rng.below(8)) {
      case 0: {
        const auto wanted = static_cast<uint32_t>(1 + rng.below(20));
        const bool fits = wanted >= model.size() && wanted >= limit;
        ASSERT_EQ(ring.resize(wanted).has_value(), fits);
        if (fits) room = wanted;
        break;
      }
      case 1: {
        const auto wanted = static_cast<uint32_t>(rng.below(12));
        const auto armed = ring.arm(wanted);
        ASSERT_EQ(armed.has_value(), wanted <= room);
        if (!armed) break;
        const bool due = wanted > model.size();
        ASSERT_EQ(*armed, due);
        limit = due ? 0 : wanted;
        break;
      }
      case 2:
      case 3:
      case 4: {
        const int pieces = static_cast<int>(rng.below(5));
        ASSERT_EQ(post(ring, next, pieces), model.size() < room ? 0 : ENOMEM);
        if (model.size() < room) model.emplace_back(next, pieces);
        ++next;
        break;
      }
      default: {
        Slot slot;
        const Taken taken = ring.take(slot.wqe);
        ASSERT_EQ(taken == Taken::kNothing, model.empty());
        if (model.empty()) break;
        const auto [wr_id, pieces] = model.front();
        model.pop_front();
        ASSERT_EQ(slot.wqe.wr_id, wr_id);
        ASSERT_EQ(slot.wqe.sge_count, static_cast<uint32_t>(pieces));
        if (pieces > 0) {
          const auto last = static_cast<uint64_t>(pieces) - 1;
          ASSERT_EQ(slot.pieces[last].addr, wr_id * 100 + last);
        }
        const bool fires = limit > 0 && model.size() < limit;
        ASSERT_EQ(taken == Taken::kRequestAtLimit, fires);
        if (fires) limit = 0;
      }
    }
    const auto now = ring.query();
    ASSERT_EQ(now.max_wr, room);
    ASSERT_EQ(now.limit, limit);
  }
}

TEST(SharedReceiveRing, concurrent_threads_take_each_request_once) {
  constexpr uint64_t kEach = 5000;
  SharedReceiveRing ring(64, 1, PdNumber{1}, kObject);
  std::array<std::vector<uint64_t>, 2> taken;
  std::atomic<uint64_t> total{0};
  std::vector<std::thread> threads;
  for (uint64_t who = 0; who < 2; ++who) {
    threads.emplace_back([&, who] {
      for (uint64_t i = 0; i < kEach; ++i) {
        while (post(ring, who * kEach + i) != 0) std::this_thread::yield();
      }
    });
    threads.emplace_back([&, who] {
      Slot slot;
      while (total.load() < 2 * kEach) {
        if (ring.take(slot.wqe) == Taken::kNothing) {
          std::this_thread::yield();
          continue;
        }
        taken[who].push_back(slot.wqe.wr_id);
        ++total;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<bool> seen(2 * kEach);
  for (const auto& one : taken) {
    for (const uint64_t wr_id : one) {
      EXPECT_FALSE(seen.at(wr_id));
      seen.at(wr_id) = true;
    }
  }
  EXPECT_EQ(taken[0].size() + taken[1].size(), 2 * kEach);
}

}  // namespace
}  // namespace roci::test

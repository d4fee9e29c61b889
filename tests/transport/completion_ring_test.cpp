#include "transport/completion_ring.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <deque>

#include "base/rng.hpp"

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
void drain(int fd) {
  uint64_t count = 0;
  EXPECT_EQ(read(fd, &count, sizeof count), static_cast<ssize_t>(sizeof count));
}

// Push, poll and forget at random, over the place where the numbers wrap. Expect what a deque does.
TEST(CompletionRing, does_what_a_deque_does_for_every_capacity_and_across_the_wrap_of_its_numbers) {
  for (const uint32_t capacity : {1U, 2U, 3U, 5U, 64U, 100U}) {
    CompletionRing ring(capacity, 0U - 150);
    std::deque<ibv_wc> model;
    Rng rng{capacity};
    uint64_t id = 0;
    for (int step = 0; step < 2000; ++step) {
      const uint64_t what = rng.below(100);
      if (what < 70) {  // mostly full
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
      } else {
        const auto qp = static_cast<uint32_t>(rng.below(3));
        ring.forget(qp);
        std::erase_if(model, [&](const ibv_wc& wc) { return wc.qp_num == qp; });
      }
      ASSERT_EQ(ring.empty(), model.empty());
    }
  }
}

TEST(CompletionRing, is_in_error_for_good_once_it_overflows_but_gives_out_what_it_has) {
  CompletionRing ring(3);
  for (uint64_t id = 1; id <= 3; ++id) EXPECT_TRUE(ring.push(completion(id), false));
  EXPECT_FALSE(ring.push(completion(4), false));
  std::array<ibv_wc, 8> out{};
  EXPECT_EQ(ring.poll(8, out.data()), 3);
  EXPECT_EQ(out[2].wr_id, 3U);
  EXPECT_EQ(ring.poll(8, out.data()), -1);
}

TEST(CompletionRing, notifies_once_for_what_was_asked) {
  CompletionRing ring(16);
  ring.request_notify(false);
  EXPECT_TRUE(ring.push(completion(1), false));
  const int fd = ring.event_fd();  // asked for later: the event is there all the same
  ASSERT_GE(fd, 0);
  EXPECT_TRUE(is_readable(fd));
  drain(fd);
  ring.push(completion(2), false);
  EXPECT_FALSE(is_readable(fd));  // once

  ring.request_notify(true);
  ring.push(completion(3), false);
  EXPECT_FALSE(is_readable(fd));
  ring.push(completion(4), true);
  EXPECT_TRUE(is_readable(fd));
  drain(fd);

  ring.request_notify(true);
  ibv_wc failed = completion(5);
  failed.status = IBV_WC_WR_FLUSH_ERR;
  ring.push(failed, false);  // errors count as solicited
  EXPECT_TRUE(is_readable(fd));
}

}  // namespace
}  // namespace roci

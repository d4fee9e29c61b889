// The growing queue, compared with std::deque.
#include "base/containers/growing_ring.hpp"

#include <gtest/gtest.h>

#include <deque>

#include "base/rng.hpp"

namespace roci {
namespace {

TEST(GrowingRing, agrees_with_deque_while_growing_and_shrinking) {
  Rng rng{5};
  for (const size_t capacity : {0U, 1U, 2U, 3U, 64U}) {
    GrowingRing<uint64_t> ring(capacity);
    std::deque<uint64_t> model;
    for (uint64_t i = 0; i < 20'000; ++i) {
      // First the queue grows, then it shrinks.
      if (rng.chance(i < 10'000 ? 0.52 : 0.48)) {
        if (rng.chance(0.5)) {
          ring.push(i);
        } else {
          ring.add() = i;
        }
        model.push_back(i);
      } else if (!model.empty()) {
        ASSERT_EQ(rng.chance(0.5) ? ring.pop() : ring.drop_front(), model.front());
        model.pop_front();
      }
      ASSERT_EQ(ring.size(), model.size());
      ASSERT_EQ(ring.empty(), model.empty());
      if (model.empty()) continue;
      ASSERT_EQ(ring.front(), model.front());
      ASSERT_EQ(ring.back(), model.back());
      const size_t any = rng.below(model.size());
      ASSERT_EQ(ring[any], model[any]);
    }
  }
}

}  // namespace
}  // namespace roci

#include "base/rng.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace roci {
namespace {

// First outputs of the authors' reference program.
TEST(LightRng, generates_splitmix64_sequence) {
  LightRng rng{1234567};
  EXPECT_EQ(rng.next(), 6457827717110365317U);
  EXPECT_EQ(rng.next(), 3203168211198807973U);
  EXPECT_EQ(rng.next(), 9817491932198370423U);
  EXPECT_EQ(rng.next(), 4593380528125082431U);
}

TEST(LightRng, chance_matches_probability_and_draws_nothing_for_0_and_1) {
  constexpr int kDraws = 100'000;
  LightRng rng{20261122}, untouched{20261122};
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(rng.chance(0));
    EXPECT_TRUE(rng.chance(1));
  }
  EXPECT_EQ(rng.next(), untouched.next());
  for (const double p : {0.001, 0.3, 0.9}) {
    int came_true = 0;
    for (int i = 0; i < kDraws; ++i) came_true += rng.chance(p);
    // Within 4 standard deviations.
    EXPECT_NEAR(came_true, kDraws * p, 4 * std::sqrt(kDraws * p * (1 - p))) << p;
  }
}

}  // namespace
}  // namespace roci

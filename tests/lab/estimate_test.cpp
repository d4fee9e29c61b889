#include "lab/results/estimate.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace roci::lab {
namespace {

// Tables of Student's t distribution.
TEST(Estimate, quantiles_are_those_of_students_t_distribution) {
  EXPECT_NEAR(student_t(0.95, 1), 12.706, 0.001);
  EXPECT_NEAR(student_t(0.95, 2), 4.303, 0.001);
  EXPECT_NEAR(student_t(0.95, 9), 2.262, 0.001);
  EXPECT_NEAR(student_t(0.99, 1), 63.657, 0.01);
  EXPECT_NEAR(student_t(0.99, 9), 3.250, 0.001);
  EXPECT_NEAR(student_t(0.5, 1), 1.000, 0.001);
  EXPECT_NEAR(student_t(0.95, 1'000), 1.962, 0.001);
}

TEST(Estimate, interval_of_ten_values) {
  const std::array<double, 10> values{12, 15, 11, 14, 13, 12, 16, 13, 12, 14};
  const Estimate result = estimate(values);
  EXPECT_DOUBLE_EQ(result.mean, 13.2);
  EXPECT_NEAR(result.interval, 1.108, 0.001);  // 2.262 times 1.549 / sqrt(10)
}

TEST(Estimate, single_and_equal_values_have_no_interval) {
  EXPECT_EQ(estimate(std::array<double, 1>{3}).interval, 0);
  EXPECT_EQ(estimate(std::array<double, 3>{3, 3, 3}).interval, 0);
}

}  // namespace
}  // namespace roci::lab

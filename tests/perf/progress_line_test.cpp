#include "roci-perf/output/progress_line.hpp"

#include <gtest/gtest.h>

namespace roci::perf {
namespace {

TEST(ProgressLine, contains_bar_percentage_and_rate) {
  EXPECT_EQ(progress_text("RDMA write, 65536 bytes", 0.5, "20.00 Gb/s", 80),
            " RDMA write, 65536 bytes  [############............]  50 %  20.00 Gb/s");
}

TEST(ProgressLine, fits_into_the_terminal) {
  const std::string what = "RDMA write, 1073741824 bytes", rate = "12345.67 Gb/s";
  EXPECT_EQ(progress_text(what, 0.25, rate, 62), " " + what + "  [##......]  25 %  " + rate);
  EXPECT_EQ(progress_text(what, 0.25, rate, 56), " " + what + "   25 %  " + rate) << "without bar";
  for (size_t columns = 1; columns <= 100; ++columns)
    EXPECT_LE(progress_text(what, 1, rate, columns).size(), columns);
}

}  // namespace
}  // namespace roci::perf

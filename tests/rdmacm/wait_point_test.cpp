#include "rdmacm/sockets/wait_point.hpp"

#include <gtest/gtest.h>
#include <poll.h>

namespace roci::rdmacm::sockets {
namespace {

bool is_readable(const WaitPoint& point) {
  pollfd entry{point.fd(), POLLIN, 0};
  return poll(&entry, 1, 0) == 1;
}

TEST(WaitPoint, ring_without_sleeping_threads_is_not_stored) {
  WaitPoint point;
  point.ring();
  EXPECT_FALSE(is_readable(point));
}

TEST(WaitPoint, stays_readable_until_each_thread_that_slept_has_left) {
  WaitPoint point;
  const auto first = point.enter(), second = point.enter();
  point.ring();
  EXPECT_TRUE(is_readable(point));
  point.leave(first, false);
  EXPECT_TRUE(is_readable(point));
  point.leave(second, false);
  EXPECT_FALSE(is_readable(point));
}

// Two threads wait for different things, so one event does not end the waits of both.
TEST(WaitPoint, thread_that_sleeps_again_is_not_woken_by_the_same_event) {
  WaitPoint point;
  auto first = point.enter(), second = point.enter();
  point.leave(first, true);  // it took the event, and wakes the other thread
  EXPECT_TRUE(is_readable(point));
  first = point.enter();
  point.leave(second, false);
  second = point.enter();
  EXPECT_FALSE(is_readable(point)) << "both would poll without an end";
  point.ring();
  EXPECT_TRUE(is_readable(point));
  point.leave(first, false);
  first = point.enter();
  EXPECT_TRUE(is_readable(point)) << "the second has not run yet";
  point.leave(first, false);
  EXPECT_TRUE(is_readable(point)) << "the second has not run yet";
  point.leave(second, false);
  EXPECT_FALSE(is_readable(point));
}

// A listener has one connection for three threads.
TEST(WaitPoint, ends_to_be_ready_for_the_threads_that_found_nothing) {
  WaitPoint point;
  auto first = point.enter(), second = point.enter();
  const auto third = point.enter();
  point.set_ready(true);
  point.leave(third, false);
  EXPECT_TRUE(is_readable(point));
  point.set_ready(false);  // the third thread took the connection
  point.leave(first, false);
  first = point.enter();
  point.leave(second, false);
  second = point.enter();
  EXPECT_FALSE(is_readable(point));
  point.leave(first, false);
  point.leave(second, false);
}

}  // namespace
}  // namespace roci::rdmacm::sockets

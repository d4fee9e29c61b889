#include "base/file_lock.hpp"

#include <gtest/gtest.h>

#include "support/child.hpp"
#include "support/folder.hpp"

namespace roci {
namespace {

class FileLock : public testing::Test {
 protected:
  const test::Folder folder_;
  const std::filesystem::path file_ = folder_.path() / "lock";
};

TEST_F(FileLock, is_one_processes_and_says_whose) {
  EXPECT_EQ(*ProcessLock::holder(file_), 0) << "no file yet";
  test::Child other{[&] {
    auto lock = ProcessLock::take(file_);
    const bool got = lock && *lock;
    if (got) new ProcessLock{std::move(**lock)};  // held until the child exits
    return got;
  }};
  ASSERT_TRUE(other.done());
  EXPECT_FALSE(*ProcessLock::take(file_));
  EXPECT_EQ(*ProcessLock::holder(file_), other.pid());
  other.end(SIGKILL);
  EXPECT_EQ(*ProcessLock::holder(file_), 0);
  EXPECT_TRUE(*ProcessLock::take(file_));
}

TEST_F(FileLock, is_not_lost_when_the_same_process_tries_again_or_asks) {
  auto lock = ProcessLock::take(file_);
  ASSERT_TRUE(lock && *lock);
  EXPECT_FALSE(*ProcessLock::take(file_));
  EXPECT_EQ(*ProcessLock::holder(file_), getpid());
  test::Child other{[&] { return !*ProcessLock::take(file_); }};
  EXPECT_TRUE(other.done()) << "another process finds it taken";
}

TEST_F(FileLock, does_not_go_to_a_child) {
  auto lock = ProcessLock::take(file_);
  ASSERT_TRUE(lock && *lock);
  test::Child child{[] { return true; }};
  (*lock).reset();
  EXPECT_EQ(*ProcessLock::holder(file_), 0) << "while the child lives";
}

TEST_F(FileLock, of_a_parent_that_a_child_destroys_stays_the_parents) {
  auto lock = ProcessLock::take(file_);
  ASSERT_TRUE(lock && *lock);
  test::Child child{[&] {
    (*lock).reset();
    return true;
  }};
  test::Child other{[&] { return !*ProcessLock::take(file_); }};
  EXPECT_TRUE(other.done());
}

TEST_F(FileLock, that_is_shared_lives_as_long_as_the_last_who_has_it) {
  auto lock = SharedLock::take(file_);
  ASSERT_TRUE(lock && *lock);
  EXPECT_TRUE(SharedLock::is_taken(file_));
  test::Child heir{[] { return true; }};
  (*lock).reset();
  EXPECT_TRUE(SharedLock::is_taken(file_)) << "by the child";
  EXPECT_FALSE(*SharedLock::take(file_));
  heir.end(SIGKILL);
  EXPECT_FALSE(SharedLock::is_taken(file_));
}

TEST_F(FileLock, in_a_folder_that_is_not_there_is_an_error) {
  EXPECT_FALSE(ProcessLock::take(folder_.path() / "no" / "lock"));
  EXPECT_FALSE(SharedLock::take(folder_.path() / "no" / "lock"));
}

}  // namespace
}  // namespace roci

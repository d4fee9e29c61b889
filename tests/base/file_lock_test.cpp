#include "base/os/file_lock.hpp"

#include <gtest/gtest.h>

#include "support/process/child.hpp"
#include "support/process/folder.hpp"
#include "support/process/pid_namespace.hpp"

namespace roci {
namespace {

class FileLock : public testing::Test {
 protected:
  const test::Folder folder_;
  const std::filesystem::path file_ = folder_.path() / "lock";
};

TEST_F(FileLock, is_held_by_one_process_and_reports_its_pid) {
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

TEST_F(FileLock, survives_second_take_and_holder_query_of_its_process) {
  auto lock = ProcessLock::take(file_);
  ASSERT_TRUE(lock && *lock);
  EXPECT_FALSE(*ProcessLock::take(file_));
  EXPECT_EQ(*ProcessLock::holder(file_), getpid());
  test::Child other{[&] { return !*ProcessLock::take(file_); }};
  EXPECT_TRUE(other.done()) << "another process finds it taken";
}

TEST_F(FileLock, is_not_inherited_by_child_process) {
  auto lock = ProcessLock::take(file_);
  ASSERT_TRUE(lock && *lock);
  test::Child child{[] { return true; }};
  (*lock).reset();
  EXPECT_EQ(*ProcessLock::holder(file_), 0) << "while the child lives";
}

TEST_F(FileLock, remains_held_by_parent_after_child_resets_its_copy) {
  auto lock = ProcessLock::take(file_);
  ASSERT_TRUE(lock && *lock);
  test::Child child{[&] {
    (*lock).reset();
    return true;
  }};
  test::Child other{[&] { return !*ProcessLock::take(file_); }};
  EXPECT_TRUE(other.done());
}

TEST_F(FileLock, shared_lock_is_held_until_last_holder_exits) {
  auto lock = SharedLock::take(file_);
  ASSERT_TRUE(lock && *lock);
  EXPECT_TRUE(*SharedLock::is_taken(file_));
  test::Child heir{[] { return true; }};
  (*lock).reset();
  EXPECT_TRUE(*SharedLock::is_taken(file_)) << "by the child";
  EXPECT_FALSE(*SharedLock::take(file_));
  heir.end(SIGKILL);
  EXPECT_FALSE(*SharedLock::is_taken(file_));
}

TEST_F(FileLock, shared_lock_of_file_that_cannot_be_opened_is_an_error) {
  EXPECT_FALSE(*SharedLock::is_taken(file_)) << "no file yet";
  std::filesystem::create_symlink(folder_.path(), file_);
  const auto taken = SharedLock::is_taken(file_);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, ELOOP);
}

TEST_F(FileLock, holder_of_another_pid_namespace_is_an_error) {
  const auto lock = ProcessLock::take(file_);
  ASSERT_TRUE(lock && *lock);
  const auto result = test::in_another_pid_namespace([&] {
    const auto holder = ProcessLock::holder(file_);
    const auto taken = ProcessLock::take(file_);
    return !holder && holder.error().code == EXDEV && taken && !*taken;
  });
  ROCI_REQUIRE_PID_NAMESPACE(result);
  EXPECT_TRUE(*result);
}

TEST_F(FileLock, fails_in_nonexistent_directory) {
  EXPECT_FALSE(ProcessLock::take(folder_.path() / "no" / "lock"));
  EXPECT_FALSE(SharedLock::take(folder_.path() / "no" / "lock"));
}

}  // namespace
}  // namespace roci

#include "roci-switch/ready_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "support/process/folder.hpp"

namespace roci {
namespace {

class ReadyFileTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(file_.write(path_)); }
  void touch() const {
    const timespec times[2] = {{.tv_sec = ++touches_, .tv_nsec = 0}, {.tv_sec = touches_, .tv_nsec = 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, path_.c_str(), times, 0), 0);
  }
  [[nodiscard]] bool exists() const { return std::filesystem::exists(path_); }

  const test::Folder folder_;
  const std::filesystem::path path_ = folder_.path() / "switch.pid";
  ReadyFile file_;
  mutable time_t touches_ = 1000;
};

TEST_F(ReadyFileTest, contains_the_process_id) {
  pid_t pid = 0;
  std::ifstream{path_} >> pid;
  EXPECT_EQ(pid, getpid());
}

TEST_F(ReadyFileTest, each_touch_is_reported_once) {
  EXPECT_FALSE(file_.was_touched());
  touch();
  EXPECT_TRUE(file_.was_touched());
  EXPECT_FALSE(file_.was_touched());
}

TEST_F(ReadyFileTest, is_withdrawn_unless_it_was_touched) {
  touch();
  EXPECT_FALSE(file_.withdraw()) << "a program relies on the switch";
  EXPECT_TRUE(exists());
  EXPECT_TRUE(file_.was_touched());
  EXPECT_TRUE(file_.withdraw());
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(ReadyFileTest, replaces_only_a_ready_file) {
  const auto other = folder_.path() / "other";
  ReadyFile file;
  for (const char* text : {"important data\n", "17 18\n", "-1\n", "123456789012345\n"}) {
    std::ofstream{other} << text;
    const Status written = file.write(other);
    ASSERT_FALSE(written) << text;
    EXPECT_NE(written.error().message.find("does not contain a process id"), std::string::npos);
    EXPECT_EQ(std::filesystem::file_size(other), std::string(text).size());
  }
  EXPECT_FALSE(file.write(folder_.path())) << "a folder";
  for (const char* text : {"4194304\n", ""}) {
    std::ofstream{other} << text;
    EXPECT_TRUE(file.write(other)) << text;
  }
}

TEST_F(ReadyFileTest, file_of_another_process_is_not_removed) {
  const auto other = folder_.path() / "other";
  {
    ReadyFile file;
    ASSERT_TRUE(file.write(other));
    std::ofstream{other} << "1\n";
  }
  EXPECT_TRUE(std::filesystem::exists(other));
}

TEST_F(ReadyFileTest, full_disk_is_reported) {
  const auto full = folder_.path() / "full";
  std::filesystem::create_symlink("/dev/full", full.string() + ".tmp");
  ReadyFile file;
  const Status written = file.write(full);
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().message.find("No space left on device"), std::string::npos)
      << written.error().message;
  EXPECT_FALSE(std::filesystem::exists(full));
}

TEST_F(ReadyFileTest, without_a_file_nothing_is_withdrawn) {
  ReadyFile none;
  EXPECT_FALSE(none.was_touched());
  EXPECT_TRUE(none.withdraw());
}

}  // namespace
}  // namespace roci

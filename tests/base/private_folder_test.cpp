#include "base/os/private_folder.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "support/process/folder.hpp"
#include "support/process/require_root.hpp"

namespace roci {
namespace {

constexpr uid_t kOtherUser = 12345;  // need not exist

std::string content_of(const std::filesystem::path& file) {
  std::ifstream in{file};
  return {std::istreambuf_iterator<char>{in}, {}};
}

class PrivateFolderTest : public testing::Test {
 protected:
  // The temporary folder has mode 0700, below which write permission is not checked.
  void SetUp() override { chmod(root_.c_str(), 0755); }

  std::filesystem::path make(const std::string& name, mode_t mode) const {
    const std::filesystem::path folder = root_ / name;
    std::filesystem::create_directories(folder);
    chmod(folder.c_str(), mode);
    return folder;
  }
  // The error of opening a folder; "" if it opened.
  static std::string refusal(const std::filesystem::path& folder) {
    const auto opened = PrivateFolder::open(folder);
    return opened ? "" : opened.error().message;
  }

  const test::Folder of_this_test_;
  const std::filesystem::path& root_ = of_this_test_.path();
};

TEST_F(PrivateFolderTest, is_created_with_access_for_its_user_only) {
  const auto folder = PrivateFolder::create(root_ / "new");
  ASSERT_TRUE(folder) << folder.error().message;
  EXPECT_EQ(folder->path(), root_ / "new");
  struct stat found {};
  ASSERT_EQ(stat(folder->path().c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777U, 0700U);
  EXPECT_TRUE(PrivateFolder::create(root_ / "new" / "")) << "an existing one is opened";
}

TEST_F(PrivateFolderTest, folder_that_other_users_can_write_is_rejected) {
  for (const mode_t mode : {0770U, 0702U, 01777U}) {
    const auto opened = PrivateFolder::open(make("shared", mode));
    ASSERT_FALSE(opened) << mode;
    EXPECT_EQ(opened.error().code, EPERM);
    EXPECT_NE(opened.error().message.find("is writable by other users"), std::string::npos);
  }
}

TEST_F(PrivateFolderTest, folder_below_one_that_other_users_can_write_is_rejected) {
  make("shared", 0777);
  make("shared/middle", 0755);
  const auto folder = make("shared/middle/own", 0700);
  EXPECT_EQ(refusal(folder), "'" + folder.string() + "': '" + (root_ / "shared").string() +
                                 "' is writable by other users; they can replace the folders in it");
  make("shared", 01777);
  EXPECT_EQ(refusal(folder), "") << "the sticky bit protects the names";
  make("shared", 0777);
  chmod(root_.c_str(), 0700);
  EXPECT_EQ(refusal(folder), "") << "other users cannot reach it";
}

TEST_F(PrivateFolderTest, folder_of_another_user_or_below_one_is_rejected) {
  ROCI_REQUIRE_ROOT("to change the owner of a folder");
  const auto folder = make("other/own", 0700);
  EXPECT_EQ(refusal(folder), "");
  ASSERT_EQ(chown((root_ / "other").c_str(), kOtherUser, kOtherUser), 0);
  EXPECT_EQ(refusal(root_ / "other"), "'" + (root_ / "other").string() + "' belongs to another user (12345)");
  EXPECT_EQ(refusal(folder),
            "'" + folder.string() + "': '" + (root_ / "other").string() +
                "' belongs to another user (12345); that user can replace the folders in it");
  EXPECT_FALSE(PrivateFolder::create(root_ / "other" / "new"));
  EXPECT_FALSE(std::filesystem::exists(root_ / "other" / "new"));
}

TEST_F(PrivateFolderTest, link_and_file_in_place_of_the_folder_are_rejected) {
  make("target", 0700);
  std::filesystem::create_symlink(root_ / "target", root_ / "link");
  std::ofstream{root_ / "file"} << "x";
  for (const char* name : {"link", "file"}) {
    const auto opened = PrivateFolder::create(root_ / name);
    ASSERT_FALSE(opened) << name;
    EXPECT_EQ(opened.error().code, ENOTDIR) << opened.error().message;
  }
}

TEST_F(PrivateFolderTest, link_above_the_folder_is_resolved_and_its_target_is_checked) {
  make("open", 0777);
  make("open/own", 0700);
  make("closed/own", 0700);
  std::filesystem::create_symlink(root_ / "closed", root_ / "good");
  std::filesystem::create_symlink(root_ / "open", root_ / "bad");
  EXPECT_EQ(refusal(root_ / "good" / "own"), "");
  EXPECT_NE(refusal(root_ / "bad" / "own"), "");
}

TEST_F(PrivateFolderTest, files_are_not_opened_read_or_written_through_links) {
  const auto folder = PrivateFolder::create(root_ / "own");
  ASSERT_TRUE(folder);
  std::ofstream{root_ / "victim"} << "before";
  std::filesystem::create_symlink(root_ / "victim", folder->path() / "link");
  EXPECT_EQ(folder->open_file("link", O_WRONLY | O_TRUNC | O_CREAT).error().code, ELOOP);
  EXPECT_EQ(folder->read("link").error().code, ELOOP);
  ASSERT_TRUE(folder->replace("link", "after"));
  EXPECT_EQ(folder->read("link").value(), "after");
  EXPECT_EQ(content_of(root_ / "victim"), "before");
  EXPECT_FALSE(folder->make_folder("link"));
}

TEST_F(PrivateFolderTest, files_are_replaced_renamed_and_removed) {
  const auto folder = PrivateFolder::create(root_ / "own");
  ASSERT_TRUE(folder);
  const std::string large(100'000, 'x');
  ASSERT_TRUE(folder->replace("a", "first"));
  ASSERT_TRUE(folder->replace("a", large));
  EXPECT_EQ(folder->read("a").value(), large);
  EXPECT_TRUE(folder->rename("a", "b"));
  EXPECT_FALSE(folder->contains("a"));
  EXPECT_TRUE(folder->contains("b"));
  EXPECT_TRUE(folder->remove("b"));
  EXPECT_EQ(folder->read("b").error().code, ENOENT);
  EXPECT_EQ(folder->replace("none/b", "x").error().code, ENOENT);
  EXPECT_TRUE(std::filesystem::is_empty(folder->path()));
}

TEST_F(PrivateFolderTest, read_rejects_files_that_are_not_regular) {
  const auto folder = PrivateFolder::create(root_ / "own");
  ASSERT_TRUE(folder);
  ASSERT_EQ(mkfifo((folder->path() / "fifo").c_str(), 0600), 0);
  EXPECT_EQ(folder->read("fifo").error().code, EINVAL);
  ASSERT_TRUE(folder->make_folder("below"));
  EXPECT_FALSE(folder->read("below"));
}

TEST_F(PrivateFolderTest, protected_folder_may_belong_to_root_but_is_not_writable_by_others) {
  EXPECT_TRUE(check_protected_folder("/usr"));
  EXPECT_FALSE(check_protected_folder(make("sticky", 01777))) << "other users can create files in it";
  EXPECT_TRUE(check_protected_folder(make("own", 0755)));
  if (geteuid() != 0) return;
  ASSERT_EQ(chown((root_ / "own").c_str(), kOtherUser, kOtherUser), 0);
  EXPECT_FALSE(check_protected_folder(root_ / "own"));
}

}  // namespace
}  // namespace roci

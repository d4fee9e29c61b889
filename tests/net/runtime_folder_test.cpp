#include "net/runtime_folder.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include "net_fixture.hpp"
#include "support/process/require_root.hpp"

namespace roci {
namespace {

using RuntimeFolder = test::NetTest;

TEST_F(RuntimeFolder, is_created_with_access_for_its_user_only) {
  setenv("ROCI_RUNTIME", (root_ / "new").c_str(), 1);
  const auto folder = runtime_folder();
  ASSERT_TRUE(folder) << folder.error().message;
  EXPECT_EQ(*folder, root_ / "new");
  struct stat found {};
  ASSERT_EQ(stat(folder->c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777U, 0700U);
}

TEST_F(RuntimeFolder, defaults_to_the_runtime_folder_of_the_session) {
  unsetenv("ROCI_RUNTIME");
  setenv("XDG_RUNTIME_DIR", root_.c_str(), 1);
  if (geteuid() == 0) {
    ASSERT_EQ(chown(root_.c_str(), 12345, 12345), 0);
  }
  const test::Child user{[&] {
    if (geteuid() == 0 && setresuid(12345, 12345, 12345) != 0) return false;
    const auto folder = runtime_folder();
    return folder && *folder == root_ / "rocinante";
  }};
  unsetenv("XDG_RUNTIME_DIR");
  EXPECT_TRUE(user.done());
}

// The network's files would be in the folders of another user, as with `sudo -E`.
TEST_F(RuntimeFolder, folders_of_another_user_are_not_used) {
  ROCI_REQUIRE_ROOT("to change the owner of a folder");
  ASSERT_EQ(chown(root_.c_str(), 12345, 12345), 0);
  unsetenv("ROCI_RUNTIME");
  setenv("XDG_RUNTIME_DIR", root_.c_str(), 1);
  const auto folder = runtime_folder();
  unsetenv("XDG_RUNTIME_DIR");
  ASSERT_TRUE(folder) << folder.error().message;
  EXPECT_NE(*folder, root_ / "rocinante");
  EXPECT_TRUE(std::filesystem::is_empty(root_));
  setenv("ROCI_RUNTIME", (root_ / "r").c_str(), 1);
  EXPECT_EQ(runtime_folder().error().code, EPERM);
}

TEST_F(RuntimeFolder, folder_writable_by_others_is_rejected) {
  chmod(root_.c_str(), 0777);
  const auto folder = runtime_folder();
  ASSERT_FALSE(folder);
  EXPECT_NE(folder.error().message.find("is writable by other users"), std::string::npos);
  EXPECT_EQ(folder.error().code, EPERM);
}

TEST_F(RuntimeFolder, path_that_is_not_a_folder_is_rejected) {
  std::ofstream{root_ / "file"} << "x";
  setenv("ROCI_RUNTIME", (root_ / "file").c_str(), 1);
  const auto folder = runtime_folder();
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().code, ENOTDIR);
}

TEST_F(RuntimeFolder, networks_are_listed_and_found_by_name) {
  EXPECT_TRUE(list_nets()->empty());
  const auto none = find_net("default");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "unknown network 'default'; none exists, roci-run creates networks");
  NetConfig config;
  config.name = "two";
  make_net(config);
  config.name = "one";
  const auto folder = make_net(config);
  std::filesystem::create_directory(root_ / "not-a-net");
  EXPECT_EQ(*list_nets(), (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(*find_net("one"), folder);
  EXPECT_EQ(find_net("three").error().message, "unknown network 'three'; existing are: one, two");
}

TEST_F(RuntimeFolder, invalid_network_names_are_rejected) {
  for (const char* name : {"", ".", "..", "a/b", "-a", "a b", ".hidden"})
    EXPECT_FALSE(net_folder(name)) << name;
  EXPECT_TRUE(net_folder("a.b-c_9"));
}

}  // namespace
}  // namespace roci

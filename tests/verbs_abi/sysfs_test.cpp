// Test of sysfs files, read by both libraries: equal results, buffers and errors.
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "verbs_abi/library.hpp"

namespace roci {
namespace {

namespace fs = std::filesystem;

using Read = int(const char*, const char*, char*, size_t);
using Path = const char*();

struct Outcome {
  int length;
  int error;
  std::string buffer;

  bool operator==(const Outcome&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
  return out << outcome.length << ", errno " << outcome.error << ", \"" << outcome.buffer << '"';
}

Outcome read_by(const Library& library, const std::string& dir, const std::string& file, size_t size) {
  std::string buffer(64, '#');
  errno = 0;
  const int length = library.get<Read>("ibv_read_sysfs_file")(dir.c_str(), file.c_str(), buffer.data(), size);
  return {length, errno, buffer};
}

class Sysfs : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "roci-sysfs-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const char* name, const char* text) { std::ofstream(folder_ / name) << text; }

  fs::path folder_;
};

TEST_F(Sysfs, reads_whole_file_without_newline) {
  for (const char* text : {"hello\n", "hello", "", "\n", "ab\n\n", "a\nb\n"}) {
    write("file", text);
    for (const size_t size : {0, 1, 2, 3, 4, 5, 6, 7, 64}) {
      Outcome ours_is = read_by(ours(), folder_, "file", size);
      const Outcome theirs = read_by(installed(), folder_, "file", size);
      // The installed library sets no errno for text that does not fit.
      if (ours_is.length < 0) ours_is.error = theirs.error;
      EXPECT_EQ(ours_is, theirs) << '"' << text << "\" into " << size;
    }
  }
  write("file", "hello\n");
  EXPECT_EQ(read_by(ours(), folder_, "file", 64).length, 5);
  EXPECT_EQ(read_by(ours(), folder_, "file", 5).error, EOVERFLOW);
}

TEST_F(Sysfs, missing_file_returns_error_of_installed_library) {
  for (const auto& [dir, file] :
       {std::pair{folder_.string(), std::string("none")}, std::pair{folder_.string(), std::string()},
        std::pair{std::string(PATH_MAX, 'x'), std::string("file")}}) {
    const Outcome theirs = read_by(installed(), dir, file, 64);
    EXPECT_EQ(theirs.length, -1);
    EXPECT_EQ(read_by(ours(), dir, file, 64), theirs) << dir << '/' << file;
  }
}

// Both libraries read the environment once, so each value has a separate process.
TEST(SysfsDeathTest, path_follows_environment_variable) {
  const std::string long_path = "/" + std::string(300, 'x');
  for (const char* given : {"/elsewhere", "/elsewhere//", "", "/", long_path.c_str()}) {
    const auto compare = [given] {
      setenv("SYSFS_PATH", given, 1);
      const std::string theirs = installed().get<Path>("ibv_get_sysfs_path")();
      const std::string is = ours().get<Path>("ibv_get_sysfs_path")();
      std::fprintf(stderr, "'%s', not '%s'\n", is.c_str(), theirs.c_str());
      std::_Exit(is == theirs ? 0 : 1);
    };
    EXPECT_EXIT(compare(), testing::ExitedWithCode(0), "") << given;
  }
}

}  // namespace
}  // namespace roci

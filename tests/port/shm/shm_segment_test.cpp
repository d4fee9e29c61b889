#include "port/shm/shm_segment.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "support/process/folder.hpp"
#include "support/process/pid_namespace.hpp"

namespace roci {
namespace {

std::string path_of_descriptor(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

TEST(ShmSegmentTest, open_by_descriptor_maps_the_same_memory) {
  const auto made = ShmSegment::create();
  ASSERT_TRUE(made) << made.error().message;
  const auto opened = ShmSegment::open(path_of_descriptor((*made)->fd()));
  ASSERT_TRUE(opened) << opened.error().message;
  (*made)->slot(kShmSlots - 1).incarnation.store(77);
  EXPECT_EQ((*opened)->slot(kShmSlots - 1).incarnation.load(), 77U);
  (*opened)->ring(kShmSlots - 1, kShmSlots - 1)[kShmRingBytes - 1] = std::byte{5};
  EXPECT_EQ((*made)->ring(kShmSlots - 1, kShmSlots - 1)[kShmRingBytes - 1], std::byte{5});
}

TEST(ShmSegmentTest, size_cannot_be_changed) {
  const auto made = ShmSegment::create();
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_NE(ftruncate((*made)->fd(), 4096), 0);
  EXPECT_NE(ftruncate((*made)->fd(), off_t{1} << 40), 0);
}

// Linux before 6.3 has neither the seal nor the setting vm.memfd_noexec. The file is made without the seal there.
TEST(ShmSegmentTest, file_is_sealed_against_execution) {
  constexpr const char* kSetting = "/proc/sys/vm/memfd_noexec";
  const bool is_supported = std::filesystem::exists(kSetting);
  const auto made = ShmSegment::create();
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(fchmod((*made)->fd(), 0700) != 0, is_supported);
  const auto opened = ShmSegment::open(path_of_descriptor((*made)->fd()));
  EXPECT_TRUE(opened) << opened.error().message;
  if (!is_supported) return;
  // The setting is that of a PID namespace.
  const auto result = test::in_another_pid_namespace([&] {
    std::ofstream{kSetting} << "2" << std::flush;
    constexpr unsigned kExecutable = 0x10;  // MFD_EXEC
    const bool enforced = memfd_create("test", MFD_CLOEXEC | kExecutable) < 0;
    return enforced && ShmSegment::create();
  });
  ROCI_REQUIRE_PID_NAMESPACE(result);
  EXPECT_TRUE(*result);
}

// ftruncate() beyond the limit would terminate the process by SIGXFSZ.
TEST(ShmSegmentTest, create_fails_beyond_the_file_size_limit) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit limit{.rlim_cur = 1 << 20, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const auto made = ShmSegment::create();
  setrlimit(RLIMIT_FSIZE, &before);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, EFBIG);
  EXPECT_NE(made.error().message.find("ulimit -f"), std::string::npos);
}

TEST(ShmSegmentTest, unwritten_pages_are_not_allocated) {
  const auto made = ShmSegment::create();
  ASSERT_TRUE(made) << made.error().message;
  struct stat found {};
  ASSERT_EQ(fstat((*made)->fd(), &found), 0);
  EXPECT_GT(found.st_size, off_t{kShmSlots} * kShmSlots * kShmRingBytes);
  EXPECT_LT(found.st_blocks * 512, 8 << 20);
}

TEST(ShmSegmentTest, open_rejects_files_that_are_not_a_valid_segment) {
  const test::Folder folder;
  EXPECT_FALSE(ShmSegment::open((folder.path() / "none").string()));
  const auto file = (folder.path() / "file").string();
  std::ofstream{file} << "text";
  const auto wrong = ShmSegment::open(file);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, EPROTO);
  // As large as a segment, but not sealed: any holder of the file could truncate it.
  const auto made = ShmSegment::create();
  ASSERT_TRUE(made) << made.error().message;
  struct stat found {};
  ASSERT_EQ(fstat((*made)->fd(), &found), 0);
  ASSERT_EQ(truncate(file.c_str(), found.st_size), 0);
  EXPECT_FALSE(ShmSegment::open(file));
  const int unsealed = memfd_create("test", MFD_ALLOW_SEALING);
  ASSERT_EQ(ftruncate(unsealed, found.st_size), 0);
  EXPECT_FALSE(ShmSegment::open(path_of_descriptor(unsealed)));
  // Sealed, but of another version.
  ASSERT_EQ(fcntl(unsealed, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
  const auto other = ShmSegment::open(path_of_descriptor(unsealed));
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("one version of Rocinante"), std::string::npos);
  close(unsealed);
}

}  // namespace
}  // namespace roci

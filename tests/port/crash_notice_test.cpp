#include "port/crash_notice.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <numeric>

#include "support/process/child.hpp"
#include "support/process/folder.hpp"

namespace roci {
namespace {

using Frame = std::vector<uint8_t>;

Frame frame(size_t length, uint8_t first) {
  Frame out(length);
  std::iota(out.begin(), out.end(), first);
  return out;
}

class CrashNoticeTest : public testing::Test {
 protected:
  // A process that performs `work` and stays alive.
  template <class Work>
  std::unique_ptr<test::Child> process(Work work) const {
    return std::make_unique<test::Child>([&] {
      auto words = CrashNoticeFile::open(folder_, kName);
      if (!words || !work(**words)) return false;
      static_cast<void>(words->release());  // leaked: must exist as long as the process
      return true;
    });
  }
  [[nodiscard]] std::vector<Frame> left() const {
    std::vector<Frame> out;
    auto words = CrashNoticeReader::take(folder_ / kName);
    EXPECT_TRUE(words && *words);
    if (!words || !*words) return out;
    for (auto one = (*words)->next(); !one.empty(); one = (*words)->next())
      out.emplace_back(one.begin(), one.end());
    return out;
  }

  static constexpr const char* kName = "slot0.17";
  const test::Folder root_;
  const std::filesystem::path folder_ = root_.path() / "crash-notices";
};

TEST_F(CrashNoticeTest, notices_are_readable_only_after_the_process_exits) {
  const auto child = process([](CrashNoticeFile& words) {
    return words.store(CrashNoticeFile::kNone, frame(100, 1)) == 0 &&
           words.store(CrashNoticeFile::kNone, frame(CrashNoticeSlot::kMaxBytes, 2)) == 1;
  });
  ASSERT_TRUE(child->done());
  EXPECT_FALSE(*CrashNoticeReader::take(folder_ / kName)) << "it lives";
  child->end(SIGKILL);
  EXPECT_EQ(left(), (std::vector<Frame>{frame(100, 1), frame(CrashNoticeSlot::kMaxBytes, 2)}));
}

TEST_F(CrashNoticeTest, replaced_and_removed_notices_are_not_returned) {
  const auto child = process([](CrashNoticeFile& words) {
    const auto first = words.store(CrashNoticeFile::kNone, frame(100, 1));
    const auto second = words.store(CrashNoticeFile::kNone, frame(100, 2));
    const auto third = words.store(CrashNoticeFile::kNone, frame(100, 3));
    words.remove(first);
    return words.store(second, frame(90, 4)) == second &&
           words.store(third, frame(CrashNoticeSlot::kMaxBytes + 1, 5)) == CrashNoticeFile::kNone;
  });
  ASSERT_TRUE(child->done());
  child->end(SIGKILL);
  EXPECT_EQ(left(), (std::vector<Frame>{frame(90, 4)}));
}

TEST_F(CrashNoticeTest, file_holds_the_maximum_number_of_notices) {
  const auto child = process([](CrashNoticeFile& words) {
    std::vector<CrashNoticeFile::Slot> slots;
    for (CrashNoticeFile::Slot i = 0; i < CrashNoticeFile::kMax; ++i)
      slots.push_back(words.store(CrashNoticeFile::kNone, frame(60, static_cast<uint8_t>(i))));
    if (slots.back() == CrashNoticeFile::kNone) return false;
    if (words.store(CrashNoticeFile::kNone, frame(60, 0)) != CrashNoticeFile::kNone) return false;
    words.remove(slots[4711]);
    return words.store(CrashNoticeFile::kNone, frame(61, 0)) == slots[4711];
  });
  ASSERT_TRUE(child->done());
  child->end(SIGKILL);
  const auto all = left();
  EXPECT_EQ(all.size(), CrashNoticeFile::kMax);
  EXPECT_EQ(std::count(all.begin(), all.end(), frame(61, 0)), 1);
}

// Any process with write access to the directory may write any bytes.
TEST_F(CrashNoticeTest, reader_ignores_invalid_lengths_and_truncated_files) {
  const auto child =
      process([](CrashNoticeFile& words) { return words.store(CrashNoticeFile::kNone, frame(100, 1)) == 0; });
  ASSERT_TRUE(child->done());
  child->end(SIGKILL);
  std::fstream file(folder_ / kName, std::ios::in | std::ios::out | std::ios::binary);
  CrashNoticeSlot slot;
  for (const uint32_t length : {uint32_t{1}, uint32_t{CrashNoticeSlot::kMaxBytes + 1}, ~0U}) {
    slot.length = length;
    file.seekp(0, std::ios::beg);
    file.write(reinterpret_cast<const char*>(&slot), sizeof slot);
    file.flush();
    EXPECT_TRUE(left().empty()) << length;
  }
  std::filesystem::resize_file(folder_ / kName, sizeof slot - 1);
  EXPECT_TRUE(left().empty());
}

// Any process with write access to the directory may write any number of bytes.
TEST_F(CrashNoticeTest, reader_ends_after_the_maximum_number_of_slots) {
  const auto child =
      process([](CrashNoticeFile& words) { return words.store(CrashNoticeFile::kNone, frame(100, 1)) == 0; });
  ASSERT_TRUE(child->done());
  child->end(SIGKILL);
  std::fstream file(folder_ / kName, std::ios::in | std::ios::out | std::ios::binary);
  CrashNoticeSlot slot;
  slot.length = 100;
  for (const uint64_t index : {uint64_t{CrashNoticeFile::kMax} - 1, uint64_t{CrashNoticeFile::kMax}}) {
    file.seekp(static_cast<std::streamoff>(index * sizeof slot), std::ios::beg);
    file.write(reinterpret_cast<const char*>(&slot), sizeof slot);
  }
  file.close();
  EXPECT_EQ(left().size(), 2U) << "the last permitted slot is read, and the one after it is not";
}

TEST_F(CrashNoticeTest, open_fails_when_the_folder_cannot_be_created) {
  std::ofstream{root_.path() / "crash-notices"} << "a file";
  EXPECT_FALSE(CrashNoticeFile::open(folder_, kName));
}

// A later process may get the process id of the exited process.
TEST_F(CrashNoticeTest, reader_removes_its_own_file_but_not_that_of_a_successor) {
  for (const bool replaced : {false, true}) {
    const auto child = process([](CrashNoticeFile&) { return true; });
    ASSERT_TRUE(child->done());
    child->end(SIGKILL);
    auto reader = CrashNoticeReader::take(folder_ / kName);
    ASSERT_TRUE(reader && *reader);
    std::unique_ptr<test::Child> successor;
    if (replaced) {
      successor = process([](CrashNoticeFile&) { return true; });
      ASSERT_TRUE(successor->done());
    }
    (*reader)->remove(folder_ / kName);
    EXPECT_EQ(std::filesystem::exists(folder_ / kName), replaced);
  }
}

// An attempt to extend the file would terminate the process by SIGXFSZ.
TEST_F(CrashNoticeTest, store_returns_none_beyond_the_file_size_limit) {
  const auto child = process([](CrashNoticeFile& words) {
    const rlimit limit{.rlim_cur = 4096, .rlim_max = RLIM_INFINITY};
    return setrlimit(RLIMIT_FSIZE, &limit) == 0 &&
           words.store(CrashNoticeFile::kNone, frame(100, 1)) == CrashNoticeFile::kNone;
  });
  EXPECT_TRUE(child->done());
}

}  // namespace
}  // namespace roci

#include "port/shm/shm_ring.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <vector>

#include "base/rng.hpp"
#include "port/guarded_memory.hpp"
#include "support/sanitizer.hpp"

namespace roci {
namespace {

// A ring with one writer and one reader, between guard pages.
class ShmRingTest : public testing::Test {
 protected:
  static constexpr uint32_t kBytes = 256 * 1024;
  using Frame = std::vector<uint8_t>;

  void SetUp() override { open_at(0); }

  // Sets both positions to `position`.
  void open_at(uint64_t position) {
    control_.tail.store(position);
    control_.head.store(position);
    open_writer();
    open_reader();
  }
  void open_writer() { writer_ = std::make_unique<ShmRingWriter>(control_, memory_.data(), kBytes); }
  void open_reader() { reader_ = std::make_unique<ShmRingReader>(control_, memory_.data(), kBytes); }

  static Frame frame(size_t bytes, uint64_t tag) {
    Frame out(bytes);
    for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<uint8_t>(tag * 31 + i);
    return out;
  }
  // Does not publish the record.
  bool append(const Frame& bytes) {
    uint8_t* const room = writer_->reserve(static_cast<uint32_t>(bytes.size()));
    if (room == nullptr) return false;
    EXPECT_TRUE(memory_.contains(room, bytes.size()));
    std::ranges::copy(bytes, room);
    return true;
  }
  bool write(const Frame& bytes) {
    const bool written = append(bytes);
    writer_->publish();
    return written;
  }
  // Returns an empty frame if the ring is empty.
  Frame read() {
    const auto record = reader_->front();
    if (record.empty()) return {};
    EXPECT_TRUE(memory_.contains(record.data(), record.size()));
    Frame out(record.begin(), record.end());
    reader_->pop();
    return out;
  }
  void expect_to_work() {
    for (uint64_t tag = 0; tag < 2000; ++tag) {
      const Frame sent = frame(kShmLeastFrame + tag * 7 % 5000, tag);
      ASSERT_TRUE(write(sent)) << tag;
      ASSERT_EQ(read(), sent) << tag;
      reader_->release();
    }
  }
  // Writes a record at the reader's position, like a malicious writer.
  void forge(uint32_t bytes, uint32_t kind, uint64_t published) {
    const uint64_t head = control_.head.load();
    auto* record = reinterpret_cast<ShmRecord*>(memory_.data() + (head & (kBytes - 1)));
    *record = {bytes, kind, 0};
    control_.tail.store(head + published);
  }
  // Expects that the reader returns nothing, counts a malformed record, and works again with a correct writer.
  void expect_refused() {
    const uint64_t before = reader_->malformed();
    EXPECT_TRUE(reader_->front().empty());
    EXPECT_EQ(reader_->malformed(), before + 1);
    EXPECT_TRUE(reader_->front().empty());
    reader_->release();
    open_writer();
    const uint64_t counted = reader_->malformed();
    expect_to_work();
    EXPECT_EQ(reader_->malformed(), counted);
  }

  const test::GuardedMemory memory_{kBytes};
  ShmRingControl control_;
  std::unique_ptr<ShmRingWriter> writer_;
  std::unique_ptr<ShmRingReader> reader_;
};

TEST_F(ShmRingTest, delivers_frames_in_order_and_unchanged_over_many_wraps) {
  Rng rng{11};
  std::deque<Frame> model;
  uint64_t written = 0, refused = 0, tag = 0;
  for (int round = 0; round < 60'000; ++round) {
    if (rng.chance(0.55)) {
      const bool large = rng.chance(0.3);
      Frame next = frame(rng.between(kShmLeastFrame, large ? kShmMostFrame : 300), ++tag);
      if (append(next)) {
        written += next.size();
        model.push_back(std::move(next));
      } else {
        ++refused;
      }
      if (rng.chance(0.5)) writer_->publish();
    } else {
      writer_->publish();
      const bool drain = rng.chance(0.0005);
      do {
        const Frame got = read();
        ASSERT_EQ(got.empty(), model.empty());
        if (got.empty()) break;
        ASSERT_EQ(got, model.front());
        model.pop_front();
      } while (drain);
      if (drain || rng.chance(0.5)) reader_->release();
    }
  }
  EXPECT_GT(written, 50ULL * kBytes);
  EXPECT_GT(refused, 10U);
  EXPECT_EQ(reader_->malformed(), 0U);
  EXPECT_EQ(writer_->refused(), 0U);
}

TEST_F(ShmRingTest, unpublished_frame_is_not_visible) {
  ASSERT_TRUE(append(frame(100, 1)));
  EXPECT_FALSE(reader_->has_more());
  EXPECT_TRUE(read().empty());
  writer_->publish();
  EXPECT_TRUE(reader_->has_more());
  EXPECT_EQ(read(), frame(100, 1));
  EXPECT_FALSE(reader_->has_more());
}

TEST_F(ShmRingTest, full_ring_rejects_frames_until_the_reader_releases_space) {
  uint64_t tag = 0;
  while (write(frame(5000, tag))) ++tag;
  EXPECT_EQ(tag, kBytes / shm_record_bytes(5000));
  EXPECT_LE(writer_->used(), kBytes);
  EXPECT_EQ(writer_->reserve(5000), nullptr);
  EXPECT_EQ(read(), frame(5000, 0));
  EXPECT_EQ(writer_->reserve(5000), nullptr) << "read, and not freed";
  reader_->release();
  EXPECT_NE(writer_->freed(), control_.head.load());
  for (uint64_t expected = 1; expected < tag; ++expected) ASSERT_EQ(read(), frame(5000, expected));
  EXPECT_FALSE(writer_->drained());
  reader_->release();
  EXPECT_TRUE(writer_->drained());
  EXPECT_EQ(writer_->used(), 0U);
  expect_to_work();
}

TEST_F(ShmRingTest, has_space_agrees_with_reserve) {
  Rng rng{5};
  for (uint64_t round = 0; round < test::repetitions(20'000); ++round) {
    const auto bytes = static_cast<uint32_t>(rng.between(kShmLeastFrame, kShmMostFrame));
    const bool room = writer_->has_space(bytes);
    ASSERT_EQ(write(frame(bytes, 1)), room);
    while (rng.chance(0.6) && !read().empty()) reader_->release();
  }
}

TEST_F(ShmRingTest, light_traffic_uses_only_the_start_of_the_ring) {
  uint64_t highest = 0;
  for (uint64_t tag = 0; tag < 1000; ++tag) {
    const Frame sent = frame(1500, tag);
    uint8_t* const room = writer_->reserve(1500);
    ASSERT_NE(room, nullptr);
    std::ranges::copy(sent, room);
    writer_->publish();
    highest = std::max(highest, static_cast<uint64_t>(reinterpret_cast<std::byte*>(room) - memory_.data()));
    ASSERT_EQ(read(), sent);
    reader_->release();
  }
  EXPECT_LT(highest, 80U * 1024) << "more of the ring was used than light traffic needs";
  EXPECT_EQ(reader_->malformed(), 0U);
}

TEST_F(ShmRingTest, new_reader_skips_frames_for_its_predecessor) {
  for (uint64_t tag = 0; tag < 5; ++tag) ASSERT_TRUE(write(frame(600, tag)));
  ASSERT_EQ(read(), frame(600, 0));
  open_reader();
  EXPECT_FALSE(reader_->has_more());
  EXPECT_TRUE(read().empty());
  EXPECT_TRUE(writer_->drained());
  expect_to_work();
}

TEST_F(ShmRingTest, new_writer_continues_after_its_predecessor) {
  ASSERT_TRUE(write(frame(600, 1)));
  ASSERT_TRUE(append(frame(600, 2)));  // its writer exits before it publishes this record
  open_writer();
  EXPECT_EQ(writer_->used(), shm_record_bytes(600));
  ASSERT_TRUE(write(frame(600, 3)));
  EXPECT_EQ(read(), frame(600, 1));
  EXPECT_EQ(read(), frame(600, 3));
  EXPECT_TRUE(read().empty());
  reader_->release();
  expect_to_work();
  EXPECT_EQ(reader_->malformed(), 0U);
}

TEST_F(ShmRingTest, positions_wrap_at_their_largest_value) {
  open_at(uint64_t{0} - 10 * kShmRecordAlign);
  std::deque<Frame> model;
  for (uint64_t tag = 0; tag < 20; ++tag) {
    model.push_back(frame(200, tag));
    ASSERT_TRUE(write(model.back()));
  }
  EXPECT_LT(control_.tail.load(), uint64_t{kBytes});
  for (; !model.empty(); model.pop_front()) ASSERT_EQ(read(), model.front());
  reader_->release();
  EXPECT_TRUE(writer_->drained());
  expect_to_work();
  EXPECT_EQ(reader_->malformed() + writer_->refused(), 0U);
}

TEST_F(ShmRingTest, rejects_tail_out_of_range) {
  for (const uint64_t ahead :
       {uint64_t{kBytes} + 64, uint64_t{1} << 40, uint64_t{0} - 64, uint64_t{1} << 63}) {
    SCOPED_TRACE(ahead);
    open_at(4096);
    control_.tail.store(4096 + ahead);
    expect_refused();
  }
}

TEST_F(ShmRingTest, rejects_misaligned_tail) {
  for (const uint64_t ahead : {1, 13, 63, 65, 8191}) {
    SCOPED_TRACE(ahead);
    open_at(4096);
    forge(20, ShmRecord::kFrame, ahead);
    expect_refused();
  }
  open_at(uint64_t{0} - 64);
  control_.tail.store(uint64_t{0} - 3);  // rounded up to the alignment, the position wraps to 0
  expect_refused();
}

TEST_F(ShmRingTest, rejects_record_with_an_invalid_length) {
  for (const uint32_t bytes : {0U, 1U, 13U, kShmMostFrame + 1, kBytes, UINT32_MAX, UINT32_MAX - 15}) {
    SCOPED_TRACE(bytes);
    open_at(0);
    forge(bytes, ShmRecord::kFrame, kBytes);
    expect_refused();
  }
}

TEST_F(ShmRingTest, rejects_record_that_ends_after_the_published_bytes) {
  forge(1500, ShmRecord::kFrame, shm_record_bytes(1500) - kShmRecordAlign);
  expect_refused();
}

TEST_F(ShmRingTest, rejects_record_that_ends_after_the_ring) {
  for (const uint32_t left : {64U, 128U, 1472U}) {
    SCOPED_TRACE(left);
    open_at(kBytes - left);
    forge(1500, ShmRecord::kFrame, kBytes);
    expect_refused();
  }
}

TEST_F(ShmRingTest, rejects_record_of_unknown_kind) {
  for (const uint32_t kind : {0U, 3U, 0x100U, UINT32_MAX}) {
    SCOPED_TRACE(kind);
    open_at(0);
    forge(100, kind, 1024);
    expect_refused();
  }
}

TEST_F(ShmRingTest, rejects_padding_with_a_wrong_length) {
  for (const uint32_t bytes : {0U, 1U, 4000U, 4095U, 4160U, kBytes, UINT32_MAX}) {
    SCOPED_TRACE(bytes);
    open_at(kBytes - 4096);
    forge(bytes, ShmRecord::kPadding, 8192);
    expect_refused();
  }
  open_at(kBytes - 4096);
  forge(4096, ShmRecord::kPadding, 4032);
  expect_refused();  // the record is valid, but not completely published
}

TEST_F(ShmRingTest, padding_without_a_following_record_is_skipped) {
  open_at(kBytes - 4096);
  forge(4096, ShmRecord::kPadding, 4096);
  EXPECT_TRUE(reader_->front().empty());
  EXPECT_EQ(reader_->malformed(), 0U);
  reader_->release();
  EXPECT_EQ(control_.head.load(), kBytes);
}

TEST_F(ShmRingTest, rejects_padding_after_padding) {
  open_at(0);
  forge(kBytes, ShmRecord::kPadding, kBytes);
  EXPECT_TRUE(reader_->front().empty());
  EXPECT_EQ(reader_->malformed(), 0U);
  open_at(kBytes - 4096);
  forge(4096, ShmRecord::kPadding, kBytes);
  *reinterpret_cast<ShmRecord*>(memory_.data()) = {kBytes, ShmRecord::kPadding, 0};
  expect_refused();
}

TEST_F(ShmRingTest, writer_ignores_head_out_of_range) {
  ASSERT_TRUE(write(frame(100, 1)));
  const uint64_t tail = control_.tail.load();
  for (const uint64_t head : {tail + 64, tail - kBytes - 64, uint64_t{1} << 63, tail - 1, tail - 63}) {
    SCOPED_TRACE(head);
    const uint64_t before = writer_->refused();
    control_.head.store(head);
    writer_->refresh();
    EXPECT_EQ(writer_->refused(), before + 1);
    EXPECT_EQ(writer_->used(), shm_record_bytes(100));
  }
  EXPECT_EQ(read(), frame(100, 1));
  reader_->release();
  EXPECT_TRUE(writer_->drained());
  expect_to_work();
}

// The writer reads the reader's position again when it enters another 64 KiB.
TEST_F(ShmRingTest, has_space_agrees_with_reserve_while_the_reader_moves_back) {
  ASSERT_TRUE(write(frame(1000, 0)));  // stays unread, so that the writer does not restart the ring
  for (uint64_t tag = 1; tag < 2000; ++tag) {
    control_.head.store(control_.tail.load() - kBytes);
    const bool room = writer_->has_space(1000);
    ASSERT_EQ(write(frame(1000, tag)), room) << tag;
    ASSERT_TRUE(room) << tag;
    ASSERT_EQ(read(), frame(1000, tag - 1));
    reader_->release();
    writer_->refresh();
  }
  EXPECT_GT(writer_->refused(), 0U);
}

TEST_F(ShmRingTest, new_writer_treats_the_ring_as_full_until_head_is_valid) {
  control_.head.store(12345);
  open_writer();
  EXPECT_EQ(writer_->reserve(100), nullptr);
  EXPECT_EQ(writer_->used(), kBytes);
  reader_->release();  // its next access to the ring stores its position again
  expect_to_work();
}

}  // namespace
}  // namespace roci

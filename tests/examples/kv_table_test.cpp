// Tests of the table of the key-value store: the server writes it, and a client looks keys up in a copy.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "examples/kv-store/reader.hpp"
#include "examples/kv-store/table.hpp"

namespace kv {
namespace {

// Looks a key up as a client does: in a copy of each bucket.
Found look_up(const std::vector<Bucket>& buckets, const std::string& key, std::string& value) {
  for (const uint64_t bucket : buckets_of(key, buckets.size())) {
    const Bucket copy = buckets[bucket];
    const Found found = find(copy, key, value);
    if (found != Found::kMissing) return found;
  }
  return Found::kMissing;
}

TEST(KvTable, agrees_with_map_under_random_operations) {
  constexpr unsigned kSeed = 7;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  std::vector<Bucket> buckets(32);
  Table table(buckets);
  std::map<std::string, std::string> model;
  size_t full = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string key = "key" + std::to_string(random() % 160);
    const std::string value(random() % (kMaxValue + 1), static_cast<char>('a' + random() % 26));
    if (random() % 3 != 0) {
      const Status status = table.put(key, value);
      if (status == Status::kFull) {
        EXPECT_FALSE(model.contains(key));  // A key that exists never needs a new entry.
        ++full;
      } else {
        ASSERT_EQ(status, Status::kOk);
        model[key] = value;
      }
    } else {
      ASSERT_EQ(table.remove(key), model.erase(key) == 1 ? Status::kOk : Status::kMissing);
    }
    ASSERT_EQ(table.size(), model.size());
    const std::string asked = "key" + std::to_string(random() % 160);
    std::string got;
    const Found found = look_up(buckets, asked, got);
    ASSERT_EQ(found, model.contains(asked) ? Found::kValue : Found::kMissing) << asked;
    if (found == Found::kValue) {
      ASSERT_EQ(got, model[asked]);
    }
  }
  EXPECT_GT(full, 0U);  // The table is small enough to be full at times.
  EXPECT_GT(model.size(), 60U);
}

// A READ during a write may return any part of the old entry together with any part of the new one.
TEST(KvTable, mixed_entry_states_are_never_returned_as_value) {
  std::vector<Bucket> buckets(1);
  Table table(buckets);
  ASSERT_EQ(table.put("key", std::string(100, 'a')), Status::kOk);
  const Bucket before = buckets[0];
  ASSERT_EQ(table.put("key", std::string(90, 'b')), Status::kOk);
  const Bucket after = buckets[0];
  int changing = 0;
  for (size_t from = 0; from <= 256; ++from) {
    for (size_t to = from; to <= 256; ++to) {
      Bucket mixed = before;
      std::memcpy(reinterpret_cast<char*>(&mixed) + from, reinterpret_cast<const char*>(&after) + from,
                  to - from);
      std::string value;
      const Found found = find(mixed, "key", value);
      ASSERT_NE(found, Found::kMissing) << from << " to " << to;
      if (found == Found::kChanging) {
        ++changing;
      } else {
        ASSERT_TRUE(value == std::string(100, 'a') || value == std::string(90, 'b')) << value;
      }
    }
  }
  EXPECT_GT(changing, 1000);
}

TEST(KvTable, entry_being_written_is_reported_as_changing) {
  std::vector<Bucket> buckets(1);
  Table table(buckets);
  ASSERT_EQ(table.put("key", "value"), Status::kOk);
  Entry& entry = buckets[0].entries[0];
  entry.version += 1;
  entry.checksum = checksum_of(entry);
  std::string value;
  EXPECT_EQ(find(buckets[0], "key", value), Found::kChanging);
  EXPECT_EQ(find(buckets[0], "other", value), Found::kChanging);
}

TEST(KvTable, lengths_beyond_limits_are_reported_as_changing) {
  std::vector<Bucket> buckets(1);
  Table table(buckets);
  ASSERT_EQ(table.put("key", "value"), Status::kOk);
  std::string value;
  Bucket copy = buckets[0];
  copy.entries[0].value_length = UINT32_MAX;
  EXPECT_EQ(find(copy, "key", value), Found::kChanging);
  copy = buckets[0];
  copy.entries[0].key_length = UINT16_MAX;
  EXPECT_EQ(find(copy, "key", value), Found::kChanging);
}

TEST(KvTable, rejects_keys_and_values_of_invalid_length) {
  std::vector<Bucket> buckets(1);
  Table table(buckets);
  EXPECT_EQ(table.put("", "value"), Status::kBadKey);
  EXPECT_EQ(table.put(std::string(kMaxKey + 1, 'k'), "value"), Status::kBadKey);
  EXPECT_EQ(table.put("key", std::string(kMaxValue + 1, 'v')), Status::kBadValue);
  EXPECT_EQ(table.remove(""), Status::kBadKey);
  EXPECT_EQ(table.put(std::string(kMaxKey, 'k'), std::string(kMaxValue, 'v')), Status::kOk);
  EXPECT_EQ(table.size(), 1U);
}

TEST(KvTable, put_fails_when_full_and_succeeds_after_removal) {
  std::vector<Bucket> buckets(1);
  Table table(buckets);
  for (const char* key : {"a", "b", "c", "d"}) ASSERT_EQ(table.put(key, key), Status::kOk);
  EXPECT_EQ(table.put("e", "e"), Status::kFull);
  EXPECT_EQ(table.put("a", "another"), Status::kOk);
  EXPECT_EQ(table.remove("b"), Status::kOk);
  EXPECT_EQ(table.put("e", "e"), Status::kOk);
}

}  // namespace
}  // namespace kv

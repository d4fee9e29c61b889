// Keys, regions and windows: rules of IBTA 10.6, and comparison with a naive model under random operations.
#include "memory/memory_table.hpp"

#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <array>
#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "base/rng.hpp"
#include "memory/flush_verbs.hpp"

namespace roci::test {
namespace {

constexpr PdNumber kPd{1};
constexpr PdNumber kOtherPd{2};
constexpr Accessor kMe{kPd, Qpn{17}};
constexpr Accessor kOther{kPd, Qpn{18}};
constexpr int kAll = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                     IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;

struct Memory : testing::Test {
  IdSource ids{7};
  MemoryTable table{ids};
  std::array<uint8_t, 4096> bytes{};

  uint64_t at(size_t offset) const { return reinterpret_cast<uint64_t>(bytes.data()) + offset; }
  MemoryKey region(int access = kAll, PdNumber pd = kPd) {
    return *table.add(pd, bytes.data(), bytes.size(), access);
  }
  // Target of a remote access as an offset into the bytes; -1 if it is rejected.
  int64_t remote(MemoryKey key, uint64_t va, uint64_t length = 1, Access needed = Access::kRemoteRead,
                 const Accessor& who = kMe) {
    uint8_t* where = nullptr;
    return table.check_remote(key, who, va, length, needed, &where) == AccessOutcome::kAllowed
               ? where - bytes.data()
               : -1;
  }
  int64_t local(MemoryKey key, uint64_t va, uint64_t length = 1) {
    uint8_t* where = nullptr;
    return table.check(key, kPd, va, length, Access::kLocalRead, &where) == AccessOutcome::kAllowed
               ? where - bytes.data()
               : -1;
  }
  BindOutcome bind(MemoryKey window, MemoryKey new_key, MemoryKey region, uint64_t start, uint64_t length,
                   int access = IBV_ACCESS_REMOTE_READ, const Accessor& who = kMe) {
    return table.bind(who, {window, new_key, region, start, length, access});
  }
};

MemoryKey next(MemoryKey key) { return MemoryKey{ibv_inc_rkey(key.value())}; }

TEST_F(Memory, keys_have_distinct_indices_and_all_bits_are_checked) {
  std::set<uint32_t> indices;
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(indices.insert(key_index(region())).second);
  const MemoryKey key = region();
  EXPECT_EQ(remote(key, at(5)), 5);
  for (uint32_t bit = 1; bit != 0; bit <<= 1) EXPECT_EQ(remote(MemoryKey{key.value() ^ bit}, at(5)), -1);
}

TEST_F(Memory, overlapping_registrations_are_independent) {
  const MemoryKey whole = region();
  const MemoryKey half = *table.add(kPd, bytes.data() + 1024, 2048, IBV_ACCESS_LOCAL_WRITE);
  const MemoryKey again = region();
  EXPECT_EQ(local(whole, at(1500)), 1500);
  EXPECT_EQ(local(half, at(1500)), 1500);
  EXPECT_EQ(local(again, at(1500)), 1500);
  EXPECT_EQ(local(half, at(1000)), -1);
  EXPECT_EQ(remote(half, at(1500)), -1);
  EXPECT_TRUE(table.remove(whole));
  EXPECT_FALSE(table.remove(whole));
  EXPECT_EQ(local(whole, at(1500)), -1);
  EXPECT_EQ(local(half, at(1500)), 1500);
  EXPECT_EQ(remote(again, at(1500)), 1500);
}

TEST_F(Memory, regions_are_addressed_by_offset_or_iova) {
  const MemoryKey zero = region(kAll | IBV_ACCESS_ZERO_BASED);
  EXPECT_EQ(remote(zero, 0), 0);
  EXPECT_EQ(local(zero, 4095), 4095);
  EXPECT_EQ(remote(zero, 4096), -1);
  EXPECT_EQ(remote(zero, at(0)), -1);
  const MemoryKey high = *table.add(kPd, bytes.data(), 100, 0xfffffffffffff000, kAll);
  EXPECT_EQ(remote(high, 0xfffffffffffff000 + 99), 99);
  EXPECT_EQ(remote(high, 0xfffffffffffff000 + 99, 2), -1);
  EXPECT_EQ(remote(high, 0xffffffffffffefff), -1);
  EXPECT_FALSE(table.add(kPd, bytes.data(), 0x1001, 0xfffffffffffff000, kAll));  // address range wraps
  // Start address contradicts zero-based.
  EXPECT_FALSE(table.add(kPd, bytes.data(), 100, 1, kAll | IBV_ACCESS_ZERO_BASED));
}

TEST_F(Memory, inconsistent_or_unknown_access_flags_are_rejected) {
  EXPECT_FALSE(table.add(kPd, bytes.data(), 8, IBV_ACCESS_REMOTE_WRITE));
  EXPECT_FALSE(table.add(kPd, bytes.data(), 8, IBV_ACCESS_REMOTE_ATOMIC));
  EXPECT_FALSE(table.add(kPd, bytes.data(), 8, kAccessFlushPersistent));
  EXPECT_TRUE(table.add(kPd, bytes.data(), 8, IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB));
  EXPECT_TRUE(table.add(kPd, bytes.data(), 8, IBV_ACCESS_REMOTE_READ));
  EXPECT_TRUE(table.add(kPd, bytes.data(), 8, IBV_ACCESS_RELAXED_ORDERING | 1 << 25));  // hints are ignored
}

TEST_F(Memory, null_region_permits_only_local_access_and_no_window) {
  const MemoryKey key = *table.add_null(kPd);
  uint8_t* where = bytes.data();
  for (const Access access : {Access::kLocalRead, Access::kLocalWrite}) {
    EXPECT_EQ(table.check(key, kPd, UINT64_MAX, 100, access, &where), AccessOutcome::kNull);
    EXPECT_EQ(where, nullptr);
    EXPECT_EQ(table.check(next(key), kPd, 0, 1, access, &where), AccessOutcome::kUnknownKey);
    EXPECT_EQ(table.check(key, kOtherPd, 0, 1, access, &where), AccessOutcome::kWrongDomain);
  }
  EXPECT_EQ(table.check_remote(key, kMe, 0, 1, Access::kRemoteRead, &where), AccessOutcome::kUnknownKey);
  EXPECT_EQ(table.check_remote_key(key, kMe, Access::kRemoteWrite), AccessOutcome::kUnknownKey);
  EXPECT_EQ(table.find_region(key), nullptr);
  const MemoryKey window = *table.add_window(kPd, 1);
  EXPECT_EQ(bind(window, next(window), key, 0, 1), BindOutcome::kUnknownRegion);
  EXPECT_EQ(bind(key, next(key), region(), at(0), 1), BindOutcome::kUnknownWindow);
  EXPECT_FALSE(table.invalidate(kMe, key));
  EXPECT_FALSE(table.replace(key, kPd, bytes.data(), 8, at(0), kAll));
  EXPECT_TRUE(table.check_removable(key));
  EXPECT_FALSE(table.remove(next(key)));
  EXPECT_TRUE(table.remove(key));
  EXPECT_EQ(table.check(key, kPd, 0, 1, Access::kLocalRead, &where), AccessOutcome::kUnknownKey);
}

TEST_F(Memory, replaced_region_keeps_only_its_key) {
  const MemoryKey key = region();
  ASSERT_TRUE(table.replace(key, kOtherPd, bytes.data() + 16, 32, 0x1000, IBV_ACCESS_REMOTE_READ));
  EXPECT_EQ(remote(key, at(16)), -1);
  const Accessor other{kOtherPd, Qpn{17}};
  EXPECT_EQ(remote(key, 0x1000 + 31, 1, Access::kRemoteRead, other), 47);
  EXPECT_EQ(remote(key, 0x1000, 1, Access::kRemoteRead), -1);
  EXPECT_EQ(remote(key, 0x1000, 1, Access::kRemoteWrite, other), -1);
  EXPECT_FALSE(table.replace(key, kPd, bytes.data(), 8, 0, IBV_ACCESS_REMOTE_WRITE));
  EXPECT_EQ(remote(key, 0x1000, 1, Access::kRemoteRead, other), 16) << "a refused change changes nothing";
  EXPECT_FALSE(table.replace(next(key), kPd, bytes.data(), 8, 0, 0));
}

TEST_F(Memory, type_1_window_grants_a_part_of_its_region_under_its_next_key) {
  const MemoryKey r = region(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
  const MemoryKey w0 = *table.add_window(kPd, 1);
  EXPECT_EQ(remote(w0, at(0)), -1);
  const MemoryKey w1 = next(w0);
  ASSERT_EQ(bind(w0, w1, r, at(100), 50, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE),
            BindOutcome::kBound);
  EXPECT_EQ(remote(w1, at(100), 50), 100);
  EXPECT_EQ(remote(w1, at(149), 1, Access::kRemoteWrite, kOther), 149) << "any queue pair of the domain";
  EXPECT_EQ(remote(w1, at(100), 8, Access::kRemoteAtomic), -1);
  EXPECT_EQ(remote(w1, at(99)), -1);
  EXPECT_EQ(remote(w1, at(149), 2), -1);
  EXPECT_EQ(remote(w1, at(100), 1, Access::kRemoteRead, {kOtherPd, Qpn{17}}), -1);
  EXPECT_EQ(remote(w0, at(100)), -1) << "the old key";
  EXPECT_EQ(remote(r, at(100)), -1) << "the region itself gives nothing to peers";
  EXPECT_EQ(local(w1, at(100)), -1) << "a window has no L_Key";
  ASSERT_EQ(bind(w0, next(w1), r, at(200), 50), BindOutcome::kBound);  // rebinds without an invalidation
  EXPECT_EQ(remote(w1, at(100)), -1);
  EXPECT_EQ(remote(next(w1), at(200)), 200);
  ASSERT_EQ(bind(w0, next(w0), MemoryKey{0}, 0, 0), BindOutcome::kBound);  // unbinds
  EXPECT_EQ(remote(next(w0), at(200)), -1);
  EXPECT_TRUE(table.check_removable(r));
}

TEST_F(Memory, type_2_window_belongs_to_the_queue_pair_that_bound_it) {
  const MemoryKey r = region();
  const MemoryKey w = *table.add_window(kPd, 2);
  ASSERT_EQ(bind(w, next(w), r, at(100), 50), BindOutcome::kBound);
  const MemoryKey key = next(w);
  EXPECT_EQ(remote(key, at(100)), 100);
  uint8_t* where = nullptr;
  EXPECT_EQ(table.check_remote(key, kOther, at(100), 1, Access::kRemoteRead, &where),
            AccessOutcome::kWrongQueuePair);
  EXPECT_EQ(bind(w, next(key), r, at(0), 8), BindOutcome::kStillBound);
  EXPECT_FALSE(table.invalidate(kOther, key));
  EXPECT_FALSE(table.invalidate(kMe, w)) << "an old key";
  EXPECT_FALSE(table.invalidate({kOtherPd, kMe.qp}, key));
  EXPECT_EQ(remote(key, at(100)), 100);
  EXPECT_TRUE(table.invalidate(kMe, key));
  EXPECT_EQ(remote(key, at(100)), -1);
  EXPECT_FALSE(table.invalidate(kMe, key)) << "there is nothing left";
  EXPECT_EQ(bind(w, next(key), r, at(0), 8, IBV_ACCESS_REMOTE_READ, kOther), BindOutcome::kBound);
  EXPECT_EQ(remote(next(key), at(0), 1, Access::kRemoteRead, kOther), 0);
}

TEST_F(Memory, zero_based_type_2_window_is_addressed_by_offset) {
  const MemoryKey r = region();
  const MemoryKey w = *table.add_window(kPd, 2);
  ASSERT_EQ(bind(w, w, r, at(100), 50, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED), BindOutcome::kBound);
  EXPECT_EQ(remote(w, 0, 50), 100);
  EXPECT_EQ(remote(w, 0, 51), -1);
  EXPECT_EQ(remote(w, at(100)), -1);
  const MemoryKey zero = region(kAll | IBV_ACCESS_ZERO_BASED);
  const MemoryKey w2 = *table.add_window(kPd, 2);
  ASSERT_EQ(bind(w2, w2, zero, 100, 50), BindOutcome::kBound);
  EXPECT_EQ(remote(w2, 149), 149);
  EXPECT_EQ(remote(w2, 0), -1);
}

TEST_F(Memory, bind_that_violates_a_rule_is_rejected_without_a_change) {
  const MemoryKey r = region();
  const MemoryKey read_only = region(IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND);
  const MemoryKey unbindable = region(kAll & ~IBV_ACCESS_MW_BIND);
  const MemoryKey foreign = region(kAll, kOtherPd);
  const MemoryKey foreign_window = *table.add_window(kOtherPd, 2);
  for (const int type : {1, 2}) {
    SCOPED_TRACE(type);
    const MemoryKey w = *table.add_window(kPd, type);
    const MemoryKey n = next(w);
    EXPECT_EQ(bind(MemoryKey{w.value() ^ 0x100}, MemoryKey{n.value() ^ 0x100}, r, at(0), 8),
              BindOutcome::kUnknownWindow);
    EXPECT_EQ(bind(r, next(r), r, at(0), 8), BindOutcome::kUnknownWindow);
    EXPECT_EQ(bind(foreign_window, foreign_window, r, at(0), 8), BindOutcome::kWrongDomain);
    EXPECT_EQ(bind(w, n, foreign, at(0), 8), BindOutcome::kWrongDomain);
    EXPECT_EQ(bind(w, n, MemoryKey{r.value() ^ 1}, at(0), 8), BindOutcome::kUnknownRegion);
    EXPECT_EQ(bind(w, n, w, at(0), 8), BindOutcome::kUnknownRegion);
    EXPECT_EQ(bind(w, n, unbindable, at(0), 8), BindOutcome::kNotBindable);
    EXPECT_EQ(bind(w, n, read_only, at(0), 8, IBV_ACCESS_REMOTE_WRITE), BindOutcome::kNotPermitted);
    EXPECT_EQ(bind(w, n, read_only, at(0), 8, IBV_ACCESS_REMOTE_ATOMIC), BindOutcome::kNotPermitted);
    EXPECT_EQ(bind(w, n, r, at(0), 8, IBV_ACCESS_ON_DEMAND), BindOutcome::kNotPermitted);
    EXPECT_EQ(bind(w, n, r, at(0), 4097), BindOutcome::kOutOfRange);
    EXPECT_EQ(bind(w, n, r, at(4096), 1), BindOutcome::kOutOfRange);
    EXPECT_EQ(bind(w, n, r, at(0) - 1, 8), BindOutcome::kOutOfRange);
    EXPECT_EQ(bind(w, n, r, at(8), UINT64_MAX), BindOutcome::kOutOfRange);
    EXPECT_EQ(remote(n, at(0)), -1);
    EXPECT_EQ(remote(w, at(0)), -1);
    EXPECT_EQ(bind(w, n, read_only, at(0), 8), BindOutcome::kBound);
  }
  const MemoryKey w1 = *table.add_window(kPd, 1), w2 = *table.add_window(kPd, 2);
  EXPECT_EQ(bind(w1, w1, r, at(0), 8, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED),
            BindOutcome::kNotPermitted);
  EXPECT_EQ(bind(w2, w2, r, at(0), 0), BindOutcome::kEmpty);
  EXPECT_FALSE(table.invalidate(kMe, w1)) << "type 1 cannot be invalidated";
  EXPECT_FALSE(table.invalidate(kMe, r)) << "a region cannot either";
}

// As NICs do. The program chooses only these bits.
TEST_F(Memory, bind_uses_the_low_8_bits_of_the_new_key_and_the_index_of_the_window) {
  const MemoryKey r = region();
  for (const int type : {1, 2}) {
    SCOPED_TRACE(type);
    const MemoryKey w = *table.add_window(kPd, type);
    ASSERT_EQ(bind(w, MemoryKey{0x42}, r, at(100), 8), BindOutcome::kBound);
    EXPECT_EQ(remote(MemoryKey{(w.value() & ~0xffU) | 0x42}, at(100)), 100);
    EXPECT_EQ(remote(MemoryKey{0x42}, at(100)), -1);
  }
}

// Local write access concerns L_Keys, bind access the windows of a region; a window has neither.
TEST_F(Memory, bind_ignores_local_write_access_bind_access_and_hints) {
  const MemoryKey read_only = region(IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND);
  for (const int type : {1, 2}) {
    SCOPED_TRACE(type);
    const MemoryKey w = *table.add_window(kPd, type);
    ASSERT_EQ(bind(w, w, read_only, at(100), 8,
                   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND |
                       IBV_ACCESS_RELAXED_ORDERING),
              BindOutcome::kBound);
    EXPECT_EQ(remote(w, at(100)), 100);
    EXPECT_EQ(remote(w, at(100), 1, Access::kRemoteWrite), -1);
    EXPECT_EQ(local(w, at(100)), -1);
  }
}

TEST_F(Memory, region_with_bound_windows_is_busy_unless_removal_is_forced) {
  const MemoryKey r = region();
  const MemoryKey w1 = *table.add_window(kPd, 1), w2 = *table.add_window(kPd, 2);
  ASSERT_EQ(bind(w1, w1, r, at(0), 8), BindOutcome::kBound);
  ASSERT_EQ(bind(w2, w2, r, at(0), 8), BindOutcome::kBound);
  EXPECT_EQ(table.check_removable(r).error().code, EBUSY);
  EXPECT_EQ(table.replace(r, kPd, bytes.data(), 8, 0, kAll).error().code, EBUSY);
  EXPECT_TRUE(table.remove(w1));
  EXPECT_EQ(table.check_removable(r).error().code, EBUSY);
  EXPECT_TRUE(table.invalidate(kMe, w2));
  EXPECT_TRUE(table.check_removable(r));
  ASSERT_EQ(bind(w2, next(w2), r, at(0), 8), BindOutcome::kBound);
  EXPECT_TRUE(table.remove(r));
  EXPECT_EQ(remote(next(w2), at(0)), -1);
  EXPECT_EQ(bind(w2, w2, region(), at(0), 8), BindOutcome::kBound) << "the window itself lives on";
}

TEST_F(Memory, removal_of_a_queue_pair_unbinds_only_its_type_2_windows) {
  const MemoryKey r = region();
  const MemoryKey mine = *table.add_window(kPd, 2), its = *table.add_window(kPd, 2),
                  shared = *table.add_window(kPd, 1);
  bind(mine, mine, r, at(0), 8);
  bind(its, its, r, at(0), 8, IBV_ACCESS_REMOTE_READ, kOther);
  bind(shared, shared, r, at(0), 8);
  table.unbind_windows_of(kMe.qp);
  EXPECT_EQ(remote(mine, at(0)), -1);
  EXPECT_EQ(remote(its, at(0), 1, Access::kRemoteRead, kOther), 0);
  EXPECT_EQ(remote(shared, at(0)), 0);
}

// Naive model: a map from keys to what they permit.
TEST_F(Memory, random_binds_and_invalidations_match_a_map_of_keys) {
  struct Open {
    uint64_t start, length, host;
    int access;
    uint32_t qp;  // 0: any
  };
  Rng rng(3);
  const auto draw = [&](uint64_t n) { return rng.next() % n; };
  std::vector<MemoryKey> regions, windows;
  for (int i = 0; i < 4; ++i) regions.push_back(region());
  for (int i = 0; i < 8; ++i) windows.push_back(*table.add_window(kPd, i % 2 + 1));
  std::map<uint32_t, Open> model;  // by window index: the valid key
  std::map<uint32_t, uint32_t> key_of;
  for (int step = 0; step < 50'000; ++step) {
    const size_t i = draw(windows.size());
    const bool type2 = i % 2 == 1;
    const uint32_t index = key_index(windows[i]);
    const MemoryKey new_key{index << 8 | static_cast<uint32_t>(draw(4))};
    const Accessor who = draw(2) == 0 ? kMe : kOther;
    if (draw(3) > 0) {
      const uint64_t start = draw(5000), length = draw(200);
      const int access = static_cast<int>(draw(2)) * IBV_ACCESS_REMOTE_READ |
                         static_cast<int>(draw(2)) * IBV_ACCESS_REMOTE_WRITE;
      const bool fits = start + length <= 4096 || (length == 0);
      const bool legal = fits && (!type2 || (length > 0 && !model.contains(index)));
      ASSERT_EQ(
          bind(windows[i], new_key, regions[draw(4)], at(start), length, access, who) == BindOutcome::kBound,
          legal);
      if (!legal) continue;
      key_of[index] = new_key.value();
      model.erase(index);
      if (length > 0) model[index] = {at(start), length, start, access, type2 ? who.qp.value() : 0};
    } else if (draw(2) == 0) {
      const auto open = model.find(index);
      const bool legal = type2 && open != model.end() && key_of[index] == new_key.value() &&
                         open->second.qp == who.qp.value();
      ASSERT_EQ(table.invalidate(who, new_key), legal);
      if (legal) model.erase(open);
    } else {
      const uint64_t va = at(draw(4200)), length = 1 + draw(64);
      const Access needed = draw(2) == 0 ? Access::kRemoteRead : Access::kRemoteWrite;
      const auto open = model.find(index);
      const bool legal = open != model.end() && key_of[index] == new_key.value() &&
                         (open->second.qp == 0 || open->second.qp == who.qp.value()) &&
                         (open->second.access & static_cast<int>(needed)) != 0 && va >= open->second.start &&
                         va + length <= open->second.start + open->second.length;
      ASSERT_EQ(remote(new_key, va, length, needed, who) >= 0, legal) << step;
    }
  }
}

TEST_F(Memory, lookup_during_a_bind_returns_the_old_or_the_new_window) {
  const MemoryKey low = *table.add(kPd, bytes.data(), 1024, 0x10000, kAll);
  const MemoryKey high = *table.add(kPd, bytes.data() + 2048, 1024, 0x90000, kAll);
  const MemoryKey w = *table.add_window(kPd, 1);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> seen{0}, wrong{0};
  const auto look = [&] {
    while (!stop.load()) {
      uint8_t* where = nullptr;
      if (table.check_remote(w, kMe, 0x10100, 64, Access::kRemoteRead, &where) == AccessOutcome::kAllowed) {
        seen.fetch_add(1);
        if (where != bytes.data() + 0x100) wrong.fetch_add(1);
      }
      if (table.check_remote(w, kMe, 0x90200, 16, Access::kRemoteWrite, &where) == AccessOutcome::kAllowed) {
        seen.fetch_add(1);
        if (where != bytes.data() + 2048 + 0x200) wrong.fetch_add(1);
      }
      // The range that is readable is never writable, and vice versa.
      if (table.check_remote(w, kMe, 0x10100, 1, Access::kRemoteWrite, &where) == AccessOutcome::kAllowed ||
          table.check_remote(w, kMe, 0x90200, 1, Access::kRemoteRead, &where) == AccessOutcome::kAllowed)
        wrong.fetch_add(1);
    }
  };
  std::thread first(look), second(look);
  for (int i = 0; i < 20'000 || seen.load() < 100; ++i) {
    if (bind(w, w, low, 0x10100, 64, IBV_ACCESS_REMOTE_READ) != BindOutcome::kBound) break;
    if (i % 100 == 0) std::this_thread::yield();
    if (bind(w, w, high, 0x90200, 16, IBV_ACCESS_REMOTE_WRITE) != BindOutcome::kBound) break;
    if (i % 100 == 50) std::this_thread::yield();
    if (i > 5'000'000) break;
  }
  stop = true;
  first.join();
  second.join();
  EXPECT_GT(seen.load(), 0U);
  EXPECT_EQ(wrong.load(), 0U);
}

}  // namespace
}  // namespace roci::test

#include "wire/cnm/l3_cnm_guard.hpp"

#include <gtest/gtest.h>

#include <map>

#include "base/rng.hpp"

namespace roci {
namespace {

using Verdict = L3CnmGuard::Verdict;
constexpr Nanos kNoon{1'800'000'000'000'000'000};

CongestionPointId point(uint16_t queue) { return {{{2, 0, 0, 0, 0, 1}}, Be16{queue}}; }

TEST(L3CnmGuard, accepts_each_message_once_and_in_order) {
  L3CnmGuard guard(16, 5s, 1);
  L3CnmSequence sequence;
  const uint32_t first = sequence.next(kNoon), second = sequence.next(kNoon), third = sequence.next(kNoon);
  EXPECT_EQ(guard.take(point(1), first, kNoon), Verdict::kNew);
  EXPECT_EQ(guard.take(point(1), first, kNoon), Verdict::kRepeated);
  EXPECT_EQ(guard.take(point(1), third, kNoon), Verdict::kNew);
  EXPECT_EQ(guard.take(point(1), second, kNoon), Verdict::kRepeated) << "overtaken";
  EXPECT_EQ(guard.take(point(2), first, kNoon), Verdict::kNew) << "each point counts for itself";
}

TEST(L3CnmGuard, accepts_clock_difference_up_to_tolerance) {
  const uint32_t ticks = l3_cnm_ticks(kNoon);
  for (const auto& [off, expected] : {std::pair{-500'000, Verdict::kNew},
                                      {-500'001, Verdict::kTooOld},
                                      {500'000, Verdict::kNew},
                                      {500'001, Verdict::kTooOld}}) {
    L3CnmGuard guard(16, 5s, 1);
    EXPECT_EQ(guard.take(point(1), ticks + static_cast<uint32_t>(off), kNoon), expected) << off;
  }
}

// A replayed message, sent until it is too old.
TEST(L3CnmGuard, replayed_message_is_never_accepted) {
  L3CnmGuard guard(16, 5s, 1);
  const uint32_t recorded = l3_cnm_ticks(kNoon + 5s);  // of a clock that is ahead by the maximum
  EXPECT_EQ(guard.take(point(1), recorded, kNoon), Verdict::kNew);
  for (Nanos later = 0s; later < 60s; later += 100ms)
    EXPECT_NE(guard.take(point(1), recorded, kNoon + later), Verdict::kNew) << later.count();
}

TEST(L3CnmGuard, accepts_sequence_wraparound) {
  const Nanos before{static_cast<int64_t>((uint64_t{1} << 32) * 10'000 * 37 - 20'000)};
  L3CnmGuard guard(16, 5s, 1);
  L3CnmSequence sequence;
  for (Nanos now = before; now < before + 100us; now += 10us)
    EXPECT_EQ(guard.take(point(1), sequence.next(now), now), Verdict::kNew) << (now - before).count();
}

TEST(L3CnmGuard, full_guard_rejects_new_points_until_entries_expire) {
  L3CnmGuard guard(8, 5s, 1);
  for (uint16_t i = 0; i < 8; ++i) EXPECT_EQ(guard.take(point(i), l3_cnm_ticks(kNoon), kNoon), Verdict::kNew);
  EXPECT_EQ(guard.take(point(8), l3_cnm_ticks(kNoon), kNoon), Verdict::kFull);
  EXPECT_EQ(guard.take(point(3), l3_cnm_ticks(kNoon) + 1, kNoon), Verdict::kNew);
  EXPECT_EQ(guard.take(point(8), l3_cnm_ticks(kNoon + 11s), kNoon + 11s), Verdict::kNew);
}

TEST(L3CnmGuard, agrees_with_a_model_over_random_messages) {
  constexpr uint64_t kSeed = 20261122;
  RecordProperty("seed", std::to_string(kSeed));
  Rng rng{kSeed};
  L3CnmGuard guard(4096, 1s, 7);
  std::map<uint16_t, int64_t> last;  // in ticks, without wrap
  Nanos now = kNoon;
  for (int i = 0; i < 100'000; ++i) {
    now += Nanos{static_cast<int64_t>(rng.below(100'000))};
    const auto queue = static_cast<uint16_t>(rng.below(20));
    const int64_t ticks = now / kL3CnmTick + static_cast<int64_t>(rng.below(240'000)) - 120'000;
    const int64_t off = ticks - now / kL3CnmTick;
    const bool in_time = off >= -100'000 && off <= 100'000;
    const bool is_new = !last.contains(queue) || ticks > last[queue];
    const Verdict expected = !in_time ? Verdict::kTooOld : is_new ? Verdict::kNew : Verdict::kRepeated;
    ASSERT_EQ(guard.take(point(queue), static_cast<uint32_t>(ticks), now), expected) << i;
    if (expected == Verdict::kNew) last[queue] = ticks;
  }
}

}  // namespace
}  // namespace roci

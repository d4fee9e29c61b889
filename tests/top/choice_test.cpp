// Tests of the selection of the queue pairs to display, if there are too many.
#include <gtest/gtest.h>

#include "roci-top/readers/queue_pair_choice.hpp"

namespace roci::top {
namespace {

using Numbers = std::vector<uint32_t>;

// Returns queue pairs 1 to `count`, read at intervals of 1 ms; psns(number) is the current PSN.
template <class Psns>
std::vector<ActivitySample> all(Nanos at, uint32_t count, Psns psns) {
  std::vector<ActivitySample> out;
  for (uint32_t number = 1; number <= count; ++number)
    out.push_back({number, psns(number) & 0xffffff, at + number * Nanos{1ms}});
  return out;
}

TEST(QueuePairChoice, selects_all_queue_pairs_up_to_the_limit) {
  QueuePairChoice choice(5);
  const auto chosen = choice.choose("h", all(1s, 5, [](uint32_t) { return 0U; }));
  EXPECT_EQ(chosen.shown, (Numbers{1, 2, 3, 4, 5}));
  EXPECT_EQ(chosen.requested, chosen.shown);
}

TEST(QueuePairChoice, shows_busiest_queue_pairs_one_poll_after_detection) {
  QueuePairChoice choice(2);
  const auto begin = choice.choose("h", all(2s, 9, [](uint32_t n) { return n * 1'000'000; }));
  EXPECT_EQ(begin.shown, (Numbers{1, 2})) << "how far they are says nothing";
  // 4 and 7 have sent packets; the PSN of 7 wrapped around.
  const auto found = choice.choose("h", all(3s, 9, [](uint32_t n) {
                                     return n * 1'000'000 + (n == 4 ? 10 : n == 7 ? 16'000'000U : 0);
                                   }));
  EXPECT_EQ(found.shown, (Numbers{1, 2}));
  EXPECT_EQ(found.requested, (Numbers{1, 2, 4, 7}));
  const auto shown =
      choice.choose("h", all(4s, 9, [](uint32_t n) {
                      return n * 1'000'000 + (n == 4 ? 20 : n == 7 ? 16'000'001U : 0) + (n == 9 ? 5 : 0);
                    }));
  EXPECT_EQ(shown.shown, (Numbers{4, 7}));
  EXPECT_EQ(shown.requested, (Numbers{4, 7, 9}));
}

TEST(QueuePairChoice, removes_destroyed_queue_pairs_and_separates_hosts) {
  QueuePairChoice choice(2);
  choice.choose("h", all(5s, 4, [](uint32_t) { return 0U; }));
  choice.choose("h", all(6s, 4, [](uint32_t n) { return n; }));
  EXPECT_EQ(choice.choose("other", all(7s, 4, [](uint32_t n) { return 9 - n; })).shown, (Numbers{1, 2}));
  EXPECT_EQ(choice.choose("h", all(8s, 3, [](uint32_t n) { return n; })).shown, Numbers{3})
      << "4 is not there";
  EXPECT_EQ(choice.choose("h", all(9s, 2, [](uint32_t n) { return n; })).shown, (Numbers{1, 2}));
}

TEST(QueuePairChoice, ranks_by_packets_per_second) {
  QueuePairChoice choice(1);
  const auto look = [](Nanos at, Nanos late, uint32_t second) {
    return std::vector<ActivitySample>{{1, at == 1s ? 0U : 1000U, at},
                                       {2, at == 1s ? 0U : second, at + late}};
  };
  choice.choose("h", look(1s, 0s, 0));
  // 1,001 packets in 1.1 s are a lower rate than 1,000 packets in 1 s.
  EXPECT_EQ(choice.choose("h", look(2s, 100ms, 1001)).requested, Numbers{1});
  QueuePairChoice other(1);
  other.choose("h", look(1s, 0s, 0));
  EXPECT_EQ(other.choose("h", look(2s, 100ms, 1101)).requested, (Numbers{1, 2}));
}

}  // namespace
}  // namespace roci::top

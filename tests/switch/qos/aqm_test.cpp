#include "switch/qos/aqm.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace roci {
namespace {

constexpr uint64_t kSeed = 20261121;
constexpr int kArrivals = 10'000;

// Bound that 99 % of all samples of a binomial share meet: 2.576 standard deviations.
double confidence(double p) { return 2.576 * std::sqrt(p * (1 - p) / kArrivals); }

AqmConfig both_profiles() {
  AqmConfig config;
  config.mark = {.kmin = 100_KiB, .kmax = 400_KiB, .pmax = 0.2};
  config.drop = {.kmin = 50_KiB, .kmax = 150_KiB, .pmax = 0.8};
  return config;
}

double share(Aqm& aqm, uint64_t queue, Ecn ecn, AqmVerdict wanted) {
  int count = 0;
  for (int i = 0; i < kArrivals; ++i) count += aqm.on_arrival(queue, ecn, Nanos{i}) == wanted;
  return static_cast<double>(count) / kArrivals;
}

TEST(Aqm, mark_and_drop_probabilities_follow_the_curves) {
  Aqm aqm(both_profiles(), 100_Gbps, kSeed);
  for (uint64_t kib = 0; kib <= 450; kib += 25) {
    const uint64_t queue = kib << 10;
    const double mark = kib < 100 ? 0 : kib >= 400 ? 1 : static_cast<double>(kib - 100) / 300 * 0.2;
    const double drop = kib < 50 ? 0 : kib >= 150 ? 1 : static_cast<double>(kib - 50) / 100 * 0.8;
    EXPECT_NEAR(share(aqm, queue, Ecn::kEct0, AqmVerdict::kMark), mark, confidence(mark)) << kib << " KiB";
    EXPECT_NEAR(share(aqm, queue, Ecn::kNotEct, AqmVerdict::kDrop), drop, confidence(drop)) << kib << " KiB";
    EXPECT_EQ(share(aqm, queue, Ecn::kEct1, AqmVerdict::kDrop), 0)
        << "what is ECN-capable is not dropped early";
    EXPECT_EQ(share(aqm, queue, Ecn::kNotEct, AqmVerdict::kMark), 0);
  }
}

TEST(Aqm, dequeue_marking_follows_the_curve_and_drops_stay_at_enqueue) {
  AqmConfig config = both_profiles();
  config.mark_at = AqmConfig::MarkAt::kDequeue;
  Aqm aqm(config, 100_Gbps, kSeed);
  for (const uint64_t kib : {0, 99, 100, 175, 250, 325, 399, 400, 500}) {
    const double p = kib < 100 ? 0 : kib >= 400 ? 1 : static_cast<double>(kib - 100) / 300 * 0.2;
    int marked = 0;
    for (int i = 0; i < kArrivals; ++i)
      marked += aqm.on_departure(kib << 10, Ecn::kEct0, Nanos{i}) == AqmVerdict::kMark;
    EXPECT_NEAR(static_cast<double>(marked) / kArrivals, p, confidence(p)) << kib << " KiB";
    EXPECT_EQ(share(aqm, kib << 10, Ecn::kEct0, AqmVerdict::kMark), 0) << "not on arrival";
    EXPECT_EQ(aqm.on_departure(kib << 10, Ecn::kNotEct, Nanos{0}), AqmVerdict::kPass);
  }
  EXPECT_EQ(share(aqm, 150 << 10, Ecn::kNotEct, AqmVerdict::kDrop), 1);
}

TEST(Aqm, curve_thresholds_are_exact_to_the_byte) {
  AqmConfig config;
  config.mark = {.kmin = Bytes{1000}, .kmax = Bytes{2000}, .pmax = 0};
  config.drop = {.kmin = Bytes{3000}, .kmax = Bytes{3000}};  // step at K
  Aqm aqm(config, 100_Gbps, kSeed);
  EXPECT_EQ(share(aqm, 999, Ecn::kEct0, AqmVerdict::kMark), 0);
  EXPECT_EQ(share(aqm, 1999, Ecn::kEct0, AqmVerdict::kMark), 0) << "pmax is 0";
  EXPECT_EQ(share(aqm, 2000, Ecn::kEct0, AqmVerdict::kMark), 1) << "all from kmax on";
  EXPECT_EQ(share(aqm, 2999, Ecn::kNotEct, AqmVerdict::kDrop), 0);
  EXPECT_EQ(share(aqm, 3000, Ecn::kNotEct, AqmVerdict::kDrop), 1);

  config.mark = {.kmin = Bytes{1000}, .kmax = Bytes{2000}, .pmax = 1};
  aqm.configure(config);
  EXPECT_EQ(share(aqm, 999, Ecn::kEct0, AqmVerdict::kMark), 0);
  EXPECT_EQ(share(aqm, 1000, Ecn::kEct0, AqmVerdict::kMark), 0) << "the line begins at 0";
  EXPECT_NEAR(share(aqm, 1999, Ecn::kEct0, AqmVerdict::kMark), 0.999, confidence(0.999));
  EXPECT_EQ(share(aqm, 2000, Ecn::kEct0, AqmVerdict::kMark), 1);
}

TEST(Aqm, all_packets_pass_without_curves) {
  Aqm aqm({}, 100_Gbps, kSeed);
  EXPECT_EQ(share(aqm, UINT64_MAX / 2, Ecn::kEct0, AqmVerdict::kPass), 1);
  EXPECT_EQ(share(aqm, UINT64_MAX / 2, Ecn::kNotEct, AqmVerdict::kPass), 1);
}

TEST(Aqm, average_queue_follows_by_its_weight_and_decays_while_empty) {
  AqmConfig config;
  config.weight = 0.25;
  config.mark = {.kmin = Bytes{5000}, .kmax = Bytes{5000}};
  Aqm aqm(config, 1_Gbps, kSeed);
  // Average queue 10000 (1 - 0.75^n): 2500, 4375, 5781.
  EXPECT_EQ(aqm.on_arrival(10'000, Ecn::kEct0, 1us), AqmVerdict::kPass);
  EXPECT_EQ(aqm.on_arrival(10'000, Ecn::kEct0, 2us), AqmVerdict::kPass);
  EXPECT_EQ(aqm.on_arrival(10'000, Ecn::kEct0, 3us), AqmVerdict::kMark);
  // The queue is empty from 4 us on. 1024 bytes take 8192 ns, so 163,840 ns count as 20 packets: 5781 x 0.75^20 is
  // 18.
  EXPECT_EQ(aqm.on_departure(0, Ecn::kEct0, 4us), AqmVerdict::kPass);
  EXPECT_EQ(aqm.on_arrival(0, Ecn::kEct0, 4us + 163'840ns), AqmVerdict::kPass);
  // Three arrivals are needed again.
  EXPECT_EQ(aqm.on_arrival(10'000, Ecn::kEct0, 170us), AqmVerdict::kPass);
  EXPECT_EQ(aqm.on_arrival(10'000, Ecn::kEct0, 171us), AqmVerdict::kPass);
  EXPECT_EQ(aqm.on_arrival(10'000, Ecn::kEct0, 172us), AqmVerdict::kMark);
}

TEST(Aqm, same_seed_makes_the_same_decisions) {
  Aqm one(both_profiles(), 100_Gbps, 7), other(both_profiles(), 100_Gbps, 7);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(one.on_arrival(250 << 10, Ecn::kEct0, Nanos{i}),
              other.on_arrival(250 << 10, Ecn::kEct0, Nanos{i}));
  }
}

}  // namespace
}  // namespace roci

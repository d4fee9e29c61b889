#include "port/lossy_port.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "port/eal.hpp"
#include "support/must.hpp"

namespace roci {
namespace {

using test::must;

constexpr uint32_t kBurst = 32;

// Frames without end, numbered in their first bytes.
class Source final : public Port {
 public:
  explicit Source(std::shared_ptr<MbufPool> pool) : pool_(std::move(pool)) {}
  uint16_t rx_burst(std::span<rte_mbuf*> out, Nanos /*now*/) override {
    for (rte_mbuf*& frame : out) {
      frame = rte_pktmbuf_alloc(pool_->get());
      *reinterpret_cast<uint64_t*>(rte_pktmbuf_append(frame, 64)) = next_++;
    }
    return static_cast<uint16_t>(out.size());
  }
  uint16_t tx_burst(std::span<rte_mbuf*> frames, Nanos /*now*/) override {
    return static_cast<uint16_t>(frames.size());
  }
  [[nodiscard]] Nanos next_arrival() const override { return Nanos{0}; }
  [[nodiscard]] const PortCapabilities& capabilities() const override { return capabilities_; }
  [[nodiscard]] MacAddress mac() const override { return {}; }
  [[nodiscard]] std::string_view name() const override { return "source"; }
  [[nodiscard]] PortStats stats() const override { return {}; }

 private:
  std::shared_ptr<MbufPool> pool_;
  PortCapabilities capabilities_;
  uint64_t next_ = 0;
};

// The numbers that come through of so many frames.
std::vector<uint64_t> through(double probability, uint64_t seed, uint32_t frames) {
  must(start_eal());
  auto pool = must(MbufPool::create("lossy", 4 * kBurst, 256));
  LossyPort port(std::make_unique<Source>(pool), probability, seed);
  std::vector<uint64_t> arrived;
  std::array<rte_mbuf*, kBurst> burst;
  for (uint32_t offered = 0; offered < frames; offered += kBurst) {
    const uint16_t count = port.rx_burst(burst, Nanos{0});
    for (uint16_t i = 0; i < count; ++i) arrived.push_back(*rte_pktmbuf_mtod(burst[i], const uint64_t*));
    rte_pktmbuf_free_bulk(burst.data(), count);
  }
  EXPECT_EQ(arrived.size() + port.lost(), frames);
  EXPECT_EQ(rte_mempool_in_use_count(pool->get()), 0U) << "lost frames must go back to their pool";
  return arrived;
}

TEST(LossyPort, WithoutLossEverythingComesThrough) { EXPECT_EQ(through(0, 1, 32'000).size(), 32'000U); }

TEST(LossyPort, AboutThePartThatWasAskedForIsLostAndTheRestKeepsItsOrder) {
  for (const double probability : {0.001, 0.01, 0.5}) {
    const std::vector<uint64_t> arrived = through(probability, 7, 320'000);
    const double lost = 1 - static_cast<double>(arrived.size()) / 320'000;
    EXPECT_NEAR(lost, probability, 0.25 * probability);
    EXPECT_TRUE(std::is_sorted(arrived.begin(), arrived.end()));
  }
}

TEST(LossyPort, ASeedLosesTheSameFramesAgainAndAnotherOneOthers) {
  EXPECT_EQ(through(0.1, 3, 3200), through(0.1, 3, 3200));
  EXPECT_NE(through(0.1, 3, 3200), through(0.1, 4, 3200));
}

}  // namespace
}  // namespace roci

#include "port/sim/faulty_port.hpp"
#include "port/dpdk/eal.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/time/virtual_runner.hpp"
#include "port/sim/borrowed_port.hpp"
#include "port/sim/sim_link.hpp"
#include "support/ports/frames.hpp"

namespace roci {
namespace {

constexpr uint32_t kFramesPerRate = 50'000;
constexpr Nanos kEach = 100ns;

struct Seen {
  Nanos at{0};
  uint32_t number = 0;
  std::vector<uint8_t> bytes;
  friend bool operator==(const Seen&, const Seen&) = default;
};

// Expects a count within the bound that 99.9 % of all random samples meet. The seeds are fixed.
void expect_rate(uint64_t hits, uint64_t tries, double p) {
  const auto n = static_cast<double>(tries);
  EXPECT_NEAR(static_cast<double>(hits), n * p, 3.29 * std::sqrt(n * p * (1 - p))) << "of " << tries;
}

// The test sends at one end of a simulated link. The port with faults is at the other end.
class FaultyPortTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(start_eal());
    auto pool = MbufPool::create("faulty", 8191, 512);
    ASSERT_TRUE(pool) << pool.error().message;
    pool_ = *pool;
  }
  void TearDown() override {
    port_.reset();
    link_.reset();
    EXPECT_EQ(pool_->in_use(), 0U) << "lost frames must go back to their pool";
  }

  void make(const PortFaults& faults, uint64_t seed = 7) {
    port_.reset();
    link_ =
        std::make_unique<SimLink>(SimLinkConfig{.a_to_b = {.delay = 1us}, .b_to_a = {.delay = 1us}}, pool_);
    port_ = std::make_unique<FaultyPort>(std::make_unique<BorrowedPort>(link_->b()), faults, seed, pool_);
    now_ = Nanos{0};
  }

  rte_mbuf* frame(uint32_t number) { return test::roce_mbuf(*pool_, {.number = number}); }
  void send(uint32_t number) {
    rte_mbuf* m = frame(number);
    ASSERT_EQ(link_->a().tx_burst({&m, 1}, now_), 1U);
  }
  // Receives frames up to `until`, polling at the times that the port reports.
  std::vector<Seen> receive(Nanos until) {
    std::vector<Seen> seen;
    for (Nanos at = port_->next_arrival(); at <= until; at = port_->next_arrival()) {
      now_ = std::max(now_, at);
      rte_mbuf* m = nullptr;
      while (port_->rx_burst({&m, 1}, now_) == 1) {
        seen.push_back({now_, test::number_of(m), test::bytes_of(m)});
        rte_pktmbuf_free(m);
      }
    }
    now_ = std::max(now_, until);
    return seen;
  }
  // Sends `frames` frames, one per kEach, and returns those that arrive.
  std::vector<Seen> carry(uint32_t frames) {
    std::vector<Seen> all;
    for (uint32_t number = 0; number < frames; ++number) {
      send(number);
      std::ranges::move(receive(now_ + kEach), std::back_inserter(all));
    }
    std::ranges::move(receive(now_ + 2s), std::back_inserter(all));
    return all;
  }
  static std::vector<uint32_t> numbers(const std::vector<Seen>& seen) {
    std::vector<uint32_t> out;
    for (const Seen& s : seen) out.push_back(s.number);
    return out;
  }

  std::shared_ptr<MbufPool> pool_;
  std::unique_ptr<SimLink> link_;
  std::unique_ptr<FaultyPort> port_;
  Nanos now_{0};
};

TEST_F(FaultyPortTest, without_faults_frames_pass_unchanged_and_without_delay) {
  make({});
  const std::vector<Seen> seen = carry(1000);
  ASSERT_EQ(seen.size(), 1000U);
  for (uint32_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(seen[i].number, i);
    EXPECT_EQ(seen[i].at, i * kEach + 1us);
    EXPECT_EQ(seen[i].bytes, test::roce_bytes({.number = i}));
  }
  EXPECT_EQ(port_->counters().lost + port_->counters().corrupted + port_->counters().delayed, 0U);
  EXPECT_EQ(port_->next_arrival(), kNever);
}

TEST_F(FaultyPortTest, drops_frames_at_the_configured_rate_and_keeps_order) {
  for (const double loss : {0.001, 0.01, 0.5}) {
    make({.loss = loss});
    const std::vector<uint32_t> arrived = numbers(carry(kFramesPerRate));
    EXPECT_EQ(arrived.size() + port_->counters().lost, kFramesPerRate);
    expect_rate(port_->counters().lost, kFramesPerRate, loss);
    EXPECT_TRUE(std::ranges::is_sorted(arrived));
  }
  make({.loss = 1});
  EXPECT_TRUE(carry(1000).empty());
  EXPECT_EQ(port_->counters().lost, 1000U);
}

TEST_F(FaultyPortTest, corrupts_frames_at_the_configured_rate_after_the_ethernet_header) {
  for (const double corruption : {0.002, 0.1, 1.0}) {
    make({.corruption = corruption});
    const std::vector<Seen> seen = carry(20'000);
    ASSERT_EQ(seen.size(), 20'000U);
    uint64_t spoilt = 0;
    for (uint32_t i = 0; i < seen.size(); ++i) {
      const std::vector<uint8_t> sent = test::roce_bytes({.number = i});
      ASSERT_EQ(seen[i].bytes.size(), sent.size());
      int bits = 0;
      for (size_t at = 0; at < sent.size(); ++at) {
        const int here = __builtin_popcount(static_cast<unsigned>(seen[i].bytes[at] ^ sent[at]));
        EXPECT_TRUE(here == 0 || at >= sizeof(EthernetHeader));
        bits += here;
      }
      EXPECT_LE(bits, 4);
      spoilt += bits != 0;
    }
    EXPECT_EQ(spoilt, port_->counters().corrupted);
    if (corruption < 1) expect_rate(spoilt, 20'000, corruption);
    if (corruption == 1) {
      EXPECT_EQ(spoilt, 20'000U);
    }
  }
}

TEST_F(FaultyPortTest, same_seed_repeats_faults_and_another_seed_differs) {
  const PortFaults faults{.loss = 0.1, .corruption = 0.1, .delay = 3us};
  make(faults, 3);
  const std::vector<Seen> first = carry(3000);
  make(faults, 3);
  EXPECT_EQ(carry(3000), first);
  make(faults, 4);
  EXPECT_NE(carry(3000), first);
}

TEST_F(FaultyPortTest, choice_of_corrupted_frames_is_independent_of_loss) {
  make({.corruption = 0.1});
  const std::vector<Seen> spoilt = carry(3000);
  make({.loss = 0.5});
  const std::vector<uint32_t> survivors = numbers(carry(3000));
  make({.loss = 0.5, .corruption = 0.1});
  const std::vector<Seen> both = carry(3000);
  ASSERT_EQ(both.size(), survivors.size());
  for (size_t i = 0; i < both.size(); ++i) {
    const uint32_t number = survivors[i];
    const std::vector<uint8_t> sent = test::roce_bytes({.number = number});
    EXPECT_EQ(both[i].bytes == sent, spoilt[number].bytes == sent) << "frame " << number;
  }
}

TEST_F(FaultyPortTest, delays_each_frame_by_exactly_the_configured_delay) {
  make({.delay = 12'345ns});
  const std::vector<Seen> seen = carry(2000);
  ASSERT_EQ(seen.size(), 2000U);
  for (uint32_t i = 0; i < seen.size(); ++i) {
    EXPECT_EQ(seen[i].number, i);
    EXPECT_EQ(seen[i].at, i * kEach + 1us + 12'345ns);
  }
  EXPECT_EQ(port_->counters().delayed, 2000U);
}

TEST_F(FaultyPortTest, reduced_delay_does_not_reorder_frames) {
  make({.delay = 50us});
  send(0);
  std::vector<Seen> seen = receive(2us);
  port_->set_faults({.delay = 5us});
  send(1);
  std::ranges::move(receive(now_ + 1us), std::back_inserter(seen));
  port_->set_faults({});
  send(2);
  std::ranges::move(receive(100us), std::back_inserter(seen));
  EXPECT_EQ(numbers(seen), (std::vector<uint32_t>{0, 1, 2}));
  for (const Seen& s : seen) EXPECT_EQ(s.at, 51us);
  send(3);
  EXPECT_EQ(receive(200us)[0].at, 101us) << "no delay any more";
}

TEST_F(FaultyPortTest, limits_delayed_frames_and_counts_the_excess) {
  make({.delay = 1s});
  constexpr uint32_t kMore = 100;
  for (uint32_t i = 0; i < FaultyPort::kMaxHeld + kMore; ++i) {
    send(i);
    EXPECT_TRUE(receive(now_ + 1us).empty());
  }
  EXPECT_EQ(receive(now_ + 2s).size(), FaultyPort::kMaxHeld);
  EXPECT_EQ(port_->counters().delay_full, kMore);
}

TEST_F(FaultyPortTest, duplicates_frames_at_the_configured_rate_back_to_back) {
  make({.duplication = 0.01});
  const std::vector<Seen> seen = carry(kFramesPerRate);
  expect_rate(port_->counters().duplicated, kFramesPerRate, 0.01);
  EXPECT_EQ(seen.size(), kFramesPerRate + port_->counters().duplicated);
  EXPECT_TRUE(std::ranges::is_sorted(numbers(seen)));
  for (size_t i = 1; i < seen.size(); ++i) {
    if (seen[i].number != seen[i - 1].number) continue;
    ASSERT_EQ(seen[i].bytes, seen[i - 1].bytes);
  }
}

TEST_F(FaultyPortTest, reorders_frames_within_the_maximum_distance_without_loss) {
  make({.reordering = 0.01});
  std::vector<uint32_t> seen = numbers(carry(kFramesPerRate));
  EXPECT_FALSE(std::ranges::is_sorted(seen));
  // A frame is not delayed while another one is, so the number is slightly lower.
  EXPECT_GT(port_->counters().reordered, kFramesPerRate / 100 * 3 / 4);
  uint64_t late = 0;
  for (size_t i = 0; i < seen.size(); ++i) {
    const auto by = static_cast<int64_t>(i) - static_cast<int64_t>(seen[i]);
    EXPECT_LE(by, int64_t{FaultyPort::kMaxReorderDistance});
    late += by > 0 ? 1 : 0;
  }
  EXPECT_EQ(late, port_->counters().reordered);
  std::ranges::sort(seen);
  ASSERT_EQ(seen.size(), kFramesPerRate);
  for (uint32_t i = 0; i < kFramesPerRate; ++i) ASSERT_EQ(seen[i], i);
}

TEST_F(FaultyPortTest, delivers_a_held_frame_after_the_maximum_wait) {
  make({.reordering = 1});
  send(0);
  const std::vector<Seen> seen = receive(1ms);
  ASSERT_EQ(numbers(seen), std::vector<uint32_t>{0});
  EXPECT_EQ(seen[0].at, 1us + FaultyPort::kMaxWait);
  EXPECT_EQ(port_->counters().reordered, 0U) << "it was late, and in its place";
}

TEST_F(FaultyPortTest, link_down_drops_and_counts_frames_in_both_directions) {
  make({.down = true});
  EXPECT_FALSE(port_->link_up());
  EXPECT_TRUE(carry(100).empty());
  EXPECT_EQ(port_->counters().down_rx, 100U);
  std::array<rte_mbuf*, 3> frames{frame(0), frame(1), frame(2)};
  EXPECT_EQ(port_->tx_burst(frames, now_), 3U) << "taken, as a wire takes what nobody hears";
  EXPECT_EQ(port_->counters().down_tx, 3U);
  EXPECT_EQ(link_->a().next_arrival(), kNever);

  port_->set_faults({});
  EXPECT_TRUE(port_->link_up());
  send(5);
  EXPECT_EQ(numbers(receive(now_ + 1ms)), std::vector<uint32_t>{5});
}

TEST_F(FaultyPortTest, delivers_delayed_frames_after_link_down) {
  make({.delay = 10us});
  send(1);
  EXPECT_TRUE(receive(2us).empty());
  port_->set_faults({.delay = 10us, .down = true});
  send(2);
  const std::vector<Seen> seen = receive(100us);
  ASSERT_EQ(numbers(seen), std::vector<uint32_t>{1});
  EXPECT_EQ(seen[0].at, 11us);
}

TEST_F(FaultyPortTest, rx_burst_continues_past_lost_frames) {
  make({.loss = 0.99});
  // All frames arrive at the same time, and the port is polled once: after an empty result a poller would stop.
  std::vector<rte_mbuf*> frames;
  for (uint32_t i = 0; i < 1000; ++i) frames.push_back(frame(i));
  ASSERT_EQ(link_->a().tx_burst(frames, now_), 1000U);
  std::array<rte_mbuf*, 32> burst;
  uint64_t arrived = 0;
  while (const uint16_t count = port_->rx_burst(burst, 1us)) {
    rte_pktmbuf_free_bulk(burst.data(), count);
    arrived += count;
  }
  EXPECT_EQ(arrived + port_->counters().lost, 1000U);
  EXPECT_EQ(port_->next_arrival(), kNever);
}

// Delivers the same memory repeatedly, like a ring within the process.
class SharedSource final : public BorrowedPort {
 public:
  SharedSource(Port& port, rte_mbuf* frame) : BorrowedPort(port), frame_(frame) {}
  uint16_t rx_burst(std::span<rte_mbuf*> out, Nanos /*now*/) override {
    rte_mbuf_refcnt_update(frame_, 1);
    out[0] = frame_;
    return 1;
  }

 private:
  rte_mbuf* frame_;
};

TEST_F(FaultyPortTest, corrupts_a_copy_of_a_shared_frame_or_drops_it_without_a_pool) {
  make({});
  const std::vector<uint8_t> sent = test::roce_bytes({.number = 9});
  rte_mbuf* shared = test::to_mbuf(*pool_, sent);
  for (const bool with_pool : {true, false}) {
    FaultyPort port{std::make_unique<SharedSource>(link_->b(), shared),
                    {.corruption = 1},
                    1,
                    with_pool ? pool_ : nullptr};
    rte_mbuf* seen = nullptr;
    const uint16_t count = port.rx_burst({&seen, 1}, Nanos{0});
    EXPECT_EQ(count, with_pool ? 1U : 0U);
    EXPECT_EQ(port.counters().no_buffer > 0, !with_pool) << "nothing to copy it into";
    if (count == 1) {
      EXPECT_NE(seen, shared);
      EXPECT_NE(test::bytes_of(seen), sent);
      rte_pktmbuf_free(seen);
    }
    EXPECT_EQ(test::bytes_of(shared), sent);
  }
  EXPECT_EQ(rte_mbuf_refcnt_read(shared), 1U);
  rte_pktmbuf_free(shared);
}

}  // namespace
}  // namespace roci

#include "switch/forwarding/mac_table.hpp"

#include <gtest/gtest.h>

#include <map>

#include "base/rng.hpp"

namespace roci {
namespace {

MacAddress host(uint64_t number) { return {{2, 0, 0, 0, 0, static_cast<uint8_t>(number)}}; }

// Naive model: entries with the time of their last frame.
class Model {
 public:
  Model(size_t size, Nanos ageing) : size_(size), ageing_(ageing) {}

  MacTable::Learned learn(uint16_t vlan, uint64_t number, uint16_t port, Nanos now) {
    auto known = entries_.find({vlan, number});
    if (known == entries_.end()) {
      std::erase_if(entries_, [&](const auto& entry) { return is_old(entry.second, now); });
      if (entries_.size() == size_) return MacTable::Learned::kFull;
      entries_[{vlan, number}] = {port, now};
      return MacTable::Learned::kNew;
    }
    const Entry before = std::exchange(known->second, Entry{port, now});
    if (is_old(before, now)) return MacTable::Learned::kNew;
    return before.port == port ? MacTable::Learned::kKnown : MacTable::Learned::kMoved;
  }
  [[nodiscard]] uint16_t find(uint16_t vlan, uint64_t number, Nanos now) const {
    const auto known = entries_.find({vlan, number});
    return known == entries_.end() || is_old(known->second, now) ? kNoPort : known->second.port;
  }
  [[nodiscard]] size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    uint16_t port = kNoPort;
    Nanos heard{0};
  };
  [[nodiscard]] bool is_old(const Entry& entry, Nanos now) const { return now - entry.heard >= ageing_; }

  size_t size_;
  Nanos ageing_;
  std::map<std::pair<uint16_t, uint64_t>, Entry> entries_;
};

// Bursts of frames at one instant, then time advances.
TEST(MacTable, matches_reference_model_under_random_operations) {
  constexpr uint32_t kSize = 24;
  constexpr Nanos kAgeing = 100ns;
  MacTable table(kSize, kAgeing);
  Model model(kSize, kAgeing);
  Rng rng{20261122};
  Nanos now{1};
  uint64_t full = 0, forgotten = 0;
  for (int step = 0; step < 200'000; ++step) {
    if (rng.chance(0.1)) now += Nanos{static_cast<int64_t>(rng.below(rng.chance(0.05) ? 150 : 12))};
    const auto vlan = static_cast<uint16_t>(1 + rng.below(2));
    const uint64_t number = rng.below(20), port = rng.below(3);
    if (rng.chance(0.5)) {
      const auto expected = model.learn(vlan, number, static_cast<uint16_t>(port), now);
      ASSERT_EQ(table.learn(vlan, host(number), static_cast<uint16_t>(port), now), expected) << step;
      full += expected == MacTable::Learned::kFull;
    } else {
      const uint16_t expected = model.find(vlan, number, now);
      ASSERT_EQ(table.find(vlan, host(number), now), expected) << step;
      forgotten += expected == kNoPort;
    }
    ASSERT_EQ(table.size(), model.size()) << step;
  }
  EXPECT_GT(full, 1000U);
  EXPECT_GT(forgotten, 1000U);
}

TEST(MacTable, addresses_differ_by_any_byte_and_by_vlan) {
  MacTable table(16, kNever);
  const MacAddress base{{2, 4, 6, 8, 10, 12}};
  table.learn(1, base, 1, 0ns);
  for (size_t i = 0; i < 6; ++i) {
    MacAddress other = base;
    other.bytes[i] ^= 0x40;
    EXPECT_EQ(table.find(1, other, 0ns), kNoPort) << i;
    EXPECT_NE(other, base);
    EXPECT_NE(other.bits(), base.bits());
  }
  EXPECT_EQ(table.find(2, base, 0ns), kNoPort);
  EXPECT_EQ(table.find(1, base, 0ns), 1);
}

}  // namespace
}  // namespace roci

#include "port/neighbors/neighbor_table.hpp"

#include <gtest/gtest.h>

#include <list>
#include <map>
#include <vector>

#include "base/rng.hpp"

namespace roci {
namespace {

IpAddress ip(uint64_t n) { return IpAddress::from_v4(0x0a000000 + static_cast<uint32_t>(n)); }

// Naive model: a list in order of use.
struct Model {
  uint32_t capacity;
  std::list<IpAddress> order;  // oldest first; only entries that may be evicted
  std::map<IpAddress, uint32_t> holders;
  std::map<IpAddress, bool> pinned;

  bool insert(const IpAddress& a) {
    if (holders.size() == capacity) {
      if (order.empty()) return false;
      holders.erase(order.front());
      pinned.erase(order.front());
      order.pop_front();
    }
    holders[a] = 0;
    pinned[a] = false;
    order.push_back(a);
    return true;
  }
  bool movable(const IpAddress& a) { return holders[a] == 0 && !pinned[a]; }
  void touch(const IpAddress& a) {
    if (!movable(a)) return;
    order.remove(a);
    order.push_back(a);
  }
};

TEST(NeighborTable, matches_reference_model_under_random_operations) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng{seed};
    const auto capacity = static_cast<uint32_t>(rng.between(1, 40));
    NeighborTable table(capacity);
    Model model{capacity, {}, {}, {}};
    std::vector<std::pair<IpAddress, Neighbor*>> held;
    for (int i = 0; i < 5000; ++i) {
      const IpAddress a = ip(rng.below(3 * capacity));
      Neighbor* entry = table.find(a);
      ASSERT_EQ(entry != nullptr, model.holders.contains(a)) << "seed " << seed << " step " << i;
      if (entry == nullptr) {
        entry = table.insert(a);
        ASSERT_EQ(entry != nullptr, model.insert(a)) << "seed " << seed << " step " << i;
        if (entry != nullptr) entry->state = NeighborState::kReachable;
        continue;
      }
      ASSERT_EQ(entry->address, a);
      switch (rng.below(4)) {
        case 0:
          table.touch(*entry);
          model.touch(a);
          break;
        case 1:
          table.hold(*entry);
          held.emplace_back(a, entry);
          model.order.remove(a);
          ++model.holders[a];
          break;
        case 2:
          if (held.empty()) break;
          {
            const size_t which = rng.below(held.size());
            auto [address, pointer] = held[which];
            held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
            ASSERT_EQ(pointer->address, address) << "an entry in use was given to somebody else";
            table.release(*pointer);
            if (--model.holders[address] == 0 && !model.pinned[address]) model.order.push_back(address);
          }
          break;
        default:
          if (!rng.chance(0.01)) break;
          table.pin(*entry);
          model.pinned[a] = true;
          model.order.remove(a);
      }
      ASSERT_EQ(table.size(), model.holders.size());
    }
    size_t visited = 0;
    table.for_each([&](Neighbor& entry) {
      ++visited;
      EXPECT_TRUE(model.holders.contains(entry.address));
    });
    EXPECT_EQ(visited, model.holders.size());
  }
}

TEST(NeighborTable, reference_prevents_eviction_until_it_is_released) {
  NeighborTable table(2);
  Neighbor* first = table.insert(ip(1));
  first->state = NeighborState::kReachable;
  {
    NeighborRef ref(table, *first);
    NeighborRef moved = std::move(ref);
    EXPECT_FALSE(ref);  // NOLINT(bugprone-use-after-move): moving empties it
    for (uint32_t i = 2; i < 10; ++i) EXPECT_NE(table.insert(ip(i)), nullptr);
    EXPECT_EQ(table.find(ip(1)), first);
    EXPECT_EQ(moved->address, ip(1));
  }
  EXPECT_NE(table.insert(ip(20)), nullptr);
  EXPECT_NE(table.insert(ip(21)), nullptr);
  EXPECT_EQ(table.find(ip(1)), nullptr);
}

TEST(NeighborTable, entries_keep_their_addresses_while_the_table_grows) {
  NeighborTable table(1000);
  std::vector<Neighbor*> entries;
  for (uint32_t i = 0; i < 1000; ++i) {
    entries.push_back(table.insert(ip(i)));
    ASSERT_LE(table.longest_chain(), 16U);
  }
  for (uint32_t i = 0; i < 1000; ++i) EXPECT_EQ(table.find(ip(i)), entries[i]);
  EXPECT_EQ(table.capacity(), 1000U);
  EXPECT_EQ(table.victim(), entries[0]);
}

// Senders of ARP requests choose their addresses. These have one bucket with the unkeyed hash.
TEST(NeighborTable, addresses_with_one_unkeyed_hash_do_not_share_a_chain) {
  constexpr uint32_t kEntries = 1000, kBuckets = 2048;
  NeighborTable table(1024);
  uint32_t inserted = 0;
  for (uint64_t n = 0; inserted < kEntries; ++n) {
    const uint64_t hash = std::hash<IpAddress>{}(ip(n));
    if (((hash ^ hash >> 32) & (kBuckets - 1)) != 0) continue;
    ASSERT_NE(table.insert(ip(n)), nullptr);
    ++inserted;
  }
  EXPECT_LE(table.longest_chain(), 16U);
}

TEST(NeighborTable, entry_in_a_reused_slot_has_a_new_version) {
  NeighborTable table(1);
  const uint32_t before = table.insert(ip(1))->version;
  EXPECT_NE(table.insert(ip(2))->version, before);
}

}  // namespace
}  // namespace roci

// Route lookup, compared with a linear search.
#include "switch/forwarding/route_table.hpp"

#include <gtest/gtest.h>
#include <rte_eal.h>
#include <rte_malloc.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/rng.hpp"
#include "port/dpdk/eal.hpp"

namespace roci {
namespace {

using Entry = RouteEntry;
using Kind = RouteTable::Kind;

uint16_t longest_in(const std::vector<Entry>& entries, const IpAddress& address) {
  const Entry* best = nullptr;
  for (const Entry& e : entries) {
    if (e.prefix.contains(address) &&
        (best == nullptr || e.prefix.prefix_length >= best->prefix.prefix_length))
      best = &e;
  }
  return best == nullptr ? kNotFound : best->route;
}

unsigned bits_of(bool v4) { return v4 ? 32 : 128; }

// Adds `step` to the address as to a big-endian number.
IpAddress plus(IpAddress address, int step) {
  for (size_t i = 16; i > (address.is_v4() ? 12U : 0U); --i) {
    const int sum = address.bytes[i - 1] + step;
    address.bytes[i - 1] = static_cast<uint8_t>(sum);
    if (sum >= 0 && sum <= 255) break;
    step = sum < 0 ? -1 : 1;
  }
  return address;
}

IpAddress last_of(const IpNetwork& network) {
  IpAddress last = network.masked().address;
  const unsigned first_bit = last.is_v4() ? 96 : 0;
  for (unsigned bit = first_bit + network.prefix_length; bit < 128; ++bit)
    last.bytes[bit / 8] |= static_cast<uint8_t>(0x80U >> bit % 8);
  return last;
}

// Generates addresses close to each other, so that prefixes contain or adjoin each other: one of few addresses with
// some bits inverted.
class Addresses {
 public:
  Addresses(Rng& random, bool v4) : random_(random), v4_(v4) {
    for (IpAddress& a : few_) a = any();
    few_[0] = last_of({any(), 0});
    few_[1] = IpNetwork{any(), 0}.masked().address;
  }
  IpAddress any() {
    if (v4_) return IpAddress::from_v4(static_cast<uint32_t>(random_.next()));
    IpAddress a;
    for (uint8_t& byte : a.bytes) byte = static_cast<uint8_t>(random_.next());
    return a;
  }
  IpAddress near() {
    IpAddress a = few_[random_.below(few_.size())];
    for (uint64_t turns = random_.below(4); turns > 0; --turns) {
      const uint64_t bit = 128 - bits_of(v4_) + random_.below(bits_of(v4_));
      a.bytes[bit / 8] ^= static_cast<uint8_t>(0x80U >> bit % 8);
    }
    return a;
  }

 private:
  Rng& random_;
  bool v4_;
  std::array<IpAddress, 6> few_{};
};

uint8_t some_length(Rng& random, bool v4) {
  switch (random.below(8)) {
    case 0:
      return static_cast<uint8_t>(bits_of(v4));
    case 1:
      return static_cast<uint8_t>(random.below(9));
    default:
      return static_cast<uint8_t>(random.below(bits_of(v4) + 1U));
  }
}

std::vector<Entry> some_routes(Rng& random, Addresses& addresses, bool v4, size_t count) {
  std::vector<Entry> entries;
  while (entries.size() < count) {
    const IpNetwork prefix{addresses.near(), some_length(random, v4)};
    const auto same = [&](const Entry& e) { return e.prefix.masked() == prefix.masked(); };
    if (prefix.prefix_length < 12 && std::any_of(entries.begin(), entries.end(), same)) continue;
    // Few values, so that adjacent prefixes often have the same one and are merged.
    entries.push_back(
        {prefix, static_cast<uint16_t>(random.chance(0.5) ? random.below(3) : random.below(30'000))});
  }
  return entries;
}

class RouteTableTest : public testing::TestWithParam<std::tuple<bool, Kind>> {
 protected:
  void SetUp() override { ASSERT_TRUE(start_eal()); }
};

TEST_P(RouteTableTest, matches_linear_search) {
  const auto [v4, kind] = GetParam();
  uint64_t seed = 0;
  for (const size_t count : {1UL, 2UL, 3UL, 5UL, 10UL, 20UL, 64UL, 300UL}) {
    for (int round = 0; round < 4; ++round) {
      SCOPED_TRACE("seed " + std::to_string(++seed));
      Rng random{seed};
      Addresses addresses{random, v4};
      const std::vector<Entry> entries = some_routes(random, addresses, v4, count);
      const auto table = RouteTable::create(entries, kind);
      ASSERT_TRUE(table) << table.error().message;
      EXPECT_EQ(table->has_table(v4), kind == Kind::kTable);

      std::vector<IpAddress> asked;
      for (const Entry& e : entries) {
        const IpAddress first = e.prefix.masked().address, last = last_of(e.prefix);
        asked.insert(asked.end(), {first, last, plus(first, -1), plus(last, 1), e.prefix.address});
      }
      for (int i = 0; i < 300; ++i) asked.push_back(random.chance(0.7) ? addresses.near() : addresses.any());
      std::vector<uint16_t> found(asked.size());
      table->find(asked, found);
      for (size_t i = 0; i < asked.size(); ++i) {
        const uint16_t expected = longest_in(entries, asked[i]);
        ASSERT_EQ(found[i], expected) << asked[i].to_string();
        ASSERT_EQ(table->find(asked[i]), expected) << asked[i].to_string();
      }
    }
  }
}

TEST_P(RouteTableTest, default_route_matches_addresses_without_a_longer_prefix) {
  const auto [v4, kind] = GetParam();
  const IpNetwork everything = *IpNetwork::parse(v4 ? "0.0.0.0/0" : "::/0");
  const IpNetwork host = *IpNetwork::parse(v4 ? "10.0.0.1/32" : "fd00::1/128");
  const auto table = RouteTable::create(std::vector<Entry>{{host, 0}, {everything, 29'999}}, kind);
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->find(host.address), 0);
  for (const int step : {-1, 1}) EXPECT_EQ(table->find(plus(host.address, step)), 29'999);
  EXPECT_EQ(table->find(everything.address), 29'999);
  EXPECT_EQ(table->find(last_of(everything)), 29'999);
  EXPECT_EQ(table->find(*IpAddress::parse(v4 ? "fd00::1" : "10.0.0.1")), kNotFound) << "the other family";
}

INSTANTIATE_TEST_SUITE_P(AllKinds, RouteTableTest,
                         testing::Combine(testing::Bool(), testing::Values(Kind::kRanges, Kind::kTable)),
                         [](const auto& row) {
                           return std::string(std::get<0>(row.param) ? "v4" : "v6") +
                                  (std::get<1>(row.param) == Kind::kRanges ? "_ranges" : "_table");
                         });

std::vector<Entry> many(bool v4, size_t count) {
  std::vector<Entry> entries;
  for (uint32_t i = 0; i < count; ++i) {
    IpAddress address = IpAddress::from_v4(0x0a000000 + (i << 8));
    if (!v4) address.bytes = {0xfd, 0, 0, 0, 0, 0, static_cast<uint8_t>(i >> 8), static_cast<uint8_t>(i)};
    entries.push_back({{address, static_cast<uint8_t>(v4 ? 24 : 64)}, static_cast<uint16_t>(i % 30'000)});
  }
  return entries;
}

class RouteTables : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(start_eal()); }
  static size_t dpdks_memory_in_use() {
    rte_malloc_socket_stats stats;
    return rte_malloc_get_socket_stats(0, &stats) == 0 ? stats.heap_allocsz_bytes : 0;
  }
};

TEST_F(RouteTables, empty_table_finds_no_route) {
  const RouteTable none;
  EXPECT_EQ(none.find(*IpAddress::parse("10.0.0.1")), kNotFound);
  const auto made = RouteTable::create({});
  ASSERT_TRUE(made);
  EXPECT_EQ(made->find(*IpAddress::parse("fd00::1")), kNotFound);
}

TEST_F(RouteTables, one_bulk_lookup_resolves_both_address_families) {
  std::vector<Entry> entries = many(true, 40);
  for (const Entry& e : many(false, 40)) entries.push_back(e);
  const auto table = RouteTable::create(entries);
  ASSERT_TRUE(table);
  std::vector<IpAddress> asked;
  for (size_t i = 0; i < 40; ++i) {
    asked.push_back(entries[i].prefix.address);
    asked.push_back(entries[40 + i].prefix.address);
  }
  std::vector<uint16_t> found(asked.size());
  table->find(asked, found);
  for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], i / 2);
}

TEST_F(RouteTables, small_tables_use_no_dpdk_memory) {
  const size_t before = dpdks_memory_in_use();
  {
    std::vector<RouteTable> tables;
    std::vector<Entry> entries = many(true, 8);
    for (const Entry& e : many(false, 8)) entries.push_back(e);
    for (int i = 0; i < 300; ++i) {
      auto made = RouteTable::create(entries);
      ASSERT_TRUE(made) << i << ": " << made.error().message;
      ASSERT_FALSE(made->has_table(true) || made->has_table(false));
      tables.push_back(std::move(*made));
    }
    EXPECT_EQ(dpdks_memory_in_use(), before);
    EXPECT_EQ(tables.front().find(entries[3].prefix.address), 3);
    EXPECT_EQ(tables.back().find(entries[11].prefix.address), 3);
  }
  EXPECT_EQ(dpdks_memory_in_use(), before);
}

TEST_F(RouteTables, large_route_set_uses_a_dpdk_table_and_frees_its_memory) {
  const size_t before = dpdks_memory_in_use();
  for (const bool v4 : {true, false}) {
    const auto table = RouteTable::create(many(v4, RouteTable::kRangesUpTo + 1));
    ASSERT_TRUE(table);
    EXPECT_TRUE(table->has_table(v4));
    EXPECT_GE(dpdks_memory_in_use() - before, 32UL << 20);
    EXPECT_EQ(table->find(plus(many(v4, 31).back().prefix.address, 7)), 30);
  }
  EXPECT_EQ(dpdks_memory_in_use(), before);
}

TEST_F(RouteTables, lookups_are_correct_without_memory_for_a_table) {
  std::vector<RouteTable> tables;
  const std::vector<Entry> entries = many(true, 1000);
  for (int i = 0; i < 3; ++i) {
    auto made = RouteTable::create(entries);
    ASSERT_TRUE(made) << made.error().message;
    for (size_t k = 0; k < entries.size(); k += 99)
      EXPECT_EQ(made->find(entries[k].prefix.address), entries[k].route);
    EXPECT_EQ(made->find(*IpAddress::parse("11.0.0.1")), kNotFound);
    tables.push_back(std::move(*made));
  }
  if (rte_eal_has_hugepages() == 0) {
    EXPECT_FALSE(tables.back().has_table(true)) << "three tables of 32 MiB in 64 MiB";
  }
  EXPECT_EQ(last_dpdk_error(), "") << "a want that is made up for is no error";
}

TEST_F(RouteTables, ipv6_host_routes_beyond_the_table_capacity_use_a_search) {
  std::vector<Entry> entries;
  for (uint32_t i = 0; i < 3000; ++i) {
    IpAddress address = *IpAddress::parse("fd00::");
    for (size_t k = 2; k < 16; ++k)
      address.bytes[k] = static_cast<uint8_t>((i * 2'654'435'761U) >> (k % 4) * 8 ^ k);
    entries.push_back({{address, 128}, static_cast<uint16_t>(i)});
  }
  const auto table = RouteTable::create(entries);
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_FALSE(table->has_table(false));
  for (size_t i = 0; i < entries.size(); i += 77)
    EXPECT_EQ(table->find(entries[i].prefix.address), longest_in(entries, entries[i].prefix.address));
}

TEST_F(RouteTables, accepts_the_maximum_number_of_routes_and_rejects_one_more) {
  for (const bool v4 : {true, false}) {
    const auto full = RouteTable::create(many(v4, RouteTable::kMaxEntries));
    ASSERT_TRUE(full) << full.error().message;
    EXPECT_EQ(full->find(many(v4, 20'001).back().prefix.address), 20'000);
    const auto over = RouteTable::create(many(v4, RouteTable::kMaxEntries + 1));
    ASSERT_FALSE(over);
    EXPECT_EQ(over.error().message, "32767 routes exceed the maximum of 32766");
  }
}

}  // namespace
}  // namespace roci

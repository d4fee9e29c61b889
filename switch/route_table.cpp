#include "switch/route_table.hpp"

#include <rte_errno.h>
#include <rte_fib.h>
#include <rte_fib6.h>
#include <rte_memory.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "port/eal.hpp"

namespace roci {
namespace {

constexpr size_t kBatch = 32;
constexpr uint64_t kMiss = 0;             // of a FIB, whose other values are routes and 1
constexpr uint32_t kMostTables = 32'767;  // of 256 entries, as many as an entry of 2 bytes can name

// Both kinds of FIB take names that are unique in the process, and short ones: memory pools are made with them.
std::string unique_name(const char* family) {
  static std::atomic<uint32_t> made{0};
  return "roci_" + std::string(family) + "_" + std::to_string(made.fetch_add(1));
}

// Tables of 256 entries for what is behind the first 24 bits: one for each /24 with longer prefixes in it. The FIB keeps
// one more free, and counts in steps of 64.
uint32_t tables_for_v4(std::span<const RouteTable::Entry> entries) {
  std::set<uint32_t> long_ones;
  for (const RouteTable::Entry& e : entries) {
    if (e.prefix.prefix_length > 24) long_ones.insert(e.prefix.address.v4() >> 8);
  }
  return static_cast<uint32_t>(long_ones.size()) + 64;
}

// One for each byte of each prefix behind the first 24 bits: the FIB shares them, but it reserves them as if it did not.
uint32_t tables_for_v6(std::span<const RouteTable::Entry> entries) {
  uint32_t count = 0;
  for (const RouteTable::Entry& e : entries) count += std::max(0, (e.prefix.prefix_length + 7) / 8 - 3);
  return count + 16;
}

bool wants_table(RouteTable::Kind kind, size_t entries) {
  return kind == RouteTable::Kind::kTable ||
         (kind == RouteTable::Kind::kBySize && entries > RouteTable::kTreeUpTo);
}

void say_no_room(const char* family, size_t entries, const char* why) {
  log().info("{} routes of {} are looked up in a tree, which takes longer than a table: {}", entries, family,
             why);
}

Error no_room(const char* family, size_t entries) {
  const int code = rte_errno;
  return {"there is no memory for " + std::to_string(entries) + " routes of " + family + ": " +
              rte_strerror(code),
          code};
}

Error refused(const RouteTable::Entry& entry, int code) {
  return {"route " + entry.prefix.to_string() + " does not fit into its table: " + rte_strerror(-code),
          -code};
}

}  // namespace

RouteTable::RouteTable() = default;
RouteTable::RouteTable(RouteTable&&) noexcept = default;
RouteTable& RouteTable::operator=(RouteTable&&) noexcept = default;
RouteTable::~RouteTable() = default;

void RouteTable::Free::operator()(rte_fib* fib) const { rte_fib_free(fib); }
void RouteTable::Free::operator()(rte_fib6* fib) const { rte_fib6_free(fib); }

Result<RouteTable> RouteTable::create(std::span<const Entry> entries, Kind kind) {
  if (entries.size() > kMostEntries) {
    return fail(std::to_string(entries.size()) + " routes do not fit into a table of " +
                std::to_string(kMostEntries));
  }
  std::vector<Entry> v4, v6;
  for (const Entry& e : entries) (e.prefix.address.is_v4() ? v4 : v6).push_back({e.prefix.masked(), e.route});
  // What is put into a table then never has to go around what is there: DPDK 22.11 goes astray when a default route comes
  // after longer prefixes at the beginning of the address space.
  const auto shorter = [](const Entry& a, const Entry& b) {
    return a.prefix.prefix_length < b.prefix.prefix_length;
  };
  std::stable_sort(v4.begin(), v4.end(), shorter);
  std::stable_sort(v6.begin(), v6.end(), shorter);
  RouteTable made;
  // IPv6 first: should there be room for one table only, it gains more.
  ROCI_TRY(made.fill_v6(v6, kind));
  ROCI_TRY(made.fill_v4(v4, kind));
  return made;
}

Status RouteTable::fill_v4(std::span<const Entry> entries, Kind kind) {
  if (entries.empty()) return {};
  rte_fib_conf config{};
  config.default_nh = kMiss;
  config.max_routes = static_cast<int>(entries.size());
  if (wants_table(kind, entries.size())) {
    config.type = RTE_FIB_DIR24_8;
    config.dir24_8.nh_sz = RTE_FIB_DIR24_8_2B;
    config.dir24_8.num_tbl8 = tables_for_v4(entries);
    v4_.reset(rte_fib_create(unique_name("v4").c_str(), SOCKET_ID_ANY, &config));
    table_v4_ = v4_ != nullptr;
    if (!table_v4_) {
      clear_dpdk_error();
      say_no_room("IPv4", entries.size(), rte_strerror(rte_errno));
    }
  }
  if (v4_ == nullptr) {
    config.type = RTE_FIB_DUMMY;
    v4_.reset(rte_fib_create(unique_name("v4").c_str(), SOCKET_ID_ANY, &config));
    if (v4_ == nullptr) return fail(no_room("IPv4", entries.size()));
  }
  for (const Entry& e : entries) {
    const int code = rte_fib_add(v4_.get(), e.prefix.address.v4(), e.prefix.prefix_length, e.route + 1ULL);
    if (code != 0) return fail(refused(e, code));
  }
  return {};
}

Status RouteTable::fill_v6(std::span<const Entry> entries, Kind kind) {
  if (entries.empty()) return {};
  rte_fib6_conf config{};
  config.default_nh = kMiss;
  config.max_routes = static_cast<int>(entries.size());
  if (wants_table(kind, entries.size())) {
    config.type = RTE_FIB6_TRIE;
    config.trie.nh_sz = RTE_FIB6_TRIE_2B;
    config.trie.num_tbl8 = tables_for_v6(entries);
    if (config.trie.num_tbl8 > kMostTables) {
      say_no_room("IPv6", entries.size(), "their prefixes are too long for so many");
    } else {
      v6_.reset(rte_fib6_create(unique_name("v6").c_str(), SOCKET_ID_ANY, &config));
      table_v6_ = v6_ != nullptr;
      if (!table_v6_) {
        clear_dpdk_error();
        say_no_room("IPv6", entries.size(), rte_strerror(rte_errno));
      }
    }
  }
  if (v6_ == nullptr) {
    config.type = RTE_FIB6_DUMMY;
    v6_.reset(rte_fib6_create(unique_name("v6").c_str(), SOCKET_ID_ANY, &config));
    if (v6_ == nullptr) return fail(no_room("IPv6", entries.size()));
  }
  for (const Entry& e : entries) {
    const int code =
        rte_fib6_add(v6_.get(), e.prefix.address.bytes.data(), e.prefix.prefix_length, e.route + 1ULL);
    if (code != 0) return fail(refused(e, code));
  }
  return {};
}

uint16_t RouteTable::find(const IpAddress& address) const {
  uint16_t route = kNone;
  find({&address, 1}, {&route, 1});
  return route;
}

void RouteTable::find(std::span<const IpAddress> addresses, std::span<uint16_t> routes) const {
  for (; !addresses.empty(); addresses = addresses.subspan(std::min(addresses.size(), kBatch)),
                             routes = routes.subspan(std::min(routes.size(), kBatch))) {
    std::array<uint32_t, kBatch> v4;
    uint8_t v6[kBatch][16];
    std::array<uint8_t, kBatch> of_v4, of_v6;  // where they stand in `addresses`
    uint8_t v4_count = 0, v6_count = 0;
    const auto count = static_cast<uint8_t>(std::min(addresses.size(), kBatch));
    for (uint8_t i = 0; i < count; ++i) {
      routes[i] = kNone;
      if (addresses[i].is_v4()) {
        of_v4[v4_count] = i;
        v4[v4_count++] = addresses[i].v4();
      } else {
        of_v6[v6_count] = i;
        std::memcpy(v6[v6_count++], addresses[i].bytes.data(), sizeof v6[0]);
      }
    }
    std::array<uint64_t, kBatch> found;
    if (v4_count > 0 && v4_ != nullptr) {
      rte_fib_lookup_bulk(v4_.get(), v4.data(), found.data(), v4_count);
      for (uint8_t i = 0; i < v4_count; ++i) routes[of_v4[i]] = static_cast<uint16_t>(found[i] - 1);
    }
    if (v6_count > 0 && v6_ != nullptr) {
      rte_fib6_lookup_bulk(v6_.get(), v6, found.data(), v6_count);
      for (uint8_t i = 0; i < v6_count; ++i) routes[of_v6[i]] = static_cast<uint16_t>(found[i] - 1);
    }
  }
}

}  // namespace roci

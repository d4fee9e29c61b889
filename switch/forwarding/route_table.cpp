#include "switch/forwarding/route_table.hpp"

#include <rte_errno.h>
#include <rte_fib.h>
#include <rte_fib6.h>
#include <rte_memory.h>
#include <rte_version.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "port/dpdk/eal.hpp"

namespace roci {
namespace {

constexpr size_t kBatch = 32;
// FIB result for an address without a route. Stored routes are one higher, so that kMiss - 1 is kNotFound.
constexpr uint64_t kMiss = 0;
constexpr uint32_t kMaxTables = 32'767;  // tbl8 groups of 256 entries that a 2-byte entry can index

// DPDK 24.11 replaced arrays of bytes by a struct.
#if RTE_VERSION >= RTE_VERSION_NUM(24, 11, 0, 0)
using FibAddress = rte_ipv6_addr;
const FibAddress* as_fib_address(const IpAddress& address) {
  return reinterpret_cast<const FibAddress*>(address.bytes.data());
}
#else
using FibAddress = uint8_t[sizeof(IpAddress)];
const uint8_t* as_fib_address(const IpAddress& address) { return address.bytes.data(); }
#endif
static_assert(sizeof(FibAddress) == sizeof(IpAddress) && alignof(FibAddress) == 1);

// FIB names must be unique in a process, and short: DPDK derives names of memory pools from them.
std::string unique_name() {
  static std::atomic<uint32_t> made{0};
  return "roci_" + std::to_string(made.fetch_add(1));
}

// Number of tbl8 groups: one for each /24 that contains longer prefixes. The FIB requires one more to be free, and
// counts in steps of 64.
uint32_t tables_for_v4(std::span<const RouteEntry> entries) {
  std::set<uint32_t> split;
  for (const RouteEntry& e : entries) {
    if (e.prefix.prefix_length > 24) split.insert(e.prefix.address.v4() >> 8);
  }
  return static_cast<uint32_t>(split.size()) + 64;
}

// One group for each byte of each prefix after the first 24 bits: the FIB shares groups, but reserves them as if it did
// not.
uint32_t tables_for_v6(std::span<const RouteEntry> entries) {
  uint32_t count = 0;
  for (const RouteEntry& e : entries)
    count += static_cast<uint32_t>(std::max(0, (e.prefix.prefix_length + 7) / 8 - 3));
  return count + 16;
}

// With this order, an insertion never has to skip longer prefixes. DPDK 22.11 loses addresses if a default route is
// added after longer prefixes at the start of the address space.
std::vector<RouteEntry> shortest_first(std::span<const RouteEntry> entries) {
  std::vector<RouteEntry> sorted(entries.begin(), entries.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const RouteEntry& a, const RouteEntry& b) {
    return a.prefix.prefix_length < b.prefix.prefix_length;
  });
  return sorted;
}

void warn_no_table(const char* family, size_t entries, const char* why) {
  log().info("{} routes of {} use binary search, which is slower than a table: {}", entries, family, why);
}

tl::unexpected<Error> refused(const RouteEntry& entry, int code) {
  return fail("route " + entry.prefix.to_string() + " cannot be added to the table: " + rte_strerror(-code),
              -code);
}

}  // namespace

void RouteTable::Free::operator()(rte_fib* fib) const { rte_fib_free(fib); }
void RouteTable::Free::operator()(rte_fib6* fib) const { rte_fib6_free(fib); }

Result<RouteTable> RouteTable::create(std::span<const RouteEntry> entries, Kind kind) {
  if (entries.size() > kMaxEntries) {
    return fail(std::to_string(entries.size()) + " routes exceed the maximum of " +
                std::to_string(kMaxEntries));
  }
  std::vector<RouteEntry> v4, v6;
  for (const RouteEntry& e : entries)
    (e.prefix.address.is_v4() ? v4 : v6).push_back({e.prefix.masked(), e.route});
  const auto wants_table = [kind](size_t count) {
    return kind == Kind::kTable ? count > 0 : kind == Kind::kBySize && count > kRangesUpTo;
  };
  RouteTable made;
  if (wants_table(v6.size())) ROCI_TRY(made.fill_v6(v6));
  if (wants_table(v4.size())) ROCI_TRY(made.fill_v4(v4));
  if (made.table_v4_ == nullptr) made.ranges_v4_ = RouteRanges(v4);
  if (made.table_v6_ == nullptr) made.ranges_v6_ = RouteRanges(v6);
  return made;
}

// Both leave the table null if it does not fit into memory, or (IPv6) needs too many groups.
Status RouteTable::fill_v4(std::span<const RouteEntry> entries) {
  rte_fib_conf config{};
  config.type = RTE_FIB_DIR24_8;
  config.default_nh = kMiss;
  config.max_routes = static_cast<int>(entries.size());
  config.dir24_8.nh_sz = RTE_FIB_DIR24_8_2B;
  config.dir24_8.num_tbl8 = tables_for_v4(entries);
  table_v4_.reset(rte_fib_create(unique_name().c_str(), SOCKET_ID_ANY, &config));
  if (table_v4_ == nullptr) {
    warn_no_table("IPv4", entries.size(), rte_strerror(rte_errno));
    clear_dpdk_error();  // not an error: ranges are used
    return {};
  }
  for (const RouteEntry& e : shortest_first(entries)) {
    const int code =
        rte_fib_add(table_v4_.get(), e.prefix.address.v4(), e.prefix.prefix_length, e.route + 1ULL);
    if (code != 0) return refused(e, code);
  }
  return {};
}

Status RouteTable::fill_v6(std::span<const RouteEntry> entries) {
  rte_fib6_conf config{};
  config.type = RTE_FIB6_TRIE;
  config.default_nh = kMiss;
  config.max_routes = static_cast<int>(entries.size());
  config.trie.nh_sz = RTE_FIB6_TRIE_2B;
  config.trie.num_tbl8 = tables_for_v6(entries);
  if (config.trie.num_tbl8 > kMaxTables) {
    warn_no_table("IPv6", entries.size(), "too many long prefixes");
    return {};
  }
  table_v6_.reset(rte_fib6_create(unique_name().c_str(), SOCKET_ID_ANY, &config));
  if (table_v6_ == nullptr) {
    warn_no_table("IPv6", entries.size(), rte_strerror(rte_errno));
    clear_dpdk_error();
    return {};
  }
  for (const RouteEntry& e : shortest_first(entries)) {
    const int code = rte_fib6_add(table_v6_.get(), as_fib_address(e.prefix.address), e.prefix.prefix_length,
                                  e.route + 1ULL);
    if (code != 0) return refused(e, code);
  }
  return {};
}

uint16_t RouteTable::find(const IpAddress& address) const {
  uint16_t route = kNotFound;
  find({&address, 1}, {&route, 1});
  return route;
}

void RouteTable::find(std::span<const IpAddress> addresses, std::span<uint16_t> routes) const {
  for (size_t begin = 0; begin < addresses.size(); begin += kBatch) {
    const size_t end = std::min(begin + kBatch, addresses.size());
    std::array<uint32_t, kBatch> v4;
    FibAddress v6[kBatch];
    std::array<uint16_t*, kBatch> out_v4, out_v6;
    unsigned count_v4 = 0, count_v6 = 0;
    for (size_t i = begin; i < end; ++i) {
      const IpAddress& address = addresses[i];
      if (address.is_v4()) {
        if (table_v4_ == nullptr) {
          routes[i] = ranges_v4_.find(address);
          continue;
        }
        out_v4[count_v4] = &routes[i];
        v4[count_v4++] = address.v4();
      } else {
        if (table_v6_ == nullptr) {
          routes[i] = ranges_v6_.find(address);
          continue;
        }
        out_v6[count_v6] = &routes[i];
        std::memcpy(&v6[count_v6++], address.bytes.data(), sizeof address);
      }
    }
    std::array<uint64_t, kBatch> found;
    if (count_v4 > 0) {
      rte_fib_lookup_bulk(table_v4_.get(), v4.data(), found.data(), static_cast<int>(count_v4));
      for (unsigned i = 0; i < count_v4; ++i) *out_v4[i] = static_cast<uint16_t>(found[i] - 1);
    }
    if (count_v6 > 0) {
      rte_fib6_lookup_bulk(table_v6_.get(), v6, found.data(), static_cast<int>(count_v6));
      for (unsigned i = 0; i < count_v6; ++i) *out_v6[i] = static_cast<uint16_t>(found[i] - 1);
    }
  }
}

}  // namespace roci

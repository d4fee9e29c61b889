// Which route an address takes: that of the longest prefix which holds it. IPv4 and IPv6 lie apart, each in one of two
// ways, which give the same answers:
//
//   ranges   a search by halves (route_ranges.hpp). Next to no memory, so a process may have hundreds of switches.
//   table    DPDK's FIB: 2^24 entries for the first 24 bits, further tables of 256 for what is behind them (DIR24_8, and
//            the same as a trie for IPv6). One step for most addresses, and 32 MiB however few routes there are.
//
// A family with many routes has a table, if the memory that DPDK has for itself (port/eal.hpp) has room for it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/result.hpp"
#include "switch/route_ranges.hpp"
#include "wire/address.hpp"

struct rte_fib;
struct rte_fib6;

namespace roci {

// Does not change once it is made. Owned by the switch's thread.
class RouteTable {
 public:
  static constexpr size_t kMostEntries = 32'766;  // values that an entry of 2 bytes has, but for "none"
  static constexpr size_t kRangesUpTo = 256;      // entries of a family
  enum class Kind : uint8_t { kBySize, kRanges, kTable };  // only tests ask for one

  // Empty: it knows no route.
  RouteTable() = default;
  // With routes below kMostEntries. Of entries with the same prefix the last one counts. Needs a started EAL.
  static Result<RouteTable> create(std::span<const RouteEntry> entries, Kind kind = Kind::kBySize);

  // The route of an address, kNotFound when there is none.
  [[nodiscard]] uint16_t find(const IpAddress& address) const;
  // The same for many at once, which is faster: a table's entries are rarely in a cache, and they are fetched together.
  void find(std::span<const IpAddress> addresses, std::span<uint16_t> routes) const;

  // Whether addresses of the family are looked up in a table.
  [[nodiscard]] bool has_table(bool v4) const { return v4 ? table_v4_ != nullptr : table_v6_ != nullptr; }

 private:
  struct Free {
    void operator()(rte_fib* fib) const;
    void operator()(rte_fib6* fib) const;
  };
  Status fill_v4(std::span<const RouteEntry> entries);
  Status fill_v6(std::span<const RouteEntry> entries);

  RouteRanges ranges_v4_, ranges_v6_;  // of a family without a table
  std::unique_ptr<rte_fib, Free> table_v4_;
  std::unique_ptr<rte_fib6, Free> table_v6_;
};

}  // namespace roci

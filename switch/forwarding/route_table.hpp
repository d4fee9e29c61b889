// Route table: longest prefix match. IPv4 and IPv6 are separate. Each family uses one of two methods with the same
// results:
//
//   ranges   bisection (route_ranges.hpp). It requires little memory, so a process may have hundreds of switches.
//   table    DPDK's FIB: 2^24 entries for the first 24 bits, and groups of 256 entries for the following bits (DIR24_8;
//            for IPv6 a trie of the same kind). One step for most addresses, and 32 MiB for any number of routes.
//
// By size: a family with more than kRangesUpTo entries uses the table, if DPDK's own memory (port/dpdk/eal.hpp) has
// space for it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/result.hpp"
#include "switch/forwarding/route_ranges.hpp"
#include "wire/headers/address.hpp"

struct rte_fib;
struct rte_fib6;

namespace roci {

// Immutable after creation, so the workers of a switch share it.
class RouteTable {
 public:
  static constexpr size_t kMaxEntries = 32'766;  // values of a 2-byte entry, without "none"
  static constexpr size_t kRangesUpTo = 256;     // entries of a family that use ranges
  enum class Kind : uint8_t { kBySize, kRanges, kTable };

  // Table without routes.
  RouteTable() = default;
  // Creates a table. Routes must be below kMaxEntries. Of entries with the same prefix, the last one is used. Requires
  // an initialized EAL.
  static Result<RouteTable> create(std::span<const RouteEntry> entries, Kind kind = Kind::kBySize);

  // Route of an address; kNotFound if no prefix contains it.
  [[nodiscard]] uint16_t find(const IpAddress& address) const;
  // Looks up several addresses. This is faster, since the cache misses of a table overlap.
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

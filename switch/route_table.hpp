// Which route an address takes: that of the longest prefix which holds it. IPv4 and IPv6 lie apart, each in a FIB of
// DPDK, of which there are two kinds with the same answers:
//
//   tree    a bit more is looked at in each step, as far as routes differ. Some hundred bytes for each route.
//   table   2^24 entries for the first 24 bits, further tables of 256 for what is behind them (DIR24_8, and the same as a
//           trie for IPv6). One step for most addresses; 32 MiB, however few routes there are.
//
// A family with few routes has a tree, so that a process may have hundreds of switches. With more it has a table, if the
// memory that DPDK has for itself (port/eal.hpp) has room for it, and else the tree again.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/result.hpp"
#include "wire/address.hpp"

struct rte_fib;
struct rte_fib6;

namespace roci {

// Does not change once it is made. Owned by the switch's thread.
class RouteTable {
 public:
  static constexpr uint16_t kNone = UINT16_MAX;
  static constexpr size_t kMostEntries =
      32'766;  // of a table with entries of 2 bytes, one bit and two values reserved

  struct Entry {
    IpNetwork prefix;    // what lies behind the prefix does not count
    uint16_t route = 0;  // what find() gives, below kMostEntries
  };
  // How a family is looked up. Only tests ask for one.
  enum class Kind : uint8_t { kBySize, kTree, kTable };
  static constexpr size_t kTreeUpTo = 64;  // entries of a family

  // Empty: it knows no route.
  RouteTable();
  // Of entries with the same prefix the last one counts. Needs a started EAL.
  static Result<RouteTable> create(std::span<const Entry> entries, Kind kind = Kind::kBySize);
  RouteTable(RouteTable&&) noexcept;
  RouteTable& operator=(RouteTable&&) noexcept;
  ~RouteTable();

  // The route of an address, kNone when there is none.
  [[nodiscard]] uint16_t find(const IpAddress& address) const;
  // The same for many at once, which is faster: a table's entries are rarely in a cache, and they are fetched together.
  void find(std::span<const IpAddress> addresses, std::span<uint16_t> routes) const;

  // Whether addresses of the family are looked up in a table.
  [[nodiscard]] bool has_table(bool v4) const { return v4 ? table_v4_ : table_v6_; }

 private:
  struct Free {
    void operator()(rte_fib* fib) const;
    void operator()(rte_fib6* fib) const;
  };
  Status fill_v4(std::span<const Entry> entries, Kind kind);
  Status fill_v6(std::span<const Entry> entries, Kind kind);

  std::unique_ptr<rte_fib, Free> v4_;  // null without routes of the family
  std::unique_ptr<rte_fib6, Free> v6_;
  bool table_v4_ = false, table_v6_ = false;
};

}  // namespace roci

// Address ranges made from prefixes: a sorted array of the first address of each range, and its route. Lookup is by
// bisection. It requires about 20 bytes per prefix.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "wire/headers/address.hpp"

namespace roci {

struct RouteEntry {
  IpNetwork prefix;    // bits after the prefix are ignored
  uint16_t route = 0;  // below kNotFound
};
inline constexpr uint16_t kNotFound = UINT16_MAX;

// Immutable after construction.
class RouteRanges {
 public:
  // All entries must be of one address family. Of entries with the same prefix, the last one is used.
  explicit RouteRanges(std::span<const RouteEntry> entries = {});

  // Route of the longest prefix that contains the address; kNotFound if no prefix does. The address must be of the same
  // family.
  [[nodiscard]] uint16_t find(const IpAddress& address) const {
    const Number wanted = Number::of(address);
    size_t found = 0;
    // No branch depends on the comparison, which the processor could not predict.
    for (size_t left = starts_.size(); left > 1;) {
      const size_t half = left / 2;
      found += starts_[found + half].after(wanted) ? 0 : half;
      left -= half;
    }
    return routes_[found];
  }

 private:
  // Address as a number of 128 bits.
  struct Number {
    uint64_t high = 0, low = 0;
    static Number of(const IpAddress& address);
    [[nodiscard]] bool after(const Number& other) const {
      return (high > other.high) | ((high == other.high) & (low > other.low));
    }
    friend bool operator==(const Number&, const Number&) = default;
  };
  struct Range {
    Number first, last;
    uint16_t route;
  };
  static Range range_of(const RouteEntry& entry);
  void begin_at(const Number& first, uint16_t route);

  std::vector<Number> starts_;    // the first is 0
  std::vector<uint16_t> routes_;  // of the addresses from there on
};

}  // namespace roci

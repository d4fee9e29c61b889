// Prefixes laid side by side: where the addresses begin that take another route than those before them, in order. A
// look-up is a search by halves, and the whole takes some 20 bytes for each prefix.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "wire/address.hpp"

namespace roci {

struct RouteEntry {
  IpNetwork prefix;    // what lies behind the prefix does not count
  uint16_t route = 0;  // below kNotFound
};
inline constexpr uint16_t kNotFound = UINT16_MAX;

// Does not change once it is made.
class RouteRanges {
 public:
  // Of one family. Of entries with the same prefix the last one counts.
  explicit RouteRanges(std::span<const RouteEntry> entries = {});

  // The route of the longest prefix that holds the address, which must be of the same family.
  [[nodiscard]] uint16_t find(const IpAddress& address) const {
    const Number wanted = Number::of(address);
    size_t found = 0;
    // Without a branch on what is compared, which no processor could foresee.
    for (size_t left = begins_.size(); left > 1;) {
      const size_t half = left / 2;
      found += begins_[found + half].after(wanted) ? 0 : half;
      left -= half;
    }
    return routes_[found];
  }

 private:
  // An address as a number of 128 bits.
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

  std::vector<Number> begins_;    // the first is 0
  std::vector<uint16_t> routes_;  // from there on
};

}  // namespace roci

#include "switch/forwarding/route_ranges.hpp"

#include <algorithm>
#include <bit>

namespace roci {

RouteRanges::Number RouteRanges::Number::of(const IpAddress& address) {
  const auto words = std::bit_cast<std::array<uint64_t, 2>>(address.bytes);
  return {__builtin_bswap64(words[0]), __builtin_bswap64(words[1])};
}

RouteRanges::Range RouteRanges::range_of(const RouteEntry& entry) {
  const unsigned kept = entry.prefix.prefix_length + (entry.prefix.address.is_v4() ? 96U : 0U);  // bits
  const Number first = Number::of(entry.prefix.masked().address);
  const uint64_t high = kept >= 64 ? 0 : ~uint64_t{0} >> kept;
  const uint64_t low = kept >= 128 ? 0 : kept > 64 ? ~uint64_t{0} >> (kept - 64) : ~uint64_t{0};
  return {first, {first.high | high, first.low | low}, entry.route};
}

// Addresses from `first` on have this route, until the next call.
void RouteRanges::begin_at(const Number& first, uint16_t route) {
  if (starts_.back() == first) {
    routes_.back() = route;
  } else if (routes_.back() != route) {
    starts_.push_back(first);
    routes_.push_back(route);
  }
}

RouteRanges::RouteRanges(std::span<const RouteEntry> entries) : starts_(1), routes_(1, kNotFound) {
  std::vector<Range> ranges;
  for (const RouteEntry& e : entries) ranges.push_back(range_of(e));
  // Of ranges with the same first address, the enclosing range precedes.
  std::stable_sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
    return a.first == b.first ? a.last.after(b.last) : b.first.after(a.first);
  });
  std::vector<Range> open;  // each contains the next one
  // After an inner range, the enclosing range continues.
  const auto close = [&] {
    const Number last = open.back().last;
    open.pop_back();
    const Number next{last.high + (last.low == UINT64_MAX ? 1U : 0U), last.low + 1};
    if (next == Number{}) return;  // end of the address space
    begin_at(next, open.empty() ? kNotFound : open.back().route);
  };
  for (const Range& range : ranges) {
    while (!open.empty() && range.first.after(open.back().last)) close();
    begin_at(range.first, range.route);
    open.push_back(range);
  }
  while (!open.empty()) close();
}

}  // namespace roci

#include "roci-perf/options/option_values.hpp"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace roci::perf {

Result<uint64_t> parse_whole(std::string_view text) {
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc{} || stop != end) return fail("not a whole number");
  return value;
}

Result<double> parse_number(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || end != text.c_str() + text.size() || !std::isfinite(value)) return fail("not a number");
  return value;
}

Result<uint64_t> parse_size(std::string_view text) {
  unsigned shift = 0;
  if (!text.empty()) {
    switch (text.back()) {
      case 'k':
      case 'K':
        shift = 10;
        break;
      case 'm':
      case 'M':
        shift = 20;
        break;
      case 'g':
      case 'G':
        shift = 30;
        break;
      default:
        break;
    }
    if (shift != 0) text.remove_suffix(1);
  }
  auto value = parse_whole(text);
  if (!value) return value;
  if (*value > (std::numeric_limits<uint64_t>::max() >> shift)) return fail("too large");
  return *value << shift;
}

Result<double> parse_probability(const std::string& text) {
  auto value = roci::parse_probability(text);
  if (!value || *value >= 1) {
    return fail("allowed is a fraction below 1, such as 0.001 or 0.1%");
  }
  return value;
}

}  // namespace roci::perf

#include "base/units.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>
#include <span>
#include <string>

namespace roci {
namespace {

__extension__ using Wide = unsigned __int128;

struct Unit {
  std::string_view name;
  uint64_t scale;
};

constexpr std::array<Unit, 10> kByteUnits{{{"", 1},
                                           {"B", 1},
                                           {"KB", 1'000},
                                           {"MB", 1'000'000},
                                           {"GB", 1'000'000'000},
                                           {"TB", 1'000'000'000'000},
                                           {"KiB", 1ULL << 10},
                                           {"MiB", 1ULL << 20},
                                           {"GiB", 1ULL << 30},
                                           {"TiB", 1ULL << 40}}};
constexpr std::array<Unit, 5> kRatePrefixes{
    {{"", 1}, {"K", 1'000}, {"M", 1'000'000}, {"G", 1'000'000'000}, {"T", 1'000'000'000'000}}};
constexpr std::array<std::string_view, 3> kRateSuffixes{"bps", "b/s", "bit/s"};
constexpr std::array<Unit, 7> kTimeUnits{{{"ns", 1},
                                          {"us", 1'000},
                                          {"\xc2\xb5s", 1'000},  // U+00B5
                                          {"ms", 1'000'000},
                                          {"s", 1'000'000'000},
                                          {"min", 60'000'000'000},
                                          {"h", 3'600'000'000'000}}};

// "12.50 GiB" is split into the digits 1250, two decimals, and the unit "GiB".
struct Quantity {
  uint64_t digits = 0;
  unsigned decimals = 0;
  std::string_view unit;
};

std::optional<Quantity> split(std::string_view text) {
  Quantity q;
  size_t i = 0, count = 0;
  bool point = false;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '.' && !point && count > 0) {
      point = true;
      continue;
    }
    if (c < '0' || c > '9') break;
    if (++count > 18) return std::nullopt;  // 10^18 fits into 64 bits
    q.digits = q.digits * 10 + static_cast<unsigned>(c - '0');
    if (point) ++q.decimals;
  }
  if (count == 0 || text[i - 1] == '.') return std::nullopt;
  while (i < text.size() && text[i] == ' ') ++i;
  q.unit = text.substr(i);
  return q;
}

// digits * scale / 10^decimals, if it is a whole number of at most `most`.
std::optional<uint64_t> scaled(const Quantity& q, uint64_t scale, uint64_t most) {
  uint64_t divisor = 1;
  for (unsigned i = 0; i < q.decimals; ++i) divisor *= 10;
  const Wide product = static_cast<Wide>(q.digits) * scale;
  if (product % divisor != 0 || product / divisor > most) return std::nullopt;
  return static_cast<uint64_t>(product / divisor);
}

std::optional<uint64_t> find_scale(std::span<const Unit> units, std::string_view name) {
  for (const Unit& u : units) {
    if (u.name == name) return u.scale;
  }
  return std::nullopt;
}

std::string quoted(std::string_view text) { return "'" + std::string{text} + "'"; }

}  // namespace

Result<Bytes> parse_bytes(std::string_view text) {
  if (const auto q = split(text)) {
    if (const auto scale = find_scale(kByteUnits, q->unit)) {
      if (const auto value = scaled(*q, *scale, UINT64_MAX)) return Bytes{*value};
    }
  }
  return fail(quoted(text) + " is not a size like 1500, 64KB (1000) or 1MiB (1024)");
}

Result<BitsPerSec> parse_rate(std::string_view text) {
  if (const auto q = split(text)) {
    if (q->unit.empty() && q->digits == 0) return BitsPerSec{0};
    for (const std::string_view suffix : kRateSuffixes) {
      if (!q->unit.ends_with(suffix)) continue;
      const auto scale = find_scale(kRatePrefixes, q->unit.substr(0, q->unit.size() - suffix.size()));
      if (!scale) break;
      if (const auto value = scaled(*q, *scale, INT64_MAX)) return BitsPerSec{*value};
    }
  }
  return fail(quoted(text) + " is not a rate like 10Gbps, 25 Gb/s, 800Mbit/s or 0 (no limit)");
}

Result<Nanos> parse_duration(std::string_view text) {
  if (text == "never") return kNever;
  if (const auto q = split(text)) {
    if (q->unit.empty() && q->digits == 0) return Nanos{0};
    if (const auto scale = find_scale(kTimeUnits, q->unit)) {
      if (const auto value = scaled(*q, *scale, INT64_MAX)) return Nanos{static_cast<int64_t>(*value)};
    }
  }
  return fail(quoted(text) + " is not a time like 500ns, 10us, 1.5ms, 300s, 5min or never");
}

Result<bool> parse_bool(std::string_view text) {
  if (text == "true" || text == "yes" || text == "on") return true;
  if (text == "false" || text == "no" || text == "off") return false;
  return fail(quoted(text) + " is not a Boolean; allowed are true and false");
}

Result<int64_t> parse_integer(std::string_view text, int64_t low, int64_t high) {
  int64_t value = 0;
  const bool hex = text.starts_with("0x") || text.starts_with("0X");
  const std::string_view digits = hex ? text.substr(2) : text;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, hex ? 16 : 10);
  const bool whole =
      error == std::errc{} && end == digits.data() + digits.size() && !(hex && digits[0] == '-');
  if (!whole || value < low || value > high) {
    return fail(quoted(text) + " is not a whole number from " + std::to_string(low) + " to " +
                std::to_string(high));
  }
  return value;
}

Result<double> parse_number(std::string_view text, double low, double high) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value) || value < low ||
      value > high) {
    std::array<char, 64> range;
    std::snprintf(range.data(), range.size(), "%g to %g", low, high);
    return fail(quoted(text) + " is not a number from " + range.data());
  }
  return value;
}

Result<double> parse_probability(std::string_view text) {
  const bool percent = text.ends_with('%');
  const auto number = parse_number(text.substr(0, text.size() - (percent ? 1 : 0)), 0, percent ? 100 : 1);
  if (!number) return fail(quoted(text) + " is not a probability from 0 to 1, such as 0.01 or 1%");
  return percent ? *number / 100 : *number;
}

std::string number_text(double value) {
  std::array<char, 40> text;
  constexpr double kPlain = 1e5;  // smaller values are printed without an exponent
  if (std::fabs(value) >= kPlain && std::fmod(value, 1000) == 0) {
    unsigned exponent = 0;
    for (; std::fabs(value) >= 1000 && std::fmod(value, 1000) == 0; exponent += 3) value /= 1000;
    std::snprintf(text.data(), text.size(), "%.10ge%u", value, exponent);
  } else {
    std::snprintf(text.data(), text.size(), "%.10g", value);
  }
  return text.data();
}

}  // namespace roci

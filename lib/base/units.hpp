// Parsers of quantities with units, for configuration files and command lines, and the text of a number. The parsers
// are strict: a rate or time without a unit (except 0), an ambiguous unit or a fraction of the smallest unit is an error
// that states what is allowed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/types.hpp"

namespace roci {

// "64", "64B", "64KB" (1000), "64KiB" (1024), "1.5MiB", up to TiB.
Result<Bytes> parse_bytes(std::string_view text);
// "10Gbps", "25 Gb/s", "2.5Gbit/s", with prefix K, M, G, T or none; "0" is no limit.
Result<BitsPerSec> parse_rate(std::string_view text);
// "10us", "1.5 ms", "300s", "5min", "1h", "0", "never".
Result<Nanos> parse_duration(std::string_view text);
// "true", "yes", "on"; "false", "no", "off".
Result<bool> parse_bool(std::string_view text);
// Decimal, or hexadecimal after 0x; both limits are allowed values.
Result<int64_t> parse_integer(std::string_view text, int64_t low, int64_t high);
Result<double> parse_number(std::string_view text, double low, double high);
// From 0 to 1, such as "0.01" or "1%".
Result<double> parse_probability(std::string_view text);
// The shortest readable form: "0.95", "4000", "300e3", "10e12".
std::string number_text(double value);

}  // namespace roci

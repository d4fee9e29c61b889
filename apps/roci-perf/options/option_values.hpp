// Parsers of option values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace roci::perf {

Result<uint64_t> parse_whole(std::string_view text);
Result<double> parse_number(const std::string& text);

// "64K" -> 65536; K, M and G are powers of 1024.
Result<uint64_t> parse_size(std::string_view text);

// "0.1%" and "0.001" -> 0.001. At least 0 and less than 1.
Result<double> parse_probability(const std::string& text);

}  // namespace roci::perf

// Formatting of numbers and names in tables.
#pragma once

#include <cstdint>
#include <string>

namespace roci::top {

// "0", "999", "12.3k", "4.5M"; units of 1000, or of 1024 with `binary`. At most 5 characters up to 999 of the largest
// unit.
std::string short_number(double value, bool binary);
// "0.123", "123.45", "1234.5"
std::string decimal(double value);
// Gb/s from bytes per second, and millions of packets.
inline std::string gigabits(double bytes) { return decimal(bytes * 8e-9); }
inline std::string millions(double packets) { return decimal(packets * 1e-6); }
inline std::string thousands(double value) { return short_number(value, false); }
// "1,234,567"
std::string grouped(uint64_t number);
// "[####  |  ]": the current value as filled cells, the peak as a mark.
std::string bar(uint64_t now, uint64_t peak, uint64_t limit, size_t width);
// Removes control characters, and truncates or pads the text with spaces to `width` characters.
std::string fitted(const std::string& text, size_t width);
// For one-byte characters. A longer text keeps a leading space and exceeds `width`.
std::string right_aligned(const std::string& text, size_t width);

}  // namespace roci::top

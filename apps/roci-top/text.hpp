// Numbers and names as they stand in tables.
#pragma once

#include <cstdint>
#include <string>

namespace roci::top {

// "0", "999", "12.3k", "4.5M"; thousands, or 1,024s with `binary`. At most 5 characters up to 999 of the largest unit.
std::string short_number(double value, bool binary);
// "0.123", "123.45", "1234.5"
std::string decimal(double value);
// Gb/s of bytes a second, and millions of packets.
inline std::string gigabits(double bytes) { return decimal(bytes * 8e-9); }
inline std::string millions(double packets) { return decimal(packets * 1e-6); }
inline std::string thousands(double value) { return short_number(value, false); }
// "1,234,567"
std::string grouped(uint64_t number);
// "[####  |  ]": what there is now, and how far it has been at most.
std::string bar(uint64_t now, uint64_t peak, uint64_t limit, size_t width);
// Without control characters, and cut or filled up with blanks to so many characters.
std::string fitted(const std::string& text, size_t width);
// Of one byte a character; a text that is too long keeps a blank in front and makes the line longer.
std::string right_aligned(const std::string& text, size_t width);

}  // namespace roci::top

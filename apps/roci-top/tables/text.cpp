#include "roci-top/tables/text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string_view>

namespace roci::top {
namespace {

// Length in bytes of the first UTF-8 character; 0 if it is invalid.
size_t character_length(std::string_view text) {
  const auto byte = static_cast<unsigned char>(text.front());
  const size_t length = byte < 0x80   ? 1
                        : byte < 0xc2 ? 0
                        : byte < 0xe0 ? 2
                        : byte < 0xf0 ? 3
                        : byte < 0xf5 ? 4
                                      : 0;
  if (length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return 0;
  }
  return length;
}

// ASCII control characters, and U+0080 to U+009f, which terminals also interpret.
bool is_control(std::string_view character) {
  const auto byte = static_cast<unsigned char>(character[0]);
  return byte < 0x20 || byte == 0x7f || (byte == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0);
}

}  // namespace

std::string decimal(double value) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), value < 100 ? "%.3f" : value < 1000 ? "%.2f" : "%.1f", value);
  return text.data();
}

std::string right_aligned(const std::string& text, size_t width) {
  return text.size() >= width ? " " + text : std::string(width - text.size(), ' ') + text;
}

std::string short_number(double value, bool binary) {
  constexpr std::array kThousands = {"", "k", "M", "G", "T"};
  constexpr std::array kBinary = {"", "K", "M", "G", "T"};
  const double step = binary ? 1024 : 1000;
  size_t unit = 0;
  // Scaled from 999.5, which would be printed as 1000.
  for (; value >= 999.5 && unit + 1 < kThousands.size(); ++unit) value /= step;
  std::array<char, 32> text;
  const bool fraction = unit > 0 && value < 99.95;
  const bool small = unit == 0 && value > 0 && value < 9.95 && value != std::floor(value);
  std::snprintf(text.data(), text.size(), fraction || small ? "%.1f%s" : "%.0f%s", value,
                binary ? kBinary[unit] : kThousands[unit]);
  return text.data();
}

std::string bar(uint64_t now, uint64_t peak, uint64_t limit, size_t width) {
  if (width < 3) return std::string(width, ' ');
  const size_t space = width - 2;
  // A nonzero value has at least one cell.
  const auto cells = [&](uint64_t value) -> size_t {
    if (value == 0) return 0;
    if (limit == 0) return space;
    const double part = static_cast<double>(value) / static_cast<double>(limit);
    return std::clamp<size_t>(static_cast<size_t>(std::lround(part * static_cast<double>(space))), 1, space);
  };
  std::string inside(space, ' ');
  std::fill_n(inside.begin(), cells(now), '#');
  if (const size_t most = cells(std::max(now, peak)); most > cells(now)) inside[most - 1] = '|';
  return "[" + inside + "]";
}

std::string fitted(const std::string& text, size_t width) {
  std::string out;
  size_t characters = 0;
  for (size_t i = 0; i < text.size() && characters < width; ++characters) {
    const size_t length = character_length(std::string_view{text}.substr(i));
    const std::string_view character = std::string_view{text}.substr(i, std::max<size_t>(length, 1));
    out += length == 0 || is_control(character) ? "?" : character;
    i += character.size();
  }
  return out + std::string(width - characters, ' ');
}

std::string grouped(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t end = text.size(); end > 3; end -= 3) text.insert(end - 3, ",");
  return text;
}

}  // namespace roci::top

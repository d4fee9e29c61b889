#include "lab/exchange/ns3_words.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <optional>
#include <utility>

namespace roci::lab {
namespace {

bool is_separator(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
}

// "2.5Gbps" as 2.5 and "Gbps". Exponents are allowed, since the simulator accepts them.
struct Measure {
  double value = 0;
  std::string_view unit;
};
std::optional<Measure> measure_of(std::string_view text) {
  Measure out;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out.value);
  if (error != std::errc{} || !std::isfinite(out.value) || out.value < 0) return std::nullopt;
  out.unit = text.substr(static_cast<size_t>(end - text.data()));
  return out;
}

struct UnitScale {
  std::string_view name;
  double scale;
};
template <size_t N>
std::optional<double> scale_of(const std::array<UnitScale, N>& units, std::string_view name) {
  for (const UnitScale& one : units)
    if (one.name == name) return one.scale;
  return std::nullopt;
}

constexpr std::array<UnitScale, 6> kRateScales{
    {{"", 1}, {"k", 1e3}, {"K", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}}};
constexpr std::array<UnitScale, 7> kTimeScales{
    {{"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}, {"min", 60e9}, {"h", 3600e9}}};
constexpr double kMaxTime = 3600e9;  // ns
constexpr double kMaxRate = 1e15;    // bit/s

}  // namespace

std::string ns3_quoted(std::string_view text) {
  constexpr size_t kShown = 64;
  std::string out = "'";
  for (const char c : text.substr(0, kShown)) out += c >= ' ' && c <= '~' ? c : '?';
  return out + (text.size() > kShown ? "…'" : "'");
}

void Ns3Words::skip_space(bool across_lines) {
  for (; at_ < text_.size() && is_separator(text_[at_]); ++at_) {
    if (text_[at_] != '\n') continue;
    if (!across_lines) return;
    ++line_;
  }
}

Result<Ns3Word> Ns3Words::next(const char* what) {
  skip_space(true);
  if (at_ == text_.size()) return fail(error(line_, std::string("the file ends before ") + what));
  const size_t from = at_;
  while (at_ < text_.size() && !is_separator(text_[at_])) ++at_;
  return Ns3Word{text_.substr(from, at_ - from), line_};
}

Result<uint64_t> Ns3Words::number(const char* what, uint64_t low, uint64_t high) {
  auto word = next(what);
  if (!word) return fail(word.error());
  auto value = parse_ns3_number(word->text, low, high);
  if (!value) return fail(error(word->line, std::string(what) + ": " + value.error().message));
  return *value;
}

std::vector<Ns3Word> Ns3Words::line() {
  std::vector<Ns3Word> words;
  skip_space(true);
  for (; at_ < text_.size() && text_[at_] != '\n'; skip_space(false)) {
    const size_t from = at_;
    while (at_ < text_.size() && !is_separator(text_[at_])) ++at_;
    words.push_back({text_.substr(from, at_ - from), line_});
  }
  return words;
}

size_t Ns3Words::rest() {
  size_t count = 0;
  for (skip_space(true); at_ < text_.size(); skip_space(true), ++count)
    while (at_ < text_.size() && !is_separator(text_[at_])) ++at_;
  return count;
}

Error Ns3Words::error(size_t line, const std::string& message) const {
  return {name_ + ":" + std::to_string(line) + ": " + message};
}

Result<std::string> read_ns3_text(const std::string& file) {
  std::ifstream in{file, std::ios::binary};
  std::string text;
  std::array<char, 65536> part;
  while (in.read(part.data(), part.size()) || in.gcount() > 0) {
    text.append(part.data(), static_cast<size_t>(in.gcount()));
    if (text.size() > kMaxNs3Text)
      return fail("'" + file + "' exceeds " + std::to_string(kMaxNs3Text) + " bytes", EFBIG);
  }
  if (!in.is_open() || in.bad()) return fail("'" + file + "' cannot be read: " + std::strerror(errno), errno);
  return text;
}

Result<uint64_t> parse_ns3_number(std::string_view text, uint64_t low, uint64_t high) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size() && value >= low && value <= high) return value;
  return fail(ns3_quoted(text) + " is not an integer from " + std::to_string(low) + " to " +
              std::to_string(high));
}

Result<BitsPerSec> parse_ns3_rate(std::string_view text) {
  const auto measure = measure_of(text);
  const auto wrong = [&] { return fail(ns3_quoted(text) + " is not a rate such as 100Gbps or 40Mb/s"); };
  if (!measure) return wrong();
  double scale = 1;
  std::string_view unit = measure->unit;
  for (const auto& [suffix, bits] :
       {std::pair<std::string_view, int>{"bps", 1}, {"b/s", 1}, {"Bps", 8}, {"B/s", 8}}) {
    if (!unit.ends_with(suffix)) continue;
    const auto prefix = scale_of(kRateScales, unit.substr(0, unit.size() - suffix.size()));
    if (!prefix) return wrong();
    scale = *prefix * bits;
    unit = "";
    break;
  }
  const double rate = measure->value * scale;
  if (!unit.empty() || rate > kMaxRate) return wrong();
  return BitsPerSec{static_cast<uint64_t>(std::llround(rate))};
}

Result<Nanos> parse_ns3_time(std::string_view text) {
  const auto measure = measure_of(text);
  const auto scale = measure ? scale_of(kTimeScales, measure->unit) : std::nullopt;
  if (!scale || measure->value * *scale > kMaxTime)
    return fail(ns3_quoted(text) + " is not a time of at most one hour, such as 1000ns or 2.5 (seconds)");
  return Nanos{std::llround(measure->value * *scale)};
}

std::string ns3_seconds(Nanos time) {
  constexpr int64_t kSecond = 1'000'000'000;
  const std::string fraction = std::to_string(kSecond + time.count() % kSecond).substr(1);
  return std::to_string(time.count() / kSecond) + "." + fraction;
}

std::string ns3_rate(double bit_per_s) {
  for (const auto& [unit, scale] : {std::pair{"Gbps", 1e9}, {"Mbps", 1e6}, {"Kbps", 1e3}}) {
    if (bit_per_s >= scale && bit_per_s / scale == std::floor(bit_per_s / scale))
      return shortest_number(bit_per_s / scale) + unit;
  }
  return shortest_number(std::round(bit_per_s)) + "bps";
}

std::string shortest_number(double value) {
  std::array<char, 64> text;
  const bool whole = value == std::floor(value) && std::fabs(value) < 1e18;
  const auto done = whole ? std::to_chars(text.data(), text.data() + text.size(), static_cast<int64_t>(value))
                          : std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), done.ptr};
}

}  // namespace roci::lab

// Distribution of message sizes: a cumulative distribution in the format of common traffic generators, with lines of
// "bytes percent" and linear interpolation between them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/rng.hpp"

namespace roci::lab {

class SizeDistribution {
 public:
  // Sizes and percentages must not decrease. The first percentage may be above 0, the last one must be 100. '#' starts
  // a comment. `name` is used in errors.
  static Result<SizeDistribution> parse(const std::string& text, const std::string& name);
  static Result<SizeDistribution> read(const std::string& file);
  // Distribution with a single size.
  static SizeDistribution constant(uint64_t bytes);

  // Draws a size, at least 1.
  [[nodiscard]] uint64_t draw(Rng& rng) const;
  // Size at this part of all messages, 0 to 1.
  [[nodiscard]] double at(double part) const;
  [[nodiscard]] double mean() const;
  [[nodiscard]] uint64_t largest() const;

  friend bool operator==(const SizeDistribution&, const SizeDistribution&) = default;

 private:
  struct Point {
    double bytes = 0;
    double part = 0;  // fraction of the messages that are not larger
    friend bool operator==(const Point&, const Point&) = default;
  };
  std::vector<Point> points_;
};

}  // namespace roci::lab

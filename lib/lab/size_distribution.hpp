// How large messages are: a cumulative distribution as the field's traffic generators have them, lines of "bytes percent" with
// straight lines between them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/rng.hpp"

namespace roci::lab {

class SizeDistribution {
 public:
  // Sizes and percentages rise, from 0 % or more at the first line to 100 at the last; '#' begins a comment. `name` is for
  // errors.
  static Result<SizeDistribution> parse(const std::string& text, const std::string& name);
  static Result<SizeDistribution> read(const std::string& file);
  // All alike.
  static SizeDistribution constant(uint64_t bytes);

  // At least 1.
  [[nodiscard]] uint64_t draw(Rng& rng) const;
  // At this part of all messages, 0 to 1.
  [[nodiscard]] double at(double part) const;
  [[nodiscard]] double mean() const;
  [[nodiscard]] uint64_t largest() const;

  friend bool operator==(const SizeDistribution&, const SizeDistribution&) = default;

 private:
  struct Point {
    double bytes = 0;
    double part = 0;  // of the messages are not larger
    friend bool operator==(const Point&, const Point&) = default;
  };
  std::vector<Point> points_;
};

}  // namespace roci::lab

#include "lab/traffic/size_distribution.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>

namespace roci::lab {

Result<SizeDistribution> SizeDistribution::parse(const std::string& text, const std::string& name) {
  SizeDistribution out;
  std::istringstream lines{text};
  size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    line.resize(std::min(line.size(), line.find('#')));
    std::istringstream words{line};
    std::string size, part, more;
    if (!(words >> size)) continue;
    const auto wrong = [&](const std::string& what) {
      return fail(name + ":" + std::to_string(number) + ": " + what);
    };
    Point point;
    const auto number_of = [](const std::string& word, double& out_value) {
      char* end = nullptr;
      out_value = std::strtod(word.c_str(), &end);
      return end != word.c_str() && *end == 0 && std::isfinite(out_value);
    };
    if (!(words >> part) || (words >> more) || !number_of(size, point.bytes) || !number_of(part, point.part))
      return wrong("'" + line + "' is not a size in bytes and a percentage");
    point.part /= 100;
    if (point.bytes < 0 || point.bytes > 1e12 || point.part < 0 || point.part > 1)
      return wrong("'" + line + "' is out of range; sizes up to 1e12 bytes and 0 to 100 percent are allowed");
    if (!out.points_.empty() &&
        (point.bytes < out.points_.back().bytes || point.part < out.points_.back().part))
      return wrong("'" + line + "' is below the previous line");
    out.points_.push_back(point);
  }
  if (out.points_.empty()) return fail(name + ": contains no sizes");
  if (out.points_.back().part != 1) return fail(name + ": the last line does not reach 100 percent");
  return out;
}

Result<SizeDistribution> SizeDistribution::read(const std::string& file) {
  std::ifstream in{file};
  std::ostringstream text;
  if (in) text << in.rdbuf();
  if (!in || in.bad())
    return fail("the distribution '" + file + "' cannot be read: " + std::strerror(errno), errno);
  return parse(text.str(), file);
}

SizeDistribution SizeDistribution::constant(uint64_t bytes) {
  SizeDistribution out;
  out.points_.push_back({static_cast<double>(bytes), 1});
  return out;
}

double SizeDistribution::at(double part) const {
  const auto above = std::ranges::lower_bound(points_, part, {}, &Point::part);
  if (above == points_.begin()) return above->bytes;
  if (above == points_.end()) return points_.back().bytes;
  const Point& below = *(above - 1);
  if (above->part == below.part) return above->bytes;
  return below.bytes + (above->bytes - below.bytes) * (part - below.part) / (above->part - below.part);
}

uint64_t SizeDistribution::draw(Rng& rng) const {
  return std::max<uint64_t>(1, static_cast<uint64_t>(std::llround(at(rng.unit()))));
}

double SizeDistribution::mean() const {
  double sum = points_.front().bytes * points_.front().part;
  for (size_t i = 1; i < points_.size(); ++i)
    sum += (points_[i].bytes + points_[i - 1].bytes) / 2 * (points_[i].part - points_[i - 1].part);
  return sum;
}

uint64_t SizeDistribution::largest() const {
  return std::max<uint64_t>(1, static_cast<uint64_t>(std::llround(points_.back().bytes)));
}

}  // namespace roci::lab

#include "roci-top/readers/queue_pair_choice.hpp"

#include <algorithm>
#include <iterator>

namespace roci::top {
namespace {

std::vector<uint32_t> numbers_of(const std::vector<ActivitySample>& all) {
  std::vector<uint32_t> numbers;
  for (const ActivitySample& qp : all) numbers.push_back(qp.number);
  return numbers;
}

// Packets per nanosecond; 0 without an earlier sample.
double rate_of(const ActivitySample& qp, const std::vector<ActivitySample>& before) {
  const auto old = std::ranges::lower_bound(before, qp.number, {}, &ActivitySample::number);
  if (old == before.end() || old->number != qp.number || old->at >= qp.at) return 0;
  return static_cast<double>((qp.psns - old->psns) & 0xffffff) /
         static_cast<double>((qp.at - old->at).count());
}

// The `most` busiest queue pairs, sorted by number.
std::vector<uint32_t> busiest(const std::vector<ActivitySample>& all,
                              const std::vector<ActivitySample>& before, size_t most) {
  std::vector<std::pair<double, uint32_t>> rates;
  for (const ActivitySample& qp : all) rates.emplace_back(rate_of(qp, before), qp.number);
  std::ranges::stable_sort(rates, std::ranges::greater{}, &std::pair<double, uint32_t>::first);
  rates.resize(std::min(rates.size(), most));
  std::vector<uint32_t> numbers;
  for (const auto& [rate, number] : rates) numbers.push_back(number);
  std::ranges::sort(numbers);
  return numbers;
}

}  // namespace

QueuePairChoice::Chosen QueuePairChoice::choose(const std::string& host, std::vector<ActivitySample> all) {
  const bool first = !before_.contains(host);
  Before& before = before_[host];
  const std::vector<uint32_t> numbers = numbers_of(all);
  Chosen chosen;
  std::vector<uint32_t> next;
  if (numbers.size() <= most_) {
    chosen.shown = next = numbers;
  } else {
    next = busiest(all, before.all, most_);
    if (first) before.chosen = next;
    std::ranges::set_intersection(before.chosen, numbers, std::back_inserter(chosen.shown));
  }
  std::ranges::set_union(chosen.shown, next, std::back_inserter(chosen.requested));
  before = {std::move(all), std::move(next)};
  return chosen;
}

}  // namespace roci::top

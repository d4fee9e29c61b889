#include "switch/qcn/available_rate.hpp"

#include <algorithm>

namespace roci {
namespace {

constexpr double kMin = 100'000;  // b/s that a flow always keeps: the resolution of CNMs
constexpr double kMaxFall = 0.5;
constexpr int64_t kMaxSteps = 32;  // per update, after this many round trips without a frame

double seconds_of(Nanos span) { return static_cast<double>(span.count()) * 1e-9; }

}  // namespace

AvailableRate::AvailableRate(const Config& config)
    : line_(static_cast<double>(config.line.value())),
      guaranteed_(line_ * config.share),
      rtt_(config.rtt),
      rate_(line_) {}

void AvailableRate::update(uint64_t queue, uint64_t others, Nanos now) {
  const Nanos elapsed = now - since_;
  const auto rate_of = [&](uint64_t bytes) { return static_cast<double>(bytes) * 8 / seconds_of(elapsed); };
  const double capacity = std::max({line_ - rate_of(others - others_), guaranteed_, kMin});
  spare_ =
      kAlpha * (capacity - rate_of(arrived_)) - kBeta * static_cast<double>(queue) * 8 / seconds_of(rtt_);
  const Nanos step = std::min(elapsed, rtt_);
  const double factor = std::max(1 + spare_ / capacity * seconds_of(step) / seconds_of(rtt_), kMaxFall);
  for (int64_t left = std::min(elapsed / step, kMaxSteps); left > 0; --left)
    rate_ = std::clamp(rate_ * factor, kMin, capacity);
  arrived_ = 0;
  others_ = others;
  since_ = now;
}

int64_t AvailableRate::take_change(Nanos now) {
  const Nanos since = std::min(now - sampled_, rtt_ * kMaxSteps);
  sampled_ = now;
  return static_cast<int64_t>(std::clamp(spare_ * seconds_of(since) / seconds_of(rtt_), -line_, line_));
}

}  // namespace roci

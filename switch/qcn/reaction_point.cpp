#include "switch/qcn/reaction_point.hpp"

#include <algorithm>
#include <limits>

namespace roci {
namespace {

double bits(BitsPerSec rate) { return static_cast<double>(rate.value()); }

uint64_t nanos(Nanos time) { return static_cast<uint64_t>(time.count()); }

rp::Rules rules_of(const ReactionConfig& config, BitsPerSec line) {
  return {.max = bits(line),
          .min = bits(config.min),
          .ai = bits(config.ai),
          .hai = bits(config.hai),
          .active_from = config.threshold + 1.0,
          .hyper_above = static_cast<double>(config.threshold),
          .reduces_target = true,
          .max_cycles = std::numeric_limits<uint32_t>::max()};
}

}  // namespace

ReactionPoint::ReactionPoint(const ReactionConfig& config, BitsPerSec line, uint64_t seed)
    : config_(config),
      rules_(rules_of(config, line)),
      rng_(seed),
      state_{.current_rate = rules_.max, .target_rate = rules_.max} {}

void ReactionPoint::begin(BitsPerSec sending) {
  if (is_limiting()) return;
  state_.current_rate = state_.target_rate = std::clamp(bits(sending), rules_.min, rules_.max);
}

void ReactionPoint::start_over(Nanos now) {
  state_.byte_stage = state_.time_stage = 0;
  state_.bytes_left = byte_cycle();
  state_.increase_due = nanos(now) + time_cycle();
}

void ReactionPoint::slow_down(uint8_t feedback, BitsPerSec sending, Nanos now) {
  begin(sending);
  const double decrease = std::min(config_.gd * feedback, kMaxDecrease);
  // In a series of decreases without a cycle in between, the target is the rate before the first one.
  rates().cut(1 - decrease, state_.byte_stage != 0 || state_.time_stage != 0);
  start_over(now);
}

void ReactionPoint::change(int64_t by, BitsPerSec sending, Nanos now) {
  if (!is_limiting() && by >= 0) return;
  begin(sending);
  state_.current_rate = std::clamp(state_.current_rate + static_cast<double>(by), rules_.min, rules_.max);
  state_.target_rate = state_.current_rate;
  start_over(now);
  if (state_.current_rate >= rules_.max) state_.increase_due = 0;
}

void ReactionPoint::sent(uint64_t bytes, Nanos now) {
  if (!is_limiting()) return;
  advance(now);
  rates().count(bytes, state_.bytes_left, [this] { return byte_cycle(); });
  if (is_limiting()) state_.bytes_left -= bytes;
}

void ReactionPoint::advance(Nanos now) {
  rates().pass_time(nanos(now), [this] { return time_cycle(); });
}

uint64_t ReactionPoint::time_cycle() {
  return rng_.around(nanos(config_.time_reset) / (state_.time_stage < config_.threshold ? 1 : 2));
}

uint64_t ReactionPoint::byte_cycle() {
  return rng_.around(config_.byte_reset.value() / (state_.byte_stage < config_.threshold ? 1 : 2));
}

}  // namespace roci

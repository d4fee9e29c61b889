#include "switch/reaction_point.hpp"

#include <algorithm>

namespace roci {
namespace {

// A target of more than kTargetTooFar times the rate is divided by kTargetCut at the first cycle (802.1Q 32.12.2).
constexpr double kTargetTooFar = 10;
constexpr double kTargetCut = 8;

double bits(BitsPerSec rate) { return static_cast<double>(rate.value()); }

}  // namespace

ReactionPoint::ReactionPoint(const ReactionConfig& config, BitsPerSec line, uint64_t seed)
    : config_(config), line_(bits(line)), rng_(seed), rate_(line_), target_(line_) {}

void ReactionPoint::begin(BitsPerSec sending) {
  if (limiting_) return;
  limiting_ = true;
  rate_ = target_ = std::clamp(bits(sending), bits(config_.min), line_);
}

void ReactionPoint::start_over(Nanos now) {
  byte_stage_ = time_stage_ = 0;
  bytes_left_ = byte_cycle();
  timer_ = now + time_cycle();
}

void ReactionPoint::slow_down(uint8_t feedback, BitsPerSec sending, Nanos now) {
  begin(sending);
  // In a series of decreases without a cycle in between, the target is the rate before the first one.
  if (byte_stage_ != 0 || time_stage_ != 0) target_ = rate_;
  const double decrease = std::min(config_.gd * feedback, kMaxDecrease);
  rate_ = std::max(rate_ * (1 - decrease), bits(config_.min));
  start_over(now);
}

void ReactionPoint::change(int64_t by, BitsPerSec sending, Nanos now) {
  if (!limiting_ && by >= 0) return;
  begin(sending);
  rate_ = std::clamp(rate_ + static_cast<double>(by), bits(config_.min), line_);
  target_ = rate_;
  start_over(now);
  limiting_ = rate_ < line_;
}

void ReactionPoint::sent(uint64_t bytes, Nanos now) {
  if (!limiting_) return;
  advance(now);
  bytes_left_ -= static_cast<int64_t>(bytes);
  while (limiting_ && bytes_left_ <= 0) {
    ++byte_stage_;
    bytes_left_ += byte_cycle();
    rise();
  }
}

void ReactionPoint::advance(Nanos now) {
  while (limiting_ && timer_ <= now) {
    ++time_stage_;
    timer_ += time_cycle();
    rise();
  }
}

void ReactionPoint::rise() {
  const uint32_t least = std::min(byte_stage_, time_stage_), most = std::max(byte_stage_, time_stage_);
  if (most == 1 && target_ > kTargetTooFar * rate_) {
    target_ /= kTargetCut;
  } else if (least > config_.threshold) {
    target_ += bits(config_.hai) * (least - config_.threshold);
  } else if (most > config_.threshold) {
    target_ += bits(config_.ai);
  }
  target_ = std::min(target_, line_);
  rate_ = std::min((rate_ + target_) / 2, line_);
  // Halving the difference never reaches the line rate.
  if (line_ - rate_ < line_ / 1000) {
    rate_ = line_;
    limiting_ = false;
  }
}

Nanos ReactionPoint::time_cycle() {
  const auto mean =
      static_cast<uint64_t>(config_.time_reset.count()) / (time_stage_ < config_.threshold ? 1 : 2);
  return Nanos{static_cast<int64_t>(rng_.around(mean))};
}

int64_t ReactionPoint::byte_cycle() {
  const uint64_t mean = config_.byte_reset.value() / (byte_stage_ < config_.threshold ? 1 : 2);
  return static_cast<int64_t>(rng_.around(mean));
}

}  // namespace roci

#include "switch/aqm.hpp"

#include <cmath>

namespace roci {
namespace {

// What an idle queue is taken to have sent meanwhile when its average decays (Floyd and Jacobson 1993, section 11).
constexpr Bytes kTypicalFrame{1024};

bool is_ect(Ecn ecn) { return ecn != Ecn::kNotEct; }

}  // namespace

AqmVerdict Aqm::decide_arrival(uint64_t queue, Ecn ecn, Nanos now) {
  const bool here = config_.mark_at == AqmConfig::MarkAt::kEnqueue;
  const MarkingCurve& curve = is_ect(ecn) ? config_.mark : config_.drop;
  const double length = average(queue, now);
  if (curve.never() || (is_ect(ecn) && !here)) return AqmVerdict::kPass;
  if (!rng_.chance(curve.probability(length))) return AqmVerdict::kPass;
  return is_ect(ecn) ? AqmVerdict::kMark : AqmVerdict::kDrop;
}

AqmVerdict Aqm::decide_departure(uint64_t queue, Ecn ecn, Nanos now) {
  if (queue == 0) idle_since_ = now;
  if (config_.mark_at != AqmConfig::MarkAt::kDequeue || !is_ect(ecn) || config_.mark.never())
    return AqmVerdict::kPass;
  const double length = config_.weight == 1 ? static_cast<double>(queue) : average_;
  return rng_.chance(config_.mark.probability(length)) ? AqmVerdict::kMark : AqmVerdict::kPass;
}

// The average moves with each arrival. Over an empty queue it has moved as if small frames had come all the time.
double Aqm::average(uint64_t queue, Nanos now) {
  if (config_.weight == 1) return static_cast<double>(queue);
  if (queue == 0 && rate_.value() != 0 && now > idle_since_) {
    const Nanos each = rate_.time_for(kTypicalFrame);
    average_ *= std::pow(1 - config_.weight, static_cast<double>((now - idle_since_).count()) /
                                                 static_cast<double>(each.count()));
    idle_since_ = now;
  }
  average_ += config_.weight * (static_cast<double>(queue) - average_);
  return average_;
}

}  // namespace roci

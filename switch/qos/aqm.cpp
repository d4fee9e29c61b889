#include "switch/qos/aqm.hpp"

#include <cmath>

namespace roci {
namespace {

// Frame size that an idle queue is assumed to send while its average decays (Floyd and Jacobson 1993, section 11).
constexpr Bytes kTypicalFrame{1024};

}  // namespace

Aqm::Curve Aqm::curve(const MarkingCurve& config) {
  if (config.never()) return {};
  const auto kmin = static_cast<double>(config.kmin.value()), kmax = static_cast<double>(config.kmax.value());
  return {kmin, kmax, kmax > kmin ? config.pmax / (kmax - kmin) : 0};
}

void Aqm::configure(const AqmConfig& config) {
  config_ = config;
  idle_ = config.mark.never() && config.drop.never();
  const bool here = config.mark_at == AqmConfig::MarkAt::kEnqueue;
  mark_on_arrival_ = here ? curve(config.mark) : Curve{};
  mark_on_departure_ = here ? Curve{} : curve(config.mark);
  drop_ = curve(config.drop);
}

// While the queue was empty, the average decays as if frames of kTypicalFrame were sent at line rate.
void Aqm::decay(Nanos now) {
  if (rate_.value() == 0) return;
  const Nanos each = rate_.time_for(kTypicalFrame);
  average_ *= std::pow(1 - config_.weight,
                       static_cast<double>((now - idle_since_).count()) / static_cast<double>(each.count()));
  idle_since_ = now;
}

}  // namespace roci

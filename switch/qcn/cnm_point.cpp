#include "switch/qcn/cnm_point.hpp"

#include <algorithm>
#include <limits>

namespace roci {
namespace {

// Guaranteed part of the line for a class. Strict classes have none; they get what the classes before them leave.
double share_of(const ClassConfigs& classes, uint8_t traffic_class) {
  if (classes[traffic_class].strict) return 0;
  uint64_t sum = 0;
  for (const ClassConfig& c : classes) sum += c.strict ? 0 : c.weight;
  return static_cast<double>(classes[traffic_class].weight) / static_cast<double>(sum);
}

uint8_t others_of(const ClassConfigs& classes, uint8_t traffic_class) {
  unsigned others = 0;
  for (uint8_t c = 0; c < kTrafficClasses; ++c) {
    const bool goes_first = classes[c].strict && (!classes[traffic_class].strict || c > traffic_class);
    const bool shares = !classes[c].strict && !classes[traffic_class].strict && c != traffic_class;
    others |= static_cast<unsigned>(goes_first || shares) << c;
  }
  return static_cast<uint8_t>(others);
}

template <class T>
T rate_units(int64_t rate) {
  const int64_t units = rate / static_cast<int64_t>(kL3CnmRateUnit);
  return static_cast<T>(
      std::clamp<int64_t>(units, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
}

}  // namespace

CnmPoint::CnmPoint(const SwitchPortConfig& port, uint16_t number, uint8_t traffic_class, uint32_t switch_id,
                   uint64_t seed)
    : config_(port.classes[traffic_class].qcn),
      queue_(config_.point(), seed),
      others_(others_of(port.classes, traffic_class)),
      switch_id_(switch_id),
      number_(number),
      traffic_class_(traffic_class) {
  if (config_.contents.rates())
    rate_.emplace(AvailableRate::Config{port.rate, share_of(port.classes, traffic_class), config_.rtt});
}

std::optional<CnmSample> CnmPoint::queued(uint32_t bytes, const SwitchPort& out, Nanos now) {
  ++frames_;
  const uint64_t queue = out.egress.queue(traffic_class_);
  if (rate_) {
    rate_->arrived(bytes + static_cast<uint32_t>(kEthernetLineOverhead.value()), queue, sent_by_others(out),
                   now);
  }
  if (!queue_.is_due(bytes)) return std::nullopt;
  CnmSample sample{.feedback = queue_.sample(queue), .tlvs = {}, .has_rates = rate_.has_value()};
  if (config_.l3) sample.tlvs = make_tlvs(out, now);
  return sample;
}

L3CnmTlvs CnmPoint::make_tlvs(const SwitchPort& out, Nanos now) {
  L3CnmTlvs tlvs;
  if (config_.contents.available_bandwidth)
    tlvs.available_bandwidth = rate_units<uint32_t>(static_cast<int64_t>(rate_->rate().value()));
  if (config_.contents.rate_change) tlvs.rate_change = rate_units<int32_t>(rate_->take_change(now));
  if (config_.contents.port) {
    tlvs.port =
        IntHopValues{.switch_id = switch_id_,
                     .port = number_,
                     .time = static_cast<uint32_t>(now.count()),
                     .tx_units = static_cast<uint32_t>(out.egress.line_bytes() / IntHopValues::kTxUnit),
                     .rate_mbps = ScaledCount::of(out.egress.rate().value() / 1'000'000),
                     .queue_bytes = ScaledCount::of(out.egress.queue(traffic_class_))};
  }
  if (config_.contents.ecn) {
    const auto marked = out.counters.classes[traffic_class_].marked.load(std::memory_order_relaxed);
    tlvs.ecn = EcnCounts{frames_, static_cast<uint32_t>(marked)};
  }
  return tlvs;
}

uint64_t CnmPoint::sent_by_others(const SwitchPort& out) const {
  uint64_t bytes = 0;
  for (unsigned left = others_; left != 0; left &= left - 1) {
    const SwitchClassCounters& c = out.counters.classes[static_cast<size_t>(__builtin_ctz(left))];
    bytes += c.tx_bytes.load(std::memory_order_relaxed) +
             c.tx_packets.load(std::memory_order_relaxed) * kEthernetLineOverhead.value();
  }
  return bytes;
}

}  // namespace roci

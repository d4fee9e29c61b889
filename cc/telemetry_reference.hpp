// Comparison of a path's telemetry with the previous sample of a flow, for algorithms that measure link load (INT).
//
// Counters and times of telemetry are totals, so a rate is the difference of two samples of the same port. A state of
// an algorithm has the members of the previous sample:
//
//   roci::cc::ReferenceHop hop[N];   the last N hops of the path
//   uint64_t kept_ns;                time of the last update of `hop`
//   uint32_t hops;                   valid entries of `hop`; 0: no sample
//
// Rules:
//  - The first sample is only stored. The same applies after a pause and if the path has changed: another number of
//    hops, or another switch or port.
//  - A hop is ignored, and its reference kept, if its time goes back, if it sent more than 1.1 times its rate plus two
//    packets, if its queue exceeds 1 s or 1 GiB, or if its rate is impossible. A hop without a rate or without a time
//    difference also keeps its reference.
//  - Counters wrap: 32 bits of ns after 4.3 s, 32 bits of 8 bytes after 0.69 s at 400 Gb/s. Differences are computed
//    modulo 2^32. A hop whose counter may have wrapped more than once is stored as the reference only.
//  - On a path of more than N hops the last N count: incast congests the last ones.
#pragma once

#include <algorithm>
#include <type_traits>

#include "roci/cc.h"

namespace roci::cc {

struct ReferenceHop {
  uint32_t id;  // switch id and port
  uint32_t time_ns;
  uint32_t sent_units;
  uint32_t queue_bytes;
};
static_assert(sizeof(ReferenceHop) == 16);

constexpr double kLongestReference = 1e9;  // ns: maximum age of a reference

// Maximum age of a reference for a flow with base round-trip time `t`: 1000 round trips, or the time of four packets at
// the rate window / t.
inline double longest_reference(double t, double packet, double window) {
  return std::min(std::max(1000 * t, 4 * packet * t / window), kLongestReference);
}

inline bool is_possible_hop(const roci_cc_hop& hop) {
  const auto rate = static_cast<double>(hop.rate);
  return hop.rate == 0 ||
         (rate >= 1e6 && rate <= 1e13 && hop.queue_bytes <= std::min(rate / 8, 1024.0 * 1024 * 1024));
}

inline ReferenceHop reference_of(const roci_cc_hop& hop) {
  return {.id = hop.node << 12 | (hop.port & 0xfff),
          .time_ns = hop.time_ns,
          .sent_units = hop.sent_units,
          .queue_bytes = hop.queue_bytes};
}

// A hop now and at the previous sample.
struct HopDifference {
  double rate;  // bytes per ns
  double time;  // ns, above 0
  double sent;  // bytes
  double queue, queue_before;
  bool last;  // the hop next to the receiver
};

enum class TelemetrySample {
  kFirst,        // stored as the reference
  kPaused,       // the same, after a pause
  kPathChanged,  // the same, of another path
  kCompared,     // differences were passed on for at least one hop, and none was impossible
  kNothing,      // no hop could be compared
  kImpossible    // at least one hop had impossible values; others may have been compared
};

// Reasons of an algorithm for a sample. kCompared and kNothing have none of their own.
struct SampleReasons {
  uint16_t nothing, first, path_changed, impossible;
};
inline uint16_t reason_of(TelemetrySample sample, const SampleReasons& reasons) {
  switch (sample) {
    case TelemetrySample::kFirst:
    case TelemetrySample::kPaused:
      return reasons.first;
    case TelemetrySample::kPathChanged:
      return reasons.path_changed;
    case TelemetrySample::kImpossible:
      return reasons.impossible;
    default:
      return reasons.nothing;
  }
}

// Compares `path` with the reference in `s`, updates the reference, and calls use(const HopDifference&) for each hop
// that can be compared. A reference older than `longest` ns is replaced: a pause. `packet`: bytes of a full packet.
template <class State, class Use>
TelemetrySample compare_with_reference(State& s, const roci_cc_path& path, uint64_t now, double longest,
                                       double packet, Use use) {
  constexpr auto kHops = static_cast<uint32_t>(std::extent_v<decltype(State::hop)>);
  const uint32_t given = std::min<uint32_t>(path.hops, ROCI_CC_MAX_HOPS);
  const uint32_t hops = std::min(given, kHops);
  if (hops == 0) return TelemetrySample::kNothing;
  const roci_cc_hop* hop = path.hop + (given - hops);
  const bool paused = s.hops > 0 && static_cast<double>(now - s.kept_ns) > longest;
  bool same = hops == s.hops;
  for (uint32_t i = 0; same && i < hops; ++i) same = reference_of(hop[i]).id == s.hop[i].id;
  if (!same || paused) {
    const auto sample = paused        ? TelemetrySample::kPaused
                        : s.hops == 0 ? TelemetrySample::kFirst
                                      : TelemetrySample::kPathChanged;
    for (uint32_t i = 0; i < kHops; ++i) s.hop[i] = i < hops ? reference_of(hop[i]) : ReferenceHop{};
    s.hops = hops;
    s.kept_ns = now;
    return sample;
  }

  bool compared = false, impossible = false;
  for (uint32_t i = 0; i < hops; ++i) {
    ReferenceHop& before = s.hop[i];
    const uint32_t time = hop[i].time_ns - before.time_ns;
    if (!is_possible_hop(hop[i]) || time >= UINT32_MAX / 2) {
      impossible = true;
      continue;
    }
    if (time == 0 || hop[i].rate == 0) continue;
    const double rate = static_cast<double>(hop[i].rate) / 8e9;  // bytes per ns
    if (time > longest || time * rate > 0x1p34) {                // half of the counter's range
      before = reference_of(hop[i]);
      continue;
    }
    const double sent = 8.0 * (hop[i].sent_units - before.sent_units);
    if (sent > 1.1 * rate * time + 2 * packet) {
      impossible = true;
      continue;
    }
    const HopDifference difference{.rate = rate,
                                   .time = static_cast<double>(time),
                                   .sent = sent,
                                   .queue = static_cast<double>(hop[i].queue_bytes),
                                   .queue_before = static_cast<double>(before.queue_bytes),
                                   .last = i + 1 == hops};
    before = reference_of(hop[i]);
    s.kept_ns = now;
    compared = true;
    use(difference);
  }
  return impossible ? TelemetrySample::kImpossible
         : compared ? TelemetrySample::kCompared
                    : TelemetrySample::kNothing;
}

}  // namespace roci::cc

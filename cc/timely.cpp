// TIMELY: rate that follows the gradient of the round-trip time.
//
//   rtt < t_low              rate += delta                            short queue: the gradient is ignored
//   rtt > t_high             rate *= 1 - beta (1 - t_high / rtt)      long queue: the gradient is ignored
//   between, not growing     rate += delta; from the fifth time on 5 delta (hyper active increase)
//   between, growing         rate *= 1 - beta gradient
//
// with gradient = d / min_rtt and d = (1 - ewma_alpha) d + ewma_alpha (rtt - previous rtt). Source: Mittal et al.,
// "TIMELY: RTT-based Congestion Control for the Datacenter", SIGCOMM 2015, algorithm 1.
//
// Updates. There is one update per completion event, that is, per `segment` acknowledged bytes (paper: 16 to 64 KB),
// with the latest round trip. For flows without acknowledgments sent bytes are counted. segment = 0: each sample is an
// update. `per_round_trip` 1: in addition, at most one update per round trip: it requires the acknowledgment of a byte
// that was sent after the last update (HPCC's simulator, with segment = 0). The first sample of a flow is always an
// update.
//
// Scaling. The paper's values are for 10 Gb/s and a round trip of 20 us.
// `rescale` 1: the base round trip replaces min_rtt; t_low and t_high keep their ratio to min_rtt (2.5 and 25 with the
// paper's values). Without a base_rtt they are not scaled; with 50 and 500 us on a fabric with a round trip of 4 us, a
// queue is never detected as long.
// delta is specified for the line rate `made_for` and scales with the line rate; made_for = 0: no scaling.
// Built-in profiles: timely_paper, timely_hpcc_sim (lib/congestion/built_in_profiles.cpp).
//
// Differences from the paper:
//  - At least `least_factor` of the rate remains after an update (authors' published snippet: 1/2).
//  - The rate stays between min_rate and the line rate.
//  - A d below 1 ns counts as no growth: it is the remainder of an earlier difference.
//  - A sample below t_low neither ends nor extends the run that leads to a hyper increase. With `low_counts` 1 it
//    extends the run, and can be a hyper increase, as in HPCC's simulator.
//  - The initial rate is the line rate, or start_rate. (Paper: line rate / flows of the host, which a flow does not
//    know.)
//
// Losses and time-outs are ignored: the algorithm is for lossless networks.
//
// State: 40 bytes: rate, d, bytes since the update, end of the round trip, previous round trip, run.
#include <algorithm>
#include <iterator>

#include "cc/plugin.hpp"

namespace {

enum Parameter {
  kEwmaAlpha,
  kBeta,
  kLow,
  kHigh,
  kMinRtt,
  kRescale,
  kDelta,
  kMadeFor,
  kHaiRun,
  kHaiFactor,
  kLowCounts,
  kSegment,
  kPerRoundTrip,
  kMinFactor,
  kMinRate,
  kStartRate,
  kParameterCount
};

constexpr roci_cc_parameter kParameters[] = {
    {"ewma_alpha", "1", 0.875, 0, 1,
     "weight of the latest difference of round trips (HPCC-ns3; the authors' snippet: 0.02)"},
    {"beta", "1", 0.8, 0, 1, "fraction of the rate that a gradient of 1 removes (paper)"},
    {"t_low", "ns", 50e3, 0, 1e9, "below this round-trip time the rate rises, for any gradient (paper)"},
    {"t_high", "ns", 500e3, 1, 4e9, "above this round-trip time the rate is cut, for any gradient (paper)"},
    {"min_rtt", "ns", 20e3, 1, 1e9, "divisor of the gradient (paper)"},
    {"rescale", "1", 1, 0, 1,
     "1: base_rtt, if configured, replaces min_rtt, and t_low and t_high scale with it"},
    {"delta", "bit/s", 10e6, 0, 1e12, "additive increase (paper)"},
    {"made_for", "bit/s", 10e9, 0, 1e13,
     "line rate for which delta is specified; it scales with the line rate; 0: no scaling"},
    {"hai_run", "1", 5, 1, 1e6,
     "consecutive updates without growth up to the first hyper increase (paper: 5)"},
    {"hai_factor", "1", 5, 1, 1000, "a hyper increase adds this multiple of delta (paper: 5)"},
    {"low_counts", "1", 0, 0, 1,
     "1: updates below t_low count as updates without growth (HPCC-ns3); 0: each adds delta"},
    {"segment", "bytes", 16384, 0, 1e9,
     "acknowledged bytes per update (paper: 16 to 64 KB); 0: each sample is an update"},
    {"per_round_trip", "1", 0, 0, 1,
     "1: at most one update per round trip (HPCC-ns3); 0: only segment limits the updates (paper)"},
    {"least_factor", "1", 0.5, 0, 1,
     "minimum fraction of the rate that remains after an update (the authors' snippet; paper: 0)"},
    {"min_rate", "bit/s", 10e6, 1, 1e13, "minimum rate"},
    {"start_rate", "bit/s", 0, 0, 1e13, "initial rate; 0: the line rate"},
};
static_assert(std::size(kParameters) == kParameterCount);

enum StateLabel { kStart, kLowRtt, kAdditiveIncrease, kHyperIncrease, kGradient, kHighRtt };
constexpr roci_cc_label kStates[] = {
    {"start", "no round trip has been measured"},
    {"low_rtt", "the round trip is below t_low"},
    {"additive_increase", "the round trip does not grow"},
    {"hyper_increase", "the round trip has not grown for hai_run updates"},
    {"gradient_decrease", "the round trip grows"},
    {"high_rtt", "the round trip is above t_high"},
};

enum Reason { kNothing, kBelowLow, kAdded, kHyperAdded, kGradientCut, kHighCut, kImplausible };
constexpr roci_cc_label kReasons[] = {
    {"nothing", "no change"},
    {"below_t_low", "the rate rose: the round trip is below t_low"},
    {"added", "the rate rose: the round trip does not grow"},
    {"hyper_added", "the rate rose by a hyper increase"},
    {"gradient_cut", "the rate was cut: the round trip grows"},
    {"above_t_high", "the rate was cut: the round trip is above t_high"},
    {"implausible", "a round-trip time of 0 was ignored"},
};

struct State {
  double rate;          // bit/s
  double difference;    // ns: d
  uint64_t bytes;       // since the last update
  uint64_t updated;     // sequence: end of the bytes sent before the last update
  uint32_t rtt_before;  // ns; 0: none
  uint32_t run;         // consecutive updates without growth
};
static_assert(sizeof(State) == 40);

// Threshold of growth: an exponentially decaying d never becomes 0, and the clock has a resolution of 1 ns.
constexpr double kGrowth = 1;  // ns

const char* check(const roci_cc_flow* flow, const double* p) {
  if (flow != nullptr && p[kPerRoundTrip] != 0 && (flow->provides & ROCI_CC_NEEDS_ACK) == 0)
    return "per_round_trip requires acknowledgments";
  return p[kLow] >= p[kHigh] ? "t_low must be below t_high" : nullptr;
}

double line_of(const roci_cc_flow& flow) {
  return static_cast<double>(std::max<uint64_t>(flow.line_rate, 1));
}

void publish(const State& s, roci_cc_decision& d) {
  d.rate = std::max<uint64_t>(static_cast<uint64_t>(s.rate), 1);
}

void start(State& s, const roci_cc_flow& flow, uint64_t /*now*/, const double* p, roci_cc_decision& d) {
  const double line = line_of(flow);
  s.rate = p[kStartRate] > 0 ? std::min(p[kStartRate], line) : line;
  publish(s, d);
}

void update(State& s, const roci_cc_flow& flow, uint32_t rtt_ns, const double* p, roci_cc_decision& d) {
  const double rtt = rtt_ns, before = s.rtt_before != 0 ? s.rtt_before : rtt;
  s.rtt_before = rtt_ns;
  s.difference = (1 - p[kEwmaAlpha]) * s.difference + p[kEwmaAlpha] * (rtt - before);

  const double line = line_of(flow), base = static_cast<double>(flow.base_rtt_ns);
  const double times = p[kRescale] != 0 && base > 0 ? base / p[kMinRtt] : 1;
  const double gradient = s.difference / (p[kMinRtt] * times);
  const double low = p[kLow] * times, high = p[kHigh] * times;
  const double delta = p[kDelta] * (p[kMadeFor] > 0 ? line / p[kMadeFor] : 1);

  const bool is_low = rtt < low;
  double rate = s.rate;
  if (is_low && p[kLowCounts] == 0) {
    rate += delta;
    d.state = kLowRtt;
    d.reason = kBelowLow;
  } else if (rtt > high) {
    rate *= 1 - p[kBeta] * (1 - high / rtt);
    s.run = 0;
    d.state = kHighRtt;
    d.reason = kHighCut;
  } else if (is_low || s.difference < kGrowth) {
    if (s.run < p[kHaiRun]) ++s.run;
    const bool hyper = s.run >= p[kHaiRun];
    rate += delta * (hyper ? p[kHaiFactor] : 1);
    d.state = hyper ? kHyperIncrease : is_low ? kLowRtt : kAdditiveIncrease;
    d.reason = hyper ? kHyperAdded : is_low ? kBelowLow : kAdded;
  } else {
    rate *= 1 - p[kBeta] * gradient;
    s.run = 0;
    d.state = kGradient;
    d.reason = kGradientCut;
  }
  rate = std::max(rate, s.rate * p[kMinFactor]);
  s.rate = std::clamp(rate, std::min(p[kMinRate], line), line);
}

void event(State& s, const roci_cc_flow& flow, const roci_cc_event& event, const double* p,
           roci_cc_decision& d) {
  const bool acknowledged = (flow.provides & ROCI_CC_NEEDS_ACK) != 0;
  s.bytes += acknowledged ? event.acked_bytes : event.sent_bytes;
  if ((event.kinds & ROCI_CC_ON_RTT) == 0) return;
  if (event.rtt_ns == 0) {
    d.reason = kImplausible;
    return;
  }
  if (s.rtt_before != 0 &&
      (static_cast<double>(s.bytes) < p[kSegment] || (p[kPerRoundTrip] != 0 && event.acked <= s.updated)))
    return;
  s.bytes = 0;
  s.updated = event.next;
  update(s, flow, event.rtt_ns, p, d);
  publish(s, d);
}

}  // namespace

extern "C" constinit const roci_cc_plugin roci_cc_timely = roci::cc::plugin<State, start, event>({
    .name = "timely",
    .summary = "rate that follows the gradient of the round-trip time",
    .source = "Mittal et al., TIMELY: RTT-based Congestion Control for the Datacenter, SIGCOMM 2015",
    .capabilities = ROCI_CC_NEEDS_RTT | ROCI_CC_USES_RATE,
    .tables = {kParameters, kStates, kReasons},
    .check = check,
});

// TIMELY: a rate that follows the gradient of the round trip.
//
//   rtt < t_low              rate += delta                            a queue that is short may do what it likes
//   rtt > t_high             rate *= 1 - beta (1 - t_high / rtt)      one that is long is brought down, whatever it does
//   between, not growing     rate += delta; from the fifth time on five of it (hyper active increase)
//   between, growing         rate *= 1 - beta gradient
//
// with gradient = d / min_rtt and d = (1 - ewma_alpha) d + ewma_alpha (rtt - the one before). Source: Mittal et al.,
// "TIMELY: RTT-based Congestion Control for the Datacenter", SIGCOMM 2015, algorithm 1.
//
// An update is for a completion event: one for `segment` bytes that were acknowledged (the paper: 16 to 64 KB), with
// the round trip of the last of them. Where nothing is acknowledged, bytes sent are counted. segment = 0 is one update per
// sample. HPCC's simulator makes one update per round trip; not implemented. The first sample of a flow always counts.
//
// Fast fabrics. The paper's numbers are for 10 Gb/s and a round trip of 20 us. `rescale` 1 measures t_low, t_high and
// min_rtt by the base round trip: it stands for min_rtt, and the other two are as many times it as they are times min_rtt
// as given (2.5 and 25 by the paper's numbers). Without a base_rtt they stay as they are: with 50 and 500 us on a fabric of
// 4 us nothing is ever a long queue. delta is for a line of `made_for` and in proportion to it on others; 0 takes it as it
// stands. The paper's set for comparison: rescale = 0, made_for = 0, segment = 65536.
//
// Beyond the paper: an update leaves `least_factor` of the rate at least (from the authors' published snippet; it has
// 1/2), and the rate stays between min_rate and the line's. A d of less than a nanosecond is no growth but what is left of
// one. A sample below t_low neither ends nor counts for the run that leads to hyper increase. The start is at the line's
// rate (the paper: its share among flows of the host, which a flow does not know here; start_rate says another).
//
// Losses and time-outs change nothing: the algorithm is for networks that do not lose.
//
// State: 32 bytes: rate; d; bytes since the update; the round trip before; the run.
#include <algorithm>
#include <iterator>

#include "roci/cc.h"

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
  kSegment,
  kLeastFactor,
  kMinRate,
  kStartRate,
  kParameterCount
};

constexpr roci_cc_parameter kParameters[] = {
    {"ewma_alpha", "1", 0.875, 0, 1,
     "weight of the latest difference of round trips (HPCC-ns3; the authors' snippet: 0.02)"},
    {"beta", "1", 0.8, 0, 1, "fraction of the rate that a gradient of 1 removes (paper)"},
    {"t_low", "ns", 50e3, 0, 1e9, "below this round-trip time the rate rises, whatever the gradient (paper)"},
    {"t_high", "ns", 500e3, 1, 4e9,
     "above this round-trip time the rate is cut, whatever the gradient (paper)"},
    {"min_rtt", "ns", 20e3, 1, 1e9, "divisor of the gradient (paper)"},
    {"rescale", "1", 1, 0, 1,
     "1: base_rtt, if configured, replaces min_rtt, and t_low and t_high scale with it"},
    {"delta", "bit/s", 10e6, 0, 1e12, "additive increase (paper)"},
    {"made_for", "bit/s", 10e9, 0, 1e13,
     "line rate for which delta is specified; it scales with the line rate; 0: no scaling"},
    {"hai_run", "1", 5, 1, 1e6,
     "consecutive updates without growth up to the first hyper increase (paper: 5)"},
    {"hai_factor", "1", 5, 1, 1000, "a hyper increase adds this multiple of delta (paper: 5)"},
    {"segment", "bytes", 16384, 0, 1e9,
     "acknowledged bytes per update (paper: 16 to 64 KB); 0: each sample is an update"},
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
  uint64_t bytes;       // since the update
  uint32_t rtt_before;  // ns; 0: none yet
  uint32_t run;         // updates without growth
};
static_assert(sizeof(State) <= 32);

// What fades by a factor never gets to nothing; the clock has no more than this.
constexpr double kGrowth = 1;  // ns

const char* check(const roci_cc_flow* /*flow*/, const double* p) {
  return p[kLow] >= p[kHigh] ? "t_low must be below t_high" : nullptr;
}

double line_of(const roci_cc_flow& flow) {
  return static_cast<double>(std::max<uint64_t>(flow.line_rate, 1));
}

void publish(const State& s, roci_cc_decision* decision) {
  decision->rate = std::max<uint64_t>(static_cast<uint64_t>(s.rate), 1);
}

void start(void* state, const roci_cc_flow* flow, uint64_t /*now*/, const double* p,
           roci_cc_decision* decision) {
  State& s = *static_cast<State*>(state);
  const double line = line_of(*flow);
  s.rate = p[kStartRate] > 0 ? std::min(p[kStartRate], line) : line;
  publish(s, decision);
}

void update(State& s, const roci_cc_flow& flow, uint32_t rtt_ns, const double* p,
            roci_cc_decision* decision) {
  const double rtt = rtt_ns, before = s.rtt_before != 0 ? s.rtt_before : rtt;
  s.rtt_before = rtt_ns;
  s.difference = (1 - p[kEwmaAlpha]) * s.difference + p[kEwmaAlpha] * (rtt - before);

  const double line = line_of(flow), base = static_cast<double>(flow.base_rtt_ns);
  const double times = p[kRescale] != 0 && base > 0 ? base / p[kMinRtt] : 1;
  const double gradient = s.difference / (p[kMinRtt] * times);
  const double low = p[kLow] * times, high = p[kHigh] * times;
  const double delta = p[kDelta] * (p[kMadeFor] > 0 ? line / p[kMadeFor] : 1);

  double rate = s.rate;
  if (rtt < low) {
    rate += delta;
    decision->state = kLowRtt;
    decision->reason = kBelowLow;
  } else if (rtt > high) {
    rate *= 1 - p[kBeta] * (1 - high / rtt);
    s.run = 0;
    decision->state = kHighRtt;
    decision->reason = kHighCut;
  } else if (s.difference < kGrowth) {
    if (s.run < p[kHaiRun]) ++s.run;
    const bool hyper = s.run >= p[kHaiRun];
    rate += delta * (hyper ? p[kHaiFactor] : 1);
    decision->state = hyper ? kHyperIncrease : kAdditiveIncrease;
    decision->reason = hyper ? kHyperAdded : kAdded;
  } else {
    rate *= 1 - p[kBeta] * gradient;
    s.run = 0;
    decision->state = kGradient;
    decision->reason = kGradientCut;
  }
  rate = std::max(rate, s.rate * p[kLeastFactor]);
  s.rate = std::clamp(rate, std::min(p[kMinRate], line), line);
}

void event(void* state, const roci_cc_flow* flow, const roci_cc_event* event, const double* p,
           roci_cc_decision* decision) {
  State& s = *static_cast<State*>(state);
  const bool acknowledged = (flow->provides & ROCI_CC_NEEDS_ACK) != 0;
  s.bytes += acknowledged ? event->acked_bytes : event->sent_bytes;
  if ((event->kinds & ROCI_CC_ON_RTT) == 0) return;
  if (event->rtt_ns == 0) {
    decision->reason = kImplausible;
    return;
  }
  if (s.rtt_before != 0 && static_cast<double>(s.bytes) < p[kSegment]) return;
  s.bytes = 0;
  update(s, *flow, event->rtt_ns, p, decision);
  publish(s, decision);
}

}  // namespace

extern "C" const roci_cc_plugin roci_cc_timely = {
    .abi = ROCI_CC_ABI,
    .size = sizeof(roci_cc_plugin),
    .name = "timely",
    .summary = "rate that follows the gradient of the round-trip time",
    .source = "Mittal et al., TIMELY: RTT-based Congestion Control for the Datacenter, SIGCOMM 2015",
    .capabilities = ROCI_CC_NEEDS_RTT | ROCI_CC_USES_RATE,
    .state_bytes = sizeof(State),
    .receiver_state_bytes = 0,
    .parameters = kParameters,
    .parameter_count = kParameterCount,
    .state_count = std::size(kStates),
    .states = kStates,
    .reasons = kReasons,
    .reason_count = std::size(kReasons),
    .reserved = 0,
    .check = check,
    .start = start,
    .event = event,
    .receive = nullptr,
};

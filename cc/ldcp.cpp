// LDCP with per-ACK window adjustment (PAWA). Source: draft-dai-tsvwg-pfc-free-congestion-control-01, sections 2.2, 2.3
// and 3.1.
//
// Fast start: a flow sends a bandwidth-delay product at once, as Not-ECT, so that switches drop these packets instead
// of queueing them when the queue is full. After the first acknowledgment new packets are ECN-capable. Fast start ends
// when the whole initial window is acknowledged, or at a loss. After a loss the window is what has arrived until then.
// In the stable stage each ACK changes the window:
//
//            not marked           marked                          at the continuity point alpha = gamma, beta = 1 - eta
//   cw >= 1  cw += alpha / cw     cw -= beta                      (n packets: n times as much)
//   cw < 1   cw += gamma          cw  = max(gamma, eta * cw)      one packet per RTT / cw
//
// State: 32 bytes: window in packets of the full size; bytes on the line that arrived in fast start; sequence up to
// which losses were processed; latest round trip, ns; stage.
//
// Values of alpha and beta (none in the draft). With a fraction p of marked packets, cw converges to
// gamma / (1 - eta) * (1 - p) / p below one packet, and to alpha / beta * (1 - p) / p above. If alpha / beta is larger,
// two windows are stable for one p, and some flows of a shared link starve. With the default values both rules meet at
// one packet. check() permits other values, for experiments with starvation.
//
// Additions to the draft, and differences from it:
//  - An ACK of n packets, m of them marked, counts n - m for growth and m for reduction (draft: all n for either). The
//    unmarked ones count first, as with the draft's delayed ACKs. Counts that cross one packet are split: growth stops
//    at 1 and continues with the upper rule; marks follow the upper rule until the window is below 1, then the lower
//    one.
//  - One event grows the window by at most alpha: no more than a window can have arrived since the previous one.
//  - An unused window does not grow (`use_before_growth`): its unmarked packets do not show spare capacity.
//  - Fast start counts bytes on the line, so that small packets do not count as full ones. Packets beyond the initial
//    window that the same event acknowledges count as stable.
//  - Losses in the stable stage: `loss_cut`, once per window. A time-out sets the window to one packet, or below that
//    reduces it as a mark does.
//  - After an idle period the path may have changed: fast start restarts with min(BDP, idle_growth * cw). A result
//    below one packet leaves the window as it is.
//  - RTT in RTT / cw is the measured round trip, so that queues drain with any number of flows, or the base round trip,
//    with which N flows keep at least N * gamma packets in a base round trip. The latest sample is used, not an
//    average: there is one sample per RTT / cw, and an average is so old that flows oscillate in step. A sample below
//    the base round trip counts as the base round trip. The jitter is large for the same reason
//    (tests/cc/bottleneck_test.cpp).
//  - start() does not know the current sequence, so all packets are Not-ECT until the first ACK. The window limits them
//    to the initial window.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "cc/plugin.hpp"

namespace {

enum Parameter {
  kInitialWindow,
  kAlpha,
  kBeta,
  kGamma,
  kEta,
  kMaxWindow,
  kUseBeforeGrowth,
  kLossCut,
  kSubpacketRtt,
  kJitter,
  kIdleRtts,
  kIdleGrowth,
  kParameterCount
};
constexpr roci_cc_parameter kParameters[] = {
    {"initial_window", "packets", 0, 0, 65536, "IW, the initial window; 0: line rate * base_rtt (LDCP 2.3)"},
    {"alpha", "packets", 0.125, 0.0001, 1,
     "growth per round trip at one packet and above (LDCP eq. 1; project default)"},
    {"beta", "packets", 0.5, 0.0001, 1,
     "decrease per marked packet at one packet and above (LDCP eq. 1; project default)"},
    {"gamma", "packets", 0.125, 0.001, 1,
     "growth per unmarked packet below one packet, and minimum window (LDCP 2.2: 1/4 to 1/16)"},
    {"eta", "1", 0.5, 0, 0.95, "fraction of a window below one packet that remains after a mark (LDCP 2.2)"},
    {"max_window", "packets", 65536, 1, 65536, "maximum window (project addition)"},
    {"use_before_growth", "1", 0.5, 0, 1,
     "the window grows only if this fraction of it was in flight; 0: always (draft)"},
    {"loss_cut", "1", 0.5, 0, 1,
     "fraction of the window that remains after a loss in the stable stage (project addition)"},
    {"subpacket_rtt", "1", 1, 0, 1, "RTT in the gap RTT / cw below one packet: 0: base_rtt; 1: measured"},
    {"jitter", "1", 1, 0, 1,
     "relative random variation of the gap, which desynchronizes flows (project addition)"},
    {"idle_rtts", "round trips", 10, 0, 1e6,
     "idle time after which fast start restarts; 0: never (project addition)"},
    {"idle_growth", "1", 2, 0, 1024,
     "window of a restart, as a multiple of the last one, at most initial_window (project addition)"},
};
static_assert(std::size(kParameters) == kParameterCount);

enum Stage : uint32_t { kFastStart, kStable, kSubpacket };
constexpr roci_cc_label kStates[] = {
    {"fast_start",
     "packets of the first round trip are Not-ECT; ends when the initial window is acknowledged, or at a "
     "loss"},
    {"stable", "the window follows the marks and is at least one packet"},
    {"subpacket", "the window is below one packet: packets leave a gap apart"},
};

enum Reason { kNothing, kGrown, kMarked, kArrived, kLostInFastStart, kLost, kTimedOut, kResumed };
constexpr roci_cc_label kReasons[] = {
    {"nothing", "no change"},
    {"grown", "unmarked packets were acknowledged"},
    {"marked", "marked packets were acknowledged"},
    {"initial_window_arrived", "fast start ended without a loss"},
    {"loss_in_fast_start", "fast start ended with a loss or a time-out"},
    {"loss", "a packet was lost in the stable stage"},
    {"timeout", "a time-out expired"},
    {"resumed", "fast start restarted after an idle period"},
};

struct State {
  double window;      // packets: cw
  uint64_t arrived;   // bytes on the line that arrived in this fast start
  uint64_t answered;  // sequence: losses below it were processed
  uint32_t rtt_ns;    // latest sample; 0 before the first
  uint32_t stage;     // kFastStart or kStable
};
static_assert(sizeof(State) == 32);

constexpr double kMax = 1e9;  // ns: maximum gap, and maximum round trip used for it

uint64_t plus(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

double initial_window(const roci_cc_flow& flow, const double* p) {
  double packets = p[kInitialWindow];
  if (packets == 0) {
    const double line = static_cast<double>(flow.line_rate) * static_cast<double>(flow.base_rtt_ns) / 8e9;
    packets = line / std::max<uint32_t>(flow.packet_bytes, 1);
  }
  return std::clamp(std::ceil(packets), 1.0, std::floor(p[kMaxWindow]));
}

// ns; 0: unknown.
double round_trip(const State& s, const roci_cc_flow& flow, const double* p) {
  const auto base = static_cast<double>(flow.base_rtt_ns);
  const bool measured = p[kSubpacketRtt] != 0 || flow.base_rtt_ns == 0;
  return std::min(measured ? std::max<double>(base, s.rtt_ns) : base, kMax);
}

void sample(State& s, uint32_t rtt_ns) {
  if (rtt_ns > 0) s.rtt_ns = std::min(rtt_ns, static_cast<uint32_t>(kMax));
}

double grown(double window, uint32_t packets, const double* p) {
  double left = packets;
  if (window < 1) {
    const double steps = std::min(std::ceil((1 - window) / p[kGamma]), left);
    window = std::min(window + steps * p[kGamma], 1.0);
    left -= steps;
  }
  if (window >= 1) window += std::min(left, window) * p[kAlpha] / window;
  return std::min(window, p[kMaxWindow]);
}

double shrunk(double window, uint32_t packets, const double* p) {
  double left = packets;
  if (window >= 1) {
    const double above = std::min(std::floor((window - 1) / p[kBeta]) + 1, left);
    window -= above * p[kBeta];
    left -= above;
  }
  for (; left > 0 && window > p[kGamma]; --left) window *= p[kEta];
  return std::max(window, p[kGamma]);
}

void adjust(State& s, const roci_cc_flow& flow, const roci_cc_event& event, uint32_t packets, uint32_t marked,
            const double* p, roci_cc_decision& d) {
  const uint32_t unmarked = packets - std::min(marked, packets);
  // Below one packet, one packet in flight uses the whole window.
  const double used = static_cast<double>(event.in_flight) + static_cast<double>(event.acked_bytes);
  if (unmarked > 0 && (s.window < 1 || used >= p[kUseBeforeGrowth] * s.window * flow.packet_bytes)) {
    s.window = grown(s.window, unmarked, p);
    d.reason = kGrown;
  }
  if (marked > 0) {
    s.window = shrunk(s.window, std::min(marked, packets), p);
    d.reason = kMarked;
  }
}

void acknowledged(State& s, const roci_cc_flow& flow, const roci_cc_event& event, const double* p,
                  roci_cc_decision& d) {
  if (s.stage == kStable) return adjust(s, flow, event, event.acked_packets, event.marked_packets, p, d);
  d.not_ect_below = 0;  // end of the first round trip (3.1)
  s.arrived = plus(s.arrived, event.acked_bytes);
  const auto whole = static_cast<uint64_t>(s.window * flow.packet_bytes);
  if (s.arrived < whole) return;
  const uint64_t behind = (s.arrived - whole) / std::max<uint32_t>(flow.packet_bytes, 1);
  s.stage = kStable;
  const auto packets = static_cast<uint32_t>(std::min<uint64_t>(behind, event.acked_packets));
  adjust(s, flow, event, packets, std::min(event.marked_packets, packets), p, d);
  d.reason = kArrived;
}

// The path had capacity for what arrived before the loss (3.1, transition 1).
void end_fast_start(State& s, const roci_cc_flow& flow, roci_cc_decision& d) {
  const uint64_t packets = s.arrived / std::max<uint32_t>(flow.packet_bytes, 1);
  s.window = std::clamp(static_cast<double>(packets), 1.0, s.window);
  s.stage = kStable;
  d.not_ect_below = 0;
  d.reason = kLostInFastStart;
}

void lost(State& s, const roci_cc_flow& flow, const roci_cc_event& event, const double* p,
          roci_cc_decision& d) {
  if (s.stage == kFastStart) {
    end_fast_start(s, flow, d);
  } else if (event.acked >= s.answered) {
    s.window = std::max(s.window * p[kLossCut], p[kGamma]);
    d.reason = kLost;
  } else {
    return;
  }
  s.answered = std::max(event.next, plus(event.acked, 1));
}

void timed_out(State& s, const roci_cc_flow& flow, const roci_cc_event& event, const double* p,
               roci_cc_decision& d) {
  if (s.stage == kFastStart) {
    end_fast_start(s, flow, d);
  } else {
    s.window = s.window > 1 ? 1 : std::max(s.window * p[kEta], p[kGamma]);
    d.reason = kTimedOut;
  }
  s.answered = std::max(event.next, plus(event.acked, 1));
}

void resumed(State& s, const roci_cc_flow& flow, const roci_cc_event& event, const double* p,
             roci_cc_decision& d) {
  const double window = std::floor(std::min(initial_window(flow, p), p[kIdleGrowth] * s.window));
  if (window < 1) return;
  s.window = window;
  s.stage = kFastStart;
  s.arrived = 0;
  d.not_ect_below = plus(event.next, static_cast<uint64_t>(window) * flow.payload_bytes);
  d.reason = kResumed;
}

void decide(const State& s, const roci_cc_flow& flow, uint64_t now, const double* p, roci_cc_decision& d) {
  const double rtt = round_trip(s, flow, p);
  d.idle_ns = static_cast<uint64_t>(std::min(p[kIdleRtts] * rtt, 1e15));
  d.window = std::max<uint64_t>(static_cast<uint64_t>(std::max(s.window, 1.0) * flow.packet_bytes), 1);
  d.gap_ns = 0;
  const uint32_t stage = s.stage == kStable && s.window < 1 ? uint32_t{kSubpacket} : s.stage;
  d.state = static_cast<uint16_t>(stage);
  if (s.window >= 1) return;
  uint64_t random = flow.seed ^ now;
  const double within = static_cast<double>(roci_cc_random(&random) >> 11) * 0x1p-53;  // [0, 1)
  const double gap = rtt / s.window * (1 + p[kJitter] * (2 * within - 1));
  d.gap_ns = static_cast<uint64_t>(std::min(gap, kMax));
}

const char* check(const roci_cc_flow* flow, const double* p) {
  if (flow == nullptr || flow->base_rtt_ns > 0) return nullptr;
  if (p[kInitialWindow] == 0) return "initial_window: 0 requires base_rtt";
  if ((flow->provides & ROCI_CC_NEEDS_RTT) == 0)
    return "base_rtt or round-trip time samples are required for windows below one packet";
  return nullptr;
}

void start(State& s, const roci_cc_flow& flow, uint64_t now, const double* p, roci_cc_decision& d) {
  s.window = initial_window(flow, p);
  s.stage = kFastStart;
  d.not_ect_below = ROCI_CC_NO_LIMIT;
  decide(s, flow, now, p, d);
}

void on_event(State& s, const roci_cc_flow& flow, const roci_cc_event& event, const double* p,
              roci_cc_decision& d) {
  if ((event.kinds & ROCI_CC_ON_RTT) != 0) sample(s, event.rtt_ns);
  if ((event.kinds & ROCI_CC_ON_ACK) != 0) acknowledged(s, flow, event, p, d);
  if ((event.kinds & ROCI_CC_ON_LOSS) != 0) lost(s, flow, event, p, d);
  if ((event.kinds & ROCI_CC_ON_TIMEOUT) != 0) timed_out(s, flow, event, p, d);
  if ((event.kinds & ROCI_CC_ON_RESUME) != 0) resumed(s, flow, event, p, d);
  decide(s, flow, event.now_ns, p, d);
}

}  // namespace

extern "C" constinit const roci_cc_plugin roci_cc_ldcp = roci::cc::plugin<State, start, on_event>({
    .name = "ldcp",
    .summary = "window adjusted by each acknowledgment, also below one packet; does not require PFC",
    .source = "draft-dai-tsvwg-pfc-free-congestion-control-01, sections 2 and 3.1",
    .capabilities = ROCI_CC_NEEDS_ACK | ROCI_CC_NEEDS_CE_COUNT | ROCI_CC_USES_WINDOW | ROCI_CC_USES_GAP |
                    ROCI_CC_USES_ECN,
    .tables = {kParameters, kStates, kReasons},
    .check = check,
});

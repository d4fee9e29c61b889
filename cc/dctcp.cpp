// DCTCP: window that is cut once per round trip by the fraction of marked packets. Sources: Alizadeh et al., SIGCOMM
// 2010; RFC 8257; fixed-point arithmetic of Linux.
//
// Once per window of data the fraction of packets with CE updates alpha. The first mark in a window cuts it by
// alpha / 2. Otherwise it grows by `increase` per round trip, one packet by default, and before the first cut by one per
// packet (slow start).
//
//        alpha  = (1 - g) * alpha + g * marked / acknowledged            g = 1 / 2^shift_g
//        window = window * (1 - alpha / 2)
//
// Units: packets of the full size; alpha in 1/1024. State: 56 bytes: three sequences (end of alpha's window, and of the
// windows in which marks and losses were processed), counts of the window, window, slow start threshold.
//
// Differences from Linux:
//  - A cut takes effect at once; Linux spreads it over the window (proportional rate reduction). As in Linux the window
//    does not grow until the packets in flight at the cut are acknowledged.
//  - An unused window does not grow (`use_before_growth`); Linux checks whether the window held a packet back.
//  - There are no duplicate ACKs: a NAK of the receiver has the effect of Linux's recovery state.
//  - No restart after an idle period: the window is kept.
// The marking threshold is configured at the switch (RFC 8257 4.1: K > B * T / 7).
#include <algorithm>
#include <cmath>
#include <iterator>

#include "cc/plugin.hpp"

namespace {

enum Parameter {
  kShiftG,
  kAlphaOnInit,
  kInitialWindow,
  kMinWindow,
  kMaxWindow,
  kUseBeforeGrowth,
  kIncrease,
  kParameterCount
};
constexpr roci_cc_parameter kParameters[] = {
    {"shift_g", "1", 4, 0, 10, "g = 1 / 2^shift_g (RFC 8257 4.2: 1/16; Linux dctcp_shift_g)"},
    {"alpha_on_init", "1/1024", 1024, 0, 1024, "initial alpha (RFC 8257 3.3: 1; Linux dctcp_alpha_on_init)"},
    {"initial_window", "packets", 10, 0, 65536,
     "initial window (RFC 6928); 0: line rate * base_rtt (HPCC-ns3)"},
    {"min_window", "packets", 2, 1, 65536, "minimum window after a cut; a time-out leaves 1 (Linux)"},
    {"max_window", "packets", 65536, 1, 65536, "maximum window (project addition)"},
    {"use_before_growth", "1", 0.5, 0, 1,
     "the window grows only if this fraction of it was in flight (project addition)"},
    {"increase", "packets", 1, 0.001, 1000,
     "growth per round trip after slow start (HPCC-ns3: what 615 Mb/s send in base_rtt): one packet per "
     "window / increase acknowledged packets, rounded up, so that large values have less effect"},
};
static_assert(std::size(kParameters) == kParameterCount);

enum StateLabel : uint16_t { kSlowStart, kAvoidance, kReduced };
constexpr roci_cc_label kStates[] = {
    {"slow_start", "the window grows by one packet per acknowledged packet"},
    {"avoidance", "the window grows by one packet per round trip"},
    {"reduced", "the window was cut; it stays until the packets in flight at the cut are acknowledged"},
};

enum Reason : uint16_t { kNothing, kGrown, kMarked, kLost, kTimedOut };
constexpr roci_cc_label kReasons[] = {
    {"nothing", "no change"},
    {"grown", "acknowledged packets were unmarked"},
    {"marked", "first marks in a window"},
    {"loss", "first loss in a window"},
    {"timeout", "a time-out expired"},
};

constexpr uint32_t kOne = 1024;  // unit of alpha

struct State {
  uint64_t measured;   // sequence: alpha is updated when it is acknowledged
  uint64_t cut;        // sequence: until it is acknowledged, marks are ignored and the window does not grow
  uint64_t recovered;  // sequence: until it is acknowledged, losses are ignored
  uint64_t started;    // nonzero once the sequence is known
  uint32_t acked;      // packets in this window
  uint32_t marked;     // of these, with CE
  uint32_t window;     // packets
  uint32_t threshold;  // packets: slow start threshold
  uint32_t towards;    // packets acknowledged since the last increase
  uint32_t alpha;      // 1/1024
};
static_assert(sizeof(State) == 56);

uint32_t plus(uint32_t a, uint32_t b) { return a > UINT32_MAX - b ? UINT32_MAX : a + b; }

// End of the current window: everything in flight, and at least one byte.
uint64_t behind(const roci_cc_event& event) {
  return std::max(event.next, event.acked == UINT64_MAX ? event.acked : event.acked + 1);
}

uint32_t least(const double* p) { return static_cast<uint32_t>(std::min(p[kMinWindow], p[kMaxWindow])); }

// tcp_dctcp.c, dctcp_update_alpha().
void measure(State& s, const roci_cc_event& event, const double* p) {
  s.acked = plus(s.acked, event.acked_packets);
  s.marked = plus(s.marked, std::min(event.marked_packets, event.acked_packets));
  if (event.acked < s.measured) return;
  const auto shift = static_cast<uint32_t>(p[kShiftG]);
  const uint32_t less = s.alpha >> shift;
  s.alpha -= less != 0 ? less : s.alpha;  // below 2^shift it would never reach 0
  const uint64_t more = (uint64_t{s.marked} << (10 - shift)) / std::max(s.acked, 1U);
  s.alpha = static_cast<uint32_t>(std::min<uint64_t>(s.alpha + more, kOne));
  s.acked = s.marked = 0;
  s.measured = behind(event);
}

void grow(State& s, const roci_cc_flow& flow, const roci_cc_event& event, const double* p,
          roci_cc_decision& d) {
  const double used = static_cast<double>(event.in_flight) + static_cast<double>(event.acked_bytes);
  const auto most = static_cast<uint32_t>(p[kMaxWindow]);
  if (used < p[kUseBeforeGrowth] * s.window * flow.packet_bytes || s.window >= most) return;
  const uint32_t before = s.window;
  uint32_t left = event.acked_packets;
  if (s.window < s.threshold) {
    const uint32_t packets = std::min(left, std::min(s.threshold, most) - s.window);
    s.window += packets;
    left -= packets;
  }
  if (s.window >= s.threshold) {
    s.towards = plus(s.towards, left);
    // Acknowledged packets for which the window grows by one.
    const auto step = static_cast<uint32_t>(std::clamp(std::ceil(s.window / p[kIncrease]), 1.0, 4e9));
    const uint32_t steps = s.towards / step;
    s.towards -= steps * step;
    s.window = std::min(plus(s.window, steps), most);
  }
  if (s.window != before) d.reason = kGrown;
}

void acknowledged(State& s, const roci_cc_flow& flow, const roci_cc_event& event, const double* p,
                  roci_cc_decision& d) {
  measure(s, event, p);
  if (event.acked < s.cut) return;
  if (event.marked_packets == 0) return grow(s, flow, event, p, d);
  s.window = std::max(s.window - (s.window * s.alpha >> 11), least(p));
  s.threshold = s.window;
  s.towards = 0;
  s.cut = behind(event);
  d.reason = kMarked;
}

// A loss halves the window, independent of alpha; once per window.
void lost(State& s, const roci_cc_event& event, const double* p, roci_cc_decision& d) {
  if (event.acked < s.recovered) return;
  s.window = s.threshold = std::max(s.window / 2, least(p));
  s.towards = 0;
  s.cut = s.recovered = behind(event);
  d.reason = kLost;
}

// Only the first time-out of a window sets the slow start threshold.
void timed_out(State& s, const roci_cc_event& event, const double* p, roci_cc_decision& d) {
  if (event.acked >= s.recovered) s.threshold = std::max(s.window / 2, least(p));
  s.window = 1;
  s.towards = 0;
  s.cut = 0;
  s.recovered = behind(event);
  d.reason = kTimedOut;
}

void decide(const State& s, const roci_cc_flow& flow, uint64_t acked, roci_cc_decision& d) {
  d.window = std::max<uint64_t>(uint64_t{s.window} * flow.packet_bytes, 1);
  d.state = acked < s.cut ? kReduced : s.window < s.threshold ? kSlowStart : kAvoidance;
}

const char* check(const roci_cc_flow* flow, const double* p) {
  return flow != nullptr && p[kInitialWindow] == 0 && flow->base_rtt_ns == 0
             ? "initial_window 0 requires base_rtt"
             : nullptr;
}

// Packets on a link of line rate and base_rtt.
double link_packets(const roci_cc_flow& flow) {
  const double bytes = static_cast<double>(flow.line_rate) * static_cast<double>(flow.base_rtt_ns) / 8e9;
  return std::max(1.0, std::ceil(bytes / std::max(flow.packet_bytes, 1U)));
}

void start(State& s, const roci_cc_flow& flow, uint64_t /*now*/, const double* p, roci_cc_decision& d) {
  const double initial = p[kInitialWindow] > 0 ? p[kInitialWindow] : link_packets(flow);
  s.window = static_cast<uint32_t>(std::clamp(initial, 1.0, p[kMaxWindow]));
  s.threshold = UINT32_MAX;
  s.alpha = static_cast<uint32_t>(p[kAlphaOnInit]);
  decide(s, flow, 0, d);
}

void on_event(State& s, const roci_cc_flow& flow, const roci_cc_event& event, const double* p,
              roci_cc_decision& d) {
  if (s.started == 0) {
    s.started = 1;
    s.measured = behind(event);
  }
  if ((event.kinds & ROCI_CC_ON_ACK) != 0) acknowledged(s, flow, event, p, d);
  if ((event.kinds & ROCI_CC_ON_LOSS) != 0) lost(s, event, p, d);
  if ((event.kinds & ROCI_CC_ON_TIMEOUT) != 0) timed_out(s, event, p, d);
  decide(s, flow, event.acked, d);
}

}  // namespace

extern "C" constinit const roci_cc_plugin roci_cc_dctcp = roci::cc::plugin<State, start, on_event>({
    .name = "dctcp",
    .summary = "window that is cut once per round trip by the fraction of marked packets",
    .source = "RFC 8257; Alizadeh et al., SIGCOMM 2010; Linux tcp_dctcp",
    .capabilities = ROCI_CC_NEEDS_ACK | ROCI_CC_NEEDS_CE_COUNT | ROCI_CC_USES_WINDOW | ROCI_CC_USES_ECN,
    .tables = {kParameters, kStates, kReasons},
    .check = check,
});

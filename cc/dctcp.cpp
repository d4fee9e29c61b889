// DCTCP: Alizadeh et al., SIGCOMM 2010; RFC 8257; fixed point as in Linux. Once per window of data the share of packets
// that arrived with CE moves alpha; the first mark of a window cuts it by alpha / 2. Else it grows by a packet per round
// trip, and before the first cut by a packet per packet (slow start).
//
//        alpha  = (1 - g) * alpha + g * marked / acknowledged            g = 1 / 2^shift_g
//        window = window * (1 - alpha / 2)
//
// Units: packets of the full size; alpha in 1/1024. State: 56 bytes. Three sequences (end of the window that alpha is
// measured over, up to where marks and losses were answered), counts of the window, the window, where slow start ends.
//
// Where it differs from Linux:
//  - A cut takes effect at once; Linux spreads it over the window (proportional rate reduction). The window does not grow
//    until what was in flight then is acknowledged, as there.
//  - A window that is not used does not grow (`use_before_growth`); Linux looks at whether the window held a packet back.
//  - There are no duplicate ACKs: the receiver says that packets are missing (NAK), which counts as Linux's recovery.
//  - No restart after idleness: the window that was is the one that comes.
// The marking threshold belongs to the switch (RFC 8257 4.1: K > B * T / 7).
#include <algorithm>
#include <iterator>

#include "roci/cc.h"

namespace {

enum Parameter {
  kShiftG,
  kAlphaOnInit,
  kInitialWindow,
  kMinWindow,
  kMaxWindow,
  kUseBeforeGrowth,
  kParameterCount
};
constexpr roci_cc_parameter kParameters[] = {
    {"shift_g", "1", 4, 0, 10, "g = 1 / 2^shift_g (RFC 8257 4.2: 1/16; Linux dctcp_shift_g)"},
    {"alpha_on_init", "1/1024", 1024, 0, 1024, "initial alpha (RFC 8257 3.3: 1; Linux dctcp_alpha_on_init)"},
    {"initial_window", "packets", 10, 1, 65536, "initial window (RFC 6928)"},
    {"min_window", "packets", 2, 1, 65536, "minimum window after a cut; a time-out leaves 1 (Linux)"},
    {"max_window", "packets", 65536, 1, 65536, "maximum window (project addition)"},
    {"use_before_growth", "1", 0.5, 0, 1,
     "the window grows only if this fraction of it was in flight (project addition)"},
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

constexpr uint32_t kOne = 1024;  // alpha

struct State {
  uint64_t measured;   // sequence: alpha changes when it is acknowledged
  uint64_t cut;        // sequence: marks are answered again, and the window grows, when it is acknowledged
  uint64_t recovered;  // sequence: likewise losses
  uint64_t begun;      // not 0 once the sequence is known
  uint32_t acked;      // packets, in this window
  uint32_t marked;     // of these
  uint32_t window;     // packets
  uint32_t threshold;  // packets: slow start goes up to here
  uint32_t towards;    // packets acknowledged on the way to the next step
  uint32_t alpha;      // 1/1024
};
static_assert(sizeof(State) == 56);

uint32_t plus(uint32_t a, uint32_t b) { return a > UINT32_MAX - b ? UINT32_MAX : a + b; }

// Up to what is to be acknowledged before one reacts again: what is in flight, and something of it.
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
    const uint32_t steps = s.towards / s.window;
    s.towards -= steps * s.window;
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

// Whoever has lost a packet has lost it whatever the marks have said: half of the window, once per window.
void lost(State& s, const roci_cc_event& event, const double* p, roci_cc_decision& d) {
  if (event.acked < s.recovered) return;
  s.window = s.threshold = std::max(s.window / 2, least(p));
  s.towards = 0;
  s.cut = s.recovered = behind(event);
  d.reason = kLost;
}

// A second time-out of the same window has nothing new to say of where slow start should end.
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

void start(void* state, const roci_cc_flow* flow, uint64_t /*now*/, const double* p,
           roci_cc_decision* decision) {
  State& s = *static_cast<State*>(state);
  s.window = static_cast<uint32_t>(std::min(p[kInitialWindow], p[kMaxWindow]));
  s.threshold = UINT32_MAX;
  s.alpha = static_cast<uint32_t>(p[kAlphaOnInit]);
  decide(s, *flow, 0, *decision);
}

void on_event(void* state, const roci_cc_flow* flow, const roci_cc_event* event, const double* p,
              roci_cc_decision* decision) {
  State& s = *static_cast<State*>(state);
  if (s.begun == 0) {
    s.begun = 1;
    s.measured = behind(*event);
  }
  if ((event->kinds & ROCI_CC_ON_ACK) != 0) acknowledged(s, *flow, *event, p, *decision);
  if ((event->kinds & ROCI_CC_ON_LOSS) != 0) lost(s, *event, p, *decision);
  if ((event->kinds & ROCI_CC_ON_TIMEOUT) != 0) timed_out(s, *event, p, *decision);
  decide(s, *flow, event->acked, *decision);
}

}  // namespace

extern "C" const roci_cc_plugin roci_cc_dctcp = {
    .abi = ROCI_CC_ABI,
    .size = sizeof(roci_cc_plugin),
    .name = "dctcp",
    .summary = "window that is cut once per round trip by the fraction of marked packets",
    .source = "RFC 8257; Alizadeh et al., SIGCOMM 2010; Linux tcp_dctcp",
    .capabilities = ROCI_CC_NEEDS_ACK | ROCI_CC_NEEDS_CE_COUNT | ROCI_CC_USES_WINDOW | ROCI_CC_USES_ECN,
    .state_bytes = sizeof(State),
    .receiver_state_bytes = 0,
    .parameters = kParameters,
    .parameter_count = kParameterCount,
    .state_count = std::size(kStates),
    .states = kStates,
    .reasons = kReasons,
    .reason_count = std::size(kReasons),
    .reserved = 0,
    .check = nullptr,
    .start = start,
    .event = on_event,
    .receive = nullptr,
};

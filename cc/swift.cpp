// Swift: windows that keep delays at a target. Source: Kumar et al., "Swift: Delay is Simple and Effective for
// Congestion Control in the Datacenter", SIGCOMM 2020.
//
// There are two windows, one for the delay in the network and one for the delay in the peer's host; the smaller one
// applies. Below one packet, packets are sent rtt / window apart.
//
//        delay <  target   window += ai * packets / window       (below one packet: += ai * packets)
//        delay >= target   window *= max(1 - beta * (delay - target) / delay, 1 - max_mdf)     once per round trip
//        target = base_target + hops * hop_target + clamp(a / sqrt(window) + b, 0, fs_range)
//
// with a and b such that the last term is 0 at fs_max_window and fs_range at fs_min_window (3.1 and 3.5). Flows with
// small windows, which are numerous, thus tolerate a longer queue. The host's target has no such terms.
//
// Units: packets, ns. State: 48 bytes: both windows with the times of their last reduction, round trip, consecutive
// time-outs, packets acknowledged without a sample, hops.
//
// Additions to the paper, and differences from it:
//  - The default of base_target is 1.25 base round trips, which includes the hops: hop_target is 0. fs_range is a
//    multiple of base_target, as in the simulator htsim (5). The paper gives no host_target.
//  - The initial window is line rate * base round trip.
//  - Each reduction stores its time, for any cause. Published implementations do not store it after a reduction by
//    delay, and then reduce with each ACK of one round trip.
//  - The round trip for "once per round trip" and for the gap includes network and host. For the gap it is limited to
//    the sum of the targets: at the minimum window after an incast, a gap is 100 round trips of milliseconds, and the
//    flow would wait long after the queue has drained (tests/cc/bottleneck_test.cpp).
//  - An ACK without a delay sample changes nothing; its packets count with the next sample.
//  - One event grows a window by at most `ai`. An unused window does not grow (`use_before_growth`), so that the larger
//    window does not grow without limit while the smaller one applies.
//  - If the peer does not report the delay in its host, only the network window is used, and its delay includes the
//    host.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "cc/plugin.hpp"

namespace {

enum Parameter {
  kBaseTarget,
  kHopTarget,
  kHostTarget,
  kFsRange,
  kFsMinWindow,
  kFsMaxWindow,
  kAi,
  kBeta,
  kMaxMdf,
  kRetxResetThreshold,
  kInitialWindow,
  kMinWindow,
  kMaxWindow,
  kUseBeforeGrowth,
  kParameterCount
};
constexpr roci_cc_parameter kParameters[] = {
    {"base_target", "ns", 0, 0, 1e9,
     "target delay of an idle path; 0: 1.25 * base_rtt (3.5; project default)"},
    {"hop_target", "ns", 0, 0, 1e9, "addition to the target per hop that telemetry reports (3.5)"},
    {"host_target", "ns", 100'000, 0, 1e9,
     "target delay in the peer's host; 0: host delay is ignored (3.3; project default)"},
    {"fs_range", "1", 5, 0, 1000, "maximum addition by flow scaling, in base targets (3.5; htsim's value)"},
    {"fs_min_window", "packets", 0.1, 0.001, 1e6,
     "flow scaling adds its maximum at this window and below (3.5)"},
    {"fs_max_window", "packets", 100, 0.001, 1e6, "flow scaling adds nothing at this window and above (3.5)"},
    {"ai", "packets", 1, 0.001, 100, "growth per round trip (3.1; htsim's value)"},
    {"beta", "1", 0.8, 0, 1, "weight of the excess delay in a decrease (3.1; htsim's value)"},
    {"max_mdf", "1", 0.5, 0, 0.99, "maximum fraction that one decrease removes (3.1; htsim's value)"},
    {"retx_reset_threshold", "1", 5, 1, 1000,
     "consecutive time-outs after which the window is set to its minimum (3.6)"},
    {"initial_window", "packets", 0, 0, 65536, "initial window; 0: line rate * base_rtt (project default)"},
    {"min_window", "packets", 0.01, 0.001, 1, "minimum window (3.2: 0.001 to 0.01)"},
    {"max_window", "packets", 65536, 1, 65536, "maximum of both windows"},
    {"use_before_growth", "1", 0.5, 0, 1,
     "a window grows only if this fraction of it was in flight; 0: always (paper)"},
};
static_assert(std::size(kParameters) == kParameterCount);

enum StateLabel : uint16_t { kNetwork, kHost, kSubpacket };
constexpr roci_cc_label kStates[] = {
    {"network", "the delay in the network determines the window"},
    {"host", "the delay in the peer's host determines the window"},
    {"subpacket", "the window is below one packet: packets leave a gap apart"},
};

enum Reason : uint16_t { kNothing, kGrown, kNetworkDelay, kHostDelay, kLost, kTimedOut, kRefused };
constexpr roci_cc_label kReasons[] = {
    {"nothing", "no change"},
    {"grown", "the delays were below their targets"},
    {"network_delay", "the delay in the network exceeded its target"},
    {"host_delay", "the delay in the peer's host exceeded its target"},
    {"loss", "a packet was lost"},
    {"timeout", "a time-out expired"},
    {"implausible", "a round-trip time of 0 was ignored"},
};

// Window with the time of its last reduction.
struct Window {
  double packets;
  uint64_t shrank;  // ns + 1; 0: never
};

struct State {
  Window network;
  Window host;
  uint32_t rtt_ns;    // latest sample, network and host; 0: none
  uint32_t timeouts;  // consecutive
  uint32_t waiting;   // packets acknowledged since the latest sample
  uint32_t hops;
};
static_assert(sizeof(State) == 48);

constexpr uint32_t kMax = 1'000'000'000;  // ns: maximum sample and maximum gap

bool looks_at_host(const roci_cc_flow& flow, const double* p) {
  return (flow.provides & ROCI_CC_NEEDS_HOST_DELAY) != 0 && p[kHostTarget] > 0;
}

double base_target(const roci_cc_flow& flow, const double* p) {
  return p[kBaseTarget] > 0 ? p[kBaseTarget] : 1.25 * static_cast<double>(flow.base_rtt_ns);
}

double target(const State& s, const roci_cc_flow& flow, const double* p) {
  const double base = base_target(flow, p);
  const double range = p[kFsRange] * base;
  const double least = 1 / std::sqrt(p[kFsMaxWindow]);
  const double scale = range / (1 / std::sqrt(p[kFsMinWindow]) - least);
  const double flows = scale * (1 / std::sqrt(s.network.packets) - least);
  return base + s.hops * p[kHopTarget] + std::clamp(flows, 0.0, range);
}

void grow(Window& window, uint32_t packets, const double* p) {
  double left = packets;
  if (window.packets < 1) {
    const double steps = std::min(std::ceil((1 - window.packets) / p[kAi]), left);
    window.packets += steps * p[kAi];
    left -= steps;
  }
  if (window.packets >= 1) window.packets += p[kAi] * std::min(left / window.packets, 1.0);
  window.packets = std::min(window.packets, p[kMaxWindow]);
}

// At most once per round trip. Returns whether the window was reduced.
bool shrink(Window& window, double factor, const State& s, const roci_cc_flow& flow, uint64_t now,
            const double* p) {
  const uint64_t rtt = s.rtt_ns > 0 ? s.rtt_ns : flow.base_rtt_ns;
  if (window.shrank != 0 && now - (window.shrank - 1) < rtt) return false;
  window.packets = std::max(window.packets * std::max(factor, 1 - p[kMaxMdf]), p[kMinWindow]);
  window.shrank = now + 1;
  return true;
}

// Fraction of a window that remains for a delay above its target.
double left_by(double delay, double aim, const double* p) { return 1 - p[kBeta] * (delay - aim) / delay; }

void sampled(State& s, const roci_cc_flow& flow, const roci_cc_event& event, const double* p,
             roci_cc_decision& d) {
  if (event.rtt_ns == 0) {
    d.reason = kRefused;
    return;
  }
  const double network = std::min(event.rtt_ns, kMax);
  const double host = std::min(event.peer_delay_ns, kMax);
  s.rtt_ns = static_cast<uint32_t>(network + host);
  if (event.hops > 0) s.hops = event.hops;

  const uint32_t packets = s.waiting;
  s.waiting = 0;
  const double used = static_cast<double>(event.in_flight) + static_cast<double>(event.acked_bytes);
  const auto try_grow = [&](Window& window) {
    const double share = p[kUseBeforeGrowth] * window.packets * flow.packet_bytes;
    if (packets == 0 || (window.packets >= 1 && used < share)) return;
    grow(window, packets, p);
    if (d.reason == kNothing) d.reason = kGrown;
  };
  const double aim = target(s, flow, p);
  if (network < aim) {
    try_grow(s.network);
  } else if (shrink(s.network, left_by(network, aim, p), s, flow, event.now_ns, p)) {
    d.reason = kNetworkDelay;
  }
  if (!looks_at_host(flow, p)) {
    s.host.packets = p[kMaxWindow];
  } else if (host < p[kHostTarget]) {
    try_grow(s.host);
  } else if (shrink(s.host, left_by(host, p[kHostTarget], p), s, flow, event.now_ns, p)) {
    d.reason = kHostDelay;
  }
}

void lost(State& s, const roci_cc_flow& flow, uint64_t now, const double* p, roci_cc_decision& d) {
  s.timeouts = 0;
  const bool network = shrink(s.network, 0, s, flow, now, p);
  const bool host = shrink(s.host, 0, s, flow, now, p);
  if (network || host) d.reason = kLost;
}

void timed_out(State& s, const roci_cc_flow& flow, const roci_cc_event& event, const double* p,
               roci_cc_decision& d) {
  s.timeouts = std::min(s.timeouts + std::clamp(event.timeouts, 1U, 1000U), 1000U);
  s.waiting = 0;
  d.reason = kTimedOut;
  if (s.timeouts < p[kRetxResetThreshold]) {
    shrink(s.network, 0, s, flow, event.now_ns, p);
    shrink(s.host, 0, s, flow, event.now_ns, p);
    return;
  }
  s.network = s.host = {.packets = p[kMinWindow], .shrank = event.now_ns + 1};
}

void decide(const State& s, const roci_cc_flow& flow, const double* p, roci_cc_decision& d) {
  const double window = std::min(s.network.packets, s.host.packets);
  d.window = std::max<uint64_t>(static_cast<uint64_t>(std::max(window, 1.0) * flow.packet_bytes), 1);
  d.gap_ns = 0;
  d.state = s.host.packets < s.network.packets ? kHost : kNetwork;
  if (window >= 1) return;
  const double aim = target(s, flow, p) + (looks_at_host(flow, p) ? p[kHostTarget] : 0);
  const double rtt = s.rtt_ns > 0 ? std::min<double>(s.rtt_ns, aim) : static_cast<double>(flow.base_rtt_ns);
  d.gap_ns = static_cast<uint64_t>(std::min<double>(rtt / window, kMax));
  d.state = kSubpacket;
}

const char* check(const roci_cc_flow* flow, const double* p) {
  if (p[kFsMinWindow] >= p[kFsMaxWindow]) return "fs_min_window must be below fs_max_window";
  if (flow == nullptr || flow->base_rtt_ns > 0) return nullptr;
  if (p[kBaseTarget] == 0) return "base_target: 0 requires base_rtt";
  if (p[kInitialWindow] == 0) return "initial_window: 0 requires base_rtt";
  return nullptr;
}

void start(State& s, const roci_cc_flow& flow, uint64_t /*now*/, const double* p, roci_cc_decision& d) {
  double packets = p[kInitialWindow];
  if (packets == 0) {
    const double line = static_cast<double>(flow.line_rate) * static_cast<double>(flow.base_rtt_ns) / 8e9;
    packets = std::ceil(line / std::max<uint32_t>(flow.packet_bytes, 1));
  }
  s.network.packets = std::clamp(packets, 1.0, p[kMaxWindow]);
  s.host.packets = looks_at_host(flow, p) ? s.network.packets : p[kMaxWindow];
  decide(s, flow, p, d);
}

void on_event(State& s, const roci_cc_flow& flow, const roci_cc_event& event, const double* p,
              roci_cc_decision& d) {
  if ((event.kinds & ROCI_CC_ON_ACK) != 0 && event.acked_packets > 0) {
    s.timeouts = 0;
    s.waiting = event.acked_packets > UINT32_MAX - s.waiting ? UINT32_MAX : s.waiting + event.acked_packets;
  }
  if ((event.kinds & ROCI_CC_ON_RTT) != 0) sampled(s, flow, event, p, d);
  if ((event.kinds & ROCI_CC_ON_LOSS) != 0) lost(s, flow, event.now_ns, p, d);
  if ((event.kinds & ROCI_CC_ON_TIMEOUT) != 0) timed_out(s, flow, event, p, d);
  decide(s, flow, p, d);
}

}  // namespace

extern "C" constinit const roci_cc_plugin roci_cc_swift = roci::cc::plugin<State, start, on_event>({
    .name = "swift",
    .summary = "windows that keep the delays in network and host at their targets, also below one packet",
    .source = "Kumar et al., Swift, SIGCOMM 2020",
    .capabilities = ROCI_CC_NEEDS_ACK | ROCI_CC_NEEDS_RTT | ROCI_CC_USES_WINDOW | ROCI_CC_USES_GAP,
    .tables = {kParameters, kStates, kReasons},
    .check = check,
});

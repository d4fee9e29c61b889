// PowerTCP: window that follows the power of the most loaded link on the path. Source: Addanki, Michel, Schmid,
// "PowerTCP: Pushing the Performance Limits of Datacenter Networks", NSDI 2022. Sections and lines are those of the
// paper: lines P1 to P30 of algorithm 1 (PowerTCP), T1 to T23 of algorithm 2 (theta-PowerTCP, appendix B).
//
// Power is current * voltage: the bytes that arrive at a link per time, times its queue plus its bandwidth-delay
// product. It equals bandwidth * sum of the windows one round trip ago (3.1, property 1). Divided by its value at full
// load without a queue, b * b * T, it is the factor by which that sum exceeds the bandwidth-delay product:
//
//        w = gamma * (w_old / (G / target) + beta) + (1 - gamma) * w        equation 7, P27, T19
//
//   powertcp          G_i = (dq/dt + sent/dt) * (q + b T) / (b b T)         P11 to P19, per hop, from telemetry (INT)
//                     G: of the hop with the maximum (P20 to P22)           each ACK with telemetry updates w
//   theta_powertcp    G = (drtt/dt + 1) * rtt / T                           equation 8, T10 to T12, from each sample
//                                                                           w is updated once per round trip (T16)
//   both              G is smoothed over T: G += min(dt, T) / T * (new G - G)                   P24, T13
//
//   w_old   w when the acknowledged packet was sent (equation 7, P3). theta_powertcp changes w only when a packet is
//           acknowledged that was sent after the last change, so that w_old is w.
//   beta    HostBw * T / N (3.3): the sum of beta of all flows is the queue in equilibrium (theorem 1)
//   rate    w / T (P6, T6), at most the line rate; initial window: HostBw * T (3.3)
//
// Units: bytes on the line, ns. State: 256 bytes, including 8 hops of 16 bytes and 6 stored windows of 16 bytes;
// theta_powertcp: 40 bytes.
//
// Additions to the paper, and differences from it:
//  - Lines P19 to P22 as printed compare a power with a normalized power. Here the maximum of the normalized powers
//    counts, as the text of 3.3 specifies.
//  - A dt above T has the weight T in the smoothing, as in the authors' simulator. The lines as printed would give the
//    previous value a negative weight. The initial G is 1.
//  - The first telemetry, and that of another path or after a pause, is only stored as the reference. Hops with
//    impossible values are ignored (cc/telemetry_reference.hpp). The first round-trip time is only stored too.
//  - P7 stores w once per round trip (3.3). Packets of that round trip were then sent with other windows than w_old, and
//    the window oscillates if T is the actual round-trip time (docs/experiments/powertcp.md). Here w is stored
//    `stored_windows` times per round trip. 0 is the authors' simulator: once, and w_old is the stored window at once.
//  - The current is at least `least_current` times the bandwidth, in powertcp while the port had a queue at the previous
//    sample. After a large reduction senders wait until less than a window is in flight. Then nothing arrives, although
//    the queue is long, and the power would be that of an idle link. The authors' simulator has 0.5 for theta_powertcp,
//    and no minimum for powertcp.
//  - With several round-trip samples at the same time the first one remains the reference of the gradient.
//  - T16 permits an update at `acknowledged >= last end`. Here a byte sent after the last update must be acknowledged,
//    as in HPCC, so that G has a sample of the current window.
//  - `target`: 1 in the paper. The authors' simulator (ns3-datacenter) has 0.95, and 1.05 for theta_powertcp.
//  - Maximum window: the initial window, as in the authors' simulator, so that the own port has no queue. Minimum: what
//    `min_rate` sends in T.
//  - theta_powertcp: `measured_t` lowers the T of G to the minimum round-trip time of the flow. With a profile for the
//    most distant host, a nearer host would otherwise have G < 1 until its queue fills the difference. Only samples of
//    full packets count (the authors' simulator: all packets): a shorter packet takes less time on each link, so G of
//    full packets would exceed 1 without a queue, and the window would converge to a few beta.
//  - INT responses of switches are ignored: power needs two samples of a port.
//  - Losses are ignored: both signals report the congestion. After a time-out they are missing, and the window is
//    multiplied by `timeout_cut`.
// Limitation: with packet spraying no two samples are from the same ports, so the window of powertcp does not change.
#include <algorithm>
#include <array>
#include <iterator>

#include "cc/plugin.hpp"
#include "cc/telemetry_reference.hpp"

namespace {

enum Parameter {
  kGamma,
  kTarget,
  kBeta,
  kFlows,
  kT,
  kMinRate,
  kMaxWindow,
  kTimeoutCut,
  kLeastCurrent,
  kCommonCount,
  // powertcp:
  kStoredWindows = kCommonCount,
  kCount,
  // theta_powertcp:
  kMeasuredT = kCommonCount,
  kThetaCount
};
constexpr uint32_t kMaxStored = 6;
constexpr roci_cc_parameter kParameters[] = {
    {"gamma", "1", 0.9, 0.01, 1, "weight of the newly computed window (3.3)"},
    {"target", "1", 1, 0.1, 2,
     "normalized power at which the window does not change (3.3; the authors' simulator: 0.95)"},
    {"beta", "bytes", 0, 0, 1e9, "additive increase per round trip; 0: line rate * T / flows (3.3)"},
    {"flows", "1", 100, 1, 1e6,
     "N: expected number of flows at the sender's port (3.3; project default; the authors' Linux module: "
     "10)"},
    {"t", "ns", 0, 0, 1e9, "T: base round-trip time (3.3); 0: base_rtt"},
    {"min_rate", "bit/s", 1e8, 1e6, 1e12, "the window is at least min_rate * T (the authors' simulator)"},
    {"max_window", "bytes", 0, 0, 1e12,
     "maximum window; 0: line rate * T (the authors' simulator; paper: none)"},
    {"timeout_cut", "1", 0.5, 0, 1,
     "fraction of the window that remains after a time-out (project addition)"},
    {"least_current", "1", 0.5, 0, 1,
     "minimum current of a port with a queue, as a fraction of its bandwidth (project addition; paper: 0)"},
    {"stored_windows", "1", 4, 0, kMaxStored - 1,
     "number of times per round trip that w is stored as a later w_old; 0: once, as in the authors' "
     "simulator"},
};
static_assert(std::size(kParameters) == kCount);
constexpr auto kThetaParameters = [] {
  std::array<roci_cc_parameter, kThetaCount> all{};
  std::copy_n(kParameters, kCommonCount, all.begin());
  all[kLeastCurrent].description =
      "minimum of the round-trip time's gradient plus 1 (the authors' simulator; paper: none)";
  all[kMeasuredT] = {
      "measured_t",
      "1",
      1,
      0,
      1,
      "1: the minimum measured round-trip time of full packets replaces T in the power if it is "
      "shorter (the authors' simulator: of all packets)"};
  return all;
}();

enum StateLabel : uint16_t { kBlind, kBelow, kAbove };
constexpr roci_cc_label kStates[] = {
    {"blind", "initial window, until two telemetry samples have arrived"},
    {"below_target", "the power of the most loaded link is below the target"},
    {"above_target", "the power of the most loaded link is the target or more"},
};
constexpr roci_cc_label kThetaStates[] = {
    {"blind", "initial window, until the first update from round-trip times"},
    {"below_target", "the power of the path is below the target"},
    {"above_target", "the power of the path is the target or more"},
};

enum Reason : uint16_t {
  kNothing,
  kRaised,
  kReduced,
  kFirst,
  kRefused,
  kTimedOut,
  kThetaReasons,
  // powertcp:
  kPathChanged = kThetaReasons
};
constexpr roci::cc::SampleReasons kSampleReasons{
    .nothing = kNothing, .first = kFirst, .path_changed = kPathChanged, .impossible = kRefused};
constexpr roci_cc_label kReasons[] = {
    {"nothing", "no change"},
    {"raised", "the window grew"},
    {"reduced", "the window shrank"},
    {"first_sample", "the sample was stored as the reference: at the start, and after a pause or a time-out"},
    {"implausible", "impossible values were ignored: of a telemetry hop, or a round-trip time of 0"},
    {"timeout", "a time-out expired"},
    {"path_changed", "telemetry came from other ports than before and was stored as the reference"},
};

using roci::cc::TelemetrySample;

// Window with which packets were sent.
struct StoredWindow {
  uint64_t from;  // sequence of the first byte
  double window;  // bytes
};

struct State {
  roci::cc::ReferenceHop hop[8];  // reference of the next measurement
  double power;                   // G
  double window;                  // w, bytes
  StoredWindow sent[kMaxStored];  // by sequence; the first one is w_old
  uint64_t kept_ns;               // time of the last update of `hop`
  uint32_t hops;                  // valid entries of `hop`
  uint32_t stored;                // valid entries of `sent`, at least 1
};
static_assert(sizeof(State) == 256);

struct ThetaState {
  double power;         // G
  double window;        // w, bytes
  uint64_t updated;     // sequence: end of the bytes sent before the last update
  uint64_t sampled_ns;  // time of the previous sample
  uint32_t rtt_before;  // ns; 0: no sample
  uint32_t least_rtt;   // ns: minimum of full packets; 0: no sample
};
static_assert(sizeof(ThetaState) == 40);

// Values derived from parameters and flow. Bytes and ns.
struct Model {
  double t;
  double whole;  // initial window
  double least;
  double most;
  double beta;
  double packet;
};

Model model_of(const roci_cc_flow& flow, const double* p) {
  Model m{};
  m.t = std::max(p[kT] > 0 ? p[kT] : static_cast<double>(flow.base_rtt_ns), 1.0);
  m.packet = std::max<double>(flow.packet_bytes, 1);
  m.whole = std::max(static_cast<double>(flow.line_rate) * m.t / 8e9, m.packet);
  m.most = p[kMaxWindow] > 0 ? std::max(p[kMaxWindow], 1.0) : m.whole;
  m.whole = std::min(m.whole, m.most);
  m.least = std::clamp(p[kMinRate] * m.t / 8e9, 1.0, m.most);
  m.beta = p[kBeta] > 0 ? p[kBeta] : static_cast<double>(flow.line_rate) * m.t / 8e9 / p[kFlows];
  return m;
}

// P24, T13. `dt` in ns; `t`: the T of the power.
void smooth(double& power, double sample, double dt, double t) {
  power += std::min(dt, t) / t * (sample - power);
}

// P27, T19. The minimum avoids a division by 0 when nothing arrived.
double updated_window(double window, double old, double power, const Model& m, const double* p) {
  const double factor = std::max(power / p[kTarget], 1e-6);
  const double next = p[kGamma] * (old / factor + m.beta) + (1 - p[kGamma]) * window;
  return std::clamp(next, m.least, m.most);
}

uint16_t reason_of_change(double before, double after) {
  return after < before ? kReduced : after > before ? kRaised : kNothing;
}

uint16_t state_of(double power, const double* p) { return power < p[kTarget] ? kBelow : kAbove; }

// P6, T6.
void decide(double window, const Model& m, const roci_cc_flow& flow, roci_cc_decision& d) {
  d.window = std::max<uint64_t>(static_cast<uint64_t>(window), 1);
  const double line = static_cast<double>(flow.line_rate);
  d.rate = std::max<uint64_t>(static_cast<uint64_t>(std::min(window * 8e9 / m.t, line)), 1);
}

const char* check(const roci_cc_flow* flow, const double* p) {
  if (flow == nullptr || flow->base_rtt_ns > 0 || p[kT] > 0) return nullptr;
  return "t: 0 requires base_rtt";
}

// ------------------------------------------------------------------------------------------------------- PowerTCP

// Discards the samples and the stored windows.
void restart(State& s, double window) {
  s.window = window;
  s.power = 1;
  s.sent[0] = {0, window};
  s.stored = 1;
  s.hops = 0;
}

void start(State& s, const roci_cc_flow& flow, uint64_t /*now*/, const double* p, roci_cc_decision& d) {
  const Model m = model_of(flow, p);
  restart(s, m.whole);
  decide(s.window, m, flow, d);
}

// P3: the window when the last acknowledged byte was sent.
double old_window(State& s, uint64_t acked) {
  uint32_t first = 0;
  while (first + 1 < s.stored && s.sent[first + 1].from < acked) ++first;
  std::copy(s.sent + first, s.sent + s.stored, s.sent);
  s.stored -= first;
  return s.sent[0].window;
}

// P7.
void store_window(State& s, const roci_cc_event& event, const double* p) {
  const StoredWindow now{event.next, s.window};
  StoredWindow& last = s.sent[s.stored - 1];
  if (p[kStoredWindows] == 0) {
    if (event.acked > last.from) last = now;
    return;
  }
  const double unacknowledged = event.next > event.acked ? static_cast<double>(event.next - event.acked) : 0;
  if (event.next <= last.from) {  // nothing was sent since
    last.window = s.window;
  } else if (s.stored < kMaxStored &&
             static_cast<double>(event.next - last.from) >= unacknowledged / p[kStoredWindows]) {
    s.sent[s.stored++] = now;
  }
}

// P8 to P25. Updates G if `*measured` becomes true: for kCompared, and possibly for kImpossible.
TelemetrySample measure(State& s, const Model& m, const roci_cc_path& path, uint64_t now, const double* p,
                        bool* measured) {
  const double longest = roci::cc::longest_reference(m.t, m.packet, s.window);
  double most = -1, dt = 0;
  const auto sample = roci::cc::compare_with_reference(
      s, path, now, longest, m.packet, [&](const roci::cc::HopDifference& hop) {
        const double least = hop.queue_before > 0 ? p[kLeastCurrent] * hop.rate : 0;
        const double arrived = hop.queue - hop.queue_before + hop.sent;
        const double current = std::max(arrived / hop.time, least);     // P12 to P14
        const double product = hop.rate * m.t;                          // P15
        const double voltage = hop.queue + product;                     // P16
        const double power = current * voltage / (hop.rate * product);  // P17 to P19
        if (power <= most) return;
        most = power;
        dt = hop.time;
      });
  if (sample == TelemetrySample::kPaused) s.power = 1;
  *measured = most >= 0;
  if (*measured) smooth(s.power, most, dt, m.t);
  return sample;
}

// P2 to P7.
void new_ack(State& s, const Model& m, const roci_cc_event& event, const double* p, roci_cc_decision& d) {
  const roci_cc_path& path = *event.path;
  if ((path.flags & ROCI_CC_PATH_FROM_SWITCH) != 0) return;
  bool measured = false;
  const TelemetrySample sample = measure(s, m, path, event.now_ns, p, &measured);
  d.reason = roci::cc::reason_of(sample, kSampleReasons);
  if (d.reason == kFirst && p[kStoredWindows] == 0) s.sent[0].from = event.next;
  if (!measured) return;
  const double before = s.window;
  s.window = updated_window(s.window, old_window(s, event.acked), s.power, m, p);
  if (sample == TelemetrySample::kCompared) d.reason = reason_of_change(before, s.window);
  d.state = state_of(s.power, p);
  store_window(s, event, p);
}

void on_event(State& s, const roci_cc_flow& flow, const roci_cc_event& event, const double* p,
              roci_cc_decision& d) {
  const Model m = model_of(flow, p);
  if ((event.kinds & ROCI_CC_ON_TELEMETRY) != 0 && event.path != nullptr) new_ack(s, m, event, p, d);
  if ((event.kinds & ROCI_CC_ON_TIMEOUT) != 0) {
    restart(s, std::max(s.window * p[kTimeoutCut], m.least));
    d.reason = kTimedOut;
  }
  decide(s.window, m, flow, d);
}

// -------------------------------------------------------------------------------------------------- theta-PowerTCP

void start_theta(ThetaState& s, const roci_cc_flow& flow, uint64_t /*now*/, const double* p,
                 roci_cc_decision& d) {
  const Model m = model_of(flow, p);
  s.window = m.whole;
  s.power = 1;
  decide(s.window, m, flow, d);
}

// Whether all packets that the event acknowledges are full, and therefore also the measured one.
bool is_of_full_packet(const roci_cc_event& event, const roci_cc_flow& flow) {
  return (event.kinds & (ROCI_CC_ON_ACK | ROCI_CC_ON_PROBE)) == ROCI_CC_ON_ACK && event.acked_packets > 0 &&
         event.acked_bytes >= uint64_t{event.acked_packets} * flow.packet_bytes;
}

// T2 to T23.
void sampled(ThetaState& s, const Model& m, const roci_cc_flow& flow, const roci_cc_event& event,
             const double* p, roci_cc_decision& d) {
  if (event.rtt_ns == 0) {
    d.reason = kRefused;
    return;
  }
  const double rtt = event.rtt_ns;
  if ((s.least_rtt == 0 || event.rtt_ns < s.least_rtt) && is_of_full_packet(event, flow))
    s.least_rtt = event.rtt_ns;
  if (s.rtt_before == 0) {
    s.updated = event.next;
    d.reason = kFirst;
  } else {
    const auto dt = static_cast<double>(event.now_ns - s.sampled_ns);
    if (dt == 0) return;
    const double t = p[kMeasuredT] != 0 && s.least_rtt > 0 ? std::min<double>(s.least_rtt, m.t) : m.t;
    const double current = std::max((rtt - s.rtt_before) / dt + 1, p[kLeastCurrent]);  // T11
    smooth(s.power, current * rtt / t, dt, t);                                         // T12
  }
  const bool first = s.rtt_before == 0;
  s.rtt_before = event.rtt_ns;
  s.sampled_ns = event.now_ns;
  if (first || event.acked <= s.updated) return;
  const double before = s.window;
  s.window = updated_window(s.window, s.window, s.power, m, p);
  s.updated = event.next;
  d.reason = reason_of_change(before, s.window);
  d.state = state_of(s.power, p);
}

void on_event_theta(ThetaState& s, const roci_cc_flow& flow, const roci_cc_event& event, const double* p,
                    roci_cc_decision& d) {
  const Model m = model_of(flow, p);
  if ((event.kinds & ROCI_CC_ON_RTT) != 0) sampled(s, m, flow, event, p, d);
  if ((event.kinds & ROCI_CC_ON_TIMEOUT) != 0) {
    s.window = std::max(s.window * p[kTimeoutCut], m.least);
    s.power = 1;
    s.rtt_before = 0;
    d.reason = kTimedOut;
  }
  decide(s.window, m, flow, d);
}

}  // namespace

extern "C" constinit const roci_cc_plugin roci_cc_powertcp = roci::cc::plugin<State, start, on_event>({
    .name = "powertcp",
    .summary = "window computed from queue and arrival rate of the busiest link on the path (INT)",
    .source = "Addanki et al., PowerTCP, NSDI 2022, algorithm 1",
    .capabilities = ROCI_CC_NEEDS_ACK | ROCI_CC_NEEDS_INT | ROCI_CC_USES_WINDOW | ROCI_CC_USES_RATE,
    .tables = {kParameters, kStates, kReasons},
    .check = check,
});

extern "C" constinit const roci_cc_plugin roci_cc_theta_powertcp =
    roci::cc::plugin<ThetaState, start_theta, on_event_theta>({
        .name = "theta_powertcp",
        .summary = "powertcp from round-trip times and their gradient, without support by switches",
        .source = "Addanki et al., PowerTCP, NSDI 2022, section 3.5 and algorithm 2",
        .capabilities = ROCI_CC_NEEDS_ACK | ROCI_CC_NEEDS_RTT | ROCI_CC_USES_WINDOW | ROCI_CC_USES_RATE,
        .tables = {kThetaParameters, kThetaStates, std::span(kReasons).first(kThetaReasons)},
        .check = check,
    });

// HPCC++: window that follows the load of the busiest link on the path. Sources: draft-pan-tsvwg-hpccplus-01 (line
// numbers are those of its algorithm) and HPCC (SIGCOMM 2019).
//
// Switches insert the load of their ports into packets (INT). With U = queue / (B * T) + sent / B of the busiest port,
// the window keeps its utilization at `eta` without a queue:
//
//        W = Wc / (U / eta) + W_ai      Wc: W one round trip ago
//        W = Wc + W_ai                  while U < eta, `max_stage` times first
//
// Three plugins with different requirements:
//   hpcc           telemetry on every packet, returned in acknowledgments
//   hpcc_sampled   telemetry on few packets (6.3): one per round trip and more while U > eta, or on probes (6.1)
//   hpcc_receiver  the receiver computes and grants a window once per round trip (6.2, lines 28 to 34)
//
// Units: bytes on the line (the paper's simulation counts payload), ns. T is the base round trip; W_init = B * T of the
// port. State: 200 bytes, including 8 hops of 16 bytes: switch and port, time, sent units, queue. The link rate is that
// of the newer telemetry. The receiver has the same state.
//
// Additions to the draft, and differences from it:
//  - The initial U is 1. The first telemetry is only stored as the reference (as in HPCC's simulator), also after a
//    pause and for a new path (cc/telemetry_reference.hpp). A pause is longer than 1000 T and than 4 packets at the
//    rate of the flow: with hundreds of flows on a link, a flow has more than 10 T between two packets and must keep
//    its reference. A pause is at most 1 s because of the counters.
//  - max_stage is 0, as in the paper's simulations. The value 5 of the paper's text, repeated in the draft, is an
//    error. W therefore always follows U.
//  - Minimum window: what `min_rate` sends in T.
//  - Hops with impossible values are ignored; on a path of more than 8 hops the last 8 count.
//  - An INT response of a switch (6.3) has no previous sample. Its port counts as fully utilized, since only congested
//    ports send responses. It can only raise U, once per window, and at most by the factor 1 / `switch_cut`. It does
//    not change Wc, so that ACKs that report the same queue do not reduce the window a second time.
//  - Losses are ignored, since telemetry reports the congestion. After a time-out telemetry is missing, and the window
//    is multiplied by `timeout_cut`.
//  - A probe counts as an ACK of the packets sent before its request. The ">" of line 22 becomes ">=": the probe was
//    sent with the new window. A probe or sampled packet counts as lost if a later packet is acknowledged before it.
//    There is no timer.
//  - The receiver grants payload bytes, because it does not know the size of packets on the line.
// Limitation: with packet spraying no two samples are from the same ports, so the window does not change.
#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "cc/plugin.hpp"
#include "cc/telemetry_reference.hpp"

namespace {

enum Parameter {
  kEta,
  kMaxStage,
  kWai,
  kFlows,
  kFlowsReported,
  kT,
  kMinRate,
  kSwitchCut,
  kTimeoutCut,
  kArrived,
  kCommonCount,
  // Sender:
  kUpdate = kCommonCount,
  kCount,
  kProbe = kCount,
  kSampledCount,
  // Receiver:
  kGrantEvery = kCommonCount,
  kGrantDelay,
  kReceiverCount
};
constexpr roci_cc_parameter kParameters[] = {
    {"eta", "1", 0.95, 0.1, 1, "target utilization of a link (HPCC++ 5)"},
    {"max_stage", "round trips", 0, 0, 1000, "additive steps before a multiplicative one (HPCC++ 5 gives 5)"},
    {"w_ai", "bytes", 0, 0, 1e9, "additive step; 0: W_init * (1 - eta) / flows (HPCC++ 5; paper: 80)"},
    {"flows", "1", 100, 1, 1e6, "N: number of flows that can share a link without a queue (HPCC++ 5)"},
    {"flows_reported", "1", 0, 0, 1,
     "1: N is the receiver's count of flows while the receiver's link is the busiest (HPCC++ 6.2)"},
    {"t", "ns", 0, 0, 1e9, "T; 0: base_rtt (HPCC++ 4.1)"},
    {"min_rate", "bit/s", 1e8, 1e6, 1e12, "the window is at least min_rate * T (HPCC's simulator)"},
    {"switch_cut", "1", 0.5, 0.01, 1,
     "fraction of the window that remains at least after an INT response of a switch (project addition)"},
    {"timeout_cut", "1", 0.5, 0, 1,
     "fraction of the window that remains after a time-out (project addition)"},
    {"arrived", "1", 0, 0, 1,
     "1: U counts the bytes that arrived at a port, 0: those that it sent (paper, figure 6: 1 is worse)"},
    {"update", "1", 0, 0, 2,
     "0: each ACK, from the window one round trip ago; 1: each ACK, from the last window; 2: once per round "
     "trip"},
    {"probe", "1", 0, 0, 1, "telemetry on: 0: packets that request it (HPCC++ 6.3); 1: probes (6.1)"},
};
static_assert(std::size(kParameters) == kSampledCount);
constexpr auto kReceiverParameters = [] {
  std::array<roci_cc_parameter, kReceiverCount> all{};
  std::copy_n(kParameters, kCommonCount, all.begin());
  all[kGrantEvery] = {
      "grant_every", "round trips", 1.5, 1, 100, "interval between grants (HPCC++ 6.2 gives 1)"};
  all[kGrantDelay] = {
      "grant_delay",
      "1",
      1,
      0,
      1,
      "1: the queueing delay of the latest packet extends the interval; 0: it does not (HPCC++ 6.2)"};
  return all;
}();

enum StateLabel : uint16_t { kBlind, kBelow, kAbove };
constexpr roci_cc_label kStates[] = {
    {"blind", "initial window, until two telemetry samples or a window from the receiver have arrived"},
    {"below_target", "utilization of the busiest link is below eta"},
    {"above_target", "utilization of the busiest link is eta or more"},
};
constexpr roci_cc_label kGrantedStates[] = {
    kStates[0],
    {"granted", "the window is the receiver's grant"},
};

enum Reason : uint16_t { kNothing, kRaised, kReduced, kFirst, kPathChanged, kRefused, kSwitch, kTimedOut };
constexpr roci::cc::SampleReasons kSampleReasons{
    .nothing = kNothing, .first = kFirst, .path_changed = kPathChanged, .impossible = kRefused};
constexpr roci_cc_label kReasons[] = {
    {"nothing", "no change"},
    {"raised", "the window grew"},
    {"reduced", "the window shrank"},
    {"first_sample", "telemetry was stored as the reference: at the start and after a pause"},
    {"path_changed", "telemetry came from other ports than before and was stored as the reference"},
    {"implausible", "a telemetry hop with impossible values was ignored"},
    {"switch_answer", "an INT response of a switch reduced the window"},
    {"timeout", "a time-out expired"},
};

using roci::cc::TelemetrySample;

struct State {
  roci::cc::ReferenceHop hop[8];  // reference of the next measurement
  double load;                    // U
  double window;                  // W, bytes; 0: not started (the receiver has no start())
  double committed;               // Wc, bytes
  uint64_t kept_ns;               // time of the last update of `hop`
  uint64_t updated;               // lastUpdateSeq, a sequence; at the receiver lastUpdateTime, ns
  uint64_t answered;   // sequence up to which INT responses are ignored; at the receiver a time, ns
  uint64_t asked;      // sequence: `next` at the last request of telemetry
  uint32_t hops;       // valid entries of `hop`
  uint32_t stage;      // incStage
  uint32_t flows;      // on the receiver's link; 0: not reported
  uint16_t last_most;  // flag: the last hop was the busiest
  uint16_t waiting;    // flag: requested telemetry has not arrived
};
static_assert(sizeof(State) == 200);

// Values derived from parameters and flow. Bytes and ns.
struct Model {
  double t;
  double whole;  // W_init
  double least;
  double step;  // W_ai
  double packet;
  bool arrived;
};

Model model_of(const State& s, const roci_cc_flow& flow, const double* p) {
  Model m{};
  m.t = std::max(p[kT] > 0 ? p[kT] : static_cast<double>(flow.base_rtt_ns), 1.0);
  m.packet = std::max<double>(flow.packet_bytes, 1);
  m.whole = std::max(static_cast<double>(flow.line_rate) * m.t / 8e9, m.packet);
  m.least = std::clamp(p[kMinRate] * m.t / 8e9, 1.0, m.whole);
  const bool reported = p[kFlowsReported] != 0 && s.flows > 0 && s.last_most != 0;
  m.arrived = p[kArrived] != 0;
  m.step = p[kWai] > 0 ? p[kWai] : m.whole * (1 - p[kEta]) / (reported ? s.flows : p[kFlows]);
  return m;
}

void begin(State& s, const Model& m) {
  s.window = s.committed = m.whole;
  s.load = 1;
}

// ------------------------------------------------------------------------------------------------ MeasureInflight

// Lines 1 to 10. Updates U if `*measured` becomes true: for kCompared, and possibly for kImpossible.
TelemetrySample measure(State& s, const Model& m, const roci_cc_path& path, uint64_t now, bool* measured) {
  const double longest = roci::cc::longest_reference(m.t, m.packet, s.window);
  double most = -1, tau = 0;
  const auto sample = roci::cc::compare_with_reference(
      s, path, now, longest, m.packet, [&](const roci::cc::HopDifference& hop) {
        const double queue = std::min(hop.queue, hop.queue_before);
        // The queue may also have shrunk, at most by the bytes sent, unless both counts are from different instants.
        const double grown = m.arrived ? hop.queue - hop.queue_before : 0;
        const double load =
            queue / (hop.rate * m.t) + std::max(hop.sent + grown, 0.0) / hop.time / hop.rate;  // line 5
        if (load <= most) return;
        most = load;
        tau = std::min(hop.time, m.t);
        s.last_most = hop.last ? 1 : 0;
      });
  if (sample == TelemetrySample::kPaused) s.load = 1;
  *measured = most >= 0;
  if (*measured) s.load += tau / m.t * (most - s.load);  // line 9
  return sample;
}

// ---------------------------------------------------------------------------------------------------- ComputeWind

// Lines 11 to 20.
void compute(State& s, const Model& m, const double* p, bool commit) {
  const bool by_load = s.load >= p[kEta] || s.stage >= p[kMaxStage];
  // The minimum avoids a division by 0 when nothing was sent.
  const double window = (by_load ? s.committed * p[kEta] / std::max(s.load, 1e-6) : s.committed) + m.step;
  s.window = std::clamp(window, m.least, m.whole);
  if (!commit) return;
  s.stage = by_load ? 0 : s.stage + 1;
  s.committed = s.window;
}

bool is_first(TelemetrySample sample) {
  return sample == TelemetrySample::kFirst || sample == TelemetrySample::kPaused;
}

uint16_t reason_for(double before, double after) {
  return after < before ? kReduced : after > before ? kRaised : kNothing;
}

// `now` and `until` are sequences; at the receiver they are times.
uint16_t answer_switch(State& s, const Model& m, const double* p, const roci_cc_path& path, uint64_t now,
                       uint64_t until) {
  const roci_cc_hop& hop = path.hop[0];
  if (path.hops == 0 || hop.rate == 0 || now < s.answered) return kNothing;
  if (!roci::cc::is_possible_hop(hop)) return kRefused;
  const double load = 1 + hop.queue_bytes / (static_cast<double>(hop.rate) / 8e9 * m.t);
  const double most = std::max(s.load, p[kEta]) / p[kSwitchCut];
  if (std::min(load, most) <= s.load) return kNothing;
  const double before = s.window;
  s.load = std::min(load, most);
  compute(s, m, p, false);
  s.window = std::min(s.window, before);
  s.answered = until;
  return kSwitch;
}

void timed_out(State& s, const Model& m, const double* p, roci_cc_decision& d) {
  s.window = s.committed = std::max(s.window * p[kTimeoutCut], m.least);
  s.hops = 0;
  s.stage = 0;
  s.waiting = 0;
  d.reason = kTimedOut;
}

void decide(const State& s, const Model& m, const roci_cc_flow& flow, roci_cc_decision& d) {
  d.window = std::max<uint64_t>(static_cast<uint64_t>(s.window), 1);
  const double line = static_cast<double>(flow.line_rate);
  d.rate = std::max<uint64_t>(static_cast<uint64_t>(std::min(s.window * 8e9 / m.t, line)), 1);  // line 27
}

const char* check(const roci_cc_flow* flow, const double* p) {
  if (p[kEta] >= 1 && p[kWai] == 0) return "eta: 1 requires w_ai";  // the derived step would be 0
  if (flow == nullptr || flow->base_rtt_ns > 0 || p[kT] > 0) return nullptr;
  return "t: 0 requires base_rtt";
}

// ------------------------------------------------------------------------------------------------------- sender

void start(State& s, const roci_cc_flow& flow, uint64_t /*now*/, const double* p, roci_cc_decision& d) {
  const Model m = model_of(s, flow, p);
  begin(s, m);
  decide(s, m, flow, d);
}

// Lines 21 to 27.
void new_ack(State& s, const roci_cc_flow& flow, const roci_cc_event& event, const double* p,
             roci_cc_decision& d) {
  const Model m = model_of(s, flow, p);
  const roci_cc_path& path = *event.path;
  const double before = s.window;
  if ((path.flags & ROCI_CC_PATH_FROM_SWITCH) != 0) {
    const uint64_t until = std::max(event.next, event.acked + (event.acked < UINT64_MAX ? 1 : 0));
    d.reason = answer_switch(s, m, p, path, event.acked, until);
    return;
  }
  bool measured = false;
  const TelemetrySample sample = measure(s, m, path, event.now_ns, &measured);
  if (is_first(sample)) s.updated = event.next;
  d.reason = roci::cc::reason_of(sample, kSampleReasons);
  if (!measured) return;
  const bool newer = (path.flags & ROCI_CC_PATH_PROBE) != 0 ? s.asked >= s.updated : event.acked > s.updated;
  const auto update = static_cast<int>(p[kUpdate]);
  if (newer) s.updated = event.next;
  if (update == 2 && !newer) return;
  compute(s, m, p, newer || update == 1);
  if (sample == TelemetrySample::kCompared) d.reason = reason_for(before, s.window);
  d.state = s.load < p[kEta] ? kBelow : kAbove;
}

void on_event(State& s, const roci_cc_flow& flow, const roci_cc_event& event, const double* p,
              roci_cc_decision& d) {
  if (event.flows_at_receiver > 0) s.flows = event.flows_at_receiver;
  if ((event.kinds & ROCI_CC_ON_TELEMETRY) != 0 && event.path != nullptr) new_ack(s, flow, event, p, d);
  const Model m = model_of(s, flow, p);
  if ((event.kinds & ROCI_CC_ON_TIMEOUT) != 0) timed_out(s, m, p, d);
  decide(s, m, flow, d);
}

// ----------------------------------------------------------------------------------------------- sampled telemetry

const char* check_sampled(const roci_cc_flow* flow, const double* p) {
  if (p[kProbe] != 0 && flow != nullptr && (flow->provides & ROCI_CC_NEEDS_PROBE) == 0)
    return "probe: 1 requires a peer that answers probes";
  return check(flow, p);
}

void start_sampled(State& s, const roci_cc_flow& flow, uint64_t now, const double* p, roci_cc_decision& d) {
  start(s, flow, now, p, d);
  d.requests |= ROCI_CC_TELEMETRY_ONLY_ASKED;
  // The first probe is sent with the first packet: its `next` is known then.
  if (p[kProbe] != 0) {
    d.sent_notice = 1;
    return;
  }
  d.requests |= ROCI_CC_TELEMETRY_NEXT;
}

void on_event_sampled(State& s, const roci_cc_flow& flow, const roci_cc_event& event, const double* p,
                      roci_cc_decision& d) {
  on_event(s, flow, event, p, d);
  const bool probing = p[kProbe] != 0;
  if ((event.kinds & ROCI_CC_ON_TELEMETRY) != 0 && event.path != nullptr) {
    const bool of_probe = (event.path->flags & ROCI_CC_PATH_PROBE) != 0;
    if ((event.path->flags & ROCI_CC_PATH_FROM_SWITCH) == 0 && of_probe == probing) s.waiting = 0;
  }
  if ((event.kinds & ROCI_CC_ON_ACK) != 0 && event.acked > s.asked) s.waiting = 0;
  const bool first = s.waiting == 0;
  if (!probing) {
    if (first || s.load > p[kEta]) d.requests |= ROCI_CC_TELEMETRY_NEXT;
  } else if (first && (event.in_flight > 0 || (event.kinds & ROCI_CC_ON_SENT) != 0)) {
    d.requests |= ROCI_CC_SEND_PROBE;
    d.sent_notice = 0;
  } else {
    // Without packets in flight the next probe waits for the next packet.
    if (first) d.sent_notice = 1;
    return;
  }
  if (first) s.asked = event.next;
  s.waiting = 1;
}

// ------------------------------------------------------------------------------------------------------- receiver

void on_event_granted(State& s, const roci_cc_flow& flow, const roci_cc_event& event, const double* p,
                      roci_cc_decision& d) {
  const Model m = model_of(s, flow, p);
  if ((event.kinds & ROCI_CC_ON_WINDOW) != 0) {
    const double payload = std::max<double>(flow.payload_bytes, 1);
    const double before = s.window;
    s.window = std::clamp(event.receiver_window * m.packet / payload, m.least, m.whole);
    d.reason = reason_for(before, s.window);
    d.state = 1;
  }
  if ((event.kinds & ROCI_CC_ON_TIMEOUT) != 0) timed_out(s, m, p, d);
  decide(s, m, flow, d);
}

// Queueing delay of a received packet on its path, ns, computed from its hops.
double waited(const roci_cc_path& path) {
  double sum = 0;
  for (uint32_t i = 0; i < std::min<uint32_t>(path.hops, ROCI_CC_MAX_HOPS); ++i)
    if (path.hop[i].rate != 0) sum += 8e9 * path.hop[i].queue_bytes / static_cast<double>(path.hop[i].rate);
  return sum;
}

// Lines 28 to 34. Line 29 is the draft's with grant_every = 1 and grant_delay = 0. The default values wait longer: after
// T a packet that arrives may have been sent before the last grant, and the same queue would be counted twice; four
// flows that do so oscillate in step at 71 % of the line rate. A packet that arrives now was sent T/2 plus its queueing
// delay ago, and the first packet affected by a grant is sent T/2 after it. The grant also waits for the next feedback
// packet.
void receive(State& s, const roci_cc_flow& flow, const roci_cc_arrival& arrival, const double* p,
             roci_cc_grant& grant) {
  if (arrival.path == nullptr || flow.line_rate == 0 || check(&flow, p) != nullptr) return;
  s.flows = arrival.flows;
  const Model m = model_of(s, flow, p);
  if (s.window == 0) begin(s, m);
  const roci_cc_path& path = *arrival.path;
  const uint64_t now = arrival.now_ns;
  if ((path.flags & ROCI_CC_PATH_FROM_SWITCH) != 0) {
    grant.reason = answer_switch(s, m, p, path, now, now + static_cast<uint64_t>(m.t));
    return;
  }
  const double before = s.window;
  bool measured = false;
  const TelemetrySample sample = measure(s, m, path, now, &measured);
  if (is_first(sample)) s.updated = now;
  grant.reason = roci::cc::reason_of(sample, kSampleReasons);
  if (!measured) return;
  const double interval = p[kGrantEvery] * m.t + (p[kGrantDelay] != 0 ? waited(path) : 0);
  const bool commit = static_cast<double>(now - s.updated) > interval;
  compute(s, m, p, commit);
  if (sample == TelemetrySample::kCompared) grant.reason = reason_for(before, s.window);
  if (!commit) return;
  s.updated = now;
  const double payload = std::max<double>(flow.payload_bytes, 1);
  grant.window = std::max<uint64_t>(static_cast<uint64_t>(s.window * payload / m.packet), 1);
  grant.send = 1;
}

}  // namespace

extern "C" constinit const roci_cc_plugin roci_cc_hpcc = roci::cc::plugin<State, start, on_event>({
    .name = "hpcc",
    .summary = "window computed from the link load that switches write into every packet (INT)",
    .source = "draft-pan-tsvwg-hpccplus-01; Li et al., HPCC, SIGCOMM 2019",
    .capabilities = ROCI_CC_NEEDS_ACK | ROCI_CC_NEEDS_INT | ROCI_CC_USES_WINDOW | ROCI_CC_USES_RATE,
    .tables = {std::span(kParameters).first(kCount), kStates, kReasons},
    .check = check,
});

extern "C" constinit const roci_cc_plugin roci_cc_hpcc_sampled =
    roci::cc::plugin<State, start_sampled, on_event_sampled>({
        .name = "hpcc_sampled",
        .summary = "hpcc with telemetry on some packets only, or on probes",
        .source = "draft-pan-tsvwg-hpccplus-01, sections 6.1 and 6.3",
        .capabilities = ROCI_CC_NEEDS_ACK | ROCI_CC_NEEDS_INT | ROCI_CC_USES_WINDOW | ROCI_CC_USES_RATE,
        .tables = {kParameters, kStates, kReasons},
        .check = check_sampled,
    });

extern "C" constinit const roci_cc_plugin roci_cc_hpcc_receiver =
    roci::cc::plugin<State, start, on_event_granted, receive>({
        .name = "hpcc_receiver",
        .summary = "hpcc computed by the receiver, which sends a window (grant) about once per round trip",
        .source = "draft-pan-tsvwg-hpccplus-01, section 6.2",
        .capabilities = ROCI_CC_NEEDS_ACK | ROCI_CC_NEEDS_INT | ROCI_CC_NEEDS_WINDOWS | ROCI_CC_USES_WINDOW |
                        ROCI_CC_USES_RATE,
        .tables = {kReceiverParameters, kGrantedStates, kReasons},
        .check = check,
    });

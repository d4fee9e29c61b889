// HPCC++: draft-pan-tsvwg-hpccplus-01, and HPCC (SIGCOMM 2019). Switches write into packets how busy their ports are; the
// window follows the busiest one, U = queue / (B * T) + sent / B, so that it is used by `eta` and has no queue:
//
//        W = Wc / (U / eta) + W_ai      Wc: what W was a round trip ago        (line numbers are those of the draft)
//        W = Wc + W_ai                  while U < eta, `max_stage` times first
//
// Three plugins, because what is asked of the network differs:
//   hpcc           telemetry on every packet, back with the acknowledgements
//   hpcc_sampled   telemetry on few packets (6.3): one each round trip and more while U > eta, or on probes (6.1)
//   hpcc_receiver  the receiving end computes and grants a window each round trip (6.2, lines 28 to 34)
//
// Units: bytes on the line (the paper's simulation counts payload), ns. T is the base round trip, W_init = B * T of the
// port. State: 200 bytes, of which 8 hops of 16: switch and port, time, sent, queue. The rate of a link is taken from the
// newer telemetry. At the receiving end the same.
//
// Where the draft is silent, or this differs from it:
//  - U begins with 1. The first telemetry only is kept (HPCC's simulator does so), and the first after a pause or another
//    path likewise. A pause is 1000 T, and at least 4 packets at the rate of the flow: flows that share a link by hundreds
//    have more than 10 T between two packets, and must not forget each time. 1 s at most, for the counters: 32 bits of ns
//    are 4.3 s, 32 bits of 8 bytes are 0.69 s at 400 Gb/s; a hop whose counter may have come round meanwhile is left out.
//  - max_stage is 0, as the paper's simulations had it (its 5 is a slip that the draft has kept), so W follows U always.
//  - A window has a floor: what `min_rate` sends in T.
//  - Hops are not believed that go back in time, send more than 1.1 times their rate beyond two packets, or have a queue
//    of more than 1 s or 1 GiB, or a rate that no link has. They keep what is known of them; hops that are not counted at
//    all (no rate, no time between) likewise. On a path of more than 8 hops the last 8 count: incast fills the last ones.
//  - An answer that a switch has sent itself (6.3) has no former sample of the same path. Its port counts as sending all
//    the time, as the ones do that speak; it can only raise U, once per window, and by 1 / `switch_cut` at most. It leaves
//    Wc as it is, so that the ACKs that tell of the same queue do not shrink the window a second time.
//  - Losses change nothing, since telemetry has told already. After a time-out none came, so the window is `timeout_cut`
//    of what it was.
//  - A probe counts as an ACK of what was sent when it was asked for. The strict ">" of line 22 becomes ">=": it was sent
//    with the new window. A probe or subscribed packet counts as lost when something behind it is acknowledged before it
//    is answered; there is no timer.
//  - The receiver grants payload, since it knows packets by their payload.
// On paths that change with every packet (spraying) no two samples are of the same ports: the window would never move.
#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "roci/cc.h"

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
  // Of the sending end:
  kUpdate = kCommonCount,
  kCount,
  kProbe = kCount,
  kSampledCount,
  // Of the receiving end:
  kGrantEvery = kCommonCount,
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
      "grant_every",
      "round trips",
      1.5,
      1,
      100,
      "interval between grants, plus the queueing delay of the latest packet (HPCC++ 6.2 gives 1)"};
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

constexpr uint32_t kHops = 8;
constexpr double kSecond = 1e9;  // ns

struct Hop {
  uint32_t id;  // switch and port
  uint32_t time_ns;
  uint32_t sent_units;
  uint32_t queue_bytes;
};

struct State {
  Hop hop[kHops];
  double load;         // U
  double window;       // W, bytes; 0: nothing has begun (the receiving end has no start())
  double committed;    // Wc, bytes
  uint64_t kept_ns;    // when `hop` was kept last
  uint64_t updated;    // lastUpdateSeq, a sequence; at the receiving end lastUpdateTime, ns
  uint64_t answered;   // up to where (at the receiving end: until when) switches were answered
  uint64_t asked;      // sequence: `next` when telemetry was asked for
  uint32_t hops;       // in `hop`; 0: none is kept
  uint32_t stage;      // incStage
  uint32_t flows;      // that share the receiver's link; 0: not told
  uint16_t last_most;  // the last hop was the busiest
  uint16_t waiting;    // for the telemetry that was asked for
};
static_assert(sizeof(State) == 200);

// What parameters and flow amount to. Bytes and ns.
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

bool is_possible(const roci_cc_hop& hop) {
  const auto rate = static_cast<double>(hop.rate);
  return hop.rate == 0 ||
         (rate >= 1e6 && rate <= 1e13 && hop.queue_bytes <= std::min(rate / 8, 1024.0 * 1024 * 1024));
}

Hop kept(const roci_cc_hop& hop) {
  return {.id = hop.node << 12 | (hop.port & 0xfff),
          .time_ns = hop.time_ns,
          .sent_units = hop.sent_units,
          .queue_bytes = hop.queue_bytes};
}

enum Outcome { kKept, kChanged, kMeasured, kNoHop, kImpossible };

// Lines 1 to 10. U has changed when the answer is kMeasured, or kImpossible with `*measured`.
Outcome measure(State& s, const Model& m, const roci_cc_path& path, uint64_t now, bool* measured) {
  *measured = false;
  const uint32_t hops = std::min<uint32_t>(std::min<uint32_t>(path.hops, ROCI_CC_MOST_HOPS), kHops);
  if (hops == 0) return kNoHop;
  const roci_cc_hop* hop = path.hop + (std::min<uint32_t>(path.hops, ROCI_CC_MOST_HOPS) - hops);
  const double between = 4 * m.packet * m.t / s.window;
  const double longest = std::min(std::max(1000 * m.t, between), kSecond);
  const bool paused = s.hops > 0 && static_cast<double>(now - s.kept_ns) > longest;
  bool same = hops == s.hops;
  for (uint32_t i = 0; same && i < hops; ++i) same = kept(hop[i]).id == s.hop[i].id;
  if (!same || paused) {
    const Outcome outcome = s.hops == 0 || paused ? kKept : kChanged;
    if (paused) s.load = 1;
    for (uint32_t i = 0; i < kHops; ++i) s.hop[i] = i < hops ? kept(hop[i]) : Hop{};
    s.hops = hops;
    s.kept_ns = now;
    return outcome;
  }

  double most = -1, tau = 0;
  bool impossible = false;
  for (uint32_t i = 0; i < hops; ++i) {
    Hop& before = s.hop[i];
    const uint32_t time = hop[i].time_ns - before.time_ns;
    if (!is_possible(hop[i]) || time >= UINT32_MAX / 2) {
      impossible = true;
      continue;
    }
    if (time == 0 || hop[i].rate == 0) continue;
    const double rate = static_cast<double>(hop[i].rate) / 8e9;  // bytes per ns
    if (time > longest || time * rate > 0x1p34) {                // half of the counter's way round
      before = kept(hop[i]);
      continue;
    }
    const double sent = 8.0 * (hop[i].sent_units - before.sent_units);
    if (sent > 1.1 * rate * time + 2 * m.packet) {
      impossible = true;
      continue;
    }
    const double queue = std::min(hop[i].queue_bytes, before.queue_bytes);
    // A queue shrinks too, and by what was sent at most, unless the counts are not of one instant.
    const double grown = m.arrived ? static_cast<double>(hop[i].queue_bytes) - before.queue_bytes : 0;
    const double load = queue / (rate * m.t) + std::max(sent + grown, 0.0) / time / rate;  // line 5
    before = kept(hop[i]);
    s.kept_ns = now;
    if (load <= most) continue;
    most = load;
    tau = std::min<double>(time, m.t);
    s.last_most = i + 1 == hops ? 1 : 0;
  }
  if (most >= 0) {
    s.load += tau / m.t * (most - s.load);  // line 9
    *measured = true;
  }
  return impossible ? kImpossible : *measured ? kMeasured : kNoHop;
}

// ---------------------------------------------------------------------------------------------------- ComputeWind

// Lines 11 to 20.
void compute(State& s, const Model& m, const double* p, bool commit) {
  const bool by_load = s.load >= p[kEta] || s.stage >= p[kMaxStage];
  // Nothing measured is no reason to divide by nothing.
  const double window = (by_load ? s.committed * p[kEta] / std::max(s.load, 1e-6) : s.committed) + m.step;
  s.window = std::clamp(window, m.least, m.whole);
  if (!commit) return;
  s.stage = by_load ? 0 : s.stage + 1;
  s.committed = s.window;
}

uint16_t reason_for(double before, double after) {
  return after < before ? kReduced : after > before ? kRaised : kNothing;
}

// `now` and `until` are sequences, or times at the receiving end.
uint16_t answer_switch(State& s, const Model& m, const double* p, const roci_cc_path& path, uint64_t now,
                       uint64_t until) {
  const roci_cc_hop& hop = path.hop[0];
  if (path.hops == 0 || hop.rate == 0 || now < s.answered) return kNothing;
  if (!is_possible(hop)) return kRefused;
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
  if (flow == nullptr || flow->base_rtt_ns > 0 || p[kT] > 0) return nullptr;
  return "t: 0 requires base_rtt";
}

// ---------------------------------------------------------------------------------------------- the sending end

void start(void* state, const roci_cc_flow* flow, uint64_t /*now*/, const double* p,
           roci_cc_decision* decision) {
  State& s = *static_cast<State*>(state);
  const Model m = model_of(s, *flow, p);
  begin(s, m);
  decide(s, m, *flow, *decision);
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
  const Outcome outcome = measure(s, m, path, event.now_ns, &measured);
  if (outcome == kKept) s.updated = event.next;
  d.reason = outcome == kKept         ? kFirst
             : outcome == kChanged    ? kPathChanged
             : outcome == kImpossible ? kRefused
                                      : kNothing;
  if (!measured) return;
  const bool newer = (path.flags & ROCI_CC_PATH_PROBE) != 0 ? s.asked >= s.updated : event.acked > s.updated;
  const auto update = static_cast<int>(p[kUpdate]);
  if (newer) s.updated = event.next;
  if (update == 2 && !newer) return;
  compute(s, m, p, newer || update == 1);
  if (outcome == kMeasured) d.reason = reason_for(before, s.window);
  d.state = s.load < p[kEta] ? kBelow : kAbove;
}

void on_event(void* state, const roci_cc_flow* flow, const roci_cc_event* event, const double* p,
              roci_cc_decision* decision) {
  State& s = *static_cast<State*>(state);
  if (event->flows_at_receiver > 0) s.flows = event->flows_at_receiver;
  if ((event->kinds & ROCI_CC_ON_TELEMETRY) != 0 && event->path != nullptr)
    new_ack(s, *flow, *event, p, *decision);
  const Model m = model_of(s, *flow, p);
  if ((event->kinds & ROCI_CC_ON_TIMEOUT) != 0) timed_out(s, m, p, *decision);
  decide(s, m, *flow, *decision);
}

// ---------------------------------------------------------------------------------------- telemetry on few packets

const char* check_sampled(const roci_cc_flow* flow, const double* p) {
  if (p[kProbe] != 0 && flow != nullptr && (flow->provides & ROCI_CC_NEEDS_PROBE) == 0)
    return "probe: 1 requires a peer that answers probes";
  return check(flow, p);
}

void start_sampled(void* state, const roci_cc_flow* flow, uint64_t now, const double* p,
                   roci_cc_decision* decision) {
  start(state, flow, now, p, decision);
  decision->requests |= ROCI_CC_TELEMETRY_ONLY_ASKED;
  // A probe goes with the first packet: its `next` is known then.
  if (p[kProbe] != 0) {
    decision->sent_notice = 1;
    return;
  }
  decision->requests |= ROCI_CC_TELEMETRY_NEXT;
}

void on_event_sampled(void* state, const roci_cc_flow* flow, const roci_cc_event* event, const double* p,
                      roci_cc_decision* decision) {
  on_event(state, flow, event, p, decision);
  State& s = *static_cast<State*>(state);
  const bool probing = p[kProbe] != 0;
  if ((event->kinds & ROCI_CC_ON_TELEMETRY) != 0 && event->path != nullptr) {
    const bool of_probe = (event->path->flags & ROCI_CC_PATH_PROBE) != 0;
    if ((event->path->flags & ROCI_CC_PATH_FROM_SWITCH) == 0 && of_probe == probing) s.waiting = 0;
  }
  if ((event->kinds & ROCI_CC_ON_ACK) != 0 && event->acked > s.asked) s.waiting = 0;
  const bool first = s.waiting == 0;
  if (!probing) {
    if (first || s.load > p[kEta]) decision->requests |= ROCI_CC_TELEMETRY_NEXT;
  } else if (first && (event->in_flight > 0 || (event->kinds & ROCI_CC_ON_SENT) != 0)) {
    decision->requests |= ROCI_CC_SEND_PROBE;
    decision->sent_notice = 0;
  } else {
    // With nothing under way the next probe waits for the next packet.
    if (first) decision->sent_notice = 1;
    return;
  }
  if (first) s.asked = event->next;
  s.waiting = 1;
}

// ---------------------------------------------------------------------------------------------- the receiving end

void on_event_granted(void* state, const roci_cc_flow* flow, const roci_cc_event* event, const double* p,
                      roci_cc_decision* decision) {
  State& s = *static_cast<State*>(state);
  const Model m = model_of(s, *flow, p);
  if ((event->kinds & ROCI_CC_ON_WINDOW) != 0) {
    const double payload = std::max<double>(flow->payload_bytes, 1);
    const double before = s.window;
    s.window = std::clamp(event->receiver_window * m.packet / payload, m.least, m.whole);
    decision->reason = reason_for(before, s.window);
    decision->state = 1;
  }
  if ((event->kinds & ROCI_CC_ON_TIMEOUT) != 0) timed_out(s, m, p, *decision);
  decide(s, m, *flow, *decision);
}

// How long a packet that is here has waited on its way, ns, as its hops say.
double waited(const roci_cc_path& path) {
  double sum = 0;
  for (uint32_t i = 0; i < std::min<uint32_t>(path.hops, ROCI_CC_MOST_HOPS); ++i)
    if (path.hop[i].rate != 0) sum += 8e9 * path.hop[i].queue_bytes / static_cast<double>(path.hop[i].rate);
  return sum;
}

// Lines 28 to 34, but for line 29: after T alone a packet that arrives may have left before the grant did, so the same queue
// would be answered twice; four flows that do so together stop and go, with 71 % of the line. What comes now left half a T and
// its wait ago, what a grant has changed leaves half a T after it; and the grant itself waits for feedback to go with.
void receive(void* state, const roci_cc_flow* flow, const roci_cc_arrival* arrival, const double* p,
             roci_cc_grant* grant) {
  State& s = *static_cast<State*>(state);
  if (arrival->path == nullptr || flow->line_rate == 0 || check(flow, p) != nullptr) return;
  s.flows = arrival->flows;
  const Model m = model_of(s, *flow, p);
  if (s.window == 0) begin(s, m);
  const roci_cc_path& path = *arrival->path;
  const uint64_t now = arrival->now_ns;
  if ((path.flags & ROCI_CC_PATH_FROM_SWITCH) != 0) {
    grant->reason = answer_switch(s, m, p, path, now, now + static_cast<uint64_t>(m.t));
    return;
  }
  const double before = s.window;
  bool measured = false;
  const Outcome outcome = measure(s, m, path, now, &measured);
  if (outcome == kKept) s.updated = now;
  grant->reason = outcome == kKept         ? kFirst
                  : outcome == kChanged    ? kPathChanged
                  : outcome == kImpossible ? kRefused
                                           : kNothing;
  if (!measured) return;
  const bool commit = static_cast<double>(now - s.updated) > p[kGrantEvery] * m.t + waited(path);
  compute(s, m, p, commit);
  if (outcome == kMeasured) grant->reason = reason_for(before, s.window);
  if (!commit) return;
  s.updated = now;
  const double payload = std::max<double>(flow->payload_bytes, 1);
  grant->window = std::max<uint64_t>(static_cast<uint64_t>(s.window * payload / m.packet), 1);
  grant->send = 1;
}

}  // namespace

extern "C" const roci_cc_plugin roci_cc_hpcc = {
    .abi = ROCI_CC_ABI,
    .size = sizeof(roci_cc_plugin),
    .name = "hpcc",
    .summary = "window computed from the link load that switches write into every packet (INT)",
    .source = "draft-pan-tsvwg-hpccplus-01; Li et al., HPCC, SIGCOMM 2019",
    .capabilities = ROCI_CC_NEEDS_ACK | ROCI_CC_NEEDS_INT | ROCI_CC_USES_WINDOW | ROCI_CC_USES_RATE,
    .state_bytes = sizeof(State),
    .receiver_state_bytes = 0,
    .parameters = kParameters,
    .parameter_count = kCount,
    .state_count = std::size(kStates),
    .states = kStates,
    .reasons = kReasons,
    .reason_count = std::size(kReasons),
    .reserved = 0,
    .check = check,
    .start = start,
    .event = on_event,
    .receive = nullptr,
};

extern "C" const roci_cc_plugin roci_cc_hpcc_sampled = {
    .abi = ROCI_CC_ABI,
    .size = sizeof(roci_cc_plugin),
    .name = "hpcc_sampled",
    .summary = "hpcc with telemetry on some packets only, or on probes",
    .source = "draft-pan-tsvwg-hpccplus-01, sections 6.1 and 6.3",
    .capabilities = ROCI_CC_NEEDS_ACK | ROCI_CC_NEEDS_INT | ROCI_CC_USES_WINDOW | ROCI_CC_USES_RATE,
    .state_bytes = sizeof(State),
    .receiver_state_bytes = 0,
    .parameters = kParameters,
    .parameter_count = kSampledCount,
    .state_count = std::size(kStates),
    .states = kStates,
    .reasons = kReasons,
    .reason_count = std::size(kReasons),
    .reserved = 0,
    .check = check_sampled,
    .start = start_sampled,
    .event = on_event_sampled,
    .receive = nullptr,
};

extern "C" const roci_cc_plugin roci_cc_hpcc_receiver = {
    .abi = ROCI_CC_ABI,
    .size = sizeof(roci_cc_plugin),
    .name = "hpcc_receiver",
    .summary = "hpcc computed by the receiver, which grants a window about once per round trip",
    .source = "draft-pan-tsvwg-hpccplus-01, section 6.2",
    .capabilities = ROCI_CC_NEEDS_ACK | ROCI_CC_NEEDS_INT | ROCI_CC_NEEDS_WINDOWS | ROCI_CC_USES_WINDOW |
                    ROCI_CC_USES_RATE,
    .state_bytes = sizeof(State),
    .receiver_state_bytes = sizeof(State),
    .parameters = kReceiverParameters.data(),
    .parameter_count = kReceiverParameters.size(),
    .state_count = std::size(kGrantedStates),
    .states = kGrantedStates,
    .reasons = kReasons,
    .reason_count = std::size(kReasons),
    .reserved = 0,
    .check = check,
    .start = start,
    .event = on_event_granted,
    .receive = receive,
};

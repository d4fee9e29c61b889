// DCQCN: rate that CNPs cut and that rises by time and by bytes sent.
//
//    CNP: alpha up, target = rate, rate falls by alpha/2        periods of `rpg_time_reset` and of `rpg_byte_reset`
//   line rate --------------------------------------> limited:  few of them          rate halfway to the target
//        <-------------------------------------------           enough of one        target += rpg_ai_rate
//                     the rate reaches the line rate            enough of both       target += rpg_hai_rate
//
// Sources: Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015 ("paper"); the parameters of
// Mellanox NICs as described by their tools ("NIC"); HPCC's simulator, which models the NIC ("HPCC-ns3").
//
// Paper and NIC differ in more than values. Parameters select either:
//   * rate_reduce_monitor_period = 0 is the paper: each CNP cuts the rate and raises alpha at once; alpha falls after
//     each dce_tcp_rtt without a CNP. A value above 0 is the NIC: periods start at the first CNP. At the end of each
//     dce_tcp_rtt alpha rises or falls; at the end of each rate_reduce_monitor_period with CNPs the rate is cut once.
//   * The NIC's 1024ths represent the paper's values exactly: g = 1/256 is dce_tcp_g = 1020, alpha = 1 is 1024. Alpha
//     itself is a fraction. In whole 1024ths it would decay to 0 when CNPs are more than 5 us apart, and flows below
//     about 1.6 Gb/s would hardly be cut.
// The defaults are the NIC's; the peer's CNP interval is then at most 4 us. Other published sets are built-in profiles
// (lib/congestion/built_in_profiles.cpp).
//
// Interpretation of the sources:
//   * rpg_byte_reset is off. The NIC has 32767, the maximum of its field, "in bytes" by its tools. A cut would then be
//     undone after 3 us at 100 Gb/s. HPCC-ns3 omits the counter too. If the counter is off, only time counts.
//   * threshold_inclusive: "how often the stage can count before it advances" (NIC tools) means one period of fast
//     recovery at a threshold of 1, as in HPCC-ns3. The paper's max(T, BC) < F, checked after the increment, means F-1.
//   * rate_to_set_on_first_cnp 0 means "port speed": no rate is set.
//   * release_at_max: "once this limit is reached, the limiter is released" (NIC tools on rpg_max_rate). The next CNP
//     is then a first one with the initial alpha. HPCC-ns3 and the paper keep alpha.
//   * A rate within 0.1 % of the maximum is set to it, because repeated halving never reaches it.
//   * Losses and time-outs are ignored: the algorithm is for lossless networks.
//
// Feedback: CNPs only, so READ responses to standard peers are controlled too. `window` applies only to flows with
// acknowledgments. Option of L3QCN (section 6): `notice_alpha` takes alpha from the feedback of a CNM.
//
// Order within one event: sent bytes, expired periods (cut before increase), CNM, CNPs. Alpha is updated when it is
// used, so it needs no timer. No timer runs at the maximum rate.
//
// State: 80 bytes: rate, target, alpha; start of alpha's period and of the monitor's periods; due times of cut and
// increase; bytes of the period; both stages; two flags.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "cc/plugin.hpp"
#include "cc/reaction_point.hpp"

namespace {

namespace rp = roci::rp;

enum Parameter {
  kG,
  kAlphaPeriod,
  kAlphaStart,
  kAlphaFirst,
  kMonitorPeriod,
  kTimeReset,
  kByteReset,
  kThreshold,
  kInclusive,
  kAi,
  kHai,
  kHyperStep,
  kGd,
  kMinDecFac,
  kMinRate,
  kMaxRate,
  kClamp,
  kClampAfterTime,
  kFirstRate,
  kRelease,
  kWindow,
  kNoticeAlpha,
  kParameterCount
};

constexpr roci_cc_parameter kParameters[] = {
    {"dce_tcp_g", "1", 1019, 0, 1023,
     "1 - g in 1024ths: the part of alpha that an update keeps (paper: 1020)"},
    {"dce_tcp_rtt", "ns", 1000, 1, 1e9, "interval between updates of alpha (paper: 55000)"},
    {"initial_alpha_value", "1", 1023, 0, 1024, "alpha at the first CNP, in 1024ths (paper: 1024)"},
    {"alpha_first", "1", 1, 0, 1,
     "1: alpha is updated before a cut that is due at the same time (NIC); 0: after it (paper)"},
    {"rate_reduce_monitor_period", "ns", 4000, 0, 1e9,
     "period with at most one cut, applied at its end (NIC); 0: each CNP cuts (paper)"},
    {"rpg_time_reset", "ns", 300e3, 1000, 1e10, "interval between increases by time (paper: 55000)"},
    {"rpg_byte_reset", "bytes", 0, 0, 1e12,
     "bytes sent between increases by bytes (paper: 10e6); 0: no increases by bytes"},
    {"rpg_threshold", "1", 1, 0, 1000, "F: number of fast recovery periods (paper: 5)"},
    {"threshold_inclusive", "1", 1, 0, 1, "1: period F is part of fast recovery (NIC); 0: it is not (paper)"},
    {"rpg_ai_rate", "bit/s", 5e6, 0, 1e12, "additive increase of the target rate (paper: 40e6 at 40 Gb/s)"},
    {"rpg_hai_rate", "bit/s", 50e6, 0, 1e12, "hyper increase of the target rate"},
    {"hyper_step", "1", 0, 0, 1,
     "1: hyper increase i adds i * rpg_hai_rate (paper); 0: each adds rpg_hai_rate (NIC)"},
    {"rpg_gd", "1", 11, 10, 20,
     "a cut subtracts alpha / 2^rpg_gd of the rate, alpha in 1024ths; 11: alpha / 2 (paper and NIC)"},
    {"rpg_min_dec_fac", "1", 50, 0, 100, "minimum percentage of the rate that remains after a cut (NIC)"},
    {"rpg_min_rate", "bit/s", 1e6, 1, 1e13, "minimum rate (NIC)"},
    {"rpg_max_rate", "bit/s", 0, 0, 1e13, "maximum and initial rate; 0: the line rate (paper and NIC)"},
    {"clamp_tgt_rate", "1", 0, 0, 1,
     "1: each cut sets the target to the rate before it (paper); 0: only a cut after an increase (NIC)"},
    {"clamp_tgt_rate_after_time_inc", "1", 1, 0, 1,
     "if clamp_tgt_rate is 0: 1: after any increase; 0: only after one by bytes (NIC)"},
    {"rate_to_set_on_first_cnp", "bit/s", 0, 0, 1e13,
     "the first CNP sets the rate to this value if it is lower; 0: off (NIC)"},
    {"release_at_max", "1", 1, 0, 1,
     "1: at the maximum rate the limiter is released: the next CNP is a first one (NIC); 0: off (paper)"},
    {"window", "1", 0, 0, 2,
     "limit of bytes in flight: 0: none; 1: line rate * base_rtt; 2: rate * base_rtt (HPCC-ns3 dcqcn_vwin)"},
    {"notice_alpha", "1", 0, 0, 1,
     "1: a CNM counts as a CNP with alpha = feedback / 63 (draft-yu-tsvwg-l3qcn 6)"},
};
static_assert(std::size(kParameters) == kParameterCount);

// In the order of rp::Phase.
constexpr roci_cc_label kStates[] = {
    {"line_rate", "the rate is at its maximum"},
    {"fast_recovery", "each period restores half of the last cut"},
    {"additive_increase", "each period also raises the target by rpg_ai_rate"},
    {"hyper_increase", "each period raises the target by rpg_hai_rate"},
};

enum Reason { kNothing, kCut, kNoticeCut, kRecovered, kAdded, kHyperAdded, kReleased, kImplausible };
constexpr roci_cc_label kReasons[] = {
    {"nothing", "no change"},
    {"cut", "CNPs cut the rate"},
    {"notice_cut", "a CNM cut the rate"},
    {"recovered", "fast recovery: the rate moved halfway to the target"},
    {"added", "the target rose by rpg_ai_rate, the rate moved halfway to it"},
    {"hyper_added", "the target rose by rpg_hai_rate, the rate moved halfway to it"},
    {"released", "the rate reached its maximum"},
    {"implausible", "a CNM with feedback above 63 was ignored"},
};

constexpr Reason kReasonOf[] = {kReleased, kRecovered, kAdded, kHyperAdded};  // an increase, by rp::Phase

constexpr double kOne = 1024;      // unit of alpha and g
constexpr uint32_t kMaxCnps = 64;  // per event
constexpr uint32_t kMaxFeedback = 63;

struct State {
  double current_rate;     // bit/s: RC
  double target_rate;      // bit/s: RT
  double alpha;            // 1024ths, with a fraction
  uint64_t alpha_since;    // ns: start of its period
  uint64_t monitor_since;  // ns: start of the monitor's first period
  uint64_t cut_due;        // ns: end of a period with a CNP; 0: none
  uint64_t increase_due;   // ns; 0: the rate is at its maximum
  uint64_t sent;           // bytes in the current period of rpg_byte_reset
  uint32_t time_stage;     // periods since the last cut
  uint32_t byte_stage;
  uint32_t known;       // flag: the first CNP has arrived
  uint32_t cnp_counts;  // flag: a CNP arrived in alpha's period
};
static_assert(sizeof(State) <= 80);

// By multiplication, so that the result is the same on every machine.
double power(double base, uint64_t exponent) {
  double result = 1;
  for (; exponent != 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result *= base;
    base *= base;
  }
  return result;
}

rp::Rules rules_of(const roci_cc_flow& flow, const double* p) {
  auto max = static_cast<double>(std::max<uint64_t>(flow.line_rate, 1));
  if (p[kMaxRate] > 0) max = std::min(max, p[kMaxRate]);
  const double recovery = p[kThreshold] + (p[kInclusive] != 0 ? 1 : 0);
  return {.max = max,
          .min = std::min(p[kMinRate], max),
          .ai = p[kAi],
          .hai = p[kHai],
          .active_from = recovery,
          .hyper_above = recovery,
          .hyper_grows = p[kHyperStep] != 0,
          .counts_bytes = p[kByteReset] >= 1};
}

// Processing of one call.
class ReactionPoint {
 public:
  ReactionPoint(State& state, const roci_cc_flow& flow, const double* parameters, uint64_t now,
                roci_cc_decision& decision)
      : s_(state),
        flow_(flow),
        p_(parameters),
        now_(now),
        out_(decision),
        rules_(rules_of(flow, parameters)),
        rates_(state, rules_) {}

  void start() { s_.current_rate = s_.target_rate = rules_.max; }

  void count(uint64_t bytes) {
    const uint64_t period = byte_period();
    if (period == 0 || !rates_.is_limiting()) return;
    uint64_t left = period - s_.sent;
    report(rates_.count(bytes, left, [period] { return period; }));
    s_.sent = (period - left + bytes) % period;
  }

  void pass_time() {
    if (s_.cut_due != 0 && s_.cut_due <= now_) {
      rise_until(s_.cut_due - 1);
      age_alpha(p_[kAlphaFirst] != 0 ? s_.cut_due : s_.cut_due - 1);
      s_.cut_due = 0;
      cut(kCut);
    }
    rise_until(now_);
  }

  void take_cnps(uint32_t count) {
    const bool first = !s_.known;
    if (first) begin();
    age_alpha(now_);
    if (!by_cnp()) {
      if (!first) s_.cnp_counts = 1;  // the initial alpha includes it
      cut_at_end_of_period();
      return;
    }
    for (uint32_t i = 0; i < std::min(count, kMaxCnps); ++i) {
      if (p_[kAlphaFirst] != 0) raise_alpha();
      cut(kCut);
      if (p_[kAlphaFirst] == 0) raise_alpha();
    }
    s_.alpha_since = now_;
  }

  void take_cnm(const roci_cc_cnm& cnm) {
    if (p_[kNoticeAlpha] == 0 || cnm.feedback == 0) return;
    if (cnm.feedback > kMaxFeedback) {
      out_.reason = kImplausible;
      return;
    }
    if (!s_.known) begin();
    s_.alpha = kOne * cnm.feedback / kMaxFeedback;
    s_.alpha_since = now_;
    s_.cnp_counts = 0;
    if (by_cnp()) {
      cut(kNoticeCut);
    } else {
      cut_at_end_of_period();
    }
  }

  // `noticed`: ON_SENT was received. The value is not changed before: after a cut ON_SENT may come early, which does no
  // harm.
  void publish(bool noticed) {
    out_.rate = std::max<uint64_t>(static_cast<uint64_t>(s_.current_rate), 1);
    out_.timer_ns[0] = s_.cut_due;
    out_.timer_ns[1] = s_.increase_due;
    if (!rates_.is_limiting() || byte_period() == 0) {
      out_.sent_notice = 0;
    } else if (noticed || out_.sent_notice == 0) {
      out_.sent_notice = byte_period() - s_.sent;
    }
    out_.state = static_cast<uint16_t>(rates_.phase());
    if (p_[kWindow] >= 1 && (flow_.provides & ROCI_CC_NEEDS_ACK) != 0 && flow_.base_rtt_ns > 0) {
      const double rate = p_[kWindow] >= 2 ? s_.current_rate : rules_.max;
      const double window = rate * static_cast<double>(flow_.base_rtt_ns) / 8e9;
      out_.window = std::max<uint64_t>(static_cast<uint64_t>(std::min(window, 1e18)), flow_.packet_bytes);
    }
  }

 private:
  [[nodiscard]] bool by_cnp() const { return p_[kMonitorPeriod] < 1; }
  [[nodiscard]] uint64_t byte_period() const { return static_cast<uint64_t>(p_[kByteReset]); }
  [[nodiscard]] uint64_t time_period() const { return static_cast<uint64_t>(p_[kTimeReset]); }

  void begin() {
    s_.known = 1;
    s_.alpha = p_[kAlphaStart];
    s_.alpha_since = s_.monitor_since = now_;
    s_.cnp_counts = 0;
    if (p_[kFirstRate] <= 0 || p_[kFirstRate] >= s_.current_rate) return;
    s_.current_rate = s_.target_rate = std::max(p_[kFirstRate], rules_.min);
    start_over();
  }

  void raise_alpha() { s_.alpha = std::min(s_.alpha * p_[kG] / kOne + (kOne - p_[kG]), kOne); }

  // Applies to alpha all its periods that end by `then`.
  void age_alpha(uint64_t then) {
    const auto period = static_cast<uint64_t>(p_[kAlphaPeriod]);
    if (s_.known == 0 || then < s_.alpha_since + period) return;
    uint64_t periods = (then - s_.alpha_since) / period;
    s_.alpha_since += periods * period;
    if (s_.cnp_counts != 0) {
      s_.cnp_counts = 0;
      raise_alpha();
      --periods;
    }
    s_.alpha *= power(p_[kG] / kOne, periods);
  }

  void cut_at_end_of_period() {
    const auto period = static_cast<uint64_t>(p_[kMonitorPeriod]);
    s_.cut_due = now_ + period - (now_ - s_.monitor_since) % period;
  }

  void cut(Reason why) {
    const bool increased = s_.byte_stage != 0 || (s_.time_stage != 0 && p_[kClampAfterTime] != 0);
    const double left =
        std::max(1 - s_.alpha / std::ldexp(1.0, static_cast<int>(p_[kGd])), p_[kMinDecFac] / 100);
    rates_.cut(left, p_[kClamp] != 0 || increased);
    start_over();
    out_.reason = why;
  }

  void start_over() {
    s_.time_stage = s_.byte_stage = 0;
    s_.sent = 0;
    s_.increase_due = now_ + time_period();
  }

  void rise_until(uint64_t then) {
    report(rates_.pass_time(then, [this] { return time_period(); }));
  }

  void report(std::optional<rp::Phase> increase) {
    if (!increase) return;
    out_.reason = kReasonOf[static_cast<size_t>(*increase)];
    if (out_.reason == kReleased && p_[kRelease] != 0 && s_.cut_due == 0) s_.known = 0;
  }

  State& s_;
  const roci_cc_flow& flow_;
  const double* p_;
  uint64_t now_;
  roci_cc_decision& out_;
  const rp::Rules rules_;
  rp::RateControl<State> rates_;
};

const char* check(const roci_cc_flow* flow, const double* parameters) {
  if (parameters[kMaxRate] > 0 && parameters[kMinRate] > parameters[kMaxRate])
    return "rpg_min_rate must not exceed rpg_max_rate";
  if (parameters[kWindow] >= 1 && flow != nullptr && flow->base_rtt_ns == 0)
    return "window: 1 and 2 require base_rtt";
  return nullptr;
}

void start(State& s, const roci_cc_flow& flow, uint64_t now, const double* p, roci_cc_decision& decision) {
  ReactionPoint point(s, flow, p, now, decision);
  point.start();
  point.publish(false);
}

void event(State& s, const roci_cc_flow& flow, const roci_cc_event& event, const double* p,
           roci_cc_decision& decision) {
  ReactionPoint point(s, flow, p, event.now_ns, decision);
  point.count(event.sent_bytes);
  point.pass_time();
  if ((event.kinds & ROCI_CC_ON_CNM) != 0) point.take_cnm(event.cnm);
  if ((event.kinds & ROCI_CC_ON_CNP) != 0) point.take_cnps(event.cnps);
  point.publish((event.kinds & ROCI_CC_ON_SENT) != 0);
}

}  // namespace

extern "C" constinit const roci_cc_plugin roci_cc_dcqcn = roci::cc::plugin<State, start, event>({
    .name = "dcqcn",
    .summary = "rate that CNPs cut and that rises by time and bytes sent",
    .source = "Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015; Mellanox NICs",
    .capabilities = ROCI_CC_NEEDS_CNP | ROCI_CC_USES_RATE | ROCI_CC_USES_WINDOW | ROCI_CC_USES_ECN,
    .tables = {kParameters, kStates, kReasons},
    .check = check,
});

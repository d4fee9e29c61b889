// QCN: rate that CNMs of congested queues cut and that rises by time and by bytes sent.
//
//                CNM: target = rate, rate falls by Gd |Fb|
//   line rate  ---------------------------------------->  limited: in cycles of `rpg_byte_reset` and `rpg_time_reset`
//              <----------------------------------------     up to `rpg_threshold` of both   fast recovery: halfway
//                    the rate reaches the line rate          more of one of them             target += rpg_ai_rate
//                                                            more of both                    target += rpg_hai_rate,
//                                                            twice it, ...
//
// Sources: reaction point of IEEE 802.1Q 30.3 and 32.12 (802.1Qau), with the values of IEEE8021-CN-MIB; and
// draft-yu-tsvwg-l3qcn section 6: a CNM may specify the available rate of the flow, or a rate change. Either takes
// precedence over the feedback, and recovery restarts from it: the rate rises by itself only when such CNMs no longer
// arrive. The available rate takes precedence over the change, since it also corrects the effect of a lost CNM. The
// rate stays between rpg_min_rate and the line rate. `obey_rates` 0 uses the feedback only, for networks where a CNM
// may be forged.
//
// Scaling. The values of the MIB are for the line rate `made_for`, 10 Gb/s; rates and bytes scale with the line rate,
// so that recovery takes the same time. made_for = 0: no scaling. Cycles of 15 ms are for round trips up to 500 us; for
// round trips of some microseconds, rpg_time_reset = 150e3 to 300e3 is proportionate. The sampling interval of the
// switch and its Qeq must scale with the line rate too.
//
// Differences from 802.1Q: a rate within 0.1 % of the maximum is set to it, because repeated halving never reaches it.
// The first CNM cuts from the line rate, even if the sender was slower.
//
// Order within one event: sent bytes, expired time cycles, CNM (the latest, if there were several). No timer runs at
// the maximum rate.
//
// State: 48 bytes: rate, target; end of the time cycle; remaining bytes of the byte cycle; random state; both stages.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "cc/plugin.hpp"
#include "cc/reaction_point.hpp"

namespace {

namespace rp = roci::rp;

enum Parameter {
  kThreshold,
  kTimeReset,
  kByteReset,
  kAi,
  kHai,
  kGd,
  kMinDecFac,
  kMinRate,
  kMaxRate,
  kJitter,
  kMadeFor,
  kObeyRates,
  kParameterCount
};

constexpr roci_cc_parameter kParameters[] = {
    {"rpg_threshold", "1", 5, 0, 1000,
     "number of fast recovery cycles; later cycles are half as long (IEEE8021-CN-MIB)"},
    {"rpg_time_reset", "ns", 15e6, 1000, 1e10, "length of a time cycle (IEEE8021-CN-MIB)"},
    {"rpg_byte_reset", "bytes", 150e3, 1000, 1e12, "length of a byte cycle (IEEE8021-CN-MIB)"},
    {"rpg_ai_rate", "bit/s", 5e6, 0, 1e12, "active increase of the target rate (IEEE8021-CN-MIB)"},
    {"rpg_hai_rate", "bit/s", 50e6, 0, 1e12,
     "hyper increase of the target rate: increase i adds i times this value (IEEE8021-CN-MIB)"},
    {"rpg_gd", "1", 7, 0, 20, "feedback Fb subtracts Fb / 2^rpg_gd of the rate (IEEE8021-CN-MIB)"},
    {"rpg_min_dec_fac", "1", 50, 0, 100,
     "minimum percentage of the rate that remains after a feedback (IEEE8021-CN-MIB)"},
    {"rpg_min_rate", "bit/s", 5e6, 1, 1e13, "minimum rate (IEEE8021-CN-MIB)"},
    {"rpg_max_rate", "bit/s", 0, 0, 1e13, "maximum and initial rate; 0: the line rate (IEEE8021-CN-MIB)"},
    {"jitter", "1", 0.15, 0, 0.5,
     "random variation of the length of a cycle, as a fraction of it (802.1Q 30.3)"},
    {"made_for", "bit/s", 10e9, 0, 1e13,
     "line rate for which rates and bytes are specified; they scale with the line rate; 0: no scaling"},
    {"obey_rates", "1", 1, 0, 1,
     "1: a rate in a CNM takes precedence over its feedback (draft-yu-tsvwg-l3qcn 6); 0: it is ignored"},
};
static_assert(std::size(kParameters) == kParameterCount);

// In the order of rp::Phase.
constexpr roci_cc_label kStates[] = {
    {"line_rate", "the rate is at its maximum"},
    {"fast_recovery", "each cycle restores half of the last cut"},
    {"active_increase", "each cycle also raises the target by rpg_ai_rate"},
    {"hyper_increase", "each cycle raises the target by a growing multiple of rpg_hai_rate"},
};

enum Reason { kNothing, kCut, kNotified, kRecovered, kAdded, kHyperAdded, kReleased, kImplausible };
constexpr roci_cc_label kReasons[] = {
    {"nothing", "no change"},
    {"cut", "the feedback of a CNM cut the rate"},
    {"notified", "a CNM specified the rate"},
    {"recovered", "fast recovery: the rate moved halfway to the target"},
    {"added", "the target rose by rpg_ai_rate, the rate moved halfway to it"},
    {"hyper_added", "the target rose by a multiple of rpg_hai_rate, the rate moved halfway to it"},
    {"released", "the rate reached its maximum"},
    {"implausible", "a CNM with feedback above 63 was ignored"},
};

constexpr Reason kReasonOf[] = {kReleased, kRecovered, kAdded, kHyperAdded};  // an increase, by rp::Phase

constexpr uint32_t kMaxFeedback = 63;

struct State {
  double current_rate;    // bit/s: RC
  double target_rate;     // bit/s: TR
  uint64_t increase_due;  // ns: end of the time cycle; 0: the rate is at its maximum
  uint64_t bytes_left;    // of the byte cycle
  uint64_t random;
  uint32_t time_stage;  // cycles since the last CNM
  uint32_t byte_stage;
};
static_assert(sizeof(State) <= 48);

double line_of(const roci_cc_flow& flow) {
  return static_cast<double>(std::max<uint64_t>(flow.line_rate, 1));
}
// Factor of the rates and bytes that are specified for `made_for`.
double scale_of(const roci_cc_flow& flow, const double* p) {
  return p[kMadeFor] > 0 ? line_of(flow) / p[kMadeFor] : 1;
}

rp::Rules rules_of(const roci_cc_flow& flow, const double* p) {
  const double line = line_of(flow), scale = scale_of(flow, p);
  const double max = p[kMaxRate] > 0 ? std::min(line, p[kMaxRate]) : line;
  return {.max = max,
          .min = std::min(p[kMinRate] * scale, max),
          .ai = p[kAi] * scale,
          .hai = p[kHai] * scale,
          .active_from = std::floor(p[kThreshold]) + 1,
          .hyper_above = p[kThreshold],
          .reduces_target = true};
}

// Processing of one call.
class ReactionPoint {
 public:
  ReactionPoint(State& state, const roci_cc_flow& flow, const double* parameters, uint64_t now,
                roci_cc_decision& decision)
      : s_(state),
        p_(parameters),
        now_(now),
        out_(decision),
        scale_(scale_of(flow, parameters)),
        rules_(rules_of(flow, parameters)),
        rates_(state, rules_) {}

  void start(uint64_t seed) {
    s_.current_rate = s_.target_rate = rules_.max;
    s_.random = seed;
  }

  void count(uint64_t bytes) {
    report(rates_.count(bytes, s_.bytes_left, [this] { return byte_cycle(); }));
    if (rates_.is_limiting()) s_.bytes_left -= std::min(bytes, s_.bytes_left - 1);
  }

  void pass_time() {
    report(rates_.pass_time(now_, [this] { return time_cycle(); }));
  }

  void take_cnm(const roci_cc_cnm& cnm) {
    if (p_[kObeyRates] != 0 && cnm.available != 0) {
      set_rate(static_cast<double>(cnm.available));
    } else if (p_[kObeyRates] != 0 && cnm.rate_change != 0) {
      set_rate(s_.current_rate + static_cast<double>(cnm.rate_change));
    } else if (cnm.feedback > kMaxFeedback) {
      out_.reason = kImplausible;
    } else if (cnm.feedback != 0) {
      slow_down(cnm.feedback);
    }
  }

  // `noticed`: ON_SENT was received. The value is not changed before: after a CNM ON_SENT may come early, which does no
  // harm.
  void publish(bool noticed) {
    out_.rate = std::max<uint64_t>(static_cast<uint64_t>(s_.current_rate), 1);
    out_.timer_ns[0] = s_.increase_due;
    if (!rates_.is_limiting()) {
      out_.sent_notice = 0;
    } else if (noticed || out_.sent_notice == 0) {
      out_.sent_notice = s_.bytes_left;
    }
    out_.state = static_cast<uint16_t>(rates_.phase());
  }

 private:
  void slow_down(uint32_t feedback) {
    const double taken = feedback / std::ldexp(1.0, static_cast<int>(p_[kGd]));
    // Several CNMs in a row keep the target from before the first one.
    rates_.cut(std::max(1 - taken, p_[kMinDecFac] / 100), s_.byte_stage != 0 || s_.time_stage != 0);
    start_over();
    out_.reason = kCut;
  }

  void set_rate(double rate) {
    if (!rates_.is_limiting() && rate >= rules_.max) return;
    s_.current_rate = s_.target_rate = std::clamp(rate, rules_.min, rules_.max);
    start_over();
    out_.reason = kNotified;
    if (s_.current_rate >= rules_.max) s_.increase_due = 0;
  }

  void start_over() {
    s_.byte_stage = s_.time_stage = 0;
    s_.bytes_left = byte_cycle();
    s_.increase_due = now_ + time_cycle();
  }

  void report(std::optional<rp::Phase> increase) {
    if (!increase) return;
    out_.reason = kReasonOf[static_cast<size_t>(*increase)];
    if (out_.reason == kReleased) s_.bytes_left = 0;
  }

  uint64_t varied(double mean) {
    const double part = static_cast<double>(roci_cc_random(&s_.random) >> 11) * 0x1p-52 - 1;  // [-1, 1)
    return std::max<uint64_t>(static_cast<uint64_t>(mean * (1 + p_[kJitter] * part)), 1);
  }
  uint64_t time_cycle() { return varied(p_[kTimeReset] / (s_.time_stage < p_[kThreshold] ? 1 : 2)); }
  uint64_t byte_cycle() { return varied(p_[kByteReset] * scale_ / (s_.byte_stage < p_[kThreshold] ? 1 : 2)); }

  State& s_;
  const double* p_;
  uint64_t now_;
  roci_cc_decision& out_;
  const double scale_;  // of rates and bytes
  const rp::Rules rules_;
  rp::RateControl<State> rates_;
};

const char* check(const roci_cc_flow* /*flow*/, const double* parameters) {
  if (parameters[kMaxRate] > 0 && parameters[kMinRate] > parameters[kMaxRate])
    return "rpg_min_rate must not exceed rpg_max_rate";
  return nullptr;
}

void start(State& s, const roci_cc_flow& flow, uint64_t now, const double* p, roci_cc_decision& decision) {
  ReactionPoint point(s, flow, p, now, decision);
  point.start(flow.seed);
  point.publish(false);
}

void event(State& s, const roci_cc_flow& flow, const roci_cc_event& event, const double* p,
           roci_cc_decision& decision) {
  ReactionPoint point(s, flow, p, event.now_ns, decision);
  point.count(event.sent_bytes);
  point.pass_time();
  if ((event.kinds & ROCI_CC_ON_CNM) != 0) point.take_cnm(event.cnm);
  point.publish((event.kinds & ROCI_CC_ON_SENT) != 0);
}

}  // namespace

extern "C" constinit const roci_cc_plugin roci_cc_qcn = roci::cc::plugin<State, start, event>({
    .name = "qcn",
    .summary = "rate that congestion notification messages (CNM) cut or specify",
    .source = "IEEE 802.1Q 30.3 and 32.12 (802.1Qau); draft-yu-tsvwg-l3qcn-00 section 6",
    .capabilities = ROCI_CC_NEEDS_CNM | ROCI_CC_USES_RATE,
    .tables = {kParameters, kStates, kReasons},
    .check = check,
});

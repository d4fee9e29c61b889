// LDCP for NICs with programmable congestion control (PCC): window in packets, divided by the round trip into a rate.
// Requires CNPs and round-trip probes. Probes are an extension, so towards a standard peer the profile's fallback runs.
//
//                 a probe is answered: cw += alpha            next probe at once
//   line rate  <------------------------------------  rate = cw / rtt
//              ------------------------------------>
//                 a CNP: cw -= beta
//
// Source: draft-dai-tsvwg-pfc-free-congestion-control-01 section 3.2. Such NICs do not acknowledge single packets, nor
// READ responses. An answered probe therefore marks the round trip in which the window may grow. An unanswered probe is
// repeated after `probe_timeout`, twice that, and so on.
//
// Additions to the draft, and differences from it:
//   * alpha and beta have no values in the draft: 1/8 and 1/2, as for LDCP with acknowledgments.
//   * Round trip that divides the window (`measured_rtt`): the measured one, so that a queue reduces the rate before
//     any CNP arrives. With the base round trip and a CNP interval of 50 us, queues of megabytes were observed. A
//     measurement below the base counts as the base: a probe is shorter than the packets of the window. An unanswered
//     probe counts as a round trip of its waiting time; otherwise a queue longer than the time-out could never be
//     measured.
//   * "On every CNP" is not every mark, since the peer spaces CNPs by `cnp_interval`. A CNP counts for all packets that
//     the flow sends in this interval: cw -= beta * max(1, cw * cnp_interval / rtt), at most half of cw. With 0
//     (draft), beta.
//   * A flow starts at the line rate, cw = line rate * base_rtt; without a base_rtt cw is set by the first answer. beta
//     is small relative to this window, and the first queue takes tens of round trips to drain. `line_factor` is
//     therefore the factor of cw for a CNP at the line rate. 1 is the draft; that queue then lasts two to four times as
//     long.
//   * `window` 1 also limits the bytes in flight to cw, on flows with acknowledgments.
//   * cw is limited to the line rate, and is at least gamma (the draft's minimum window, section 2.2).
//   * A loss multiplies cw by loss_factor, once per round trip; a time-out leaves one packet. (Draft: go-back-N only.)
//   * A flow that has sent nothing since the last probe sends no further probe until it sends data.
//   * An unexpected answer, or one with a time of 0, is ignored.
//
// Order within one event: sent bytes, answer, losses, time-out, CNPs, expiry of the probe.
// State: 48 bytes: cw; round trip that divides it, 0 before the first; expiry of the probe; end of the interval in
// which losses count once; bytes sent since the last probe; number of unanswered probes.
#include <algorithm>
#include <iterator>

#include "cc/plugin.hpp"

namespace {

enum Parameter {
  kAlpha,
  kBeta,
  kGamma,
  kMeasuredRtt,
  kCnpInterval,
  kLineFactor,
  kLossFactor,
  kProbeTimeout,
  kMinRate,
  kWindow,
  kParameterCount
};

constexpr roci_cc_parameter kParameters[] = {
    {"alpha", "packets", 0.125, 0, 1000, "growth per answered probe (draft-dai 3.2; project default)"},
    {"beta", "packets", 0.5, 0, 1000, "decrease per CNP (draft-dai 3.2; project default)"},
    {"gamma", "packets", 0.125, 0.001, 1000, "minimum window (draft-dai 2.2: 1/4, 1/8, 1/16)"},
    {"measured_rtt", "1", 1, 0, 1, "divisor of the window: 1: measured round-trip time; 0: base_rtt"},
    {"cnp_interval", "ns", 0, 0, 1e9,
     "interval between CNPs of the peer: a CNP counts for the packets sent in it; 0: for one beta"},
    {"line_factor", "1", 0.5, 0, 1,
     "fraction of the window that remains after a CNP at line rate; 1: beta is subtracted (draft-dai 3.2)"},
    {"loss_factor", "1", 0.5, 0, 1,
     "fraction of the window that remains after a loss, once per round trip; 1: losses are ignored"},
    {"probe_timeout", "ns", 300e3, 1000, 1e9,
     "time-out of a probe, after which it is repeated; doubled each time (DOCA PCC sample)"},
    {"min_rate", "bit/s", 1e6, 1, 1e13, "minimum rate"},
    {"window", "1", 0, 0, 1, "1: bytes in flight are limited to the window too"},
};
static_assert(std::size(kParameters) == kParameterCount);

enum StateLabel { kLineRate, kStable, kSubPacket, kUnanswered };
constexpr roci_cc_label kStates[] = {
    {"line_rate", "the window gives the line rate"},
    {"stable", "the rate is below the line rate"},
    {"sub_packet", "the window is below one packet"},
    {"unanswered", "probes are not answered; the window does not grow"},
};

enum Reason { kNothing, kAdded, kCut, kLineCut, kLossCut, kTimeoutCut, kProbeUnanswered, kImplausible };
constexpr roci_cc_label kReasons[] = {
    {"nothing", "no change"},
    {"added", "a probe was answered; the window grew"},
    {"cut", "CNPs reduced the window"},
    {"line_cut", "a CNP at line rate reduced the window by line_factor"},
    {"loss_cut", "packets were lost"},
    {"timeout_cut", "a time-out expired"},
    {"probe_unanswered", "a probe was not answered in time"},
    {"implausible", "an unexpected answer, or one with a round-trip time of 0, was ignored"},
};

constexpr uint32_t kMaxDoublings = 8;  // of the probe time-out
constexpr uint32_t kMaxCnps = 64;      // per event, if each is proportional to the remaining window
constexpr double kMinLeft = 0.5;       // of the window, after a CNP that counts for several packets

struct State {
  double window;      // packets: cw
  uint64_t rtt;       // ns; 0: unknown
  uint64_t give_up;   // ns: expiry of the probe; 0: no probe in flight
  uint64_t loss_end;  // ns: losses before it are already counted
  uint64_t sent;      // bytes since the last probe was requested
  uint32_t misses;    // consecutive unanswered probes
  uint32_t reserved;
};
static_assert(sizeof(State) <= 48);

// Processing of one call.
class Sender {
 public:
  Sender(State& state, const roci_cc_flow& flow, const double* parameters, uint64_t now,
         roci_cc_decision& decision)
      : s_(state), flow_(flow), p_(parameters), now_(now), out_(decision) {
    line_ = static_cast<double>(std::max<uint64_t>(flow.line_rate, 1));
    packet_bits_ = 8.0 * std::max<uint32_t>(flow.packet_bytes, 1);
  }

  void start() {
    s_.rtt = flow_.base_rtt_ns;
    s_.window = most_window();
    request_probe();
  }

  void count(uint64_t bytes) {
    s_.sent += bytes;
    if (s_.give_up == 0 && s_.sent != 0) request_probe();
  }

  void take_answer(uint32_t rtt_ns) {
    if (s_.give_up == 0 || rtt_ns == 0) {
      out_.reason = kImplausible;
      return;
    }
    const bool first = s_.rtt == 0;
    if (first || p_[kMeasuredRtt] != 0) s_.rtt = std::max<uint64_t>(rtt_ns, flow_.base_rtt_ns);
    if (!first && s_.window < most_window()) out_.reason = kAdded;
    s_.window = first ? most_window() : s_.window + p_[kAlpha];
    s_.misses = 0;
    request_probe_if_sending();
  }

  void take_loss(Reason why) {
    if (p_[kLossFactor] >= 1 || s_.rtt == 0) return;
    if (why == kTimeoutCut) {
      s_.window = std::min(s_.window, 1.0);
    } else if (now_ >= s_.loss_end) {
      s_.window *= p_[kLossFactor];
    } else {
      return;
    }
    s_.loss_end = now_ + s_.rtt;
    out_.reason = why;
  }

  void take_cnps(uint32_t count) {
    if (s_.rtt == 0 || count == 0) return;  // no window yet
    out_.reason = kCut;
    if (p_[kLineFactor] < 1 && s_.window >= most_window()) {
      s_.window *= p_[kLineFactor];
      out_.reason = kLineCut;
      --count;
    }
    if (p_[kCnpInterval] == 0) {
      s_.window -= p_[kBeta] * count;
      return;
    }
    const double intervals = p_[kCnpInterval] / static_cast<double>(s_.rtt);
    for (uint32_t i = 0; i < std::min(count, kMaxCnps); ++i) {
      const double taken = p_[kBeta] * std::max(1.0, s_.window * intervals);
      s_.window = std::max(s_.window - taken, s_.window * kMinLeft);
    }
  }

  void pass_time() {
    if (s_.give_up == 0 || s_.give_up > now_) return;
    if (s_.rtt != 0 && p_[kMeasuredRtt] != 0) s_.rtt = std::max(s_.rtt, response_timeout());
    s_.misses = std::min(s_.misses + 1, kMaxDoublings);
    out_.reason = kProbeUnanswered;
    request_probe_if_sending();
  }

  void publish() {
    if (s_.rtt != 0) s_.window = std::clamp(s_.window, std::min(p_[kGamma], most_window()), most_window());
    const double rate = s_.rtt == 0 ? line_ : s_.window * packet_bits_ / static_cast<double>(s_.rtt) * kNanos;
    const double bounded = std::clamp(rate, std::min(p_[kMinRate], line_), line_);
    out_.rate = std::max<uint64_t>(static_cast<uint64_t>(bounded), 1);
    if (p_[kWindow] != 0 && s_.rtt != 0 && (flow_.provides & ROCI_CC_NEEDS_ACK) != 0) {
      const double bytes = std::max(s_.window, 1.0) * packet_bits_ / 8;
      out_.window = static_cast<uint64_t>(std::min(bytes, 1e18));
    }
    out_.timer_ns[0] = s_.give_up;
    out_.sent_notice = s_.give_up == 0 ? 1 : 0;
    if (s_.misses != 0) {
      out_.state = kUnanswered;
    } else if (s_.rtt == 0 || s_.window >= most_window()) {
      out_.state = kLineRate;
    } else {
      out_.state = s_.window < 1 ? kSubPacket : kStable;
    }
  }

 private:
  static constexpr double kNanos = 1e9;  // per second

  // Window in packets at the line rate.
  [[nodiscard]] double most_window() const {
    return line_ * static_cast<double>(s_.rtt) / kNanos / packet_bits_;
  }

  // ns: time to wait for an answer.
  [[nodiscard]] uint64_t response_timeout() const {
    return static_cast<uint64_t>(p_[kProbeTimeout]) << s_.misses;
  }

  void request_probe() {
    out_.requests |= ROCI_CC_SEND_PROBE;
    s_.give_up = now_ + response_timeout();
    s_.sent = 0;
  }
  void request_probe_if_sending() {
    if (s_.sent != 0) {
      request_probe();
    } else {
      s_.give_up = 0;
    }
  }

  State& s_;
  const roci_cc_flow& flow_;
  const double* p_;
  uint64_t now_;
  roci_cc_decision& out_;
  double line_;         // bit/s
  double packet_bits_;  // of a full packet
};

const char* check(const roci_cc_flow* flow, const double* parameters) {
  if (parameters[kMeasuredRtt] == 0 && flow != nullptr && flow->base_rtt_ns == 0)
    return "measured_rtt: 0 requires base_rtt";
  return nullptr;
}

void start(State& s, const roci_cc_flow& flow, uint64_t now, const double* p, roci_cc_decision& decision) {
  Sender sender(s, flow, p, now, decision);
  sender.start();
  sender.publish();
}

void event(State& s, const roci_cc_flow& flow, const roci_cc_event& event, const double* p,
           roci_cc_decision& decision) {
  Sender sender(s, flow, p, event.now_ns, decision);
  const auto has = [&](uint32_t kinds) { return (event.kinds & kinds) == kinds; };
  sender.count(event.sent_bytes);
  if (has(ROCI_CC_ON_RTT | ROCI_CC_ON_PROBE)) sender.take_answer(event.rtt_ns);
  if (has(ROCI_CC_ON_LOSS)) sender.take_loss(kLossCut);
  if (has(ROCI_CC_ON_TIMEOUT)) sender.take_loss(kTimeoutCut);
  if (has(ROCI_CC_ON_CNP)) sender.take_cnps(event.cnps);
  sender.pass_time();
  sender.publish();
}

}  // namespace

extern "C" constinit const roci_cc_plugin roci_cc_ldcp_pcc = roci::cc::plugin<State, start, event>({
    .name = "ldcp_pcc",
    .summary = "LDCP from CNPs and round-trip probes: a paced window; requires extensions",
    .source = "draft-dai-tsvwg-pfc-free-congestion-control-01 section 3.2",
    .capabilities =
        ROCI_CC_NEEDS_CNP | ROCI_CC_NEEDS_PROBE | ROCI_CC_USES_RATE | ROCI_CC_USES_WINDOW | ROCI_CC_USES_ECN,
    .tables = {kParameters, kStates, kReasons},
    .check = check,
});

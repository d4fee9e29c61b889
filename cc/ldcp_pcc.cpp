// LDCP as on a NIC with programmable congestion control (PCC): a window in packets, divided by the round trip and paced.
// Requires CNPs and round-trip probes. Probes are an extension, so towards a standard peer the profile's fallback runs.
//
//                 a probe is answered: cw += alpha            ask again at once
//   line rate  <------------------------------------  rate = cw / rtt
//              ------------------------------------>
//                 a CNP: cw -= beta
//
// Source: draft-dai-tsvwg-pfc-free-congestion-control-01 section 3.2. Nobody acknowledges single packets there, and READ
// responses not at all, so an answered probe stands for the round trip in which the window may grow. A probe that is
// not answered is asked again after `probe_timeout`, twice that, and so on. Only CNPs and probes are needed of the peer.
//
// What the draft leaves open, and what is done here:
//   * alpha and beta have no values: 1/8 and 1/2, as for LDCP with acknowledgements.
//   * Which round trip divides the window (`measured_rtt`): the measured one. A queue slows the flow down by itself
//     then, before any CNP; by the base round trip queues of megabytes were seen where CNPs are 50 us apart. A measured
//     one below the base is taken for the base: a probe is shorter than the packets that the window is of. A probe that
//     is not answered says that the round trip is as long as it was waited for; else a queue that is longer than the
//     time-out could never be measured.
//   * "On every CNP" is not on every mark: the peer spaces CNPs. `cnp_interval` says by how much, and a CNP then stands
//     for all the packets that the flow sends in it: cw -= beta * max(1, cw * cnp_interval / rtt), never more than
//     half of cw. 0 is the draft: beta.
//   * A flow starts at the line's rate, cw = line rate * base_rtt; where that is not known, by the first answer. beta is
//     little against such a window, and the first queue takes tens of round trips to drain: `line_factor` is what a CNP
//     leaves of cw while the rate is the line's. 1 is the draft, and makes that queue two to four times as long.
//   * `window` 1 holds bytes in flight to cw as well, where packets are acknowledged.
//   * cw is at most what gives the line's rate, and at least gamma (the draft's least window, section 2.2).
//   * A loss leaves loss_factor of cw, once in a round trip; a time-out a packet. (The draft has go-back-N alone.)
//   * A flow that has sent nothing since it asked does not ask again before it sends: idle flows are silent.
//   * An answer that nobody waits for, or of no time at all, is left out.
//
// In one event: bytes that were sent, an answer, losses, CNPs, the time-out. State: 48 bytes: cw; the round trip that
// divides it, 0 before the first; when the probe is given up; until when losses are one; bytes sent since it was asked;
// how often it was not answered; whether one is under way.
#include <algorithm>
#include <iterator>

#include "roci/cc.h"

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

enum Reason { kNothing, kAdded, kCut, kLineCut, kLossCut, kTimeoutCut, kAskedAgain, kImplausible };
constexpr roci_cc_label kReasons[] = {
    {"nothing", "no change"},
    {"added", "a probe was answered; the window grew"},
    {"cut", "CNPs reduced the window"},
    {"line_cut", "a CNP at line rate reduced the window by line_factor"},
    {"loss_cut", "packets were lost"},
    {"timeout_cut", "a time-out expired"},
    {"asked_again", "a probe was not answered in time"},
    {"implausible", "an unexpected answer, or one with a round-trip time of 0, was ignored"},
};

constexpr uint32_t kMostDoublings = 8;  // of the time-out
constexpr uint32_t kMostCnps = 64;      // of one event, where each is in proportion to what is left
constexpr double kLeastLeft = 0.5;      // of the window, by a CNP that stands for many packets

struct State {
  double window;      // packets: cw
  uint64_t rtt;       // ns; 0: not known
  uint64_t give_up;   // ns: end of the wait for the answer; 0: none is waited for
  uint64_t loss_end;  // ns: losses before it are those that are counted already
  uint64_t sent;      // bytes since the probe was asked for
  uint32_t misses;    // probes in a row that were not answered
  uint32_t reserved;
};
static_assert(sizeof(State) <= 48);

// One call.
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
    ask();
  }

  void count(uint64_t bytes) {
    s_.sent += bytes;
    if (s_.give_up == 0 && s_.sent != 0) ask();
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
    ask_if_sending();
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
    if (s_.rtt == 0 || count == 0) return;  // there is no window yet
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
    for (uint32_t i = 0; i < std::min(count, kMostCnps); ++i) {
      const double taken = p_[kBeta] * std::max(1.0, s_.window * intervals);
      s_.window = std::max(s_.window - taken, s_.window * kLeastLeft);
    }
  }

  void pass_time() {
    if (s_.give_up == 0 || s_.give_up > now_) return;
    if (s_.rtt != 0 && p_[kMeasuredRtt] != 0) s_.rtt = std::max(s_.rtt, patience());
    s_.misses = std::min(s_.misses + 1, kMostDoublings);
    out_.reason = kAskedAgain;
    ask_if_sending();
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
  static constexpr double kNanos = 1e9;  // in a second

  // Packets that give the line's rate.
  [[nodiscard]] double most_window() const {
    return line_ * static_cast<double>(s_.rtt) / kNanos / packet_bits_;
  }

  // ns: how long an answer is waited for.
  [[nodiscard]] uint64_t patience() const { return static_cast<uint64_t>(p_[kProbeTimeout]) << s_.misses; }

  void ask() {
    out_.requests |= ROCI_CC_SEND_PROBE;
    s_.give_up = now_ + patience();
    s_.sent = 0;
  }
  void ask_if_sending() {
    if (s_.sent != 0) {
      ask();
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

void start(void* state, const roci_cc_flow* flow, uint64_t now, const double* parameters,
           roci_cc_decision* decision) {
  Sender sender(*static_cast<State*>(state), *flow, parameters, now, *decision);
  sender.start();
  sender.publish();
}

void event(void* state, const roci_cc_flow* flow, const roci_cc_event* event, const double* parameters,
           roci_cc_decision* decision) {
  Sender sender(*static_cast<State*>(state), *flow, parameters, event->now_ns, *decision);
  const auto has = [&](uint32_t kinds) { return (event->kinds & kinds) == kinds; };
  sender.count(event->sent_bytes);
  if (has(ROCI_CC_ON_RTT | ROCI_CC_ON_PROBE)) sender.take_answer(event->rtt_ns);
  if (has(ROCI_CC_ON_LOSS)) sender.take_loss(kLossCut);
  if (has(ROCI_CC_ON_TIMEOUT)) sender.take_loss(kTimeoutCut);
  if (has(ROCI_CC_ON_CNP)) sender.take_cnps(event->cnps);
  sender.pass_time();
  sender.publish();
}

}  // namespace

extern "C" const roci_cc_plugin roci_cc_ldcp_pcc = {
    .abi = ROCI_CC_ABI,
    .size = sizeof(roci_cc_plugin),
    .name = "ldcp_pcc",
    .summary =
        "LDCP from CNPs and round-trip probes: a window paced over the round trip; requires extensions",
    .source = "draft-dai-tsvwg-pfc-free-congestion-control-01 section 3.2",
    .capabilities =
        ROCI_CC_NEEDS_CNP | ROCI_CC_NEEDS_PROBE | ROCI_CC_USES_RATE | ROCI_CC_USES_WINDOW | ROCI_CC_USES_ECN,
    .state_bytes = sizeof(State),
    .receiver_state_bytes = 0,
    .parameters = kParameters,
    .parameter_count = kParameterCount,
    .state_count = std::size(kStates),
    .states = kStates,
    .reasons = kReasons,
    .reason_count = std::size(kReasons),
    .reserved = 0,
    .check = check,
    .start = start,
    .event = event,
    .receive = nullptr,
};

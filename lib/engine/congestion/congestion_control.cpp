#include "engine/congestion/congestion_control.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/log.hpp"
#include "base/time/line_clock.hpp"

namespace roci {
namespace {

uint32_t missing_of(const Profile& profile, uint32_t provides) {
  constexpr uint32_t kNeeds = (1U << 16) - 1;
  return profile.plugin->capabilities & kNeeds & ~provides;
}

// Bytes per packet on the line in addition to the payload, without extended headers.
uint32_t overhead_of(const QueuePairCore& core) {
  const RocePath& path = core.attributes.path;
  const uint32_t ip = path.destination_ip.is_v4() ? sizeof(Ipv4Header) : sizeof(Ipv6Header);
  return static_cast<uint32_t>(sizeof(EthernetHeader) + (path.vlan_id != 0 ? sizeof(VlanHeader) : 0) + ip +
                               sizeof(UdpHeader) + sizeof(Bth) + kIcrcBytes) +
         static_cast<uint32_t>(kEthernetLineOverhead.value());
}

// False for most queue pairs.
bool answers_reads(const QueuePairCore& core) {
  const SendFlow* flow = core.flow(Direction::kResponses);
  return flow != nullptr && flow->next > Lsn{};
}

}  // namespace

CongestionControl::CongestionControl(Context of)
    : config_(of.config),
      arena_(of.arena),
      cores_(std::move(of.cores)),
      congestion_flows_(of.congestion_flows),
      line_rate_(of.config.line_rate != 0    ? BitsPerSec{of.config.line_rate}
                 : of.link_rate.value() != 0 ? of.link_rate
                                             : kUnknownLine),
      burst_(of.config.burst.value_or(Nanos{0})),
      device_(std::move(of.device)),
      worker_(of.worker),
      ids_(of.ids),
      runner_(cores_.empty() ? of.config.trace : 0),
      users_(cores_.size()) {}

// The control cores have stopped.
CongestionControl::~CongestionControl() {
  for (ControlCore* core : cores_) {
    core->remove(worker_);
    for (ControlFlow* flow = core->ended_for(worker_).take(); flow != nullptr;)
      std::exchange(flow, flow->next_ended)->destroy();
  }
  while (unsent_ends_ != nullptr) {
    ControlFlow& flow = *std::exchange(unsent_ends_, unsent_ends_->next_ended);
    core_of(flow).remove(flow);
    flow.destroy();
  }
}

bool CongestionControl::attach(AttachedQueuePair& qp, const Profile* profile, Nanos now) {
  detach(qp);
  if (profile == nullptr || !is_connected(qp.core.config.type)) return true;
  void* memory = arena_.take(sizeof(ControlledQueuePair));
  if (memory == nullptr) return false;
  auto* controlled = new (memory) ControlledQueuePair;
  controlled->qp = &qp;
  controlled->profile = profile;
  controlled->since = now;
  controlled->requests.overhead = controlled->responses.overhead = overhead_of(qp.core);
  controlled->requests.early = controlled->responses.early = burst_;
  qp.core.gates = controlled;
  ++users_;
  if (!begin_receiving(*controlled)) {
    detach(qp);
    return false;
  }
  qp.core.change_path();  // ECN may change the headers
  decide(*controlled, now);
  return true;
}

void CongestionControl::detach(AttachedQueuePair& qp) {
  ControlledQueuePair* controlled = of(qp.core);
  if (controlled == nullptr) return;
  for (uint32_t direction = 0; direction < 2; ++direction) stop(*controlled, direction);
  for (ControlledQueuePair** at = &touched_; *at != nullptr; at = &(*at)->next_touched) {
    if (*at != controlled) continue;
    *at = controlled->next_touched;
    break;
  }
  end_receiving(controlled->receiving);
  qp.core.gates = nullptr;
  --users_;
  controlled->~ControlledQueuePair();
  SparseArena::give_back(controlled, sizeof(ControlledQueuePair));
}

Status CongestionControl::change(AttachedQueuePair& qp, const Profile* profile, Nanos now) {
  ControlledQueuePair* controlled = of(qp.core);
  if (controlled == nullptr && profile == nullptr) return {};
  if (controlled == nullptr) return fail("connected without congestion control; reconnect to enable it");
  for (const Profile* runs = profile; runs != nullptr; runs = runs->fallback) {
    const uint32_t provides = provided(qp.core, ROCI_CC_REQUESTS, *runs);
    const uint32_t missing = missing_of(*runs, provides);
    const char* const wrong = missing != 0 ? nullptr : check(*controlled, ROCI_CC_REQUESTS, *runs, provides);
    if (missing == 0 && wrong == nullptr) break;
    if (runs->falls_back) continue;
    if (wrong != nullptr) return fail(runs->name + ": " + wrong);
    return fail(runs->name + " requires " + needs_text(missing) + ", which the peer does not provide");
  }
  const Profile* const before = std::exchange(controlled->profile, profile);
  ReceivingEnd* const received = std::exchange(controlled->receiving, nullptr);
  if (!begin_receiving(*controlled)) {
    controlled->profile = before;
    controlled->receiving = received;
    return fail("no memory for congestion control", ENOMEM);
  }
  end_receiving(received);
  if (received != nullptr && qp.core.session != nullptr) qp.core.session->end_receiver_grants();
  controlled->since = now;
  decide(*controlled, now);
  return {};
}

// ------------------------------------------------------------------------------------------------- capabilities

uint32_t CongestionControl::provided(const QueuePairCore& core, uint32_t direction,
                                     const Profile& profile) const {
  const ExtensionSession* session = core.session.get();
  const bool reliable = is_reliable(core.config.type);
  const bool requests = direction == ROCI_CC_REQUESTS;
  const auto both = [&](Capability what) { return session != nullptr && session->takes(what); };
  const auto reports_type = [&](ExtensionType what) {
    return session != nullptr && session->terms.may_send && (session->terms.on_feedback & bit_of(what)) != 0;
  };
  const bool acknowledged = reliable && (requests || both(Capability::kReadAcks));
  const bool stamped = reports_type(ExtensionType::kTimestampEcho) && session != nullptr &&
                       (session->terms.on_data & bit_of(ExtensionType::kTimestamp)) != 0;
  uint32_t provides = 0;
  if (acknowledged) provides |= ROCI_CC_NEEDS_ACK;
  if (acknowledged && reports_type(ExtensionType::kCeEcho)) provides |= ROCI_CC_NEEDS_CE_COUNT;
  if (config_.peers_send_cnps) provides |= ROCI_CC_NEEDS_CNP;
  if (congestion_flows_.enabled()) provides |= ROCI_CC_NEEDS_CNM;
  if (reliable && (requests || stamped)) provides |= ROCI_CC_NEEDS_RTT;
  if (acknowledged && stamped) provides |= ROCI_CC_NEEDS_HOST_DELAY;
  if (reliable && both(Capability::kProbes)) provides |= ROCI_CC_NEEDS_PROBE;
  if (acknowledged && session != nullptr && session->terms.may_send && session->telemetry != nullptr)
    provides |= ROCI_CC_NEEDS_INT;
  if (profile.base_rtt > Nanos{0}) provides |= ROCI_CC_NEEDS_BASE_RTT;
  if (reliable && requests && both(Capability::kWindowMessages)) provides |= ROCI_CC_NEEDS_WINDOWS;
  return provides;
}

// Selects the profile of each direction, whenever more is known about the peer.
// A direction keeps its flow if its profile does not change.
void CongestionControl::decide(ControlledQueuePair& controlled, Nanos now) {
  QueuePairCore& core = controlled.qp->core;
  controlled.peer_version = controlled.qp->peer_version;
  controlled.session = core.session.get();
  controlled.could_send = core.session != nullptr && core.session->terms.may_send;
  controlled.answers = answers_reads(core);
  const bool unknown =
      core.extensions_undecided || (core.session != nullptr && !core.session->terms.may_send);
  // A worker that the application polls does not know the time before its first round.
  if (controlled.since == Nanos{0}) controlled.since = now;
  // A queue pair that has sent nothing yet has no session, regardless of the time since its connection.
  const bool undecided =
      controlled.qp->session_due || (unknown && now - controlled.since < kMaxDecisionTimeout);
  controlled.phase = ControlledQueuePair::Phase::kRunning;
  for (uint32_t direction = 0; direction < 2; ++direction) {
    if (direction == ROCI_CC_RESPONSES && !answers_reads(core)) break;
    uint32_t provides = 0;
    const Profile* profile = controlled.profile;
    for (; profile != nullptr; profile = profile->fallback) {
      provides = provided(core, direction, *profile);
      const uint32_t missing = missing_of(*profile, provides);
      const char* const wrong = missing != 0 ? nullptr : check(controlled, direction, *profile, provides);
      if (missing == 0 && wrong == nullptr) break;
      // Missing capabilities for READ responses do not refuse the queue pair.
      const bool must_not = !profile->falls_back && direction == ROCI_CC_REQUESTS;
      if (!undecided) {
        warn(controlled, direction, *profile,
             wrong != nullptr ? std::string(": ") + wrong : ", which requires " + needs_text(missing));
      }
      if (!must_not) continue;
      controlled.phase =
          undecided ? ControlledQueuePair::Phase::kUndecided : ControlledQueuePair::Phase::kRefused;
      return;
    }
    ControlFlow* const runs = controlled.directions[direction].flow;
    if (profile == nullptr) {
      stop(controlled, direction);
    } else if (runs == nullptr || &runs->profile != profile) {
      stop(controlled, direction);
      if (!start(controlled, direction, *profile, provides, now)) {
        const bool refused = direction == ROCI_CC_REQUESTS;
        log().warn("device {}: no memory for congestion control {}; {}", device_, profile->name,
                   refused ? "the queue pair is rejected" : "READ responses are sent without it");
        if (!refused) break;
        controlled.phase = ControlledQueuePair::Phase::kRefused;
        return;
      }
    }
  }
  const auto ecn = [](const ControlledDirection& d) {
    return d.flow != nullptr && (d.flow->profile.plugin->capabilities & ROCI_CC_USES_ECN) != 0;
  };
  const bool decides = ecn(controlled.directions[0]) || ecn(controlled.directions[1]);
  // Both directions and acknowledgments have the same headers; the requests' profile takes precedence.
  int dscp = -1;
  for (const ControlledDirection& direction : controlled.directions)
    if (direction.flow != nullptr && dscp < 0) dscp = direction.flow->profile.dscp;
  if (decides != controlled.decides_ecn || dscp != controlled.dscp) {
    controlled.decides_ecn = decides;
    controlled.dscp = dscp;
    core.change_path();
  }
}

// `why`: appended to "HOST: requests cannot run PROFILE".
void CongestionControl::warn(const ControlledQueuePair& controlled, uint32_t direction, const Profile& wanted,
                             const std::string& why) {
  const std::string peer = controlled.qp->core.attributes.path.destination_ip.to_string();
  std::string what =
      peer + (direction == ROCI_CC_REQUESTS ? ": requests" : ": READ responses") + " cannot run " +
      (wanted.name == wanted.plugin->name ? wanted.name : wanted.name + " (" + wanted.plugin->name + ")");
  constexpr size_t kMax = 1024;
  if (warned_.size() >= kMax || std::ranges::find(warned_, what) != warned_.end()) return;
  warned_.push_back(what);
  const bool refused = direction == ROCI_CC_REQUESTS && !wanted.falls_back;
  log().warn("device {}: congestion control towards {}{}; {}", device_, what, why,
             refused                      ? "such queue pairs are rejected, since the profile has no fallback"
             : wanted.fallback == nullptr ? "they run without congestion control"
                                          : wanted.fallback->name + " is used instead");
}

// The sentence of the plugin about its parameter values for this flow; null if they are valid.
const char* CongestionControl::check(const ControlledQueuePair& controlled, uint32_t direction,
                                     const Profile& profile, uint32_t provides) const {
  if (profile.plugin->check == nullptr) return nullptr;
  const roci_cc_flow info = flow_info(controlled, direction, profile, provides);
  return profile.plugin->check(&info, profile.values.data());
}

// Without a seed.
roci_cc_flow CongestionControl::flow_info(const ControlledQueuePair& controlled, uint32_t direction,
                                          const Profile& profile, uint32_t provides) const {
  const uint32_t payload = controlled.qp->core.attributes.path_mtu;
  return {.line_rate = line_rate_.value(),
          .base_rtt_ns = plain_nanos(profile.base_rtt),
          .packet_bytes = payload + controlled.requests.overhead,
          .payload_bytes = payload,
          .direction = direction,
          .provides = provides,
          .seed = 0};
}

uint64_t CongestionControl::next_seed() {
  if (!seed_) seed_ = uint64_t{ids_.next32()} << 32 | worker_;
  return roci_cc_random(&*seed_);
}

// False if there is no memory.
bool CongestionControl::start(ControlledQueuePair& controlled, uint32_t direction, const Profile& profile,
                              uint32_t provides, Nanos now) {
  ControlledDirection& here = controlled.directions[direction];
  roci_cc_flow info = flow_info(controlled, direction, profile, provides);
  info.seed = next_seed();
  const uint32_t id = next_flow_++ << 4 | worker_;  // at most 16 workers
  here.flow = ControlFlow::create(arena_, profile, info, id);
  if (here.flow == nullptr) return false;
  here.flow->owner = &controlled;
  here.flow->worker = worker_;
  // Events before the start do not count for this flow.
  roci_cc_event before{};
  gather(controlled, direction, now, before, here.reported);
  here.flow->acked = before.acked;
  here.flow->next = before.next;
  FlowRunner::begin(*here.flow, now);
  here.handed_over = false;
  if (cores_.empty()) {
    runner_.adopt(*here.flow);
  } else if (!hand_over(here)) {
    touch(controlled.qp->core);
  }
  apply(*here.flow, now);
  return true;
}

void CongestionControl::stop(ControlledQueuePair& controlled, uint32_t direction) {
  ControlledDirection& here = controlled.directions[direction];
  ControlFlow* const flow = std::exchange(here.flow, nullptr);
  if (flow == nullptr) return;
  SendGate& gate = controlled.gate(direction);
  gate.window = SendGate::kNoLimit;
  gate.set_pace(SendGate::kNoLimit, Nanos{0});
  gate.not_ect_below = Lsn{};
  gate.telemetry_next = gate.telemetry_only_requested = false;
  flow->owner = nullptr;
  if (cores_.empty()) {
    runner_.stop(*flow);
    flow->destroy();
  } else if (!here.handed_over) {
    flow->destroy();
  } else {
    end(flow);
  }
}

// --------------------------------------------------------------------------------------------------- dedicated cores

bool CongestionControl::hand_over(ControlledDirection& direction) {
  if (!direction.handed_over) {
    const roci_cc_event none{};
    direction.handed_over =
        core_of(*direction.flow).events_of(worker_).push(*direction.flow, EventRing::Kind::kStart, none);
  }
  return direction.handed_over;
}

void CongestionControl::end(ControlFlow* flow) {
  const roci_cc_event none{};
  if (core_of(*flow).events_of(worker_).push(*flow, EventRing::Kind::kEnd, none)) return;
  flow->next_ended = unsent_ends_;
  unsent_ends_ = flow;
}

void CongestionControl::free_ended() {
  ControlFlow* flow = std::exchange(unsent_ends_, nullptr);
  while (flow != nullptr) end(std::exchange(flow, flow->next_ended));
}

Nanos CongestionControl::next_deadline() const {
  Nanos next = runner_.next_deadline();
  if (cores_.empty()) return next;
  if (touched_ != nullptr || unsent_ends_ != nullptr) return Nanos{0};
  for (ControlCore* core : cores_) {
    if (!core->decided_for(worker_).empty() || !core->ended_for(worker_).empty()) return Nanos{0};
  }
  return next;
}

// ------------------------------------------------------------------------------------------------------------ events

void CongestionControl::send_events(Nanos now, uint32_t flows) {
  ControlledQueuePair* all = std::exchange(touched_, nullptr);
  while (all != nullptr) {
    ControlledQueuePair& controlled = *std::exchange(all, all->next_touched);
    controlled.touched = false;
    if (controlled.receiving != nullptr) send_receiving_events(controlled, now, flows);
    send_events(controlled, now);
  }
}

void CongestionControl::send_events(ControlledQueuePair& controlled, Nanos now) {
  for (uint32_t direction = 0; direction < 2; ++direction) {
    if (controlled.directions[direction].flow != nullptr) send_events(controlled, direction, now, 0);
  }
}

// `kinds`: in addition to the kinds that gather() finds. False if the ring of the control core is full: these kinds are
// then lost, and the others are part of the next event.
bool CongestionControl::send_events(ControlledQueuePair& controlled, uint32_t direction, Nanos now,
                                    uint32_t kinds) {
  ControlledDirection& here = controlled.directions[direction];
  roci_cc_event event{};
  Reported reported = here.reported;
  event.kinds = gather(controlled, direction, now, event, reported) | kinds;
  const SendGate& gate = controlled.gate(direction);
  const roci_cc_decision decision = decision_of(*here.flow);
  if (decision.sent_notice != 0 && gate.sent_bytes - reported.notice_from >= decision.sent_notice) {
    reported.notice_from = gate.sent_bytes;
    event.kinds |= ROCI_CC_ON_SENT;
  }
  if (event.kinds == 0) return true;
  ControlFlow& flow = *here.flow;
  if (!cores_.empty()) {
    if (!hand_over(here) || !core_of(flow).events_of(worker_).push(flow, EventRing::Kind::kEvent, event)) {
      touch(controlled.qp->core);  // the next event includes these changes
      return false;
    }
    // Retransmissions, and packets after an idle period, must not be sent under the old decision before the core has
    // decided.
    if ((event.kinds & (ROCI_CC_ON_LOSS | ROCI_CC_ON_TIMEOUT | ROCI_CC_ON_RESUME)) != 0)
      controlled.gate(direction).hold_until(now + kDecisionTime);
  }
  here.reported = reported;
  here.cnps += event.cnps;
  if ((event.kinds & ROCI_CC_ON_CNM) != 0) ++here.notices;
  if ((event.kinds & ROCI_CC_ON_TELEMETRY) != 0) ++here.telemetry;
  if (!cores_.empty()) return true;
  runner_.run(flow, event);
  apply(flow, now);
  return true;
}

// --------------------------------------------------------------------------------------------------------- decisions

void CongestionControl::apply(ControlFlow& flow, Nanos now) {
  auto& controlled = *static_cast<ControlledQueuePair*>(flow.owner);
  SendGate& gate = controlled.gate(flow.direction());
  const uint32_t uses = flow.profile.plugin->capabilities;
  const roci_cc_decision decision = decision_of(flow);
  if ((uses & ROCI_CC_USES_WINDOW) != 0) gate.window = decision.window;
  constexpr uint64_t kMaxGap = 10'000'000'000;
  gate.set_pace(
      (uses & ROCI_CC_USES_RATE) != 0 ? decision.rate : SendGate::kNoLimit,
      Nanos{(uses & ROCI_CC_USES_GAP) != 0 ? static_cast<int64_t>(std::min(decision.gap_ns, kMaxGap)) : 0});
  if ((uses & ROCI_CC_USES_ECN) != 0) gate.not_ect_below = Lsn{decision.not_ect_below};
  gate.telemetry_only_requested = (decision.requests & ROCI_CC_TELEMETRY_ONLY_ASKED) != 0;
  const auto take_request = [](const std::atomic<uint32_t>& wanted, uint32_t& made) {
    const uint32_t now_wanted = wanted.load(std::memory_order_relaxed);
    return std::exchange(made, now_wanted) != now_wanted;
  };
  if (take_request(flow.telemetry_requested, flow.telemetry_executed)) gate.telemetry_next = true;
  if (take_request(flow.probes_requested, flow.probes_executed)) controlled.qp->core.request_probe(now);
}

bool CongestionControl::prepare(ControlledQueuePair& controlled, Nanos now) {
  const QueuePairCore& core = controlled.qp->core;
  if (controlled.peer_version != controlled.qp->peer_version || controlled.session != core.session.get() ||
      controlled.could_send != (core.session != nullptr && core.session->terms.may_send) ||
      controlled.phase == ControlledQueuePair::Phase::kUndecided || controlled.answers != answers_reads(core))
      [[unlikely]]
    decide(controlled, now);
  switch (controlled.phase) {
    case ControlledQueuePair::Phase::kRunning:
      break;
    case ControlledQueuePair::Phase::kUndecided:
      controlled.requests.hold_until(now + kDecisionTimeout);
      return true;
    case ControlledQueuePair::Phase::kRefused:
      return false;
  }
  if (controlled.directions[ROCI_CC_REQUESTS].flow != nullptr && !core.send_queue.empty())
    resume(controlled, ROCI_CC_REQUESTS, now);
  if (controlled.directions[ROCI_CC_RESPONSES].flow != nullptr && core.has_pending_responses())
    resume(controlled, ROCI_CC_RESPONSES, now);
  return true;
}

// Reports the end of an idle period. The flow has data to send.
void CongestionControl::resume(ControlledQueuePair& controlled, uint32_t direction, Nanos now) {
  ControlledDirection& here = controlled.directions[direction];
  const SendGate& gate = controlled.gate(direction);
  if (gate.sent_packets == 0) return;
  const uint64_t idle = decision_of(*here.flow).idle_ns;
  if (idle == 0 || here.reported.resumed == gate.last_sent || plain_nanos(now - gate.last_sent) < idle)
    return;
  const SendFlow* flow =
      controlled.qp->core.flow(direction == ROCI_CC_REQUESTS ? Direction::kRequests : Direction::kResponses);
  if (flow != nullptr && flow->acknowledged < gate.sent_end) return;
  if (send_events(controlled, direction, now, ROCI_CC_ON_RESUME)) here.reported.resumed = gate.last_sent;
}

void CongestionControl::after_turn(ControlledQueuePair& controlled, Nanos now) {
  for (uint32_t direction = 0; direction < 2; ++direction) {
    ControlledDirection& here = controlled.directions[direction];
    if (here.flow == nullptr) continue;
    const uint64_t due = decision_of(*here.flow).sent_notice;
    if (due != 0 && controlled.gate(direction).sent_bytes - here.reported.notice_from >= due)
      send_events(controlled, direction, now, 0);
  }
}

}  // namespace roci

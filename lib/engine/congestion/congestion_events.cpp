// The part of congestion control that gathers events of a flow, and arrivals of the peer's flow.
#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "engine/congestion/congestion_control.hpp"

namespace roci {
namespace {

uint32_t nanos32(Nanos time) {
  return static_cast<uint32_t>(std::clamp<int64_t>(time.count(), 0, UINT32_MAX));
}

void put_hop(const IntHop& from, roci_cc_hop& to) {
  const IntHopValues hop = read_hop(from);
  to = {.node = hop.switch_id,
        .port = hop.port,
        .time_ns = hop.time,
        .sent_units = hop.tx_units,
        .rate = hop.rate().value(),
        .queue_bytes = hop.queue_bytes.value(),
        .reserved = 0};
}

// Echoed hops are ordered newest first.
void put_path(const EchoedHops& echoed, roci_cc_path& path) {
  path.hops = std::min<uint32_t>(echoed.path.count, ROCI_CC_MAX_HOPS);
  path.flags = 0;
  if ((echoed.flags & IntEchoHeader::kDelayed) != 0) path.flags |= ROCI_CC_PATH_DELAYED;
  if ((echoed.flags & IntEchoHeader::kProbe) != 0) path.flags |= ROCI_CC_PATH_PROBE;
  if (echoed.path.incomplete) path.flags |= ROCI_CC_PATH_INCOMPLETE;
  path.age_ns = plain_nanos(echoed.age);
  for (uint32_t i = 0; i < path.hops; ++i) put_hop(echoed.path.hops[path.hops - 1 - i], path.hop[i]);
}

void put_notice(const CongestionNotice& from, roci_cc_cnm& to) {
  to = {};
  for (const uint8_t byte : from.point.bridge.bytes) to.point = to.point << 8 | byte;
  to.point = to.point << 16 | from.point.queue.get();
  to.queue_offset = from.queue_offset;
  to.queue_delta = from.queue_delta;
  to.available = from.more.available_bandwidth.value_or(0) * kL3CnmRateUnit;
  to.rate_change = from.more.rate_change.value_or(0) * static_cast<int64_t>(kL3CnmRateUnit);
  to.feedback = from.feedback;
}

}  // namespace

// Fills in the changes since `reported` and updates `reported`. Returns the kinds of the event.
uint32_t CongestionControl::gather(ControlledQueuePair& controlled, uint32_t direction, Nanos now,
                                   roci_cc_event& event, Reported& reported) {
  const QueuePairCore& core = controlled.qp->core;
  const SendGate& gate = controlled.gate(direction);
  const auto which = direction == ROCI_CC_REQUESTS ? Direction::kRequests : Direction::kResponses;
  const SendFlow* flow = core.flow(which);
  uint32_t kinds = 0;
  event.now_ns = plain_nanos(now);
  event.next = gate.sent_end.value();
  event.sent_bytes = gate.sent_bytes - std::exchange(reported.sent_bytes, gate.sent_bytes);
  event.sent_packets =
      static_cast<uint32_t>(gate.sent_packets - std::exchange(reported.sent_packets, gate.sent_packets));
  event.losses = gate.losses - std::exchange(reported.losses, gate.losses);
  event.timeouts = gate.timeouts - std::exchange(reported.timeouts, gate.timeouts);
  if (event.losses > 0) kinds |= ROCI_CC_ON_LOSS;
  if (event.timeouts > 0) kinds |= ROCI_CC_ON_TIMEOUT;
  const uint32_t cnps = controlled.cnps - std::exchange(reported.cnps, controlled.cnps);
  if (cnps > 0 && gate.sent_packets > 0 && now - gate.last_sent <= kCnpMemory) {
    event.cnps = cnps;
    kinds |= ROCI_CC_ON_CNP;
  }
  if (flow != nullptr) {
    const Lsn acked = std::min(flow->acknowledged, gate.sent_end);
    event.acked = acked.value();
    const uint64_t bytes = acked > reported.acked ? acked - reported.acked : 0;
    reported.acked = std::max(reported.acked, acked);
    // With CE-ECHO: packets that arrived; otherwise acknowledged packets. Limited to the number of packets sent.
    const uint64_t counted =
        flow->packets_acked - std::exchange(reported.counted_packets, flow->packets_acked);
    const uint64_t marked =
        flow->packets_marked - std::exchange(reported.marked_packets, flow->packets_marked);
    const uint64_t mtu = core.attributes.path_mtu;
    const uint64_t by_bytes = (bytes + mtu - 1) / mtu;
    const uint64_t packets = std::min(
        std::max({counted, marked, direction == ROCI_CC_RESPONSES ? by_bytes : 0}), gate.sent_packets);
    event.acked_packets = static_cast<uint32_t>(std::min<uint64_t>(packets, UINT32_MAX));
    event.marked_packets = static_cast<uint32_t>(std::min<uint64_t>(marked, event.acked_packets));
    event.acked_bytes = bytes + packets * gate.overhead;
    if (marked > 0 && core.session != nullptr && core.session->terms.ignore_cnps &&
        (reported.cnp_from_echo == kNever ||
         now - reported.cnp_from_echo >= config_.notification_point.interval)) {
      reported.cnp_from_echo = now;
      event.cnps = 1;
      kinds |= ROCI_CC_ON_CNP;
    }
    if (packets > 0 || bytes > 0) kinds |= ROCI_CC_ON_ACK;
    const uint64_t behind = gate.sent_end > acked ? gate.sent_end - acked : 0;
    const uint64_t packets_behind =
        direction == ROCI_CC_REQUESTS ? gate.new_packets - gate.acked_packets : (behind + mtu - 1) / mtu;
    event.in_flight = behind + packets_behind * gate.overhead;
    if (flow->rtt_samples != std::exchange(reported.rtt_samples, flow->rtt_samples)) {
      kinds |= ROCI_CC_ON_RTT;
      event.rtt_ns = nanos32(flow->rtt);
      event.peer_delay_ns = flow->rtt_hold;
    }
    event.least_rtt_ns = flow->least_rtt == kNever ? 0 : nanos32(flow->least_rtt);
    event.flows_at_receiver = flow->flows_at_receiver;
    if (flow->receiver_windows != std::exchange(reported.receiver_windows, flow->receiver_windows)) {
      kinds |= ROCI_CC_ON_WINDOW;
      event.receiver_window = flow->receiver_window;
    }
  }
  if (controlled.probes != std::exchange(reported.probes, controlled.probes)) {
    kinds |= ROCI_CC_ON_RTT | ROCI_CC_ON_PROBE;
    event.rtt_ns = nanos32(controlled.probe_rtt);
    event.peer_delay_ns = nanos32(controlled.probe_hold);
  }
  if (const TelemetrySession* telemetry = core.session != nullptr ? core.session->telemetry.get() : nullptr;
      telemetry != nullptr) {
    const EchoedHops& echoed = telemetry->echoed(hops_of(which));
    event.hops = echoed.path.count;
    if (echoed.echoes != std::exchange(reported.echoes, echoed.echoes)) {
      kinds |= ROCI_CC_ON_TELEMETRY;
      put_path(echoed, path_);
      event.path = &path_;
    }
    // A switch report covers one packet. An echo in the same event contains the same information and more.
    const SwitchReport& report = telemetry->report();
    if (report.reports != std::exchange(reported.reports, report.reports) && report.of == hops_of(which) &&
        event.path == nullptr) {
      kinds |= ROCI_CC_ON_TELEMETRY;
      path_.hops = 1;
      path_.flags = ROCI_CC_PATH_FROM_SWITCH;
      path_.age_ns = 0;
      put_hop(write_hop(report.hop), path_.hop[0]);
      event.path = &path_;
    }
  }
  if (const uint16_t number = controlled.qp->congestion_flow; number != 0) {
    const CongestionRecord& record = direction == ROCI_CC_REQUESTS ? congestion_flows_.requests(number)
                                                                   : congestion_flows_.responses(number);
    if (record.notices != std::exchange(reported.notices, record.notices) && record.latest) {
      kinds |= ROCI_CC_ON_CNM;
      put_notice(*record.latest, event.cnm);
    }
  }
  return kinds;
}

// ------------------------------------------------------------------------------------------------- receiver part

// Also returns true if the algorithm has no receiver part.
bool CongestionControl::begin_receiving(ControlledQueuePair& controlled) {
  const QueuePairCore& core = controlled.qp->core;
  if (controlled.profile == nullptr || controlled.profile->plugin->receive == nullptr ||
      core.config.type != IBV_QPT_RC)
    return true;
  const Profile& profile = *controlled.profile;
  void* memory = arena_.take(sizeof(ReceivingEnd) + profile.plugin->receiver_state_bytes);
  if (memory == nullptr) return false;
  controlled.receiving = new (memory)
      ReceivingEnd{.profile = &profile, .info = flow_info(controlled, ROCI_CC_REQUESTS, profile, 0)};
  controlled.receiving->info.seed = next_seed();
  std::memset(controlled.receiving->state(), 0, profile.plugin->receiver_state_bytes);
  if (const ReceiveFlow* flow = core.received_requests(); flow != nullptr) {  // earlier packets do not count
    controlled.receiving->packets = flow->packets;
    controlled.receiving->marked = flow->marked;
    controlled.receiving->received = flow->received;
  }
  return true;
}

void CongestionControl::end_receiving(ReceivingEnd* end) {
  if (end != nullptr)
    SparseArena::give_back(end, sizeof(ReceivingEnd) + end->profile->plugin->receiver_state_bytes);
}

void CongestionControl::send_receiving_events(ControlledQueuePair& controlled, Nanos now, uint32_t flows) {
  ReceivingEnd& end = *controlled.receiving;
  QueuePairCore& core = controlled.qp->core;
  const ReceiveFlow* flow = core.received_requests();
  if (flow == nullptr || flow->packets == end.packets) return;
  roci_cc_arrival arrival{};
  arrival.now_ns = plain_nanos(now);
  arrival.received = flow->received.value();
  arrival.packets = flow->packets - std::exchange(end.packets, flow->packets);
  arrival.marked = flow->marked - std::exchange(end.marked, flow->marked);
  arrival.bytes = flow->received - std::exchange(end.received, flow->received);
  arrival.flows = flows;
  const TelemetrySession* telemetry = core.session != nullptr ? core.session->telemetry.get() : nullptr;
  if (telemetry != nullptr &&
      telemetry->noted_requests() != std::exchange(end.packets_with_telemetry, telemetry->noted_requests())) {
    EchoedHops newest;
    newest.path = telemetry->newest_of_requests();
    put_path(newest, path_);
    if (newest.path.incomplete) path_.flags |= ROCI_CC_PATH_INCOMPLETE;
    arrival.path = &path_;
  }
  roci_cc_grant grant{};
  end.profile->plugin->receive(end.state(), &end.info, &arrival, end.profile->values.data(), &grant);
  if (grant.send == 0 || core.session == nullptr) return;
  core.session->set_receiver_grant(static_cast<uint32_t>(std::min<uint64_t>(grant.window, UINT32_MAX)));
}

}  // namespace roci

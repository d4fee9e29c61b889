// The part of congestion control that reports its state.
#include "roci/congestion_report.hpp"

#include "congestion/labels.hpp"
#include "engine/congestion/congestion_control.hpp"

namespace roci {
namespace {

double limit_of(uint64_t value, bool used) {
  return !used || value == ROCI_CC_NO_LIMIT ? -1 : static_cast<double>(value);
}

std::vector<std::pair<std::string, uint64_t>> named(const roci_cc_label* labels,
                                                    std::span<std::atomic<uint64_t>> numbers, size_t from) {
  std::vector<std::pair<std::string, uint64_t>> all;
  for (size_t i = from; i < numbers.size(); ++i)
    all.emplace_back(labels[i].name, numbers[i].load(std::memory_order_relaxed));
  return all;
}

void add_flow(ControlFlow& flow, CongestionFlowReport& report) {
  const roci_cc_plugin& plugin = *flow.profile.plugin;
  const roci_cc_decision& decision = flow.newest();
  report.profile = flow.profile.name;
  report.algorithm = plugin.name;
  report.state = plugin.states[decision.state].name;
  report.last_reason = plugin.reasons[flow.last_reason.load(std::memory_order_relaxed)].name;
  report.last_event = kinds_text(flow.last_kinds.load(std::memory_order_relaxed));
  report.rate = limit_of(decision.rate, (plugin.capabilities & ROCI_CC_USES_RATE) != 0);
  report.window = limit_of(decision.window, (plugin.capabilities & ROCI_CC_USES_WINDOW) != 0);
  report.gap = (plugin.capabilities & ROCI_CC_USES_GAP) != 0 ? decision.gap_ns : 0;
  report.events = flow.events.load(std::memory_order_relaxed);
  report.state_bytes = static_cast<uint32_t>(ControlFlow::bytes_of(flow.profile));
  report.states = named(plugin.states, flow.state_nanos(), 0);
  report.reasons = named(plugin.reasons, flow.reason_counts(), 1);
}

}  // namespace

uint32_t CongestionControl::directions(const QueuePairCore& core) {
  ControlledQueuePair* const controlled = of(core);
  if (controlled == nullptr) return 0;
  uint32_t there = 0;
  for (const uint32_t direction : {ROCI_CC_REQUESTS, ROCI_CC_RESPONSES}) {
    if (controlled->directions[direction].flow != nullptr || controlled->gate(direction).sent_packets > 0)
      there |= 1U << direction;
  }
  return there;
}

void CongestionControl::report(AttachedQueuePair& qp, std::vector<CongestionFlowReport>& out) {
  ControlledQueuePair* controlled = of(qp.core);
  const uint32_t there = directions(qp.core);
  for (const uint32_t direction : {ROCI_CC_REQUESTS, ROCI_CC_RESPONSES}) {
    if ((there >> direction & 1U) == 0) continue;
    const ControlledDirection& here = controlled->directions[direction];
    const SendGate& gate = controlled->gate(direction);
    CongestionFlowReport report;
    report.qp_num = qp.core.number().value();
    report.responses = direction == ROCI_CC_RESPONSES;
    report.profile = "none";
    if (here.flow != nullptr) add_flow(*here.flow, report);
    report.sent_bytes = gate.sent_bytes;
    report.sent_packets = gate.sent_packets;
    if (const SendFlow* flow = qp.core.flow(report.responses ? Direction::kResponses : Direction::kRequests);
        flow != nullptr) {
      report.acked_packets = flow->packets_acked;
      report.marked_packets = flow->packets_marked;
      report.rtt = flow->rtt == kNever ? 0 : static_cast<uint64_t>(flow->rtt.count());
      report.least_rtt = flow->least_rtt == kNever ? 0 : static_cast<uint64_t>(flow->least_rtt.count());
      report.in_flight = gate.sent_end > flow->acknowledged ? gate.sent_end - flow->acknowledged : 0;
    }
    report.cnps = here.cnps;
    report.cnms = here.notices;
    report.telemetry = here.telemetry;
    report.losses = gate.losses;
    report.timeouts = gate.timeouts;
    out.push_back(std::move(report));
  }
}

}  // namespace roci

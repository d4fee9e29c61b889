#include "congestion/flow_runner.hpp"

#include <algorithm>

namespace roci {
namespace {

void count(std::atomic<uint64_t>& number, uint64_t by) {
  number.store(number.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

void count_requests(ControlFlow& flow) {
  const auto one = [](std::atomic<uint32_t>& number) {
    number.store(number.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  };
  if ((flow.decision.requests & ROCI_CC_SEND_PROBE) != 0) one(flow.probes_requested);
  if ((flow.decision.requests & ROCI_CC_TELEMETRY_NEXT) != 0) one(flow.telemetry_requested);
}

}  // namespace

void sanitize(const roci_cc_plugin& plugin, uint64_t now, roci_cc_decision& decision) {
  for (uint64_t& timer : decision.timer_ns) {
    if (timer != 0 && timer <= now) timer = now + 1;
  }
  if (decision.state >= plugin.state_count) decision.state = 0;
  if (decision.reason >= plugin.reason_count) decision.reason = 0;
}

void call_plugin(const roci_cc_plugin& plugin, void* state, const roci_cc_flow& flow,
                 const roci_cc_event& event, const double* values, roci_cc_decision& decision) {
  for (unsigned timer = 0; timer < 2; ++timer) {
    if ((event.kinds & (ROCI_CC_ON_TIMER0 << timer)) != 0) decision.timer_ns[timer] = 0;
  }
  decision.requests &= ROCI_CC_TELEMETRY_ONLY_ASKED;
  decision.reason = 0;
  plugin.event(state, &flow, &event, values, &decision);
  sanitize(plugin, event.now_ns, decision);
}

void FlowRunner::begin(ControlFlow& flow, Nanos now) {
  const roci_cc_plugin& plugin = *flow.profile.plugin;
  flow.in_state_since = flow.last_event = now;
  plugin.start(flow.state(), &flow.info, plain_nanos(now), flow.profile.values.data(), &flow.decision);
  sanitize(plugin, plain_nanos(now), flow.decision);
  flow.published.publish(flow.decision);
  count_requests(flow);
}

void FlowRunner::adopt(ControlFlow& flow) {
  trace_.add_start(flow, flow.in_state_since);
  set_timer(flow);
}

void FlowRunner::run(ControlFlow& flow, const roci_cc_event& event) {
  const roci_cc_plugin& plugin = *flow.profile.plugin;
  const Nanos now{static_cast<int64_t>(event.now_ns)};
  const uint16_t state = flow.decision.state;
  call_plugin(plugin, flow.state(), flow.info, event, flow.profile.values.data(), flow.decision);
  ++events_;
  count(flow.events, 1);
  flow.last_kinds.store(event.kinds, std::memory_order_relaxed);
  if (const uint16_t reason = flow.decision.reason; reason != 0) {
    flow.last_reason.store(reason, std::memory_order_relaxed);
    count(flow.reason_counts()[reason], 1);
  }
  count(flow.state_nanos()[state], plain_nanos(now - flow.in_state_since));
  flow.in_state_since = flow.last_event = now;
  flow.acked = event.acked;
  flow.next = event.next;
  flow.in_flight = event.in_flight;
  flow.least_rtt_ns = event.least_rtt_ns;
  flow.hops = event.hops;
  flow.flows_at_receiver = event.flows_at_receiver;
  trace_.add(flow, event);
  flow.published.publish(flow.decision);
  count_requests(flow);
  set_timer(flow);
}

void FlowRunner::run_timers(ControlFlow& flow, Nanos now) {
  roci_cc_event event{};
  event.now_ns = plain_nanos(now);
  for (unsigned timer = 0; timer < 2; ++timer) {
    const uint64_t due = flow.decision.timer_ns[timer];
    if (due != 0 && due <= event.now_ns) event.kinds |= ROCI_CC_ON_TIMER0 << timer;
  }
  event.acked = flow.acked;
  event.next = flow.next;
  event.in_flight = flow.in_flight;
  event.least_rtt_ns = flow.least_rtt_ns;
  event.hops = flow.hops;
  event.flows_at_receiver = flow.flows_at_receiver;
  run(flow, event);
}

void FlowRunner::set_timer(ControlFlow& flow) {
  uint64_t due = UINT64_MAX;
  for (const uint64_t timer : flow.decision.timer_ns) {
    if (timer != 0) due = std::min(due, timer);
  }
  if (due >= plain_nanos(kNever)) {
    timers_.cancel(flow);
  } else if (!flow.is_scheduled() || plain_nanos(flow.deadline()) != due) {
    timers_.schedule(flow, Nanos{static_cast<int64_t>(due)});
  }
}

void FlowRunner::stop(ControlFlow& flow) { timers_.cancel(flow); }

}  // namespace roci

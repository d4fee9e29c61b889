// Replay of traces: the same events must give the same decisions, bit for bit.
#include <array>
#include <cstring>
#include <map>

#include "congestion/flow_runner.hpp"
#include "congestion/labels.hpp"
#include "congestion/trace.hpp"
#include "congestion/trace_fields.hpp"

namespace roci {
namespace {

struct Live {
  const Profile* profile;
  roci_cc_flow info;
  roci_cc_decision decision;
  std::array<uint64_t, ROCI_CC_MAX_STATE / sizeof(uint64_t)> state;
  uint64_t events;
};

Live begin(const TraceRecord& record) {
  Live live{record.profile, record.info, {}, {}, 0};
  live.decision.window = live.decision.rate = ROCI_CC_NO_LIMIT;
  const roci_cc_plugin& plugin = *record.profile->plugin;
  plugin.start(live.state.data(), &live.info, record.event.now_ns, record.profile->values.data(),
               &live.decision);
  sanitize(plugin, record.event.now_ns, live.decision);
  return live;
}

Live resume(const TraceRecord& record) {
  Live live{record.profile, record.info, record.decision, {}, 0};
  std::memcpy(live.state.data(), record.state(), record.profile->plugin->state_bytes);
  return live;
}

void go_on(Live& live, const TraceRecord& record) {
  roci_cc_event event = record.event;
  event.path = record.has_path ? &record.path : nullptr;
  call_plugin(*live.profile->plugin, live.state.data(), live.info, event, live.profile->values.data(),
              live.decision);
  ++live.events;
}

std::string field_text(const TraceField& field, const roci_cc_plugin& plugin,
                       const roci_cc_decision& decision) {
  if (field.name == "state") return label_text(plugin.states, plugin.state_count, decision.state);
  if (field.name == "reason") return label_text(plugin.reasons, plugin.reason_count, decision.reason);
  const bool no_limit =
      (field.name == "window" || field.name == "rate") && field.get(&decision) == ROCI_CC_NO_LIMIT;
  return no_limit ? "no limit" : field.text(&decision);
}

// Empty if the decisions are equal.
std::string difference(const roci_cc_plugin& plugin, const roci_cc_decision& recorded,
                       const roci_cc_decision& now) {
  for (const TraceField& field : kDecisionFields) {
    if (field.get(&recorded) == field.get(&now)) continue;
    return std::string(field.name) + " is " + field_text(field, plugin, recorded) + " in the trace and " +
           field_text(field, plugin, now) + " now";
  }
  return "";
}

}  // namespace

ReplayOutcome replay(const std::vector<TraceRecord>& records) {
  using Kind = TraceRecord::Kind;
  ReplayOutcome outcome;
  std::map<uint32_t, Live> flows;
  for (const TraceRecord& record : records) {
    const roci_cc_plugin& plugin = *record.profile->plugin;
    auto at = flows.find(record.flow);
    std::string what;
    if (record.kind == Kind::kStart) {
      at = flows.insert_or_assign(record.flow, begin(record)).first;
      ++outcome.flows;
    } else if (record.kind == Kind::kState && at == flows.end()) {
      at = flows.emplace(record.flow, resume(record)).first;
      ++outcome.flows;
    } else if (record.kind == Kind::kState) {
      if (std::memcmp(at->second.state.data(), record.state(), plugin.state_bytes) != 0)
        what = "the state differs from the state in the trace";
    } else if (at == flows.end()) {
      ++outcome.without;
      continue;
    } else {
      go_on(at->second, record);
      ++outcome.events;
    }
    const Live& live = at->second;
    if (what.empty()) what = difference(plugin, record.decision, live.decision);
    if (what.empty()) continue;
    if (++outcome.different > 1) continue;
    outcome.first = "flow " + std::to_string(record.flow) + " (" + plugin.name + "), " +
                    (record.kind == Kind::kStart ? "start" : "event " + std::to_string(live.events)) + ": " +
                    what;
  }
  return outcome;
}

}  // namespace roci

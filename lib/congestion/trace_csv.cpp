// Traces as CSV.
#include <array>
#include <ostream>

#include "congestion/labels.hpp"
#include "congestion/trace.hpp"
#include "congestion/trace_fields.hpp"

namespace roci {
namespace {

// Names of bits, lowest first.
constexpr std::array<std::string_view, 4> kPathFlags{"delayed", "probe", "from_switch", "incomplete"};
constexpr std::array<std::string_view, 3> kRequests{"send_probe", "telemetry_next", "telemetry_only_asked"};

// Quoting according to RFC 4180.
std::string cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + '"';
}

std::string hops_text(const roci_cc_path& path) {
  std::string text;
  for (uint32_t i = 0; i < path.hops; ++i) {
    const roci_cc_hop& hop = path.hop[i];
    text += (i == 0 ? "" : " ") + std::to_string(hop.node) + ':' + std::to_string(hop.port) + ':' +
            std::to_string(hop.queue_bytes) + ':' + std::to_string(hop.sent_units) + ':' +
            std::to_string(hop.time_ns) + ':' + std::to_string(hop.rate);
  }
  return text;
}

std::string event_text(const TraceField& field, const roci_cc_event& event) {
  return field.name == "kinds" ? kinds_text(event.kinds) : field.text(&event);
}

std::string decision_text(const TraceField& field, const TraceRecord& record) {
  const roci_cc_decision& decision = record.decision;
  const roci_cc_plugin& plugin = *record.profile->plugin;
  if (field.name == "state") return label_text(plugin.states, plugin.state_count, decision.state);
  if (field.name == "reason") return label_text(plugin.reasons, plugin.reason_count, decision.reason);
  if (field.name == "requests") return bits_text(decision.requests, kRequests);
  const bool no_limit =
      (field.name == "window" || field.name == "rate") && field.get(&decision) == ROCI_CC_NO_LIMIT;
  return no_limit ? "" : field.text(&decision);
}

void write_heading(std::ostream& out) {
  out << "flow,profile,plugin,direction";
  for (const TraceField& field : kEventFields) out << ',' << field.name;
  for (const TraceField& field : kCnmFields) out << ",notice_" << field.name;
  for (const TraceField& field : kPathFields) out << ",path_" << field.name;
  out << ",path";
  for (const TraceField& field : kDecisionFields) out << ',' << field.name;
  out << '\n';
}

}  // namespace

void write_trace_csv(const std::vector<TraceRecord>& records, std::ostream& out) {
  write_heading(out);
  for (const TraceRecord& record : records) {
    if (record.kind == TraceRecord::Kind::kState) continue;
    out << record.flow << ',' << cell(record.profile->name) << ',' << record.profile->plugin->name << ','
        << (record.info.direction == ROCI_CC_RESPONSES ? "responses" : "requests");
    for (const TraceField& field : kEventFields) {
      const bool start = record.kind == TraceRecord::Kind::kStart && field.name == "kinds";
      out << ',' << (start ? "start" : event_text(field, record.event));
    }
    for (const TraceField& field : kCnmFields) out << ',' << field.text(&record.event.cnm);
    for (const TraceField& field : kPathFields) {
      out << ','
          << (field.name == "flags" ? bits_text(record.path.flags, kPathFlags) : field.text(&record.path));
    }
    out << ',' << hops_text(record.path);
    for (const TraceField& field : kDecisionFields) out << ',' << decision_text(field, record);
    out << '\n';
  }
}

}  // namespace roci

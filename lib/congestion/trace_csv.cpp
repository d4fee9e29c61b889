// Traces as tables.
#include <array>
#include <ostream>
#include <span>

#include "congestion/trace.hpp"
#include "congestion/trace_fields.hpp"

namespace roci {
namespace {

// The names of bits, from the lowest up.
constexpr std::array<std::string_view, 13> kKinds{"ack",    "loss",   "timeout",   "cnp",  "notice",
                                                  "rtt",    "probe",  "telemetry", "sent", "timer0",
                                                  "timer1", "resume", "window"};
constexpr std::array<std::string_view, 4> kPathFlags{"delayed", "probe", "from_switch", "incomplete"};
constexpr std::array<std::string_view, 3> kRequests{"send_probe", "telemetry_next", "telemetry_only_asked"};

std::string bits_text(uint64_t bits, std::span<const std::string_view> names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if ((bits >> i & 1U) == 0) continue;
    text.append(text.empty() ? "" : "+").append(names[i]);
    bits &= ~(uint64_t{1} << i);
  }
  if (bits != 0) text.append(text.empty() ? "" : "+").append(std::to_string(bits));
  return text;
}

// RFC 4180.
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
  return field.name == "kinds" ? bits_text(event.kinds, kKinds) : field.text(&event);
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
  for (const TraceField& field : kNoticeFields) out << ",notice_" << field.name;
  for (const TraceField& field : kPathFields) out << ",path_" << field.name;
  out << ",path";
  for (const TraceField& field : kDecisionFields) out << ',' << field.name;
  out << '\n';
}

}  // namespace

std::string label_text(const roci_cc_label* labels, uint32_t count, uint32_t index) {
  return index < count ? labels[index].name : std::to_string(index);
}

void write_trace_csv(const std::vector<TraceRecord>& records, std::ostream& out) {
  write_heading(out);
  for (const TraceRecord& record : records) {
    out << record.flow << ',' << cell(record.profile->name) << ',' << record.profile->plugin->name << ','
        << (record.info.direction == ROCI_CC_RESPONSES ? "responses" : "requests");
    for (const TraceField& field : kEventFields) {
      const bool start = record.starts && field.name == "kinds";
      out << ',' << (start ? "start" : event_text(field, record.event));
    }
    for (const TraceField& field : kNoticeFields) out << ',' << field.text(&record.event.notice);
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

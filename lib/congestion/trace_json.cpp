// Traces as JSON Lines: writer and reader.
#include <algorithm>
#include <bit>
#include <charconv>
#include <istream>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>
#include <span>

#include "congestion/trace.hpp"
#include "congestion/trace_fields.hpp"

namespace roci {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kFirstLine = R"({"type":"trace","version":1})";
constexpr uint64_t kLatest = INT64_MAX / 2;  // ns: half of 292 years

// --------------------------------------------------------------------------------------------------- writing

std::string quoted(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Members with the value 0 are omitted, unless `all`.
std::string object(std::span<const TraceField> fields, const void* of, bool all) {
  std::string text;
  for (const TraceField& field : fields) {
    if (!all && field.get(of) == 0) continue;
    text.append(text.empty() ? "\"" : ",\"").append(field.name).append("\":").append(field.text(of));
  }
  return "{" + text + "}";
}

std::string flow_text(const TraceRecord& record) {
  const Profile& profile = *record.profile;
  std::string values;
  for (uint32_t i = 0; i < profile.plugin->parameter_count; ++i) {
    values += (i == 0 ? "" : ",") + quoted(profile.plugin->parameters[i].name) + ":" +
              Json(profile.values[i]).dump();  // shortest text of the same double
  }
  return R"("flow":)" + std::to_string(record.flow) + R"(,"profile":)" + quoted(profile.name) +
         R"(,"plugin":)" + quoted(profile.plugin->name) + R"(,"parameters":{)" + values + R"(},"info":)" +
         object(kFlowFields, &record.info, true);
}

std::string hex_of(const void* state, size_t bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto* at = static_cast<const uint8_t*>(state);
  std::string text;
  for (size_t i = 0; i < bytes; ++i) text.append({kDigits[at[i] >> 4], kDigits[at[i] & 15]});
  return text;
}

// FNV-1a hash, which detects accidental changes: a plugin does not validate its state.
uint64_t sum_of(const void* state, size_t bytes) {
  const auto* at = static_cast<const uint8_t*>(state);
  uint64_t sum = 0xcbf29ce484222325;
  for (size_t i = 0; i < bytes; ++i) sum = (sum ^ at[i]) * 0x100000001b3;
  return sum;
}

std::string event_text(const TraceRecord& record) {
  std::string text = R"("event":)" + object(kEventFields, &record.event, false);
  if (const std::string notice = object(kCnmFields, &record.event.cnm, false); notice != "{}")
    text += R"(,"notice":)" + notice;
  if (!record.has_path) return text;
  text += R"(,"path":)" + object(kPathFields, &record.path, false) + R"(,"hops":[)";
  for (uint32_t i = 0; i < record.path.hops; ++i)
    text += (i == 0 ? "" : ",") + object(kHopFields, &record.path.hop[i], false);
  return text + "]";
}

// --------------------------------------------------------------------------------------------------- reading

// Value of a key; null if it is absent.
const Json* find(const Json& in, const char* key) {
  const auto at = in.find(key);
  return at == in.end() ? nullptr : &*at;
}

Status only_keys(const Json& in, const std::string& what, std::span<const std::string_view> keys) {
  for (const auto& [key, value] : in.items()) {
    bool known = false;
    for (const std::string_view each : keys) known |= each == key;
    if (!known) return fail(what + " has an unknown key '" + key + "'");
  }
  return {};
}

Result<uint64_t> whole(const Json& value, size_t bytes, bool is_signed) {
  if (is_signed) {
    const bool fits = value.is_number_integer() &&
                      (!value.is_number_unsigned() || value.get<uint64_t>() <= uint64_t{INT64_MAX});
    if (fits) return static_cast<uint64_t>(value.get<int64_t>());
  } else if (value.is_number_unsigned() && (bytes == 8 || value.get<uint64_t>() >> (8 * bytes) == 0)) {
    return value.get<uint64_t>();
  }
  return fail("is not a whole number" + std::string(is_signed ? "" : " from 0") + " of " +
              std::to_string(8 * bytes) + " bits");
}

Status read_object(const Json* from, const std::string& what, std::span<const TraceField> fields, void* into,
                   bool all) {
  if (from == nullptr || !from->is_object()) return fail("missing object '" + what + "'");
  size_t used = 0;
  for (const TraceField& field : fields) {
    const Json* value = find(*from, std::string(field.name).c_str());
    if (value == nullptr && !all) continue;
    if (value == nullptr) return fail("'" + what + "' has no " + std::string(field.name));
    auto number = whole(*value, field.bytes, field.is_signed);
    if (!number) return fail(what + ": " + std::string(field.name) + " " + number.error().message);
    field.set(into, *number);
    ++used;
  }
  if (used == from->size()) return {};
  std::vector<std::string_view> names;
  for (const TraceField& field : fields) names.push_back(field.name);
  return only_keys(*from, "'" + what + "'", names);
}

Result<std::string> read_text(const Json& in, const char* key) {
  const Json* value = find(in, key);
  if (value == nullptr || !value->is_string()) return fail("missing string '" + std::string(key) + "'");
  return value->get<std::string>();
}

Result<uint64_t> read_number(const Json& in, const char* key, size_t bytes) {
  const Json* value = find(in, key);
  if (value == nullptr) return fail("missing number '" + std::string(key) + "'");
  auto number = whole(*value, bytes, false);
  if (!number) return fail(std::string(key) + " " + number.error().message);
  return number;
}

// Properties of all flows of an engine.
Status check_info(const roci_cc_flow& info) {
  if (info.line_rate == 0 || info.packet_bytes == 0 || info.payload_bytes == 0 ||
      info.payload_bytes > info.packet_bytes)
    return fail(
        "info: line_rate, packet_bytes and payload_bytes must be positive, and payload_bytes at most "
        "packet_bytes");
  if (info.direction > ROCI_CC_RESPONSES)
    return fail("info: direction must be 0 (requests) or 1 (responses)");
  if (info.base_rtt_ns > kLatest) return fail("info: base_rtt_ns is out of range");
  return {};
}

bool same_bits(const std::vector<double>& x, const std::vector<double>& y) {
  return x.size() == y.size() && std::equal(x.begin(), x.end(), y.begin(), [](double a, double b) {
           return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
         });
}

// Flow as described by its latest line other than an event.
struct KnownFlow {
  const Profile* profile = nullptr;
  roci_cc_flow info{};
  uint64_t now_ns = 0;  // of its last line
};

class Reader {
 public:
  explicit Reader(const Algorithms& algorithms) : algorithms_(algorithms) {}

  Status line(const std::string& text);
  [[nodiscard]] bool started() const { return started_; }
  std::unique_ptr<RecordedTrace> take() { return std::move(trace_); }

 private:
  Status read_flow(const Json& in, uint32_t flow);
  Status read_beginning(const Json& in, uint32_t flow, TraceRecord::Kind kind);
  Status read_event(const Json& in, uint32_t flow);
  Status add(TraceRecord record, uint32_t flow);
  Result<KnownFlow> known(const Json& in);
  Result<const Profile*> profile(const Json& in, const roci_cc_flow& info);

  const Algorithms& algorithms_;
  std::unique_ptr<RecordedTrace> trace_ = std::make_unique<RecordedTrace>();
  std::map<uint32_t, KnownFlow> flows_;
  bool started_ = false;
};

Status Reader::line(const std::string& text) {
  const Json in = Json::parse(text, nullptr, false);
  if (!in.is_object()) return fail("not a JSON object; the line may be truncated");
  auto type = read_text(in, "type");
  if (!type) return fail(type.error());
  if (*type == "trace") {
    const Json* version = find(in, "version");
    if (version == nullptr || *version != 1U)
      return fail("unsupported trace version; supported is version 1");
    started_ = true;
    return {};
  }
  if (!started_) return fail("a congestion control trace must start with " + std::string(kFirstLine));
  auto flow = read_number(in, "flow", sizeof(uint32_t));
  if (!flow) return fail(flow.error());
  if (*type == "event") return read_event(in, static_cast<uint32_t>(*flow));
  if (*type == "flow") return read_flow(in, static_cast<uint32_t>(*flow));
  if (*type == "start") return read_beginning(in, static_cast<uint32_t>(*flow), TraceRecord::Kind::kStart);
  if (*type == "state") return read_beginning(in, static_cast<uint32_t>(*flow), TraceRecord::Kind::kState);
  return fail("unknown type '" + *type + "'; allowed are trace, flow, start, event and state");
}

Result<const Profile*> Reader::profile(const Json& in, const roci_cc_flow& info) {
  auto name = read_text(in, "profile");
  if (!name) return fail(name.error());
  auto plugin_name = read_text(in, "plugin");
  if (!plugin_name) return fail(plugin_name.error());
  auto found = algorithms_.find(*plugin_name);
  if (!found) return fail(found.error());
  const roci_cc_plugin& plugin = **found;
  const Json* given = find(in, "parameters");
  if (given == nullptr || !given->is_object()) return fail("missing object 'parameters'");

  std::map<std::string, double> values;
  for (const auto& [key, value] : given->items()) {
    if (!value.is_number()) return fail("parameter " + key + " is not a number");
    values[key] = value.get<double>();
  }
  auto all = parameter_values(plugin, values);
  if (!all) return fail(all.error());
  if (plugin.check != nullptr) {
    if (const char* wrong = plugin.check(&info, all->data()); wrong != nullptr)
      return fail(std::string(wrong));
  }
  const Nanos base_rtt{static_cast<int64_t>(info.base_rtt_ns)};
  for (const Profile& known : trace_->profiles) {
    if (known.name == *name && known.plugin == &plugin && known.base_rtt == base_rtt &&
        same_bits(known.values, *all))
      return &known;
  }
  trace_->profiles.push_back(
      {.name = std::move(*name), .plugin = &plugin, .values = std::move(*all), .base_rtt = base_rtt});
  return &trace_->profiles.back();
}

// Keys of lines that describe a flow: "flow", "start" and "state".
constexpr std::array<std::string_view, 10> kFlowKeys = {"type", "flow",   "profile",  "plugin", "parameters",
                                                        "info", "now_ns", "decision", "bytes",  "sum"};
constexpr size_t kKeysOfFlow = 6, kKeysOfStart = 8, kKeysOfState = kFlowKeys.size();

Status check_keys(const Json& in, size_t count) {
  return only_keys(in, "a line '" + in["type"].get<std::string>() + "'", std::span(kFlowKeys).first(count));
}

Result<KnownFlow> Reader::known(const Json& in) {
  KnownFlow known;
  ROCI_TRY(read_object(find(in, "info"), "info", kFlowFields, &known.info, true));
  ROCI_TRY(check_info(known.info));
  auto runs = profile(in, known.info);
  if (!runs) return fail(runs.error());
  known.profile = *runs;
  return known;
}

Status Reader::read_flow(const Json& in, uint32_t flow) {
  ROCI_TRY(check_keys(in, kKeysOfFlow));
  auto runs = known(in);
  if (!runs) return fail(runs.error());
  flows_[flow] = *runs;
  return {};
}

Status read_state(const Json& in, size_t bytes, void* state) {
  auto text = read_text(in, "bytes");
  if (!text) return fail(text.error());
  auto sum = read_number(in, "sum", sizeof(uint64_t));
  if (!sum) return fail(sum.error());
  if (text->size() != 2 * bytes) {
    return fail("'bytes' has " + std::to_string(text->size()) + " digits; the plugin's state has " +
                std::to_string(bytes) + " bytes");
  }
  auto* to = static_cast<uint8_t*>(state);
  for (size_t i = 0; i < bytes; ++i) {
    const char* digits = text->data() + 2 * i;
    if (std::from_chars(digits, digits + 2, to[i], 16).ptr != digits + 2)
      return fail("'bytes' contains a character that is not a hexadecimal digit");
  }
  if (sum_of(state, bytes) != *sum) return fail("'sum' does not match 'bytes'");
  return {};
}

Status Reader::read_beginning(const Json& in, uint32_t flow, TraceRecord::Kind kind) {
  const bool has_state = kind == TraceRecord::Kind::kState;
  ROCI_TRY(check_keys(in, has_state ? kKeysOfState : kKeysOfStart));
  auto runs = known(in);
  if (!runs) return fail(runs.error());
  TraceRecord record;
  record.kind = kind;
  auto now = read_number(in, "now_ns", sizeof(uint64_t));
  if (!now) return fail(now.error());
  record.event.now_ns = *now;
  ROCI_TRY(read_object(find(in, "decision"), "decision", kDecisionFields, &record.decision, true));
  if (has_state) ROCI_TRY(read_state(in, runs->profile->plugin->state_bytes, record.state()));
  const auto before = flows_.find(flow);  // a state does not reset the flow's time
  if (has_state && before != flows_.end()) runs->now_ns = before->second.now_ns;
  flows_[flow] = *runs;
  return add(std::move(record), flow);
}

Status Reader::read_event(const Json& in, uint32_t flow) {
  constexpr std::array<std::string_view, 7> kKeys = {"type", "flow", "event",   "notice",
                                                     "path", "hops", "decision"};
  ROCI_TRY(only_keys(in, "a line 'event'", kKeys));
  TraceRecord record;
  ROCI_TRY(read_object(find(in, "event"), "event", kEventFields, &record.event, false));
  if (const Json* notice = find(in, "notice"); notice != nullptr)
    ROCI_TRY(read_object(notice, "notice", kCnmFields, &record.event.cnm, false));
  if (const Json* path = find(in, "path"); path != nullptr) {
    record.has_path = true;
    ROCI_TRY(read_object(path, "path", kPathFields, &record.path, false));
    const Json* hops = find(in, "hops");
    if (hops == nullptr || !hops->is_array() || hops->size() > ROCI_CC_MAX_HOPS) {
      return fail("a path requires 'hops', a list of length 0 to " + std::to_string(ROCI_CC_MAX_HOPS));
    }
    for (const Json& hop : *hops)
      ROCI_TRY(read_object(&hop, "hops", kHopFields, &record.path.hop[record.path.hops++], false));
  }
  if (((record.event.kinds & ROCI_CC_ON_TELEMETRY) != 0) != record.has_path)
    return fail("'path' is required for telemetry events and not allowed for other events");
  ROCI_TRY(read_object(find(in, "decision"), "decision", kDecisionFields, &record.decision, true));
  return add(std::move(record), flow);
}

Status Reader::add(TraceRecord record, uint32_t flow) {
  const auto at = flows_.find(flow);
  if (at == flows_.end())
    return fail("no earlier line specifies which algorithm flow " + std::to_string(flow) + " runs");
  KnownFlow& known = at->second;
  if (record.event.now_ns > kLatest) return fail("now_ns is out of range");
  if (record.event.now_ns < known.now_ns)
    return fail("the time of flow " + std::to_string(flow) + " decreases");
  known.now_ns = record.event.now_ns;
  record.flow = flow;
  record.profile = known.profile;
  record.info = known.info;
  trace_->records.push_back(record);
  return {};
}

}  // namespace

void write_trace_json(const std::vector<TraceRecord>& records, std::ostream& out) {
  out << kFirstLine << '\n';
  std::set<uint32_t> known;
  for (const TraceRecord& record : records) {
    const bool is_known = !known.insert(record.flow).second;
    if (record.kind == TraceRecord::Kind::kEvent) {
      if (!is_known) out << R"({"type":"flow",)" << flow_text(record) << "}\n";
      out << R"({"type":"event","flow":)" << record.flow << ',' << event_text(record);
    } else {
      out << (record.kind == TraceRecord::Kind::kStart ? R"({"type":"start",)" : R"({"type":"state",)")
          << flow_text(record) << R"(,"now_ns":)" << record.event.now_ns;
    }
    out << R"(,"decision":)" << object(kDecisionFields, &record.decision, true);
    if (record.kind == TraceRecord::Kind::kState) {
      const size_t bytes = record.profile->plugin->state_bytes;
      out << R"(,"bytes":")" << hex_of(record.state(), bytes) << R"(","sum":)"
          << sum_of(record.state(), bytes);
    }
    out << "}\n";
  }
}

Result<std::unique_ptr<RecordedTrace>> read_trace(std::istream& in, const Algorithms& algorithms) {
  Reader reader(algorithms);
  std::string line;
  for (uint64_t number = 1; std::getline(in, line); ++number) {
    if (Status s = reader.line(line); !s) return fail(s.error().within("line " + std::to_string(number)));
  }
  if (in.bad()) return fail("cannot be read", EIO);
  if (!reader.started())
    return fail("empty; a congestion control trace must start with " + std::string(kFirstLine));
  return reader.take();
}

}  // namespace roci

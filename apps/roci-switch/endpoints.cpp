#include "roci-switch/endpoints.hpp"

#include <algorithm>
#include <optional>

#include "base/units.hpp"
#include "port/port_config.hpp"
#include "roci-switch/switch_file.hpp"

namespace roci {
namespace {

constexpr size_t kMaxPorts = 1024;

// Finds the name that `parameters` consists of or starts with, followed by a comma, and removes both. Names may contain
// commas: the longest match counts. Nothing if no name matches.
template <class NameOf>
std::optional<size_t> take(std::string_view& parameters, size_t count, NameOf name_of) {
  std::optional<size_t> found;
  size_t longest = 0;
  for (size_t i = 0; i < count; ++i) {
    const std::string_view name = name_of(i);
    if (!parameters.starts_with(name) || (found && name.size() <= longest)) continue;
    if (parameters.size() > name.size() && parameters[name.size()] != ',') continue;
    found = i;
    longest = name.size();
  }
  if (found) parameters.remove_prefix(std::min(longest + 1, parameters.size()));
  return found;
}

std::string quoted(std::string_view text) { return "'" + std::string{text} + "'"; }

void add(TelemetryMap& out, std::string name, uint64_t value) { out.emplace_back(std::move(name), value); }

void add_faults(TelemetryMap& out, const FaultyPort& port) {
  const PortFaultCounters& c = port.counters();
  add(out, "injected/lost", c.lost);
  add(out, "injected/corrupted", c.corrupted);
  add(out, "injected/duplicated", c.duplicated);
  add(out, "injected/reordered", c.reordered);
  add(out, "injected/delayed", c.delayed);
  add(out, "injected/delay_full", c.delay_full);
  add(out, "injected/no_buffer", c.no_buffer);
  add(out, "injected/down_rx", c.down_rx);
  add(out, "injected/down_tx", c.down_tx);
}

// Event counters by event name.
template <class Event, class Counters>
TelemetryMap event_map(const Counters& counters, std::string_view (*name)(Event)) {
  TelemetryMap out;
  for (size_t i = 0; i < counters.events.size(); ++i)
    add(out, std::string{name(static_cast<Event>(i))}, counters.events[i]);
  return out;
}

// Bitmap of the classes with activity.
uint64_t used_classes(const SwitchPortCounters& counters) {
  uint64_t used = 0;
  for (unsigned number = 0; number < kTrafficClasses; ++number) {
    const SwitchClassCounters& c = counters.classes[number];
    if (c.tx_packets > 0 || c.queue_bytes > 0 || c.pauses_received > 0 || c.pauses_sent > 0)
      used |= 1U << number;
  }
  return used;
}

}  // namespace

Result<std::unique_ptr<SwitchEndpoints>> SwitchEndpoints::open(std::vector<WatchedSwitch> switches) {
  std::unique_ptr<SwitchEndpoints> made{new SwitchEndpoints{std::move(switches)}};
  using Answer = Result<TelemetryAnswer> (SwitchEndpoints::*)(std::string_view) const;
  struct Question {
    const char* command;
    const char* help;
    Answer answer;
  };
  const Question questions[] = {
      {"/roci/switch/info", "Values of the whole switch. Parameters: switch", &SwitchEndpoints::info},
      {"/roci/switch/ports", "Names of ports. Parameters: switch[,first]", &SwitchEndpoints::ports},
      {"/roci/switch/port", "Counters of a port. Parameters: switch,port", &SwitchEndpoints::port},
      {"/roci/switch/class", "Counters of a class. Parameters: switch,port,class",
       &SwitchEndpoints::traffic_class},
      {"/roci/switch/cnm", "Congestion notification messages. Parameters: switch", &SwitchEndpoints::cnm},
      {"/roci/switch/cnp", "Congestion notification packets. Parameters: switch", &SwitchEndpoints::cnp},
      {"/roci/switch/responses", "Telemetry responses. Parameters: switch", &SwitchEndpoints::responses},
      {"/roci/switch/senders", "How senders of flows are learned. Parameters: switch",
       &SwitchEndpoints::senders},
      {"/roci/switch/shaper", "A shaper towards another switch. Parameters: switch,number (from 0)",
       &SwitchEndpoints::shaper},
      {"/roci/switch/set_faults",
       "Sets the faults of a port. Parameters: switch,port, then keys such as "
       "loss=0.01,reorder=0.01,delay=10us,down=true",
       &SwitchEndpoints::set_faults},
  };
  const auto add_question = [&](const char* command, const char* help, Endpoint::Handler handler) -> Status {
    auto endpoint = Endpoint::open(command, help, std::move(handler));
    if (!endpoint) return fail(endpoint.error());
    made->endpoints_.push_back(std::move(*endpoint));
    return {};
  };
  SwitchEndpoints* const self = made.get();
  ROCI_TRY(add_question("/roci/switch/list", "Names of the switches. No parameters",
                        [self](std::string_view) { return self->list(); }));
  for (const Question& q : questions) {
    const Answer answer = q.answer;
    if (Status s =
            add_question(q.command, q.help,
                         [self, answer](std::string_view parameters) { return (self->*answer)(parameters); });
        !s)
      return fail(s.error());
  }
  return made;
}

Result<const WatchedSwitch*> SwitchEndpoints::take_switch(std::string_view& parameters) const {
  const auto found = take(parameters, switches_.size(), [this](size_t i) { return switches_[i].sw->name(); });
  if (found) return &switches_[*found];
  if (switches_.size() == 1) return &switches_.front();
  return fail("unknown switch " + quoted(parameters.substr(0, parameters.find(','))) +
              "; /roci/switch/list lists the switches");
}

Result<size_t> SwitchEndpoints::take_port(const Switch& sw, std::string_view& parameters) {
  const auto found = take(parameters, sw.port_count(),
                          [&sw](size_t i) -> std::string_view { return sw.port_config(i).name; });
  if (found) return *found;
  return fail("switch " + quoted(sw.name()) + " has no port " +
              quoted(parameters.substr(0, parameters.find(','))) + "; /roci/switch/ports lists the ports");
}

Result<SwitchEndpoints::FoundPort> SwitchEndpoints::take_switch_and_port(std::string_view& parameters,
                                                                         bool is_last) const {
  const std::string_view all = parameters;
  const auto watched = take_switch(parameters);
  if (!watched) return fail(watched.error());
  const auto port = take_port(*(*watched)->sw, parameters);
  if (port) return FoundPort{*watched, *port};
  if (switches_.size() == 1) {  // the switch may be omitted, and a port may have its name
    parameters = all;
    const auto of_same_name = take_port(*(*watched)->sw, parameters);
    if (of_same_name && (parameters.empty() || !is_last)) return FoundPort{*watched, *of_same_name};
  }
  return fail(port.error());
}

Result<TelemetryAnswer> SwitchEndpoints::list() const {
  TelemetryList names;
  for (const WatchedSwitch& watched : switches_) names.emplace_back(watched.sw->name());
  return names;
}

Result<TelemetryAnswer> SwitchEndpoints::info(std::string_view parameters) const {
  const auto watched = take_switch(parameters);
  if (!watched) return fail(watched.error());
  const Switch& sw = *(*watched)->sw;
  TelemetryMap out;
  out.emplace_back("name", std::string{sw.name()});
  out.emplace_back("mac", sw.mac().to_string());
  add(out, "ports", sw.port_count());
  add(out, "mac_moves", sw.mac_moves());
  add(out, "mac_table_full", sw.mac_table_full());
  add(out, "own_dropped", sw.own_dropped());
  add(out, "faults_enabled", (*watched)->faults.empty() ? 0 : 1);
  return out;
}

Result<TelemetryAnswer> SwitchEndpoints::ports(std::string_view parameters) const {
  const auto watched = take_switch(parameters);
  if (!watched) return fail(watched.error());
  const Switch& sw = *(*watched)->sw;
  int64_t first = 0;
  if (!parameters.empty()) {
    const auto number = parse_integer(parameters, 0, kMaxPorts);
    if (!number) return fail(number.error());
    first = *number;
  }
  TelemetryList names;
  for (size_t i = 0; i < sw.port_count(); ++i) names.push_back(sw.port_config(i).name);
  return telemetry_page(names, static_cast<size_t>(first));
}

Result<TelemetryAnswer> SwitchEndpoints::port(std::string_view parameters) const {
  const auto found = take_switch_and_port(parameters, true);
  if (!found) return fail(found.error());
  const auto [watched, index] = *found;
  const Switch& sw = *watched->sw;
  const SwitchPortConfig& config = sw.port_config(index);
  const SwitchPortCounters& c = sw.counters(index);
  const Port& behind = *watched->ports[index];
  TelemetryMap out;
  out.emplace_back("name", config.name);
  add(out, "link_up", behind.link_up() ? 1 : 0);
  add(out, "rate", config.rate.value());
  add(out, "queue_limit", config.queue.value());
  add(out, "rx_packets", c.rx_packets);
  add(out, "rx_bytes", c.rx_bytes);
  add(out, "tx_packets", c.tx_packets);
  add(out, "tx_bytes", c.tx_bytes);
  add(out, "flooded", c.flooded);
  add(out, "routed", c.routed);
  add(out, "rerouted", c.rerouted);
  add(out, "answered", c.answered);
  add(out, "telemetry_inserted", c.telemetry_inserted);
  add(out, "telemetry_hops", c.telemetry_hops);
  add(out, "telemetry_stripped", c.telemetry_stripped);
  add(out, "telemetry_too_long", c.telemetry_too_long);
  add(out, "telemetry_malformed", c.telemetry_malformed);
  add(out, "telemetry_discarded", c.telemetry_discarded);
  add(out, "queue_bytes", c.queue_bytes);
  add(out, "queue_packets", c.queue_packets);
  add(out, "queue_peak_bytes", c.queue_peak_bytes);
  add(out, "used_classes", used_classes(c));
  const PortStats stats = behind.stats();
  add(out, "device/tx_refused", stats.tx_refused);
  add(out, "device/tx_dropped", stats.tx_dropped);
  add(out, "device/rx_dropped", stats.rx_dropped);
  add(out, "dropped", c.dropped());
  for (unsigned i = 1; i < kDropReasonCount; ++i) {
    const auto reason = static_cast<DropReason>(i);
    add(out, "drops/" + std::string{drop_reason_name(reason)}, c.dropped(reason));
  }
  if (!watched->faults.empty()) {
    const FaultyPort& faulty = *watched->faults[index];
    out.emplace_back("faults", describe(faulty.faults()));
    add_faults(out, faulty);
  }
  return out;
}

Result<TelemetryAnswer> SwitchEndpoints::traffic_class(std::string_view parameters) const {
  const auto found = take_switch_and_port(parameters, false);
  if (!found) return fail(found.error());
  const auto [watched, index] = *found;
  const Switch& sw = *watched->sw;
  const auto number = parse_integer(parameters, 0, kTrafficClasses - 1);
  if (!number) return fail(number.error().within("class"));
  const SwitchClassCounters& c = sw.counters(index).classes[static_cast<size_t>(*number)];
  TelemetryMap out;
  add(out, "tx_packets", c.tx_packets);
  add(out, "tx_bytes", c.tx_bytes);
  add(out, "marked", c.marked);
  add(out, "queue_bytes", c.queue_bytes);
  add(out, "queue_peak_bytes", c.queue_peak_bytes);
  add(out, "pauses_received", c.pauses_received);
  add(out, "paused_nanos", c.paused_nanos);
  add(out, "pause_storms", c.pause_storms);
  add(out, "pauses_sent", c.pauses_sent);
  return out;
}

Result<TelemetryAnswer> SwitchEndpoints::cnm(std::string_view parameters) const {
  const auto watched = take_switch(parameters);
  if (!watched) return fail(watched.error());
  return event_map<CnmEvent>((*watched)->sw->cnm_counts(), cnm_event_name);
}

Result<TelemetryAnswer> SwitchEndpoints::cnp(std::string_view parameters) const {
  const auto watched = take_switch(parameters);
  if (!watched) return fail(watched.error());
  return event_map<CnpEvent>((*watched)->sw->cnp_counts(), cnp_event_name);
}

Result<TelemetryAnswer> SwitchEndpoints::responses(std::string_view parameters) const {
  const auto watched = take_switch(parameters);
  if (!watched) return fail(watched.error());
  return event_map<IntResponseEvent>((*watched)->sw->int_response_counts(), int_response_event_name);
}

Result<TelemetryAnswer> SwitchEndpoints::senders(std::string_view parameters) const {
  const auto watched = take_switch(parameters);
  if (!watched) return fail(watched.error());
  return event_map<SenderEvent>((*watched)->sw->sender_counts(), sender_event_name);
}

Result<TelemetryAnswer> SwitchEndpoints::shaper(std::string_view parameters) const {
  const auto watched = take_switch(parameters);
  if (!watched) return fail(watched.error());
  const Switch& sw = *(*watched)->sw;
  const auto number = parse_integer(parameters, 0, kMaxShapers - 1);
  if (!number) return fail(number.error());
  const auto index = static_cast<size_t>(*number);
  if (index >= sw.shaper_count()) {
    return fail("shaper " + std::to_string(index) + " does not exist; switch " + quoted(sw.name()) + " has " +
                std::to_string(sw.shaper_count()) + " shapers, numbered from 0");
  }
  const ShaperCounts c = sw.shaper_counts(index);
  TelemetryMap out;
  out.emplace_back("prefix", sw.shaper_config(index).prefix.to_string());
  add(out, "class", sw.shaper_config(index).traffic_class);
  add(out, "line_rate", sw.shaper_config(index).rate.value());
  add(out, "rate", c.rate);
  add(out, "queue_bytes", c.queue_bytes);
  add(out, "queue_peak_bytes", c.queue_peak_bytes);
  add(out, "held", c.held);
  add(out, "marked", c.marked);
  add(out, "dropped", c.dropped);
  add(out, "cnms", c.notices);
  return out;
}

Result<TelemetryAnswer> SwitchEndpoints::set_faults(std::string_view parameters) const {
  const auto found = take_switch_and_port(parameters, false);
  if (!found) return fail(found.error());
  const auto [watched, index] = *found;
  if (watched->faults.empty()) return fail(kFaultsNotEnabled);
  // Converts "loss=0.01,delay=10us" into a section of a configuration file.
  std::string text = "{";
  for (const char c : parameters) text += c == '=' ? ": " : c == ',' ? ", " : std::string(1, c);
  text += "}";
  PortFaults faults;
  ROCI_TRY(parse_config(text, "faults", [&](ConfigNode& node) { return read_faults(node, faults); }));
  ROCI_TRY(watched->set_faults(index, faults));
  return TelemetryMap{{"faults", describe(faults)}};
}

}  // namespace roci

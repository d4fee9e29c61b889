#include "device/device_endpoints.hpp"

#include <charconv>

namespace roci {
namespace {

std::string flow_name(const CongestionFlowReport& flow) {
  return std::to_string(flow.qp_num) + (flow.responses ? "/responses" : "");
}

Result<size_t> first_of(std::string_view parameters) {
  size_t first = 0;
  if (parameters.empty()) return first;
  const auto [end, error] = std::from_chars(parameters.data(), parameters.data() + parameters.size(), first);
  if (error != std::errc{} || end != parameters.data() + parameters.size())
    return fail("'" + std::string(parameters) + "' is not the number to begin with");
  return first;
}

void add_limit(TelemetryMap& out, const std::string& name, double limit) {
  if (limit < 0) {
    out.emplace_back(name, std::string("no limit"));
  } else {
    out.emplace_back(name, static_cast<uint64_t>(limit));
  }
}

}  // namespace

Result<std::unique_ptr<DeviceEndpoints>> DeviceEndpoints::open(std::vector<Device*> devices) {
  std::unique_ptr<DeviceEndpoints> made(new DeviceEndpoints(std::move(devices)));
  DeviceEndpoints* const self = made.get();
  using Answer = Result<TelemetryAnswer> (DeviceEndpoints::*)(std::string_view) const;
  struct Question {
    const char* command;
    const char* help;
    Answer answer;
  };
  const Question questions[] = {
      {"/roci/device/counters", "Counters of a device. Parameters: device[,first]",
       &DeviceEndpoints::counters},
      {"/roci/device/flows", "Flows under congestion control. Parameters: device[,first]",
       &DeviceEndpoints::flows},
      {"/roci/device/flow", "What congestion control does with a flow. Parameters: device,flow",
       &DeviceEndpoints::flow},
  };
  auto list = Endpoint::open("/roci/device/list", "Names of devices. No parameters",
                             [self](std::string_view) { return self->list(); });
  if (!list) return fail(list.error());
  made->endpoints_.push_back(std::move(*list));
  for (const Question& question : questions) {
    auto endpoint =
        Endpoint::open(question.command, question.help,
                       [self, answer = question.answer](std::string_view p) { return (self->*answer)(p); });
    if (!endpoint) return fail(endpoint.error());
    made->endpoints_.push_back(std::move(*endpoint));
  }
  return made;
}

Result<Device*> DeviceEndpoints::take_device(std::string_view& parameters) const {
  const std::string_view name = parameters.substr(0, parameters.find(','));
  for (Device* device : devices_) {
    if (device->name() != name) continue;
    parameters.remove_prefix(std::min(name.size() + 1, parameters.size()));
    return device;
  }
  std::string names;
  for (const Device* device : devices_) names += (names.empty() ? "" : ", ") + device->name();
  return fail("there is no device '" + std::string(name) + "'; there are " + names);
}

Result<TelemetryAnswer> DeviceEndpoints::list() const {
  TelemetryList names;
  for (const Device* device : devices_) names.push_back(device->name());
  return TelemetryAnswer{std::move(names)};
}

Result<TelemetryAnswer> DeviceEndpoints::counters(std::string_view parameters) const {
  constexpr size_t kMost = 200;  // of a map that DPDK takes
  auto device = take_device(parameters);
  if (!device) return fail(device.error());
  auto first = first_of(parameters);
  if (!first) return fail(first.error());
  TelemetryMap out;
  const auto all = (*device)->counters();
  for (size_t i = *first; i < all.size() && out.size() < kMost; ++i)
    out.emplace_back(all[i].first, all[i].second);
  return TelemetryAnswer{std::move(out)};
}

Result<TelemetryAnswer> DeviceEndpoints::flows(std::string_view parameters) const {
  auto device = take_device(parameters);
  if (!device) return fail(device.error());
  auto first = first_of(parameters);
  if (!first) return fail(first.error());
  TelemetryList names;
  for (const CongestionFlowReport& flow : (*device)->congestion_report()) names.push_back(flow_name(flow));
  return TelemetryAnswer{telemetry_page(names, *first)};
}

Result<TelemetryAnswer> DeviceEndpoints::flow(std::string_view parameters) const {
  auto device = take_device(parameters);
  if (!device) return fail(device.error());
  for (const CongestionFlowReport& flow : (*device)->congestion_report()) {
    if (flow_name(flow) != parameters) continue;
    TelemetryMap out{{"profile", flow.profile},       {"algorithm", flow.algorithm},
                     {"state", flow.state},           {"last_reason", flow.last_reason},
                     {"last_event", flow.last_event}, {"gap_ns", flow.gap}};
    add_limit(out, "rate", flow.rate);
    add_limit(out, "window", flow.window);
    const std::pair<const char*, uint64_t> numbers[] = {{"in_flight", flow.in_flight},
                                                        {"rtt_ns", flow.rtt},
                                                        {"least_rtt_ns", flow.least_rtt},
                                                        {"sent_bytes", flow.sent_bytes},
                                                        {"sent_packets", flow.sent_packets},
                                                        {"acked_packets", flow.acked_packets},
                                                        {"marked_packets", flow.marked_packets},
                                                        {"rp_cnp_handled", flow.cnps},
                                                        {"notices", flow.notices},
                                                        {"telemetry", flow.telemetry},
                                                        {"losses", flow.losses},
                                                        {"timeouts", flow.timeouts},
                                                        {"events", flow.events}};
    for (const auto& [name, value] : numbers) out.emplace_back(name, value);
    for (const auto& [name, value] : flow.states) out.emplace_back("state_ns/" + name, value);
    for (const auto& [name, value] : flow.reasons) out.emplace_back("reason/" + name, value);
    return TelemetryAnswer{std::move(out)};
  }
  return fail("there is no flow '" + std::string(parameters) + "' of device " + (*device)->name());
}

}  // namespace roci

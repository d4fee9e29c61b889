#include "roci-top/readers/switch_reader.hpp"

#include <array>

#include "roci-top/readers/telemetry_requests.hpp"

namespace roci::top {
namespace {

// Limit for replies of other processes; more than exist in practice.
constexpr unsigned kClasses = 64;

// Event counters of a switch.
constexpr std::array kEvents = {"cnm", "cnp", "responses", "senders"};

Status read_port(TelemetryClient& client, const std::string& of, PortSample& port) {
  ROCI_TRY(read_counted(client, "/roci/switch/port," + of, port.counted));
  const uint64_t used = port.counted.number("used_classes");
  for (unsigned number = 0; number < kClasses; ++number) {
    if ((used >> number & 1U) == 0) continue;
    ROCI_TRY(read_counted(client, "/roci/switch/class," + of + "," + std::to_string(number),
                          port.classes[number]));
  }
  return {};
}

Status read_switch(TelemetryClient& client, SwitchSample& sw) {
  ROCI_TRY(read_counted(client, "/roci/switch/info," + sw.name, sw.info));
  for (const char* kind : kEvents)
    ROCI_TRY(read_counted(client, std::string{"/roci/switch/"} + kind + "," + sw.name, sw.events[kind]));
  const auto ports = read_names(client, "/roci/switch/ports," + sw.name, true);
  if (!ports) return fail(ports.error());
  for (const std::string& name : *ports) {
    PortSample& port = sw.ports.emplace_back();
    port.name = name;
    if (Status s = read_port(client, sw.name + "," + name, port); !s) return s;
  }
  return {};
}

}  // namespace

Status read_switches(TelemetryClient& client, ProcessSample& seen) {
  const auto names = read_names(client, "/roci/switch/list", false);
  if (!names) return fail(names.error());
  for (const std::string& name : *names) {
    SwitchSample& sw = seen.switches.emplace_back();
    sw.name = name;
    if (Status s = read_switch(client, sw); !s) return s;
  }
  return {};
}

}  // namespace roci::top

// Commands of a process with switches on DPDK's telemetry socket (telemetry/endpoint.hpp), used by roci-top and other
// clients:
//
//   /roci/switch/list                                switch names
//   /roci/switch/info,SWITCH                         values of the whole switch
//   /roci/switch/ports,SWITCH[,FIRST]                port names from number FIRST, as many as fit
//   /roci/switch/port,SWITCH,PORT                    counters, drops by reason, injected faults
//   /roci/switch/class,SWITCH,PORT,CLASS             counters of a traffic class
//   /roci/switch/cnm,SWITCH                          outcomes of congestion notification messages (QCN)
//   /roci/switch/cnp,SWITCH                          outcomes of CNPs
//   /roci/switch/responses,SWITCH                    outcomes of telemetry responses
//   /roci/switch/senders,SWITCH                      events of learning the senders of flows
//   /roci/switch/shaper,SWITCH,NUMBER                a shaper towards another switch
//   /roci/switch/set_faults,SWITCH,PORT,KEY=VALUE…   sets the keys of `faults`; keys not given are reset
//
// "SWITCH," may be omitted if the process has one switch.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "port/sim/faulty_port.hpp"
#include "switch/switch.hpp"
#include "telemetry/endpoint.hpp"

namespace roci {

// The parts of a switch that other threads read.
struct WatchedSwitch {
  const Switch* sw = nullptr;
  std::vector<const Port*> ports;         // in port order of the switch
  std::vector<const FaultyPort*> faults;  // in port order; empty if faults are not enabled
  // Changes the faults of a port, or returns the error. Called by DPDK's telemetry thread.
  std::function<Status(size_t port, const PortFaults& faults)> set_faults;
};

// Telemetry commands of switches. The switches must outlive this object.
class SwitchEndpoints {
 public:
  static Result<std::unique_ptr<SwitchEndpoints>> open(std::vector<WatchedSwitch> switches);

  // The command handlers, also callable without a socket.
  [[nodiscard]] Result<TelemetryAnswer> list() const;
  [[nodiscard]] Result<TelemetryAnswer> info(std::string_view parameters) const;
  [[nodiscard]] Result<TelemetryAnswer> ports(std::string_view parameters) const;
  [[nodiscard]] Result<TelemetryAnswer> port(std::string_view parameters) const;
  [[nodiscard]] Result<TelemetryAnswer> traffic_class(std::string_view parameters) const;
  [[nodiscard]] Result<TelemetryAnswer> cnm(std::string_view parameters) const;
  [[nodiscard]] Result<TelemetryAnswer> cnp(std::string_view parameters) const;
  [[nodiscard]] Result<TelemetryAnswer> responses(std::string_view parameters) const;
  [[nodiscard]] Result<TelemetryAnswer> senders(std::string_view parameters) const;
  [[nodiscard]] Result<TelemetryAnswer> shaper(std::string_view parameters) const;
  [[nodiscard]] Result<TelemetryAnswer> set_faults(std::string_view parameters) const;

 private:
  explicit SwitchEndpoints(std::vector<WatchedSwitch> switches) : switches_(std::move(switches)) {}

  // Remove the switch or port found, and the comma after it, from the parameters.
  Result<const WatchedSwitch*> take_switch(std::string_view& parameters) const;
  static Result<size_t> take_port(const Switch& sw, std::string_view& parameters);
  struct FoundPort {
    const WatchedSwitch* watched = nullptr;
    size_t port = 0;
  };
  // `is_last`: no parameters follow the port.
  Result<FoundPort> take_switch_and_port(std::string_view& parameters, bool is_last) const;

  std::vector<WatchedSwitch> switches_;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;  // destroyed first
};

}  // namespace roci

// What a process with switches answers on DPDK's telemetry socket (telemetry/endpoint.hpp), to roci-top or whoever asks:
//
//   /roci/switch/list                                names
//   /roci/switch/info,SWITCH                         what is there once for the whole switch
//   /roci/switch/ports,SWITCH[,FIRST]                names, as many as fit, from the FIRST one on
//   /roci/switch/port,SWITCH,PORT                    counters, what was dropped and why, what was injected
//   /roci/switch/class,SWITCH,PORT,CLASS             counters of a traffic class
//   /roci/switch/cnm,SWITCH                          what became of congestion notification messages (QCN),
//   /roci/switch/cnp,SWITCH                          of CNPs,
//   /roci/switch/responses,SWITCH                    and of telemetry responses
//   /roci/switch/senders,SWITCH                      how it has learnt who sends which flow
//   /roci/switch/shaper,SWITCH,NUMBER                a shaper towards another switch
//   /roci/switch/set_faults,SWITCH,PORT,KEY=VALUE…   loss, corrupt, delay, down from now on; those not named are off
//
// "SWITCH," may be left out when the process has one switch.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "port/faulty_port.hpp"
#include "switch/switch.hpp"
#include "telemetry/endpoint.hpp"

namespace roci {

// A switch as other threads see it.
struct WatchedSwitch {
  const Switch* sw = nullptr;
  std::vector<const Port*> ports;         // in the order of the switch's
  std::vector<const FaultyPort*> faults;  // the same; empty when faults are not enabled
  // Changes the faults of a port, or says why not; called by a thread of DPDK's.
  std::function<Status(size_t port, const PortFaults& faults)> set_faults;
};

// The switches must outlive it.
class SwitchEndpoints {
 public:
  static Result<std::unique_ptr<SwitchEndpoints>> open(std::vector<WatchedSwitch> switches);

  // The answers, without a socket.
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

  // Both take what they have found, and the comma behind it, off the parameters.
  Result<const WatchedSwitch*> take_switch(std::string_view& parameters) const;
  static Result<size_t> take_port(const Switch& sw, std::string_view& parameters);

  std::vector<WatchedSwitch> switches_;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;  // end first
};

}  // namespace roci

// What a process with devices answers on DPDK's telemetry socket (telemetry/endpoint.hpp), to roci-top or whoever asks:
//
//   /roci/device/list                          names
//   /roci/device/counters,DEVICE[,FIRST]       counters, as many as fit, from the FIRST one on
//   /roci/device/flows,DEVICE[,FIRST]          flows under congestion control: "QPN" or "QPN/responses", likewise
//   /roci/device/flow,DEVICE,FLOW              what congestion control does with one of them
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "roci/device.hpp"
#include "telemetry/endpoint.hpp"

namespace roci {

// The devices must outlive it. Answers take a worker's token for as long as its queue pairs are looked at.
class DeviceEndpoints {
 public:
  static Result<std::unique_ptr<DeviceEndpoints>> open(std::vector<Device*> devices);

  // The answers, without a socket.
  [[nodiscard]] Result<TelemetryAnswer> list() const;
  [[nodiscard]] Result<TelemetryAnswer> counters(std::string_view parameters) const;
  [[nodiscard]] Result<TelemetryAnswer> flows(std::string_view parameters) const;
  [[nodiscard]] Result<TelemetryAnswer> flow(std::string_view parameters) const;

 private:
  explicit DeviceEndpoints(std::vector<Device*> devices) : devices_(std::move(devices)) {}
  // Takes the name, and the comma behind it, off the parameters.
  Result<Device*> take_device(std::string_view& parameters) const;

  std::vector<Device*> devices_;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
};

}  // namespace roci

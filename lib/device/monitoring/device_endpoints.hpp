// Commands of DPDK's telemetry socket (telemetry/endpoint.hpp) about devices, for roci-top and other clients:
//
//   /roci/device/list                          names
//   /roci/device/info,DEVICE                   addresses, MTU, link, workers, number of queue pairs, port counters
//   /roci/device/counters,DEVICE[,FIRST]       counters from index FIRST on, as many as fit
//   /roci/device/statistic,DEVICE              counters named as in `rdma statistic` (telemetry/rdma_statistic.hpp)
//   /roci/device/states,DEVICE                 number of queue pairs of each type and in each state
//   /roci/device/activity,DEVICE[,QPN]         short rows from QPN on, some hundred per answer; `psns` grows with the
//                                              packets sent and received (modulo 2^24)
//   /roci/device/queue_pairs,DEVICE[,QPN]      complete rows, from QPN on, as many as fit
//   /roci/device/queue_pair,DEVICE,QPN,QPN…    complete rows of these queue pairs; nonexistent ones are omitted
//   /roci/device/flows,DEVICE[,FIRST]          flows under congestion control: "QPN" or "QPN/responses", as many as fit
//   /roci/device/flow,DEVICE,FLOW              congestion control state of one flow, with its history
//
// activity, queue_pairs and queue_pair return columns (TelemetryTable), with one value per row. `next` is the start of
// the next page: a QPN, for queue_pair an index into the list of the request, or 0 at the end. A queue pair that exists
// while all pages are read is on exactly one of them. A queue pair has a row for its requests, and one with `responses`
// 1 for the READ responses that it sends, if it has sent any. `rate` and `window` are 0 without a limit.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "roci/device.hpp"
#include "telemetry/endpoint.hpp"

namespace roci {

// Owns the endpoints of a list of devices. The devices must outlive it. Handlers acquire worker tokens, for some queue
// pairs at a time.
class DeviceEndpoints {
 public:
  static Result<std::unique_ptr<DeviceEndpoints>> open(std::vector<Device*> devices);

  // Handlers of the commands; usable without a socket.
  [[nodiscard]] Result<TelemetryAnswer> list() const;
  [[nodiscard]] Result<TelemetryAnswer> info(std::string_view parameters) const;
  [[nodiscard]] Result<TelemetryAnswer> counters(std::string_view parameters) const;
  [[nodiscard]] Result<TelemetryAnswer> statistic(std::string_view parameters) const;
  [[nodiscard]] Result<TelemetryAnswer> states(std::string_view parameters) const;
  [[nodiscard]] Result<TelemetryAnswer> activity(std::string_view parameters) const;
  [[nodiscard]] Result<TelemetryAnswer> queue_pairs(std::string_view parameters) const;
  [[nodiscard]] Result<TelemetryAnswer> queue_pair(std::string_view parameters) const;
  [[nodiscard]] Result<TelemetryAnswer> flows(std::string_view parameters) const;
  [[nodiscard]] Result<TelemetryAnswer> flow(std::string_view parameters) const;

 private:
  explicit DeviceEndpoints(std::vector<Device*> devices) : devices_(std::move(devices)) {}
  // Removes the device name and the following comma from the parameters.
  Result<Device*> take_device(std::string_view& parameters) const;
  // Parameters "device[,first QPN]": numbers of at most `most` queue pairs, and a table with `queue_pairs` and `next`.
  struct Page {
    Host* host;
    std::vector<uint32_t> numbers;
    TelemetryTable table;
  };
  [[nodiscard]] Result<Page> take_page(std::string_view parameters, size_t most) const;

  std::vector<Device*> devices_;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
};

}  // namespace roci

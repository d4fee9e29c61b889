// What a process with devices answers on DPDK's telemetry socket (telemetry/endpoint.hpp), to roci-top or whoever asks:
//
//   /roci/device/list                          names
//   /roci/device/info,DEVICE                   addresses, MTU, link, workers, how many queue pairs; what the port counts
//   /roci/device/counters,DEVICE[,FIRST]       counters, as many as fit, from the FIRST one on
//   /roci/device/statistic,DEVICE              the same under the names of `rdma statistic` (telemetry/rdma_statistic.hpp)
//   /roci/device/states,DEVICE                 how many queue pairs of each type and in each state
//   /roci/device/activity,DEVICE[,QPN]         a little of each queue pair, some hundred in one answer: by number, as many as
//                                              fit, from QPN on; `psns` has grown by the packets that came and went (mod 2^24)
//   /roci/device/queue_pairs,DEVICE[,QPN]      all that there is to see of each, as many as fit, likewise
//   /roci/device/queue_pair,DEVICE,QPN,QPN…    the same of these; those that there are not are left out
//   /roci/device/flows,DEVICE[,FIRST]          flows under congestion control: "QPN" or "QPN/responses", as many as fit
//   /roci/device/flow,DEVICE,FLOW              what congestion control does with one of them, with its history
//
// activity, queue_pairs and queue_pair answer with columns (TelemetryTable) of as many values as there are rows. `next` is
// where to go on: a QPN, for queue_pair a place in the list of the question, or 0 at the end. A queue pair that is there from
// the first page to the last is on one of them. It has a row for its requests, and one with `responses` 1 for the READ
// responses that it sends, when it has sent any. `rate` and `window` are 0 without a limit.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "roci/device.hpp"
#include "telemetry/endpoint.hpp"

namespace roci {

// The devices must outlive it. Answers take a worker's token to look at its queue pairs, some at a time.
class DeviceEndpoints {
 public:
  static Result<std::unique_ptr<DeviceEndpoints>> open(std::vector<Device*> devices);

  // The answers, without a socket.
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
  // Takes the name, and the comma behind it, off the parameters.
  Result<Device*> take_device(std::string_view& parameters) const;
  // "device[,first QPN]": at most so many queue pairs, and a table to put them into, with `queue_pairs` and `next`.
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

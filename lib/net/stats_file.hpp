// Statistics of devices for `roci-run --stats`. roci-run sets ROCI_STATS to a file name. Each process with a device
// appends lines to the file, and roci-run reads them after the program has ended. A line is a JSON object:
//
//   {"pid":17,"program":"ib_write_bw","device":"roci0","counters":{"rx_packets":12,…},
//    "queue_pairs":[{"qp_num":18,"type":"RC","peer":"10.77.0.2","peer_qp_num":21,"acked_bytes":65536,
//                    "received_bytes":0,"responses":false,"profile":"dcqcn","state":"increase","rate":1e10,"window":-1,
//                    "numbers":{"sent_packets":64,…},"reasons":{"cnp":2}}]}
//
// A process may write several lines for a device. Repeated counters replace the previous ones. Further queue pairs are
// added; they were destroyed before the end of the process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "roci/device.hpp"

namespace roci {

struct QueuePairStats {
  uint32_t qp_num = 0;
  std::string type;  // qp_type_name()
  std::string peer;  // IP address; empty before the connection, and for UD
  uint32_t peer_qp_num = 0;
  uint64_t acked_bytes = 0, received_bytes = 0;
  // true: flow of the READ responses that the queue pair sent; false: of its requests
  bool responses = false;
  std::string profile;  // "none": not controlled
  std::string state;    // of the algorithm
  double rate = -1;     // bit/s; -1: no limit
  double window = -1;   // bytes; -1: no limit
  std::vector<std::pair<std::string, uint64_t>> numbers;
  std::vector<std::pair<std::string, uint64_t>> reasons;

  friend bool operator==(const QueuePairStats&, const QueuePairStats&) = default;
};

struct DeviceStats {
  pid_t pid = 0;
  std::string program;
  std::string device;
  std::vector<std::pair<std::string, uint64_t>> counters;
  std::vector<QueuePairStats> queue_pairs;

  friend bool operator==(const DeviceStats&, const DeviceStats&) = default;
};

// Appends a line about a device and its present queue pairs. Any thread that does not hold a worker token.
Status write_stats(const std::string& path, Device& device);
// Appends a line about one queue pair, before the caller destroys it.
Status write_stats(const std::string& path, Device& device, uint32_t qp_num);

// Appends a line. Creates the file with mode 0600 if it does not exist; a symbolic link is an error.
Status append_stats(const std::string& path, const DeviceStats& stats);
// Reads all lines and merges those of one process and device, in the order of first appearance. An incomplete last line
// is ignored. Any other invalid line is an error.
Result<std::vector<DeviceStats>> read_stats(const std::string& path);

}  // namespace roci

// What processes say at their end of the devices that they had, for `roci-run --stats`: it sets ROCI_STATS to a file, each
// process with a device adds lines to it, and roci-run reads them when the program has ended. A line is a JSON object:
//
//   {"pid":17,"program":"ib_write_bw","device":"roci0","counters":{"rx_packets":12,…},
//    "queue_pairs":[{"qp_num":18,"type":"RC","peer":"10.77.0.2","peer_qp_num":21,"acked_bytes":65536,"received_bytes":0,
//                    "responses":false,"profile":"dcqcn","state":"increase","rate":1e10,"window":-1,
//                    "numbers":{"sent_packets":64,…},"reasons":{"cnp":2}}]}
//
// A process may write several lines for a device: counters that come again are the newer ones, queue pairs are others, which
// have been destroyed meanwhile.
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
  std::string peer;  // its address; empty before it was connected, and of UD
  uint32_t peer_qp_num = 0;
  uint64_t acked_bytes = 0, received_bytes = 0;
  bool responses = false;  // the READ responses that it sent, else its requests
  std::string profile;     // "none": nothing controlled it
  std::string state;       // of the algorithm
  double rate = -1;        // bit/s; -1: no limit
  double window = -1;      // bytes; -1: no limit
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

// Adds a line about a device and the queue pairs that it has at the moment. Any thread that holds no worker's token.
Status write_stats(const std::string& path, Device& device);
// The same about one queue pair alone, for who is about to destroy it.
Status write_stats(const std::string& path, Device& device, uint32_t qp_num);

// Adds a line.
Status append_stats(const std::string& path, const DeviceStats& stats);
// All lines, those of one process about one device together, in the order in which they first appear. A line that a process
// did not come to finish is left out; any other that is not such a line is an error.
Result<std::vector<DeviceStats>> read_stats(const std::string& path);

}  // namespace roci

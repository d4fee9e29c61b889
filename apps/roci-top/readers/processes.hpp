// The processes of this user with a DPDK telemetry socket, found in DPDK's runtime folders, and their samples.
//
// Each process is queried for all object types: switches (switch_reader.hpp) and hosts (host_reader.hpp). A new type is
// added to the table in processes.cpp and to ProcessSample.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "roci-top/readers/queue_pair_choice.hpp"
#include "roci-top/readers/snapshot.hpp"
#include "roci-top/readers/telemetry_client.hpp"

namespace roci::top {

// Keeps connections between snapshots. Owned by one thread.
class Processes {
 public:
  // `folder`: DPDK's runtime folder (telemetry/runtime_folder.hpp). Processes whose file prefix does not start with
  // `prefix` are ignored. `queue_pairs`: number of queue pairs per host that are shown.
  Processes(std::filesystem::path folder, std::string prefix, size_t queue_pairs)
      : folder_(std::move(folder)), prefix_(std::move(prefix)), queue_pairs_(queue_pairs) {}

  // Takes a sample of all processes. Processes without Rocinante hosts or switches are omitted.
  Snapshot look();

 private:
  struct Known {
    explicit Known(size_t queue_pairs) : choice(queue_pairs) {}
    std::optional<TelemetryClient> client;
    QueuePairChoice choice;
    std::string program;
    Nanos not_before{0};  // no requests before, after a missing reply
    bool seen = false;    // in the current search
  };

  void find_sockets();
  // Whether the process has hosts or switches; nothing if it does not reply.
  std::optional<bool> query(const std::filesystem::path& socket, Known& known, ProcessSample& seen);

  std::filesystem::path folder_;
  std::string prefix_;
  size_t queue_pairs_;
  std::map<std::filesystem::path, Known> known_;  // by socket path
};

// Monotonic time, for rates and time-outs.
Nanos steady_now();

}  // namespace roci::top

// The processes of this user that answer on DPDK's telemetry socket, found by their folders, and what they say.
//
// A process is asked for each kind of thing that it may have: switches (switch_reader.hpp) and hosts (host_reader.hpp).
// Another one is a line in the table of processes.cpp and a place for it in ProcessSeen.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "roci-top/asker.hpp"
#include "roci-top/queue_pair_choice.hpp"
#include "roci-top/snapshot.hpp"

namespace roci::top {

// Keeps its connections from one look to the next. Owned by one thread.
class Processes {
 public:
  // `folder`: DPDK's (telemetry/runtime_folder.hpp). Only processes whose prefix begins with `prefix` are looked at, and of
  // the queue pairs of each host so many closely.
  Processes(std::filesystem::path folder, std::string prefix, size_t queue_pairs)
      : folder_(std::move(folder)), prefix_(std::move(prefix)), queue_pairs_(queue_pairs) {}

  // What all of them say now; those that have nothing of ours are left out.
  Snapshot look();

 private:
  struct Known {
    explicit Known(size_t queue_pairs) : choice(queue_pairs) {}
    std::optional<Asker> asker;
    QueuePairChoice choice;
    std::string program;
    Nanos not_before{0};  // after it did not answer
    bool seen = false;    // in this look
  };

  void find_sockets();
  // Whether it had something to say; nothing when it does not answer.
  std::optional<bool> ask(const std::filesystem::path& socket, Known& known, ProcessSeen& seen);

  std::filesystem::path folder_;
  std::string prefix_;
  size_t queue_pairs_;
  std::map<std::filesystem::path, Known> known_;  // by their sockets
};

// Time for rates and patience.
Nanos steady_now();

}  // namespace roci::top

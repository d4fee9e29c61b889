#include "roci-top/readers/processes.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>

#include "roci-top/readers/host_reader.hpp"
#include "roci-top/readers/switch_reader.hpp"
#include "telemetry/runtime_folder.hpp"

namespace roci::top {
namespace {

// Time without requests after a process did not reply, so that it does not delay every snapshot.
constexpr Nanos kRetryInterval = 5s;

// Readers of the object types of a process: they add all objects to `seen`, or return an error. A process that does not
// have the command has no such objects.
using Reader = Status (*)(TelemetryClient& client, QueuePairChoice& choice, ProcessSample& seen);
constexpr std::array<Reader, 2> kKinds = {[](TelemetryClient& client, QueuePairChoice&, ProcessSample& seen) {
                                            return read_switches(client, seen);
                                          },
                                          read_hosts};

std::string program_of(int pid) {
  std::string name;
  std::getline(std::ifstream{"/proc/" + std::to_string(pid) + "/comm"}, name);
  return name;
}

}  // namespace

Nanos steady_now() { return std::chrono::steady_clock::now().time_since_epoch(); }

void Processes::find_sockets() {
  for (auto& [socket, known] : known_) known.seen = false;
  std::error_code ignored;
  for (const auto& folder : std::filesystem::directory_iterator(folder_, ignored)) {
    if (!folder.path().filename().native().starts_with(prefix_)) continue;
    for (const auto& file : std::filesystem::directory_iterator(folder, ignored)) {
      if (file.path().filename().native().starts_with(kTelemetrySocket))
        known_.try_emplace(file.path(), queue_pairs_).first->second.seen = true;
    }
  }
  std::erase_if(known_, [](const auto& entry) { return !entry.second.seen; });
}

std::optional<bool> Processes::query(const std::filesystem::path& socket, Known& known, ProcessSample& seen) {
  if (!known.client) {
    if (steady_now() < known.not_before) return std::nullopt;
    auto made = TelemetryClient::connect(socket);
    if (!made) {
      // No listener: the socket of a process that was killed.
      if (made.error().code == ECONNREFUSED || made.error().code == ENOENT) return false;
      known.not_before = steady_now() + kRetryInterval;
      return std::nullopt;
    }
    known.client = std::move(*made);
    known.program = program_of(known.client->pid());
  }
  seen.prefix = socket.parent_path().filename();
  seen.pid = known.client->pid();
  seen.program = known.program;
  for (const Reader read : kKinds) {
    if (read(*known.client, known.choice, seen)) continue;
    known.client.reset();
    known.not_before = steady_now() + kRetryInterval;
    return std::nullopt;
  }
  return !seen.switches.empty() || !seen.hosts.empty();
}

Snapshot Processes::look() {
  find_sockets();
  Snapshot snapshot;
  snapshot.at = steady_now();
  for (auto& [socket, known] : known_) {
    ProcessSample seen;
    const std::optional<bool> answered = query(socket, known, seen);
    if (!answered) ++snapshot.silent;
    if (answered.value_or(false)) snapshot.processes.push_back(std::move(seen));
  }
  return snapshot;
}

}  // namespace roci::top

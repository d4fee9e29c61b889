// A running switch: its ports with optional fault injection, worker threads, telemetry commands, and reload of the
// configuration.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "port/dpdk/ethdev_port.hpp"
#include "port/realtime_runner.hpp"
#include "port/shm/shm_join.hpp"
#include "port/shm/shm_switch.hpp"
#include "roci-switch/command_slot.hpp"
#include "roci-switch/endpoints.hpp"
#include "roci-switch/reload.hpp"
#include "roci-switch/report.hpp"
#include "roci-switch/switch_file.hpp"

namespace roci {

// Owns a switch and its threads. Created, used and destroyed by one thread.
class SwitchProcess {
 public:
  // Opens the ports and starts forwarding. `path` is that of the file, for error messages.
  static Result<std::unique_ptr<SwitchProcess>> start(SwitchFile file, const std::string& path);
  ~SwitchProcess() { stop(); }
  SwitchProcess(const SwitchProcess&) = delete;
  SwitchProcess& operator=(const SwitchProcess&) = delete;

  // Rereads the file and applies changeable values. Returns a description of the changes. An error specifies what was
  // applied: nothing, or the changes of the workers that it names.
  Result<std::string> reload();
  // Stops the forwarding threads. Counters remain readable.
  void stop();

  [[nodiscard]] const std::string& name() const { return file_.sw.name; }
  // Whether the switch has ports in shared memory.
  [[nodiscard]] bool shares_memory() const { return shm_ != nullptr; }
  // Stops sending to processes that have exited without releasing their slots in shared memory.
  void release_slots();
  // Whether a process has a slot in shared memory, or is connected to a memif server port.
  [[nodiscard]] bool has_clients() const;
  [[nodiscard]] size_t port_count() const { return ports_.size(); }
  // The folder of crash notifications; empty if not configured.
  [[nodiscard]] const std::string& crash_notices() const { return file_.crash_notices; }
  [[nodiscard]] std::optional<size_t> find_port(std::string_view name) const;
  // Injects frames as if received on the port. Not for the data path: waits for the thread that polls the port.
  Status insert(size_t port, std::span<const std::vector<uint8_t>> frames);
  [[nodiscard]] SwitchReport report() const { return SwitchReport{*switch_, faulty_}; }

 private:
  SwitchProcess(SwitchFile file, const std::string& path) : path_(path), file_(std::move(file)) {}

  Status open();
  Status open_pool();
  Status open_ports();
  Result<std::unique_ptr<Port>> open_port(size_t index);
  [[nodiscard]] bool is_locked(uint32_t slot) const;
  // Both may be called by any thread that does not poll. apply() requires `changing_`, and stores the changes in file_.
  Status apply(const Reload& change);
  Status set_faults(size_t port, const PortFaults& faults);

  const std::string path_;
  std::mutex changing_;
  SwitchFile file_;  // current configuration; changes under `changing_`

  std::shared_ptr<MbufPool> pool_;
  std::optional<ShmSwitchSlot> shm_slot_;
  std::unique_ptr<ShmSwitch> shm_;  // null without ports in shared memory
  std::vector<std::unique_ptr<Port>> ports_;
  std::vector<FaultyPort*> faulty_;  // subset of ports_; empty if faults are not enabled
  std::unique_ptr<Switch> switch_;
  std::vector<std::unique_ptr<CommandSlot>> command_slots_;  // one per worker
  std::unique_ptr<RealtimeRunner> runner_;
  std::unique_ptr<SwitchEndpoints> endpoints_;
};

}  // namespace roci

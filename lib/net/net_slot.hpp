// Slot of a process in a network of this machine.
#pragma once

#include <filesystem>
#include <memory>

#include "base/os/file_lock.hpp"
#include "base/os/private_folder.hpp"
#include "device/config/device_config.hpp"
#include "net/net_config.hpp"
#include "port/crash_notice.hpp"
#include "port/dpdk/eal.hpp"
#include "port/port.hpp"
#include "port/shm/shm_segment.hpp"

namespace roci {

// Holds a slot. The slot becomes free when the object is destroyed or the process exits, for any reason. Child
// processes do not inherit it.
class NetSlot {
 public:
  // Takes the lowest free slot of the network with this folder (net/runtime_folder.hpp). Fails if all slots are taken,
  // with the process ids of their owners, and if the network requires a switch that does not run. EPERM if another user
  // can change the folder.
  static Result<std::unique_ptr<NetSlot>> take(const std::filesystem::path& path);
  // Starts DPDK and opens the port of the slot, to the switch or, without a switch, to the other processes. The
  // NetSlot must outlive the port.
  [[nodiscard]] Result<std::unique_ptr<Port>> open_port(const EalConfig& eal) const;

  [[nodiscard]] uint32_t number() const { return number_; }
  // Configuration of the device: port (a name only), MAC, addresses, and congestion control of the network. If the
  // algorithm of ROCI_CC, or else of the network, requires in-band telemetry, the device adds it to every packet.
  [[nodiscard]] const DeviceFile& device() const { return device_; }
  // Crash notifications of earlier owners of the slot, which are removed when their peers have read them.
  [[nodiscard]] const std::vector<std::filesystem::path>& stale_files() const { return stale_files_; }
  // Opens the file for the crash notifications of this process.
  [[nodiscard]] Result<std::unique_ptr<CrashNoticeFile>> open_crash_notices() const;

 private:
  NetSlot(std::filesystem::path folder, NetConfig net, ProcessLock lock, uint32_t number, DeviceFile device)
      : folder_(std::move(folder)),
        net_(std::move(net)),
        lock_(std::move(lock)),
        number_(number),
        device_(std::move(device)) {}
  static Result<std::unique_ptr<NetSlot>> take_any(const std::filesystem::path& folder, const NetConfig& net);
  Status join();
  [[nodiscard]] std::string crash_notices_name() const;

  const std::filesystem::path folder_;  // of the network
  const NetConfig net_;
  ProcessLock lock_;
  uint32_t number_;
  DeviceFile device_;
  std::shared_ptr<ShmSegment> segment_;
  std::vector<std::filesystem::path> stale_files_;
};

// Owner of a slot.
struct TakenSlot {
  uint32_t number = 0;
  pid_t pid = 0;
};
// EXDEV: a slot is taken by a process of another PID namespace.
Result<std::vector<TakenSlot>> taken_slots(const std::filesystem::path& folder, uint32_t slots);

// State of the network's switch. The process id is 0 while the switch starts.
struct NetSwitchState {
  bool running = false;
  pid_t pid = 0;
};
Result<NetSwitchState> net_switch_state(const std::filesystem::path& folder);
// Process id in the ready file of a switch, which may have been killed; 0 without one.
pid_t announced_switch(const PrivateFolder& folder);

}  // namespace roci

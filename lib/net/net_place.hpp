// A place in a network of this machine: what a process has there while it takes part.
#pragma once

#include <filesystem>
#include <memory>

#include "base/file_lock.hpp"
#include "device/device_config.hpp"
#include "net/net_config.hpp"
#include "port/eal.hpp"
#include "port/last_words.hpp"
#include "port/port.hpp"
#include "port/shm_segment.hpp"

namespace roci {

// Free again when the object is gone or the process is, however it ends. Children of the process do not have it.
class NetPlace {
 public:
  // Takes the lowest free place of the network whose folder it is (net/runtime_folder.hpp). Fails when all places are taken,
  // with the process ids of those that have them, and when the network needs a switch and that does not run.
  static Result<std::unique_ptr<NetPlace>> take(const std::filesystem::path& folder);
  // Starts DPDK and opens the place's port: to the switch, or in a network without one to the other processes. The place
  // outlives the port.
  [[nodiscard]] Result<std::unique_ptr<Port>> open_port(const EalConfig& eal) const;

  [[nodiscard]] uint32_t number() const { return number_; }
  // The device's configuration: port (a name only), MAC, addresses, and the network's congestion control. Where the algorithm of
  // ROCI_CC, or else of the network, requires in-band telemetry, the device adds it to every packet.
  [[nodiscard]] const DeviceFile& device() const { return device_; }
  // The file for this process's crash notifications.
  [[nodiscard]] Result<std::unique_ptr<LastWords>> open_last_words() const;

 private:
  NetPlace(std::filesystem::path folder, NetConfig net, ProcessLock lock, uint32_t number, DeviceFile device)
      : folder_(std::move(folder)),
        net_(std::move(net)),
        lock_(std::move(lock)),
        number_(number),
        device_(std::move(device)) {}
  static Result<std::unique_ptr<NetPlace>> take_any(const std::filesystem::path& folder,
                                                    const NetConfig& net);
  Status join();

  const std::filesystem::path folder_;  // of the network
  const NetConfig net_;
  ProcessLock lock_;
  uint32_t number_;
  DeviceFile device_;
  std::shared_ptr<ShmSegment> segment_;
  std::vector<std::filesystem::path> outlived_;  // what earlier processes of this place have left (PeerWatch)
};

// Who has a place.
struct TakenPlace {
  uint32_t number = 0;
  pid_t pid = 0;
};
Result<std::vector<TakenPlace>> taken_places(const std::filesystem::path& folder, uint32_t places);

// Whether the network's switch runs; its process id, 0 while it is only starting.
struct NetSwitchState {
  bool running = false;
  pid_t pid = 0;
};
NetSwitchState net_switch_state(const std::filesystem::path& folder);

}  // namespace roci

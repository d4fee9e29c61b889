// A place in a network of this machine: what a process has there while it takes part.
#pragma once

#include <filesystem>
#include <memory>

#include "base/file_lock.hpp"
#include "device/device_config.hpp"
#include "net/net_config.hpp"
#include "port/last_words.hpp"

namespace roci {

// Free again when the object is gone or the process is, however it ends. Children of the process do not have it.
class NetPlace {
 public:
  // Takes the lowest free place of the network whose folder it is (net/runtime_folder.hpp). Fails when the network's switch
  // does not run, and when all places are taken: then the error says by whom.
  // What the device then needs: EthdevPort::open() and wait_for_link(), which tries again for as long as the switch has not
  // noticed yet that the one who had the place before is gone.
  static Result<std::unique_ptr<NetPlace>> take(const std::filesystem::path& folder);

  [[nodiscard]] uint32_t number() const { return number_; }
  // A port into the switch, with this place's MAC and addresses, and what the network says of congestion control. Where
  // ROCI_CC, or else the network, names an algorithm that needs in-band telemetry, the device begins it with every packet.
  [[nodiscard]] const DeviceFile& device() const { return device_; }
  // Where this process leaves what the network's switch is to tell others when it is gone.
  [[nodiscard]] Result<std::unique_ptr<LastWords>> open_last_words() const;

 private:
  NetPlace(std::filesystem::path folder, ProcessLock lock, uint32_t number, DeviceFile device)
      : folder_(std::move(folder)), lock_(std::move(lock)), number_(number), device_(std::move(device)) {}

  const std::filesystem::path folder_;  // of the network
  ProcessLock lock_;
  uint32_t number_;
  DeviceFile device_;
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

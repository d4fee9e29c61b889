#include "net/net_place.hpp"

#include <unistd.h>

#include <fstream>

#include "congestion/algorithms.hpp"
#include "net/net_switch.hpp"
#include "net/runtime_folder.hpp"

namespace roci {
namespace {

std::filesystem::path place_file(const std::filesystem::path& folder, uint32_t place) {
  return folder / kNetPlaces / std::to_string(place);
}

// What congestion control of the process is: ROCI_CC precedes, as everywhere.
std::string chosen_profile(const NetConfig& net) {
  const char* chosen = std::getenv("ROCI_CC");
  return chosen != nullptr && *chosen != '\0' ? chosen : net.congestion_control.profile;
}

bool needs_telemetry(const std::string& profile) {
  if (profile == "none") return false;
  const Algorithms algorithms;
  const auto found = algorithms.find(profile);
  return found && ((*found)->capabilities & ROCI_CC_NEEDS_INT) != 0;
}

DeviceFile device_of(const NetConfig& net, const std::filesystem::path& folder, uint32_t place) {
  DeviceFile file;
  file.connection_manager = net.connection_manager;
  file.port.device = place_port(folder, place);
  file.port.mtu = net.mtu;
  file.port.mac = net.mac(place);
  for (const IpNetwork& network : net.networks)
    file.device.addresses.push_back(net.address(network, place).to_string());
  CongestionControlConfig& control = file.device.congestion_control;
  const std::string profile = chosen_profile(net);
  // The switch drops what its queues have no room for, and what it is told to lose.
  file.device.extensions.selective_repeat = true;
  // By them the round trip is measured with every acknowledgement, and the network's part of it is told from the host's.
  file.device.extensions.timestamps = profile != "none";
  control.profile = net.congestion_control.profile;
  control.base_rtt = net.congestion_control.base_rtt;
  control.line_rate = net.congestion_control.line_rate.value();
  if (net.telemetry.enabled) {
    file.device.telemetry.udp_port = net.telemetry.udp_port;
    file.device.telemetry.domain = net.telemetry.domain;
    if (needs_telemetry(profile)) file.device.telemetry.begin = TelemetryBegin::kAll;
  }
  return file;
}

std::string all_taken(const NetConfig& net, const std::filesystem::path& folder) {
  std::string pids;
  if (const auto taken = taken_places(folder, net.places)) {
    for (const TakenPlace& place : *taken) pids += (pids.empty() ? "" : ", ") + std::to_string(place.pid);
  }
  return "all " + std::to_string(net.places) + " places of the network '" + net.name + "' are taken" +
         (pids.empty() ? "" : " (by the processes " + pids + ")") +
         "; a configuration with more 'places' gives more";
}

}  // namespace

Result<std::unique_ptr<NetPlace>> NetPlace::take(const std::filesystem::path& folder) {
  auto net = read_net_file((folder / kNetFile).string());
  if (!net) return fail(net.error());
  if (!net_switch_state(folder).running) {
    return fail("the switch of the network '" + net->name + "' does not run; start the program with roci-run",
                ENETDOWN);
  }
  for (uint32_t place = 0; place < net->places; ++place) {
    auto lock = ProcessLock::take(place_file(folder, place));
    if (!lock) return fail(lock.error());
    if (!*lock) continue;
    return std::unique_ptr<NetPlace>(
        new NetPlace{folder, std::move(**lock), place, device_of(*net, folder, place)});
  }
  return fail(all_taken(*net, folder), EUSERS);
}

Result<std::unique_ptr<LastWords>> NetPlace::open_last_words() const {
  return LastWords::open(folder_ / kNetLastWords, place_name(number_) + "." + std::to_string(getpid()));
}

Result<std::vector<TakenPlace>> taken_places(const std::filesystem::path& folder, uint32_t places) {
  std::vector<TakenPlace> taken;
  for (uint32_t place = 0; place < places; ++place) {
    const auto holder = ProcessLock::holder(place_file(folder, place));
    if (!holder) return fail(holder.error());
    if (*holder != 0) taken.push_back({place, *holder});
  }
  return taken;
}

NetSwitchState net_switch_state(const std::filesystem::path& folder) {
  NetSwitchState state;
  state.running = SharedLock::is_taken(folder / kNetSwitchLock);
  if (state.running) std::ifstream{folder / kNetSwitchPid} >> state.pid;
  return state;
}

}  // namespace roci

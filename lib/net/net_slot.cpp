#include "net/net_slot.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <sstream>

#include "base/os/private_folder.hpp"
#include "congestion/algorithms.hpp"
#include "congestion/built_in_profiles.hpp"
#include "congestion/profile.hpp"
#include "net/net_switch.hpp"
#include "net/peer_watch.hpp"
#include "net/runtime_folder.hpp"
#include "port/shm/shm_join.hpp"
#include "port/shm/shm_port.hpp"

namespace roci {
namespace {

constexpr Nanos kJoinTimeout = 30s;
// For frames that queue pairs keep beyond gaps (BufferBudget), a burst, and the caches of threads.
constexpr uint32_t kShmReceiveBuffers = 2048;

// Congestion control profile of the process. ROCI_CC overrides the network.
std::string chosen_profile(const NetConfig& net) {
  const char* chosen = secure_getenv("ROCI_CC");
  return chosen != nullptr && *chosen != '\0' ? chosen : net.congestion_control.profile;
}

bool has_algorithm(const std::string& profile) {
  return profile != Profiles::kNone && profile != Profiles::kWindow;
}

bool needs_telemetry(const std::string& profile) {
  if (!has_algorithm(profile)) return false;
  const Algorithms algorithms;
  const auto found = algorithms.find(algorithm_of(profile));
  return found && ((*found)->capabilities & ROCI_CC_NEEDS_INT) != 0;
}

DeviceFile device_of(const NetConfig& net, uint32_t slot) {
  DeviceFile file;
  file.connection_manager = net.connection_manager;
  file.port.device = "shm" + std::to_string(slot);
  file.port.mtu = net.mtu;
  file.port.mac = net.mac(slot);
  for (const IpNetwork& network : net.networks)
    file.device.addresses.push_back(net.address(network, slot).to_string());
  CongestionControlConfig& control = file.device.congestion_control;
  const std::string profile = chosen_profile(net);
  // Frames can be lost in full queues and rings, for lack of receive buffers, and by fault injection.
  file.device.extensions.selective_repeat = true;
  // Time stamps provide a round-trip time with each acknowledgment, and separate the network's part of it from the
  // host's.
  file.device.extensions.timestamps = has_algorithm(profile);
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
  if (const auto taken = taken_slots(folder, net.slots)) {
    for (const TakenSlot& slot : *taken) pids += (pids.empty() ? "" : ", ") + std::to_string(slot.pid);
  }
  return "all " + std::to_string(net.slots) + " slots of the network '" + net.name + "' are taken" +
         (pids.empty() ? "" : " (by the processes " + pids + ")") +
         "; increase 'slots' in the network's configuration";
}

}  // namespace

Result<std::unique_ptr<NetSlot>> NetSlot::take(const std::filesystem::path& path) {
  const auto opened = PrivateFolder::open(path);
  if (!opened) return fail(opened.error().within("the network's folder"));
  const std::filesystem::path& folder = opened->path();
  if (const auto present = read_net(*opened); !present) return fail(present.error());
  // Under this lock the description does not change. A process that finds a slot taken also finds the shared memory.
  const auto joining = SharedLock::wait(folder / kShmJoinLock, kJoinTimeout);
  if (!joining) return fail(joining.error().within("network '" + folder.filename().string() + "'"));
  auto net = read_net(*opened);
  if (!net) return fail(net.error());
  // While no process is in the network, another roci-run may change its description.
  if (const char* const wanted = secure_getenv(kNetDescriptionVariable);
      wanted != nullptr && *wanted != '\0' && description_id(*net) != wanted) {
    return fail("the network '" + net->name +
                    "' was changed to another description after this program was started; use another name",
                EBUSY);
  }
  const auto state = net_switch_state(folder);
  if (!state) return fail(state.error());
  if (net->needs_switch() && !state->running) {
    return fail(
        "the switch of the network '" + net->name + "' is not running; start the program with roci-run",
        ENETDOWN);
  }
  auto slot = take_any(folder, *net);
  if (slot) ROCI_TRY((*slot)->join());
  return slot;
}

Result<std::unique_ptr<NetSlot>> NetSlot::take_any(const std::filesystem::path& folder,
                                                   const NetConfig& net) {
  for (uint32_t slot = 0; slot < net.slots; ++slot) {
    auto lock = ProcessLock::take(shm_slot_file(folder, slot));
    if (!lock) return fail(lock.error());
    if (!*lock) continue;
    return std::unique_ptr<NetSlot>(new NetSlot{folder, net, std::move(**lock), slot, device_of(net, slot)});
  }
  return fail(all_taken(net, folder), EUSERS);
}

Status NetSlot::join() {
  auto segment = find_segment(folder_, number_);
  if (!segment) return fail(segment.error().within("network '" + net_.name + "'"));
  const bool first = *segment == nullptr;
  if (first && net_.needs_switch())
    return fail("the switch of the network '" + net_.name + "' is not ready", ENETDOWN);
  if (first) {
    segment = ShmSegment::create();
    if (!segment) return fail(segment.error().within("network '" + net_.name + "'"));
  }
  segment_ = std::move(*segment);
  ROCI_TRY(announce_segment(folder_, lock_, segment_));
  if (net_.needs_switch()) return {};  // the switch removes crash notifications
  // Crash notifications of earlier processes. The first process removes all of them, since no process is left to read
  // them. Later processes remove those of their slot after a delay, because peers may still read them.
  // The file of this process id is replaced, as after exec().
  const std::string own_notices = crash_notices_name();
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / kNetCrashNotices, ignored)) {
    if (first) {
      std::filesystem::remove(entry.path(), ignored);
    } else if (const std::string name = entry.path().filename().string();
               name.starts_with(slot_name(number_) + ".") && name != own_notices) {
      stale_files_.push_back(entry.path());
    }
  }
  return {};
}

Result<std::unique_ptr<Port>> NetSlot::open_port(const EalConfig& eal) const {
  ROCI_TRY(start_eal(eal));
  auto pool =
      MbufPool::create(device_.device.name, kShmReceiveBuffers, EthdevPort::data_room_for("", net_.mtu));
  if (!pool) return fail(pool.error());
  ShmPortConfig config;
  config.name = device_.port.device;
  config.slot = number_;
  config.mtu = net_.mtu;
  config.pool = std::move(*pool);
  for (uint32_t slot = 0; slot < net_.slots; ++slot) {
    SlotAddresses addresses{net_.mac(slot), {IpAddress::link_local(net_.mac(slot))}};
    for (const IpNetwork& network : net_.networks)
      addresses.ips.push_back(net_.address(network, slot).address);
    config.slots.push_back(std::move(addresses));
  }
  config.via_switch = net_.needs_switch();
  config.needs_icrc = net_.needs_icrc();
  config.sender_placement = net_.sender_placement;
  config.marks = net_.marking.enabled && !config.via_switch;
  config.kmin = net_.marking.kmin.value();
  config.kmax = net_.marking.kmax.value();
  config.pmax = net_.marking.pmax;
  if (net_.telemetry.enabled && !config.via_switch) {
    config.telemetry_port = net_.telemetry.udp_port;
    config.telemetry_domain = net_.telemetry.domain;
  }
  config.rate = net_.congestion_control.line_rate;
  auto port = ShmPort::open(segment_, std::move(config));
  if (!port) return fail(port.error());
  auto watch = PeerWatch::start(**port, folder_, stale_files_);
  if (!watch) return fail(watch.error());
  (*port)->set_contact_listener(std::move(*watch));
  return std::unique_ptr<Port>{std::move(*port)};
}

std::string NetSlot::crash_notices_name() const {
  return slot_name(number_) + "." + std::to_string(getpid());
}

Result<std::unique_ptr<CrashNoticeFile>> NetSlot::open_crash_notices() const {
  return CrashNoticeFile::open(folder_ / kNetCrashNotices, crash_notices_name());
}

Result<std::vector<TakenSlot>> taken_slots(const std::filesystem::path& folder, uint32_t slots) {
  std::vector<TakenSlot> taken;
  for (uint32_t slot = 0; slot < slots; ++slot) {
    const auto holder = ProcessLock::holder(shm_slot_file(folder, slot));
    if (!holder) return fail(holder.error());
    if (*holder != 0) taken.push_back({slot, *holder});
  }
  return taken;
}

pid_t announced_switch(const PrivateFolder& folder) {
  pid_t pid = 0;
  if (const auto text = folder.read(kNetSwitchPid)) std::istringstream{*text} >> pid;
  return pid;
}

Result<NetSwitchState> net_switch_state(const std::filesystem::path& folder) {
  const auto taken = SharedLock::is_taken(folder / kNetSwitchLock);
  if (!taken) return fail(taken.error());
  NetSwitchState state;
  state.running = *taken;
  if (!state.running) return state;
  if (const auto opened = PrivateFolder::open(folder)) {
    state.pid = announced_switch(*opened);
  }
  return state;
}

}  // namespace roci

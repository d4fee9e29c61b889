#include "roci-switch/switch_file.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "base/units.hpp"
#include "port/shm/shm_segment.hpp"
#include "port/sim/faulty_port.hpp"
#include "switch/forwarding/router.hpp"
#include "switch/pipeline/handoff.hpp"
#include "wire/headers/headers.hpp"

namespace roci {
namespace {

// All ports in shared memory use the slot of the switch, so they must belong to one worker.
Status check_shared_memory(const ConfigNode& node, const SwitchFile& file) {
  bool any = false;
  for (size_t i = 0; i < file.devices.size(); ++i) {
    const EthdevConfig& device = file.devices[i];
    if (!device.device.starts_with("shm")) continue;
    any = true;
    if (!shm_slot_of(device))
      return node.error("ports", "'" + device.device +
                                     "' is not a slot in shared memory; allowed are shm0 to shm" +
                                     std::to_string(kShmSwitchSlot - 1));
    if (file.sw.ports[i].worker != 0)
      return node.error("ports",
                        "'" + device.device + "' must be polled by worker 0, as all ports in shared memory");
  }
  if (any && file.shared_memory.empty())
    return node.error("shared_memory",
                      "ports in shared memory require 'shared_memory', the folder of the network");
  return {};
}

uint64_t largest_frame(const EthdevConfig& device) {
  return device.mtu + sizeof(EthernetHeader) + sizeof(VlanHeader);
}

uint32_t workers_of_file(const SwitchFile& file) {
  uint32_t workers = 0;
  for (const SwitchPortConfig& port : file.sw.ports) workers = std::max(workers, port.worker + 1);
  return workers;
}

// Names are arguments of telemetry commands, which commas and slashes separate. A device belongs to one port. A queue
// that cannot hold a frame would drop every frame of the largest size.
Status check_ports_of_file(const ConfigNode& node, const SwitchFile& file) {
  std::set<std::string> devices;
  uint64_t frame = 0;
  for (size_t i = 0; i < file.devices.size(); ++i) {
    const EthdevConfig& device = file.devices[i];
    const SwitchPortConfig& port = file.sw.ports[i];
    const std::string where = "port '" + port.name + "': ";
    if (port.name.empty() || port.name.find_first_of(",/") != std::string::npos)
      return node.error("ports", where + "the name must not be empty or contain ',' or '/'");
    const auto slot = shm_slot_of(device);
    const std::string name =
        slot ? "shm" + std::to_string(*slot) : device.device.substr(0, device.device.find(','));
    if (!devices.insert(name).second)
      return node.error("ports", where + "the device '" + name + "' belongs to another port");
    if (port.queue.value() < largest_frame(device))
      return node.error("ports", where + "queue must hold a frame, that is, be at least " +
                                     std::to_string(largest_frame(device)) + "B with an mtu of " +
                                     std::to_string(device.mtu));
    frame = std::max(frame, largest_frame(device));
  }
  for (const SwitchShaperConfig& shaper : file.sw.shapers) {
    if (shaper.queue.value() < frame)
      return node.error("shapers", "shaper " + shaper.prefix.to_string() +
                                       ": queue must hold a frame of the ports, that is, be at least " +
                                       std::to_string(frame) + "B");
  }
  return {};
}

Status read_port(ConfigNode& item, SwitchFile& file) {
  EthdevConfig& device = file.devices.emplace_back();
  device.promiscuous = true;  // a bridge receives frames for any MAC
  ROCI_TRY(read_device(item, device));
  PortFaults& faults = file.faults.emplace_back();
  if (item.has("faults") && !file.injection.enabled) return item.error("faults", kFaultsNotEnabled);
  return item.section("faults", Need::kOptional,
                      [&](ConfigNode& section) { return read_faults(section, faults); });
}

Status read_switch_section(ConfigNode& node, SwitchFile& file) {
  ROCI_TRY(read_idle(node, file.idle));
  ROCI_TRY(node.optional("awake", file.awake));
  ROCI_TRY(node.optional_list("cores", file.cores, integer_in<unsigned>(0, 4095)));
  ROCI_TRY(node.section("faults", Need::kOptional, [&](ConfigNode& section) -> Status {
    if (Status s = section.optional("enabled", file.injection.enabled); !s) return s;
    return section.optional("seed", file.injection.seed);
  }));
  ROCI_TRY(node.optional("shared_memory", file.shared_memory));
  ROCI_TRY(node.optional(node.renamed("crash_notices", "last_words"), file.crash_notices));
  ROCI_TRY(read_switch(node, file.sw, [&](ConfigNode& item, size_t) { return read_port(item, file); }));
  ROCI_TRY(check_shared_memory(node, file));
  ROCI_TRY(check_ports_of_file(node, file));
  const uint32_t workers = workers_of_file(file);
  if (!file.cores.empty() && file.cores.size() != workers) {
    return node.error("cores", std::to_string(file.cores.size()) + " cores are listed, and the ports have " +
                                   std::to_string(workers) + " worker" + (workers == 1 ? "" : "s"));
  }
  return {};
}

}  // namespace

std::optional<uint32_t> shm_slot_of(const EthdevConfig& device) {
  constexpr std::string_view kPrefix = "shm";
  const std::string_view text = device.device;
  if (!text.starts_with(kPrefix)) return std::nullopt;
  const auto slot = parse_integer(text.substr(kPrefix.size()), 0, kShmSwitchSlot - 1);
  if (!slot) return std::nullopt;
  return static_cast<uint32_t>(*slot);
}

uint64_t required_buffers(const SwitchFile& file) {
  constexpr uint64_t kSpare = 2048;
  const uint64_t workers = workers_of_file(file);
  uint64_t count = kSpare + workers * (workers - 1) * SwitchRings::kRing;
  for (size_t i = 0; i < file.devices.size(); ++i) {
    const EthdevConfig& device = file.devices[i];
    count += file.sw.ports[i].queue_frames + device.rx_descriptors + device.tx_descriptors;
    if (file.injection.enabled) count += FaultyPort::kMaxHeld;
  }
  // Each worker has its own shapers and its own router.
  for (const SwitchShaperConfig& shaper : file.sw.shapers) count += workers * shaper.queue_frames;
  if (!file.sw.interfaces.empty()) count += workers * Router::kMaxWaiting;
  return count;
}

Result<SwitchFile> read_switch_file(const std::string& path) {
  SwitchFile file;
  file.eal.telemetry = true;  // monitoring is enabled by default
  const Status status = read_config(path, [&](ConfigNode& root) -> Status {
    if (Status eal = read_eal(root, file.eal); !eal) return eal;
    return root.section("switch", Need::kRequired,
                        [&](ConfigNode& node) { return read_switch_section(node, file); });
  });
  if (!status) return fail(status.error());
  return file;
}

}  // namespace roci

#include "net/net_switch.hpp"

#include <sstream>

#include "net/runtime_folder.hpp"
#include "port/port_config.hpp"

namespace roci {
namespace {

// Frames are copied between rings and buffers, so a port never holds more than a burst of them.
constexpr unsigned kSlotDescriptors = 64;

void write_queue(std::ostringstream& out, const NetConfig& net) {
  out << "      mtu: " << net.mtu << "\n      rate: " << net.rate.value()
      << "bps\n      queue: " << net.queue.value() << "B\n      queue_frames: " << net.queue_frames << "\n";
}

void write_classes(std::ostringstream& out, const NetMarking& marking) {
  if (!marking.enabled) return;
  out << "  classes:\n";
  for (unsigned c = 0; c < 8; ++c) {
    out << "    - {class: " << c << ", mark: {kmin: " << marking.kmin.value()
        << "B, kmax: " << marking.kmax.value() << "B, pmax: " << marking.pmax << "}}\n";
  }
}

// With faults, each port may hold delayed frames.
uint32_t memory_of(const NetConfig& net) {
  constexpr uint64_t kBeside = 512;  // bytes of a buffer in addition to the packet
  if (!net.faults) return net.memory_mib;
  const uint64_t held = uint64_t{net.slots} * FaultyPort::kMaxHeld * (net.mtu + kBeside);
  return net.memory_mib + static_cast<uint32_t>(held >> 20) + 1;
}

// A process cannot send with the addresses of another slot, and neither can the uplink.
void write_bindings(std::ostringstream& out, const NetConfig& net, uint32_t slot) {
  out << "      macs: [\"" << net.mac(slot).to_string() << "\"]\n      addresses: [";
  for (size_t i = 0; i < net.networks.size(); ++i) {
    out << (i == 0 ? "\"" : ", \"") << net.address(net.networks[i], slot).address.to_string() << '"';
  }
  out << "]\n";
}

}  // namespace

std::string net_switch_text(const NetConfig& net, const std::filesystem::path& folder) {
  std::ostringstream out;
  out.precision(17);
  out << "# Written by roci-run for the network '" << net.name << "'.\n"
      << "eal: {memory: " << memory_of(net) << "MiB, pci: " << (net.pci ? "true" : "false") << "}\n"
      << "switch:\n  name: \"" << net.name << "\"\n  idle: " << idle_policy_name(net.idle)
      << "\n  shared_memory: " << quoted_yaml(folder.string())
      << "\n  crash_notices: " << quoted_yaml((folder / kNetCrashNotices).string()) << "\n";
  if (net.faults) out << "  faults: {enabled: true, seed: " << net.fault_seed << "}\n";
  if (net.telemetry.enabled) {
    out << "  telemetry: {udp_port: " << net.telemetry.udp_port
        << ", switch_id: 1, domain: " << net.telemetry.domain << "}\n";
  }
  write_classes(out, net.marking);
  out << "  ports:\n";
  for (uint32_t slot = 0; slot < net.slots; ++slot) {
    out << "    - name: " << slot_name(slot) << "\n      device: shm" << slot << "\n";
    write_queue(out, net);
    out << "      rx_descriptors: " << kSlotDescriptors << "\n      tx_descriptors: " << kSlotDescriptors
        << "\n";
    write_bindings(out, net, slot);
    if (net.faults) out << "      faults: {" << faults_text(*net.faults) << "}\n";
  }
  if (net.uplink) {
    out << "    - name: uplink\n      device: " << quoted_yaml(net.uplink->device)
        << "\n      mtu: " << net.uplink->mtu << "\n      queue: " << net.queue.value()
        << "B\n      queue_frames: " << net.queue_frames
        << "\n      rx_descriptors: " << net.uplink->rx_descriptors
        << "\n      tx_descriptors: " << net.uplink->tx_descriptors
        << "\n      connect_timeout: " << nanos_text(net.uplink->connect_timeout) << "\n";
    if (net.uplink->mac) out << "      mac: \"" << net.uplink->mac->to_string() << "\"\n";
  }
  return out.str();
}

std::string slot_name(uint32_t slot) { return "slot" + std::to_string(slot); }

}  // namespace roci

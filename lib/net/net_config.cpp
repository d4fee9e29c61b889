#include "net/net_config.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <sstream>

#include "net/runtime_folder.hpp"
#include "port/port_config.hpp"
#include "wire/headers/headers.hpp"

namespace roci {
namespace {

constexpr const char* kStandardV4 = "10.77.0.0/16";
constexpr const char* kStandardV6 = "fd77::/64";
constexpr uint32_t kMaxFirst = 1U << 24;
constexpr Nanos kMaxLinger = 24h * 36'500;  // as --linger of roci-switch

// Number of host numbers in a network.
uint64_t hosts_of(const IpNetwork& network) {
  const unsigned bits = (network.address.is_v4() ? 32U : 128U) - network.prefix_length;
  return bits >= 63 ? UINT64_MAX : uint64_t{1} << bits;
}

Status check_networks(const ConfigNode& node, const NetConfig& net) {
  if (net.networks.empty()) return node.error("addresses", "must name a network, such as [10.77.0.0/16]");
  size_t v4 = 0;
  const uint64_t last = uint64_t{net.first} + net.slots - 1;
  for (const IpNetwork& network : net.networks) {
    v4 += network.address.is_v4() ? 1 : 0;
    // The last address of an IPv4 network is the broadcast address.
    const uint64_t most = hosts_of(network) - (network.address.is_v4() ? 2 : 1);
    if (network.prefix_length == (network.address.is_v4() ? 32 : 128) || last > most)
      return node.error("addresses", network.to_string() + " is too small for " + std::to_string(net.slots) +
                                         " slots from host number " + std::to_string(net.first) + " on");
  }
  if (v4 > 1 || net.networks.size() - v4 > 1)
    return node.error("addresses",
                      "lists two networks of the same IP version; at most one per version is allowed");
  return {};
}

// A smaller queue would drop every frame of the largest size.
Status check_queue(const ConfigNode& node, const NetConfig& net) {
  const uint32_t mtu = std::max(net.mtu, net.uplink ? net.uplink->mtu : uint16_t{0});
  const uint64_t frame = mtu + sizeof(EthernetHeader) + sizeof(VlanHeader);
  if (net.queue.value() >= frame) return {};
  return node.error("queue", "must hold a frame, that is, be at least " + std::to_string(frame) +
                                 "B with an mtu of " + std::to_string(mtu));
}

Status read_marking(ConfigNode& node, NetMarking& marking) {
  return node.section("marking", Need::kOptional, [&](ConfigNode& section) -> Status {
    ROCI_TRY(section.optional("enabled", marking.enabled));
    ROCI_TRY(section.optional("kmin", marking.kmin));
    ROCI_TRY(section.optional("kmax", marking.kmax));
    ROCI_TRY(section.optional("pmax", marking.pmax, number_in(0, 1)));
    if (marking.kmin > marking.kmax) return section.error("kmin", "must not be above kmax");
    return {};
  });
}

Status read_telemetry(ConfigNode& node, NetTelemetry& telemetry) {
  return node.section("telemetry", Need::kOptional, [&](ConfigNode& section) -> Status {
    ROCI_TRY(section.optional("enabled", telemetry.enabled));
    ROCI_TRY(section.optional("udp_port", telemetry.udp_port, integer_in<uint16_t>(1, UINT16_MAX)));
    if (telemetry.udp_port == kRoceUdpPort)
      return section.error("udp_port", "is the UDP port of RoCEv2; use a different port");
    return section.optional("domain", telemetry.domain);
  });
}

Status read_congestion_control(ConfigNode& node, NetCongestionControl& control) {
  return node.section("congestion_control", Need::kOptional, [&](ConfigNode& section) -> Status {
    ROCI_TRY(section.optional("profile", control.profile));
    ROCI_TRY(section.optional("base_rtt", control.base_rtt));
    if (control.base_rtt <= Nanos{0} || control.base_rtt > Nanos{10s})
      return section.error("base_rtt", "must be above 0 and at most 10s");
    ROCI_TRY(section.optional("line_rate", control.line_rate));
    if (control.line_rate.value() == 0) return section.error("line_rate", "must be above 0");
    return {};
  });
}

Status read_faults_of_slots(ConfigNode& node, NetConfig& net) {
  return node.section("faults", Need::kOptional, [&](ConfigNode& section) -> Status {
    net.faults.emplace();
    ROCI_TRY(section.optional("seed", net.fault_seed));
    return read_faults(section, *net.faults);
  });
}

// A whole number of MiB, as in read_eal().
Result<uint32_t> parse_memory(std::string_view text) {
  const auto bytes = parse_bytes(text);
  if (!bytes) return fail(bytes.error());
  const uint64_t mib = bytes->value() >> 20;
  if (bytes->value() != mib << 20 || mib < 64 || mib > (1U << 20))
    return fail("'" + std::string{text} + "' is not a whole number of MiB from 64MiB to 1TiB");
  return static_cast<uint32_t>(mib);
}

Status read_net_section(ConfigNode& node, NetConfig& net) {
  ROCI_TRY(node.optional("name", net.name));
  if (const Status good = check_net_name(net.name); !good) return node.error("name", good.error().message);
  ROCI_TRY(node.optional_list("addresses", net.networks));
  for (IpNetwork& network : net.networks) network = network.masked();
  ROCI_TRY(node.optional("first", net.first, integer_in<uint32_t>(1, kMaxFirst)));
  const std::string_view slots = node.renamed("slots", "places");
  ROCI_TRY(node.optional(slots, net.slots, integer_in<uint32_t>(1, kMaxSlots)));
  ROCI_TRY(check_networks(node, net));
  ROCI_TRY(node.optional("switch", net.always_switch, one_of<bool>({{"auto", false}, {"always", true}})));
  ROCI_TRY(node.optional("icrc", net.always_icrc, one_of<bool>({{"auto", false}, {"on", true}})));
  ROCI_TRY(node.optional("placement", net.sender_placement,
                         one_of<bool>({{"receiver", false}, {"sender", true}})));
  ROCI_TRY(node.optional("mtu", net.mtu, integer_in<uint16_t>(576, 9600)));
  ROCI_TRY(node.optional("linger", net.linger));
  if (net.linger <= Nanos{0} || (net.linger > kMaxLinger && net.linger != kNever))
    return node.error("linger", "must be never, or above 0 and at most 876000h");
  ROCI_TRY(read_idle(node, net.idle));
  ROCI_TRY(node.optional("memory", net.memory_mib, parse_memory));
  ROCI_TRY(node.optional("rate", net.rate));
  ROCI_TRY(node.optional("queue", net.queue));
  ROCI_TRY(node.optional("queue_frames", net.queue_frames, integer_in<uint32_t>(16, 1U << 16)));
  ROCI_TRY(read_marking(node, net.marking));
  ROCI_TRY(read_telemetry(node, net.telemetry));
  ROCI_TRY(read_congestion_control(node, net.congestion_control));
  ROCI_TRY(read_connection_manager(node, net.connection_manager));
  ROCI_TRY(node.section("uplink", Need::kOptional, [&](ConfigNode& section) -> Status {
    net.uplink.emplace();
    net.uplink->mtu = net.mtu;
    return read_device(section, *net.uplink);
  }));
  ROCI_TRY(check_queue(node, net));
  if (net.uplink && !node.has(slots)) net.slots = kMaxSlots - 1;
  if (net.uplink && net.slots == kMaxSlots)
    return node.error(slots, "must be at most " + std::to_string(kMaxSlots - 1) + " with an uplink");
  ROCI_TRY(node.optional("pci", net.pci));
  ROCI_TRY(read_faults_of_slots(node, net));
  if (net.sender_placement && net.needs_switch())
    return node.error("placement", "sender requires a network without a switch");
  return {};
}

void write_uplink(std::ostringstream& out, const EthdevConfig& uplink) {
  out << "  uplink:\n    device: " << quoted_yaml(uplink.device) << "\n    mtu: " << uplink.mtu
      << "\n    rx_descriptors: " << uplink.rx_descriptors
      << "\n    tx_descriptors: " << uplink.tx_descriptors
      << "\n    connect_timeout: " << nanos_text(uplink.connect_timeout) << "\n";
  if (uplink.mac) out << "    mac: \"" << uplink.mac->to_string() << "\"\n";
}

}  // namespace

NetConfig::NetConfig() {
  for (const char* text : {kStandardV4, kStandardV6}) {
    if (auto network = IpNetwork::parse(text)) networks.push_back(*network);
  }
}

bool NetConfig::needs_switch() const {
  const NetConfig standard;
  return always_switch || rate.value() != 0 || queue != standard.queue ||
         queue_frames != standard.queue_frames || uplink || faults;
}

IpNetwork NetConfig::address(const IpNetwork& network, uint32_t slot) const {
  IpNetwork own = network;
  uint64_t carry = uint64_t{first} + slot;
  for (size_t i = own.address.bytes.size(); carry > 0 && i-- > 0; carry >>= 8) {
    carry += own.address.bytes[i];
    own.address.bytes[i] = static_cast<uint8_t>(carry);
  }
  return own;
}

MacAddress NetConfig::mac(uint32_t slot) const {
  const IpAddress address_of_slot = address(networks.front(), slot).address;
  MacAddress mac{{0x02, 0x77}};
  std::copy_n(address_of_slot.bytes.end() - 4, 4, mac.bytes.begin() + 2);
  return mac;
}

namespace {

ConfigNode::Reader reader_of(RunFile& file, const std::string& path) {
  return [&file, path](ConfigNode& root) -> Status {
    if (root.has("device") && root.has("net"))
      return root.error("contains both a section 'net' and a section 'device'; only one is allowed");
    if (root.has("device")) {
      EalConfig validated;  // the drop-in library reads the section again
      ROCI_TRY(read_eal(root, validated));
      return read_device_section(root, file.device.emplace());
    }
    NetConfig& net = file.net.emplace();
    net.name = std::filesystem::path{path}.stem().string();
    return root.section("net", Need::kRequired,
                        [&](ConfigNode& node) { return read_net_section(node, net); });
  };
}

}  // namespace

Result<RunFile> read_run_file(const std::string& path) {
  RunFile file;
  ROCI_TRY(read_config(path, reader_of(file, path)));
  return file;
}

Result<NetConfig> read_net_file(const std::string& path) {
  auto file = read_run_file(path);
  if (!file) return fail(file.error());
  if (!file->net) return fail("'" + path + "' describes a device, not a network");
  return std::move(*file->net);
}

Result<NetConfig> read_net(const PrivateFolder& folder) {
  const std::string path = (folder.path() / kNetFile).string();
  const auto text = folder.read(kNetFile);
  if (!text) return fail(text.error());
  RunFile file;
  ROCI_TRY(parse_config(*text, path, reader_of(file, path)));
  if (!file.net) return fail("'" + path + "' describes a device, not a network");
  return std::move(*file.net);
}

std::string description_id(const NetConfig& config) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : net_text(config)) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  std::ostringstream out;
  out << std::hex << hash;
  return out.str();
}

std::string nanos_text(Nanos time) { return time == kNever ? "never" : std::to_string(time.count()) + "ns"; }

std::string quoted_yaml(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string net_text(const NetConfig& net) {
  std::ostringstream out;
  out.precision(17);
  out << "# Written by roci-run.\nnet:\n  name: " << net.name << "\n  addresses: [";
  for (size_t i = 0; i < net.networks.size(); ++i)
    out << (i == 0 ? "\"" : ", \"") << net.networks[i].to_string() << '"';
  out << "]\n  first: " << net.first << "\n  slots: " << net.slots
      << "\n  switch: " << (net.always_switch ? "always" : "auto")
      << "\n  icrc: " << (net.always_icrc ? "on" : "auto")
      << "\n  placement: " << (net.sender_placement ? "sender" : "receiver") << "\n  mtu: " << net.mtu
      << "\n  linger: " << nanos_text(net.linger) << "\n  idle: " << idle_policy_name(net.idle)
      << "\n  memory: " << net.memory_mib << "MiB\n  rate: " << net.rate.value()
      << "bps\n  queue: " << net.queue.value() << "B\n  queue_frames: " << net.queue_frames << "\n";
  const auto flag = [](bool value) { return value ? "true" : "false"; };
  out << "  marking: {enabled: " << flag(net.marking.enabled) << ", kmin: " << net.marking.kmin.value()
      << "B, kmax: " << net.marking.kmax.value() << "B, pmax: " << net.marking.pmax << "}\n"
      << "  telemetry: {enabled: " << flag(net.telemetry.enabled) << ", udp_port: " << net.telemetry.udp_port
      << ", domain: " << net.telemetry.domain << "}\n"
      << "  congestion_control: {profile: " << quoted_yaml(net.congestion_control.profile)
      << ", base_rtt: " << nanos_text(net.congestion_control.base_rtt)
      << ", line_rate: " << net.congestion_control.line_rate.value() << "bps}\n"
      << "  connection_manager: {response_timeout: " << nanos_text(net.connection_manager.response_timeout)
      << ", retries: " << unsigned{net.connection_manager.retries} << "}\n"
      << "  pci: " << flag(net.pci) << "\n";
  if (net.uplink) write_uplink(out, *net.uplink);
  if (net.faults) out << "  faults: {seed: " << net.fault_seed << ", " << faults_text(*net.faults) << "}\n";
  return out.str();
}

}  // namespace roci

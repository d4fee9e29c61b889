#include "device/config/device_config.hpp"

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "base/congestion_point.hpp"
#include "congestion/profile.hpp"
#include "device/config/network_key.hpp"
#include "device/host/limits.hpp"
#include "wire/cnm/l3_cnm_guard.hpp"
#include "wire/extensions/extensions.hpp"
#include "wire/extensions/siphash.hpp"
#include "wire/headers/address.hpp"

namespace roci {
namespace {

// Returns the text if it can be parsed as a T. The device parses it again.
template <class T>
Result<std::string> text_of(std::string_view text) {
  return T::parse(text).map([&](const T&) { return std::string{text}; });
}

Result<Bytes> parse_window(std::string_view text) {
  constexpr Bytes kMin = 4_KiB, kMax = 1_GiB;
  auto bytes = parse_bytes(text);
  if (!bytes) return bytes;
  if (*bytes < kMin || *bytes > kMax) {
    return fail("'" + std::string(text) + "' is out of range; 4KiB to 1GiB is allowed");
  }
  return bytes;
}

Status read_addresses(ConfigNode& node, DeviceConfig& device) {
  ROCI_TRY(node.optional_list("addresses", device.addresses, text_of<IpNetwork>));
  ROCI_TRY(node.optional_list("gateways", device.gateways, text_of<IpAddress>));
  return node.each(node.renamed("neighbors", "neighbours"), Need::kOptional, [&](ConfigNode& item) -> Status {
    std::string address, mac;
    ROCI_TRY(item.required("address", address, text_of<IpAddress>));
    ROCI_TRY(item.required("mac", mac, text_of<MacAddress>));
    if (!device.neighbors.emplace(address, mac).second)
      return item.error("address", "another entry has the same address; an address may have one entry");
    return {};
  });
}

// Values of `authenticate`. The booleans are those of earlier versions.
enum class Authentication : uint8_t { kOff, kPrefer, kRequire };

Result<Authentication> parse_authentication(std::string_view text) {
  if (const auto enabled = parse_bool(text)) return *enabled ? Authentication::kPrefer : Authentication::kOff;
  return one_of<Authentication>({{"off", Authentication::kOff},
                                 {"prefer", Authentication::kPrefer},
                                 {"require", Authentication::kRequire}})(text);
}

Status read_authentication(ConfigNode& section, ExtensionConfig& extensions) {
  Authentication wanted = extensions.require_authentication ? Authentication::kRequire
                          : extensions.authenticate         ? Authentication::kPrefer
                                                            : Authentication::kOff;
  ROCI_TRY(section.optional("authenticate", wanted, parse_authentication));
  extensions.authenticate = wanted != Authentication::kOff;
  extensions.require_authentication = wanted == Authentication::kRequire;
  SipKey key{};
  ROCI_TRY(section.optional("network_key", key,
                            [](std::string_view file) { return read_network_key(std::string{file}); }));
  if (section.has("network_key")) extensions.network_key = key;
  ROCI_TRY(section.optional("ignore_cnps", extensions.ignore_cnps));
  if (extensions.ignore_cnps && !extensions.authenticate)
    return section.error("ignore_cnps", "requires authenticate: prefer or require");
  if (extensions.network_key && !extensions.authenticate)
    return section.error("network_key", "requires authenticate: prefer or require");
  if (!extensions.require_authentication) return {};
  if (!extensions.network_key)
    return section.error("authenticate", "require needs network_key, a file with the key of the network");
  if (extensions.mode == ExtensionMode::kOff)
    return section.error("authenticate", "require is not possible with mode: off");
  return {};
}

Status read_extensions(ConfigNode& node, ExtensionConfig& extensions) {
  return node.section("extensions", Need::kOptional, [&](ConfigNode& section) -> Status {
    ROCI_TRY(section.optional(
        "mode", extensions.mode,
        one_of<ExtensionMode>(
            {{"auto", ExtensionMode::kAuto}, {"on", ExtensionMode::kOn}, {"off", ExtensionMode::kOff}})));
    ROCI_TRY(section.optional("selective_repeat", extensions.selective_repeat));
    ROCI_TRY(read_authentication(section, extensions));
    ROCI_TRY(section.optional("timestamps", extensions.timestamps));
    ROCI_TRY(section.optional("source_qpn", extensions.source_qpn));
    ROCI_TRY(section.optional("data_lsn", extensions.data_lsn));
    Bytes window{extensions.receive_window};
    ROCI_TRY(section.optional("receive_window", window, parse_window));
    extensions.receive_window = static_cast<uint32_t>(window.value());
    return {};
  });
}

Status read_telemetry(ConfigNode& node, HostTelemetryConfig& telemetry) {
  return node.section("telemetry", Need::kOptional, [&](ConfigNode& section) -> Status {
    ROCI_TRY(section.required("udp_port", telemetry.udp_port, integer_in<uint16_t>(1, UINT16_MAX)));
    if (telemetry.udp_port == kRoceUdpPort)
      return section.error("udp_port", "is the UDP port of RoCEv2; telemetry requires a different port");
    ROCI_TRY(section.optional("domain", telemetry.domain));
    ROCI_TRY(section.optional("begin", telemetry.begin,
                              one_of<TelemetryBegin>({{"none", TelemetryBegin::kNone},
                                                      {"probe", TelemetryBegin::kProbe},
                                                      {"all", TelemetryBegin::kAll}})));
    ROCI_TRY(section.optional("hops", telemetry.hops, integer_in<uint8_t>(1, kMaxIntHops)));
    ROCI_TRY(section.optional("wants_response", telemetry.wants_response));
    return {};
  });
}

Status read_flow_control(ConfigNode& node, FlowControlConfig& flow) {
  return node.section("flow_control", Need::kOptional, [&](ConfigNode& section) -> Status {
    std::vector<uint8_t> priorities;
    ROCI_TRY(section.optional_list("pfc", priorities, integer_in<uint8_t>(0, 7)));
    if (priorities.empty()) return section.error("pfc", "must list the lossless priorities, such as [3]");
    for (const uint8_t one : priorities) flow.priorities = static_cast<uint8_t>(flow.priorities | 1U << one);
    ROCI_TRY(section.optional("trust", flow.trust_pcp, one_of<bool>({{"dscp", false}, {"pcp", true}})));
    BitsPerSec rate{flow.rate};
    ROCI_TRY(section.optional("rate", rate));
    flow.rate = rate.value();
    Status watched = section.section("pause_watchdog", Need::kOptional, [&](ConfigNode& watchdog) -> Status {
      ROCI_TRY(watchdog.required("detect", flow.watchdog_detect));
      return watchdog.optional("restore", flow.watchdog_restore);
    });
    if (!watched) return watched;
    ROCI_TRY(section.optional("xoff", flow.xoff, integer_in<uint32_t>(1, 1U << 20)));
    ROCI_TRY(section.optional("xon", flow.xon, integer_in<uint32_t>(0, 1U << 20)));
    if (section.has("xon") && flow.xon >= flow.xoff) return section.error("xon", "must be below xoff");
    return {};
  });
}

Status read_receive_point(ConfigNode& node, ReceivePointConfig& point) {
  return node.section("congestion_point", Need::kOptional, [&](ConfigNode& section) -> Status {
    ROCI_TRY(section.required("qeq", point.qeq, integer_in<uint32_t>(1, kMaxReceiveFrames)));
    ROCI_TRY(section.optional("weight", point.weight,
                              number_in(1 / CongestionPoint::kMaxWeight, CongestionPoint::kMaxWeight)));
    if (!CongestionPoint::is_weight(point.weight)) return section.error("weight", "must be a power of two");
    Bytes sample{point.sample};
    ROCI_TRY(section.optional("sample", sample));
    if (sample < Bytes{1000} || sample > 1_GiB) return section.error("sample", "must be 1 KB to 1 GiB");
    point.sample = sample.value();
    return {};
  });
}

Status read_congestion(ConfigNode& node, DeviceConfig& device) {
  CongestionConfig& congestion = device.congestion;
  return node.section("congestion_notification", Need::kOptional, [&](ConfigNode& section) -> Status {
    congestion.tag = true;
    ROCI_TRY(section.optional("tag", congestion.tag));
    std::vector<uint8_t> priorities;
    ROCI_TRY(section.optional_list("priorities", priorities, integer_in<uint8_t>(0, 7)));
    if (!priorities.empty()) congestion.priorities = 0;
    for (const uint8_t one : priorities)
      congestion.priorities = static_cast<uint8_t>(congestion.priorities | 1U << one);
    ROCI_TRY(section.optional("trust", congestion.trust_pcp, one_of<bool>({{"dscp", false}, {"pcp", true}})));
    ROCI_TRY(section.optional("cnm_port", congestion.cnm_port, integer_in<uint16_t>(1, UINT16_MAX)));
    if (congestion.cnm_port == kRoceUdpPort ||
        (congestion.cnm_port != 0 && congestion.cnm_port == device.telemetry.udp_port))
      return section.error("cnm_port", "is used by RoCEv2 or telemetry; use a different port");
    std::array<uint8_t, 16> key{};
    ROCI_TRY(section.optional("cnm_key", key, parse_sip_key));
    if (section.has("cnm_key")) congestion.cnm_key = key;
    if (congestion.cnm_key && congestion.cnm_port == 0) return section.error("cnm_key", "requires cnm_port");
    ROCI_TRY(section.optional("cnm_tolerance", congestion.cnm_tolerance));
    if (congestion.cnm_tolerance <= Nanos{0} || congestion.cnm_tolerance > L3CnmGuard::kMaxTolerance)
      return section.error("cnm_tolerance", "must be above 0 and at most 1 h");
    ROCI_TRY(section.optional(
        "cnm_rate", congestion.cnm_rate,
        integer_in<uint32_t>(1, congestion.cnm_key ? kMaxSignedCnms : uint32_t{10'000'000})));
    ROCI_TRY(section.optional("short_samples", congestion.short_samples));
    return read_receive_point(section, congestion.receive_point);
  });
}

Status read_profile(ConfigNode& item, std::map<std::string, CongestionProfile>& profiles) {
  std::string name;
  CongestionProfile profile;
  ROCI_TRY(item.required("name", name));
  ROCI_TRY(item.required("algorithm", profile.algorithm));
  Nanos base_rtt{0};
  ROCI_TRY(item.optional("base_rtt", base_rtt));
  profile.base_rtt = base_rtt;
  ROCI_TRY(item.optional("fallback", profile.fallback));
  ROCI_TRY(item.optional("dscp", profile.dscp, integer_in(0, 63)));
  Status values = item.section("parameters", Need::kOptional, [&](ConfigNode& parameters) -> Status {
    for (const std::string& key : parameters.keys())
      ROCI_TRY(parameters.required(key, profile.parameters[key], number_in(-1e18, 1e18)));
    return {};
  });
  if (!values) return values;
  if (!profiles.emplace(name, std::move(profile)).second)
    return item.error("name", "another profile has the same name; a name may have one profile");
  return {};
}

// Values are validated here, so that errors contain the file. The device validates them again.
Status read_congestion_control(ConfigNode& node, CongestionControlConfig& control) {
  return node.section("congestion_control", Need::kOptional, [&](ConfigNode& section) -> Status {
    ROCI_TRY(section.optional("profile", control.profile));
    Nanos base_rtt{control.base_rtt};
    ROCI_TRY(section.optional("base_rtt", base_rtt));
    control.base_rtt = base_rtt;
    BitsPerSec line_rate{control.line_rate};
    ROCI_TRY(section.optional("line_rate", line_rate));
    control.line_rate = line_rate.value();
    Nanos burst{0};
    ROCI_TRY(section.optional("burst", burst));
    if (burst < Nanos{0} || burst > kMaxBurst) return section.error("burst", "must be 0 to 100 us");
    if (section.has("burst")) control.burst = burst;
    ROCI_TRY(section.optional_list("plugins", control.plugins));
    // As a program may start in a folder of another user, a relative path is not that of the current folder.
    for (std::string& plugin : control.plugins) plugin = (section.folder() / plugin).string();
    Status profiles = section.each("profiles", Need::kOptional,
                                   [&](ConfigNode& item) { return read_profile(item, control.profiles); });
    if (!profiles) return profiles;
    ROCI_TRY(section.optional("cores", control.cores, integer_in<uint32_t>(0, kMaxControlCores)));
    ROCI_TRY(section.optional_list("cpus", control.cpus, integer_in(0, 1023)));
    if (!control.cpus.empty() && control.cpus.size() != control.cores)
      return section.error("cpus", "must list one CPU per control core; the number of cores is " +
                                       std::to_string(control.cores));
    ROCI_TRY(section.optional("trace", control.trace, integer_in<uint32_t>(0, 1U << 22)));
    ROCI_TRY(section.optional("peers_send_cnps", control.peers_send_cnps));
    Status point = section.section("notification_point", Need::kOptional, [&](ConfigNode& np) -> Status {
      ROCI_TRY(np.optional("enabled", control.notification_point.enabled));
      Nanos interval{control.notification_point.interval};
      ROCI_TRY(np.optional("interval", interval));
      if (interval < Nanos{0} || interval > Nanos{1s}) return np.error("interval", "must be 0 to 1 s");
      control.notification_point.interval = interval;
      ROCI_TRY(np.optional("limit", control.notification_point.limit,
                           one_of<CnpLimit>({{"queue-pair", CnpLimit::kQueuePair},
                                             {"address", CnpLimit::kAddress},
                                             {"port", CnpLimit::kPort}})));
      return {};
    });
    if (!point) return point;
    if (auto made = Profiles::create(control); !made) return section.error(made.error().message);
    return {};
  });
}

Status read_progress(ConfigNode& node, DeviceConfig& device) {
  ROCI_TRY(node.optional(
      "progress", device.progress,
      one_of<Progress>({{"application", Progress::kApplication}, {"dedicated", Progress::kDedicated}})));
  ROCI_TRY(read_idle(node, device.idle));
  ROCI_TRY(node.optional("workers", device.workers, integer_in<uint32_t>(1, kMaxWorkers)));
  ROCI_TRY(node.optional("cpu", device.cpu, integer_in(0, 1023)));
  ROCI_TRY(node.optional_list("cpus", device.cpus, integer_in(0, 1023)));
  for (const auto& [key, given] : {std::pair{"cpu", device.cpu >= 0}, {"cpus", !device.cpus.empty()}}) {
    if (given && device.progress != Progress::kDedicated)
      return node.error(key, "requires progress: dedicated; the application's thread is not pinned");
  }
  if (device.cpu >= 0 && !device.cpus.empty()) return node.error("cpus", "cannot be combined with cpu");
  if (!device.cpus.empty() && device.cpus.size() != device.workers) {
    return node.error("cpus", "lists " + std::to_string(device.cpus.size()) + " CPUs for " +
                                  std::to_string(device.workers) +
                                  " workers; one CPU per worker is required");
  }
  return node.optional("takeover", device.takeover);
}

// Returns the same address in each process of the host. IPv4: 02:52 and the IP address.
std::optional<MacAddress> default_mac(const std::string& network) {
  const auto parsed = IpNetwork::parse(network);
  if (!parsed) return std::nullopt;
  const IpAddress& address = parsed->address;
  if (address.is_v4()) return MacAddress::local(uint64_t{0x52} << 32 | address.v4());
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const uint8_t byte : address.bytes) hash = (hash ^ byte) * 0x100000001b3;
  return MacAddress::local(hash ^ hash >> 40);
}

}  // namespace

Status read_host_keys(ConfigNode& node, DeviceConfig& device) {
  ROCI_TRY(read_extensions(node, device.extensions));
  ROCI_TRY(read_telemetry(node, device.telemetry));
  ROCI_TRY(read_flow_control(node, device.flow_control));
  ROCI_TRY(read_congestion(node, device));
  ROCI_TRY(read_congestion_control(node, device.congestion_control));
  ROCI_TRY(node.optional("tx_buffers", device.tx_buffers, integer_in<uint32_t>(256, 1U << 20)));
  ROCI_TRY(
      node.optional("packets_per_ack", device.packets_per_ack, integer_in<uint32_t>(1, kMaxPacketsPerAck)));
  ROCI_TRY(node.optional("packets_per_turn", device.packets_per_turn,
                         integer_in<uint32_t>(0, kMaxPacketsPerTurn)));
  ROCI_TRY(node.optional("check_before_placing", device.check_before_placing));
  ROCI_TRY(node.optional("guard_memory", device.guard_memory));
  Bytes window{device.window_bytes};
  ROCI_TRY(node.optional("window", window, parse_window));
  device.window_bytes = static_cast<uint32_t>(window.value());
  return {};
}

Status read_connection_manager(ConfigNode& node, ConnectionManagerConfig& config) {
  return node.section("connection_manager", Need::kOptional, [&](ConfigNode& section) -> Status {
    ROCI_TRY(section.optional("response_timeout", config.response_timeout));
    if (config.response_timeout < Nanos{1ms} || config.response_timeout > Nanos{5min})
      return section.error("response_timeout", "must be 1ms to 5min");
    return section.optional("retries", config.retries, integer_in<uint8_t>(0, 15));
  });
}

Status read_device_section(ConfigNode& root, DeviceFile& config) {
  return root.section("device", Need::kRequired, [&](ConfigNode& node) -> Status {
    DeviceConfig& device = config.device;
    ROCI_TRY(node.section("port", Need::kRequired,
                          [&](ConfigNode& port) { return read_device(port, config.port); }));
    ROCI_TRY(node.optional("name", device.name));
    ROCI_TRY(read_addresses(node, device));
    ROCI_TRY(node.optional("vlan", device.vlan, integer_in<uint16_t>(0, 4094)));
    ROCI_TRY(node.optional("priority", device.priority, integer_in<uint8_t>(0, 7)));
    ROCI_TRY(read_progress(node, device));
    ROCI_TRY(read_host_keys(node, device));
    ROCI_TRY(read_connection_manager(node, config.connection_manager));
    config.port.queues = static_cast<uint16_t>(device.workers);
    if (!device.addresses.empty()) config.port.default_mac = default_mac(device.addresses.front());
    return {};
  });
}

}  // namespace roci

// Configuration of a switch, and its reader for configuration files.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/result.hpp"
#include "base/types.hpp"
#include "switch/qcn/reaction_point.hpp"
#include "switch/qos/buffer.hpp"
#include "switch/qos/class_config.hpp"
#include "switch/telemetry/telemetry.hpp"
#include "wire/extensions/siphash.hpp"
#include "wire/headers/address.hpp"

namespace roci {

inline constexpr uint16_t kDefaultVlan = 1;
inline constexpr uint16_t kLastVlan = 4094;  // 4095 is reserved (802.1Q table 9-2)

struct SwitchPortConfig {
  std::string name;
  BitsPerSec rate{0};              // of the line; 0: as fast as the port accepts frames
  Bytes queue = 1_MiB;             // limit of all classes together
  uint32_t queue_frames = 4096;    // the same in frames, so that small frames cannot use all buffers
  uint16_t vlan = kDefaultVlan;    // of untagged frames, received and sent
  bool all_tagged = true;          // carries all other VLANs tagged
  std::vector<uint16_t> tagged{};  // if all_tagged is off: VLANs that it carries tagged
  ClassConfigs classes{};
  PauseWatchdogConfig watchdog{};  // a detect time of 0 or below, or kNever: off
  TelemetryRole telemetry = TelemetryRole::kTransit;
  // Whether the device at the port supports CN-TAGs. If not, the congestion notification domain ends here: frames leave
  // without CN-TAG, and the switch learns no flows from CN-TAGs received here.
  bool keeps_cn_tags = true;
  uint32_t worker = 0;  // number of its worker; numbers start at 0, and each worker has a port
  // Source MAC addresses, and networks of source IP addresses, that may arrive only at this port (port_bindings.hpp).
  // At most kMaxBindings of each kind in all ports. Empty: any that is not bound to another port.
  std::vector<MacAddress> macs{};
  std::vector<IpNetwork> addresses{};

  friend bool operator==(const SwitchPortConfig&, const SwitchPortConfig&) = default;
};

inline constexpr uint32_t kMaxSwitchWorkers = 16;
inline constexpr size_t kMaxBindings = 4096;

// Layer 3 interface: own addresses of the switch in one VLAN. At most one per VLAN.
struct SwitchInterfaceConfig {
  std::string name;
  uint16_t vlan = kDefaultVlan;
  std::vector<IpNetwork> addresses{};  // each also defines a route to its network

  friend bool operator==(const SwitchInterfaceConfig&, const SwitchInterfaceConfig&) = default;
};

struct SwitchRouteConfig {
  IpNetwork prefix;
  // Next hops, each in the network of an interface. Several next hops share the flows (ECMP).
  std::vector<IpAddress> via;

  friend bool operator==(const SwitchRouteConfig&, const SwitchRouteConfig&) = default;
};
inline constexpr size_t kMaxRoutes = 16'384;
inline constexpr size_t kMaxNextHops = 64;         // per route
inline constexpr size_t kMaxOwnAddresses = 4'096;  // of all interfaces

// Static neighbor entry, not resolved by ARP or neighbor solicitation.
struct SwitchNeighborConfig {
  IpAddress address;
  MacAddress mac;

  friend bool operator==(const SwitchNeighborConfig&, const SwitchNeighborConfig&) = default;
};

// CNMs that the switch sends, and handling of received ones.
struct NotifyConfig {
  uint16_t port = 0;        // UDP port of self-defined CNMs (L3QCN 5.2.2), without assignment; 0: not used
  uint32_t rate = 100'000;  // per second and worker, of CNMs sent; separately of CNMs translated
  uint32_t tor_size = 0;    // flows of attached hosts in the ToR table, for translation of CNMs; 0: off
  Nanos tor_ageing = 10s;   // after the last frame of a flow
  // Handling of messages for a flow of an attached host that is not in the table.
  enum class UnknownFlow : uint8_t {
    kDrop,
    kDeliver,  // forward to the host, which must support them
  };
  UnknownFlow tor_unknown = UnknownFlow::kDrop;
  // With a key, sent self-defined CNMs are signed. Received ones are accepted only if signed with it, each once.
  std::optional<SipKey> key{};
  Nanos tolerance = 5s;  // between the clocks of the devices that have the key

  friend bool operator==(const NotifyConfig&, const NotifyConfig&) = default;
};

// Table of the senders of flows, for messages to them (source_qpns.hpp).
struct SwitchSendersConfig {
  uint32_t flows = 16384;
  Nanos ageing = 10s;  // after the last inspected packet of a flow

  friend bool operator==(const SwitchSendersConfig&, const SwitchSendersConfig&) = default;
};

// CNPs of classes with `notify: cnp` (cnp_notifier.hpp). At most `senders.flows` queue pairs are notified within
// `spacing`.
struct SwitchCnpConfig {
  Nanos spacing = 50us;       // between two CNPs to one queue pair
  uint32_t rate = 1'000'000;  // per second and congested port
  bool suppress = true;       // drop CNPs of other devices within `spacing` of another CNP

  friend bool operator==(const SwitchCnpConfig&, const SwitchCnpConfig&) = default;
};

// Shaper: limits the traffic to the networks of another switch, in one class, to a rate that follows the CNMs about it
// (tor_shapers.hpp).
struct SwitchShaperConfig {
  IpNetwork prefix;
  uint8_t traffic_class = 0;
  BitsPerSec rate{0};            // at which it does not limit: that of the path
  Bytes queue = 1_MiB;           // limit of waiting frames, in bytes
  uint32_t queue_frames = 4096;  // the same in frames
  AqmConfig aqm{};
  std::optional<QcnConfig> qcn{};  // if set, attached hosts are notified of the shaper's queue
  ReactionConfig reaction{};

  friend bool operator==(const SwitchShaperConfig&, const SwitchShaperConfig&) = default;
};
inline constexpr size_t kMaxShapers = 1024;

struct SwitchConfig {
  std::string name = "switch";
  MacAddress mac{};  // of all its interfaces; all zero: made from the name
  std::vector<SwitchPortConfig> ports{};
  std::vector<SwitchInterfaceConfig> interfaces{};
  std::vector<SwitchRouteConfig> routes{};
  std::vector<SwitchNeighborConfig> neighbors{};
  ClassifierConfig classifier{};
  BufferConfig buffer{};
  TelemetryConfig telemetry{};
  NotifyConfig notify{};
  SwitchSendersConfig senders{};
  SwitchCnpConfig cnp{};
  std::vector<SwitchShaperConfig> shapers{};
  uint64_t seed = 1;                    // of the draws for marks, drops and samples
  std::optional<uint64_t> ecmp_seed{};  // of the ECMP hash; if not set: made from the MAC
  uint32_t mac_table_size = 4096;       // half of it is reserved in equal parts for the ports
  Nanos mac_ageing = 300s;
  // Offset from the pollers' time to the time since 1970, for signed CNMs. Not in the configuration file: set by the
  // process that runs the switch.
  Nanos time_of_day{0};
  // Whether many routes may use a table of 32 MiB (forwarding/route_table.hpp). Not in the configuration file: false in
  // a process with many switches.
  bool route_tables = true;

  friend bool operator==(const SwitchConfig&, const SwitchConfig&) = default;
};

// Whether any class sends CNPs.
bool sends_cnps(const SwitchConfig& config);

// Validates the configuration and reports the first error, such as duplicate names or next hops in no network.
Status check(const SwitchConfig& config);

// Valid settings that are probably unintended, one sentence each.
std::vector<std::string> warnings(const SwitchConfig& config);

// Reads the keys of a port that are not the switch's own, such as its device.
using SwitchPortReader = std::function<Status(ConfigNode& item, size_t port)>;
// Reads the `switch` section of a configuration file with the keys of this header, and validates it.
Status read_switch(ConfigNode& node, SwitchConfig& config, const SwitchPortReader& read_more);
// Parts of read_switch() for callers that create ports themselves. The first reads the keys `classify`, `buffer`,
// `telemetry`, `cnm_port` and related keys, `senders`, `cnp`, `shapers`, `seed` and `ecmp_seed`. The second reads the
// keys `l3qcn` and `classes` for a port, whose rate must be set.
Status read_of_all_ports(ConfigNode& node, SwitchConfig& config);
Status read_classes_of_all_ports(ConfigNode& node, SwitchPortConfig& port);

}  // namespace roci

// What a switch is made of, and how it is written in a configuration file.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/result.hpp"
#include "base/types.hpp"
#include "switch/buffer.hpp"
#include "switch/class_config.hpp"
#include "switch/reaction_point.hpp"
#include "switch/telemetry.hpp"
#include "wire/address.hpp"
#include "wire/siphash.hpp"

namespace roci {

inline constexpr uint16_t kDefaultVlan = 1;
inline constexpr uint16_t kLastVlan = 4094;  // 4095 is reserved (802.1Q table 9-2)

struct SwitchPortConfig {
  std::string name;
  BitsPerSec rate{0};              // of the egress queue's drain; 0: as fast as the port takes frames
  Bytes queue = 1_MiB;             // limit of what waits, over all classes
  uint32_t queue_frames = 4096;    // the same in frames, so that small ones cannot use up all buffers
  uint16_t vlan = kDefaultVlan;    // of frames without a tag, which is also the one it sends untagged
  bool all_tagged = true;          // carries every other VLAN with its tag
  std::vector<uint16_t> tagged{};  // when all_tagged is off: those it carries
  ClassConfigs classes{};
  PauseWatchdogConfig watchdog{};
  TelemetryRole telemetry = TelemetryRole::kTransit;
  // Whether who is behind the port knows CN-TAGs: where not, the domain of congestion notification ends, frames leave
  // without theirs, and what comes in with one is not believed.
  bool keeps_cn_tags = true;
  uint32_t worker = 0;  // that owns it; workers are numbered from 0 on, and each has a port

  friend bool operator==(const SwitchPortConfig&, const SwitchPortConfig&) = default;
};

inline constexpr uint32_t kMostSwitchWorkers = 16;

// A layer 3 interface: the switch's own addresses in one VLAN. At most one per VLAN.
struct SwitchInterfaceConfig {
  std::string name;
  uint16_t vlan = kDefaultVlan;
  std::vector<IpNetwork> addresses{};  // each also a route to its network

  friend bool operator==(const SwitchInterfaceConfig&, const SwitchInterfaceConfig&) = default;
};

struct SwitchRouteConfig {
  IpNetwork prefix;
  // Next hops, each in the network of an interface. Of several each gets its part of all flows (ECMP).
  std::vector<IpAddress> via;

  friend bool operator==(const SwitchRouteConfig&, const SwitchRouteConfig&) = default;
};
inline constexpr size_t kMostRoutes = 16'384;
inline constexpr size_t kMostNextHops = 64;         // of a route
inline constexpr size_t kMostOwnAddresses = 4'096;  // of all interfaces

// A next hop that is not asked for by ARP or neighbour solicitation.
struct SwitchNeighbourConfig {
  IpAddress address;
  MacAddress mac;

  friend bool operator==(const SwitchNeighbourConfig&, const SwitchNeighbourConfig&) = default;
};

// Congestion notification messages that this switch sends, and what it does with those of others.
struct NotifyConfig {
  uint16_t port = 0;        // UDP, of the self-defined CNM (L3QCN 5.2.2); none is assigned; 0: not in use
  uint32_t rate = 100'000;  // a second, of all that the switch sends; the same again of those it translates
  uint32_t tor_size = 0;    // flows of hosts here that it knows, to translate CNMs for them; 0: it does not
  Nanos tor_ageing = 10s;   // after the last frame of a flow
  // What becomes of messages for a flow of a host here that the table does not have.
  enum class Unknown : uint8_t {
    kDrop,
    kDeliver,  // to the host, which is known to understand them
  };
  Unknown tor_unknown = Unknown::kDrop;
  // With a key self-defined CNMs are signed, and of those that come only signed ones are believed, each once.
  std::optional<SipKey> key{};
  Nanos tolerance = 5s;  // between the clocks of those who have the key

  friend bool operator==(const NotifyConfig&, const NotifyConfig&) = default;
};

// What it learns of who sends the flows that it may have to tell something (source_qpns.hpp).
struct SwitchSendersConfig {
  uint32_t flows = 16384;
  Nanos ageing = 10s;  // after the last packets of a flow

  friend bool operator==(const SwitchSendersConfig&, const SwitchSendersConfig&) = default;
};

// CNPs of classes with `notify: cnp` (cnp_notifier.hpp). No more queue pairs than `senders.flows` are told within `spacing`.
struct SwitchCnpConfig {
  Nanos spacing = 50us;       // between two CNPs to one queue pair
  uint32_t rate = 1'000'000;  // a second, of each congested port
  bool suppress = true;       // CNPs of others that come within `spacing` of another are dropped

  friend bool operator==(const SwitchCnpConfig&, const SwitchCnpConfig&) = default;
};

// Holds what goes to the networks behind another switch, in one class, to a rate that follows the CNMs about it
// (tor_shapers.hpp).
struct SwitchShaperConfig {
  IpNetwork prefix;
  uint8_t traffic_class = 0;
  BitsPerSec rate{0};            // at which it limits nothing: that of the way there
  Bytes queue = 1_MiB;           // what waits
  uint32_t queue_frames = 4096;  // the same in frames
  AqmConfig aqm{};
  std::optional<QcnConfig> qcn{};  // whether hosts here are told of what waits
  ReactionConfig reaction{};

  friend bool operator==(const SwitchShaperConfig&, const SwitchShaperConfig&) = default;
};
inline constexpr size_t kMostShapers = 1024;

struct SwitchConfig {
  std::string name = "switch";
  MacAddress mac{};  // of all its interfaces; all zero: made from the name
  std::vector<SwitchPortConfig> ports{};
  std::vector<SwitchInterfaceConfig> interfaces{};
  std::vector<SwitchRouteConfig> routes{};
  std::vector<SwitchNeighbourConfig> neighbours{};
  ClassifierConfig classifier{};
  BufferConfig buffer{};
  TelemetryConfig telemetry{};
  NotifyConfig notify{};
  SwitchSendersConfig senders{};
  SwitchCnpConfig cnp{};
  std::vector<SwitchShaperConfig> shapers{};
  uint64_t seed = 1;                    // of the draws that mark, drop and sample
  std::optional<uint64_t> ecmp_seed{};  // of the choice among next hops; without one: made from the MAC
  uint32_t mac_table_size = 4096;
  Nanos mac_ageing = 300s;
  // What makes the time that pollers are given one since 1970, for signed CNMs. In no file: who runs the switch knows.
  Nanos time_of_day{0};

  friend bool operator==(const SwitchConfig&, const SwitchConfig&) = default;
};

// Whether any class of it does.
bool sends_cnps(const SwitchConfig& config);

// What is wrong with it, as one sentence: names and VLANs used twice, a route through no interface, and so on.
Status check(const SwitchConfig& config);

// What works and is hardly meant, a sentence each.
std::vector<std::string> warnings(const SwitchConfig& config);

// Reads the keys of a port that are not the switch's own, such as the device behind it.
using SwitchPortReader = std::function<Status(ConfigNode& item, size_t port)>;
// Reads the `switch` section of a configuration file, with the keys that are named above, and checks it.
Status read_switch(ConfigNode& node, SwitchConfig& config, const SwitchPortReader& read_more);
// Parts of that, for who makes ports otherwise: the keys `classify`, `buffer`, `telemetry`, cnm_port and its kin, `senders`,
// `cnp`, `shapers`, `seed` and `ecmp_seed`; and the keys `l3qcn` and `classes` for a port, which has its rate.
Status read_of_all_ports(ConfigNode& node, SwitchConfig& config);
Status read_classes_of_all_ports(ConfigNode& node, SwitchPortConfig& port);

}  // namespace roci

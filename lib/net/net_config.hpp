// A network of this machine, as its user describes it and as roci-run writes it into the network's folder:
//
//   net:
//     name: default                          # without it: the file's name
//     addresses: [10.77.0.0/16, "fd77::/64"] # where places get theirs from; at most one network of each IP version
//     first: 1                               # the host number of the first place: 10.77.0.1 and fd77::1
//     places: 32                             # processes, or devices of them, at a time; 31 with an uplink
//     switch: auto                           # auto: where a key below needs one; always
//     icrc: auto                             # auto: computed and checked where a switch carries the frames; on: always
//     placement: receiver                    # sender: RDMA WRITEs are copied by the requester (port/placement.hpp); without a switch
//     mtu: 4400                              # largest IP packet: a path MTU of 4096 with in-band telemetry
//     linger: 60s                            # (switch) time for which it runs after the last process; or never
//     idle: sleep                            # (switch) idle policy: spin | yield | sleep
//     memory: 512MiB                         # (switch) memory for its packet buffers
//     rate: 0                                # of every place's line, like 10Gbps; 0: as fast as it goes
//     queue: 4MiB                            # what waits for a place; beyond that it is dropped
//     queue_frames: 1024                     # the same in frames
//     marking: {enabled: true, kmin: 100KiB, kmax: 400KiB, pmax: 0.2}   # ECN
//     telemetry: {enabled: true, udp_port: 5201, domain: 1}   # packets that carry INT get a hop
//     congestion_control: {profile: none, base_rtt: 50us, line_rate: 10Gbps}   # of the processes; ROCI_CC precedes
//     connection_manager: {response_timeout: 4.3s, retries: 15}   # of the processes (device/device_config.hpp)
//     uplink: {device: "net_af_packet0,iface=veth0", mtu: 4400}   # the way out (port/port_config.hpp); default: none
//     pci: false                             # an uplink by PCI address needs it
//     faults: {loss: 0.01, duplicate: 0.001, seed: 1}   # of what each place sends, as switches have them; default: none
//
// Every key is optional, and so is what stands in it; what is shown are the defaults, but for `uplink` and `faults`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/types.hpp"
#include "device/device_config.hpp"
#include "port/ethdev_port.hpp"
#include "port/faulty_port.hpp"
#include "roci/progress.hpp"
#include "wire/address.hpp"

namespace roci {

struct NetMarking {
  bool enabled = true;
  Bytes kmin = 100_KiB, kmax = 400_KiB;
  double pmax = 0.2;

  friend bool operator==(const NetMarking&, const NetMarking&) = default;
};

struct NetTelemetry {
  bool enabled = true;
  uint16_t udp_port = 5201;
  uint16_t domain = 1;

  friend bool operator==(const NetTelemetry&, const NetTelemetry&) = default;
};

struct NetCongestionControl {
  std::string profile = "window";
  Nanos base_rtt = 50us;
  BitsPerSec line_rate{10'000'000'000};

  friend bool operator==(const NetCongestionControl&, const NetCongestionControl&) = default;
};

inline constexpr uint32_t kMostPlaces = 32;  // slots for processes (port/shm_segment.hpp); 31 with an uplink

struct NetConfig {
  std::string name = "default";
  std::vector<IpNetwork> networks;  // the one or two where places get addresses from
  uint32_t first = 1;
  uint32_t places = 32;
  bool always_switch = false;
  bool always_icrc = false;
  bool sender_places = false;
  uint16_t mtu = 4400;
  Nanos linger = 60s;
  IdlePolicy idle = IdlePolicy::kSleep;
  uint32_t memory_mib = 512;
  BitsPerSec rate{0};
  Bytes queue = 4_MiB;
  uint32_t queue_frames = 1024;
  NetMarking marking;
  NetTelemetry telemetry;
  NetCongestionControl congestion_control;
  ConnectionManagerConfig connection_manager;
  std::optional<EthdevConfig> uplink;
  bool pci = false;
  std::optional<PortFaults> faults;  // of every place
  uint64_t fault_seed = 1;

  NetConfig();
  friend bool operator==(const NetConfig&, const NetConfig&) = default;

  // Whether a process of its own forwards the frames: for rates, queues, faults and an uplink. Without one the processes'
  // ports exchange them directly (port/shm_port.hpp).
  [[nodiscard]] bool needs_switch() const;
  // Whether packets carry an ICRC that is checked. Shared memory does not alter frames; a switch may, by its faults, and it may
  // send them to another machine.
  [[nodiscard]] bool needs_icrc() const { return always_icrc || needs_switch(); }

  // The address of a place in one of `networks`, with that network's prefix length.
  [[nodiscard]] IpNetwork address(const IpNetwork& network, uint32_t place) const;
  // 02:XX and the four bytes that its first address ends with: another in each network of a machine, and of several machines
  // whose networks are joined.
  [[nodiscard]] MacAddress mac(uint32_t place) const;
};

// What a file may describe: a network, or with a section `device` a device that one process has to itself.
struct RunFile {
  std::optional<NetConfig> net;
  std::optional<DeviceFile> device;
};
Result<RunFile> read_run_file(const std::string& path);

// A file that has to describe a network.
Result<NetConfig> read_net_file(const std::string& path);
// Text that read_net_file() makes the same network of.
std::string net_text(const NetConfig& config);
// A short name of that text, another one for each description: by it roci-run tells its program which one it has asked for
// (kNetDescriptionVariable).
std::string description_id(const NetConfig& config);
inline constexpr const char* kNetDescriptionVariable = "ROCI_NET_DESCRIPTION";

}  // namespace roci

// Configuration of a network of this machine, as described by the user and as written by roci-run to the network's
// folder:
//
//   net:
//     name: default                          # default: the name of the file
//     addresses: [10.77.0.0/16, "fd77::/64"] # address ranges of the slots; at most one network of each IP version
//     first: 1                               # host number of the first slot: 10.77.0.1 and fd77::1
//     slots: 32                              # number of slots, that is processes or devices; 31 with an uplink
//     switch: auto                           # auto: started if a key below requires it; always
//     icrc: auto                             # auto: computed and checked only with a switch; on: always
//     placement: receiver                    # sender: the requester copies RDMA WRITEs (port/placement.hpp); no switch
//     mtu: 4400                              # largest IP packet: a path MTU of 4096 with in-band telemetry
//     linger: 60s                            # (switch) time for which it runs after the last process; or never
//     idle: sleep                            # (switch) idle policy: spin | yield | sleep
//     memory: 512MiB                         # (switch) memory for its packet buffers
//     rate: 0                                # link rate of each slot, for example 10Gbps; 0: unlimited
//     queue: 4MiB                            # limit of each slot's queue; excess frames are dropped
//     queue_frames: 1024                     # the same in frames
//     marking: {enabled: true, kmin: 100KiB, kmax: 400KiB, pmax: 0.2}   # ECN
//     telemetry: {enabled: true, udp_port: 5201, domain: 1}   # adds a hop to packets with INT
//     congestion_control: {profile: window, base_rtt: 50us, line_rate: 10Gbps}   # of the processes; ROCI_CC overrides
//     connection_manager: {response_timeout: 4.3s, retries: 15}   # of the processes (device/config/device_config.hpp)
//     uplink: {device: "net_af_packet0,iface=veth0", mtu: 4400}   # port to other machines (port/port_config.hpp)
//     pci: false                             # probe PCI devices; an uplink with a PCI address requires it
//     faults: {loss: 0.01, duplicate: 0.001, seed: 1}   # of the frames that each slot sends, as in a switch
//
// All keys are optional, also within a section. Values are the defaults, except that `uplink` and `faults` have none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/os/private_folder.hpp"
#include "base/types.hpp"
#include "device/config/device_config.hpp"
#include "port/dpdk/ethdev_port.hpp"
#include "port/sim/faulty_port.hpp"
#include "roci/progress.hpp"
#include "wire/headers/address.hpp"

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

// Slots for processes (port/shm/shm_segment.hpp); 31 with an uplink.
inline constexpr uint32_t kMaxSlots = 32;

struct NetConfig {
  std::string name = "default";
  std::vector<IpNetwork> networks;  // one or two networks with the addresses of the slots
  uint32_t first = 1;
  uint32_t slots = 32;
  bool always_switch = false;
  bool always_icrc = false;
  bool sender_placement = false;
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
  std::optional<PortFaults> faults;  // of each slot
  uint64_t fault_seed = 1;

  NetConfig();
  friend bool operator==(const NetConfig&, const NetConfig&) = default;

  // Returns true if a switch process forwards the frames, which rates, queues, faults and an uplink require. Otherwise
  // the ports of the processes exchange frames directly (port/shm/shm_port.hpp).
  [[nodiscard]] bool needs_switch() const;
  // Returns true if packets carry an ICRC that is checked. Shared memory does not alter frames. A switch may alter them
  // by fault injection, or send them to another machine.
  [[nodiscard]] bool needs_icrc() const { return always_icrc || needs_switch(); }

  // Address of a slot in one of `networks`, with the prefix length of that network.
  [[nodiscard]] IpNetwork address(const IpNetwork& network, uint32_t slot) const;
  // MAC address of a slot: 02:77 and the last four bytes of its first IP address. It is unique in a network, and among
  // joined networks of several machines that use different host numbers.
  [[nodiscard]] MacAddress mac(uint32_t slot) const;
};

// Content of a configuration file: a network or, with the section `device`, an exclusive device of one process. Next to
// `device`, the section `eal` is allowed.
struct RunFile {
  std::optional<NetConfig> net;
  std::optional<DeviceFile> device;
};
Result<RunFile> read_run_file(const std::string& path);

// Reads a file that must describe a network.
Result<NetConfig> read_net_file(const std::string& path);
// Reads the description in the folder of a network. Does not follow a symbolic link.
Result<NetConfig> read_net(const PrivateFolder& folder);
// Writes text from which read_net_file() reads the same network.
std::string net_text(const NetConfig& config);
// Short hash of that text, different for each description. roci-run passes it to the program in
// kNetDescriptionVariable, which verifies that the network still has the requested description.
std::string description_id(const NetConfig& config);
inline constexpr const char* kNetDescriptionVariable = "ROCI_NET_DESCRIPTION";

// Values in the files that roci-run writes: a time such as "5000ns", or "never"; a text in double quotes, escaped.
std::string nanos_text(Nanos time);
std::string quoted_yaml(std::string_view text);

}  // namespace roci

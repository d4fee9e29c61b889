// A device in a configuration file, shared by every program that is one host.
//
//   device:
//     name: roci0
//     port: {device: "net_memif0,role=client,id=0,socket=/run/roci.sock", mtu: 4200}   # port/port_config.hpp
//     addresses: [10.0.0.1/24, "fd00::1/64"]
//     gateways: [10.0.0.254]                       # at most one of each IP version
//     neighbours:                                  # static entries; others are asked for
//       - {address: 10.0.0.2, mac: "02:00:00:00:00:02"}
//     vlan: 0                                      # 1 to 4094; 0 sends untagged
//     priority: 0                                  # of the VLAN tag
//     progress: application                        # application | dedicated (a thread of its own)
//     workers: 1                                   # poll loops that share the queue pairs; the port gets as many queues
//     cpu: 1                                       # of that thread; of several workers' the first, the others follow
//     cpus: [1, 3]                                 # or: of each worker's thread
//     idle: yield                                  # of that thread: spin | yield | sleep
//     takeover: 500us                              # with application: silence after which a helper takes over
//     tx_buffers: 4096
//     packets_per_ack: 64                          # that one acknowledgement stands for, 1 to 1024
//     packets_per_turn: 0                          # of a queue pair before the next one's, 1 to 64; 0: what costs least
//     check_before_placing: false                  # no byte of a packet is placed before its ICRC is checked
//     guard_memory: true                           # registered memory that is gone is an error of the request, not a crash
//     extensions:                                  # beyond the standard, with peers that have them too
//       mode: auto                                 # auto | on (a peer without them is an error) | off
//       selective_repeat: false                    # a loss costs the lost packets, not all behind them
//       authenticate: false                        # acknowledgements carry a MAC
//       timestamps: false                          # on every request, for the round trip time
//       source_qpn: false                          # on every request, for switches
//       data_lsn: false                            # the byte sequence on every request
//       receive_window: 64KiB                      # that a peer may have in flight to one queue pair; without it: any
//     telemetry:                                   # in-band telemetry of switches; without it the host knows none
//       udp_port: 5201                             # of its packets, the same in the whole network
//       domain: 1
//       begin: none                                # none | probe | all: packets that begin to carry it at this host
//       hops: 5                                    # that those have room for
//       wants_response: false                      # congested switches may answer them
//     flow_control:                                # PFC with the neighbour; without it pauses are not listened to
//       pfc: [3]                                   # priorities that lose nothing
//       trust: dscp                                # dscp (its first three bits) | pcp: what the priority of a packet is
//       rate: 10Gbps                               # of the line; default: as the port says, or 100Gbps
//       pause_watchdog: {detect: 100ms, restore: 100ms}  # send on when a pause lasts so long; default: never
//       xoff: 512                                  # frames waiting to be received at which the neighbour is stopped;
//       xon: 128                                   # ... and at which it may go on; default: it is never stopped
//     congestion_notification:                     # QCN; without it CNMs of switches are not listened to
//       tag: true                                  # requests and READ responses carry a CN-TAG, which CNMs answer
//       priorities: [3]                            # of those that do; default: all
//       trust: dscp                                # dscp (its first three bits) | pcp: what the priority of a packet is
//       cnm_port: 4999                             # UDP, of CNMs through routers; default: not in use
//       cnm_key: 000102030405060708090a0b0c0d0e0f  # with it those have to be signed; default: they need not
//       cnm_tolerance: 5s                          # between the clocks of those that have the key
//       cnm_rate: 10000                            # CNMs a second that are taken, and as many that are sent
//       short_samples: false                       # also believe CNMs that give back less than the BTH of a packet
//       congestion_point:                          # tells senders when frames wait here; default: it does not
//         {qeq: 256, weight: 2, sample: 150KB}     # qeq: frames that may wait; the others as in switches
//     congestion_control:                          # docs/congestion-control.md
//       profile: window                            # of queue pairs: one of those below, an algorithm, window or none; ROCI_CC precedes
//       base_rtt: 5us                              # of a full packet on idle links; default: not known
//       line_rate: 25Gbps                          # where flows start; default: as the port says, or 100Gbps
//       burst: 1us                                 # how early a packet may leave in the turn of another, up to 100us
//       profiles:
//         - {name: bulk, algorithm: dcqcn, base_rtt: 5us, fallback: none, parameters: {rpg_ai_rate: 50e6}}
//       plugins: []                                # shared objects with more algorithms
//       cores: 0                                   # that algorithms have to themselves; 0: they run in the workers
//       cpus: [2]                                  # to pin those to
//       trace: 0                                   # events that are kept for each place where algorithms run
//       peers_send_cnps: true                      # what is assumed of them
//       notification_point: {enabled: true, interval: 4us}  # CE is answered with CNPs, so far apart
//     connection_manager: {response_timeout: 4.3s, retries: 15}   # of programs of librdmacm: how long a peer may take to
//                                                  # answer, rounded to 4.096 us x 2^n, and how often it is asked again
//     window: 512KiB                               # un-acknowledged bytes of a queue pair
#pragma once

#include "base/config.hpp"
#include "base/types.hpp"
#include "port/port_config.hpp"
#include "roci/device.hpp"

namespace roci {

// As the Linux kernel has it: 77 s with 0.27 s for a packet to get there.
struct ConnectionManagerConfig {
  Nanos response_timeout = 4300ms;
  uint8_t retries = 15;

  friend bool operator==(const ConnectionManagerConfig&, const ConnectionManagerConfig&) = default;
};

struct DeviceFile {
  EthdevConfig port;
  DeviceConfig device;
  ConnectionManagerConfig connection_manager;
};

// The section `device`, which is required. Addresses are checked here, so that the error names file and line.
Status read_device_section(ConfigNode& root, DeviceFile& config);
// The keys of it that say how a host behaves, wherever it is: from `extensions` on, and `tx_buffers`, `packets_per_ack`,
// `packets_per_turn`, `check_before_placing` and `guard_memory`.
Status read_host_keys(ConfigNode& node, DeviceConfig& device);

// A section `connection_manager`, which is optional.
Status read_connection_manager(ConfigNode& node, ConnectionManagerConfig& config);

}  // namespace roci

// Section `device` of configuration files, common to all programs that are a host.
//
//   device:
//     name: roci0
//     port: {device: "net_memif0,role=client,id=0,socket=/run/roci.sock", mtu: 4200}   # port/port_config.hpp
//     addresses: [10.0.0.1/24, "fd00::1/64"]
//     gateways: [10.0.0.254]                       # at most one of each IP version
//     neighbors:                                   # static entries; other addresses are resolved by ARP and ND
//       - {address: 10.0.0.2, mac: "02:00:00:00:00:02"}
//     vlan: 0                                      # 1 to 4094; 0: untagged
//     priority: 0                                  # of the VLAN tag
//     progress: application                        # application | dedicated (one thread of the device per worker)
//     workers: 1                                   # poll loops, each with its queue pairs
//     cpu: 1                                       # dedicated: core of the first worker; worker n gets core cpu + n
//     cpus: [1, 3]                                 # dedicated, instead of cpu: one core for each worker
//     idle: yield                                  # of the device's threads: spin | yield | sleep
//     takeover: 500us                              # application: time without its polls until the helper thread polls
//     tx_buffers: 4096                             # frames in the transmit buffer pool
//     packets_per_ack: 64                          # maximum of request packets per acknowledgment, 1 to 1024
//     packets_per_turn: 0                          # of a queue pair before the next one, 1 to 64; 0: lowest cost
//     check_before_placing: false                  # true: payload is written only after the ICRC check
//     guard_memory: true                           # access to unmapped registered memory fails the request only
//     extensions:                                  # wire extensions, with peers that support them
//       mode: auto                                 # auto | on (a peer without them is an error) | off
//       selective_repeat: false                    # only lost packets are retransmitted, not all packets after them
//       authenticate: off                          # MAC in acknowledgments: off | prefer | require
//       network_key: /etc/rocinante/network.key    # file with the key of authenticated hosts (network_key.hpp)
//       ignore_cnps: false                         # with authenticate: CE marks that acknowledgments report replace CNPs
//       timestamps: false                          # in every request, for round trip times
//       source_qpn: false                          # in every request, for switches
//       data_lsn: false                            # byte sequence number in every request
//       receive_window: 64KiB                      # bytes in flight from a peer to a queue pair; default: no limit
//     telemetry:                                   # in-band telemetry of switches; default: not supported
//       udp_port: 5201                             # of packets with telemetry, the same in the whole network
//       domain: 1
//       begin: none                                # none | probe | all: packets of this host that start telemetry
//       hops: 5                                    # space in these packets
//       wants_response: false                      # congested switches may respond to these packets
//     flow_control:                                # PFC with the link partner; default: PAUSE frames are ignored
//       pfc: [3]                                   # lossless priorities
//       trust: dscp                                # priority of a packet: dscp (its first three bits) | pcp
//       rate: 10Gbps                               # of the link; default: as the port reports, or 100Gbps
//       pause_watchdog: {detect: 200ms, restore: 100ms}  # ignores longer pauses; detect: never disables it
//       xoff: 512                                  # received frames waiting at which PAUSE is sent; default: never
//       xon: 128                                   # ... and at which the link partner may resume
//     congestion_notification:                     # QCN; default: CNMs are ignored
//       tag: true                                  # requests and READ responses carry a CN-TAG, which CNMs contain
//       priorities: [3]                            # of packets with a CN-TAG; default: all
//       trust: dscp                                # priority of a packet: dscp (its first three bits) | pcp
//       cnm_port: 4999                             # UDP port of routed CNMs; default: not used
//       cnm_key: 000102030405060708090a0b0c0d0e0f  # key with which routed CNMs are signed; default: unsigned
//       cnm_tolerance: 5s                          # between the clocks of the holders of the key
//       cnm_rate: 10000                            # maximum of CNMs per second, received and sent
//       short_samples: false                       # accept CNMs whose packet sample ends before the end of the BTH
//       congestion_point:                          # sends CNMs when frames wait for reception; default: disabled
//         {qeq: 256, weight: 2, sample: 150KB}     # qeq: set point of waiting frames; the others as in switches
//     congestion_control:                          # docs/congestion-control.md
//       profile: window                            # a profile, an algorithm, window or none; ROCI_CC has precedence
//       base_rtt: 5us                              # of a full packet on idle links; default: not known
//       line_rate: 25Gbps                          # initial rate of flows; default: as the port reports, or 100Gbps
//       burst: 1us                                 # how early a packet may be sent after another one, up to 100us
//       profiles:
//         - {name: bulk, algorithm: dcqcn, base_rtt: 5us, fallback: none, parameters: {rpg_ai_rate: 50e6}}
//         - {name: short, algorithm: ldcp, dscp: 26}   # DSCP of all packets of queue pairs that run the profile
//       plugins: []                                # shared objects with further algorithms
//       cores: 0                                   # dedicated cores for algorithms; 0: the workers run them
//       cpus: [2]                                  # to pin these cores to
//       trace: 0                                   # events that each worker or dedicated core stores
//       peers_send_cnps: true                      # assumption about all peers
//       notification_point: {enabled: true, interval: 4us, limit: queue-pair}  # respond to CE with CNPs; minimum
//                                                  # interval for each queue-pair, address or for the port
//     connection_manager: {response_timeout: 4.3s, retries: 15}   # of programs with librdmacm: time-out of a response,
//                                                  # rounded to 4.096 us x 2^n, and number of retries
//     window: 512KiB                               # unacknowledged bytes of a queue pair
#pragma once

#include "base/config.hpp"
#include "base/types.hpp"
#include "port/port_config.hpp"
#include "roci/device.hpp"

namespace roci {

// The defaults of the Linux kernel: 77 s in total, with a packet lifetime of 0.27 s.
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

// Reads the required section `device`. Addresses are validated here, so that errors contain file and line.
Status read_device_section(ConfigNode& root, DeviceFile& config);
// Reads the keys that determine the behavior of a host, independent of its place in the network: from `extensions` on,
// and `tx_buffers`, `packets_per_ack`, `packets_per_turn`, `check_before_placing` and `guard_memory`.
Status read_host_keys(ConfigNode& node, DeviceConfig& device);

// Reads the optional section `connection_manager`.
Status read_connection_manager(ConfigNode& node, ConnectionManagerConfig& config);

}  // namespace roci

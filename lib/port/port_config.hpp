// The parts of a configuration file that all programs with ports share: the start of DPDK, and the device of a port.
//
//   eal:
//     hugepages: auto               # auto (used if `memory` of them is free) | off | require
//     pci: false
//     memory: 512MiB                # for packet buffers
//     share_buffers: false          # with other processes (zero-copy memif, virtio-user); not needed with hugepages
//     telemetry: false              # DPDK's telemetry socket; some programs have another default
//     args: []
//   ...
//     device: "net_memif0,role=client,id=0,socket=/run/roci.sock"   # or a PCI address, net_af_packet0,iface=veth0, ...
//     mtu: 4200                     # largest IP packet in bytes
//     mac: 02:00:00:00:00:01        # default: the device's address; memif: derived from the first IP address
//     rx_descriptors: 1024
//     tx_descriptors: 1024
//     connect_timeout: 5s           # how long a memif client waits for its server
//     faults: {loss: 0.01, corrupt: 0.001, duplicate: 0.001, reorder: 0.001, delay: 10us, down: false}   # only in
//                                   # programs that support fault injection
#pragma once

#include "base/config.hpp"
#include "port/dpdk/eal.hpp"
#include "port/dpdk/ethdev_port.hpp"
#include "port/realtime_runner.hpp"
#include "port/sim/faulty_port.hpp"

namespace roci {

// Reads the optional section `eal` of the top level.
Status read_eal(ConfigNode& root, EalConfig& config);

// Reads the keys of a port above. `device` is required; the packet
// pool is not read. Absent keys leave `config` unchanged.
Status read_device(ConfigNode& node, EthdevConfig& config);

// Reads the keys of `faults`. Absent keys leave `faults` unchanged.
Status read_faults(ConfigNode& node, PortFaults& faults);
// Formats the same keys with all of their values: "loss: 0.01, corrupt: 0, …".
std::string faults_text(const PortFaults& faults);
// Short form for messages: "loss 0.01, delay 10us, down", or "none".
std::string describe(const PortFaults& faults);

// Reads the optional key `idle`: spin, yield or sleep.
Status read_idle(ConfigNode& node, IdlePolicy& idle);

}  // namespace roci

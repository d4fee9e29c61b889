// Scenario of a seed: hosts and their extensions, the network and its faults, and the traffic. It is drawn once and
// then constant, so that one line describes it and a feature can be removed to see whether a failure depends on it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.hpp"
#include "port/sim/sim_link.hpp"
#include "roci/device.hpp"

namespace roci::test {

struct HostTraits {
  uint32_t workers = 1;
  uint16_t queues = 1;         // of the port
  bool workers_apart = false;  // each worker is polled separately and may stall separately
  uint32_t window_bytes = 512 * 1024;
  uint32_t packets_per_ack = 64;
  bool check_before_placing = false;
  ExtensionConfig extensions;
  CongestionControlConfig control;

  // Drawn by draw_linux_scenario() only.
  bool is_linux = false;        // the model of a Linux host (linux_host.hpp)
  Nanos packet_time{0};         // Linux: between two received packets
  Nanos poll_interval{0};       // Rocinante: between two polls
  uint32_t receive_frames = 0;  // that wait at the port; further ones are dropped; 0: no limit
  Bytes send_queue{0};          // of the port; 0: the default
};

struct Scenario {
  uint64_t seed = 0;
  std::vector<HostTraits> hosts;
  ibv_mtu mtu = IBV_MTU_1024;
  BitsPerSec rate{0};
  size_t slow_host = 0;    // with slow_receiver
  uint64_t slow_part = 1;  // divisor of the rate
  Nanos delay{0};
  Bytes switch_queue{0};
  uint16_t vlan = 0;  // 0: untagged
  SimFaults faults;
  uint32_t reliable = 1;    // RC connections
  uint32_t unreliable = 0;  // UC connections

  // Features; kFeatures lists their names.
  bool ipv6 = false;
  bool exact_mtu = false;        // the port's MTU is exactly sufficient for the path MTU
  bool extensions_on = false;    // every host requires extensions
  bool late_receives = false;    // causes RNR NAKs
  bool shared_receives = false;  // the RC queue pairs of a host share a receive queue
  bool channels = false;         // completions are polled only after an event
  bool resize = false;           // completion queues are resized under traffic
  bool drain = false;            // queue pairs go through SQD under traffic
  bool windows = false;
  bool stale_keys = false;  // a connection ends with an access through an invalidated window
  bool kill = false;        // queue pairs are moved to ERR under traffic, and reconnected
  bool restart = false;     // queue pairs are reset or destroyed under traffic, and reconnected
  bool datagrams = false;
  bool multicast = false;
  bool bursts = false;         // a link loses all frames for microseconds
  bool outages = false;        // a link loses all frames for milliseconds
  bool long_outages = false;   // longer than all retries
  bool stalls = false;         // hosts or workers are not polled for some time
  bool tiny_queues = false;    // in the switch
  bool slow_receiver = false;  // the switch sends to one host at a fraction of the rate
  bool controlled = false;     // hosts have congestion control, with different algorithms
  bool slow_hosts = false;     // hosts process a limited number of packets per millisecond
  bool small_ports = false;    // the ports of hosts hold a few frames

  // Smallest local ACK timeout (IBTA 9.7.6.1.3) whose retries take longer than the delay of a full queue at the slow
  // port.
  [[nodiscard]] uint8_t least_timeout() const;
  // Time in which a host processes everything that its port holds.
  [[nodiscard]] Nanos slowest_host() const;
  [[nodiscard]] uint32_t path_mtu() const { return 128U << mtu; }
  // Considers only the links. A full queue of the switch drops frames too, but that must not exhaust the retries.
  [[nodiscard]] bool loses_nothing() const {
    return !(faults.loss > 0 || faults.corruption > 0 || bursts || outages || long_outages);
  }
  // Whether every frame arrives once and in order. A Linux host must also be as fast as its peers.
  [[nodiscard]] bool keeps_order() const {
    return loses_nothing() && !(faults.duplication > 0 || faults.reordering > 0 || tiny_queues ||
                                small_ports || slow_hosts || slow_receiver || stalls);
  }
  // Whether a queue pair may exhaust its retries for reasons other than random losses of one packet.
  [[nodiscard]] bool may_give_up() const {
    // A host that requires extensions also fails if it never receives the peer's capability response.
    return long_outages || (extensions_on && !loses_nothing());
  }
  [[nodiscard]] std::string describe() const;
};

struct Feature {
  std::string_view name;
  bool Scenario::*flag;
};
extern const std::vector<Feature> kFeatures;

// Scenarios in which a part of the hosts are Linux hosts, and hosts process packets slowly or have small port queues.
// At least one host is a Linux host, and at least one is not. Their draws are separate, so that a seed of
// draw_scenario() keeps its scenario.
Scenario draw_linux_scenario(uint64_t seed, std::string_view without = {});

// `without`: comma-separated names of features to remove. Throws for an unknown name.
Scenario draw_scenario(uint64_t seed, std::string_view without = {});

}  // namespace roci::test

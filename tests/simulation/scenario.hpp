// What a seed makes: hosts and their extensions, the network and its faults, what is done on it. Drawn once and then
// fixed, so that one line says it all, and a feature can be taken away to see whether a failure needs it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.hpp"
#include "port/sim_link.hpp"
#include "roci/device.hpp"

namespace roci::test {

struct HostTraits {
  uint32_t workers = 1;
  uint16_t queues = 1;         // of its port
  bool workers_apart = false;  // each is a poller of its own, and may be blocked alone
  uint32_t window_bytes = 512 * 1024;
  uint32_t packets_per_ack = 64;
  bool check_before_placing = false;
  ExtensionConfig extensions;
  CongestionControlConfig control;
};

struct Scenario {
  uint64_t seed = 0;
  std::vector<HostTraits> hosts;
  ibv_mtu mtu = IBV_MTU_1024;
  BitsPerSec rate{0};
  size_t slow_host = 0;    // with slow_receiver
  uint64_t slow_part = 1;  // of the rate
  Nanos delay{0};
  Bytes switch_queue{0};
  uint16_t vlan = 0;  // 0: untagged
  SimFaults faults;
  uint32_t reliable = 1;    // RC connections
  uint32_t unreliable = 0;  // UC connections

  // Features, each in the table below.
  bool ipv6 = false;
  bool exact_mtu = false;        // the port's MTU has room for the path MTU's packets and not a byte more
  bool extensions_on = false;    // every host insists on the extensions
  bool late_receives = false;    // so that RNR NAKs come
  bool shared_receives = false;  // the RC queue pairs of a host share a receive queue
  bool channels = false;         // completions are looked for when an event says so, and only then
  bool resize = false;           // completion queues change their size under traffic
  bool drain = false;            // queue pairs go through SQD under traffic
  bool windows = false;
  bool stale_keys = false;  // some connection ends with an access through a window that is no more
  bool kill = false;        // queue pairs are put into ERR under traffic, and connected again
  bool restart = false;     // queue pairs are reset or destroyed under traffic, and connected again
  bool datagrams = false;
  bool multicast = false;
  bool bursts = false;         // all of a link's frames are lost for microseconds
  bool outages = false;        // for milliseconds
  bool long_outages = false;   // for longer than retries last
  bool stalls = false;         // hosts, or workers, are not polled for a while
  bool tiny_queues = false;    // in the switch
  bool slow_receiver = false;  // the switch sends to one host at a fraction of the rate
  bool controlled = false;     // hosts have congestion control, each another one

  // The least local ACK timeout (IBTA 9.7.6.1.3) whose retries last longer than a full queue of the slow port delays.
  [[nodiscard]] uint8_t least_timeout() const;
  [[nodiscard]] uint32_t path_mtu() const { return 128U << mtu; }
  // What the links do. A full queue of the switch loses frames nevertheless, and that is no reason to give up.
  [[nodiscard]] bool loses_nothing() const {
    return !(faults.loss > 0 || faults.corruption > 0 || bursts || outages || long_outages);
  }
  // Whether a queue pair may use up its retries for more than the bad luck of one packet.
  [[nodiscard]] bool may_give_up() const {
    // Who insists on extensions fails, too, when a peer's answer to the question for them never comes through.
    return long_outages || (extensions_on && !loses_nothing());
  }
  [[nodiscard]] std::string describe() const;
};

struct Feature {
  std::string_view name;
  bool Scenario::*flag;
};
extern const std::vector<Feature> kFeatures;

// `without`: names of features, separated by commas, that are taken away. Throws when there is none of that name.
Scenario draw_scenario(uint64_t seed, std::string_view without = {});

}  // namespace roci::test

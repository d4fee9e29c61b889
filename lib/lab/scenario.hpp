// An experiment of the lab as it is written in a file (config/lab/ has commented examples): a network, what its hosts and
// switches are told, who sends what to whom, and what goes wrong.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "lab/expectation.hpp"
#include "lab/size_distribution.hpp"
#include "lab/topology.hpp"
#include "port/sim_link.hpp"
#include "roci/device.hpp"
#include "switch/switch_config.hpp"

namespace roci::lab {

enum class Operation : uint8_t { kWrite, kRead, kSend };

// Messages that belong together: who sends them to whom, when, and how large they are.
struct TrafficSpec {
  enum class Pattern : uint8_t {
    kFanIn,        // every sender to every receiver
    kPairs,        // the n-th sender to the n-th receiver
    kPermutation,  // every sender to one receiver of its own, drawn; nobody to itself
    kAllToAll,     // every sender to every receiver but itself
    kRandom,       // each message to a receiver that is drawn for it
  };
  enum class Arrivals : uint8_t {
    kAtOnce,      // `flows` for each pair at `start`
    kPoisson,     // so many that senders offer `load` of their lines' rate, payload only
    kClosedLoop,  // each pair has `depth` messages under way, and begins the next `think` after one has ended
  };

  std::string name;
  Pattern pattern = Pattern::kFanIn;
  Arrivals arrivals = Arrivals::kAtOnce;
  std::vector<uint32_t> from, to;  // hosts
  Operation operation = Operation::kWrite;
  double read_share = 0;   // closed loop: of the messages that are READs in the place of `operation`
  bool unlimited = false;  // flows that send until `stop`
  SizeDistribution size = SizeDistribution::constant(1 << 20);
  uint64_t message = 1 << 20;  // longer flows are messages of so many bytes, two of them under way
  uint32_t flows = 1;
  double load = 0;
  uint32_t degree =
      0;  // Poisson: arrivals are of so many senders at once to one receiver, both drawn; 0: of one
  uint32_t depth = 1;
  Nanos think{0};
  Nanos start{0};
  Nanos stop = kNever;             // no flow begins any more, and unlimited ones end
  Nanos stagger{0};                // at once: between the beginnings of one pair's flows and the next one's
  std::string congestion_control;  // empty: the hosts'
  uint8_t traffic_class = 0;       // IPv4 TOS; DSCP in its first six bits
};

// What a cable does to frames from `from` on until `until`.
struct FaultSpec {
  uint32_t cable = 0;
  std::optional<SimLink::Direction> direction;  // both when there is none
  Nanos from{0}, until = kNever;
  bool down = false;
  SimFaults faults;
};

// A cable that is really there when the scenario runs in real time: its ends are ports of DPDK's, which the user has
// connected with each other.
struct RealCable {
  uint32_t cable = 0;
  std::array<std::string, 2> devices;  // of the cable's ends a and b: "net_af_packet0,iface=veth0"
  std::string where;                   // in the file, for what is wrong later: "x.yaml:7: ports[0].devices"
};

// A part of the time that is summed up for itself: from `from` until just before `until`, since the traffic began.
struct TimeWindow {
  std::string name;
  Nanos from{0}, until{0};
};

struct Scenario {
  std::string file;
  std::string name, about, source;
  uint64_t seed = 1;
  Nanos duration = 1ms;  // of the traffic
  Nanos drain{0};        // for flows that are under way then, at most
  Nanos settle{0};       // from the beginning, before what is measured of queues, rates and drops counts
  Nanos sample = 1us;    // between two looks at the queues
  bool payload =
      false;  // bytes are carried and summed; else lengths and headers are real and the bytes are not there
  Topology topology;
  uint32_t path_mtu = 1024;  // bytes
  uint16_t port_mtu = 0;     // what ports carry: the path MTU with all headers
  DeviceConfig
      host;  // what all hosts are told; its base round trip time is the longest one's where it was left out
  std::vector<SwitchConfig> switches;  // one for each of the topology
  std::vector<TrafficSpec> traffic;
  std::vector<FaultSpec> faults;
  std::vector<RealCable> ports;
  std::vector<TimeWindow> windows;  // beside the whole, settle to duration
};

// One run of a file that has several.
struct RunSpec {
  std::string name;  // "hpcc", "load=0.3"; empty when there is one run only
  [[nodiscard]] std::string called() const { return name.empty() ? "run" : name; }  // by expectations
  std::vector<ConfigChange> changes;                                                // what makes it different
};
// What `variants` and `sweep` of the file make, in the order in which they stand there; one without them. `changes` come
// before those.
Result<std::vector<RunSpec>> read_runs(const std::string& file, const std::vector<ConfigChange>& changes);
// What the file expects of these runs of it.
Result<std::vector<Expectation>> read_expectations(const std::string& file, const std::vector<RunSpec>& runs);
// What cannot be when the scenario runs on its real ports.
Status check_real(const Scenario& scenario);
Result<Scenario> read_scenario(const std::string& file, const std::vector<ConfigChange>& changes);
Result<Scenario> parse_scenario(const std::string& text, const std::string& name,
                                const std::vector<ConfigChange>& changes = {});

}  // namespace roci::lab

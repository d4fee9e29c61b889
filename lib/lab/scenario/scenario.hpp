// Scenario: an experiment of the lab as read from a file (config/lab/ has commented examples), with network,
// configuration of hosts and switches, traffic and faults.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "lab/network/topology.hpp"
#include "lab/results/expectation.hpp"
#include "lab/traffic/flow_list.hpp"
#include "lab/traffic/size_distribution.hpp"
#include "port/sim/sim_link.hpp"
#include "roci/device.hpp"
#include "switch/switch_config.hpp"

namespace roci::lab {

enum class Operation : uint8_t { kWrite, kRead, kSend };

// Traffic: messages with common hosts, start times and sizes.
struct TrafficSpec {
  enum class Pattern : uint8_t {
    kFanIn,        // each sender to each receiver
    kPairs,        // n-th sender to n-th receiver
    kPermutation,  // each sender to one receiver of its own, drawn, not itself
    kAllToAll,     // each sender to each receiver except itself
    kRandom,       // a receiver is drawn for each message
  };
  enum class Arrivals : uint8_t {
    kAtOnce,      // `flows` for each pair at `start`
    kPoisson,     // senders offer `load` times their line rate, as payload
    kClosedLoop,  // each pair has `depth` messages in flight; the next starts `think` after one has ended
    kListed,      // the flows of a list
  };

  std::string name;
  Pattern pattern = Pattern::kFanIn;
  Arrivals arrivals = Arrivals::kAtOnce;
  std::vector<uint32_t> from, to;  // hosts; not used by listed flows
  std::vector<ListedFlow> list;    // listed flows, in the order of the list
  Operation operation = Operation::kWrite;
  double read_share = 0;   // closed loop: fraction of messages that are READs instead of `operation`
  bool unlimited = false;  // flows that send until `stop`
  SizeDistribution size = SizeDistribution::constant(1 << 20);
  // Maximum message size in bytes. A longer flow has several messages, two of them in flight.
  uint64_t message = 1 << 20;
  uint32_t flows = 1;
  double load = 0;
  // Poisson: number of senders that start at the same time to one receiver, all drawn. 0: each sender starts by itself.
  uint32_t degree = 0;
  uint32_t depth = 1;
  Nanos think{0};
  Nanos start{0};
  Nanos stop = kNever;             // no flow starts from then on, and unlimited flows end
  Nanos stagger{0};                // at once: time between the starts of consecutive pairs
  std::string congestion_control;  // empty: that of the hosts
  uint8_t traffic_class = 0;       // IPv4 TOS; DSCP in its first six bits
};

// Faults of a cable from `from` until `until`.
struct FaultSpec {
  uint32_t cable = 0;
  std::optional<SimLink::Direction> direction;  // empty: both
  Nanos from{0}, until = kNever;
  bool down = false;
  SimFaults faults;

  // Whether the frames of a direction are subject to `faults`.
  [[nodiscard]] bool affects(SimLink::Direction of) const {
    return (!direction || *direction == of) &&
           (faults.loss > 0 || faults.duplication > 0 || faults.reordering > 0 || faults.corruption > 0 ||
            faults.marking > 0);
  }
  // Whether both would set the faults of the same frames.
  [[nodiscard]] bool conflicts_with(const FaultSpec& other) const {
    const auto both = [&](SimLink::Direction of) { return affects(of) && other.affects(of); };
    return cable == other.cable && from < other.until && other.from < until &&
           (both(SimLink::kAToB) || both(SimLink::kBToA));
  }
};

// Cable that is real when the scenario runs in real time: its ends are DPDK ports that the user has connected.
struct RealCable {
  uint32_t cable = 0;
  std::array<std::string, 2> devices;  // of ends a and b: "net_af_packet0,iface=veth0"
  std::string where;                   // place in the file, for later errors: "x.yaml:7: ports[0].devices"
};

// Interval with a summary of its own: from `from` until just before `until`, since the start of the traffic.
struct TimeWindow {
  std::string name;
  Nanos from{0}, until{0};
};

inline constexpr Nanos kDefaultTimeOrigin = 2s;

struct Scenario {
  std::string file;
  std::string name, about, source;
  uint64_t seed = 1;
  // Start of the traffic in the time of another simulator, for exchanged files. Not used by the run.
  Nanos time_origin = kDefaultTimeOrigin;
  Nanos duration = 1ms;  // of the traffic
  Nanos drain{0};        // maximum time for flows in flight to end
  Nanos settle{0};       // time from the start that queues, rates and drops do not include
  Nanos sample = 1us;    // interval of queue samples
  // true: payload is carried, and checked by the ICRC. false: lengths and headers are real, payload bytes are absent.
  bool payload = false;
  Topology topology;
  uint32_t path_mtu = 1024;  // bytes
  uint16_t port_mtu = 0;     // MTU of ports: the path MTU with all headers
  // Configuration of all hosts. Its base_rtt defaults to the longest of any two hosts.
  DeviceConfig host;
  std::vector<SwitchConfig> switches;  // by switch of the topology
  std::vector<TrafficSpec> traffic;
  std::vector<FaultSpec> faults;
  std::vector<RealCable> ports;
  std::vector<TimeWindow> windows;  // in addition to the whole: settle to duration
};

// One of several runs of a file.
struct RunSpec {
  std::string name;  // "hpcc", "load=0.3"; empty if the file has one run only
  [[nodiscard]] std::string called() const { return name.empty() ? "run" : name; }  // name in expectations
  // Changes of the file that distinguish the run.
  std::vector<ConfigChange> changes;
};
// Runs by `variants` and `sweep` of the file, in the order of the file; one run without these keys. `changes` are
// applied before those of the runs.
Result<std::vector<RunSpec>> read_runs(const std::string& file, const std::vector<ConfigChange>& changes);
// Reads the expectations of the file about these runs.
Result<std::vector<Expectation>> read_expectations(const std::string& file, const std::vector<RunSpec>& runs);
// Checks whether the scenario can run on its real ports.
Status check_real(const Scenario& scenario);
Result<Scenario> read_scenario(const std::string& file, const std::vector<ConfigChange>& changes);
Result<Scenario> parse_scenario(const std::string& text, const std::string& name,
                                const std::vector<ConfigChange>& changes = {});

}  // namespace roci::lab

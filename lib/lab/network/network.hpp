// Network of a scenario: devices and switches (production code) on simulated links. In real time, some of them use
// ports that the user has connected.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "lab/execution/arrival_calendar.hpp"
#include "lab/network/node.hpp"
#include "lab/network/pause_recorder.hpp"
#include "lab/network/real_port.hpp"
#include "lab/scenario/scenario.hpp"
#include "lab/traffic/host_program.hpp"
#include "port/dpdk/mbuf_pool.hpp"
#include "port/sim/sim_link.hpp"
#include "switch/switch.hpp"
#include "telemetry/counters.hpp"

namespace roci::lab {

struct NetworkOptions {
  bool real = false;                 // use the scenario's real ports
  uint64_t busy_hosts = UINT64_MAX;  // hosts with traffic; the number of packet buffers depends on it
  bool record_pauses = false;  // record the PFC frames that hosts and switches receive on simulated links
};

class Network {
 public:
  static Result<std::unique_ptr<Network>> create(const Scenario& scenario, const NetworkOptions& options);
  ~Network();

  [[nodiscard]] const Scenario& scenario() const { return scenario_; }
  // Switches first, since they have the most work.
  [[nodiscard]] std::vector<std::unique_ptr<Node>>& nodes() { return nodes_; }
  [[nodiscard]] Node& node_of_host(uint32_t host) { return *nodes_[switches_.size() + host]; }
  [[nodiscard]] Device& device(uint32_t host) { return *hosts_[host].device; }
  [[nodiscard]] HostProgram& program(uint32_t host) { return *hosts_[host].program; }
  [[nodiscard]] Switch& at(uint32_t number) { return *switches_[number]; }
  // The cable must be simulated.
  [[nodiscard]] SimLink& link(uint32_t cable) { return *links_[cable]; }
  [[nodiscard]] bool has_real_ports() const { return !real_ports_.empty(); }
  [[nodiscard]] std::vector<RealPortCounts> real_port_counts() const;

  // Recorded PFC frames from `origin` on, in order of time, with times since then.
  [[nodiscard]] std::vector<PauseEvent> pause_events(Nanos origin) const;

  // Connected queue pairs of two hosts: requester and peer. connect() must be called while no node runs.
  struct Connection {
    std::unique_ptr<QueuePair> requester, peer;
    uint64_t remote = 0;
    uint32_t rkey = 0;
  };
  Result<Connection> connect(uint32_t requester, uint32_t peer, const TrafficSpec& spec);

  // Sum over all hosts.
  [[nodiscard]] uint64_t counter(Counter counter) const;
  // Failed buffer allocations. If there was any, the results are invalid.
  [[nodiscard]] uint64_t without_buffer() const;

 private:
  Network(const Scenario& scenario, bool record_pauses)
      : scenario_(scenario), record_pauses_(record_pauses) {}
  Status open_ports();
  [[nodiscard]] RealPort* real_port(uint32_t cable, bool end_b) const;
  // Port of a simulated cable for a node; a recorder in front of it, if pauses are recorded.
  Port& port_at(uint32_t cable, bool end_b, const PauseEvent& receiver);
  void make_links();
  Status make_switches();
  // Hosts and switches at the other ends of a switch's simulated cables.
  [[nodiscard]] std::vector<SwitchNeighborConfig> neighbors_of(uint32_t switch_number) const;
  Status make_hosts();

  struct HostParts {
    std::unique_ptr<Device> device;
    std::unique_ptr<ProtectionDomain> pd;
    std::unique_ptr<CompletionQueue> cq;
    std::vector<uint8_t> bytes;  // if payload is carried
    std::unique_ptr<MemoryRegion> memory;
    std::unique_ptr<HostProgram> program;
  };

  const Scenario& scenario_;
  const bool record_pauses_;
  std::shared_ptr<MbufPool> pool_;
  struct RealEnd {
    uint32_t cable;
    bool end_b;
    std::unique_ptr<RealPort> port;
  };
  std::vector<RealEnd> real_ports_;
  std::vector<std::unique_ptr<SimLink>> links_;              // by cable; null for real cables
  std::vector<std::unique_ptr<PauseRecorder>> recorders_;    // of hosts and switches
  std::vector<std::unique_ptr<ArrivalCalendar>> calendars_;  // by switch
  std::vector<std::unique_ptr<Switch>> switches_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<uint8_t> nothing_;  // memory of all hosts if payload is absent
  std::vector<HostParts> hosts_;
  uint32_t next_psn_ = 1;
};

}  // namespace roci::lab

// Hosts of a scenario in a star topology around one switch, with fault injection and a digest of all frames.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "base/time/virtual_runner.hpp"
#include "device/host/host.hpp"
#include "port/capture/pcapng.hpp"
#include "port/sim/sim_link.hpp"
#include "simulation/linux/linux_host.hpp"
#include "simulation/scenario/scenario.hpp"
#include "simulation/verifier.hpp"
#include "switch/switch.hpp"

namespace roci::test {

class Network {
 public:
  Network(const Scenario& scenario, Rng rng, VirtualRunner& runner, Verifier& verifier);
  ~Network();

  [[nodiscard]] Device& device(size_t host) { return *devices_[host]; }  // not of a Linux host
  [[nodiscard]] LinuxHost* linux_host(size_t host) {
    return linux_hosts_[host].get();
  }  // null if it is not one
  [[nodiscard]] size_t hosts() const { return devices_.size(); }
  [[nodiscard]] ibv_gid gid(size_t host) const;
  [[nodiscard]] uint64_t digest() const { return digest_; }
  // Returns and clears the number of events of this type for an object. An unexpected event type is a failure.
  uint32_t take_events(size_t host, ibv_event_type type, uint32_t number);
  void collect_events();

  // Number of frames that were lost or corrupted so far, except those that the full port of a host has dropped.
  [[nodiscard]] uint64_t losses() const;

  // Called after all traffic has ended.
  void check_counters();
  void add_up();
  [[nodiscard]] std::string counters() const;  // nonzero counters of all hosts
  // Called after all objects of the devices were destroyed: destroys the network and checks that all buffers were
  // returned.
  void take_down();

 private:
  class Gate;
  class SmallPort;
  class LinkOutages;
  void make_host(size_t host, Rng& rng);
  void make_device(size_t host, Rng& rng);
  void make_linux_host(size_t host, Rng& rng);
  void digest_frame(uint64_t where, const rte_mbuf& frame);
  void capture_frame(size_t host, SimLink::Direction direction, const rte_mbuf& frame);
  void write_capture() const;
  [[nodiscard]] std::string address(size_t host) const;

  const Scenario& scenario_;
  const VirtualRunner& runner_;
  Verifier& verifier_;
  std::unique_ptr<PcapngBuffer> capture_;  // set with ROCI_CAPTURE
  std::shared_ptr<MbufPool> pool_;
  std::vector<std::unique_ptr<Device>> devices_;         // one per host; null for a Linux host
  std::vector<std::unique_ptr<LinuxHost>> linux_hosts_;  // one per host; null for a Rocinante host
  std::vector<std::unique_ptr<SimLink>> links_;
  std::unique_ptr<Switch> switch_;
  std::vector<std::unique_ptr<Gate>> gates_;
  std::unique_ptr<LinkOutages> outages_;
  std::map<std::tuple<size_t, ibv_event_type, uint32_t>, uint32_t> events_;
  uint64_t digest_ = 0;
};

}  // namespace roci::test

// Software switch: a learning VLAN bridge (802.1Q) with static layer 3 forwarding between its VLANs. It has eight
// traffic classes with marking, bandwidth shares and flow control, and a paced line at each port. The ports are divided
// among one or more workers; each may have its own core (switch_worker.hpp describes the stages).
//
// Threads: each worker is polled by one thread. If the switch itself is polled, this thread polls all workers. Counters
// may be read by any thread.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "switch/pipeline/switch_worker.hpp"

namespace roci {

class Switch final : public Poller {
 public:
  // MAC address of a switch with this configuration.
  static MacAddress mac_of(const SwitchConfig& config);
  // `ports` in the order of config.ports; they must outlive the switch. `pool` provides copies and generated frames.
  static Result<std::unique_ptr<Switch>> create(const SwitchConfig& config, const std::vector<Port*>& ports,
                                                std::shared_ptr<MbufPool> pool);
  ~Switch() override;

  // Sets the arrival forecast. Only for a switch of one worker, before the first poll().
  void report_arrivals_to(SwitchArrivals& arrivals) { workers_.front()->report_arrivals_to(arrivals); }

  // Polls all workers in order.
  bool poll(Nanos now) override;
  [[nodiscard]] Nanos next_deadline() const override;
  [[nodiscard]] std::string_view name() const override { return shared_.config.name; }

  // Workers as separate pollers, instead of the switch.
  [[nodiscard]] size_t worker_count() const { return workers_.size(); }
  [[nodiscard]] size_t worker_of(size_t port) const { return shared_.config.ports[port].worker; }
  [[nodiscard]] Poller& worker(size_t i) { return *workers_[i]; }

  [[nodiscard]] size_t port_count() const { return shared_.ports.size(); }
  [[nodiscard]] const SwitchPortConfig& port_config(size_t port) const { return shared_.config.ports[port]; }
  [[nodiscard]] const SwitchPortCounters& counters(size_t port) const {
    return shared_.ports[port]->counters;
  }
  // Drops of frames that the switch itself has generated.
  [[nodiscard]] uint64_t own_dropped() const;
  // MAC addresses that moved to another port, and MAC addresses not learned because the table was full.
  [[nodiscard]] uint64_t mac_moves() const;
  [[nodiscard]] uint64_t mac_table_full() const;
  // Of one worker; called by its polling thread.
  [[nodiscard]] uint32_t mac_table_size(size_t worker = 0) const {
    return workers_[worker]->mac_table_size();
  }
  // Sums of all workers.
  [[nodiscard]] CnmCounts cnm_counts() const;
  [[nodiscard]] CnpCounts cnp_counts() const;
  [[nodiscard]] IntResponseCounts int_response_counts() const;
  [[nodiscard]] SenderCounts sender_counts() const;
  [[nodiscard]] size_t shaper_count() const { return shared_.config.shapers.size(); }
  [[nodiscard]] const SwitchShaperConfig& shaper_config(size_t shaper) const {
    return shared_.config.shapers[shaper];
  }
  [[nodiscard]] ShaperCounts shaper_counts(size_t shaper) const;
  // Bytes in the shared buffer.
  [[nodiscard]] uint64_t buffer_used() const { return shared_.buffer.used(); }
  [[nodiscard]] const MacAddress& mac() const { return shared_.mac; }
  // Replaces the AQM curves of a port's classes. Called by the thread that polls the port's worker. Weights, limits and
  // PFC do not change; queued frames are not affected. Fails as check().
  Status configure_marking(size_t port, const ClassConfigs& classes);
  // Inserts a frame that arrives at the port in the next round, in addition to received frames. Called by the same
  // thread. Returns false, and leaves the frame to the caller, if too many inserted frames wait.
  bool insert(size_t port, rte_mbuf* frame) { return workers_[worker_of(port)]->insert(port, frame); }

 private:
  Switch(const SwitchConfig& config, std::shared_ptr<MbufPool> pool);

  SwitchShared shared_;
  std::vector<std::unique_ptr<SwitchWorker>> workers_;
};

}  // namespace roci

// A software switch: a learning VLAN bridge (802.1Q) with static layer 3 forwarding between its VLANs, eight traffic
// classes with their own marking, shares of the line and flow control, and a paced line behind every port. Its ports are
// shared out to one or more workers, each of which may have a core of its own (switch_worker.hpp has the stages).
//
// Threads: each worker is polled by one; all by the same one when the switch itself is polled. What counts may be read by
// any.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "switch/switch_worker.hpp"

namespace roci {

class Switch final : public Poller {
 public:
  // `ports` in the order of config.ports; they must outlive the switch. `pool` gives copies and answers.
  static Result<std::unique_ptr<Switch>> create(const SwitchConfig& config, const std::vector<Port*>& ports,
                                                std::shared_ptr<MbufPool> pool);
  ~Switch() override;

  // For a switch of one worker, before the first round.
  void foresee(SwitchArrivals& arrivals) { workers_.front()->foresee(arrivals); }

  // All workers, one after the other.
  bool poll(Nanos now) override;
  [[nodiscard]] Nanos next_deadline() const override;
  [[nodiscard]] std::string_view name() const override { return shared_.config.name; }

  // As pollers of their own, in the place of the switch.
  [[nodiscard]] size_t worker_count() const { return workers_.size(); }
  [[nodiscard]] size_t worker_of(size_t port) const { return shared_.config.ports[port].worker; }
  [[nodiscard]] Poller& worker(size_t i) { return *workers_[i]; }

  [[nodiscard]] size_t port_count() const { return shared_.ports.size(); }
  [[nodiscard]] const SwitchPortConfig& port_config(size_t port) const { return shared_.config.ports[port]; }
  [[nodiscard]] const SwitchPortCounters& counters(size_t port) const {
    return shared_.ports[port]->counters;
  }
  // What was dropped of the frames that the switch itself had made.
  [[nodiscard]] uint64_t own_dropped() const;
  // Addresses that changed their port, and that were not learnt because the table was full.
  [[nodiscard]] uint64_t mac_moves() const;
  [[nodiscard]] uint64_t mac_table_full() const;
  // By the polling thread, of a worker.
  [[nodiscard]] uint32_t mac_table_size(size_t worker = 0) const {
    return workers_[worker]->mac_table_size();
  }
  // Of all ports.
  [[nodiscard]] CnmCounts cnm_counts() const;
  [[nodiscard]] CnpCounts cnp_counts() const;
  [[nodiscard]] IntResponseCounts int_response_counts() const;
  [[nodiscard]] SenderCounts sender_counts() const;
  [[nodiscard]] size_t shaper_count() const { return shared_.config.shapers.size(); }
  [[nodiscard]] const SwitchShaperConfig& shaper_config(size_t shaper) const {
    return shared_.config.shapers[shaper];
  }
  [[nodiscard]] ShaperCounts shaper_counts(size_t shaper) const;
  [[nodiscard]] const MacAddress& mac() const { return shared_.mac; }
  // By the thread that polls the port's worker: curves of a port's classes from now on. Shares, limits and PFC stay as they
  // are; what waits is not touched. Fails as check() does.
  Status configure_marking(size_t port, const ClassConfigs& classes);
  // By the same thread: a frame that comes in by the port in its next round, beside what does anyway. The caller has it still
  // when as many as may be wait already, and false is returned.
  bool insert(size_t port, rte_mbuf* frame) { return workers_[worker_of(port)]->insert(port, frame); }

 private:
  Switch(const SwitchConfig& config, std::shared_ptr<MbufPool> pool);

  SwitchShared shared_;
  std::vector<std::unique_ptr<SwitchWorker>> workers_;
};

}  // namespace roci

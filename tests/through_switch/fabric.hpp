// Network of hosts and switches in virtual time, assembled from links, switches and hosts.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/time/virtual_runner.hpp"
#include "device/api/create_device.hpp"
#include "device/host/host.hpp"
#include "port/dpdk/eal.hpp"
#include "port/sim/borrowed_port.hpp"
#include "port/sim/sim_link.hpp"
#include "support/hosts/connect.hpp"
#include "support/hosts/services.hpp"
#include "support/hosts/two_hosts.hpp"
#include "support/must.hpp"
#include "switch/switch.hpp"

namespace roci::test {

class Fabric {
 public:
  Fabric() {
    must(start_eal());
    pool_ = must(MbufPool::create("fabric", 16384, 4600));
  }

  SimLink& add_link(SimLinkConfig config) {
    config.name = "link" + std::to_string(links_.size());
    config.seed = links_.size() + 1;
    links_.push_back(std::make_unique<SimLink>(config, pool_));
    runner.add(*links_.back());
    return *links_.back();
  }
  Switch& add_switch(const SwitchConfig& config, const std::vector<Port*>& ports) {
    switches_.push_back(must(Switch::create(config, ports, pool_)));
    runner.add(*switches_.back());
    return *switches_.back();
  }
  // Adds host 10.0.0.n, counted from 1, unless the configuration has an address. poll_host() starts polling it.
  Side& add_host(Port& port, DeviceConfig config, size_t memory = 1 << 20) {
    sides_.push_back(std::make_unique<Side>());
    Side& side = *sides_.back();
    const std::string number = std::to_string(sides_.size());
    config.name = "h" + number;
    if (config.addresses.empty()) config.addresses = {"10.0.0." + number + "/24"};
    config.progress = Progress::kExternal;
    if (config.seed == 0) config.seed = sides_.size();
    side.device = must(create_device(std::make_unique<BorrowedPort>(port), config));
    side.pd = must(side.device->allocate_pd());
    side.cq = must(side.device->create_cq(4096));
    side.memory.resize(memory);
    side.region = must(side.pd->register_memory(side.memory.data(), side.memory.size(),
                                                IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                                    IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC));
    return side;
  }
  void poll_host(Side& side) {
    for (uint32_t i = 0; i < side.device->host().workers(); ++i) runner.add(side.device->poller(i));
  }
  // Connects a queue pair of each host. They become the qp of the sides.
  void connect(Side& x, Side& y, ConnectOptions options = {}, ibv_qp_type type = IBV_QPT_RC) {
    const ibv_qp_cap cap{
        .max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 2, .max_recv_sge = 2, .max_inline_data = 0};
    x.qp = make_service(x, type, nullptr, true, cap);
    y.qp = make_service(y, type, nullptr, true, cap);
    options.rq_psn = options.sq_psn = 1000;
    connect_to(*x.qp, type, must(y.device->query_gid(1)), y.qp->qp_num(), options);
    connect_to(*y.qp, type, must(x.device->query_gid(1)), x.qp->qp_num(), options);
    run(10ms);
  }
  void run(Nanos span) { must(runner.run_until(runner.now() + span)); }

  [[nodiscard]] SimLink& link(size_t i) { return *links_[i]; }
  [[nodiscard]] size_t links() const { return links_.size(); }
  [[nodiscard]] Switch& at(size_t i) { return *switches_[i]; }
  [[nodiscard]] const std::shared_ptr<MbufPool>& pool() const { return pool_; }

  VirtualRunner runner;

 private:
  std::shared_ptr<MbufPool> pool_;
  std::vector<std::unique_ptr<SimLink>> links_;
  std::vector<std::unique_ptr<Side>> sides_;  // use ports of links
  std::vector<std::unique_ptr<Switch>> switches_;
};

// Number of successful completions so far. Another status fails the test.
inline size_t successes(Side& side) {
  size_t count = 0;
  for (const ibv_wc& wc : side.completions()) {
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS) << wc.wr_id;
    ++count;
  }
  return count;
}

}  // namespace roci::test

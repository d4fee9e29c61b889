// Two devices exchange messages over shared memory into which a third process writes random data. They neither crash
// nor access memory outside of the rings and the registered regions, and work again after it has stopped.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "port/dpdk/eal.hpp"
#include "support/hosts/shm_hosts.hpp"
#include "support/ports/shm_scribbler.hpp"

namespace roci::test {
namespace {

constexpr size_t kHostMemory = 256 * 1024, kWritten = 100'000;

class SharedMemoryHostile : public testing::Test {
 protected:
  void open(bool icrc) {
    must(start_eal());
    segment_ = must(ShmSegment::create());
    for (uint32_t slot = 0; slot < 2; ++slot) {
      ShmPortConfig port = shm_port_config(slot, 3);
      port.needs_icrc = icrc;
      open_shm_host(hosts_[slot], segment_, port, shm_device_config(slot), kHostMemory);
      std::ranges::fill(hosts_[slot].memory, static_cast<uint8_t>(slot + 1));
    }
  }
  void connect() {
    for (ShmHost& host : hosts_) host.qp = create_rc(host, 32);
    connect_rc(hosts_[0], *hosts_[0].qp, hosts_[1], *hosts_[1].qp, 8);
  }
  void poll() {
    now_ += Nanos{10'000};
    for (ShmHost& host : hosts_) host.device->host().poll(now_);
  }
  // Opens a shared segment without the hostile process.
  void reopen(bool icrc) {
    for (ShmHost& host : hosts_) {
      host.qp.reset();
      host.region.reset();
      host.cq.reset();
      host.pd.reset();
      host.device.reset();
      host.shm.reset();
    }
    open(icrc);
  }
  void TearDown() override {
    for (ShmHost& host : hosts_) {
      host.qp.reset();
      host.region.reset();
      host.cq.reset();
      host.pd.reset();
      host.device.reset();
    }
  }
  // Exchanges messages of all lengths in both directions until the hostile thread has run often enough.
  void exchange_beside_hostile_process() {
    constexpr std::array<uint32_t, 3> kSlots{0, 1, 2};
    const Scribbler hostile{[&](Rng& random) { scribble_slots(random, *segment_, kSlots); }};
    Rng rng{5};
    for (uint64_t round = 0; hostile.continues(round, 3'000) && !HasFailure(); ++round) {
      for (uint32_t from = 0; from < 2; ++from) {
        ShmHost &host = hosts_[from], &peer = hosts_[1 - from];
        if (host.qp->state() == IBV_QPS_ERR || peer.qp->state() == IBV_QPS_ERR) connect();
        post_rdma(host, *host.qp, peer, rng.chance(0.3) ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
                  static_cast<uint32_t>(1 + rng.below(kWritten)));
        for (const ibv_wc& wc : host.completions()) completed_ += wc.status == IBV_WC_SUCCESS ? 1 : 0;
      }
      for (int polls = 0; polls < 5; ++polls) poll();
    }
  }

  std::shared_ptr<ShmSegment> segment_;
  std::array<ShmHost, 2> hosts_;
  Nanos now_ = 1s;
  uint64_t completed_ = 0;
};

TEST_F(SharedMemoryHostile, devices_do_not_crash_on_random_writes_into_the_rings) {
  for (const bool icrc : {true, false}) {
    SCOPED_TRACE(icrc);
    completed_ = 0;
    open(icrc);
    connect();
    exchange_beside_hostile_process();
    EXPECT_GT(completed_, 0U);
    EXPECT_GT(hosts_[0].shm->shm_stats().malformed + hosts_[1].shm->shm_stats().malformed, 0U)
        << "the hostile process has written into rings that nobody reads";
    // Memory that no request named is unchanged.
    for (const ShmHost& host : hosts_) {
      EXPECT_TRUE(std::all_of(host.memory.begin() + kWritten, host.memory.end(),
                              [&](uint8_t byte) { return byte == host.memory.back(); }));
    }
    reopen(icrc);
    connect();
    ASSERT_TRUE(post_rdma(hosts_[0], *hosts_[0].qp, hosts_[1], IBV_WR_RDMA_WRITE, kWritten));
    for (int polls = 0; polls < 2000; ++polls) poll();
    const auto all = hosts_[0].completions();
    ASSERT_EQ(all.size(), 1U);
    EXPECT_EQ(all[0].status, IBV_WC_SUCCESS);
    EXPECT_EQ(hosts_[1].memory[kWritten - 1], 1);
    TearDown();
    for (ShmHost& host : hosts_) host.shm.reset();
  }
}

}  // namespace
}  // namespace roci::test

// Processes that are scheduled in turns: two programs and optionally a switch between them. As long as each of them
// runs sometimes, no request fails with RETRY_EXC, however long a process waits. Shared-memory ports and virtual
// time.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/rng.hpp"
#include "port/dpdk/eal.hpp"
#include "port/shm/shm_switch.hpp"
#include "support/hosts/shm_hosts.hpp"
#include "support/sanitizer.hpp"
#include "switch/switch.hpp"

namespace roci {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

// The port without information about peers, so that the transport has only the clock.
class PortOfUnknownPeers final : public BorrowedPort {
 public:
  using BorrowedPort::BorrowedPort;
  [[nodiscard]] PeerPresence* peers() override { return nullptr; }
};

// A process that is scheduled in turns.
struct Scheduled {
  bool runs = true;
  Nanos until{0};  // end of its time slice, or of its wait
};

// A process: its engine polls while the process is scheduled.
struct Process : Scheduled, ShmHost {
  unsigned to_post = 0, under_way = 0, failed = 0;
};

struct SwitchProcess : Scheduled {
  std::shared_ptr<MbufPool> pool;
  std::unique_ptr<ShmSwitch> shm;
  std::vector<std::unique_ptr<Port>> ports;
  std::unique_ptr<Switch> forwarding;
};

struct Turns {
  Nanos shortest, longest;
  unsigned cores;  // with one core, one process runs while the others wait
};

class TimeSlicedProcesses : public testing::Test {
 protected:
  static constexpr size_t kMemory = 64 * 1024;

  struct With {
    bool peers_known = true, a_switch = false;
  };
  void open(With with) {
    must(start_eal());
    segment_ = must(ShmSegment::create());
    if (with.a_switch) open_switch();
    for (uint32_t slot = 0; slot < 2; ++slot) open_process(slot, with.peers_known);
    for (Process& process : processes_) all_.push_back(&process);
    if (switch_) all_.push_back(&*switch_);
  }

  void open_switch() {
    switch_.emplace();
    switch_->pool = must(MbufPool::create("switch", 4096, 4600));
    switch_->shm = std::make_unique<ShmSwitch>(segment_);
    SwitchConfig config;
    config.name = "turns";
    std::vector<Port*> ends;
    for (uint32_t slot = 0; slot < 2; ++slot) {
      SwitchPortConfig& port = config.ports.emplace_back();
      port.name = "slot" + std::to_string(slot);
      switch_->ports.push_back(must(switch_->shm->open_port({port.name, slot, 4400, switch_->pool})));
      ends.push_back(switch_->ports.back().get());
    }
    switch_->forwarding = must(Switch::create(config, ends, switch_->pool));
    switch_->shm->join();
  }

  void open_process(uint32_t slot, bool peers_known) {
    ShmPortConfig port = shm_port_config(slot, 2);
    port.via_switch = switch_.has_value();
    const auto open = peers_known ? open_shm_host<BorrowedPort> : open_shm_host<PortOfUnknownPeers>;
    open(processes_[slot], segment_, std::move(port), shm_device_config(slot), kMemory);
  }

  // Returns the number of failed requests.
  unsigned run(uint64_t seed, const Turns& turns) {
    Rng rng{seed};
    connect();
    for (Process& process : processes_) {
      process.to_post = 1 + static_cast<unsigned>(rng.below(6));
      process.under_way = process.failed = 0;
    }
    for (Scheduled* one : all_) {
      one->runs = turns.cores > 1 ? rng.chance(0.5) : one == all_[0];
      one->until = now_ + length_of(turns, rng);
    }
    const Nanos end = now_ + 600s;
    const auto busy = [](const Process& process) { return process.to_post + process.under_way > 0; };
    while ((busy(processes_[0]) || busy(processes_[1])) && now_ < end) step(turns, rng);
    EXPECT_LT(now_, end) << "requests never ended; seed " << seed;
    return processes_[0].failed + processes_[1].failed;
  }

 private:
  void connect() {
    for (Process& process : processes_) process.qp = create_rc(process, 16);
    connect_rc(processes_[0], *processes_[0].qp, processes_[1], *processes_[1].qp, 14);
  }

  static Nanos length_of(const Turns& turns, Rng& rng) {
    const double low = std::log(static_cast<double>(turns.shortest.count()));
    const double high = std::log(static_cast<double>(turns.longest.count()));
    const double random = static_cast<double>(rng.below(1'000'000)) * 1e-6;
    return Nanos{static_cast<int64_t>(std::exp(low + random * (high - low)))};
  }

  void change_turns(const Turns& turns, Rng& rng) {
    if (turns.cores > 1) {
      for (Scheduled* one : all_) {
        if (now_ < one->until) continue;
        one->runs = !one->runs;
        one->until = now_ + length_of(turns, rng);
      }
    } else if (now_ >= all_[0]->until) {
      const auto running = std::ranges::find_if(all_, [](const Scheduled* one) { return one->runs; });
      (*running)->runs = false;
      const auto next = static_cast<size_t>(running - all_.begin()) + 1 + rng.below(all_.size() - 1);
      all_[next % all_.size()]->runs = true;
      all_[0]->until = now_ + length_of(turns, rng);
    }
  }

  void step(const Turns& turns, Rng& rng) {
    change_turns(turns, rng);
    bool worked = false;
    for (unsigned i = 0; i < 2; ++i) {
      Process& process = processes_[i];
      if (!process.runs) continue;
      if (process.to_post > 0 && rng.chance(0.03)) {
        const auto length = static_cast<uint32_t>(1 + rng.below(kMemory));
        const auto opcode = rng.chance(0.3) ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
        if (post_rdma(process, *process.qp, processes_[1 - i], opcode, length)) ++process.under_way;
        --process.to_post;
      }
      worked |= process.device->poller().poll(now_);
      ibv_wc wc{};
      while (process.cq->poll(1, &wc) == 1) {
        --process.under_way;
        ++(wc.status == IBV_WC_SUCCESS ? completed_ : process.failed);
      }
    }
    if (switch_ && switch_->runs) worked |= switch_->forwarding->worker(0).poll(now_);
    now_ += worked ? 1us : 500us;
  }

  std::shared_ptr<ShmSegment> segment_;
  std::optional<SwitchProcess> switch_;  // must outlive the processes
  std::array<Process, 2> processes_;
  std::vector<Scheduled*> all_;
  Nanos now_ = 1s;

 protected:
  unsigned completed_ = 0;  // requests, in all runs
};

uint64_t seeds() {
  const char* given = std::getenv("ROCI_TURN_SEEDS");
  constexpr uint64_t kSeeds = test::kSanitized ? 1'000 : 10'000;
  return given != nullptr ? std::strtoull(given, nullptr, 10) : kSeeds;
}

TEST_F(TimeSlicedProcesses, no_request_fails_with_slices_of_1_to_200_ms) {
  open({});
  for (uint64_t seed = 1; seed <= seeds(); ++seed)
    ASSERT_EQ(run(seed, {.shortest = 1ms, .longest = 200ms, .cores = seed % 2 == 0 ? 1U : 2U}), 0U)
        << "seed " << seed;
  EXPECT_GE(completed_, 2 * (seeds() / 10));
  EXPECT_GE(completed_, 2 * seeds());
}

TEST_F(TimeSlicedProcesses, no_request_fails_with_slices_of_1_to_200_ms_through_a_switch) {
  open({.a_switch = true});
  for (uint64_t seed = 1; seed <= seeds(); ++seed)
    ASSERT_EQ(run(seed, {.shortest = 1ms, .longest = 200ms, .cores = 1 + static_cast<unsigned>(seed % 2)}),
              0U)
        << "seed " << seed;
  EXPECT_GE(completed_, 2 * seeds());
}

TEST_F(TimeSlicedProcesses, no_request_fails_with_slices_longer_than_all_retries) {
  open({});
  for (uint64_t seed = 1; seed <= seeds() / 10; ++seed)
    ASSERT_EQ(run(seed, {.shortest = 200ms, .longest = 3s, .cores = 1 + static_cast<unsigned>(seed % 2)}), 0U)
        << "seed " << seed;
}

TEST_F(TimeSlicedProcesses, no_request_fails_with_slices_longer_than_all_retries_through_a_switch) {
  open({.a_switch = true});
  for (uint64_t seed = 1; seed <= seeds() / 10; ++seed)
    ASSERT_EQ(run(seed, {.shortest = 200ms, .longest = 3s, .cores = 1 + static_cast<unsigned>(seed % 2)}), 0U)
        << "seed " << seed;
}

TEST_F(TimeSlicedProcesses, requests_fail_with_slices_of_1_to_3_s_without_peer_presence) {
  open({.peers_known = false});
  unsigned failed = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed)
    failed += run(seed, {.shortest = 1s, .longest = 3s, .cores = 1});
  EXPECT_GT(failed, 0U) << "the tests above cannot fail";
}

}  // namespace
}  // namespace roci

// Hosts with congestion control in real time. Workers, control cores, applications and an observer run in separate
// threads. Queue pairs are created, changed and destroyed while decisions about them are pending. All data must
// arrive, and every flow must use the requested algorithm. Intended for ThreadSanitizer.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <iostream>
#include <thread>

#include "base/rng.hpp"
#include "device/host/host.hpp"
#include "device/monitoring/device_endpoints.hpp"
#include "port/realtime_runner.hpp"
#include "support/hosts/connect.hpp"
#include "threads/real_hosts.hpp"

namespace roci::test {
namespace {

constexpr uint64_t kSeed = 20'260'801;
constexpr std::array kAlgorithms{"dcqcn", "timely", "ldcp",     "hpcc",
                                 "swift", "dctcp",  "ldcp_pcc", "hpcc_receiver"};

struct ControlMode {
  const char* name;
  Progress progress;
  uint32_t workers;
  uint32_t cores;  // control cores; 0: algorithms run in the workers
  IdlePolicy idle;
};

class ControlThreads : public RealHosts, public testing::TestWithParam<ControlMode> {
 protected:
  void SetUp() override {
    start();
    std::cout << "seed " << kSeed << "\n";
    make_both();
  }
  void TearDown() override { destroy_both(); }

  void make_both() {
    const ControlMode& mode = GetParam();
    // DPDK's ring ports do not mark packets, but this test needs ECN marks.
    auto [left, right] = ByteLinkPort::make_pair(1800, static_cast<uint16_t>(mode.workers));
    for (Port* port : {left.get(), right.get()}) static_cast<ByteLinkPort*>(port)->mark_one_in(11);
    DeviceConfig config;
    config.progress = mode.progress;
    config.workers = mode.workers;
    config.idle = mode.idle;
    config.extensions = {.mode = ExtensionMode::kAuto, .selective_repeat = true, .timestamps = true};
    config.telemetry = {.udp_port = 5201, .begin = TelemetryBegin::kAll};
    config.congestion_control.cores = mode.cores;
    config.congestion_control.base_rtt = std::chrono::microseconds{20};
    config.congestion_control.line_rate = 10'000'000'000;
    config.congestion_control.trace = 512;
    make(a_, std::move(left), "10.1.0.1/24", config);
    make(b_, std::move(right), "10.1.0.2/24", config);
    if (mode.progress == Progress::kExternal) start_runner();
  }

  // As a program with its own threads does.
  void start_runner() {
    std::vector<RunnerThreadConfig> threads;
    for (Node* node : {&a_, &b_}) {
      Host& host = node->device->host();
      for (uint32_t i = 0; i < host.workers(); ++i)
        threads.push_back({.pollers = {&node->device->poller(i)}, .idle = GetParam().idle});
      for (const auto& core : host.control_cores())
        threads.push_back({.pollers = {core.get()}, .idle = GetParam().idle});
    }
    runner_ = std::make_unique<RealtimeRunner>(std::move(threads));
    must(runner_->start());
  }

  void destroy_both() {
    runner_.reset();
    a_ = {};
    b_ = {};
  }

  static void choose(std::pair<End, End>& ends, const char* algorithm) {
    must(ends.first.qp->set_congestion_control(algorithm));
    must(ends.second.qp->set_congestion_control(algorithm));
  }
  void connect_both(std::pair<End, End>& ends) {
    connect(ends.first, ends.second, b_);
    connect(ends.second, ends.first, a_);
  }
  std::pair<End, End> make_controlled(const char* algorithm) {
    std::pair<End, End> ends{make_end(a_, 2 * kSlot), make_end(b_, 2 * kSlot)};
    choose(ends, algorithm);
    connect_both(ends);
    return ends;
  }

  // Writes one slot, reads it back into the other, and sends it. Returns whether all data arrived.
  static bool exchange(std::pair<End, End>& ends, uint8_t fill) {
    End& mine = ends.first;
    End& theirs = ends.second;
    const auto done = [&](End& end, uint64_t id) {
      const ibv_wc wc = await(*end.cq);
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS) << mine.qp->congestion_control() << ", request " << id;
      return wc.status == IBV_WC_SUCCESS && wc.wr_id == id;
    };
    std::memset(mine.memory.data(), fill, kSlot);
    std::memset(mine.memory.data() + kSlot, 0, kSlot);
    if (post(mine, IBV_WR_RDMA_WRITE, 1, 0, kSlot, theirs) != 0 || !done(mine, 1)) return false;
    if (post(mine, IBV_WR_RDMA_READ, 2, kSlot, kSlot, theirs, 0) != 0 || !done(mine, 2)) return false;
    if (std::memcmp(mine.memory.data(), mine.memory.data() + kSlot, kSlot) != 0) return false;
    if (post_receive(theirs, 3, kSlot, kSlot) != 0) return false;
    if (post(mine, IBV_WR_SEND, 4, 0, kSlot, theirs) != 0 || !done(theirs, 3) || !done(mine, 4)) return false;
    return std::memcmp(mine.memory.data(), theirs.memory.data() + kSlot, kSlot) == 0;
  }

  // Waits until the algorithm has processed an event. A control core does so later than the acknowledgment arrives.
  bool is_controlled(const Node& node, const QueuePair& qp, const std::string& algorithm) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    do {
      for (const CongestionFlowReport& flow : node.device->congestion_report()) {
        if (flow.qp_num == qp.qp_num() && !flow.responses && flow.algorithm == algorithm && flow.events > 0)
          return true;
      }
      std::this_thread::yield();
    } while (std::chrono::steady_clock::now() < end);
    return false;
  }

  // Reads everything that another thread may read, as often as possible.
  void look_on(const std::atomic<bool>& stop, std::atomic<int>& wrong, std::atomic<int>& timeless) {
    const auto endpoints = must(DeviceEndpoints::open({a_.device.get(), b_.device.get()}));
    while (!stop) {
      for (const Node* node : {&a_, &b_}) {
        Device& device = *node->device;
        for (const CongestionFlowReport& flow : device.congestion_report()) {
          if (flow.profile != "none" && (flow.algorithm.empty() || flow.state.empty())) ++wrong;
        }
        (void)device.counters();
        for (const TraceRecord& record : device.host().congestion_trace()) {
          // With external progress a worker does not know the time before its first round.
          if (record.event.now_ns == 0 && GetParam().progress != Progress::kExternal) ++timeless;
        }
        for (const auto& core : device.host().control_cores()) (void)core->counts();
        if (!endpoints->counters(device.name())) ++wrong;
        const auto flows = endpoints->flows(device.name());
        if (!flows) {
          ++wrong;
          continue;
        }
        // The flow may have ended, in which case the endpoint returns an error.
        for (const std::string& flow : std::get<TelemetryList>(*flows))
          (void)endpoints->flow(device.name() + "," + flow);
      }
      std::this_thread::yield();
    }
  }

  std::unique_ptr<RealtimeRunner> runner_;
};

// Three threads, each with queue pairs that have a few exchanges and end in every way: idle, in the middle of a
// message, by an error, or by a reset and a new connection with another algorithm. A fourth thread has a permanent
// queue pair.
TEST_P(ControlThreads, flows_start_and_end_under_traffic_while_state_is_queried) {
  constexpr uint64_t kLives = 8;
  constexpr int kLongLife = 30;
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0}, uncontrolled{0}, timeless{0};
  std::atomic<uint64_t> exchanges{0};
  std::thread onlooker([&] { look_on(stop, wrong, timeless); });
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      Rng rng{kSeed + t};
      for (uint64_t life = 0; life < kLives && wrong == 0; ++life) {
        const char* algorithm = kAlgorithms[(t + life) % kAlgorithms.size()];
        auto ends = make_controlled(algorithm);
        for (uint64_t i = rng.between(1, 3); i > 0; --i, ++exchanges)
          if (!exchange(ends, static_cast<uint8_t>(rng.next()))) ++wrong;
        if (life % 2 == 0 && !is_controlled(a_, *ends.first.qp, algorithm)) ++uncontrolled;
        const uint64_t way = rng.below(4);
        if (way != 0) {
          for (uint64_t id = 0; id < 8; ++id) {
            if (post(ends.first, id % 2 == 0 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, id, 0, kSlot,
                     ends.second) != 0) {
              ADD_FAILURE() << algorithm << ": request " << id << " of the last ones is not taken";
              ++wrong;
            }
          }
        }
        if (way == 2) {
          move_to(*ends.first.qp, IBV_QPS_ERR);
        } else if (way == 3) {
          move_to(*ends.first.qp, IBV_QPS_RESET);
          move_to(*ends.second.qp, IBV_QPS_RESET);
          ibv_wc wc;
          while (ends.first.cq->poll(1, &wc) > 0) {
          }
          draw_psn(ends.first);
          draw_psn(ends.second);
          choose(ends, kAlgorithms[rng.below(kAlgorithms.size())]);
          connect_both(ends);
          if (!exchange(ends, static_cast<uint8_t>(rng.next()))) ++wrong;
          ++exchanges;
        }
        if (rng.below(2) == 0) ends.second.qp.reset();
      }
    });
  }
  threads.emplace_back([&] {
    auto ends = make_controlled("ldcp");
    for (int i = 0; i < kLongLife && wrong == 0; ++i, ++exchanges)
      if (!exchange(ends, static_cast<uint8_t>(i))) ++wrong;
    if (!is_controlled(a_, *ends.first.qp, "ldcp")) ++uncontrolled;
  });
  for (std::thread& thread : threads) thread.join();
  stop = true;
  onlooker.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(uncontrolled, 0);
  EXPECT_EQ(timeless, 0) << "events that happened at no time";
  EXPECT_GE(exchanges, 3 * kLives + kLongLife);
  for (const Node* node : {&a_, &b_}) {
    uint64_t events = 0;
    for (const auto& core : node->device->host().control_cores()) {
      EXPECT_GT(core->counts().events, 0U);
      events += core->counts().events;
    }
    EXPECT_EQ(events > 0, GetParam().cores > 0);
    EXPECT_GT(node->device->host().congestion_trace().size(), 0U);
  }
  EXPECT_GT(a_.device->host().counter(Counter::kRxCeMarked), 0U) << "READ responses";
  EXPECT_GT(b_.device->host().counter(Counter::kRxCeMarked), 0U);
  EXPECT_GT(a_.device->host().counter(Counter::kRpCnpsHandled), 0U);
  EXPECT_GT(a_.device->host().counter(Counter::kIntEchoesReceived), 0U);
}

// Devices are destroyed during traffic, then their queue pairs, with pending events and decisions in both directions.
TEST_P(ControlThreads, devices_are_destroyed_while_flows_are_active) {
  for (size_t round = 0; round < 4; ++round) {
    std::vector<std::pair<End, End>> all;
    for (size_t i = 0; i < 4; ++i) {
      all.push_back(make_controlled(kAlgorithms[(4 * round + i) % kAlgorithms.size()]));
      ASSERT_TRUE(exchange(all.back(), static_cast<uint8_t>(round + i)));
    }
    for (auto& ends : all) {
      for (uint64_t id = 0; id < 16; ++id)
        ASSERT_EQ(post(ends.first, IBV_WR_RDMA_WRITE, id, 0, kSlot, ends.second), 0);
    }
    std::thread other([&] {
      for (auto& ends : all) const End gone = std::move(ends.second);
    });
    destroy_both();
    for (auto& ends : all) const End gone = std::move(ends.first);
    other.join();
    make_both();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Placement, ControlThreads,
    testing::Values(
        ControlMode{"application_two_workers_one_core", Progress::kApplication, 2, 1, IdlePolicy::kYield},
        ControlMode{"dedicated_three_workers_two_cores", Progress::kDedicated, 3, 2, IdlePolicy::kSleep},
        ControlMode{"dedicated_one_worker_two_cores", Progress::kDedicated, 1, 2, IdlePolicy::kSleep},
        ControlMode{"external_two_workers_one_core", Progress::kExternal, 2, 1, IdlePolicy::kYield},
        ControlMode{"dedicated_two_workers_without_cores", Progress::kDedicated, 2, 0, IdlePolicy::kSleep}),
    [](const testing::TestParamInfo<ControlMode>& mode) { return std::string(mode.param.name); });

}  // namespace
}  // namespace roci::test

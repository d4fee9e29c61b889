// Two senders and one receiver in a network without a switch (port/shm/shm_port.hpp), in virtual time. The receiver
// reads at 40 Gb/s, so the senders' rings fill unless congestion control limits them. The sending ports mark packets
// and add telemetry according to their fill level.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "congestion_control/settings.hpp"
#include "port/dpdk/eal.hpp"
#include "support/hosts/shm_hosts.hpp"

namespace roci::test {
namespace {

constexpr uint32_t kSenders = 2, kReceiver = 2;
constexpr uint64_t kMin = 100 << 10, kMax = 400 << 10;  // marking thresholds, as in a network of roci-run
constexpr double kReceiverRate = 40e9;
constexpr uint32_t kFramesAPoll = 32;
constexpr uint32_t kMessage = 64 << 10, kAtATime = 32;

class ShmSenders : public testing::Test {
 protected:
  struct Process : ShmHost {
    uint64_t posted = 0, completed = 0, failed = 0;
  };

  void open(const std::string& algorithm) {
    must(start_eal());
    segment_ = must(ShmSegment::create());
    for (uint32_t slot = 0; slot <= kReceiver; ++slot) open_process(slot, algorithm);
    for (uint32_t i = 0; i < kSenders; ++i) {
      Process &sender = processes_[i], &receiver = processes_[kReceiver];
      sender.qp = create_rc(sender, kAtATime);
      connect_rc(sender, *sender.qp, receiver, *received_.emplace_back(create_rc(receiver, 1)), 18);
    }
  }

  void open_process(uint32_t slot, const std::string& algorithm) {
    ShmPortConfig port = shm_port_config(slot, kReceiver + 1);
    port.marks = true;
    port.kmin = kMin;
    port.kmax = kMax;
    port.pmax = 0.2;
    port.telemetry_port = kTelemetryPort;
    port.rate = BitsPerSec{static_cast<uint64_t>(kReceiverRate)};
    DeviceConfig device = shm_device_config(slot);
    device.extensions.timestamps = algorithm != "none";
    device.congestion_control.profile = algorithm;
    device.congestion_control.base_rtt = 50us;
    device.congestion_control.line_rate = static_cast<uint64_t>(kReceiverRate);
    if (algorithm == "hpcc") device.telemetry = all_telemetry();
    open_shm_host(processes_[slot], segment_, std::move(port), device, kMessage);
  }

  static uint64_t waiting(const Process& sender) {
    for (const Port::Detail& detail : sender.shm->details())
      if (std::string_view{detail.name} == "ring_bytes") return detail.value;
    return 0;
  }

  struct Seen {
    std::array<double, kSenders> gbps{};
    uint64_t most = 0;  // bytes in a ring
    double mean = 0;
  };
  Seen run(Nanos span) {
    Seen seen;
    std::array<uint64_t, kSenders> before{};
    for (uint32_t i = 0; i < kSenders; ++i) before[i] = processes_[i].completed;
    uint64_t looks = 0;
    const Nanos end = now_ + span;
    const Nanos between{static_cast<int64_t>(kFramesAPoll * 4'162 * 8 / kReceiverRate * 1e9)};
    for (; now_ < end; now_ += 1us) {
      for (uint32_t i = 0; i < kSenders; ++i) work(processes_[i]);
      if (now_ >= next_poll_) {
        processes_[kReceiver].device->poller().poll(now_);
        next_poll_ = now_ + between;
        for (uint32_t i = 0; i < kSenders; ++i) {
          const uint64_t bytes = waiting(processes_[i]);
          seen.most = std::max(seen.most, bytes);
          seen.mean += static_cast<double>(bytes);
          ++looks;
        }
      }
    }
    seen.mean /= static_cast<double>(looks);
    for (uint32_t i = 0; i < kSenders; ++i) {
      seen.gbps[i] = static_cast<double>(processes_[i].completed - before[i]) * kMessage * 8 /
                     static_cast<double>(span.count());
    }
    return seen;
  }

  void work(Process& sender) {
    sender.device->poller().poll(now_);
    ibv_wc wc{};
    while (sender.cq->poll(1, &wc) == 1) ++(wc.status == IBV_WC_SUCCESS ? sender.completed : sender.failed);
    for (; sender.posted - sender.completed - sender.failed < kAtATime; ++sender.posted)
      EXPECT_TRUE(post_rdma(sender, *sender.qp, processes_[kReceiver], IBV_WR_RDMA_WRITE, kMessage));
  }

  std::shared_ptr<ShmSegment> segment_;
  std::array<Process, kReceiver + 1> processes_;
  std::vector<std::unique_ptr<QueuePair>> received_;  // queue pairs of the receiver
  Nanos now_ = 1s, next_poll_ = 1s;
};

TEST_F(ShmSenders, fill_their_rings_without_congestion_control) {
  open("none");
  run(20ms);
  const Seen seen = run(50ms);
  EXPECT_GT(seen.most, kShmRingBytes / 2);
  EXPECT_GT(seen.gbps[0] + seen.gbps[1], 0.8 * kReceiverRate / 1e9);
}

class ShmSendersWithControl : public ShmSenders, public testing::WithParamInterface<const char*> {};

TEST_P(ShmSendersWithControl, keep_their_rings_short_and_share_the_receiver) {
  open(GetParam());
  run(100ms);
  const Seen seen = run(200ms);
  note("first_gbps", seen.gbps[0]), note("second_gbps", seen.gbps[1]);
  note("ring_mean", seen.mean), note("ring_most", seen.most);
  EXPECT_GT(seen.gbps[0] + seen.gbps[1], 0.7 * kReceiverRate / 1e9);
  EXPECT_GT(std::min(seen.gbps[0], seen.gbps[1]) / std::max(seen.gbps[0], seen.gbps[1]), 0.5);
  EXPECT_LT(seen.mean, kMax);
  for (const Process& process : processes_) EXPECT_EQ(process.failed, 0U);
}

INSTANTIATE_TEST_SUITE_P(Algorithms, ShmSendersWithControl, testing::Values("dcqcn", "dctcp", "ldcp", "hpcc"),
                         [](const auto& tested) { return std::string{tested.param}; });

}  // namespace
}  // namespace roci::test

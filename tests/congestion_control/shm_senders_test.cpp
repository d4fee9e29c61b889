// Two senders and one receiver in a network without a switch (port/shm_port.hpp), in virtual time. The receiver reads at 40 Gb/s, so
// the senders' rings fill, unless congestion control keeps them short: the sending ports mark, and add telemetry, by their fill.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "congestion_control/settings.hpp"
#include "port/borrowed_port.hpp"
#include "port/shm_port.hpp"
#include "roci/device.hpp"
#include "support/connect.hpp"
#include "support/must.hpp"

namespace roci::test {
namespace {

constexpr uint32_t kSenders = 2, kReceiver = 2;
constexpr uint64_t kMin = 100 << 10, kMax = 400 << 10;  // of marking, as in a network of roci-run
constexpr double kReceiverRate = 40e9;
constexpr uint32_t kFramesAPoll = 32;
constexpr uint32_t kMessage = 64 << 10, kAtATime = 32;

class ShmSenders : public testing::Test {
 protected:
  struct Process {
    std::unique_ptr<ShmPort> port;
    std::unique_ptr<Device> device;
    std::unique_ptr<ProtectionDomain> pd;
    std::unique_ptr<CompletionQueue> cq;
    std::vector<std::unique_ptr<QueuePair>> qps;
    std::vector<uint8_t> memory;
    std::unique_ptr<MemoryRegion> region;
    uint64_t posted = 0, completed = 0, failed = 0;
  };

  void open(const std::string& algorithm) {
    must(start_eal());
    segment_ = must(ShmSegment::create());
    for (uint32_t slot = 0; slot <= kReceiver; ++slot) open_process(slot, algorithm);
    for (uint32_t sender = 0; sender < kSenders; ++sender) connect(processes_[sender], processes_[kReceiver]);
  }

  void open_process(uint32_t slot, const std::string& algorithm) {
    Process& process = processes_[slot];
    ShmPortConfig config;
    config.slot = slot;
    config.pool = must(MbufPool::create("senders", 2048, 4600));
    config.marks = true;
    config.kmin = kMin;
    config.kmax = kMax;
    config.pmax = 0.2;
    config.telemetry_port = kTelemetryPort;
    config.rate = BitsPerSec{static_cast<uint64_t>(kReceiverRate)};
    for (uint32_t i = 0; i <= kReceiver; ++i)
      config.slots.push_back({MacAddress::local(1 + i), {IpAddress::from_v4(0x0a000001 + i)}});
    process.port = must(ShmPort::open(segment_, std::move(config)));
    DeviceConfig device;
    device.name = "p" + std::to_string(slot);
    device.addresses = {"10.0.0." + std::to_string(slot + 1) + "/24"};
    device.progress = Progress::kExternal;
    device.extensions.selective_repeat = true;
    device.extensions.timestamps = algorithm != "none";
    device.congestion_control.profile = algorithm;
    device.congestion_control.base_rtt = 50us;
    device.congestion_control.line_rate = static_cast<uint64_t>(kReceiverRate);
    if (algorithm == "hpcc") device.telemetry = all_telemetry();
    device.tx_buffers = 1024;
    process.device = must(Device::create(std::make_unique<BorrowedPort>(*process.port), device));
    process.pd = must(process.device->allocate_pd());
    process.cq = must(process.device->create_cq(256));
    process.memory.resize(kMessage);
    process.region = must(process.pd->register_memory(process.memory.data(), kMessage,
                                                      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
  }

  static void connect(Process& from, Process& to) {
    const auto end_of = [](Process& process) -> QueuePair& {
      ibv_qp_init_attr init{};
      init.qp_type = IBV_QPT_RC;
      init.cap = {.max_send_wr = kAtATime,
                  .max_recv_wr = 1,
                  .max_send_sge = 1,
                  .max_recv_sge = 1,
                  .max_inline_data = 0};
      init.sq_sig_all = 1;
      return *process.qps.emplace_back(must(process.pd->create_qp(&init, *process.cq, *process.cq)));
    };
    QueuePair &here = end_of(from), &there = end_of(to);
    const ConnectOptions terms{
        .rq_psn = 100, .sq_psn = 100, .path_mtu = IBV_MTU_4096, .timeout = 18, .retry_count = 7};
    connect_to(here, IBV_QPT_RC, must(to.device->query_gid(1)), there.qp_num(), terms);
    connect_to(there, IBV_QPT_RC, must(from.device->query_gid(1)), here.qp_num(), terms);
  }

  void post(Process& sender) {
    ibv_sge sge{reinterpret_cast<uint64_t>(sender.memory.data()), kMessage, sender.region->lkey()};
    ibv_send_wr wr{};
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.wr.rdma.remote_addr = reinterpret_cast<uint64_t>(processes_[kReceiver].memory.data());
    wr.wr.rdma.rkey = processes_[kReceiver].region->rkey();
    EXPECT_EQ(sender.qps[0]->post_send(&wr, nullptr), 0);
  }

  static uint64_t waiting(const Process& sender) {
    for (const Port::Detail& detail : sender.port->details())
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
    for (; sender.posted - sender.completed - sender.failed < kAtATime; ++sender.posted) post(sender);
  }

  std::shared_ptr<ShmSegment> segment_;
  std::array<Process, kReceiver + 1> processes_;
  Nanos now_ = 1s, next_poll_ = 1s;
};

TEST_F(ShmSenders, fill_their_rings_without_congestion_control) {
  open("none");
  run(20ms);
  const Seen seen = run(50ms);
  EXPECT_GT(seen.most, kShmRingBytes / 2);
  EXPECT_GT(seen.gbps[0] + seen.gbps[1], 0.8 * kReceiverRate / 1e9);
}

class ShmSendersUnder : public ShmSenders, public testing::WithParamInterface<const char*> {};

TEST_P(ShmSendersUnder, keep_their_rings_short_and_share_the_receiver) {
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

INSTANTIATE_TEST_SUITE_P(Algorithms, ShmSendersUnder, testing::Values("dcqcn", "dctcp", "ldcp", "hpcc"),
                         [](const auto& tested) { return std::string{tested.param}; });

}  // namespace
}  // namespace roci::test

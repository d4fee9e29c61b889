// Retransmission to a standard peer, in virtual time: slow receivers, full queues, random loss.
#include "transport/rc/loss_recovery.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "support/hosts/lone_host.hpp"
#include "support/hosts/two_hosts.hpp"
#include "support/must.hpp"

namespace roci::test {
namespace {

constexpr size_t kMessage = 64 * 1024;
constexpr int kDepth = 8;  // outstanding messages: 512 KiB, the window of DeviceConfig

struct Outcome {
  uint64_t messages = 0;  // completed within the run
  uint64_t failed = 0;
  double bytes_per_second = 0;
  uint64_t sent = 0, sent_again = 0, timeouts = 0, tail_probes = 0, naks = 0;
};

class Stream {
 public:
  Stream(const TwoHostsOptions& options, size_t queue_pairs, ibv_wr_opcode opcode)
      : hosts_(options), opcode_(opcode) {
    for (size_t i = 0; i < queue_pairs; ++i) {
      if (i > 0) {
        hosts_.make_qp(hosts_.a);
        hosts_.make_qp(hosts_.b);
      }
      hosts_.to_rts(hosts_.a, hosts_.b, 1, 2);
      hosts_.to_rts(hosts_.b, hosts_.a, 2, 1);
      local_.push_back(std::move(hosts_.a.qp));
      remote_.push_back(std::move(hosts_.b.qp));
      by_number_[local_.back()->qp_num()] = i;
    }
    hosts_.run(10ms);
  }
  TwoHosts& hosts() { return hosts_; }
  // Number of a queue pair of a, or of its peer.
  [[nodiscard]] Qpn number(size_t i) const { return Qpn{local_[i]->qp_num()}; }
  [[nodiscard]] Qpn peer_number(size_t i) const { return Qpn{remote_[i]->qp_num()}; }

  Outcome run(Nanos time) {
    Outcome out;
    const Nanos begin = hosts_.now();
    if (!std::exchange(started_, true)) {
      for (size_t i = 0; i < local_.size(); ++i)
        for (int n = 0; n < kDepth; ++n) post(i);
    }
    while (hosts_.now() < begin + time) {
      hosts_.run(100us);
      for (const ibv_wc& wc : hosts_.a.completions()) {
        if (wc.status != IBV_WC_SUCCESS) {
          ++out.failed;
          continue;
        }
        ++out.messages;
        post(by_number_.at(wc.qp_num));
      }
    }
    const auto seconds = static_cast<double>((hosts_.now() - begin).count()) / 1e9;
    out.bytes_per_second = static_cast<double>(out.messages * kMessage) / seconds;
    out.sent = hosts_.a.counter("tx_frames");
    out.sent_again = hosts_.a.counter("packets_retransmitted");
    out.timeouts = hosts_.a.counter("timeouts");
    out.tail_probes = hosts_.a.counter("tail_probes");
    out.naks = hosts_.a.counter("naks_sequence_received");
    return out;
  }

 private:
  void post(size_t i) {
    ibv_sge sge = hosts_.a.sge(0, kMessage);
    ibv_send_wr wr{};
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = opcode_;
    wr.wr.rdma.remote_addr = hosts_.b.address(0);
    wr.wr.rdma.rkey = hosts_.b.region->rkey();
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(local_[i]->post_send(&wr, &bad), 0);
  }

  TwoHosts hosts_;
  const ibv_wr_opcode opcode_;
  std::vector<std::unique_ptr<QueuePair>> local_, remote_;
  std::map<uint32_t, size_t> by_number_;
  bool started_ = false;
};

std::string row(const std::string& name, const Outcome& outcome) {
  return name + ": " + std::to_string(outcome.bytes_per_second / 1e6) + " MB/s, sent again " +
         std::to_string(outcome.sent_again) + " of " + std::to_string(outcome.sent) + ", time-outs " +
         std::to_string(outcome.timeouts) + ", tail probes " + std::to_string(outcome.tail_probes) +
         ", NAKs " + std::to_string(outcome.naks) + ", failed " + std::to_string(outcome.failed);
}

struct SlowReceiver : testing::TestWithParam<ibv_wr_opcode> {
  static TwoHostsOptions options() {
    TwoHostsOptions o;
    o.path_mtu = IBV_MTU_4096;
    o.timeout = 14;  // 67 ms, as in perftest; 16 windows of 512 KiB take the receiver 280 ms
    o.rate = BitsPerSec{240'000'000};
    o.queue = 64_MiB;
    o.frames = 16384;
    return o;
  }
};

// 16 queue pairs with windows of 512 KiB send to a receiver of 30 MB/s. Nothing is lost, so at most 1% is
// retransmitted.
TEST_P(SlowReceiver, sixteen_queue_pairs_reach_90_percent_of_its_rate) {
  Stream stream(options(), 16, GetParam());
  const Outcome outcome = stream.run(4s);
  SCOPED_TRACE(row("16 queue pairs", outcome));
  EXPECT_EQ(outcome.failed, 0U);
  EXPECT_GE(outcome.bytes_per_second, 0.9 * 30e6);
  EXPECT_LE(outcome.sent_again * 100, outcome.sent);
}

// The same with a queue of 1 MiB, which drops frames when it is full.
TEST_P(SlowReceiver, sixteen_queue_pairs_reach_70_percent_with_a_full_queue) {
  TwoHostsOptions shallow = options();
  shallow.queue = 1_MiB;
  Stream stream(shallow, 16, GetParam());
  const Outcome outcome = stream.run(4s);
  SCOPED_TRACE(row("16 queue pairs, 1 MiB", outcome));
  EXPECT_EQ(outcome.failed, 0U);
  EXPECT_GE(outcome.bytes_per_second, 0.7 * 30e6);
}

INSTANTIATE_TEST_SUITE_P(Operations, SlowReceiver, testing::Values(IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ),
                         [](const auto& tested) {
                           return tested.param == IBV_WR_RDMA_READ ? "READ" : "WRITE";
                         });

// A peer that serves its queue pairs in turns, as Linux soft-RoCE does: queue pair 1 gets no acknowledgment for some
// time, while queue pair 0 is served.
class QueuePairsServedInTurns : public testing::Test {
 protected:
  QueuePairsServedInTurns() : stream_(options(), 2, IBV_WR_RDMA_WRITE) {
    stream_.hosts().watch = [this](const Packet& packet, char direction) -> SimVerdict {
      if (is_silent_ && direction == '<' && packet.bth.destination_qp == stream_.number(1))
        return {.drop = true};
      if (is_silent_ && direction == '>' && packet.bth.destination_qp == stream_.peer_number(1))
        ++sent_in_silence_;
      return {};
    };
  }
  static TwoHostsOptions options() {
    TwoHostsOptions o;
    o.timeout = 14;  // 67 ms; eight time-outs of which each is repeated three times: 2.1 s
    o.rate = 100_Mbps;
    return o;
  }
  Outcome run(Nanos time) { return stream_.run(time); }
  Outcome be_silent(Nanos time) {
    is_silent_ = true;
    sent_in_silence_ = 0;
    const Outcome outcome = stream_.run(time);
    is_silent_ = false;
    return outcome;
  }

  Stream stream_;
  bool is_silent_ = false;
  uint64_t sent_in_silence_ = 0;  // packets of queue pair 1
};

TEST_F(QueuePairsServedInTurns, silence_of_twice_the_length_of_an_earlier_one_costs_no_retry) {
  EXPECT_EQ(run(100ms).failed, 0U);
  for (const Nanos silence : {1500ms, 2800ms, 2800ms, 4000ms}) {
    SCOPED_TRACE(silence.count());
    EXPECT_EQ(be_silent(silence).failed, 0U);
    EXPECT_EQ(run(1200ms).failed, 0U);  // the next copy is sent after at most 16 time-outs
  }
}

TEST_F(QueuePairsServedInTurns, oldest_packet_is_sent_again_less_and_less_often) {
  run(100ms);
  be_silent(1500ms);
  run(1200ms);
  ASSERT_EQ(be_silent(2800ms).failed, 0U);
  // The window, tail probes, and the copies after 1, 2, 4, 8, 16, 32 time-outs.
  EXPECT_LE(sent_in_silence_, 128U + 3 + 6);
}

TEST_F(QueuePairsServedInTurns, longer_silence_ends_the_connection) {
  run(100ms);
  EXPECT_EQ(be_silent(3s).failed, kDepth) << "without an earlier silence: 2.1 s";
}

TEST_F(QueuePairsServedInTurns, connection_ends_after_twice_the_earlier_silence_and_the_retries) {
  run(100ms);
  be_silent(1500ms);
  run(1200ms);
  EXPECT_EQ(be_silent(2800ms).failed, 0U);
  EXPECT_EQ(be_silent(3s).failed, kDepth) << "the same silence continues: 3 s and 2.1 s";
}

// Returns the throughput of go-back-N with random loss in both directions, relative to the same path without loss.
double part_at_loss(double loss, ibv_wr_opcode opcode, Nanos delay) {
  TwoHostsOptions options;
  options.path_mtu = IBV_MTU_4096;
  options.timeout = 14;
  options.rate = 10_Gbps;
  options.delay = delay;
  Outcome outcome[2];
  for (const bool lossy : {false, true}) {
    Stream stream(options, 1, opcode);
    if (lossy) {
      stream.hosts().link().set_faults(SimLink::kAToB, {.loss = loss});
      stream.hosts().link().set_faults(SimLink::kBToA, {.loss = loss});
    }
    outcome[lossy ? 1 : 0] = stream.run(2s);
    EXPECT_EQ(outcome[lossy ? 1 : 0].failed, 0U);
  }
  const double part = outcome[1].bytes_per_second / outcome[0].bytes_per_second;
  testing::Test::RecordProperty("part", std::to_string(part));
  std::cout << row("loss " + std::to_string(loss), outcome[1]) << ", of the lossless rate: " << part << "\n";
  return part;
}

// Bandwidth-delay products of 3 and of 31 packets.
TEST(GoBackN, keeps_half_of_the_rate_at_1_percent_loss) {
  for (const Nanos delay : {Nanos{5us}, Nanos{50us}}) {
    EXPECT_GE(part_at_loss(0.001, IBV_WR_RDMA_WRITE, delay), 0.8);
    EXPECT_GE(part_at_loss(0.01, IBV_WR_RDMA_WRITE, delay), 0.5);
    EXPECT_GE(part_at_loss(0.04, IBV_WR_RDMA_WRITE, delay), 0.1);
  }
}

TEST(LossRecovery, window_shrinks_on_loss_and_delay_and_grows_on_progress) {
  LossRecovery recovery;
  EXPECT_EQ(recovery.window(), 128U);
  for (int i = 0; i < 64; ++i) recovery.note_acknowledged(16);
  EXPECT_GT(recovery.window(), 150U);
  const uint32_t before = recovery.window();
  recovery.note_loss();
  EXPECT_EQ(recovery.window(), before - before / 16) << "a single loss";
  recovery.note_loss();
  EXPECT_LE(recovery.window(), before / 2) << "another one in the same window";
  for (int i = 0; i < 20; ++i) recovery.note_rtt(50ms, 1ms, 67ms);
  EXPECT_EQ(recovery.window(), 3U) << "queues that take most of a time-out";
  EXPECT_GE(recovery.timeout(67ms), 90ms);
}

TEST(LossRecovery, late_acknowledgments_undo_the_window_reduction_of_a_timeout) {
  LossRecovery recovery;
  recovery.note_timeout();
  recovery.set_probing(LossRecovery::Probing::kFirst);
  EXPECT_EQ(recovery.window(), 1U);
  recovery.note_late_acknowledgments(true);
  EXPECT_EQ(recovery.window(), 64U);
  EXPECT_EQ(recovery.timeout(67ms), 134ms);
  recovery.note_timeout();
  EXPECT_EQ(recovery.window(), 2U);
  recovery.note_acknowledged(2);
  EXPECT_EQ(recovery.window(), 4U);
}

// The READ response is lost, and each time also a later packet: each NAK names a later PSN than the NAK before.
TEST(LossRecovery, nak_with_a_later_psn_counts_as_progress) {
  LoneHost host;  // retry count 3
  ASSERT_EQ(host.post(IBV_WR_RDMA_READ, 1, 8), 0);
  for (uint64_t id = 2; id <= 8; ++id) ASSERT_EQ(host.post(IBV_WR_SEND, id, 8), 0);
  host.work();
  for (int ahead = 1; ahead <= 7; ++ahead) {
    const Lines sent = host.receive(host.response(Opcode::kRcAcknowledge, ahead, 0x60));
    EXPECT_FALSE(sent.empty()) << ahead;
    host.now += 1ms;
  }
  EXPECT_EQ(host.side.qp->state(), IBV_QPS_RTS);
  EXPECT_EQ(host.statuses(), Statuses{});
}

}  // namespace
}  // namespace roci::test

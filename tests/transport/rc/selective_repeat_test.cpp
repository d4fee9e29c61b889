// Selective repeat: only lost packets are retransmitted, for every operation. Nothing is executed out of order or
// twice.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "engine/management/extension_terms.hpp"
#include "support/hosts/two_hosts.hpp"

namespace roci::test {
namespace {

constexpr ExtensionConfig kSelective{.mode = ExtensionMode::kAuto, .selective_repeat = true};

TwoHostsOptions options() {
  TwoHostsOptions o;
  o.extensions_a = o.extensions_b = kSelective;
  o.delay = 20us;
  return o;
}

// Drops the first transmission of each of these packets.
std::function<bool(const std::string&)> once_each(std::set<std::string> lines) {
  return [lines = std::move(lines)](const std::string& line) mutable { return lines.erase(line) > 0; };
}

size_t count(const TwoHosts& net, const std::string& start) {
  return static_cast<size_t>(
      std::ranges::count_if(net.wire, [&](const auto& line) { return line.starts_with(start); }));
}

void expect_done(Side& side, size_t requests) {
  const auto done = side.completions();
  ASSERT_EQ(done.size(), requests);
  for (size_t i = 0; i < done.size(); ++i) {
    EXPECT_EQ(done[i].status, IBV_WC_SUCCESS);
    EXPECT_EQ(done[i].wr_id, i);
  }
}

void fill(Side& side) {
  for (size_t i = 0; i < side.memory.size(); ++i) side.memory[i] = static_cast<uint8_t>(i * 31 + (i >> 8));
}

class SelectiveRepeat : public testing::Test {
 protected:
  explicit SelectiveRepeat(const TwoHostsOptions& o = options()) : net(o) {
    net.connect();
    TwoHosts::wake(net.a, net.now());
    TwoHosts::wake(net.b, net.now());
    fill(net.a);
  }
  void write(uint64_t id, size_t offset, size_t length) {
    ASSERT_EQ(net.write(id, offset, length, offset), 0);
  }
  void expect_same(size_t offset, size_t length) {
    EXPECT_TRUE(std::equal(net.a.memory.begin() + static_cast<ptrdiff_t>(offset),
                           net.a.memory.begin() + static_cast<ptrdiff_t>(offset + length),
                           net.b.memory.begin() + static_cast<ptrdiff_t>(offset)));
  }
  TwoHosts net;
};

TEST_F(SelectiveRepeat, only_the_lost_packet_is_retransmitted) {
  net.lose = once_each({"> RC_WRITE_MIDDLE 5"});
  write(0, 0, 20 * 1024);
  net.run();
  expect_done(net.a, 1);
  expect_same(0, 20 * 1024);
  EXPECT_EQ(count(net, "> RC_WRITE"), 21U);
  EXPECT_EQ(count(net, "> RC_WRITE_MIDDLE 5"), 2U);
  EXPECT_EQ(net.a.counter("timeouts"), 0U);
  EXPECT_EQ(net.b.counter("ooo_buffered"), 14U);
}

TEST_F(SelectiveRepeat, each_lost_packet_is_retransmitted_once) {
  std::set<std::string> lost;
  for (int psn = 1; psn < 60; psn += 3) lost.insert("> RC_WRITE_MIDDLE " + std::to_string(psn));
  net.lose = once_each(lost);
  write(0, 0, 64 * 1024);
  net.run();
  expect_done(net.a, 1);
  expect_same(0, 64 * 1024);
  EXPECT_EQ(count(net, "> RC_WRITE"), 64 + lost.size());
  EXPECT_EQ(net.a.counter("timeouts"), 0U);
}

TEST_F(SelectiveRepeat, packet_that_is_lost_twice_is_recovered_without_a_timeout) {
  TwoHostsOptions o = options();
  o.delay = 1us;  // a window takes ten round trips
  TwoHosts near(o);
  near.connect();
  TwoHosts::wake(near.a, near.now());
  TwoHosts::wake(near.b, near.now());
  fill(near.a);
  uint32_t losses = 0;
  near.lose = [&](const std::string& line) { return line == "> RC_WRITE_MIDDLE 5" && losses++ < 2; };
  for (uint64_t i = 0; i < 40; ++i) {
    ASSERT_EQ(
        near.a.post(IBV_WR_RDMA_WRITE, i, i * 20480, 20480, near.b.address(i * 20480), near.b.region->rkey()),
        0);
  }
  near.run();
  expect_done(near.a, 40);
  EXPECT_TRUE(std::equal(near.a.memory.begin(), near.a.memory.begin() + 40 * 20480, near.b.memory.begin()));
  // Packets in the link's queue are considered lost for some time.
  EXPECT_LE(count(near, "> RC_WRITE"), 40 * 20 + 10U);
  EXPECT_EQ(near.a.counter("timeouts"), 0U);
}

// The timeout is 4.2 ms and the round-trip time 2 us.
TEST_F(SelectiveRepeat, tail_probe_recovers_lost_last_packets_without_a_timeout) {
  net.lose = once_each({"> RC_WRITE_LAST 19", "> RC_WRITE_MIDDLE 18"});
  write(0, 0, 20 * 1024);
  net.run(2ms);
  expect_done(net.a, 1);
  expect_same(0, 20 * 1024);
  EXPECT_EQ(net.a.counter("timeouts"), 0U);
  EXPECT_GE(net.a.counter("tail_probes"), 1U);
  EXPECT_LE(count(net, "> RC_WRITE"), 23U);
}

TEST_F(SelectiveRepeat, tail_probes_back_off_and_cause_no_timeout) {
  write(0, 0, 4 * 1024);  // provides a round-trip sample
  net.run(1ms);
  std::vector<Nanos> probes;
  net.lose = [&](const std::string& line) {
    if (line.starts_with("> RC_WRITE_FIRST")) probes.push_back(net.now());
    return line.starts_with("> RC_WRITE");
  };
  write(1, 8192, 4 * 1024);
  net.run(4ms);
  EXPECT_EQ(net.a.counter("timeouts"), 0U);
  ASSERT_GE(probes.size(), 4U);
  for (size_t i = 2; i < probes.size(); ++i)
    EXPECT_GE(probes[i] - probes[i - 1], (probes[i - 1] - probes[i - 2]) * 3 / 2) << i;
  net.lose = nullptr;
  net.run();
  expect_done(net.a, 2);
  expect_same(8192, 4 * 1024);
}

// Without a round-trip sample the requester cannot schedule tail probes.
TEST_F(SelectiveRepeat, timeout_recovers_losses_before_the_first_rtt_sample) {
  const Nanos end = net.now() + 4ms;
  net.lose = [&](const std::string& line) { return line.starts_with("> RC_WRITE") && net.now() < end; };
  write(0, 0, 4 * 1024);
  net.run();
  expect_done(net.a, 1);
  expect_same(0, 4 * 1024);
  EXPECT_EQ(net.a.counter("tail_probes"), 0U);
  EXPECT_GE(net.a.counter("timeouts"), 1U);
}

TEST_F(SelectiveRepeat, lost_acknowledgments_are_recovered_after_a_timeout) {
  uint32_t acks = 0;
  net.lose = [&](const std::string& line) { return line.starts_with("< RC_ACK") && acks++ < 20; };
  write(0, 0, 4 * 1024);
  net.run();
  expect_done(net.a, 1);
  expect_same(0, 4 * 1024);
  EXPECT_GE(net.a.counter("timeouts"), 1U);
}

TEST_F(SelectiveRepeat, sends_are_received_in_order_with_losses) {
  for (uint64_t i = 0; i < 30; ++i) {
    ASSERT_EQ(net.b.receive(i, 500'000 + 3000 * i, 3000), 0);
    ASSERT_EQ(net.a.post(IBV_WR_SEND, i, 2500 * i, 2500), 0);
  }
  net.lose =
      once_each({"> RC_SEND_FIRST 3", "> RC_SEND_LAST 20", "> RC_SEND_MIDDLE 31", "> RC_SEND_FIRST 60"});
  net.run();
  expect_done(net.a, 30);
  expect_done(net.b, 30);
  for (size_t i = 0; i < 30; ++i) {
    EXPECT_TRUE(std::equal(net.a.memory.begin() + static_cast<ptrdiff_t>(2500 * i),
                           net.a.memory.begin() + static_cast<ptrdiff_t>(2500 * i + 2500),
                           net.b.memory.begin() + static_cast<ptrdiff_t>(500'000 + 3000 * i)));
  }
}

TEST_F(SelectiveRepeat, atomics_after_a_gap_are_executed_once) {
  write(0, 8192, 3000);
  for (uint64_t i = 1; i <= 4; ++i) {
    ASSERT_EQ(net.a.atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, i, 8 * i, net.b.address(0), net.b.region->rkey(), 1),
              0);
  }
  uint64_t before = 0;
  std::memcpy(&before, net.b.memory.data(), sizeof before);
  net.lose = once_each({"> RC_WRITE_MIDDLE 1", "< RC_ATOMIC_ACK 4", "> RC_FETCH_ADD 5"});
  net.run();
  expect_done(net.a, 5);
  uint64_t after = 0;
  std::memcpy(&after, net.b.memory.data(), sizeof after);
  EXPECT_EQ(after, before + 4);
}

TEST_F(SelectiveRepeat, lost_read_request_or_response_is_recovered_between_writes) {
  for (const char* lost : {"> RC_READ_REQUEST 3", "< RC_READ_RESP_MIDDLE 6", "< RC_READ_RESP_LAST 12"}) {
    TwoHosts each(options());
    each.connect();
    TwoHosts::wake(each.a, each.now());
    TwoHosts::wake(each.b, each.now());
    fill(each.b);
    each.lose = once_each({lost});
    const uint32_t rkey = each.b.region->rkey();
    ASSERT_EQ(each.a.post(IBV_WR_RDMA_WRITE, 0, 0, 3000, each.b.address(400'000), rkey), 0);
    ASSERT_EQ(each.a.post(IBV_WR_RDMA_READ, 1, 100'000, 10'000, each.b.address(100'000), rkey), 0);
    ASSERT_EQ(each.a.post(IBV_WR_RDMA_WRITE, 2, 0, 5000, each.b.address(410'000), rkey), 0);
    each.run();
    expect_done(each.a, 3);
    EXPECT_TRUE(std::equal(each.b.memory.begin() + 100'000, each.b.memory.begin() + 110'000,
                           each.a.memory.begin() + 100'000))
        << lost;
    EXPECT_EQ(count(each, "> RC_WRITE"), 8U) << lost << ": the writes are kept";
  }
}

TEST_F(SelectiveRepeat, buffered_packets_wait_for_a_receive_request) {
  for (uint64_t i = 0; i < 6; ++i) ASSERT_EQ(net.a.post(IBV_WR_SEND, i, 1000 * i, 1000), 0);
  ASSERT_EQ(net.b.receive(0, 500'000, 1000), 0);
  ASSERT_EQ(net.b.receive(1, 501'000, 1000), 0);
  net.lose = once_each({"> RC_SEND_ONLY 1"});
  net.run(300us);  // 0 and 1 are received, 2 finds no receive request
  for (uint64_t i = 2; i < 6; ++i) ASSERT_EQ(net.b.receive(i, 500'000 + 1000 * i, 1000), 0);
  net.run();
  expect_done(net.a, 6);
  expect_done(net.b, 6);
  EXPECT_TRUE(std::equal(net.a.memory.begin(), net.a.memory.begin() + 6000, net.b.memory.begin() + 500'000));
  EXPECT_GE(net.b.counter("rnr_naks_sent"), 1U);
  EXPECT_TRUE(TwoHosts::core(net.b)
                  .session->reorder_buffer->empty());  // also without packets that were retransmitted
}

TEST_F(SelectiveRepeat, sender_stays_within_the_reorder_window) {
  int32_t most = 0, acknowledged = -1;
  net.watch = [&](const Packet& packet, char direction) {
    const int32_t psn = packet.bth.psn - Psn{0x1000};
    if (direction == '<' && packet.bth.opcode == Opcode::kRcAcknowledge)
      acknowledged = std::max(acknowledged, psn - (packet.aeth->syndrome == 0x1f ? 0 : 1));
    if (direction == '>') most = std::max(most, psn - acknowledged);
    return SimVerdict{};
  };
  net.lose = once_each({"> RC_WRITE_FIRST 0"});
  write(0, 0, 500 * 1024);
  net.run();
  expect_done(net.a, 1);
  expect_same(0, 500 * 1024);
  EXPECT_LE(most, static_cast<int32_t>(kReorderWindow));
  EXPECT_EQ(count(net, "> RC_WRITE"), 501U);
}

TEST_F(SelectiveRepeat, reset_releases_buffered_frames) {
  const uint32_t idle = net.a.device->host().tx_buffers_in_use();
  net.lose = [](const std::string& line) { return line == "> RC_WRITE_FIRST 0"; };  // every transmission
  write(0, 0, 100 * 1024);
  net.run(2ms);
  EXPECT_GT(net.b.counter("ooo_buffered"), 50U);
  EXPECT_GT(net.a.device->host().tx_buffers_in_use(), idle + 50) << "simulated links pass the buffers on";
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RESET;
  must(net.b.qp->modify(attr, IBV_QP_STATE));
  must(net.a.qp->modify(attr, IBV_QP_STATE));
  net.run(1ms);
  EXPECT_EQ(net.a.device->host().tx_buffers_in_use(), idle);
}

TEST_F(SelectiveRepeat, psns_wrap_within_the_window) {
  TwoHostsOptions o = options();
  o.psn_a = 0xfffff0;
  TwoHosts wrapped(o);
  wrapped.connect();
  TwoHosts::wake(wrapped.a, wrapped.now());
  TwoHosts::wake(wrapped.b, wrapped.now());
  fill(wrapped.a);
  wrapped.lose = once_each({"> RC_WRITE_MIDDLE 14", "> RC_WRITE_MIDDLE 16", "> RC_WRITE_MIDDLE 20"});
  ASSERT_EQ(
      wrapped.a.post(IBV_WR_RDMA_WRITE, 0, 0, 40 * 1024, wrapped.b.address(0), wrapped.b.region->rkey()), 0);
  wrapped.run();
  expect_done(wrapped.a, 1);
  EXPECT_TRUE(
      std::equal(wrapped.a.memory.begin(), wrapped.a.memory.begin() + 40 * 1024, wrapped.b.memory.begin()));
  EXPECT_EQ(count(wrapped, "> RC_WRITE"), 43U);
}

// One host supports selective repeat, its peer does not.
TEST(SelectiveRepeatFallback, loss_causes_go_back_n_if_the_peer_does_not_enable_it) {
  TwoHostsOptions o = options();
  o.extensions_b = {.mode = ExtensionMode::kAuto};
  TwoHosts net(o);
  net.connect();
  fill(net.a);
  net.lose = once_each({"> RC_WRITE_MIDDLE 5"});
  ASSERT_EQ(net.write(0, 0, 20 * 1024), 0);
  net.run();
  expect_done(net.a, 1);
  EXPECT_TRUE(std::equal(net.a.memory.begin(), net.a.memory.begin() + 20 * 1024, net.b.memory.begin()));
  EXPECT_EQ(net.b.counter("ooo_buffered"), 0U);
  EXPECT_EQ(count(net, "> RC_WRITE"), 35U) << "all behind the gap again";
}

}  // namespace
}  // namespace roci::test

// Queue pairs of one host connected to each other, or to themselves. A switch would not send their frames back.
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "support/hosts/services.hpp"

namespace roci::test {
namespace {

constexpr size_t kLongMessage = 100'000;  // more frames than the loopback queue holds
constexpr size_t kFrom = 0, kTo = 200'000, kBack = 400'000;

class HostLoopback : public testing::Test {
 protected:
  void open(const TwoHostsOptions& options = {}) {
    hosts_ = std::make_unique<TwoHosts>(options);
    first_ = make_service(a(), IBV_QPT_RC);
    second_ = make_service(a(), IBV_QPT_RC);
    connect_to(*first_, IBV_QPT_RC, own_gid(), second_->qp_num(), {.rq_psn = 100, .sq_psn = 5000});
    connect_to(*second_, IBV_QPT_RC, own_gid(), first_->qp_num(), {.rq_psn = 5000, .sq_psn = 100});
    fill(a(), kFrom, kLongMessage, 7);
  }
  Side& a() { return hosts_->a; }
  ibv_gid own_gid() { return must(a().device->query_gid(1)); }
  SendOptions one_sided(ibv_wr_opcode opcode, size_t local, size_t remote) {
    return {.wr_id = 1,
            .opcode = opcode,
            .offset = local,
            .length = kLongMessage,
            .remote = a().address(remote),
            .rkey = a().region->rkey()};
  }
  void expect_all_kinds_of_requests_work() {
    ASSERT_EQ(send(a(), *first_, one_sided(IBV_WR_RDMA_WRITE, kFrom, kTo)), 0);
    hosts_->run();
    EXPECT_EQ(completion_lines(a()), Lines{"1 SUCCESS 100000"});
    EXPECT_TRUE(holds(a(), kTo, kLongMessage, 7));
    ASSERT_EQ(send(a(), *second_, one_sided(IBV_WR_RDMA_READ, kBack, kFrom)), 0);
    hosts_->run();
    EXPECT_TRUE(holds(a(), kBack, kLongMessage, 7));
    a().completions();
    fill(a(), kFrom, kLongMessage, 9);
    ASSERT_EQ(receive(a(), *second_, 2, kTo, kLongMessage), 0);
    ASSERT_EQ(send(a(), *first_, {.wr_id = 3, .offset = kFrom, .length = kLongMessage}), 0);
    hosts_->run();
    EXPECT_EQ(completion_lines(a()).size(), 2U);
    EXPECT_TRUE(holds(a(), kTo, kLongMessage, 9));
    EXPECT_EQ(a().counter("timeouts"), 0U);
    EXPECT_EQ(a().counter("packets_retransmitted"), 0U);
    EXPECT_EQ(hosts_->b.counter("rx_frames"), 0U) << "the network saw it";
  }

  std::unique_ptr<TwoHosts> hosts_;
  std::unique_ptr<QueuePair> first_, second_;
};

TEST_F(HostLoopback, requests_complete_within_a_host) {
  open();
  expect_all_kinds_of_requests_work();
}

TEST_F(HostLoopback, requests_complete_between_workers_of_a_host) {
  open({.workers = {4, 1}, .queues = {2, 1}});
  expect_all_kinds_of_requests_work();
}

TEST_F(HostLoopback, requests_complete_within_a_host_with_extensions) {
  open({.extensions_a = {.mode = ExtensionMode::kOn}});
  expect_all_kinds_of_requests_work();
}

TEST_F(HostLoopback, ud_queue_pair_sends_to_itself) {
  open();
  const auto qp = make_service(a(), IBV_QPT_UD);
  open_datagrams(*qp);
  const auto address = must(a().pd->create_address_handle(address_of(own_gid())));
  ASSERT_EQ(receive(a(), *qp, 1, kTo, 140), 0);
  ASSERT_EQ(
      send(a(), *qp,
           {.wr_id = 2, .offset = kFrom, .length = 100, .to = address.get(), .remote_qp = qp->qp_num()}),
      0);
  hosts_->run();
  const Lines lines = completion_lines(a());
  EXPECT_EQ(std::set<std::string>(lines.begin(), lines.end()),
            (std::set<std::string>{"1 SUCCESS 140", "2 SUCCESS 100"}));
  EXPECT_TRUE(holds(a(), kTo + 40, 100, 7));
}

// More frames than the loopback queue holds: the rest waits, and none is lost.
TEST_F(HostLoopback, datagrams_beyond_the_loopback_queue_wait_without_loss) {
  constexpr uint64_t kMany = 1000;
  open({.cq_entries = 2 * kMany});
  const auto qp = make_service(
      a(), IBV_QPT_UD, nullptr, true,
      {.max_send_wr = 1024, .max_recv_wr = 1024, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0});
  open_datagrams(*qp);
  const auto address = must(a().pd->create_address_handle(address_of(own_gid())));
  for (uint64_t i = 0; i < kMany; ++i) ASSERT_EQ(receive(a(), *qp, i, kTo, 140), 0);
  for (uint64_t i = 0; i < kMany; ++i) {
    ASSERT_EQ(send(a(), *qp,
                   {.wr_id = kMany + i,
                    .offset = kFrom,
                    .length = 100,
                    .to = address.get(),
                    .remote_qp = qp->qp_num()}),
              0);
  }
  hosts_->run();
  EXPECT_EQ(a().completions().size(), 2 * kMany);
  EXPECT_EQ(a().counter("rx_no_receive"), 0U);
}

}  // namespace
}  // namespace roci::test

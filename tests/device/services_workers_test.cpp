// Datagrams, multicast groups and shared receive queues on hosts with several workers in virtual time: queue pairs of
// all workers use the same objects.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "device/worker_shape.hpp"
#include "support/hosts/services.hpp"

namespace roci::test {
namespace {

class ServicesOnWorkers : public testing::TestWithParam<WorkerShape> {
 protected:
  ServicesOnWorkers() : hosts_(options_for(GetParam())) { hosts_.connect(); }

  // Creates datagram queue pairs until each worker of the host has at least one.
  static std::vector<std::unique_ptr<QueuePair>> datagrams_everywhere(Side& side) {
    std::vector<std::unique_ptr<QueuePair>> qps;
    std::set<uint32_t> covered;
    while (covered.size() < side.device->host().workers()) {
      qps.push_back(make_service(side, IBV_QPT_UD));
      open_datagrams(*qps.back());
      covered.insert(worker_of_qp(side, *qps.back()));
    }
    return qps;
  }

  TwoHosts hosts_;
};

TEST_P(ServicesOnWorkers, one_address_handle_serves_the_queue_pairs_of_all_workers) {
  auto from = datagrams_everywhere(hosts_.a);
  auto to = datagrams_everywhere(hosts_.b);
  fill(hosts_.a, 0, 100, 7);
  auto address = must(hosts_.a.pd->create_address_handle(address_of(gid_of("10.0.0.2"))));
  uint64_t id = 0;
  for (auto& a : from) {
    for (auto& b : to) {
      ++id;
      ASSERT_EQ(receive(hosts_.b, *b, id, 200 * id, 200), 0);
      ASSERT_EQ(
          send(hosts_.a, *a, {.wr_id = id, .length = 100, .to = address.get(), .remote_qp = b->qp_num()}), 0);
    }
  }
  hosts_.run(10ms);
  const auto all = hosts_.b.completions();
  ASSERT_EQ(all.size(), id);
  for (const ibv_wc& wc : all) {
    EXPECT_EQ(wc.byte_len, 140U);
    EXPECT_TRUE(holds(hosts_.b, 200 * wc.wr_id + 40, 100, 7));
  }
  address.reset();
  EXPECT_EQ(hosts_.a.device->host().retired_addresses().size(), 0U);
}

TEST_P(ServicesOnWorkers, multicast_delivers_one_copy_to_each_member_of_all_workers) {
  const ibv_gid group = gid_of("239.1.2.3");
  auto here = datagrams_everywhere(hosts_.a);
  auto there = datagrams_everywhere(hosts_.b);
  for (auto& qp : here) must(qp->attach_multicast(group));
  for (auto& qp : there) must(qp->attach_multicast(group));
  auto to_group = must(hosts_.a.pd->create_address_handle(address_of(group)));
  fill(hosts_.a, 0, 100, 7);
  uint64_t offset = 200;  // of a receive buffer, and its wr_id
  const auto give = [&](Side& side, QueuePair& qp) {
    ASSERT_EQ(receive(side, qp, offset, offset, 200), 0);
    offset += 200;
  };
  for (size_t i = 0; i < here.size(); ++i) {
    for (int twice = 0; twice < 2; ++twice) {
      for (auto& qp : here) give(hosts_.a, *qp);
      for (auto& qp : there) give(hosts_.b, *qp);
    }
    ASSERT_EQ(
        send(hosts_.a, *here[i], {.wr_id = 1, .length = 100, .to = to_group.get(), .remote_qp = 0xffffff}),
        0);
    hosts_.run(10ms);
    const auto expect_one_each = [](Side& side, const auto& members) {
      std::map<uint32_t, int> copies;
      for (const ibv_wc& wc : side.completions()) {
        ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
        if (wc.opcode != IBV_WC_RECV) continue;
        ++copies[wc.qp_num];
        EXPECT_EQ(wc.byte_len, 140U);
        EXPECT_TRUE(holds(side, wc.wr_id + 40, 100, 7));
      }
      EXPECT_EQ(copies.size(), members.size());
      for (const auto& [number, count] : copies) EXPECT_EQ(count, 1);
    };
    expect_one_each(hosts_.a, here);
    expect_one_each(hosts_.b, there);
  }
  EXPECT_EQ(hosts_.b.counter("rx_unknown_group"), 0U);
}

TEST_P(ServicesOnWorkers, multicast_without_members_is_counted_once) {
  auto from = datagrams_everywhere(hosts_.a);
  auto to_group = must(hosts_.a.pd->create_address_handle(address_of(gid_of("239.1.2.3"))));
  ASSERT_EQ(send(hosts_.a, *from[0], {.length = 8, .to = to_group.get(), .remote_qp = 0xffffff}), 0);
  hosts_.run(10ms);
  EXPECT_EQ(hosts_.b.counter("rx_unknown_group"), 1U);
}

// 24 connections of two services use one receive queue of 16 requests, refilled after completions, on a link with
// losses. Expects that RC messages arrive once and completely, and that each posted request completes once.
TEST_P(ServicesOnWorkers, shared_receive_queue_serves_the_queue_pairs_of_all_workers) {
  constexpr size_t kConnections = 24;
  constexpr uint64_t kEach = 8;
  constexpr size_t kLength = 2500;  // 10 packets
  const auto srq = make_srq(hosts_.b, 16);
  const ibv_gid gid_a = must(hosts_.a.device->query_gid(1));
  const ibv_gid gid_b = must(hosts_.b.device->query_gid(1));
  std::vector<std::unique_ptr<QueuePair>> from, to;
  std::map<uint32_t, size_t> connection_of;
  std::set<uint32_t> workers;
  for (size_t c = 0; c < kConnections; ++c) {
    const ibv_qp_type type = c % 3 == 2 ? IBV_QPT_UC : IBV_QPT_RC;
    from.push_back(make_service(hosts_.a, type));
    to.push_back(make_service(hosts_.b, type, srq.get()));
    connect_to(*from[c], type, gid_b, to[c]->qp_num(), {.sq_psn = 100});
    connect_to(*to[c], type, gid_a, from[c]->qp_num(), {.rq_psn = 100});
    connection_of[to[c]->qp_num()] = c;
    workers.insert(worker_of_qp(hosts_.b, *to[c]));
  }
  EXPECT_EQ(workers.size(), hosts_.b.device->host().workers());
  hosts_.run(10ms);
  const SimFaults faults{.loss = 0.01};
  hosts_.link().set_faults(SimLink::kAToB, faults);
  hosts_.link().set_faults(SimLink::kBToA, faults);

  // So that the messages of each connection start differently.
  fill(hosts_.a, 100'000, 10 * kConnections + kLength, 0);

  uint64_t posted = 0;
  std::vector<bool> out(16);  // whether the buffer is in the queue
  const auto refill = [&](size_t buffer) {
    ASSERT_FALSE(out.at(buffer));
    out[buffer] = true;
    ASSERT_EQ(receive(hosts_.b, *srq, buffer, buffer * kLength, kLength), 0);
    ++posted;
  };
  for (size_t i = 0; i < 16; ++i) refill(i);
  for (size_t c = 0; c < kConnections; ++c) {
    for (uint64_t i = 0; i < kEach; ++i) {
      const SendOptions message{.wr_id = i, .offset = 100'000 + 10 * c, .length = kLength};
      ASSERT_EQ(send(hosts_.a, *from[c], message), 0);
    }
  }
  uint64_t completed = 0;
  std::map<size_t, uint64_t> arrived;
  for (int round = 0; round < 400; ++round) {
    for (const ibv_wc& wc : hosts_.b.completions()) {
      ++completed;
      ASSERT_TRUE(out.at(wc.wr_id));
      out[wc.wr_id] = false;
      if (wc.status == IBV_WC_SUCCESS) {
        EXPECT_EQ(wc.byte_len, kLength);
        EXPECT_TRUE(holds(hosts_.b, wc.wr_id * kLength, kLength,
                          static_cast<uint8_t>(10 * connection_of.at(wc.qp_num))));
        ++arrived[connection_of.at(wc.qp_num)];
      } else {  // a UC message that lost a part
        EXPECT_EQ(wc.status, IBV_WC_REM_INV_REQ_ERR);
        EXPECT_EQ(connection_of.at(wc.qp_num) % 3, 2U);
      }
      refill(wc.wr_id);
    }
    hosts_.run(2ms);
  }
  for (size_t c = 0; c < kConnections; ++c) {
    if (c % 3 != 2) {
      EXPECT_EQ(arrived[c], kEach) << c;
    }
  }
  EXPECT_LE(posted - completed, 16U);
  const auto sent = hosts_.a.completions();
  EXPECT_EQ(sent.size(), kConnections * kEach);
  for (const ibv_wc& wc : sent) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
}

constexpr WorkerShape kShapes[] = {{"one_worker", {1, 1}, {1, 1}},
                                   {"three_workers_one_queue", {3, 3}, {1, 1}},
                                   {"four_workers_four_queues", {4, 4}, {4, 4}},
                                   {"two_and_four_workers_apart", {2, 4}, {1, 2}, true}};
INSTANTIATE_TEST_SUITE_P(Shapes, ServicesOnWorkers, testing::ValuesIn(kShapes),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace roci::test

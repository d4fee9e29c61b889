// Hosts with several workers in virtual time. Packets arrive at other workers, or all at one. Every request must
// complete once, in order, with the right bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "base/rng.hpp"
#include "device/worker_shape.hpp"
#include "engine/worker/worker_token.hpp"
#include "support/hosts/services.hpp"
#include "support/ports/frames.hpp"

namespace roci::test {
namespace {

// A connection: the queue pairs of both hosts.
struct Connection {
  std::unique_ptr<QueuePair> a, b;
};

std::vector<Connection> connect_many(TwoHosts& hosts, size_t count) {
  std::vector<Connection> out;
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) {
      hosts.make_qp(hosts.a);
      hosts.make_qp(hosts.b);
    }
    hosts.to_rts(hosts.a, hosts.b, 1, 2);
    hosts.to_rts(hosts.b, hosts.a, 2, 1);
    out.push_back({std::move(hosts.a.qp), std::move(hosts.b.qp)});
  }
  hosts.run(10ms);
  return out;
}

int post(const Side& side, QueuePair& qp, ibv_wr_opcode opcode, uint64_t id, size_t offset, size_t length,
         const Side& peer, size_t remote_offset) {
  ibv_sge sge = side.sge(offset, length);
  ibv_send_wr wr{};
  wr.wr_id = id;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = opcode;
  wr.wr.rdma.remote_addr = peer.address(remote_offset);
  wr.wr.rdma.rkey = peer.region->rkey();
  ibv_send_wr* bad = nullptr;
  return qp.post_send(&wr, &bad);
}

class Workers : public testing::TestWithParam<WorkerShape> {};

constexpr size_t kConnections = 50;
constexpr size_t kSlot = 3000;  // bytes per message: three packets
constexpr uint64_t kEach = 12;  // messages per connection

// WRITEs, SENDs and READs of 50 connections on a link that loses, duplicates and reorders frames. Expects that every
// request completes once, in the order of its queue pair, and that all bytes are right.
TEST_P(Workers, traffic_of_fifty_queue_pairs_completes_once_with_losses) {
  TwoHostsOptions options = options_for(GetParam());
  options.memory = kConnections * 4 * kSlot;
  TwoHosts hosts(options);
  const auto connections = connect_many(hosts, kConnections);
  const SimFaults faults{.loss = 0.01, .duplication = 0.01, .reordering = 0.01};
  hosts.link().set_faults(SimLink::kAToB, faults);
  hosts.link().set_faults(SimLink::kBToA, faults);
  Rng rng{11};
  for (uint8_t& byte : hosts.a.memory) byte = static_cast<uint8_t>(rng.next());

  // Per connection: slot 0 is written, slot 1 is sent, and the peer's copy of slot 0 is read into slot 3. Slot 2 is
  // unused.
  std::map<uint32_t, size_t> of_a, of_b;  // queue pair number to connection index
  for (size_t c = 0; c < kConnections; ++c) {
    of_a[connections[c].a->qp_num()] = c;
    of_b[connections[c].b->qp_num()] = c;
    for (uint64_t i = 0; i < kEach; ++i) {
      const size_t base = c * 4 * kSlot;
      ASSERT_EQ(receive(hosts.b, *connections[c].b, i, base + kSlot, kSlot), 0);
      ASSERT_EQ(post(hosts.a, *connections[c].a, IBV_WR_RDMA_WRITE, 3 * i, base, kSlot, hosts.b, base), 0);
      ASSERT_EQ(post(hosts.a, *connections[c].a, IBV_WR_SEND, 3 * i + 1, base + kSlot, kSlot, hosts.b, 0), 0);
      ASSERT_EQ(post(hosts.a, *connections[c].a, IBV_WR_RDMA_READ, 3 * i + 2, base + 3 * kSlot, kSlot,
                     hosts.b, base),
                0);
    }
  }
  hosts.run(2s);

  std::vector<uint64_t> sent(kConnections), received(kConnections);
  for (const ibv_wc& wc : hosts.a.completions()) {
    ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
    ASSERT_EQ(wc.wr_id, sent[of_a.at(wc.qp_num)]++);
  }
  for (const ibv_wc& wc : hosts.b.completions()) {
    ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
    ASSERT_EQ(wc.wr_id, received[of_b.at(wc.qp_num)]++);
  }
  for (size_t c = 0; c < kConnections; ++c) {
    EXPECT_EQ(sent[c], 3 * kEach);
    EXPECT_EQ(received[c], kEach);
    const size_t base = c * 4 * kSlot;
    EXPECT_EQ(std::memcmp(&hosts.a.memory[base], &hosts.b.memory[base], 2 * kSlot), 0) << c;
    EXPECT_EQ(std::memcmp(&hosts.a.memory[base], &hosts.a.memory[base + 3 * kSlot], kSlot), 0) << c;
  }
  EXPECT_GT(hosts.a.counter("packets_retransmitted"), 0U);
  for (const Side* side : {&hosts.a, &hosts.b}) {
    if (side->device->host().workers() > 1) {
      EXPECT_GT(side->counter("rx_handed_over"), 100U);
    }
    EXPECT_EQ(side->counter("rx_hand_over_full"), 0U);
    EXPECT_EQ(side->counter("rx_unknown_qp"), 0U);
    EXPECT_EQ(side->device->host().tx_buffers_in_use(), 0U);
  }
}

// The number identifies the worker. Workers get equal shares, also after some queue pairs were destroyed.
TEST_P(Workers, queue_pairs_are_distributed_evenly_and_found_by_number) {
  TwoHosts hosts(options_for(GetParam()));
  Host& host = hosts.a.device->host();
  std::vector<std::unique_ptr<QueuePair>> qps;
  const auto make = [&](size_t count) {
    while (qps.size() < count) {
      hosts.make_qp(hosts.a);
      qps.push_back(std::move(hosts.a.qp));
    }
  };
  const auto check = [&] {
    std::vector<size_t> held(host.workers());
    for (const auto& qp : qps) {
      const uint32_t owner = worker_of_qp(hosts.a, *qp);
      ++held[owner];
      for (uint32_t w = 0; w < host.workers(); ++w) {
        EXPECT_EQ(host.worker(w).find(Qpn{qp->qp_num()}) != nullptr, w == owner);
      }
    }
    for (uint32_t w = 0; w < host.workers(); ++w) {
      EXPECT_NEAR(static_cast<double>(held[w]), static_cast<double>(qps.size()) / host.workers(), 1.0);
      EXPECT_EQ(host.worker(w).queue_pairs(), held[w]);
    }
  };
  hosts.a.qp.reset();
  make(60);
  check();
  // Destroys all queue pairs of worker 0, so that it gets the next ones.
  std::erase_if(qps, [&](const auto& qp) { return worker_of_qp(hosts.a, *qp) == 0; });
  make(60);
  check();
}

// While a thread holds a worker's token, its queue pairs make no progress and others do: all of them, unless their
// packets arrive in a receive queue of that worker.
TEST_P(Workers, queue_pair_is_processed_only_by_its_worker) {
  TwoHostsOptions options = options_for(GetParam());
  options.poll_workers_apart = true;  // otherwise the host stays due while a worker is held
  TwoHosts hosts(options);
  const auto connections = connect_many(hosts, 12);
  Host& host = hosts.a.device->host();
  for (uint32_t held = 0; held < host.workers(); ++held) {
    size_t late = 0;
    // The held worker must not be one that sends for others.
    if (held < std::min<uint32_t>(GetParam().queues[0], host.workers()) &&
        GetParam().queues[0] < host.workers())
      continue;
    {
      const std::scoped_lock guard(host.worker(held).token());
      for (const Connection& connection : connections) {
        ASSERT_EQ(post(hosts.a, *connection.a, IBV_WR_RDMA_WRITE, 1, 0, 64, hosts.b, 0), 0);
      }
      hosts.run(100us);
      size_t done = 0;
      for (const ibv_wc& wc : hosts.a.completions()) {
        EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
        EXPECT_NE(worker_of(Qpn{wc.qp_num}, host.workers()), held);
        ++done;
      }
      // A held worker with a receive queue of its own also keeps packets for others.
      const size_t others = connections.size() - host.worker(held).queue_pairs();
      if (GetParam().queues[0] == 1) {
        EXPECT_EQ(done, others);
      }
      EXPECT_EQ(done > 0, others > 0);
      late = others - done;
    }
    hosts.run(1s);
    const auto rest = hosts.a.completions();
    EXPECT_EQ(rest.size(), host.worker(held).queue_pairs() + late);
    for (const ibv_wc& wc : rest) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  }
}

// Worker 0 responds to ARP requests. Every worker learns the sender's MAC from the request.
TEST_P(Workers, all_workers_learn_from_an_arp_request_and_one_replies) {
  TwoHosts hosts(options_for(GetParam()));
  // resolve() does not wait in virtual time.
  ASSERT_FALSE(hosts.b.device->resolve(must(hosts.a.device->query_gid(1)), 1s));
  hosts.run(100ms);
  ASSERT_TRUE(hosts.b.device->resolve(must(hosts.a.device->query_gid(1)), 1s));
  // b's workers have sent requests, a's have learned b's address without a request.
  Gid b_address;
  std::memcpy(b_address.bytes.data(), must(hosts.b.device->query_gid(1)).raw, 16);
  Host& a = hosts.a.device->host();
  Host& b = hosts.b.device->host();
  uint64_t asked = 0, answered = 0;
  for (uint32_t w = 0; w < b.workers(); ++w) asked += b.worker(w).neighbors().stats().solicitations;
  for (uint32_t w = 0; w < a.workers(); ++w) {
    EXPECT_EQ(a.worker(w).neighbors().stats().solicitations, 0U) << w;
    answered += a.worker(w).neighbors().stats().replies;
    EXPECT_EQ(a.worker(w).neighbors().resolve(b_address, hosts.now()).result, Resolution::kResolved) << w;
  }
  EXPECT_EQ(asked, b.workers());
  EXPECT_EQ(answered, asked);
  EXPECT_EQ(a.worker(0).neighbors().stats().replies, answered);
}

// A queue pair is destroyed while packets for it are in its worker's inbox.
TEST_P(Workers, queue_pair_can_be_destroyed_while_packets_are_handed_over) {
  TwoHosts hosts(options_for(GetParam()));
  auto connections = connect_many(hosts, 6);
  Host& b = hosts.b.device->host();
  const uint32_t last = b.workers() - 1;
  const auto on_last = [&](const Connection& c) { return worker_of_qp(hosts.b, *c.b) == last; };
  {
    const std::scoped_lock guard(b.worker(last).token());
    for (const Connection& connection : connections) {
      ASSERT_EQ(post(hosts.a, *connection.a, IBV_WR_RDMA_WRITE, 1, 0, 5000, hosts.b, 0), 0);
    }
    hosts.run(100us);
  }
  std::set<uint32_t> gone;  // queue pairs of a whose peer was destroyed
  for (Connection& connection : connections) {
    if (!on_last(connection)) continue;
    connection.b.reset();
    gone.insert(connection.a->qp_num());
  }
  ASSERT_FALSE(gone.empty());
  hosts.run(1s);
  const auto done = hosts.a.completions();
  EXPECT_EQ(done.size(), connections.size());
  for (const ibv_wc& wc : done)
    EXPECT_EQ(wc.status, gone.contains(wc.qp_num) ? IBV_WC_RETRY_EXC_ERR : IBV_WC_SUCCESS);
  EXPECT_GT(hosts.b.counter("rx_unknown_qp"), 0U);
  EXPECT_EQ(b.tx_buffers_in_use(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Workers,
                         testing::Values(WorkerShape{"one", {1, 1}, {1, 1}},
                                         WorkerShape{"two_spread", {2, 2}, {2, 2}},
                                         WorkerShape{"two_on_one_queue", {2, 2}, {1, 1}},
                                         WorkerShape{"three_spread", {3, 3}, {3, 3}},
                                         WorkerShape{"three_on_one_queue", {3, 3}, {1, 1}},
                                         WorkerShape{"three_on_two_queues", {3, 3}, {2, 2}},
                                         WorkerShape{"one_to_three", {1, 3}, {1, 3}},
                                         WorkerShape{"more_queues_than_workers", {2, 1}, {5, 3}},
                                         WorkerShape{"polled_apart", {3, 2}, {2, 1}, true}),
                         [](const testing::TestParamInfo<WorkerShape>& shape) {
                           return std::string(shape.param.name);
                         });

// A worker is held while a burst for it exceeds its inbox. Expects that the excess is dropped and counted, and
// recovered later.
TEST(WorkersInbox, full_inbox_drops_packets_that_are_retransmitted) {
  TwoHostsOptions options = options_for({"", {1, 2}, {1, 1}});
  options.poll_workers_apart = true;
  options.path_mtu = IBV_MTU_256;
  options.cq_entries = 64;
  options.congestion_control = "none";  // otherwise its window would be smaller than the inbox
  TwoHosts hosts(options);
  auto connections = connect_many(hosts, 2);
  Host& b = hosts.b.device->host();
  const auto theirs = std::find_if(connections.begin(), connections.end(),
                                   [&](const Connection& c) { return worker_of_qp(hosts.b, *c.b) == 1; });
  ASSERT_NE(theirs, connections.end());
  for (size_t i = 0; i < hosts.a.memory.size(); ++i)
    hosts.a.memory[i] = static_cast<uint8_t>(i * 7 + (i >> 9));
  constexpr size_t kBytes = 300 * 1024;  // 1200 packets
  {
    const std::scoped_lock guard(b.worker(1).token());
    ASSERT_EQ(post(hosts.a, *theirs->a, IBV_WR_RDMA_WRITE, 1, 0, kBytes, hosts.b, 0), 0);
    hosts.run(1ms);
  }
  EXPECT_GE(hosts.b.counter("rx_hand_over_full"), 1200U - Handoff::kRing);
  hosts.run(2s);
  const auto completions = hosts.a.completions();
  ASSERT_EQ(completions.size(), 1U);
  EXPECT_EQ(completions[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(hosts.a.memory.data(), hosts.b.memory.data(), kBytes), 0);
  EXPECT_GT(hosts.a.counter("packets_retransmitted"), 0U);
}

// Two of three workers have no transmit queue, and the port is slow. Expects no loss before the port, and progress of
// all three.
TEST(WorkersRelay, frames_wait_for_a_slow_port_of_another_worker) {
  TwoHostsOptions options = options_for({"", {3, 1}, {1, 1}});
  options.cq_entries = 4096;
  options.timeout = 18;  // 1 s
  TwoHosts hosts(options);
  auto connections = connect_many(hosts, 9);
  hosts.link().set_rate(SimLink::kAToB, BitsPerSec{1'000'000'000});
  for (const Connection& connection : connections) {
    ASSERT_EQ(post(hosts.a, *connection.a, IBV_WR_RDMA_WRITE, 1, 0, 500'000, hosts.b, 0), 0);
  }
  hosts.run(1s);
  const auto done = hosts.a.completions();
  EXPECT_EQ(done.size(), connections.size());
  for (const ibv_wc& wc : done) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(hosts.a.counter("packets_retransmitted"), 0U);
  EXPECT_EQ(hosts.a.device->host().tx_buffers_in_use(), 0U);
}

// One worker has the transmit queue of a slow port with a short queue, and the other one sends through it.
class WorkersRelayShared : public testing::Test {
 protected:
  static TwoHostsOptions options() {
    TwoHostsOptions options = options_for({"", {2, 1}, {1, 1}});
    options.rate = BitsPerSec{1'000'000'000};
    options.queue = Bytes{4096};
    options.timeout = 8;  // 1 ms
    options.retry_count = 1;
    options.cap.max_send_wr = 1024;
    return options;
  }
  // Connections whose queue pair of a belongs to this worker.
  std::vector<Connection> connect_at(uint32_t worker, size_t count) {
    std::vector<Connection> out;
    while (out.size() < count) {
      Connection connection = std::move(connect_many(hosts_, 1)[0]);
      hosts_.make_qp(hosts_.a);
      hosts_.make_qp(hosts_.b);
      auto& connections = worker_of_qp(hosts_.a, *connection.a) == worker ? out : unused_;
      connections.push_back(std::move(connection));
    }
    return out;
  }
  int write(const Connection& connection, uint64_t id, size_t length) {
    return post(hosts_.a, *connection.a, IBV_WR_RDMA_WRITE, id, 0, length, hosts_.b, 0);
  }
  TwoHosts hosts_{options()};
  std::vector<Connection> unused_;  // kept, so that their numbers are not used again
};

// The worker with the queue has always more to send than the port accepts.
TEST_F(WorkersRelayShared, frames_of_a_busy_relay_do_not_starve_those_of_another_worker) {
  constexpr uint64_t kSmall = 1000;
  const auto busy = connect_at(0, 8);
  const auto other = connect_at(1, 1);
  for (const Connection& connection : busy) {
    for (uint64_t id = 0; id < 64; ++id) ASSERT_EQ(write(connection, id, 100'000), 0);  // 0.4 s in all
  }
  hosts_.run(5ms);
  for (uint64_t id = 0; id < 10; ++id) ASSERT_EQ(write(other[0], kSmall + id, 10'000), 0);  // 0.8 ms
  hosts_.run(10ms);
  size_t small = 0;
  for (const ibv_wc& wc : hosts_.a.completions()) {
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    small += wc.wr_id >= kSmall ? 1 : 0;
  }
  EXPECT_EQ(small, 10U);
}

// The port is full in each round, and the packet of one connection is lost. Its time-out counts from its transmission,
// regardless of the frames that wait.
TEST_F(WorkersRelayShared, lost_packet_is_retransmitted_while_the_port_is_full) {
  for (const uint32_t worker : {0U, 1U}) {
    SCOPED_TRACE(worker);
    const auto busy = connect_at(0, 8);
    const auto other = connect_at(worker, 1);
    bool lost = false;
    hosts_.watch = [&](const Packet& packet, char direction) {
      const bool drops = direction == '>' && !lost && packet.bth.destination_qp == Qpn{other[0].b->qp_num()};
      lost |= drops;
      return SimVerdict{.drop = drops};
    };
    for (const Connection& connection : busy) {
      for (uint64_t id = 0; id < 64; ++id) ASSERT_EQ(write(connection, id, 100'000), 0);  // 0.4 s in all
    }
    hosts_.run(5ms);
    ASSERT_EQ(write(other[0], 1000, 64), 0);
    hosts_.run(60ms);
    const auto all = hosts_.a.completions();
    EXPECT_TRUE(std::ranges::any_of(
        all, [](const ibv_wc& wc) { return wc.wr_id == 1000 && wc.status == IBV_WC_SUCCESS; }));
    EXPECT_TRUE(lost);
    EXPECT_LT(all.size(), 8U * 64) << "the load ended before";
    hosts_.run(1s);
    hosts_.a.completions();
  }
}

// The frames wait in the ring to the relay for much longer than the time-out.
TEST_F(WorkersRelayShared, frames_that_wait_for_the_relay_use_up_no_retries) {
  hosts_.link().set_rate(SimLink::kAToB, BitsPerSec{100'000'000});
  const auto connections = connect_at(1, 20);
  for (const Connection& connection : connections)
    ASSERT_EQ(write(connection, 1, 20'000), 0);  // 32 ms in all
  hosts_.run(200ms);
  const auto all = hosts_.a.completions();
  EXPECT_EQ(all.size(), connections.size());
  for (const ibv_wc& wc : all) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_LE(hosts_.a.counter("packets_retransmitted"), connections.size());
}

// The capability request is lost, and the host is destroyed while it waits for the response.
TEST(WorkersDestruction, host_can_be_destroyed_during_a_capability_exchange) {
  TwoHostsOptions options = options_for({"", {2, 2}, {2, 2}});
  options.extensions_a.mode = options.extensions_b.mode = ExtensionMode::kAuto;
  TwoHosts hosts(options);
  hosts.link().set_faults(SimLink::kAToB, {.loss = 1});
  hosts.to_rts(hosts.a, hosts.b, 1, 2);
  hosts.run(1ms);
  EXPECT_GT(hosts.a.device->host().worker(0).peers().size(), 0U);
}

// Threads that wait for the token sleep. Poll loops wait for them, but not for ever.
TEST(WorkersToken, poll_loop_gets_the_token_while_threads_always_wait_for_it) {
  WorkerToken token;
  std::atomic<bool> ends{false};
  std::vector<std::thread> threads;
  token.lock();  // all threads wait at the start
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      while (!ends) {
        const std::scoped_lock guard(token);
      }
    });
  }
  token.unlock();
  unsigned taken = 0;
  for (uint32_t attempt = 0; attempt < 50'000'000 && taken < 3; ++attempt) {
    if (!token.try_lock()) continue;
    ++taken;
    token.unlock();
  }
  ends = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken, 3U);
}

// Thousands of queue pairs: the tables grow, and each queue pair is found.
TEST(WorkersTables, grow_with_the_queue_pairs) {
  TwoHostsOptions options = options_for({"", {3, 1}, {1, 1}});
  options.cap = {
      .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
  TwoHosts hosts(options);
  auto connections = connect_many(hosts, 3000);
  std::set<uint32_t> numbers;
  for (const Connection& connection : connections) {
    ASSERT_EQ(post(hosts.a, *connection.a, IBV_WR_RDMA_WRITE, 1, 0, 8, hosts.b, 0), 0);
    numbers.insert(connection.a->qp_num());
    hosts.run(20us);
  }
  EXPECT_EQ(numbers.size(), connections.size());
  hosts.run(1s);
  size_t done = 0;
  for (auto some = hosts.a.completions(); !some.empty(); some = hosts.a.completions()) {
    done += some.size();
    for (const ibv_wc& wc : some) ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
  }
  EXPECT_EQ(done, connections.size());
}

}  // namespace
}  // namespace roci::test

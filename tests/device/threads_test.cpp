// Devices under real time and real threads: two of them back to back over rings of this process, driven by the
// application's polling or by threads of their own, with several threads posting, polling and changing things. Every
// request completes once, in its queue pair's order, with the right bytes. Made for ThreadSanitizer.
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "port/ethdev_port.hpp"
#include "roci/device.hpp"
#include "support/byte_link.hpp"
#include "support/two_hosts.hpp"

namespace roci::test {
namespace {

constexpr size_t kSlot = 8192;
constexpr uint64_t kWindow = 8;  // requests a thread keeps posted
constexpr auto kPatience = std::chrono::seconds{60};

struct Node {
  std::unique_ptr<Device> device;
  std::unique_ptr<ProtectionDomain> pd;
};

// One connection: a queue pair on each node with its memory and completion queues.
struct End {
  std::unique_ptr<CompletionQueue> cq;
  std::vector<uint8_t> memory;
  std::unique_ptr<MemoryRegion> region;
  std::unique_ptr<QueuePair> qp;
};

struct Mode {
  const char* name;
  Progress progress;
  IdlePolicy idle;
};

class Threads : public testing::TestWithParam<Mode> {
 protected:
  void SetUp() override {
    must(start_eal());
    pool_ = must(MbufPool::create("threads", 4096, 2200));
    make_both();
  }

  void make_both() {
#ifdef __SANITIZE_THREAD__
    auto [left, right] = ByteLinkPort::make_pair(1500);
#else
    auto [left, right] = must(make_ring_pair("threads", pool_, 1500, 512));
#endif
    make(a_, std::move(left), "10.1.0.1/24");
    make(b_, std::move(right), "10.1.0.2/24");
  }

  void make(Node& node, std::unique_ptr<Port> port, const std::string& address) {
    DeviceConfig config;
    config.name = "t" + address.substr(7, 1);
    config.addresses = {address};
    config.progress = GetParam().progress;
    config.idle = GetParam().idle;
    config.tx_buffers = 2048;
    node.device = must(Device::create(std::move(port), config));
    node.pd = must(node.device->allocate_pd());
  }

  static End make_end(Node& node, size_t bytes) {
    End end;
    end.cq = must(node.device->create_cq(256));
    end.memory.resize(bytes);
    end.region = must(node.pd->register_memory(
        end.memory.data(), bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ));
    ibv_qp_init_attr init{};
    init.qp_type = IBV_QPT_RC;
    init.cap = {
        .max_send_wr = 32, .max_recv_wr = 32, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
    init.sq_sig_all = 1;
    end.qp = must(node.pd->create_qp(&init, *end.cq, *end.cq));
    return end;
  }

  static void connect(End& end, const End& peer, Node& peer_node) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    must(end.qp->modify(attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_1024;
    attr.dest_qp_num = peer.qp->qp_num();
    attr.max_dest_rd_atomic = 4;
    attr.min_rnr_timer = 1;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.grh.sgid_index = 1;
    attr.ah_attr.grh.dgid = must(peer_node.device->query_gid(1));
    must(end.qp->modify(attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = 16;  // 268 ms: a slow machine is not a lossy one
    attr.retry_cnt = 7;
    attr.rnr_retry = 7;
    attr.max_rd_atomic = 4;
    must(end.qp->modify(attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
  }

  std::pair<End, End> make_connection(size_t bytes) {
    std::pair<End, End> ends{make_end(a_, bytes), make_end(b_, bytes)};
    connect(ends.first, ends.second, b_);
    connect(ends.second, ends.first, a_);
    return ends;
  }

  static int post(End& end, ibv_wr_opcode opcode, uint64_t id, size_t offset, uint32_t length,
                  const End& peer) {
    ibv_sge sge{reinterpret_cast<uint64_t>(end.memory.data()) + offset, length, end.region->lkey()};
    ibv_send_wr wr{};
    wr.wr_id = id;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = opcode;
    wr.wr.rdma.remote_addr = reinterpret_cast<uint64_t>(peer.memory.data()) + offset;
    wr.wr.rdma.rkey = peer.region->rkey();
    ibv_send_wr* bad = nullptr;
    return end.qp->post_send(&wr, &bad);
  }
  static int post_receive(End& end, uint64_t id, size_t offset, uint32_t length) {
    ibv_sge sge{reinterpret_cast<uint64_t>(end.memory.data()) + offset, length, end.region->lkey()};
    ibv_recv_wr wr{};
    wr.wr_id = id;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    return end.qp->post_recv(&wr, &bad);
  }

  // The next completion, or a failed one after a long time.
  static ibv_wc await(CompletionQueue& cq) {
    ibv_wc wc{};
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < end) {
      if (cq.poll(1, &wc) == 1) return wc;
    }
    wc.status = IBV_WC_GENERAL_ERR;
    return wc;
  }

  std::shared_ptr<MbufPool> pool_;
  Node a_, b_;
};

// Each thread drives a connection of its own: WRITE a pattern, READ it back into other memory.
TEST_P(Threads, several_threads_each_with_a_queue_pair_move_the_right_bytes) {
  constexpr uint64_t kRounds = 20;
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (uint8_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      auto [mine, theirs] = make_connection(2 * kSlot * kWindow);
      for (uint64_t round = 0; round < kRounds; ++round) {
        for (uint64_t i = 0; i < kWindow; ++i) {
          std::memset(mine.memory.data() + i * kSlot, static_cast<int>(1 + t + round * 3 + i), kSlot);
          if (post(mine, IBV_WR_RDMA_WRITE, i, i * kSlot, kSlot, theirs) != 0) ++wrong;
        }
        for (uint64_t i = 0; i < kWindow; ++i) {
          const ibv_wc wc = await(*mine.cq);
          if (wc.status != IBV_WC_SUCCESS || wc.wr_id != i) ++wrong;
        }
        // Read back over what was sent: it comes from the peer's memory.
        std::memset(mine.memory.data(), 0, kSlot * kWindow);
        for (uint64_t i = 0; i < kWindow; ++i) {
          if (post(mine, IBV_WR_RDMA_READ, i, i * kSlot, kSlot, theirs) != 0) ++wrong;
        }
        for (uint64_t i = 0; i < kWindow; ++i) {
          const ibv_wc wc = await(*mine.cq);
          if (wc.status != IBV_WC_SUCCESS || wc.wr_id != i) ++wrong;
          for (size_t k = 0; k < kSlot; ++k) {
            if (mine.memory[i * kSlot + k] != static_cast<uint8_t>(1 + t + round * 3 + i)) {
              ++wrong;
              break;
            }
          }
        }
        if (wrong != 0) return;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// Two threads post to one queue pair, a third polls its completions, a fourth receives on the other side.
TEST_P(Threads, one_queue_pair_is_posted_to_and_polled_by_different_threads) {
  constexpr uint64_t kEach = 300;
  auto ends = make_connection(4096);
  End& mine = ends.first;
  End& theirs = ends.second;
  std::atomic<uint64_t> room{32};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (uint64_t poster = 0; poster < 2; ++poster) {
    threads.emplace_back([&, poster] {
      for (uint64_t i = 0; i < kEach && wrong == 0;) {
        uint64_t free = room.load();
        if (free == 0 || !room.compare_exchange_weak(free, free - 1)) {
          std::this_thread::yield();
          continue;
        }
        if (post(mine, IBV_WR_SEND, poster << 32 | i++, 0, 64, theirs) != 0) ++wrong;
      }
    });
  }
  threads.emplace_back([&] {
    uint64_t next[2] = {0, 0};
    for (uint64_t i = 0; i < 2 * kEach && wrong == 0; ++i) {
      const ibv_wc wc = await(*mine.cq);
      if (wc.status != IBV_WC_SUCCESS || (wc.wr_id & 0xffffffff) != next[wc.wr_id >> 32]++) ++wrong;
      ++room;
    }
  });
  threads.emplace_back([&] {
    uint64_t posted = 0;
    for (; posted < 16; ++posted) {
      if (post_receive(theirs, posted, 0, 64) != 0) ++wrong;
    }
    for (uint64_t i = 0; i < 2 * kEach && wrong == 0; ++i) {
      const ibv_wc wc = await(*theirs.cq);
      if (wc.status != IBV_WC_SUCCESS || wc.wr_id != i) ++wrong;
      if (post_receive(theirs, posted++, 0, 64) != 0) ++wrong;
    }
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// Objects come and go, and states change, while other queue pairs are busy; the last act is to go right after a post.
TEST_P(Threads, control_path_works_while_traffic_runs) {
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::thread traffic([&] {
    auto [mine, theirs] = make_connection(kSlot);
    for (uint64_t id = 0; !stop && wrong == 0; ++id) {
      if (post(mine, IBV_WR_RDMA_WRITE, id, 0, kSlot, theirs) != 0) ++wrong;
      const ibv_wc wc = await(*mine.cq);
      if (wc.status != IBV_WC_SUCCESS || wc.wr_id != id) ++wrong;
    }
  });
  for (int i = 0; i < 60 && wrong == 0; ++i) {
    auto [mine, theirs] = make_connection(kSlot);
    EXPECT_EQ(post(mine, IBV_WR_RDMA_READ, 1, 0, kSlot, theirs), 0);
    if (i % 3 == 0) {
      EXPECT_EQ(await(*mine.cq).status, IBV_WC_SUCCESS);
    }
    if (i % 3 == 1) {
      ibv_qp_attr attr{};
      attr.qp_state = IBV_QPS_ERR;
      must(mine.qp->modify(attr, IBV_QP_STATE));
      const ibv_wc_status status = await(*mine.cq).status;
      EXPECT_TRUE(status == IBV_WC_WR_FLUSH_ERR || status == IBV_WC_SUCCESS) << status;
    }
    ibv_qp_attr attr{};
    mine.qp->query(&attr, nullptr);
    (void)a_.device->counters();
    EXPECT_EQ(post(mine, IBV_WR_RDMA_READ, 2, 0, kSlot, theirs), 0);
    mine.qp.reset();
  }
  stop = true;
  traffic.join();
  EXPECT_EQ(wrong, 0);
}

// Receives are posted by one thread while another puts the queue pair into error. Expect: every one is flushed.
TEST_P(Threads, no_receive_is_left_behind_when_the_queue_pair_fails) {
  for (int i = 0; i < 50; ++i) {
    auto [mine, theirs] = make_connection(64);
    std::atomic<uint64_t> posted{0};
    std::thread poster([&, &end = theirs] {
      for (uint64_t id = 0; id < 24; ++id) {
        if (post_receive(end, id, 0, 64) == 0) ++posted;
      }
    });
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_ERR;
    must(theirs.qp->modify(attr, IBV_QP_STATE));
    poster.join();
    EXPECT_EQ(posted, 24U);
    for (uint64_t id = 0; id < posted; ++id) {
      const ibv_wc wc = await(*theirs.cq);
      ASSERT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
      ASSERT_EQ(wc.wr_id, id);
    }
  }
}

// Nobody polls the target of a WRITE. Expect: it is executed all the same.
TEST_P(Threads, one_sided_access_to_an_idle_process_works) {
  auto [mine, theirs] = make_connection(kSlot);
  std::memset(mine.memory.data(), 0x5a, kSlot);
  ASSERT_EQ(post(mine, IBV_WR_RDMA_WRITE, 1, 0, kSlot, theirs), 0);
  EXPECT_EQ(await(*mine.cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(theirs.memory, mine.memory);
}

// The program sleeps on the queue's file descriptor.
TEST_P(Threads, event_wakes_a_sleeping_program) {
  auto [mine, theirs] = make_connection(kSlot);
  mine.cq->request_notify(false);
  ASSERT_EQ(post(mine, IBV_WR_RDMA_WRITE, 1, 0, kSlot, theirs), 0);
  pollfd descriptor{mine.cq->event_fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&descriptor, 1, 30'000), 1);
  EXPECT_EQ(await(*mine.cq).status, IBV_WC_SUCCESS);
}

TEST_P(Threads, devices_start_and_stop_again_and_again) {
  for (int i = 0; i < 5; ++i) {
    {
      auto [mine, theirs] = make_connection(kSlot);
      ASSERT_EQ(post(mine, IBV_WR_RDMA_WRITE, 1, 0, kSlot, theirs), 0);
      if (i % 2 == 0) {
        EXPECT_EQ(await(*mine.cq).status, IBV_WC_SUCCESS);
      }
      // The device goes first, what was made on it later, with packets under way.
      a_ = {};
      b_ = {};
    }
    make_both();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Progress, Threads,
    testing::Values(Mode{"application", Progress::kApplication, IdlePolicy::kYield},
                    Mode{"dedicated_yielding", Progress::kDedicated, IdlePolicy::kYield},
                    Mode{"dedicated_sleeping", Progress::kDedicated, IdlePolicy::kSleep}),
    [](const testing::TestParamInfo<Mode>& mode) { return std::string(mode.param.name); });

}  // namespace
}  // namespace roci::test

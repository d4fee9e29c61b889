// Devices in real time with real threads: two devices connected by rings of this process, driven by the application's
// polling or by their own threads, with several threads that post, poll and change objects. Every request completes
// once, in the order of its queue pair, with the right bytes. Intended for ThreadSanitizer.
#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/rng.hpp"
#include "threads/real_hosts.hpp"

namespace roci::test {
namespace {

constexpr uint64_t kWindow = 8;  // outstanding requests per thread

struct Mode {
  const char* name;
  Progress progress;
  IdlePolicy idle;
  uint16_t workers = 1;
};

class Threads : public RealHosts, public testing::TestWithParam<Mode> {
 protected:
  void SetUp() override {
    start();
    pool_ = must(MbufPool::create("threads", 4096, 2200));
    make_both();
  }

  void make_both() {
    const uint16_t workers = GetParam().workers;
    auto [left, right] = kThreadSanitizer ? ByteLinkPort::make_pair(1500, workers)
                                          : must(make_ring_pair("threads", pool_, 1500, 512, workers));
    DeviceConfig config;
    config.progress = GetParam().progress;
    config.workers = GetParam().workers;
    config.idle = GetParam().idle;
    make(a_, std::move(left), "10.1.0.1/24", config);
    make(b_, std::move(right), "10.1.0.2/24", config);
  }

  void TearDown() override {
    a_ = {};
    b_ = {};
  }

  std::shared_ptr<MbufPool> pool_;
};

// Each thread uses a connection of its own: it writes a pattern and reads it back into other memory.
TEST_P(Threads, threads_with_separate_queue_pairs_transfer_correct_data) {
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
        // Reads back over the sent data, which is cleared first: the data comes from the peer's memory.
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

// Two threads post to one queue pair, a third polls its completions, a fourth receives at the peer.
TEST_P(Threads, different_threads_post_to_and_poll_one_queue_pair) {
  constexpr uint64_t kEach = 1000;
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

// State that four threads share in the next test: connections on two completion queues per device. Each connection
// has slots with one request at a time: a WRITE of one part of the slot, a SEND of another, or a READ of the written
// part.
class Shared {
 public:
  static constexpr size_t kConnections = 4;
  static constexpr size_t kSlots = 8;
  static constexpr size_t kPart = 1500;             // two packets
  static constexpr size_t kParts = 3;               // written, sent, read
  static constexpr uint64_t kForeign = 1ULL << 63;  // wr_id of a request that the check ignores

  struct Slot {
    std::atomic<bool> busy{false};
    // Number of uses. Owned by the thread that made the slot busy, then by the thread that polls its completion.
    uint32_t round = 0;
  };

  static uint8_t pattern(size_t connection, size_t slot, uint32_t round, size_t at) {
    return static_cast<uint8_t>(at * 31 + connection * 101 + slot * 17 + round * 7);
  }
  static size_t offset(size_t slot, size_t part) { return (slot * kParts + part) * kPart; }
  static uint64_t id_of(size_t connection, size_t slot, uint32_t round) {
    return uint64_t{round} << 32 | connection << 8 | slot;
  }

  std::array<std::array<Slot, kSlots>, kConnections> slots;
  std::array<std::unique_ptr<CompletionQueue>, 2> cqs_a, cqs_b;
  std::vector<End> mine, theirs;  // their own completion queues are not used
};

// Four threads post to all queue pairs and poll all completion queues in any order. Meanwhile other queue pairs on
// the same completion queues and memory regions are created and destroyed. Expects that every request completes once
// with the right bytes.
TEST_P(Threads, four_threads_share_all_queue_pairs_and_completion_queues) {
  constexpr uint64_t kRequests = 1200;
  Shared shared;
  for (auto* cqs : {&shared.cqs_a, &shared.cqs_b}) {
    Node& node = cqs == &shared.cqs_a ? a_ : b_;
    for (auto& cq : *cqs) cq = must(node.device->create_cq(1024));
  }
  constexpr size_t kBytes = Shared::kSlots * Shared::kParts * Shared::kPart;
  for (size_t c = 0; c < Shared::kConnections; ++c) {
    shared.mine.push_back(make_end(a_, kBytes, shared.cqs_a[c % 2].get()));
    shared.theirs.push_back(make_end(b_, kBytes, shared.cqs_b[c % 2].get()));
    connect(shared.mine[c], shared.theirs[c], b_);
    connect(shared.theirs[c], shared.mine[c], a_);
    for (size_t slot = 0; slot < Shared::kSlots; ++slot) {
      ASSERT_EQ(
          post_receive(shared.theirs[c], Shared::id_of(c, slot, 0), Shared::offset(slot, 1), Shared::kPart),
          0);
    }
  }
  std::atomic<uint64_t> started{0}, ended{0}, sends{0}, receives{0};
  std::atomic<int> wrong{0};
  std::atomic<bool> stop{false};

  const auto right = [](const std::vector<uint8_t>& memory, size_t part, size_t c, size_t slot,
                        uint32_t round) {
    const uint8_t* bytes = memory.data() + Shared::offset(slot, part);
    for (size_t i = 0; i < Shared::kPart; ++i) {
      if (bytes[i] != Shared::pattern(c, slot, round, i)) return false;
    }
    return true;
  };
  const auto begin = [&](size_t c, size_t slot) {
    Shared::Slot& state = shared.slots[c][slot];
    bool idle = false;
    if (!state.busy.compare_exchange_strong(idle, true)) return;
    if (started.fetch_add(1) >= kRequests) {
      state.busy = false;
      return;
    }
    End& from = shared.mine[c];
    const uint32_t round = ++state.round;
    // Rounds repeat: WRITE, READ of the written part, SEND.
    const size_t part = round % 3 == 0 ? 1 : 0;
    if (round % 3 != 2) {
      for (size_t i = 0; i < Shared::kPart; ++i)
        from.memory[Shared::offset(slot, part) + i] = Shared::pattern(c, slot, round, i);
    }
    const ibv_wr_opcode opcode = round % 3 == 1   ? IBV_WR_RDMA_WRITE
                                 : round % 3 == 2 ? IBV_WR_RDMA_READ
                                                  : IBV_WR_SEND_WITH_IMM;
    if (opcode == IBV_WR_SEND_WITH_IMM) ++sends;
    const size_t here = Shared::offset(slot, round % 3 == 2 ? 2 : part);
    if (post(from, opcode, Shared::id_of(c, slot, round), here, Shared::kPart, shared.theirs[c],
             Shared::offset(slot, 0), static_cast<uint32_t>(slot | round << 8)) != 0) {
      ++wrong;
    }
  };
  const auto end = [&](const ibv_wc& wc) {
    if ((wc.wr_id & Shared::kForeign) != 0) return;
    const size_t c = wc.wr_id >> 8 & 0xff, slot = wc.wr_id & 0xff;
    const auto round = static_cast<uint32_t>(wc.wr_id >> 32);
    Shared::Slot& state = shared.slots[c][slot];
    if (wc.status != IBV_WC_SUCCESS || !state.busy || state.round != round ||
        wc.qp_num != shared.mine[c].qp->qp_num()) {
      ++wrong;
      return;
    }
    if (round % 3 == 1 && !right(shared.theirs[c].memory, 0, c, slot, round)) ++wrong;
    if (round % 3 == 2 && !right(shared.mine[c].memory, 2, c, slot, round - 1)) ++wrong;
    state.busy = false;
    ++ended;
  };
  // A message may be in any of the receive requests. Its immediate identifies slot and round.
  const auto arrived = [&](const ibv_wc& wc) {
    if ((wc.wr_id & Shared::kForeign) != 0) return;
    const size_t c = wc.wr_id >> 8 & 0xff, slot = wc.wr_id & 0xff;
    if (wc.status != IBV_WC_SUCCESS || wc.byte_len != Shared::kPart || wc.wc_flags != IBV_WC_WITH_IMM) {
      ++wrong;
      return;
    }
    const uint8_t* bytes = shared.theirs[c].memory.data() + Shared::offset(slot, 1);
    for (size_t i = 0; i < Shared::kPart && wrong == 0; ++i) {
      if (bytes[i] != Shared::pattern(c, wc.imm_data & 0xff, wc.imm_data >> 8, i)) ++wrong;
    }
    ++receives;
    if (post_receive(shared.theirs[c], wc.wr_id, Shared::offset(slot, 1), Shared::kPart) != 0) ++wrong;
  };

  std::vector<std::thread> threads;
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Rng rng{t + 1};
      std::array<ibv_wc, 4> some;
      while (wrong == 0 && (ended < kRequests || receives < sends)) {
        begin(rng.below(Shared::kConnections), rng.below(Shared::kSlots));
        const int on_a = shared.cqs_a[rng.below(2)]->poll(4, some.data());
        for (int i = 0; i < on_a; ++i) end(some[static_cast<size_t>(i)]);
        const int on_b = shared.cqs_b[rng.below(2)]->poll(4, some.data());
        for (int i = 0; i < on_b; ++i) arrived(some[static_cast<size_t>(i)]);
        if (on_a < 0 || on_b < 0 || std::chrono::steady_clock::now() > deadline) ++wrong;
      }
    });
  }
  std::thread changes([&] {
    for (size_t i = 0; !stop && wrong == 0; ++i) {
      End one = make_end(a_, kSlot, shared.cqs_a[i % 2].get());
      End other = make_end(b_, kSlot, shared.cqs_b[i % 2].get());
      connect(one, other, b_);
      connect(other, one, a_);
      if (post(one, IBV_WR_RDMA_WRITE, Shared::kForeign, 0, kSlot, other) != 0) ++wrong;
      if (i % 2 == 0) std::this_thread::yield();
    }
  });
  for (std::thread& thread : threads) thread.join();
  stop = true;
  changes.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(ended, kRequests);
  EXPECT_EQ(receives, sends);
}

// Objects are created and destroyed, and states change, while other queue pairs are busy. Finally an object is
// destroyed right after a post.
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

// One thread posts receives while another moves the queue pair to the error state. Expects that every receive is
// flushed.
TEST_P(Threads, every_receive_is_flushed_when_the_queue_pair_fails) {
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

// The responder's process does not poll. Expects that the WRITE is executed.
TEST_P(Threads, write_to_an_idle_process_is_executed) {
  auto [mine, theirs] = make_connection(kSlot);
  std::memset(mine.memory.data(), 0x5a, kSlot);
  ASSERT_EQ(post(mine, IBV_WR_RDMA_WRITE, 1, 0, kSlot, theirs), 0);
  EXPECT_EQ(await(*mine.cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(theirs.memory, mine.memory);
}

// The program waits on the file descriptor of the completion channel.
TEST_P(Threads, completion_event_wakes_a_waiting_program) {
  auto [mine, theirs] = make_connection(kSlot);
  mine.cq->request_notify(false);
  ASSERT_EQ(post(mine, IBV_WR_RDMA_WRITE, 1, 0, kSlot, theirs), 0);
  pollfd descriptor{a_.channel->fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&descriptor, 1, 30'000), 1);
  const auto event = a_.channel->get_event();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->number, mine.cq->number());
  EXPECT_EQ(await(*mine.cq).status, IBV_WC_SUCCESS);
}

// Arm, poll, sleep: no completion is missed in between, with several queues on the channel.
TEST_P(Threads, no_completion_is_missed_on_a_shared_channel) {
  constexpr uint64_t kRounds = 200;
  auto first = make_connection(kSlot), second = make_connection(kSlot);
  std::thread producer([&] {
    for (uint64_t i = 0; i < kRounds; ++i) {
      for (auto* pair : {&first, &second}) {
        while (post(pair->first, IBV_WR_RDMA_WRITE, i, 0, 64, pair->second) != 0) std::this_thread::yield();
      }
      if (i % 16 == 0) std::this_thread::sleep_for(std::chrono::microseconds{100});
    }
  });
  uint64_t done = 0;
  bool slept_over = false;
  const auto drain = [&](CompletionQueue& cq) {
    ibv_wc wc{};
    while (cq.poll(1, &wc) == 1) {
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
      ++done;
    }
  };
  while (done < 2 * kRounds && !slept_over) {
    for (auto* cq : {first.first.cq.get(), second.first.cq.get()}) {
      cq->request_notify(false);
      drain(*cq);
    }
    if (done == 2 * kRounds) break;
    pollfd descriptor{a_.channel->fd(), POLLIN, 0};
    slept_over = ::poll(&descriptor, 1, 30'000) != 1;
    while (a_.channel->get_event()) {
    }
  }
  producer.join();
  EXPECT_FALSE(slept_over);
  EXPECT_EQ(done, 2 * kRounds);
}

// One thread resizes the completion queue while others fill and drain it.
TEST_P(Threads, completion_queue_is_resized_under_traffic) {
  auto [mine, theirs] = make_connection(kSlot);
  std::atomic<bool> stop{false};
  std::thread resizer([&stop, &cq = *mine.cq] {
    for (int size = 64; !stop.load(); size = size % 512 + 64) {
      EXPECT_TRUE(cq.resize(size));
      std::this_thread::yield();
    }
  });
  for (uint64_t i = 0; i < 100; ++i) {
    ASSERT_EQ(post(mine, IBV_WR_RDMA_WRITE, i, 0, 256, theirs), 0);
    const ibv_wc wc = await(*mine.cq);
    ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
    ASSERT_EQ(wc.wr_id, i);
  }
  stop = true;
  resizer.join();
}

TEST_P(Threads, devices_start_and_stop_repeatedly) {
  for (int i = 0; i < 5; ++i) {
    {
      auto [mine, theirs] = make_connection(kSlot);
      ASSERT_EQ(post(mine, IBV_WR_RDMA_WRITE, 1, 0, kSlot, theirs), 0);
      if (i % 2 == 0) {
        EXPECT_EQ(await(*mine.cq).status, IBV_WC_SUCCESS);
      }
      // The device is destroyed first, its objects later, with packets in flight.
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
                    Mode{"dedicated_sleeping", Progress::kDedicated, IdlePolicy::kSleep},
                    Mode{"application_two_workers", Progress::kApplication, IdlePolicy::kYield, 2},
                    Mode{"dedicated_two_workers", Progress::kDedicated, IdlePolicy::kYield, 2}),
    [](const testing::TestParamInfo<Mode>& mode) { return std::string(mode.param.name); });

}  // namespace
}  // namespace roci::test

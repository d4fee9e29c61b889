// Two devices on shared-memory ports (port/shm/shm_port.hpp), in virtual time: every operation, with payloads that are
// written into the receiver's ring and read in place, with and without an ICRC, and with WRITEs that the sender
// places.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/rng.hpp"
#include "port/dpdk/eal.hpp"
#include "port/shm/shm_placement.hpp"
#include "support/hosts/services.hpp"
#include "support/hosts/shm_hosts.hpp"

namespace roci::test {
namespace {

constexpr size_t kMemory = 512 * 1024;

struct Kind {
  const char* name;
  bool icrc;
  bool places;
};

class SharedMemory : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    must(start_eal());
    segment_ = must(ShmSegment::create());
    for (uint32_t slot = 0; slot < 2; ++slot) {
      ShmPortConfig port = shm_port_config(slot, 2);
      port.needs_icrc = GetParam().icrc;
      port.sender_placement = GetParam().places;
      open_shm_host(host(slot), segment_, port, shm_device_config(slot), memory_);
      // All packets of a message differ.
      std::vector<uint8_t>& memory = host(slot).memory;
      for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<uint8_t>(slot + i + i / 256 * 37);
    }
    connect();
  }
  void TearDown() override {
    for (ShmHost* each : {&a_, &b_}) {
      each->qp.reset();
      each->region.reset();
      each->cq.reset();
      each->pd.reset();
      each->device.reset();
    }
  }

  ShmHost& host(uint32_t slot) { return slot == 0 ? a_ : b_; }
  void connect() {
    for (ShmHost* each : {&a_, &b_}) {
      ibv_qp_init_attr init{};
      init.qp_type = IBV_QPT_RC;
      init.cap = {
          .max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 4, .max_recv_sge = 4, .max_inline_data = 64};
      init.sq_sig_all = 1;
      each->qp = must(each->pd->create_qp(&init, *each->cq, *each->cq));
    }
    connect_rc(a_, *a_.qp, b_, *b_.qp, 14);
  }
  void run(Nanos time = 50ms) {
    for (const Nanos end = now_ + time; now_ < end; now_ += Nanos{10'000}) {
      a_.device->host().poll(now_);
      b_.device->host().poll(now_);
    }
  }
  int write(uint64_t id, size_t offset, size_t length, size_t remote, unsigned flags = 0) {
    return a_.post(IBV_WR_RDMA_WRITE, id, offset, length, b_.address(remote), b_.region->rkey(), flags);
  }
  // Runs until no event is left. Returns wr_id and status of a's completions.
  std::vector<std::pair<uint64_t, ibv_wc_status>> completed() {
    run();
    std::vector<std::pair<uint64_t, ibv_wc_status>> all;
    for (const ibv_wc& wc : a_.completions()) all.emplace_back(wc.wr_id, wc.status);
    return all;
  }
  void expect_success(std::initializer_list<uint64_t> ids) {
    const auto all = completed();
    ASSERT_EQ(all.size(), ids.size());
    size_t i = 0;
    for (const uint64_t id : ids) EXPECT_EQ(all[i++], (std::pair{id, IBV_WC_SUCCESS}));
  }
  [[nodiscard]] bool same(size_t offset, size_t remote, size_t length) const {
    return std::equal(a_.memory.begin() + static_cast<ptrdiff_t>(offset),
                      a_.memory.begin() + static_cast<ptrdiff_t>(offset + length),
                      b_.memory.begin() + static_cast<ptrdiff_t>(remote));
  }
  // The responder executes the first WRITE and grants the next ones.
  void be_granted() {
    ASSERT_EQ(write(1000, 0, 8, 0), 0);
    expect_success({1000});
  }
  uint64_t placed() const { return a_.counter("writes_placed"); }
  [[nodiscard]] bool places() const { return GetParam().places; }

  size_t memory_ = kMemory;

  std::shared_ptr<ShmSegment> segment_;
  ShmHost a_, b_;
  Nanos now_ = 1s;
};

TEST_P(SharedMemory, writes_of_many_lengths_change_exactly_their_bytes) {
  be_granted();
  uint64_t id = 0;
  for (const size_t length :
       {1, 2, 7, 8, 9, 63, 64, 65, 500, 1023, 1024, 2000, 4095, 4096, 4097, 8192, 65536, 65537, 200'000}) {
    for (const size_t shift : {0, 1, 5}) {
      std::ranges::fill(b_.memory, uint8_t{0xee});
      ASSERT_EQ(write(++id, 3 + shift, length, 100 + shift), 0);
      expect_success({id});
      EXPECT_TRUE(same(3 + shift, 100 + shift, length)) << length;
      EXPECT_EQ(b_.memory[99 + shift], 0xee);
      EXPECT_EQ(b_.memory[100 + shift + length], 0xee) << length;
    }
  }
  EXPECT_EQ(placed(), places() ? id : 0U);
}

// The second length has more pieces of a null region than a request has elements.
TEST_P(SharedMemory, write_from_a_null_region_writes_zeros) {
  be_granted();
  const auto null = must(a_.pd->allocate_null_region());
  for (const uint32_t length : {100'000U, 200'000U}) {
    std::ranges::fill(b_.memory, uint8_t{0xee});
    ibv_sge sge{0, length, null->lkey()};
    ibv_send_wr wr{};
    wr.wr_id = 5;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.wr.rdma = {.remote_addr = b_.address(0), .rkey = b_.region->rkey()};
    ASSERT_EQ(a_.qp->post_send(&wr, nullptr), 0);
    expect_success({5});
    const auto zeros = std::span(b_.memory).first(length);
    EXPECT_TRUE(std::ranges::all_of(zeros, [](uint8_t byte) { return byte == 0; }));
    EXPECT_EQ(b_.memory[length], 0xee);
  }
  EXPECT_EQ(placed(), places() ? 1U : 0U);
}

TEST_P(SharedMemory, sends_reads_and_writes_transfer_the_correct_bytes) {
  Rng rng{3};
  for (uint32_t round = 0; round < 200; ++round) {
    const size_t length = 1 + rng.below(20'000);
    for (uint8_t& byte : std::span(a_.memory).first(length + 64)) byte = static_cast<uint8_t>(rng.next());
    switch (rng.below(4)) {
      case 0:
        ASSERT_EQ(b_.receive(round, 0, length), 0);
        ASSERT_EQ(a_.post(IBV_WR_SEND, round, 7, length), 0);
        expect_success({round});
        ASSERT_TRUE(same(7, 0, length)) << "SEND of " << length;
        ASSERT_EQ(b_.completions().size(), 1U);
        break;
      case 1:
        ASSERT_EQ(a_.post(IBV_WR_RDMA_READ, round, 11, length, b_.address(50), b_.region->rkey()), 0);
        expect_success({round});
        ASSERT_TRUE(same(11, 50, length)) << "READ of " << length;
        break;
      case 2:
        ASSERT_EQ(b_.receive(round, 0, 0), 0);
        ASSERT_EQ(
            a_.post(IBV_WR_RDMA_WRITE_WITH_IMM, round, 9, length, b_.address(13), b_.region->rkey(), 0, 77),
            0);
        expect_success({round});
        ASSERT_TRUE(same(9, 13, length)) << "WRITE with immediate of " << length;
        ASSERT_EQ(b_.completions().size(), 1U);
        break;
      default:
        ASSERT_EQ(write(round, 1, length, 2), 0);
        expect_success({round});
        ASSERT_TRUE(same(1, 2, length)) << "WRITE of " << length;
    }
  }
}

TEST_P(SharedMemory, concurrent_requests_of_both_hosts_fill_the_rings_and_complete) {
  constexpr uint32_t kAtATime = 32;
  constexpr size_t kEach = 100'000;
  for (uint32_t i = 0; i < kAtATime; ++i) {
    ASSERT_EQ(write(i, 0, kEach, kEach), 0);
    ASSERT_EQ(b_.post(IBV_WR_RDMA_WRITE, i, 2 * kEach, kEach, a_.address(3 * kEach), a_.region->rkey()), 0);
  }
  run(200ms);
  for (ShmHost* each : {&a_, &b_}) {
    const auto all = each->completions();
    ASSERT_EQ(all.size(), kAtATime);
    for (const ibv_wc& wc : all) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(each->counter("packets_retransmitted"), 0U);
    EXPECT_EQ(each->counter("rx_icrc_errors"), 0U);
  }
  EXPECT_TRUE(same(0, kEach, kEach));
  EXPECT_TRUE(same(3 * kEach, 2 * kEach, kEach));
}

TEST_P(SharedMemory, inline_and_multi_segment_writes_complete) {
  be_granted();
  ASSERT_EQ(write(1, 5, 40, 900, IBV_SEND_INLINE), 0);
  expect_success({1});
  EXPECT_TRUE(same(5, 900, 40));
  std::array<ibv_sge, 3> pieces{a_.sge(100, 10), a_.sge(3000, 5000), a_.sge(0, 3)};
  ibv_send_wr wr{};
  wr.wr_id = 2;
  wr.sg_list = pieces.data();
  wr.num_sge = 3;
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.wr.rdma.remote_addr = b_.address(20'000);
  wr.wr.rdma.rkey = b_.region->rkey();
  ASSERT_EQ(a_.qp->post_send(&wr, nullptr), 0);
  expect_success({2});
  EXPECT_TRUE(same(100, 20'000, 10));
  EXPECT_TRUE(same(3000, 20'010, 5000));
  EXPECT_TRUE(same(0, 25'010, 3));
  EXPECT_EQ(placed(), places() ? 2U : 0U);
}

TEST_P(SharedMemory, write_beyond_the_region_fails_and_changes_no_memory) {
  be_granted();
  const auto before = b_.memory;
  ASSERT_EQ(write(1, 0, 100, kMemory - 99), 0);
  EXPECT_EQ(completed(), (std::vector{std::pair{uint64_t{1}, IBV_WC_REM_ACCESS_ERR}}));
  EXPECT_EQ(b_.memory, before);
}

TEST_P(SharedMemory, write_to_a_deregistered_region_fails_and_changes_no_memory) {
  be_granted();
  const uint32_t key = b_.region->rkey();
  b_.region.reset();
  const auto before = b_.memory;
  ASSERT_EQ(a_.post(IBV_WR_RDMA_WRITE, 1, 0, 100, b_.address(0), key), 0);
  EXPECT_EQ(completed(), (std::vector{std::pair{uint64_t{1}, IBV_WC_REM_ACCESS_ERR}}));
  EXPECT_EQ(b_.memory, before);
}

TEST_P(SharedMemory, write_fails_after_remote_write_permission_is_removed) {
  be_granted();
  ibv_qp_attr attr{};
  attr.qp_access_flags = IBV_ACCESS_REMOTE_READ;
  ASSERT_TRUE(b_.qp->modify(attr, IBV_QP_ACCESS_FLAGS));
  const auto before = b_.memory;
  ASSERT_EQ(write(1, 1, 100, 0), 0);
  EXPECT_EQ(completed(), (std::vector{std::pair{uint64_t{1}, IBV_WC_REM_INV_REQ_ERR}}));
  EXPECT_EQ(b_.memory, before);
}

TEST_P(SharedMemory, write_to_a_failed_or_destroyed_queue_pair_fails) {
  for (const bool destroyed : {false, true}) {
    SCOPED_TRACE(destroyed);
    be_granted();
    if (destroyed) {
      b_.qp.reset();
    } else {
      ibv_qp_attr attr{};
      attr.qp_state = IBV_QPS_ERR;
      ASSERT_TRUE(b_.qp->modify(attr, IBV_QP_STATE));
    }
    const auto before = b_.memory;
    ASSERT_EQ(write(1, 1, 100, 0), 0);
    run(5s);
    const auto all = a_.completions();
    ASSERT_EQ(all.size(), 1U);
    EXPECT_EQ(all[0].status, IBV_WC_RETRY_EXC_ERR);
    EXPECT_EQ(b_.memory, before);
    if (!destroyed) connect();
  }
}

// The second WRITE is reserved after a padding record and fills the ring. The datagram before it waits for space in
// the ring.
TEST_P(SharedMemory, datagram_before_a_write_that_fills_the_ring_does_not_block_both) {
  auto from = make_service(a_, IBV_QPT_UD), to = make_service(b_, IBV_QPT_UD);
  open_datagrams(*from);
  open_datagrams(*to);
  const auto address = must(a_.pd->create_address_handle(address_of(must(b_.device->query_gid(1)))));
  constexpr size_t kLength = 64 * 1024;
  LightRng random(1);
  for (unsigned round = 0; round < 100; ++round) {
    SCOPED_TRACE(round);
    for (const size_t length : {1 + random.next() % kLength, kLength}) {  // changes the position in the ring
      ASSERT_EQ(write(1, 0, length, 0), 0);
      expect_success({1});
    }
    ASSERT_EQ(test::receive(b_, *to, 4, 0, 256), 0);
    const auto post_write = [&] { ASSERT_EQ(write(3, 0, kLength, 0), 0); };
    const bool write_first = random.next() % 2 != 0;
    if (write_first) post_write();
    ASSERT_EQ(send(a_, *from, {.wr_id = 2, .length = 64, .to = address.get(), .remote_qp = to->qp_num()}), 0);
    if (!write_first) post_write();
    auto all = completed();
    std::ranges::sort(all);
    EXPECT_EQ(all,
              (std::vector{std::pair{uint64_t{2}, IBV_WC_SUCCESS}, std::pair{uint64_t{3}, IBV_WC_SUCCESS}}));
    EXPECT_EQ(b_.completions().size(), 1U) << "the datagram";
  }
  EXPECT_EQ(a_.shm->stats().tx_dropped, 0U);
  if (!places()) {
    EXPECT_GT(a_.shm->stats().tx_refused, 0U) << "the datagram was refused";
  }
}

TEST_P(SharedMemory, process_exit_fails_requests_to_it_but_not_to_the_next_slot_owner) {
  const uint64_t before = a_.shm->owner_of(1).incarnation;
  for (const bool to_the_next : {false, true}) {
    SCOPED_TRACE(to_the_next);
    ASSERT_EQ(write(1, 0, 100, 0), 0);
    expect_success({1});  // the address is resolved
    ASSERT_EQ(a_.post(IBV_WR_SEND, 2, 0, 100), 0);
    run();  // stays outstanding, because no receive request is posted
    a_.shm->note_exit(1, before, {});
    run();
    const auto all = a_.completions();
    if (to_the_next) {
      EXPECT_TRUE(all.empty());
      ASSERT_EQ(b_.receive(3, 0, 100), 0);
      expect_success({2});
      continue;
    }
    ASSERT_EQ(all.size(), 1U);
    EXPECT_EQ(all[0].status, IBV_WC_RETRY_EXC_ERR);
    // Simulates the next owner of the slot.
    segment_->slot(1).incarnation.store(before + 2);
    connect();
  }
}

TEST_P(SharedMemory, write_takes_effect_after_earlier_requests) {
  be_granted();
  std::ranges::fill(b_.memory, uint8_t{0});
  a_.memory[0] = 1, a_.memory[1] = 2;
  for (uint32_t round = 0; round < 50; ++round) {
    ASSERT_EQ(b_.receive(round, 0, 16), 0);
    ASSERT_EQ(a_.post(IBV_WR_SEND, 1, 0, 1), 0);  // writes 1 to the first byte
    ASSERT_EQ(write(2, 1, 1, 0), 0);              // writes 2 to the same byte
    expect_success({1, 2});
    EXPECT_EQ(b_.memory[0], 2);
    b_.completions();
  }
}

TEST_P(SharedMemory, write_to_unmapped_registered_memory_is_an_access_error) {
  be_granted();
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const mapped = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  auto region =
      must(b_.pd->register_memory(mapped, 2 * page, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
  const auto remote = reinterpret_cast<uint64_t>(mapped);
  ASSERT_EQ(a_.post(IBV_WR_RDMA_WRITE, 1, 0, 2 * page, remote, region->rkey()), 0);
  expect_success({1});
  munmap(static_cast<char*>(mapped) + page, page);
  ASSERT_EQ(a_.post(IBV_WR_RDMA_WRITE, 2, 0, 2 * page, remote, region->rkey()), 0);
  EXPECT_EQ(completed(), (std::vector{std::pair{uint64_t{2}, IBV_WC_REM_ACCESS_ERR}}));
  region.reset();
  munmap(mapped, page);
}

TEST_P(SharedMemory, write_by_iova_reaches_the_corresponding_offset) {
  constexpr uint64_t kIova = 0x7000'0000'1000;
  auto region = must(b_.pd->register_memory(b_.memory.data() + 4096, 8192, kIova,
                                            IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
  for (uint64_t id = 1; id <= 2; ++id) {
    ASSERT_EQ(a_.post(IBV_WR_RDMA_WRITE, id, 7, 1000, kIova + id * 2000, region->rkey()), 0);
    expect_success({id});
    EXPECT_TRUE(same(7, 4096 + id * 2000, 1000));
  }
  EXPECT_EQ(placed(), places() ? 1U : 0U);
  region.reset();
}

class SharedMemoryPlaced : public SharedMemory {};

// A WRITE that the sender places uses up as much of its turn as its packets would.
TEST_P(SharedMemoryPlaced, placed_writes_of_a_queue_pair_take_several_turns) {
  be_granted();
  const uint64_t before = placed();
  for (uint64_t id = 0; id < 60; ++id) ASSERT_EQ(write(id, 0, 256 * 1024, 0), 0);
  a_.device->host().poll(now_);
  EXPECT_LE(placed() - before, 1U);
  run();
  EXPECT_EQ(placed() - before, 60U);
  EXPECT_EQ(a_.completions().size(), 60U);
}

// The first completion is lost that the completion queue has no space for; the queue pair is in the error state then.
TEST_P(SharedMemoryPlaced, no_write_is_placed_after_a_completion_was_lost) {
  constexpr uint64_t kEntries = 4;
  const auto cq = must(a_.device->create_cq(kEntries));
  ibv_qp_init_attr init{};
  init.qp_type = IBV_QPT_RC;
  init.cap = {
      .max_send_wr = 64, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
  init.sq_sig_all = 1;
  a_.qp = must(a_.pd->create_qp(&init, *cq, *cq));
  b_.qp = create_rc(b_, 1);
  connect_rc(a_, *a_.qp, b_, *b_.qp, 14);
  ASSERT_EQ(write(0, 0, 8, 0), 0);
  run();
  ibv_wc wc{};
  ASSERT_EQ(cq->poll(1, &wc), 1);
  const uint64_t before = placed();
  for (uint64_t id = 0; id < 32; ++id) ASSERT_EQ(write(id, 0, 8, 0), 0);
  run();
  EXPECT_EQ(placed() - before, kEntries + 1);
  EXPECT_EQ(a_.qp->state(), IBV_QPS_ERR);
  a_.qp.reset();
}

// Simulates a requester that was killed, or is stopped, while it copies: deregistration waits for it once. The fastest
// of the later deregistrations counts, because the thread may lose its core during one.
TEST_P(SharedMemoryPlaced, deregistration_waits_once_for_a_requester_that_stays_in_a_copy) {
  segment_->grants(1, 0).placing.store(5);
  const auto deregister = [this] {
    be_granted();
    const auto begin = std::chrono::steady_clock::now();
    b_.region.reset();
    const auto took = std::chrono::steady_clock::now() - begin;
    b_.region = must(
        b_.pd->register_memory(b_.memory.data(), kMemory, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
    return took;
  };
  EXPECT_GE(deregister(), 90ms);
  auto fastest = deregister();
  for (int i = 0; i < 9; ++i) fastest = std::min(fastest, deregister());
  EXPECT_LT(fastest, 90ms);
  // The next owner of the slot copies nothing yet.
  ShmPlacement next(segment_, 0, [](const MacAddress&) { return std::optional<uint32_t>{}; });
  EXPECT_EQ(segment_->grants(1, 0).placing.load() % 2, 0U);
}

class SharedMemoryLarge : public SharedMemory {
 protected:
  SharedMemoryLarge() { memory_ = 17 << 20; }
};

// Longer than the part after which the grant is checked again. The last length is not placed.
TEST_P(SharedMemoryLarge, long_writes_are_placed_in_parts) {
  be_granted();
  constexpr size_t kMiB = 1 << 20;
  for (size_t i = 0; i < a_.memory.size(); ++i) a_.memory[i] = static_cast<uint8_t>(i * 7 + (i >> 12));
  uint64_t id = 0;
  for (const size_t length : {kMiB, kMiB + 4, kMiB + 8, kMiB + 9, 3 * kMiB + 5, 16 * kMiB, 16 * kMiB + 1}) {
    const size_t half = length / 2 + 3;
    std::array<ibv_sge, 3> pieces{a_.sge(5, 0), a_.sge(5, half), a_.sge(5 + half, length - half)};
    ibv_send_wr wr{};
    wr.wr_id = ++id;
    wr.sg_list = pieces.data();
    wr.num_sge = 3;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.wr.rdma.remote_addr = b_.address(11);
    wr.wr.rdma.rkey = b_.region->rkey();
    std::ranges::fill(b_.memory, uint8_t{0xee});
    ASSERT_EQ(a_.qp->post_send(&wr, nullptr), 0);
    expect_success({id});
    EXPECT_TRUE(same(5, 11, length)) << length;
    EXPECT_EQ(b_.memory[10], 0xee);
    EXPECT_EQ(b_.memory[11 + length], 0xee) << length;
  }
  EXPECT_EQ(placed(), places() ? id - 1 : 0U);
}

constexpr Kind kPlacedBySender{"placed_by_sender", false, true};
INSTANTIATE_TEST_SUITE_P(Kinds, SharedMemoryPlaced, testing::Values(kPlacedBySender),
                         [](const auto& test) { return std::string{test.param.name}; });
INSTANTIATE_TEST_SUITE_P(Kinds, SharedMemoryLarge, testing::Values(kPlacedBySender),
                         [](const auto& test) { return std::string{test.param.name}; });

INSTANTIATE_TEST_SUITE_P(Kinds, SharedMemory,
                         testing::Values(Kind{"with_icrc", true, false}, Kind{"without_icrc", false, false},
                                         kPlacedBySender),
                         [](const auto& test) { return std::string{test.param.name}; });

// Hosts of one segment with several queue pairs.
class SharedMemoryHosts : public testing::Test {
 protected:
  struct Connected {
    std::unique_ptr<QueuePair> from, to;
  };
  void open(uint32_t count, ExtensionMode mode = ExtensionMode::kAuto) {
    must(start_eal());
    segment_ = must(ShmSegment::create());
    hosts_.resize(count);
    for (uint32_t slot = 0; slot < count; ++slot) {
      DeviceConfig device = shm_device_config(slot);
      device.extensions.mode = mode;
      hosts_[slot] = std::make_unique<ShmHost>();
      open_shm_host(*hosts_[slot], segment_, shm_port_config(slot, count), device, kMemory);
    }
  }
  ShmHost& host(uint32_t slot) { return *hosts_[slot]; }
  // A connection from slot 0.
  Connected connect(uint32_t slot, uint8_t timeout) {
    Connected out{create_rc(host(0), 64), create_rc(host(slot), 64)};
    connect_rc(host(0), *out.from, host(slot), *out.to, timeout);
    return out;
  }
  void poll(std::initializer_list<uint32_t> slots) {
    for (const uint32_t slot : slots) host(slot).device->host().poll(now_);
    now_ += 5us;
  }

  std::shared_ptr<ShmSegment> segment_;
  std::vector<std::unique_ptr<ShmHost>> hosts_;
  Nanos now_ = 1s;
};

// The peer runs and reads its frames, but at each expired time-out some frames of another queue pair are unread.
TEST_F(SharedMemoryHosts, time_out_expires_while_frames_of_another_queue_pair_are_unread) {
  for (const ExtensionMode mode : {ExtensionMode::kAuto, ExtensionMode::kOff}) {
    SCOPED_TRACE(mode == ExtensionMode::kOff ? "without extensions" : "with extensions");
    open(2, mode);
    {
      Connected silent = connect(1, 8), busy = connect(1, 8);
      for (int i = 0; i < 2000; ++i) poll({0, 1});
      silent.to.reset();
      ASSERT_TRUE(post_rdma(host(0), *silent.from, host(1), IBV_WR_RDMA_WRITE, 100));
      std::optional<ibv_wc_status> status;
      uint64_t others = 0;
      for (const Nanos end = now_ + 1s; now_ < end && !status;) {
        // Slot 0 sends more than one burst of slot 1, so that the ring is never empty.
        while (post_rdma(host(0), *busy.from, host(1), IBV_WR_RDMA_WRITE, kMemory / 2)) {
        }
        for (int i = 0; i < 4; ++i) poll({0});
        poll({1});
        for (const ibv_wc& wc : host(0).completions()) {
          if (wc.qp_num == silent.from->qp_num()) {
            status = wc.status;
          } else {
            ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
            ++others;
          }
        }
      }
      EXPECT_EQ(status, IBV_WC_RETRY_EXC_ERR);
      EXPECT_GT(others, 10U);
    }
    hosts_.clear();
  }
}

// Slot 2 does not poll, and its ring is full.
TEST_F(SharedMemoryHosts, full_receiver_does_not_delay_requests_to_others) {
  open(3);
  {
    const Connected to_1 = connect(1, 14);
    std::vector<Connected> to_2;
    for (int i = 0; i < 5; ++i) to_2.push_back(connect(2, 14));
    for (int i = 0; i < 2000; ++i) poll({0, 1, 2});
    for (const Connected& each : to_2) {
      for (int i = 0; i < 4; ++i)
        ASSERT_TRUE(post_rdma(host(0), *each.from, host(2), IBV_WR_RDMA_WRITE, kMemory / 2));
    }
    for (int i = 0; i < 200; ++i) poll({0, 1});
    EXPECT_GT(host(0).shm->stats().tx_refused, 0U);
    ASSERT_TRUE(post_rdma(host(0), *to_1.from, host(1), IBV_WR_RDMA_WRITE, 20'000));
    for (int i = 0; i < 20; ++i) poll({0, 1});  // 0.1 ms
    const auto done = host(0).completions();
    ASSERT_EQ(done.size(), 1U);
    EXPECT_EQ(done[0].qp_num, to_1.from->qp_num());
    EXPECT_EQ(done[0].status, IBV_WC_SUCCESS);
    // The queue pairs share the ring of the slow receiver.
    for (int i = 0; i < 20'000; ++i) poll({0, 2});
    const auto late = host(0).completions();
    EXPECT_EQ(late.size(), 5U * 4);
    for (const ibv_wc& wc : late) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  }
  hosts_.clear();
}

}  // namespace
}  // namespace roci::test

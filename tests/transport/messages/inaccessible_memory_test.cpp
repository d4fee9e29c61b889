// Registered memory that is unmapped, protected or truncated during a message. The message fails at both ends with
// the error that a wrong key would cause at the same position; other users of the hosts are not affected.
#include <gtest/gtest.h>

#include <cstring>
#include <ostream>
#include <utility>

#include "support/hosts/services.hpp"
#include "support/process/mapping.hpp"

namespace roci::test {
namespace {

constexpr int kFullAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
constexpr size_t kPages = 16;
constexpr size_t kGoneFrom = 4;  // index of the first inaccessible page
constexpr size_t kGone = kGoneFrom * kPage;

struct Way {
  const char* name;
  Mapping::Of of;
  void (*take_away)(Mapping& pages);
};
constexpr Way kWays[] = {
    {"unmapped", Mapping::Of::kNothing, [](Mapping& pages) { pages.unmap(kGoneFrom); }},
    {"protected", Mapping::Of::kNothing, [](Mapping& pages) { pages.protect(kGoneFrom, PROT_NONE); }},
    {"cut_off", Mapping::Of::kFile, [](Mapping& pages) { pages.cut_file(kGoneFrom); }},
};

// Start and length of a message relative to the inaccessible pages: one packet of each size class that has its own
// copy routine, and a position within a message of several packets.
struct Place {
  const char* name;
  size_t offset;
  size_t length;
};
constexpr Place kPlaces[] = {
    {"short", kGone, 64},
    {"odd", kGone + 1, 13},
    {"medium", kGone, 700},
    {"packet", kGone, 4096},
    {"across_the_edge", kGone - 40, 100},
    {"in_the_middle_of_a_packet", kGone - 5000, 3 * 4096},
    {"many_packets_later", kGone - 3 * kPage, 40000},
};

void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }
void PrintTo(const Place& place, std::ostream* out) { *out << place.name; }

// A page-aligned region on each host, in addition to the region of TwoHosts. The test makes part of it inaccessible.
class InaccessibleMemory : public testing::TestWithParam<std::tuple<Way, Place>> {
 protected:
  InaccessibleMemory()
      : hosts_({.path_mtu = IBV_MTU_4096}), at_a_(kPages, way().of), at_b_(kPages, way().of) {
    hosts_.connect();
    region_a_ = must(hosts_.a.pd->register_memory(at_a_.data(), at_a_.size(), kFullAccess));
    region_b_ = must(hosts_.b.pd->register_memory(at_b_.data(), at_b_.size(), kFullAccess));
  }
  static const Way& way() { return std::get<0>(GetParam()); }
  static const Place& place() { return std::get<1>(GetParam()); }

  [[nodiscard]] static ibv_sge sge(const Mapping& pages, const MemoryRegion& region) {
    return {pages.address(place().offset), static_cast<uint32_t>(place().length), region.lkey()};
  }
  [[nodiscard]] ibv_sge sge_a() const { return sge(at_a_, *region_a_); }
  [[nodiscard]] ibv_sge sge_b() const { return sge(at_b_, *region_b_); }

  // RDMA requests name `remote` and `rkey`; wr_id is 1.
  static int post(QueuePair& qp, ibv_wr_opcode opcode, ibv_sge piece, uint64_t remote = 0,
                  uint32_t rkey = 0) {
    ibv_send_wr wr{};
    wr.wr_id = 1;
    wr.sg_list = &piece;
    wr.num_sge = 1;
    wr.opcode = opcode;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma = {remote, rkey};
    return qp.post_send(&wr, nullptr);
  }
  int post(ibv_wr_opcode opcode) {
    return post(*hosts_.a.qp, opcode, sge_a(), at_b_.address(place().offset), region_b_->rkey());
  }
  static int post_receive(QueuePair& qp, ibv_sge piece) {
    ibv_recv_wr wr{};
    wr.wr_id = 2;
    wr.sg_list = &piece;
    wr.num_sge = 1;
    return qp.post_recv(&wr, nullptr);
  }
  void take_away(Mapping& pages) { way().take_away(pages); }

  Lines run() {
    hosts_.run(1s);
    return completion_lines(hosts_.a);
  }
  // Expects that new queue pairs on the same hosts transfer data in both directions.
  void expect_others_go_on() {
    hosts_.a.completions();
    hosts_.b.completions();
    auto a = make_service(hosts_.a, IBV_QPT_RC), b = make_service(hosts_.b, IBV_QPT_RC);
    const ConnectOptions options{.path_mtu = IBV_MTU_4096};
    ConnectOptions turned = options;
    std::swap(turned.rq_psn, turned.sq_psn);
    connect_to(*a, IBV_QPT_RC, must(hosts_.b.device->query_gid(1)), b->qp_num(), options);
    connect_to(*b, IBV_QPT_RC, must(hosts_.a.device->query_gid(1)), a->qp_num(), turned);
    fill(hosts_.a, 0, 30000, 3);
    for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
      ASSERT_EQ(send(hosts_.a, *a,
                     {.opcode = opcode,
                      .length = 30000,
                      .remote = hosts_.b.address(0),
                      .rkey = hosts_.b.region->rkey()}),
                0);
      EXPECT_EQ(run(), Lines{"1 SUCCESS 30000"});
      EXPECT_TRUE(holds(hosts_.b, 0, 30000, 3));
    }
  }

  TwoHosts hosts_;
  Mapping at_a_, at_b_;
  std::unique_ptr<MemoryRegion> region_a_, region_b_;
};

TEST_P(InaccessibleMemory, write_target_causes_a_remote_access_error) {
  take_away(at_b_);
  ASSERT_EQ(post(IBV_WR_RDMA_WRITE), 0);
  EXPECT_EQ(run(), Lines{"1 REM_ACCESS_ERR"});
  EXPECT_EQ(hosts_.b.qp->state(), IBV_QPS_ERR);
  EXPECT_EQ(hosts_.b.counter("naks_access_sent"), 1U);
  EXPECT_EQ(hosts_.b.counter("memory_faults"), 1U);
  EXPECT_EQ(hosts_.a.counter("memory_faults"), 0U);
  expect_others_go_on();
}

TEST_P(InaccessibleMemory, read_source_causes_a_remote_access_error) {
  take_away(at_b_);
  ASSERT_EQ(post(IBV_WR_RDMA_READ), 0);
  EXPECT_EQ(run(), Lines{"1 REM_ACCESS_ERR"});
  EXPECT_EQ(hosts_.b.counter("naks_access_sent"), 1U);
  EXPECT_EQ(hosts_.b.counter("memory_faults"), 1U);
  expect_others_go_on();
}

TEST_P(InaccessibleMemory, read_destination_causes_a_local_protection_error) {
  take_away(at_a_);
  ASSERT_EQ(post(IBV_WR_RDMA_READ), 0);
  EXPECT_EQ(run(), Lines{"1 LOC_PROT_ERR"});
  EXPECT_EQ(hosts_.a.qp->state(), IBV_QPS_ERR);
  EXPECT_EQ(hosts_.a.counter("memory_faults"), 1U);
  expect_others_go_on();
}

TEST_P(InaccessibleMemory, send_buffer_causes_a_local_protection_error) {
  take_away(at_a_);
  ASSERT_EQ(post_receive(*hosts_.b.qp, sge_b()), 0);
  ASSERT_EQ(post(IBV_WR_SEND), 0);
  EXPECT_EQ(run(), Lines{"1 LOC_PROT_ERR"});
  EXPECT_EQ(hosts_.a.counter("memory_faults"), 1U);
  EXPECT_TRUE(hosts_.b.completions().empty());
  expect_others_go_on();
}

TEST_P(InaccessibleMemory, receive_buffer_causes_an_error_at_both_ends) {
  take_away(at_b_);
  ASSERT_EQ(post_receive(*hosts_.b.qp, sge_b()), 0);
  ASSERT_EQ(post(IBV_WR_SEND), 0);
  EXPECT_EQ(run(), Lines{"1 REM_OP_ERR"});
  EXPECT_EQ(completion_lines(hosts_.b), Lines{"2 LOC_PROT_ERR"});
  EXPECT_EQ(hosts_.b.counter("naks_operational_sent"), 1U);
  EXPECT_EQ(hosts_.b.counter("memory_faults"), 1U);
  expect_others_go_on();
}

// Unreliable services (UC), without acknowledgments.
class InaccessibleMemoryUc : public InaccessibleMemory {
 protected:
  InaccessibleMemoryUc() {
    a_ = make_service(hosts_.a, IBV_QPT_UC);
    b_ = make_service(hosts_.b, IBV_QPT_UC);
    const ibv_gid gid_a = must(hosts_.a.device->query_gid(1));
    const ibv_gid gid_b = must(hosts_.b.device->query_gid(1));
    const ConnectOptions to_b{.rq_psn = 0x2000, .sq_psn = 0x1000, .path_mtu = IBV_MTU_4096};
    const ConnectOptions to_a{.rq_psn = 0x1000, .sq_psn = 0x2000, .path_mtu = IBV_MTU_4096};
    connect_to(*a_, IBV_QPT_UC, gid_b, b_->qp_num(), to_b);
    connect_to(*b_, IBV_QPT_UC, gid_a, a_->qp_num(), to_a);
  }
  std::unique_ptr<QueuePair> a_, b_;
};

TEST_P(InaccessibleMemoryUc, write_target_drops_the_message_but_not_the_next_one) {
  take_away(at_b_);
  ASSERT_EQ(post(*a_, IBV_WR_RDMA_WRITE, sge_a(), at_b_.address(place().offset), region_b_->rkey()), 0);
  EXPECT_EQ(run().size(), 1U);
  EXPECT_EQ(hosts_.b.counter("rx_refused"), 1U);
  EXPECT_EQ(hosts_.b.counter("memory_faults"), 1U);
  std::memset(at_a_.data(), 5, kPage);
  ASSERT_EQ(post(*a_, IBV_WR_RDMA_WRITE, {at_a_.address(), 4096, region_a_->lkey()}, at_b_.address(),
                 region_b_->rkey()),
            0);
  EXPECT_EQ(run(), Lines{"1 SUCCESS 4096"});
  EXPECT_EQ(at_b_.data()[4095], 5);
  expect_others_go_on();
}

TEST_P(InaccessibleMemoryUc, send_buffer_stops_the_send_queue) {
  take_away(at_a_);
  ASSERT_EQ(post(*a_, IBV_WR_SEND, sge_a()), 0);
  EXPECT_EQ(run(), Lines{"1 LOC_PROT_ERR"});
  EXPECT_EQ(a_->state(), IBV_QPS_SQE);
  EXPECT_EQ(hosts_.a.counter("memory_faults"), 1U);
  expect_others_go_on();
}

TEST_P(InaccessibleMemoryUc, receive_buffer_causes_an_error_at_the_receiver) {
  take_away(at_b_);
  ASSERT_EQ(post_receive(*b_, sge_b()), 0);
  ASSERT_EQ(post(*a_, IBV_WR_SEND, sge_a()), 0);
  EXPECT_EQ(run().size(), 1U);
  EXPECT_EQ(completion_lines(hosts_.b), Lines{"2 LOC_PROT_ERR"});
  EXPECT_EQ(b_->state(), IBV_QPS_ERR);
  EXPECT_EQ(hosts_.b.counter("memory_faults"), 1U);
  expect_others_go_on();
}

std::string name_of(const testing::TestParamInfo<std::tuple<Way, Place>>& info) {
  return std::string(std::get<0>(info.param).name) + "_" + std::get<1>(info.param).name;
}
INSTANTIATE_TEST_SUITE_P(Ways, InaccessibleMemory,
                         testing::Combine(testing::ValuesIn(kWays), testing::ValuesIn(kPlaces)), name_of);
INSTANTIATE_TEST_SUITE_P(Ways, InaccessibleMemoryUc,
                         testing::Combine(testing::ValuesIn(kWays), testing::ValuesIn(kPlaces)), name_of);

// Tests that run once per way, with one message of 64 or 8 bytes at the inaccessible page.
class InaccessiblePage : public InaccessibleMemory {};

TEST_P(InaccessiblePage, fetch_add_target_causes_a_remote_access_error) {
  take_away(at_b_);
  ASSERT_EQ(hosts_.a.atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, at_b_.address(kGone), region_b_->rkey(), 1),
            0);
  EXPECT_EQ(run(), Lines{"1 REM_ACCESS_ERR"});
  EXPECT_EQ(hosts_.b.counter("naks_access_sent"), 1U);
  EXPECT_EQ(hosts_.b.counter("memory_faults"), 1U);
  expect_others_go_on();
}

TEST_P(InaccessiblePage, compare_swap_target_causes_a_remote_access_error) {
  take_away(at_b_);
  ASSERT_EQ(hosts_.a.atomic(IBV_WR_ATOMIC_CMP_AND_SWP, 1, 0, at_b_.address(kGone), region_b_->rkey(), 0, 1),
            0);
  EXPECT_EQ(run(), Lines{"1 REM_ACCESS_ERR"});
  EXPECT_EQ(hosts_.b.counter("memory_faults"), 1U);
}

TEST_P(InaccessiblePage, atomic_result_causes_a_local_protection_error) {
  take_away(at_a_);
  ibv_sge piece{at_a_.address(kGone), 8, region_a_->lkey()};
  ibv_send_wr wr{};
  wr.wr_id = 1;
  wr.sg_list = &piece;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  wr.wr.atomic = {hosts_.b.address(0), 1, 0, hosts_.b.region->rkey()};
  ASSERT_EQ(hosts_.a.qp->post_send(&wr, nullptr), 0);
  EXPECT_EQ(run(), Lines{"1 LOC_PROT_ERR"});
  EXPECT_EQ(hosts_.a.counter("memory_faults"), 1U);
  expect_others_go_on();
}

TEST_P(InaccessiblePage, message_fails_if_its_target_becomes_inaccessible) {
  bool taken = false;
  hosts_.watch = [&](const Packet& packet, char) {
    if (packet.bth.opcode == Opcode::kRcWriteMiddle && !std::exchange(taken, true)) take_away(at_b_);
    return SimVerdict{};
  };
  ibv_sge piece{at_a_.address(), 50000, region_a_->lkey()};
  ASSERT_EQ(post(*hosts_.a.qp, IBV_WR_RDMA_WRITE, piece, at_b_.address(), region_b_->rkey()), 0);
  EXPECT_EQ(run(), Lines{"1 REM_ACCESS_ERR"});
  EXPECT_TRUE(taken);
  EXPECT_EQ(hosts_.b.counter("memory_faults"), 1U);
  expect_others_go_on();
}

TEST_P(InaccessiblePage, earlier_requests_succeed_and_later_ones_are_flushed) {
  take_away(at_a_);
  ASSERT_EQ(hosts_.write(10, 0, 5000), 0);
  ASSERT_EQ(post(IBV_WR_RDMA_WRITE), 0);
  ASSERT_EQ(hosts_.write(11, 0, 64), 0);
  EXPECT_EQ(run(), (Lines{"10 SUCCESS 5000", "1 LOC_PROT_ERR", "11 WR_FLUSH_ERR"}));
}

TEST_P(InaccessiblePage, datagram_buffer_causes_an_error_at_its_owner) {
  const auto a = make_service(hosts_.a, IBV_QPT_UD), b = make_service(hosts_.b, IBV_QPT_UD);
  open_datagrams(*a, kQkey, 0x1000);
  open_datagrams(*b, kQkey, 0x2000);
  const auto to_b = must(hosts_.a.pd->create_address_handle(address_of(must(hosts_.b.device->query_gid(1)))));
  const auto sends = [&](ibv_sge piece) {
    ibv_send_wr wr{};
    wr.wr_id = 1;
    wr.sg_list = &piece;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.wr.ud = {to_b->handle(), b->qp_num(), kQkey};
    EXPECT_EQ(a->post_send(&wr, nullptr), 0);
    return run();
  };
  // The 40-byte header fits into the accessible memory, the payload does not.
  ASSERT_EQ(post_receive(*b, {at_b_.address(kGone - 40), 1000, region_b_->lkey()}), 0);
  take_away(at_b_);
  EXPECT_EQ(sends({at_a_.address(), 300, region_a_->lkey()}), Lines{"1 SUCCESS 300"});
  EXPECT_EQ(completion_lines(hosts_.b), Lines{"2 LOC_PROT_ERR"});
  EXPECT_EQ(b->state(), IBV_QPS_ERR);
  EXPECT_EQ(hosts_.b.counter("memory_faults"), 1U);
  move_to(*b, IBV_QPS_RESET);
  open_datagrams(*b, kQkey, 0x2000);
  // The header does not fit either.
  ASSERT_EQ(post_receive(*b, {at_b_.address(kGone), 1000, region_b_->lkey()}), 0);
  EXPECT_EQ(sends({at_a_.address(), 300, region_a_->lkey()}), Lines{"1 SUCCESS 300"});
  EXPECT_EQ(completion_lines(hosts_.b), Lines{"2 LOC_PROT_ERR"});
  EXPECT_EQ(hosts_.b.counter("memory_faults"), 2U);
  take_away(at_a_);
  EXPECT_EQ(sends({at_a_.address(kGone), 300, region_a_->lkey()}), Lines{"1 LOC_PROT_ERR"});
  EXPECT_EQ(a->state(), IBV_QPS_SQE);
  EXPECT_EQ(hosts_.a.counter("memory_faults"), 1U);
  expect_others_go_on();
}

INSTANTIATE_TEST_SUITE_P(Ways, InaccessiblePage,
                         testing::Combine(testing::ValuesIn(kWays), testing::Values(kPlaces[0])), name_of);

}  // namespace
}  // namespace roci::test

// Null regions (ibv_alloc_null_mr) in the scatter lists of all services.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "support/hosts/services.hpp"

namespace roci::test {
namespace {

class NullRegion : public testing::Test {
 protected:
  void SetUp() override {
    hosts_.connect();
    null_a_ = must(hosts_.a.pd->allocate_null_region());
    null_b_ = must(hosts_.b.pd->allocate_null_region());
    fill(hosts_.a, 0, kBytes, 1);
    fill(hosts_.b, 0, kBytes, 1);
  }
  // Null regions permit any address.
  [[nodiscard]] static ibv_sge nothing(const MemoryRegion& of, uint32_t length) {
    return {UINT64_MAX - 5, length, of.lkey()};
  }
  static int post_send(QueuePair& qp, std::vector<ibv_sge> list, ibv_wr_opcode opcode = IBV_WR_SEND,
                       uint64_t remote = 0, uint32_t rkey = 0) {
    ibv_send_wr wr{};
    wr.wr_id = 1;
    wr.opcode = opcode;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.sg_list = list.data();
    wr.num_sge = static_cast<int>(list.size());
    wr.wr.rdma.remote_addr = remote;
    wr.wr.rdma.rkey = rkey;
    return qp.post_send(&wr, nullptr);
  }
  static int post_recv(QueuePair& qp, std::vector<ibv_sge> list) {
    ibv_recv_wr wr{};
    wr.wr_id = 2;
    wr.sg_list = list.data();
    wr.num_sge = static_cast<int>(list.size());
    return qp.post_recv(&wr, nullptr);
  }
  static bool is_zero(const Side& side, size_t offset, size_t length) {
    const auto* from = side.memory.data() + offset;
    return std::all_of(from, from + length, [](uint8_t byte) { return byte == 0; });
  }

  static constexpr uint32_t kBytes = 40000;  // more than one page of zeros, and not a multiple of it
  TwoHosts hosts_;
  std::unique_ptr<MemoryRegion> null_a_, null_b_;
};

TEST_F(NullRegion, sends_zeros_between_the_bytes_of_other_regions) {
  ASSERT_EQ(post_recv(*hosts_.b.qp, {hosts_.b.sge(0, kBytes)}), 0);
  const uint32_t middle = kBytes - 200;
  ASSERT_EQ(
      post_send(*hosts_.a.qp, {hosts_.a.sge(0, 100), nothing(*null_a_, middle), hosts_.a.sge(100, 100)}), 0);
  hosts_.run();
  EXPECT_EQ(completion_lines(hosts_.a), Lines{"1 SUCCESS 40000"});
  EXPECT_EQ(completion_lines(hosts_.b), Lines{"2 SUCCESS 40000"});
  EXPECT_TRUE(holds(hosts_.b, 0, 100, 1));
  EXPECT_TRUE(is_zero(hosts_.b, 100, middle));
  EXPECT_EQ(hosts_.b.memory[100 + middle], hosts_.a.memory[100]);
}

TEST_F(NullRegion, discards_the_middle_of_a_received_message) {
  ASSERT_EQ(
      post_recv(*hosts_.b.qp, {hosts_.b.sge(0, 10), nothing(*null_b_, kBytes - 20), hosts_.b.sge(10, 10)}),
      0);
  fill(hosts_.b, 0, 100, 200);
  ASSERT_EQ(post_send(*hosts_.a.qp, {hosts_.a.sge(0, kBytes)}), 0);
  hosts_.run();
  EXPECT_EQ(completion_lines(hosts_.b), Lines{"2 SUCCESS 40000"});
  EXPECT_TRUE(holds(hosts_.b, 0, 10, 1));
  EXPECT_EQ(hosts_.b.memory[10], hosts_.a.memory[kBytes - 10]);
  EXPECT_EQ(hosts_.b.memory[20], 220) << "is not written";
}

TEST_F(NullRegion, discards_read_data_and_atomic_results) {
  fill(hosts_.a, 0, kBytes, 7);
  ASSERT_EQ(post_send(*hosts_.a.qp, {nothing(*null_a_, kBytes)}, IBV_WR_RDMA_READ, hosts_.b.address(0),
                      hosts_.b.region->rkey()),
            0);
  ibv_sge result = nothing(*null_a_, 8);
  ibv_send_wr atomic{};
  atomic.wr_id = 3;
  atomic.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  atomic.send_flags = IBV_SEND_SIGNALED;
  atomic.sg_list = &result;
  atomic.num_sge = 1;
  atomic.wr.atomic = {
      .remote_addr = hosts_.b.address(64), .compare_add = 1, .swap = 0, .rkey = hosts_.b.region->rkey()};
  const uint8_t before = hosts_.b.memory[64];
  ASSERT_EQ(hosts_.a.qp->post_send(&atomic, nullptr), 0);
  hosts_.run();
  EXPECT_EQ(completion_lines(hosts_.a), (Lines{"1 SUCCESS 40000", "3 SUCCESS 8"}));
  EXPECT_EQ(hosts_.b.memory[64], before + 1);
  EXPECT_TRUE(holds(hosts_.a, 0, kBytes, 7));
}

TEST_F(NullRegion, writes_zeros_to_the_peer) {
  ASSERT_EQ(post_send(*hosts_.a.qp, {nothing(*null_a_, kBytes)}, IBV_WR_RDMA_WRITE, hosts_.b.address(0),
                      hosts_.b.region->rkey()),
            0);
  hosts_.run();
  EXPECT_EQ(completion_lines(hosts_.a), Lines{"1 SUCCESS 40000"});
  EXPECT_TRUE(is_zero(hosts_.b, 0, kBytes));
}

TEST_F(NullRegion, is_used_by_datagrams) {
  const auto from = make_service(hosts_.a, IBV_QPT_UD), to = make_service(hosts_.b, IBV_QPT_UD);
  open_datagrams(*from);
  open_datagrams(*to);
  const auto address =
      must(hosts_.a.pd->create_address_handle(address_of(must(hosts_.b.device->query_gid(1)))));
  ASSERT_EQ(post_recv(*to, {nothing(*null_b_, 40), hosts_.b.sge(0, 200)}), 0);
  ibv_sge list[] = {hosts_.a.sge(0, 50), nothing(*null_a_, 100)};
  ibv_send_wr wr{};
  wr.wr_id = 1;
  wr.opcode = IBV_WR_SEND;
  wr.sg_list = list;
  wr.num_sge = 2;
  wr.wr.ud = {.ah = address->handle(), .remote_qpn = to->qp_num(), .remote_qkey = kQkey};
  ASSERT_EQ(from->post_send(&wr, nullptr), 0);
  hosts_.run();
  EXPECT_EQ(completion_lines(hosts_.b), Lines{"2 SUCCESS 190"});
  EXPECT_TRUE(holds(hosts_.b, 0, 50, 1));
  EXPECT_TRUE(is_zero(hosts_.b, 50, 100));
}

TEST_F(NullRegion, has_no_rkey_and_belongs_to_its_domain) {
  EXPECT_EQ(null_b_->rkey(), 0U);
  EXPECT_EQ(null_b_->address(), nullptr);
  EXPECT_EQ(null_b_->length(), SIZE_MAX);
  ASSERT_EQ(post_send(*hosts_.a.qp, {hosts_.a.sge(0, 8)}, IBV_WR_RDMA_WRITE, 0, null_b_->lkey()), 0);
  hosts_.run();
  EXPECT_EQ(completion_lines(hosts_.a), Lines{"1 REM_ACCESS_ERR"});
  EXPECT_FALSE(null_b_->reregister(IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, IBV_ACCESS_LOCAL_WRITE));
  EXPECT_TRUE(null_b_->deregister());
  EXPECT_FALSE(null_b_->deregister());
}

TEST_F(NullRegion, of_another_domain_or_deregistered_is_a_protection_error) {
  const auto other = must(hosts_.a.device->allocate_pd());
  const auto foreign = must(other->allocate_null_region());
  ASSERT_EQ(post_send(*hosts_.a.qp, {nothing(*foreign, 8)}), 0);
  hosts_.run();
  EXPECT_EQ(completion_lines(hosts_.a), Lines{"1 LOC_PROT_ERR"});
  const auto qp = make_service(hosts_.b, IBV_QPT_UC);
  connect_to(*qp, IBV_QPT_UC, must(hosts_.a.device->query_gid(1)), 5, {.rq_psn = 1, .sq_psn = 1});
  const uint32_t key = null_b_->lkey();
  null_b_.reset();
  ASSERT_EQ(post_send(*qp, {{0, 8, key}}), 0);
  hosts_.run();
  EXPECT_EQ(completion_lines(hosts_.b), Lines{"1 LOC_PROT_ERR"});
}

}  // namespace
}  // namespace roci::test

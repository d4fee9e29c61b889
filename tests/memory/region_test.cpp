// Regions and windows of the C++ API: rejected calls and effects.
#include <gtest/gtest.h>

#include "support/hosts/lone_host.hpp"

namespace roci::test {
namespace {

Packet write_to(const LoneHost& host, int ahead, uint64_t va, uint32_t key, uint32_t length = 8) {
  Packet packet = host.write(Opcode::kRcWriteOnly, ahead, 0, length, length);
  packet.with_reth(va, MemoryKey{key}, length);
  return packet;
}

TEST(Region, zero_based_region_is_written_by_offset) {
  LoneHost host;
  const auto region = must(host.side.pd->register_memory(
      host.side.memory.data() + 64, 128,
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED));
  EXPECT_EQ(region->iova(), 0U);
  EXPECT_EQ(host.receive(write_to(host, 0, 120, region->rkey())), Lines{"RC_ACK 0 1f"});
  EXPECT_EQ(host.side.memory[64 + 120], 1);
  EXPECT_EQ(host.receive(write_to(host, 1, 121, region->rkey())), Lines{"RC_ACK 1 62"});
}

TEST(Region, iova_addresses_the_bytes_for_peers_and_scatter_lists) {
  LoneHost host;
  const auto region =
      must(host.side.pd->register_memory(host.side.memory.data() + 64, 128, uint64_t{0xabc000},
                                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
  EXPECT_EQ(host.receive(write_to(host, 0, 0xabc000 + 8, region->rkey())), Lines{"RC_ACK 0 1f"});
  EXPECT_EQ(host.side.memory[64 + 8], 1);
  ibv_sge sge{0xabc000 + 32, 8, region->lkey()};
  ibv_recv_wr wr{};
  wr.sg_list = &sge;
  wr.num_sge = 1;
  ASSERT_EQ(host.side.qp->post_recv(&wr, nullptr), 0);
  EXPECT_EQ(host.receive(host.request(Opcode::kRcSendOnly, 1, 8)), Lines{"RC_ACK 1 1f"});
  EXPECT_EQ(host.side.memory[64 + 32], 1);
}

TEST(Region, reregistration_changes_only_what_its_flags_select) {
  LoneHost host;
  const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  const auto region = must(host.side.pd->register_memory(host.side.memory.data(), 64, access));
  const uint32_t key = region->rkey();
  uint8_t* const elsewhere = host.side.memory.data() + 128;
  ASSERT_TRUE(region->reregister(IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, elsewhere, 32, 0));
  EXPECT_EQ(region->address(), elsewhere);
  EXPECT_EQ(region->length(), 32U);
  EXPECT_EQ(region->rkey(), key);
  EXPECT_EQ(host.receive(write_to(host, 0, host.side.address(128), key)), Lines{"RC_ACK 0 1f"});
  EXPECT_EQ(elsewhere[0], 1);
  // Zero-based from here on: the same bytes at other addresses.
  ASSERT_TRUE(
      region->reregister(IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, access | IBV_ACCESS_ZERO_BASED));
  EXPECT_EQ(host.receive(write_to(host, 1, 24, key)), Lines{"RC_ACK 1 1f"});
  EXPECT_EQ(elsewhere[24], 1);
  // Moved to another protection domain: the queue pair can no longer access it.
  const auto other = must(host.side.device->allocate_pd());
  ASSERT_TRUE(region->reregister(IBV_REREG_MR_CHANGE_PD, other.get(), nullptr, 0, 0));
  EXPECT_EQ(host.receive(write_to(host, 2, 0, key)), Lines{"RC_ACK 2 62"});
}

TEST(Region, rejected_reregistration_leaves_the_region_unchanged) {
  LoneHost host, other_host;
  const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_MW_BIND;
  const auto region = must(host.side.pd->register_memory(host.side.memory.data(), 64, access));
  EXPECT_FALSE(region->reregister(0, nullptr, nullptr, 0, 0));
  EXPECT_FALSE(region->reregister(8, nullptr, nullptr, 0, 0));
  EXPECT_FALSE(region->reregister(IBV_REREG_MR_CHANGE_PD, nullptr, nullptr, 0, 0));
  EXPECT_FALSE(region->reregister(IBV_REREG_MR_CHANGE_PD, other_host.side.pd.get(), nullptr, 0, 0));
  EXPECT_FALSE(region->reregister(IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, IBV_ACCESS_REMOTE_WRITE));
  EXPECT_FALSE(
      region->reregister(IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, host.side.memory.data(), SIZE_MAX, 0));
  const auto window = must(host.side.pd->allocate_window(IBV_MW_TYPE_1));
  const ibv_mw_bind bind{.wr_id = 1,
                         .send_flags = IBV_SEND_SIGNALED,
                         .bind_info = {region->verbs(), host.side.address(0), 8, IBV_ACCESS_REMOTE_WRITE}};
  ASSERT_EQ(host.side.qp->bind_window(*window, bind), 0);
  host.work();
  const Status busy =
      region->reregister(IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, host.side.memory.data(), 8, 0);
  ASSERT_FALSE(busy);
  EXPECT_EQ(busy.error().code, EBUSY);
  EXPECT_EQ(host.receive(write_to(host, 0, host.side.address(56), region->rkey())), Lines{"RC_ACK 0 1f"});
}

TEST(Region, deregistration_is_busy_with_bound_windows_and_succeeds_once) {
  LoneHost host;
  auto region = must(host.side.pd->register_memory(host.side.memory.data(), 64,
                                                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND));
  auto window = must(host.side.pd->allocate_window(IBV_MW_TYPE_1));
  const ibv_mw_bind bind{.wr_id = 1,
                         .send_flags = 0,
                         .bind_info = {region->verbs(), host.side.address(0), 8, IBV_ACCESS_REMOTE_WRITE}};
  ASSERT_EQ(host.side.qp->bind_window(*window, bind), 0);
  host.work();
  const Status busy = region->deregister();
  ASSERT_FALSE(busy);
  EXPECT_EQ(busy.error().code, EBUSY);
  window.reset();
  EXPECT_TRUE(region->deregister());
  EXPECT_FALSE(region->deregister());
  EXPECT_FALSE(region->reregister(IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, 0));
  const size_t before = host.side.device->host().memory().size();
  region.reset();
  EXPECT_EQ(host.side.device->host().memory().size(), before);
}

TEST(Region, windows_have_type_1_or_2_and_start_unbound) {
  LoneHost host;
  EXPECT_FALSE(host.side.pd->allocate_window(static_cast<ibv_mw_type>(3)));
  const auto window = must(host.side.pd->allocate_window(IBV_MW_TYPE_2));
  EXPECT_EQ(window->type(), IBV_MW_TYPE_2);
  EXPECT_EQ(host.receive(write_to(host, 0, 0, window->rkey())), Lines{"RC_ACK 0 62"});
  const ibv_device_attr attr = host.side.device->query_device();
  EXPECT_GT(attr.max_mw, 0);
  EXPECT_NE(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B, 0U);
  EXPECT_EQ(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2A, 0U);
}

}  // namespace
}  // namespace roci::test

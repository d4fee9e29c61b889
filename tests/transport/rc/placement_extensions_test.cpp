// Atomic writes and flushes (IBTA annex A19): responses, memory, duplicates, and what responders refuse.
#include <gtest/gtest.h>

#include <cstring>

#include "memory/flush_verbs.hpp"
#include "support/hosts/two_hosts.hpp"
#include "transport/once.hpp"

namespace roci::test {
namespace {

constexpr size_t kWord = 4096;
constexpr int kAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | kAccessFlushGlobal;

uint64_t word_at(const Side& side, size_t offset) {
  uint64_t word = 0;
  std::memcpy(&word, side.memory.data() + offset, sizeof word);
  return word;
}

TwoHostsOptions options_with(int access) {
  TwoHostsOptions options;
  options.access = access;
  return options;
}

int post_flush(TwoHosts& net, uint64_t wr_id, uint64_t address, uint32_t length, uint32_t rkey,
               uint8_t type = kFlushTypeGlobal, uint8_t level = kFlushRange) {
  ibv_send_wr wr{};
  wr.wr_id = wr_id;
  set_flush(wr, address, length, rkey, level, type);
  return net.a.qp->post_send(&wr, nullptr);
}

TEST(PlacementExtensions, atomic_write_is_answered_by_a_read_response_without_data) {
  TwoHosts net;
  net.connect();
  const uint64_t word = word_at(net.a, 64);
  ASSERT_EQ(net.a.post(IBV_WR_ATOMIC_WRITE, 1, 64, 8, net.b.address(kWord), net.b.region->rkey()), 0);
  net.run();
  EXPECT_EQ(net.wire, (Lines{"> RC_ATOMIC_WRITE 0", "< RC_READ_RESP_ONLY 0"}));
  const auto done = net.a.completions();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(done[0].opcode, IBV_WC_ATOMIC_WRITE);
  EXPECT_EQ(word_at(net.b, kWord), word);
}

TEST(PlacementExtensions, inline_atomic_write_needs_no_inline_capacity) {
  TwoHostsOptions options;
  options.cap.max_inline_data = 0;
  TwoHosts net(options);
  net.connect();
  const uint64_t word = word_at(net.a, 64);
  ASSERT_EQ(
      net.a.post(IBV_WR_ATOMIC_WRITE, 1, 64, 8, net.b.address(kWord), net.b.region->rkey(), IBV_SEND_INLINE),
      0);
  net.run();
  EXPECT_EQ(net.a.completions().at(0).status, IBV_WC_SUCCESS);
  EXPECT_EQ(word_at(net.b, kWord), word);
}

TEST(PlacementExtensions, duplicate_atomic_write_is_not_executed_again) {
  TwoHosts net;
  net.connect();
  net.lose = once("< RC_READ_RESP_ONLY 0");
  const uint64_t word = word_at(net.a, 64);
  const uint32_t key = net.b.region->rkey();
  ASSERT_EQ(net.a.post(IBV_WR_ATOMIC_WRITE, 1, 64, 8, net.b.address(kWord), key), 0);
  net.run(10us);  // the response is lost
  ASSERT_EQ(word_at(net.b, kWord), word);
  std::memset(net.b.memory.data() + kWord, 0x5a, 8);
  net.run();
  EXPECT_EQ(net.wire, (Lines{"> RC_ATOMIC_WRITE 0", "< RC_READ_RESP_ONLY 0 lost", "> RC_ATOMIC_WRITE 0",
                             "< RC_READ_RESP_ONLY 0"}));
  EXPECT_EQ(net.a.completions().size(), 1U);
  EXPECT_EQ(word_at(net.b, kWord), 0x5a5a5a5a5a5a5a5aU);
}

TEST(PlacementExtensions, flush_follows_writes_and_is_answered_in_order) {
  TwoHosts net(options_with(kAccess));
  net.connect();
  const uint32_t key = net.b.region->rkey();
  ASSERT_EQ(net.a.post(IBV_WR_RDMA_WRITE, 1, 0, 64, net.b.address(kWord), key), 0);
  ASSERT_EQ(post_flush(net, 2, net.b.address(kWord), 64, key), 0);
  ASSERT_EQ(net.a.post(IBV_WR_RDMA_READ, 3, 128, 64, net.b.address(kWord), key), 0);
  ASSERT_EQ(post_flush(net, 4, 0, 0, key, kFlushTypeGlobal, kFlushRegion), 0);
  net.run();
  EXPECT_EQ(net.wire, (Lines{"> RC_WRITE_ONLY 0", "> RC_FLUSH 1", "> RC_READ_REQUEST 2", "> RC_FLUSH 3",
                             "< RC_ACK 0 ack", "< RC_READ_RESP_ONLY 1", "< RC_READ_RESP_ONLY 2",
                             "< RC_READ_RESP_ONLY 3"}));
  const auto done = net.a.completions();
  ASSERT_EQ(done.size(), 4U);
  for (const ibv_wc& wc : done) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(done[1].opcode, kWcFlush);
  EXPECT_EQ(std::memcmp(net.a.memory.data() + 128, net.a.memory.data(), 64), 0);
}

TEST(PlacementExtensions, flush_completes_after_lost_request_and_lost_response) {
  for (const char* lost : {"> RC_FLUSH 0", "< RC_READ_RESP_ONLY 0"}) {
    SCOPED_TRACE(lost);
    TwoHosts net(options_with(kAccess));
    net.connect();
    net.lose = once(lost);
    ASSERT_EQ(post_flush(net, 1, net.b.address(0), 8, net.b.region->rkey()), 0);
    net.run();
    const auto done = net.a.completions();
    ASSERT_EQ(done.size(), 1U);
    EXPECT_EQ(done[0].status, IBV_WC_SUCCESS);
  }
}

TEST(PlacementExtensions, requests_between_extended_peers_complete_with_depth_of_two) {
  TwoHostsOptions options = options_with(kAccess);
  options.reads = 2;
  options.extensions_a.mode = options.extensions_b.mode = ExtensionMode::kAuto;
  TwoHosts net(options);
  net.connect();
  const uint32_t key = net.b.region->rkey();
  for (uint64_t id = 0; id < 30; id += 3) {
    ASSERT_EQ(net.a.post(IBV_WR_RDMA_WRITE, id, 0, 3000, net.b.address(kWord), key), 0);
    ASSERT_EQ(post_flush(net, id + 1, net.b.address(kWord), 3000, key), 0);
    ASSERT_EQ(net.a.post(IBV_WR_ATOMIC_WRITE, id + 2, 8, 8, net.b.address(0), key), 0);
  }
  net.run();
  const auto done = net.a.completions();
  ASSERT_EQ(done.size(), 30U);
  for (const ibv_wc& wc : done) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
}

TEST(PlacementExtensions, responder_refuses_what_is_not_permitted) {
  constexpr int kWrite = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  struct Case {
    const char* name;
    bool flush;
    uint64_t offset;
    uint32_t length;
    bool bad_key;
    uint8_t type, level;
    int access;
    ibv_wc_status status;
  };
  const Case rows[] = {
      {"misaligned", false, kWord + 4, 8, false, 0, 0, kWrite, IBV_WC_REM_INV_REQ_ERR},
      {"write not enabled", false, kWord, 8, false, 0, 0, IBV_ACCESS_REMOTE_READ, IBV_WC_REM_INV_REQ_ERR},
      {"unknown key", false, kWord, 8, true, 0, 0, kWrite, IBV_WC_REM_ACCESS_ERR},
      {"behind the end", false, 1 << 20, 8, false, 0, 0, kWrite, IBV_WC_REM_ACCESS_ERR},
      {"flush not enabled", true, kWord, 8, false, kFlushTypeGlobal, kFlushRange, kWrite,
       IBV_WC_REM_INV_REQ_ERR},
      {"persistent", true, kWord, 8, false, kFlushTypePersistent, kFlushRange, kAccess,
       IBV_WC_REM_INV_REQ_ERR},
      {"reserved level", true, kWord, 8, false, kFlushTypeGlobal, 2, kAccess, IBV_WC_REM_INV_REQ_ERR},
      {"flush, unknown key", true, kWord, 0, true, kFlushTypeGlobal, kFlushRange, kAccess,
       IBV_WC_REM_ACCESS_ERR},
      {"flush region, unknown key", true, 0, 0, true, kFlushTypeGlobal, kFlushRegion, kAccess,
       IBV_WC_REM_ACCESS_ERR},
      {"flush behind the end", true, (1 << 20) - 4, 8, false, kFlushTypeGlobal, kFlushRange, kAccess,
       IBV_WC_REM_ACCESS_ERR},
  };
  for (const Case& row : rows) {
    SCOPED_TRACE(row.name);
    TwoHosts net(options_with(row.access));
    net.connect();
    const auto before = net.b.memory;
    const uint32_t key = net.b.region->rkey() ^ (row.bad_key ? 0x10101U : 0U);
    const uint64_t address = net.b.address(row.offset);
    ASSERT_EQ(row.flush ? post_flush(net, 1, address, row.length, key, row.type, row.level)
                        : net.a.post(IBV_WR_ATOMIC_WRITE, 1, 64, row.length, address, key),
              0);
    net.run();
    const auto done = net.a.completions();
    ASSERT_EQ(done.size(), 1U);
    EXPECT_EQ(done[0].status, row.status);
    EXPECT_EQ(net.b.memory, before);
  }
}

TEST(PlacementExtensions, atomic_write_of_other_length_completes_with_an_error) {
  TwoHosts net;
  net.connect();
  ASSERT_EQ(net.a.post(IBV_WR_ATOMIC_WRITE, 1, 64, 4, net.b.address(kWord), net.b.region->rkey()), 0);
  net.run();
  EXPECT_EQ(net.wire, Lines{});
  EXPECT_EQ(net.a.completions().at(0).status, IBV_WC_LOC_LEN_ERR);
}

TEST(PlacementExtensions, region_with_persistent_flush_is_rejected) {
  TwoHosts net;
  const auto region =
      net.a.pd->register_memory(net.a.memory.data(), 4096, IBV_ACCESS_LOCAL_WRITE | kAccessFlushPersistent);
  ASSERT_FALSE(region.has_value());
  EXPECT_NE(region.error().message.find("flush global"), std::string::npos) << region.error().message;
}

}  // namespace
}  // namespace roci::test

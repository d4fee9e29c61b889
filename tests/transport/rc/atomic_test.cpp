// Atomic operations: response, memory contents, and responses to duplicate requests without a second execution.
#include <gtest/gtest.h>

#include <cstring>

#include "support/hosts/two_hosts.hpp"
#include "transport/once.hpp"

namespace roci::test {
namespace {

uint64_t word_at(const Side& side, size_t offset) {
  uint64_t word = 0;
  std::memcpy(&word, side.memory.data() + offset, sizeof word);
  return word;
}

void set_word(Side& side, size_t offset, uint64_t word) {
  std::memcpy(side.memory.data() + offset, &word, sizeof word);
}

// Offset of an 8-byte aligned word in the memory of a host.
constexpr size_t kWord = 4096;

TEST(Atomic, fetch_add_returns_the_old_value_and_adds) {
  TwoHosts net;
  net.connect();
  set_word(net.b, kWord, 0xfffffffffffffffe);
  ASSERT_EQ(net.a.atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, net.b.address(kWord), net.b.region->rkey(), 5),
            0);
  net.run();
  EXPECT_EQ(net.wire, (Lines{"> RC_FETCH_ADD 0", "< RC_ATOMIC_ACK 0"}));
  const auto done = net.a.completions();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(done[0].opcode, IBV_WC_FETCH_ADD);
  EXPECT_EQ(done[0].byte_len, 8U);
  EXPECT_EQ(word_at(net.a, 0), 0xfffffffffffffffe);
  EXPECT_EQ(word_at(net.b, kWord), 3U);  // wraps around
}

TEST(Atomic, compare_swap_writes_only_if_the_value_matches) {
  TwoHosts net;
  net.connect();
  set_word(net.b, kWord, 10);
  ASSERT_EQ(net.a.atomic(IBV_WR_ATOMIC_CMP_AND_SWP, 1, 0, net.b.address(kWord), net.b.region->rkey(), 10, 20),
            0);
  ASSERT_EQ(net.a.atomic(IBV_WR_ATOMIC_CMP_AND_SWP, 2, 8, net.b.address(kWord), net.b.region->rkey(), 10, 30),
            0);
  net.run();
  const auto done = net.a.completions();
  ASSERT_EQ(done.size(), 2U);
  EXPECT_EQ(done[1].opcode, IBV_WC_COMP_SWAP);
  EXPECT_EQ(word_at(net.a, 0), 10U);
  EXPECT_EQ(word_at(net.a, 8), 20U);
  EXPECT_EQ(word_at(net.b, kWord), 20U);
}

TEST(Atomic, lost_response_is_resent_without_a_second_execution) {
  TwoHosts net;
  net.connect();
  set_word(net.b, kWord, 100);
  net.lose = once("< RC_ATOMIC_ACK 0");
  ASSERT_EQ(net.a.atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, net.b.address(kWord), net.b.region->rkey(), 1),
            0);
  net.run();
  EXPECT_EQ(net.wire,
            (Lines{"> RC_FETCH_ADD 0", "< RC_ATOMIC_ACK 0 lost", "> RC_FETCH_ADD 0", "< RC_ATOMIC_ACK 0"}));
  EXPECT_EQ(net.a.completions().size(), 1U);
  EXPECT_EQ(word_at(net.a, 0), 100U);
  EXPECT_EQ(word_at(net.b, kWord), 101U);
  EXPECT_EQ(net.b.counter("atomic_replays"), 1U);
}

TEST(Atomic, responses_keep_psn_order_with_reads_and_acknowledgments) {
  TwoHosts net;
  net.connect();
  set_word(net.b, kWord, 7);
  const uint32_t key = net.b.region->rkey();
  ASSERT_EQ(net.a.post(IBV_WR_RDMA_READ, 1, 1000, 3000, net.b.address(0), key), 0);
  ASSERT_EQ(net.a.atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 2, 0, net.b.address(kWord), key, 1), 0);
  ASSERT_EQ(net.a.post(IBV_WR_RDMA_WRITE, 3, 8000, 8, net.b.address(9000), key), 0);
  net.run();
  EXPECT_EQ(net.wire, (Lines{"> RC_READ_REQUEST 0", "> RC_FETCH_ADD 3", "> RC_WRITE_ONLY 4",
                             "< RC_READ_RESP_FIRST 0", "< RC_READ_RESP_MIDDLE 1", "< RC_READ_RESP_LAST 2",
                             "< RC_ATOMIC_ACK 3", "< RC_ACK 4 ack"}));
  EXPECT_EQ(net.a.completions().size(), 3U);
}

TEST(Atomic, twenty_atomics_complete_with_a_depth_of_two) {
  TwoHostsOptions options;
  options.reads = 2;
  TwoHosts net(options);
  net.connect();
  const uint32_t key = net.b.region->rkey();
  for (uint64_t id = 1; id <= 20; ++id) {
    ASSERT_EQ(net.a.atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, id, 0, net.b.address(kWord), key, 1), 0);
  }
  net.run();
  EXPECT_EQ(net.a.completions().size(), 20U);
  EXPECT_EQ(word_at(net.b, kWord), 20U);
}

TEST(Atomic, misaligned_unpermitted_and_unregistered_addresses_are_rejected) {
  struct Row {
    const char* name;
    size_t offset;
    bool bad_key;
    int access;
    ibv_wc_status status;
  };
  constexpr int kLocal = IBV_ACCESS_LOCAL_WRITE;
  const Row rows[] = {
      {"misaligned", kWord + 4, false, kLocal | IBV_ACCESS_REMOTE_ATOMIC, IBV_WC_REM_INV_REQ_ERR},
      {"not enabled", kWord, false, kLocal | IBV_ACCESS_REMOTE_WRITE, IBV_WC_REM_INV_REQ_ERR},
      {"unknown key", kWord, true, kLocal | IBV_ACCESS_REMOTE_ATOMIC, IBV_WC_REM_ACCESS_ERR},
      {"behind the end", 1 << 20, false, kLocal | IBV_ACCESS_REMOTE_ATOMIC, IBV_WC_REM_ACCESS_ERR},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    TwoHostsOptions options;
    options.access = row.access;
    TwoHosts net(options);
    net.connect();
    const auto before = net.b.memory;
    const uint32_t key = net.b.region->rkey() ^ (row.bad_key ? 0x10101U : 0U);
    ASSERT_EQ(net.a.atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, net.b.address(row.offset), key, 1), 0);
    net.run();
    const auto done = net.a.completions();
    ASSERT_EQ(done.size(), 1U);
    EXPECT_EQ(done[0].status, row.status);
    EXPECT_EQ(net.b.memory, before);
  }
}

TEST(Atomic, length_other_than_8_bytes_completes_with_an_error_and_is_not_executed) {
  for (const uint32_t length : {0U, 7U, 9U}) {
    SCOPED_TRACE(length);
    TwoHosts net;
    net.connect();
    const auto before = net.b.memory;
    ibv_sge list = net.a.sge(0, length);
    ibv_send_wr wr{};
    wr.sg_list = &list;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;  // not signaled
    wr.wr.atomic = {net.b.address(0), 1, 0, net.b.region->rkey()};
    ASSERT_EQ(net.a.qp->post_send(&wr, nullptr), 0);
    ASSERT_EQ(net.a.atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 2, 0, net.b.address(0), net.b.region->rkey(), 1), 0);
    net.run();
    const auto done = net.a.completions();
    ASSERT_EQ(done.size(), 2U);
    EXPECT_EQ(done[0].status, IBV_WC_LOC_LEN_ERR);
    EXPECT_EQ(done[1].status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(net.b.memory, before) << "neither this operation nor the next one was executed";
  }
}

// As with NICs and Linux: local memory is checked when the response arrives.
TEST(Atomic, error_of_the_responder_precedes_that_of_local_memory) {
  for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD}) {
    for (const bool bad_rkey : {false, true}) {
      SCOPED_TRACE(testing::Message() << "opcode " << opcode << ", bad R_Key " << bad_rkey);
      TwoHosts net;
      net.connect();
      const uint64_t before = word_at(net.b, 0);
      ibv_sge list = net.a.sge(0, 8);
      list.lkey ^= 0x10101;
      ibv_send_wr wr{};
      wr.sg_list = &list;
      wr.num_sge = 1;
      wr.opcode = opcode;
      const uint32_t rkey = net.b.region->rkey() ^ (bad_rkey ? 0x10101U : 0U);
      if (opcode == IBV_WR_RDMA_READ) {
        wr.wr.rdma = {net.b.address(0), rkey};
      } else {
        wr.wr.atomic = {net.b.address(0), 1, 0, rkey};
      }
      ASSERT_EQ(net.a.qp->post_send(&wr, nullptr), 0);
      net.run();
      const auto done = net.a.completions();
      ASSERT_EQ(done.size(), 1U);
      EXPECT_EQ(done[0].status, bad_rkey ? IBV_WC_REM_ACCESS_ERR : IBV_WC_LOC_PROT_ERR);
      const bool executed = opcode != IBV_WR_RDMA_READ && !bad_rkey;
      EXPECT_EQ(word_at(net.b, 0), before + (executed ? 1 : 0));
    }
  }
}

}  // namespace
}  // namespace roci::test

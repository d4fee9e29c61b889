// Memory windows: bind and invalidate through the send queue and by the peer. Order, fences, losses, errors.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/hosts/lone_host.hpp"

namespace roci::test {
namespace {

// A host with a region that permits binding, a type 2 window, and functions for packets and requests.
struct Windows : testing::Test {
  static LoneHostOptions options() {
    LoneHostOptions o;
    o.access |= IBV_ACCESS_MW_BIND;
    return o;
  }
  LoneHost host{options()};
  std::unique_ptr<MemoryWindow> window = must(host.side.pd->allocate_window(IBV_MW_TYPE_2));
  uint32_t key = ibv_inc_rkey(window->rkey());
  static constexpr size_t kAt = LoneHost::kGuard + 512;  // start of the window of 256 bytes

  int bind(uint64_t wr_id, uint32_t rkey, unsigned flags = 0, uint64_t length = 256) {
    ibv_send_wr wr{};
    wr.wr_id = wr_id;
    wr.opcode = IBV_WR_BIND_MW;
    wr.send_flags = flags;
    wr.bind_mw = {window->verbs(),
                  rkey,
                  {host.side.region->verbs(), host.side.address(kAt), length, IBV_ACCESS_REMOTE_WRITE}};
    return host.side.qp->post_send(&wr, nullptr);
  }
  int invalidate(uint64_t wr_id, uint32_t rkey, unsigned flags = 0) {
    ibv_send_wr wr{};
    wr.wr_id = wr_id;
    wr.opcode = IBV_WR_LOCAL_INV;
    wr.send_flags = flags;
    wr.invalidate_rkey = rkey;
    return host.side.qp->post_send(&wr, nullptr);
  }
  Packet write(int ahead, uint32_t rkey) const {
    Packet packet = host.write(Opcode::kRcWriteOnly, ahead, 0, 8, 8);
    packet.with_reth(host.side.address(kAt), MemoryKey{rkey}, 8);
    return packet;
  }
  Packet send_inv(int ahead, uint32_t rkey, Opcode opcode = Opcode::kRcSendOnlyInv,
                  size_t payload = 8) const {
    Packet packet = host.request(opcode, ahead, payload);
    packet.ieth = MemoryKey{rkey};
    return packet;
  }
  // Returns whether the peer could write with the key. Does not use the queue pair.
  bool opens(uint32_t rkey) {
    uint8_t* where = nullptr;
    const Accessor qp{host.core().config.pd, Qpn{host.side.qp->qp_num()}};
    return host.side.device->host().memory().check_remote(MemoryKey{rkey}, qp, host.side.address(kAt), 8,
                                                          Access::kRemoteWrite,
                                                          &where) == AccessOutcome::kAllowed;
  }
};

TEST_F(Windows, data_response_to_a_write_after_a_bind_fails_that_write) {
  ASSERT_EQ(host.post(IBV_WR_RDMA_WRITE, 1, 8), 0);
  ASSERT_EQ(bind(2, key), 0);
  ASSERT_EQ(host.post(IBV_WR_RDMA_WRITE, 3, 8), 0);
  EXPECT_EQ(host.work(), (Lines{"RC_WRITE_ONLY 0", "RC_WRITE_ONLY 1"}));
  host.receive(host.response(Opcode::kRcReadResponseOnly, 1, 0x1f, 8));
  EXPECT_EQ(host.statuses(), (Statuses{IBV_WC_SUCCESS, IBV_WC_SUCCESS, IBV_WC_BAD_RESP_ERR}));
}

TEST_F(Windows, bind_and_invalidation_send_no_packet_and_complete_with_their_opcode) {
  ASSERT_EQ(bind(1, key), 0);
  EXPECT_EQ(host.work(), Lines{});
  EXPECT_TRUE(opens(key));
  ASSERT_EQ(invalidate(2, key), 0);
  EXPECT_EQ(host.work(), Lines{});
  EXPECT_FALSE(opens(key));
  const auto completions = host.side.completions();
  ASSERT_EQ(completions.size(), 2U);
  EXPECT_EQ(completions[0].wr_id, 1U);
  EXPECT_EQ(completions[0].opcode, IBV_WC_BIND_MW);
  EXPECT_EQ(completions[1].opcode, IBV_WC_LOCAL_INV);
  EXPECT_EQ(completions[1].status, IBV_WC_SUCCESS);
}

TEST_F(Windows, peer_writes_through_the_window_until_it_is_invalidated) {
  bind(1, key);
  host.work();
  EXPECT_EQ(host.receive(write(0, key)), Lines{"RC_ACK 0 1f"});
  EXPECT_EQ(host.side.memory[kAt], 1);
  invalidate(2, key);
  host.work();
  EXPECT_EQ(host.receive(write(1, key)), Lines{"RC_ACK 1 62"});
}

TEST_F(Windows, duplicate_read_after_an_invalidation_is_dropped_without_a_nak) {
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_BIND_MW;
  wr.bind_mw = {
      window->verbs(), key, {host.side.region->verbs(), host.side.address(kAt), 256, IBV_ACCESS_REMOTE_READ}};
  ASSERT_EQ(host.side.qp->post_send(&wr, nullptr), 0);
  host.work();
  Packet read = host.read(0, 0, 200);
  read.with_reth(host.side.address(kAt), MemoryKey{key}, 200);
  EXPECT_EQ(host.receive(read), Lines{"RC_READ_RESP_ONLY 0"});
  invalidate(2, key);
  host.work();
  EXPECT_EQ(host.receive(read), Lines{});
  EXPECT_EQ(host.side.counter("replays_refused"), 1U);
  EXPECT_EQ(host.side.qp->state(), IBV_QPS_RTS);
  // A READ that was never answered is a violation.
  read = host.read(1, 0, 200);
  read.with_reth(host.side.address(kAt), MemoryKey{key}, 200);
  EXPECT_EQ(host.receive(read), Lines{"RC_ACK 1 62"});
}

TEST_F(Windows, local_operations_use_no_psn_and_complete_in_posting_order) {
  host.post(IBV_WR_SEND, 1, 8);
  bind(2, key);
  host.post(IBV_WR_SEND, 3, 8);
  invalidate(4, key);
  EXPECT_EQ(host.work(), (Lines{"RC_SEND_ONLY 0", "RC_SEND_ONLY 1"}));
  EXPECT_TRUE(host.side.completions().empty());
  host.receive(host.response(Opcode::kRcAcknowledge, 0));
  auto completions = host.side.completions();
  ASSERT_EQ(completions.size(), 2U);
  EXPECT_EQ(completions[1].wr_id, 2U);
  host.receive(host.response(Opcode::kRcAcknowledge, 1));
  completions = host.side.completions();
  ASSERT_EQ(completions.size(), 2U);
  EXPECT_EQ(completions[0].wr_id, 3U);
  EXPECT_EQ(completions[1].wr_id, 4U);
}

TEST_F(Windows, bind_is_executed_before_the_next_message_is_sent) {
  host.port().blocked = true;
  bind(1, key);
  host.post(IBV_WR_SEND, 2, 8);
  host.work();
  EXPECT_TRUE(opens(key));
}

TEST_F(Windows, local_operations_are_not_repeated_by_retransmissions) {
  // SEND, bind, SEND, invalidate, bind with another key, SEND. All packets are lost and retransmitted.
  const uint32_t second = ibv_inc_rkey(key);
  host.post(IBV_WR_SEND, 1, 8);
  bind(2, key);
  host.post(IBV_WR_SEND, 3, 8);
  invalidate(4, key);
  bind(5, second);
  host.post(IBV_WR_SEND, 6, 8);
  EXPECT_EQ(host.work().size(), 3U);
  EXPECT_TRUE(opens(second));
  EXPECT_EQ(host.wait(5ms).size(), 1U) << "the time-out";
  EXPECT_EQ(host.receive(host.response(Opcode::kRcAcknowledge, 0)).size(), 1U) << "the second packet";
  EXPECT_EQ(host.receive(host.response(Opcode::kRcAcknowledge, 1, 0x60)).size(), 2U)
      << "a NAK from the middle";
  EXPECT_TRUE(opens(second));
  EXPECT_FALSE(opens(key));
  host.receive(host.response(Opcode::kRcAcknowledge, 2));
  const auto completions = host.side.completions();
  ASSERT_EQ(completions.size(), 6U);
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(completions[i].wr_id, i + 1);
    EXPECT_EQ(completions[i].status, IBV_WC_SUCCESS);
  }
}

TEST_F(Windows, fenced_local_operation_waits_for_earlier_reads) {
  bind(1, key);
  host.post(IBV_WR_RDMA_READ, 2, 8);
  invalidate(3, key, IBV_SEND_FENCE);
  host.post(IBV_WR_SEND, 4, 8);
  EXPECT_EQ(host.work(), Lines{"RC_READ_REQUEST 0"});
  EXPECT_TRUE(opens(key));
  EXPECT_EQ(host.receive(host.response(Opcode::kRcReadResponseOnly, 0, 0x1f, 8)), Lines{"RC_SEND_ONLY 1"});
  EXPECT_FALSE(opens(key));
  EXPECT_EQ(host.statuses(), (Statuses{IBV_WC_SUCCESS, IBV_WC_SUCCESS, IBV_WC_SUCCESS}));
}

TEST_F(Windows, failed_bind_moves_the_queue_pair_to_error_in_order) {
  host.post(IBV_WR_SEND, 1, 8);
  bind(2, key, 0, 1 << 20);  // longer than the region
  host.post(IBV_WR_SEND, 3, 8);
  EXPECT_EQ(host.work(), Lines{"RC_SEND_ONLY 0"});
  host.receive(host.response(Opcode::kRcAcknowledge, 0));
  const auto completions = host.side.completions();
  ASSERT_EQ(completions.size(), 3U);
  EXPECT_EQ(completions[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(completions[1].status, IBV_WC_MW_BIND_ERR);
  EXPECT_EQ(completions[1].opcode, IBV_WC_BIND_MW);
  EXPECT_EQ(completions[2].status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(host.side.qp->state(), IBV_QPS_ERR);
}

TEST_F(Windows, invalidation_of_a_region_key_fails) {
  invalidate(1, host.side.region->rkey());
  host.work();
  EXPECT_EQ(host.statuses(), Statuses{IBV_WC_MW_BIND_ERR});
  EXPECT_EQ(host.side.qp->state(), IBV_QPS_ERR);
}

TEST_F(Windows, post_rejects_a_bind_without_a_window) {
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_BIND_MW;
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(host.side.qp->post_send(&wr, &bad), EINVAL);
  EXPECT_EQ(bad, &wr);
  ibv_send_wr before{};
  before.opcode = IBV_WR_SEND;
  before.send_flags = IBV_SEND_SIGNALED;
  before.next = &wr;
  EXPECT_EQ(host.side.qp->post_send_all(&before), EINVAL);
  EXPECT_EQ(host.work(), Lines{}) << "the list is not posted in part";
  EXPECT_EQ(host.side.qp->post_send(&before, &bad), EINVAL);
  EXPECT_EQ(host.work(), Lines{"RC_SEND_ONLY 0"});
}

// The window of a libibverbs program has a context. Expects the key of the last accepted bind there, and the key of the
// allocation in a MemoryWindow.
TEST_F(Windows, accepted_bind_sets_the_key_of_a_window_with_a_context) {
  const uint32_t allocated = window->rkey();
  ASSERT_EQ(bind(1, key), 0);
  EXPECT_EQ(window->rkey(), allocated);
  ibv_context context{};
  ibv_mw of_program = *window->verbs();
  of_program.context = &context;
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_BIND_MW;
  wr.bind_mw = {&of_program, key, {}};
  ASSERT_EQ(host.side.qp->post_send(&wr, nullptr), 0);
  EXPECT_EQ(of_program.rkey, key);
}

TEST_F(Windows, unsignaled_local_operations_produce_no_completion) {
  LoneHostOptions quiet = options();
  quiet.signal_all = false;
  LoneHost other(quiet);
  const auto w = must(other.side.pd->allocate_window(IBV_MW_TYPE_1));
  ibv_mw_bind request{
      .wr_id = 1,
      .send_flags = 0,
      .bind_info = {other.side.region->verbs(), other.side.address(kAt), 8, IBV_ACCESS_REMOTE_WRITE}};
  EXPECT_EQ(other.side.qp->bind_window(*w, request), 0);
  other.work();
  EXPECT_EQ(other.statuses(), Statuses{});
  request.send_flags = IBV_SEND_SIGNALED;
  EXPECT_EQ(other.side.qp->bind_window(*w, request), 0);
  other.work();
  EXPECT_EQ(other.statuses(), Statuses{IBV_WC_SUCCESS});
}

TEST_F(Windows, bind_window_requires_type_1_and_increments_the_key) {
  ibv_mw_bind request{
      .wr_id = 1,
      .send_flags = IBV_SEND_SIGNALED,
      .bind_info = {host.side.region->verbs(), host.side.address(kAt), 8, IBV_ACCESS_REMOTE_WRITE}};
  EXPECT_EQ(host.side.qp->bind_window(*window, request), EINVAL);
  const auto one = must(host.side.pd->allocate_window(IBV_MW_TYPE_1));
  const uint32_t before = one->rkey();
  ASSERT_EQ(host.side.qp->bind_window(*one, request), 0);
  ASSERT_EQ(host.side.qp->bind_window(*one, request), 0);
  EXPECT_EQ(one->rkey(), ibv_inc_rkey(ibv_inc_rkey(before)));
  host.work();
  EXPECT_EQ(host.receive(write(0, one->rkey())), Lines{"RC_ACK 0 1f"});
  request.bind_info.length = 0;
  ASSERT_EQ(host.side.qp->bind_window(*one, request), 0);
  host.work();
  EXPECT_EQ(host.receive(write(1, one->rkey())), Lines{"RC_ACK 1 62"});
  EXPECT_EQ(host.statuses().size(), 3U);
  const uint32_t last = one->rkey();
  EXPECT_EQ(host.side.qp->bind_window(*one, request), 0) << "in the error state it is flushed";
  host.to_bare(IBV_QPS_RESET);
  const uint32_t now = one->rkey();
  EXPECT_NE(host.side.qp->bind_window(*one, request), 0);
  EXPECT_EQ(one->rkey(), now) << "what was not posted changes no key";
  EXPECT_NE(now, last);
}

TEST_F(Windows, send_with_invalidate_invalidates_the_window_and_reports_its_key) {
  bind(1, key);
  host.work();
  host.side.completions();
  host.side.receive(9, LoneHost::kGuard, 512);
  EXPECT_EQ(host.receive(host.request(Opcode::kRcSendFirst, 0, 256)), Lines{"RC_ACK 0 1f"});
  EXPECT_TRUE(opens(key));
  EXPECT_EQ(host.receive(send_inv(1, key, Opcode::kRcSendLastInv)), Lines{"RC_ACK 1 1f"});
  EXPECT_FALSE(opens(key));
  const auto completions = host.side.completions();
  ASSERT_EQ(completions.size(), 1U);
  EXPECT_EQ(completions[0].wr_id, 9U);
  EXPECT_EQ(completions[0].opcode, IBV_WC_RECV);
  EXPECT_EQ(completions[0].byte_len, 264U);
  EXPECT_EQ(completions[0].wc_flags, static_cast<unsigned>(IBV_WC_WITH_INV));
  EXPECT_EQ(completions[0].invalidated_rkey, key);
}

TEST_F(Windows, duplicate_send_with_invalidate_does_not_invalidate_a_rebound_window) {
  bind(1, key);
  host.work();
  host.side.receive(9, LoneHost::kGuard, 512);
  const Packet packet = send_inv(0, key);
  EXPECT_EQ(host.receive(packet), Lines{"RC_ACK 0 1f"});
  bind(2, key);  // binds the same key again
  host.work();
  EXPECT_EQ(host.receive(packet), Lines{"RC_ACK 0 1f"});
  EXPECT_TRUE(opens(key));
}

TEST_F(Windows, send_with_an_invalid_invalidation_key_is_rejected) {
  const uint32_t kKeys[] = {key, host.side.region->rkey(), 0x12345678};  // not bound; a region; unknown
  for (const uint32_t wrong : kKeys) {
    LoneHost other(options());
    const uint32_t target = wrong == host.side.region->rkey() ? other.side.region->rkey() : wrong;
    other.side.receive(9, LoneHost::kGuard, 512);
    Packet packet = other.request(Opcode::kRcSendOnlyInv, 0, 8);
    packet.ieth = MemoryKey{target};
    EXPECT_EQ(other.receive(packet), Lines{"RC_ACK 0 62"});
    EXPECT_EQ(other.statuses(), Statuses{IBV_WC_REM_INV_REQ_ERR});
    EXPECT_EQ(other.side.qp->state(), IBV_QPS_ERR);
    EXPECT_FALSE(other.side.device->get_async_event()) << "the completion tells";
  }
}

TEST_F(Windows, send_with_invalidate_without_a_receive_keeps_the_window_valid) {
  bind(1, key);
  host.work();
  EXPECT_EQ(host.receive(send_inv(0, key)), Lines{"RC_ACK 0 2c"});
  EXPECT_TRUE(opens(key));
}

// b binds the first `length` bytes of its region to a window.
void bind_at_b(TwoHosts& hosts, MemoryWindow& window, uint32_t key, uint64_t length, unsigned access) {
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_BIND_MW;
  wr.bind_mw = {window.verbs(), key, {hosts.b.region->verbs(), hosts.b.address(0), length, access}};
  ASSERT_EQ(hosts.b.qp->post_send(&wr, nullptr), 0);
  hosts.run();
}

TEST(WindowsBetweenHosts, sender_invalidates_the_window_of_its_peer) {
  TwoHostsOptions options;
  options.access |= IBV_ACCESS_MW_BIND;
  TwoHosts hosts(options);
  hosts.connect();
  const auto window = must(hosts.b.pd->allocate_window(IBV_MW_TYPE_2));
  const uint32_t key = ibv_inc_rkey(window->rkey());
  bind_at_b(hosts, *window, key, 4096,
            IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED);
  hosts.b.completions();
  for (size_t i = 0; i < 4096; ++i) hosts.a.memory[i] = static_cast<uint8_t>(i);
  hosts.a.post(IBV_WR_RDMA_WRITE, 1, 0, 4096, 0, key);
  hosts.a.post(IBV_WR_RDMA_READ, 2, 8192, 100, 50, key);
  hosts.run();
  EXPECT_TRUE(std::equal(hosts.b.memory.begin(), hosts.b.memory.begin() + 4096, hosts.a.memory.begin()));
  EXPECT_TRUE(
      std::equal(hosts.a.memory.begin() + 8192, hosts.a.memory.begin() + 8292, hosts.a.memory.begin() + 50));
  // A SEND of two packets, the last of which carries the key and is lost once.
  hosts.b.receive(7, 65536, 4096);
  hosts.b.receive(8, 65536, 4096);
  bool lost = false;
  hosts.lose = [&](const std::string& line) {
    const bool now = !lost && line.find("SEND_LAST_INV") != std::string::npos;
    lost |= now;
    return now;
  };
  hosts.wire.clear();
  hosts.a.post(IBV_WR_SEND_WITH_INV, 3, 0, 2000, 0, 0, 0, key);
  hosts.run();
  EXPECT_TRUE(lost);
  EXPECT_EQ(hosts.wire[1], "> RC_SEND_LAST_INV 6 lost");
  const auto received = hosts.b.completions();
  ASSERT_EQ(received.size(), 1U);
  EXPECT_EQ(received[0].invalidated_rkey, key);
  EXPECT_EQ(hosts.a.completions().size(), 3U);
  hosts.a.post(IBV_WR_RDMA_WRITE, 4, 0, 8, 0, key);
  hosts.run();
  const auto completions = hosts.a.completions();
  ASSERT_EQ(completions.size(), 1U);
  EXPECT_EQ(completions[0].status, IBV_WC_REM_ACCESS_ERR);
}

TEST(WindowsBetweenHosts, destroying_the_queue_pair_unbinds_its_window) {
  TwoHostsOptions options;
  options.access |= IBV_ACCESS_MW_BIND;
  TwoHosts hosts(options);
  hosts.connect();
  const auto window = must(hosts.b.pd->allocate_window(IBV_MW_TYPE_2));
  bind_at_b(hosts, *window, window->rkey(), 64, IBV_ACCESS_REMOTE_WRITE);
  EXPECT_FALSE(hosts.b.region->deregister());
  hosts.b.qp.reset();
  EXPECT_TRUE(hosts.b.region->deregister());
}

}  // namespace
}  // namespace roci::test

// Every operation of every service with every flag: completions at both ends, empty and inline messages, and rejected
// requests.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/hosts/services.hpp"

namespace roci::test {
namespace {

struct Row {
  const char* name;
  ibv_qp_type service;
  ibv_wr_opcode opcode;
  ibv_wc_opcode sent;                  // opcode of the requester's completion
  std::optional<ibv_wc_opcode> taken;  // opcode of the receiver's completion, if any
  bool immediate;
};

constexpr Row kRows[] = {
    {"RC SEND", IBV_QPT_RC, IBV_WR_SEND, IBV_WC_SEND, IBV_WC_RECV, false},
    {"RC SEND_WITH_IMM", IBV_QPT_RC, IBV_WR_SEND_WITH_IMM, IBV_WC_SEND, IBV_WC_RECV, true},
    {"RC SEND_WITH_INV", IBV_QPT_RC, IBV_WR_SEND_WITH_INV, IBV_WC_SEND, IBV_WC_RECV, false},
    {"RC WRITE", IBV_QPT_RC, IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, std::nullopt, false},
    {"RC WRITE_WITH_IMM", IBV_QPT_RC, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE,
     IBV_WC_RECV_RDMA_WITH_IMM, true},
    {"RC READ", IBV_QPT_RC, IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, std::nullopt, false},
    {"UC SEND", IBV_QPT_UC, IBV_WR_SEND, IBV_WC_SEND, IBV_WC_RECV, false},
    {"UC SEND_WITH_IMM", IBV_QPT_UC, IBV_WR_SEND_WITH_IMM, IBV_WC_SEND, IBV_WC_RECV, true},
    {"UC WRITE", IBV_QPT_UC, IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, std::nullopt, false},
    {"UC WRITE_WITH_IMM", IBV_QPT_UC, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE,
     IBV_WC_RECV_RDMA_WITH_IMM, true},
    {"UD SEND", IBV_QPT_UD, IBV_WR_SEND, IBV_WC_SEND, IBV_WC_RECV, false},
    {"UD SEND_WITH_IMM", IBV_QPT_UD, IBV_WR_SEND_WITH_IMM, IBV_WC_SEND, IBV_WC_RECV, true},
};

constexpr uint32_t kImmediate = 0x01020304;
constexpr size_t kTo = 4096;  // offset at which messages arrive

// Two hosts with a queue pair of the row's service on each. The completion queue of b has a channel.
class Exchange {
 public:
  explicit Exchange(const Row& row) : row_(row), hosts_(options()) {
    hosts_.connect();
    channel = must(b().device->create_channel());
    b_cq = must(b().device->create_cq(16, nullptr, channel.get()));
    from = make_service(a(), row.service, nullptr, false);
    ibv_qp_init_attr init{};
    init.qp_type = row.service;
    init.cap = kUsualCap;
    to = must(b().pd->create_qp(&init, *b_cq, *b_cq));
    const ibv_gid gid_b = must(b().device->query_gid(1));
    if (row.service == IBV_QPT_UD) {
      open_datagrams(*from);
      open_datagrams(*to);
      address = must(a().pd->create_address_handle(address_of(gid_b)));
    } else {
      connect_to(*from, row.service, gid_b, to->qp_num(), {.rq_psn = 7, .sq_psn = 9});
      connect_to(*to, row.service, must(a().device->query_gid(1)), from->qp_num(),
                 {.rq_psn = 9, .sq_psn = 7});
    }
    fill(a(), 0, 1024, 3);
    fill(b(), kTo, 1024, 100);
    if (row.opcode != IBV_WR_SEND_WITH_INV) return;
    window = must(b().pd->allocate_window(IBV_MW_TYPE_2));
    window_key = ibv_inc_rkey(window->rkey());
    ibv_send_wr bind{};
    bind.opcode = IBV_WR_BIND_MW;
    bind.bind_mw = {window->verbs(), window_key, {b().region->verbs(), b().address(0), 64, 0}};
    EXPECT_EQ(to->post_send(&bind, nullptr), 0);
    hosts_.run(1ms);
  }

  Side& a() { return hosts_.a; }
  Side& b() { return hosts_.b; }
  int post(size_t length, unsigned flags) {
    return send(a(), *from,
                {.wr_id = 5,
                 .opcode = row_.opcode,
                 .length = length,
                 .flags = flags,
                 .immediate = window != nullptr ? __builtin_bswap32(window_key) : kImmediate,
                 .remote = b().address(kTo),
                 .rkey = b().region->rkey(),
                 .to = address.get(),
                 .remote_qp = to->qp_num()});
  }
  int take(size_t length) { return receive(b(), *to, 6, kTo - header(), length); }
  // Bytes before the payload of a datagram in the receive buffer.
  [[nodiscard]] size_t header() const { return row_.service == IBV_QPT_UD ? 40 : 0; }
  void run() { hosts_.run(1ms); }
  std::vector<ibv_wc> received() {
    std::vector<ibv_wc> all;
    ibv_wc wc{};
    while (b_cq->poll(1, &wc) == 1) all.push_back(wc);
    return all;
  }
  [[nodiscard]] bool is_read() const { return row_.opcode == IBV_WR_RDMA_READ; }
  // Returns whether the payload is at its destination.
  bool arrived(size_t length, uint8_t first = 3) {
    return is_read() ? holds(a(), 0, length, 100) : holds(b(), kTo, length, first);
  }

  std::unique_ptr<CompletionChannel> channel;
  std::unique_ptr<CompletionQueue> b_cq;
  std::unique_ptr<QueuePair> from, to;
  std::unique_ptr<AddressHandle> address;
  std::unique_ptr<MemoryWindow> window;
  uint32_t window_key = 0;

 private:
  static TwoHostsOptions options() {
    TwoHostsOptions o;
    o.access |= IBV_ACCESS_MW_BIND;
    return o;
  }
  const Row& row_;
  TwoHosts hosts_;
};

TEST(Operations, completions_contain_all_fields_at_both_ends) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.name);
    Exchange x(row);
    if (row.taken) {
      ASSERT_EQ(x.take(1024), 0);
    }
    ASSERT_EQ(x.post(600, IBV_SEND_SIGNALED), 0);
    x.run();
    const auto sent = x.a().completions();
    ASSERT_EQ(sent.size(), 1U);
    EXPECT_EQ(sent[0].wr_id, 5U);
    EXPECT_EQ(sent[0].status, IBV_WC_SUCCESS);
    EXPECT_EQ(sent[0].opcode, row.sent);
    EXPECT_EQ(sent[0].vendor_err, 0U);
    EXPECT_EQ(sent[0].byte_len, 600U);
    EXPECT_EQ(sent[0].qp_num, x.from->qp_num());
    EXPECT_EQ(sent[0].wc_flags, 0U);
    EXPECT_TRUE(x.arrived(600));
    const auto received = x.received();
    ASSERT_EQ(received.size(), row.taken ? 1U : 0U);
    if (!row.taken) continue;
    const ibv_wc& wc = received[0];
    EXPECT_EQ(wc.wr_id, 6U);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.opcode, *row.taken);
    EXPECT_EQ(wc.vendor_err, 0U);
    EXPECT_EQ(wc.byte_len, 600 + x.header());
    EXPECT_EQ(wc.qp_num, x.to->qp_num());
    EXPECT_EQ(wc.src_qp, x.from->qp_num());
    EXPECT_EQ(wc.pkey_index, 0U);
    EXPECT_EQ(wc.slid, 0U);
    EXPECT_EQ(wc.dlid_path_bits, 0U);
    EXPECT_EQ(wc.sl, row.service == IBV_QPT_UD ? 0xaU : 0U);  // datagram: UDP over IPv4, as mlx5 reports it
    const unsigned flags = (row.immediate ? unsigned{IBV_WC_WITH_IMM} : 0U) |
                           (x.window != nullptr ? unsigned{IBV_WC_WITH_INV} : 0U) |
                           (row.service == IBV_QPT_UD ? unsigned{IBV_WC_GRH} : 0U);
    EXPECT_EQ(wc.wc_flags, flags);
    if (row.immediate) {
      EXPECT_EQ(wc.imm_data, __builtin_bswap32(kImmediate));
    }
    if (x.window != nullptr) {
      EXPECT_EQ(wc.invalidated_rkey, x.window_key);
    }
  }
}

TEST(Operations, atomics_complete_with_their_opcode_and_8_bytes) {
  TwoHosts hosts;
  hosts.connect();
  for (const auto& [opcode, done] : {std::pair{IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP},
                                     std::pair{IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD}}) {
    ASSERT_EQ(hosts.a.atomic(opcode, 4, 0, hosts.b.address(8), hosts.b.region->rkey(), 1), 0);
    hosts.run();
    const auto all = hosts.a.completions();
    ASSERT_EQ(all.size(), 1U);
    EXPECT_EQ(all[0].status, IBV_WC_SUCCESS);
    EXPECT_EQ(all[0].opcode, done);
    EXPECT_EQ(all[0].byte_len, 8U);
    EXPECT_EQ(all[0].qp_num, hosts.a.qp->qp_num());
  }
}

// Keys and addresses are not validated (IBTA 9.7.4.1.5).
TEST(Operations, empty_messages_of_every_opcode_complete) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.name);
    Exchange x(row);
    if (row.taken) {
      ASSERT_EQ(x.take(x.header()), 0);
    }
    const std::vector<uint8_t> before = x.b().memory;
    ASSERT_EQ(x.post(0, IBV_SEND_SIGNALED), 0);
    x.run();
    const auto sent = x.a().completions();
    ASSERT_EQ(sent.size(), 1U);
    EXPECT_EQ(sent[0].status, IBV_WC_SUCCESS);
    EXPECT_EQ(sent[0].opcode, row.sent);
    EXPECT_EQ(sent[0].byte_len, 0U);
    const auto received = x.received();
    ASSERT_EQ(received.size(), row.taken ? 1U : 0U);
    if (row.taken) {
      EXPECT_EQ(received[0].status, IBV_WC_SUCCESS);
      EXPECT_EQ(received[0].byte_len, x.header());
      if (row.immediate) {
        EXPECT_EQ(received[0].imm_data, __builtin_bswap32(kImmediate));
      }
    }
    if (row.service != IBV_QPT_UD) {
      EXPECT_EQ(x.b().memory, before);
    }
  }
}

TEST(Operations, inline_data_of_every_opcode_may_change_after_the_post) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.name);
    Exchange x(row);
    if (row.taken) {
      ASSERT_EQ(x.take(1024), 0);
    }
    if (x.is_read()) {
      EXPECT_EQ(x.post(50, IBV_SEND_INLINE), EINVAL);
      continue;
    }
    EXPECT_EQ(x.post(kUsualCap.max_inline_data + 1, IBV_SEND_INLINE), EINVAL);
    ASSERT_EQ(x.post(50, IBV_SEND_INLINE), 0);
    fill(x.a(), 0, 50, 200);
    x.run();
    EXPECT_TRUE(x.arrived(50));
    EXPECT_EQ(x.received().size(), row.taken ? 1U : 0U);
  }
}

TEST(Operations, inline_data_requires_no_key) {
  for (const Row& row : kRows) {
    if (row.opcode == IBV_WR_RDMA_READ) continue;
    SCOPED_TRACE(row.name);
    Exchange x(row);
    if (row.taken) {
      ASSERT_EQ(x.take(1024), 0);
    }
    x.a().region.reset();
    std::vector<uint8_t> bytes{5, 6, 7, 8};
    x.a().region =
        must(x.a().pd->register_memory(bytes.data(), 4, 0));  // another region, so the post names another key
    ASSERT_EQ(x.post(4, IBV_SEND_INLINE | IBV_SEND_SIGNALED), 0);
    x.run();
    EXPECT_EQ(x.a().completions().at(0).status, IBV_WC_SUCCESS);
    EXPECT_TRUE(x.arrived(4));
  }
}

TEST(Operations, solicited_messages_that_consume_a_receive_raise_an_event) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.name);
    for (const unsigned flags : {0U, static_cast<unsigned>(IBV_SEND_SOLICITED)}) {
      Exchange x(row);
      x.b_cq->request_notify(true);
      if (row.taken) {
        ASSERT_EQ(x.take(1024), 0);
      }
      ASSERT_EQ(x.post(600, flags), 0);
      x.run();
      EXPECT_EQ(x.channel->get_event().has_value(), row.taken.has_value() && flags != 0);
      EXPECT_TRUE(x.arrived(600));
    }
  }
}

// A fence orders requests after READs and atomics, which only RC supports.
TEST(Operations, fence_flag_is_accepted_for_every_opcode) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.name);
    Exchange x(row);
    if (row.taken) {
      ASSERT_EQ(x.take(1024), 0);
    }
    ASSERT_EQ(x.post(300, IBV_SEND_FENCE), 0);
    x.run();
    EXPECT_TRUE(x.arrived(300));
  }
}

TEST(Operations, post_rejects_unsupported_flags) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.name);
    Exchange x(row);
    EXPECT_EQ(x.post(8, IBV_SEND_IP_CSUM), EINVAL);
    EXPECT_EQ(x.post(8, IBV_SEND_SIGNALED | 1U << 5), EINVAL);
  }
}

TEST(Operations, post_rejects_unsupported_opcodes) {
  for (const Row& row : {kRows[0], kRows[6], kRows[10]}) {
    SCOPED_TRACE(row.name);
    Exchange x(row);
    for (const ibv_wr_opcode opcode : {IBV_WR_TSO, IBV_WR_DRIVER1}) {
      ibv_send_wr good{}, wrong{};
      good.opcode = IBV_WR_SEND;
      good.wr.ud = {x.address ? x.address->handle() : nullptr, x.to->qp_num(), kQkey};
      good.next = &wrong;
      wrong.opcode = opcode;
      ibv_send_wr* bad = nullptr;
      EXPECT_EQ(x.from->post_send(&good, &bad), EOPNOTSUPP);
      EXPECT_EQ(bad, &wrong);
    }
  }
}

TEST(Operations, read_with_a_depth_of_zero_is_an_operation_error) {
  TwoHosts hosts({.reads = 0});
  hosts.connect();
  ASSERT_EQ(hosts.a.post(IBV_WR_RDMA_READ, 1, 0, 8, hosts.b.address(0), hosts.b.region->rkey()), 0);
  ASSERT_EQ(hosts.a.post(IBV_WR_RDMA_READ, 2, 0, 8, hosts.b.address(0), hosts.b.region->rkey()), 0);
  hosts.run();
  const auto all = hosts.a.completions();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].status, IBV_WC_LOC_QP_OP_ERR);
  EXPECT_EQ(all[1].status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(hosts.wire, Lines{});
}

// --- windows on UC, which does not support remote invalidation

class UnreliableWindows : public testing::Test {
 protected:
  static constexpr Row kWrite{"UC WRITE",        IBV_QPT_UC,   IBV_WR_RDMA_WRITE,
                              IBV_WC_RDMA_WRITE, std::nullopt, false};
  UnreliableWindows() : x_(kWrite) {}
  int bind(uint64_t wr_id, MemoryWindow& window, uint32_t key, uint64_t length) {
    ibv_send_wr wr{};
    wr.wr_id = wr_id;
    wr.opcode = IBV_WR_BIND_MW;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.bind_mw = {
        window.verbs(), key, {region().verbs(), x_.b().address(kTo), length, IBV_ACCESS_REMOTE_WRITE}};
    return x_.to->post_send(&wr, nullptr);
  }
  int invalidate(uint64_t wr_id, uint32_t key) {
    ibv_send_wr wr{};
    wr.wr_id = wr_id;
    wr.opcode = IBV_WR_LOCAL_INV;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.invalidate_rkey = key;
    return x_.to->post_send(&wr, nullptr);
  }
  // The peer writes with the key. Returns whether the data arrived.
  bool writes(uint32_t key, size_t length) {
    fill(x_.b(), kTo, 1024, 100);
    EXPECT_EQ(
        send(x_.a(), *x_.from,
             {.opcode = IBV_WR_RDMA_WRITE, .length = length, .remote = x_.b().address(kTo), .rkey = key}),
        0);
    x_.run();
    return x_.arrived(length);
  }
  MemoryRegion& region() { return *x_.b().region; }
  Exchange x_;
};

TEST_F(UnreliableWindows, peer_writes_through_a_window_until_it_is_invalidated) {
  auto window = must(x_.b().pd->allocate_window(IBV_MW_TYPE_2));
  const uint32_t key = ibv_inc_rkey(window->rkey());
  EXPECT_FALSE(writes(key, 300));
  ASSERT_EQ(bind(1, *window, key, 300), 0);
  x_.run();
  EXPECT_TRUE(writes(key, 300));
  EXPECT_FALSE(writes(key, 301));
  ASSERT_EQ(invalidate(2, key), 0);
  x_.run();
  EXPECT_FALSE(writes(key, 300));
  const auto all = x_.received();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].wr_id, 1U);
  EXPECT_EQ(all[0].opcode, IBV_WC_BIND_MW);
  EXPECT_EQ(all[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(all[1].wr_id, 2U);
  EXPECT_EQ(all[1].opcode, IBV_WC_LOCAL_INV);
  EXPECT_EQ(all[1].status, IBV_WC_SUCCESS);
}

TEST_F(UnreliableWindows, window_of_type_1_is_bound_and_unbound) {
  auto window = must(x_.b().pd->allocate_window(IBV_MW_TYPE_1));
  ibv_mw_bind request{};
  request.bind_info = {region().verbs(), x_.b().address(kTo), 300, IBV_ACCESS_REMOTE_WRITE};
  ASSERT_EQ(x_.to->bind_window(*window, request), 0);
  x_.run();
  EXPECT_TRUE(writes(window->rkey(), 300));
  request.bind_info.length = 0;
  ASSERT_EQ(x_.to->bind_window(*window, request), 0);
  x_.run();
  EXPECT_FALSE(writes(window->rkey(), 300));
}

TEST_F(UnreliableWindows, failed_bind_or_invalidation_stops_only_the_send_queue) {
  auto window = must(x_.b().pd->allocate_window(IBV_MW_TYPE_2));
  for (const bool binds : {true, false}) {
    const int posted = binds ? bind(1, *window, window->rkey(), 0) : invalidate(1, window->rkey());
    ASSERT_EQ(posted, 0);
    ASSERT_EQ(send(x_.b(), *x_.to, {.wr_id = 2, .length = 8}), 0);
    x_.run();
    const auto all = x_.received();
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[0].status, IBV_WC_MW_BIND_ERR);
    EXPECT_EQ(all[1].status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(x_.to->state(), IBV_QPS_SQE);
    EXPECT_TRUE(writes(region().rkey(), 100));  // the responder still receives
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTS;
    must(x_.to->modify(attr, IBV_QP_STATE));
  }
}

// --- several keys for the same memory

TEST(OverlappingRegions, writes_through_either_key_reach_the_bytes_of_its_region) {
  constexpr size_t kLength = 20'000;
  TwoHosts hosts;
  hosts.connect();
  auto& memory = hosts.b.memory;
  constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  auto first = must(hosts.b.pd->register_memory(memory.data(), 2 * kLength, kAccess));
  auto second = must(
      hosts.b.pd->register_memory(memory.data() + kLength / 2, 2 * kLength, kAccess | IBV_ACCESS_ZERO_BASED));
  EXPECT_NE(first->rkey(), second->rkey());
  // Both directions of the link are busy: b sends from memory next to the memory that a writes.
  fill(hosts.a, 0, kLength, 1);
  fill(hosts.a, kLength, kLength, 77);
  fill(hosts.b, 100'000, kLength, 9);
  ASSERT_EQ(hosts.a.post(IBV_WR_RDMA_WRITE, 1, 0, kLength, hosts.b.address(0), first->rkey()), 0);
  ASSERT_EQ(hosts.a.post(IBV_WR_RDMA_WRITE, 2, kLength, kLength, kLength / 2, second->rkey()), 0);
  ASSERT_EQ(
      hosts.b.post(IBV_WR_RDMA_WRITE, 3, 100'000, kLength, hosts.a.address(200'000), hosts.a.region->rkey()),
      0);
  hosts.run();
  EXPECT_EQ(completion_lines(hosts.a), (Lines{"1 SUCCESS 20000", "2 SUCCESS 20000"}));
  EXPECT_EQ(completion_lines(hosts.b), Lines{"3 SUCCESS 20000"});
  EXPECT_TRUE(holds(hosts.b, 0, kLength, 1));         // written through the first region
  EXPECT_TRUE(holds(hosts.b, kLength, kLength, 77));  // written at offset kLength / 2 of the second region
  EXPECT_TRUE(holds(hosts.a, 200'000, kLength, 9));
  // The later of two WRITEs to the same bytes takes effect, regardless of their keys.
  ASSERT_EQ(hosts.a.post(IBV_WR_RDMA_WRITE, 4, kLength, kLength, hosts.b.address(0), first->rkey()), 0);
  ASSERT_EQ(hosts.a.post(IBV_WR_RDMA_WRITE, 5, 0, kLength / 2, 0, second->rkey()), 0);
  hosts.run();
  EXPECT_TRUE(holds(hosts.b, 0, kLength / 2, 77));
  EXPECT_TRUE(holds(hosts.b, kLength / 2, kLength / 2, 1));
}

}  // namespace
}  // namespace roci::test

// XRC between two hosts: packets, queue selection, memory access, and destruction of targets, queues and domains.
#include <gtest/gtest.h>

#include <cstring>
#include <tuple>
#include <utility>

#include "base/rng.hpp"
#include "support/hosts/xrc.hpp"

namespace roci::test {
namespace {

constexpr uint8_t kFirstByte = 7;
constexpr int kAllAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

// Host b has a domain with two shared receive queues, each with its own completion queue, and two targets. Each
// target has an initiator on host a.
class Xrc : public testing::Test {
 protected:
  Xrc() {
    hosts_.connect();
    domain_ = must(hosts_.b.device->open_xrc_domain());
    for (size_t i = 0; i < 2; ++i) {
      cqs_.push_back(must(hosts_.b.device->create_cq(64)));
      srqs_.push_back(make_xrc_srq(hosts_.b, *domain_, *cqs_[i]));
      from_.push_back(make_service(hosts_.a, IBV_QPT_XRC_SEND));
      to_.push_back(make_target(*domain_));
    }
    for (size_t i = 0; i < 2; ++i) join(i);
    hosts_.run(1ms);
    hosts_.wire.clear();
    fill(hosts_.a, 0, 4096, kFirstByte);
  }
  void join(size_t i) {
    connect_to(*from_[i], IBV_QPT_XRC_SEND, must(hosts_.b.device->query_gid(1)), to_[i]->qp_num(),
               {.sq_psn = 0x1000});
    connect_to(*to_[i], IBV_QPT_XRC_RECV, must(hosts_.a.device->query_gid(1)), from_[i]->qp_num(),
               {.rq_psn = 0x1000, .access = kAllAccess});
  }
  void give(size_t queue, uint64_t first, uint64_t count, size_t length = 1000) {
    for (uint64_t i = first; i < first + count; ++i)
      ASSERT_EQ(receive(hosts_.b, *srqs_.at(queue), i, 1000 * i, length), 0);
  }
  void sends(size_t who, size_t queue, const SendOptions& options) {
    ASSERT_EQ(send_xrc(hosts_.a, *from_.at(who), {.request = options, .srq = srqs_.at(queue)->xrc_number()}),
              0);
  }
  // A request for offset `remote` of host b's memory.
  [[nodiscard]] SendOptions remotely(ibv_wr_opcode opcode, size_t length, size_t remote = 50'000) const {
    return {.opcode = opcode,
            .length = length,
            .immediate = 9,
            .remote = hosts_.b.address(remote),
            .rkey = hosts_.b.region->rkey()};
  }
  Lines take_wire() { return std::exchange(hosts_.wire, {}); }

  TwoHosts hosts_;
  std::unique_ptr<XrcDomain> domain_;
  std::vector<std::unique_ptr<CompletionQueue>> cqs_;
  std::vector<std::unique_ptr<SharedReceiveQueue>> srqs_;
  std::vector<std::unique_ptr<QueuePair>> from_, to_;
};

TEST_F(Xrc, request_packets_contain_the_queue_number_and_responses_do_not) {
  give(0, 1, 1);
  size_t requests = 0, answers = 0;
  hosts_.watch = [&](const Packet& packet, char direction) {
    if (direction == '>') {
      ++requests;
      EXPECT_TRUE(packet.xrc_eth && packet.xrc_eth->reserved == 0 &&
                  packet.xrc_eth->srq.value() == srqs_[0]->xrc_number());
    } else {
      ++answers;
      EXPECT_FALSE(packet.xrc_eth);
    }
    return SimVerdict{};
  };
  sends(0, 0, {.length = 600, .flags = IBV_SEND_SOLICITED});
  sends(0, 0, remotely(IBV_WR_RDMA_WRITE, 600));
  sends(0, 0, remotely(IBV_WR_RDMA_READ, 600));
  hosts_.run(1ms);
  EXPECT_EQ(requests, 7U);
  EXPECT_EQ(answers, 9U);
}

struct OnTheWire {
  const char* name;
  ibv_wr_opcode opcode;
  size_t length;
  bool takes_receive;
  Lines wire;
};

TEST_F(Xrc, every_operation_sends_its_packets_and_completes) {
  const OnTheWire rows[] = {
      {"SEND", IBV_WR_SEND, 10, true, {"> XRC_SEND_ONLY 0", "< XRC_ACK 0 ack"}},
      {"long SEND",
       IBV_WR_SEND,
       600,
       true,
       {"> XRC_SEND_FIRST 0", "> XRC_SEND_MIDDLE 1", "> XRC_SEND_LAST 2", "< XRC_ACK 0 ack",
        "< XRC_ACK 1 ack", "< XRC_ACK 2 ack"}},
      {"empty SEND_WITH_IMM", IBV_WR_SEND_WITH_IMM, 0, true, {"> XRC_SEND_ONLY_IMM 0", "< XRC_ACK 0 ack"}},
      {"long SEND_WITH_IMM",
       IBV_WR_SEND_WITH_IMM,
       300,
       true,
       {"> XRC_SEND_FIRST 0", "> XRC_SEND_LAST_IMM 1", "< XRC_ACK 0 ack", "< XRC_ACK 1 ack"}},
      {"WRITE", IBV_WR_RDMA_WRITE, 256, false, {"> XRC_WRITE_ONLY 0", "< XRC_ACK 0 ack"}},
      {"long WRITE",
       IBV_WR_RDMA_WRITE,
       700,
       false,
       {"> XRC_WRITE_FIRST 0", "> XRC_WRITE_MIDDLE 1", "> XRC_WRITE_LAST 2", "< XRC_ACK 0 ack",
        "< XRC_ACK 1 ack", "< XRC_ACK 2 ack"}},
      {"WRITE_WITH_IMM",
       IBV_WR_RDMA_WRITE_WITH_IMM,
       256,
       true,
       {"> XRC_WRITE_ONLY_IMM 0", "< XRC_ACK 0 ack"}},
      {"long WRITE_WITH_IMM",
       IBV_WR_RDMA_WRITE_WITH_IMM,
       300,
       true,
       {"> XRC_WRITE_FIRST 0", "> XRC_WRITE_LAST_IMM 1", "< XRC_ACK 0 ack", "< XRC_ACK 1 ack"}},
      {"READ", IBV_WR_RDMA_READ, 256, false, {"> XRC_READ_REQUEST 0", "< XRC_READ_RESP_ONLY 0"}},
      {"long READ",
       IBV_WR_RDMA_READ,
       600,
       false,
       {"> XRC_READ_REQUEST 0", "< XRC_READ_RESP_FIRST 0", "< XRC_READ_RESP_MIDDLE 1",
        "< XRC_READ_RESP_LAST 2"}},
      {"CMP_SWAP", IBV_WR_ATOMIC_CMP_AND_SWP, 8, false, {"> XRC_CMP_SWAP 0", "< XRC_ATOMIC_ACK 0"}},
      {"FETCH_ADD", IBV_WR_ATOMIC_FETCH_AND_ADD, 8, false, {"> XRC_FETCH_ADD 0", "< XRC_ATOMIC_ACK 0"}},
  };
  for (const OnTheWire& row : rows) {
    SCOPED_TRACE(row.name);
    for (QueuePair* qp : {from_[0].get(), to_[0].get()}) move_to(*qp, IBV_QPS_RESET);
    join(0);
    hosts_.run(1ms);
    take_wire();
    const bool reads = row.opcode == IBV_WR_RDMA_READ;
    fill(hosts_.a, 0, 4096, reads ? 0 : kFirstByte);
    fill(hosts_.b, 50'000, 4096, reads ? kFirstByte : 0);
    if (row.takes_receive) give(0, 1, 1);
    sends(0, 0, remotely(row.opcode, row.length, 50'000));
    hosts_.run(1ms);
    EXPECT_EQ(take_wire(), row.wire);
    const auto done = hosts_.a.completions();
    ASSERT_EQ(done.size(), 1U);
    EXPECT_EQ(done[0].status, IBV_WC_SUCCESS);
    EXPECT_EQ(done[0].qp_num, from_[0]->qp_num());
    ibv_wc wc{};
    ASSERT_EQ(cqs_[0]->poll(1, &wc), row.takes_receive ? 1 : 0);
    const bool sends_bytes = row.opcode == IBV_WR_SEND || row.opcode == IBV_WR_SEND_WITH_IMM;
    if (row.takes_receive) {
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
      EXPECT_EQ(wc.wr_id, 1U);
      EXPECT_EQ(wc.byte_len, row.length);
      EXPECT_EQ(wc.opcode, sends_bytes ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM);
      EXPECT_EQ(wc.qp_num, to_[0]->qp_num());
      EXPECT_EQ(wc.src_qp, from_[0]->qp_num());
      const bool immediate = row.opcode != IBV_WR_SEND;
      EXPECT_EQ(wc.wc_flags, immediate ? unsigned{IBV_WC_WITH_IMM} : 0U);
      if (immediate) {
        EXPECT_EQ(wc.imm_data, __builtin_bswap32(9));
      }
    }
    const bool writes = row.opcode == IBV_WR_RDMA_WRITE || row.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    EXPECT_TRUE(!sends_bytes || holds(hosts_.b, 1000, row.length, kFirstByte));
    EXPECT_TRUE(!writes || holds(hosts_.b, 50'000, row.length, kFirstByte));
    EXPECT_TRUE(!reads || holds(hosts_.a, 0, row.length, kFirstByte));
  }
  EXPECT_EQ(completion_lines_of(*cqs_[1]), Lines{});
  EXPECT_EQ(hosts_.b.completions().size(), 0U);
}

TEST_F(Xrc, send_with_invalidate_is_rejected) {
  give(0, 1, 2);
  sends(0, 0, {.opcode = IBV_WR_SEND_WITH_INV, .length = 10});
  sends(1, 0, {.opcode = IBV_WR_SEND_WITH_INV, .length = 300});
  hosts_.run(1ms);
  EXPECT_EQ(take_wire(), (Lines{"> XRC_SEND_ONLY_INV 0", "> XRC_SEND_FIRST 0", "> XRC_SEND_LAST_INV 1",
                                "< XRC_ACK 0 nak 2", "< XRC_ACK 0 ack", "< XRC_ACK 1 nak 2"}));
  const auto done = hosts_.a.completions();
  ASSERT_EQ(done.size(), 2U);
  for (const ibv_wc& wc : done) EXPECT_EQ(wc.status, IBV_WC_REM_ACCESS_ERR);
}

TEST_F(Xrc, targets_share_a_queue_and_a_target_uses_several_queues) {
  give(0, 1, 3);
  give(1, 4, 3);
  for (const size_t who : {0U, 1U}) {
    sends(who, 0, {.length = 300});
    sends(who, 1, {.length = 20});
    hosts_.run(1ms);
  }
  EXPECT_EQ(completion_lines(hosts_.a),
            Lines({"1 SUCCESS 300", "1 SUCCESS 20", "1 SUCCESS 300", "1 SUCCESS 20"}));
  for (size_t queue = 0; queue < 2; ++queue) {
    ibv_wc wc[4];
    ASSERT_EQ(cqs_[queue]->poll(4, wc), 2);
    for (size_t who = 0; who < 2; ++who) {
      EXPECT_EQ(wc[who].wr_id, (queue == 0 ? 1 : 4) + who);
      EXPECT_EQ(wc[who].byte_len, queue == 0 ? 300U : 20U);
      EXPECT_EQ(wc[who].qp_num, to_[who]->qp_num());
    }
  }
}

TEST_F(Xrc, empty_queue_causes_rnr_naks_until_a_post) {
  give(1, 1, 1);
  sends(0, 0, {.length = 600});
  sends(0, 1, {.length = 10});
  hosts_.run(100us);
  EXPECT_EQ(hosts_.b.counter("rnr_naks_sent"), 1U);
  EXPECT_EQ(completion_lines_of(*cqs_[1]), Lines{})
      << "it is behind the other, and messages keep their order";
  give(0, 2, 1);
  hosts_.run(10ms);
  EXPECT_EQ(completion_lines_of(*cqs_[0]), Lines{"2 SUCCESS 600"});
  EXPECT_EQ(completion_lines_of(*cqs_[1]), Lines{"1 SUCCESS 10"});
  EXPECT_TRUE(holds(hosts_.b, 2000, 600, kFirstByte));
}

TEST_F(Xrc, limit_event_names_the_queue) {
  give(0, 1, 2);
  ASSERT_EQ(arm(*srqs_[0], 2), 0);
  event_lines(hosts_.b);
  sends(1, 0, {.length = 10});
  hosts_.run(1ms);
  EXPECT_EQ(event_lines(hosts_.b), Lines{"SRQ_LIMIT_REACHED " + std::to_string(srqs_[0]->number())});
}

// The protection domain is that of the shared receive queue, the access flags are those of the target.
TEST_F(Xrc, memory_belongs_to_the_protection_domain_of_the_named_queue) {
  Side other;
  other.pd = must(hosts_.b.device->allocate_pd());
  std::vector<uint8_t> bytes(1000, 3);
  const auto region = must(other.pd->register_memory(bytes.data(), bytes.size(), kAllAccess));
  const auto srq = make_xrc_srq(other, *domain_, *cqs_[1]);
  const auto asks = [&](ibv_wr_opcode opcode, uint32_t queue) {
    return XrcOptions{.request = {.opcode = opcode,
                                  .length = 600,
                                  .remote = reinterpret_cast<uint64_t>(bytes.data()),
                                  .rkey = region->rkey()},
                      .srq = queue};
  };
  ASSERT_EQ(send_xrc(hosts_.a, *from_[0], asks(IBV_WR_RDMA_READ, srq->xrc_number())), 0);
  // The READ is answered with the domain of the queue that it named, although another message follows.
  ASSERT_EQ(send_xrc(hosts_.a, *from_[0],
                     {.request = remotely(IBV_WR_RDMA_WRITE, 10), .srq = srqs_[0]->xrc_number()}),
            0);
  ASSERT_EQ(send_xrc(hosts_.a, *from_[0], asks(IBV_WR_RDMA_WRITE, srq->xrc_number())), 0);
  hosts_.run(1ms);
  EXPECT_EQ(completion_lines(hosts_.a), Lines({"1 SUCCESS 600", "1 SUCCESS 10", "1 SUCCESS 600"}));
  ASSERT_EQ(send_xrc(hosts_.a, *from_[0], asks(IBV_WR_RDMA_WRITE, srqs_[0]->xrc_number())), 0);
  ASSERT_EQ(send_xrc(hosts_.a, *from_[1], asks(IBV_WR_RDMA_READ, srqs_[0]->xrc_number())), 0);
  hosts_.run(1ms);
  EXPECT_EQ(completion_lines(hosts_.a), Lines({"1 REM_ACCESS_ERR", "1 REM_ACCESS_ERR"}));
  EXPECT_EQ(hosts_.b.counter("naks_access_sent"), 2U);
}

TEST_F(Xrc, operation_that_the_target_does_not_permit_is_rejected) {
  for (QueuePair* qp : {from_[0].get(), to_[0].get()}) move_to(*qp, IBV_QPS_RESET);
  connect_to(*from_[0], IBV_QPT_XRC_SEND, must(hosts_.b.device->query_gid(1)), to_[0]->qp_num(),
             {.sq_psn = 0x1000});
  connect_to(*to_[0], IBV_QPT_XRC_RECV, must(hosts_.a.device->query_gid(1)), from_[0]->qp_num(),
             {.rq_psn = 0x1000, .access = IBV_ACCESS_REMOTE_READ});
  sends(0, 0, remotely(IBV_WR_RDMA_READ, 100));
  sends(0, 0, remotely(IBV_WR_RDMA_WRITE, 100));
  hosts_.run(1ms);
  const auto done = hosts_.a.completions();
  ASSERT_EQ(done.size(), 2U);
  EXPECT_EQ(done[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(done[1].status, IBV_WC_REM_INV_REQ_ERR);
}

TEST_F(Xrc, requests_complete_once_with_lost_duplicate_and_delayed_packets) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    for (size_t i = 0; i < 2; ++i) {
      for (QueuePair* qp : {from_[i].get(), to_[i].get()}) move_to(*qp, IBV_QPS_RESET);
      join(i);
    }
    hosts_.run(1ms);
    Rng fault_rng(seed), choice(seed + 1000);
    hosts_.watch = [&](const Packet&, char) {
      SimVerdict verdict;
      verdict.drop = fault_rng.chance(0.05);
      verdict.duplicates = fault_rng.chance(0.05) ? 1 : 0;
      if (fault_rng.chance(0.05)) verdict.extra_delay = 15us;
      return verdict;
    };
    uint64_t counted = 0;
    std::memset(hosts_.b.memory.data() + 60'000, 0, sizeof counted);
    Lines expected[2];
    uint64_t given = 1;
    for (int i = 0; i < 24; ++i) {
      const size_t who = choice.below(2), queue = choice.below(2), length = choice.below(900);
      switch (choice.below(4)) {
        case 0:
          sends(who, queue, remotely(IBV_WR_RDMA_WRITE, length));
          break;
        case 1: {
          XrcOptions add{.request = remotely(IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 60'000),
                         .srq = srqs_[queue]->xrc_number(),
                         .compare_add = 1};
          add.request.offset = 8192;
          ASSERT_EQ(send_xrc(hosts_.a, *from_[who], add), 0);
          ++counted;
          break;
        }
        case 2: {
          SendOptions read = remotely(IBV_WR_RDMA_READ, length, 70'000);
          read.offset = 20'000;
          sends(who, queue, read);
          break;
        }
        default: {
          // One at a time, so that the test knows which message uses which receive request.
          give(queue, given, 1);
          sends(who, queue, {.length = length});
          hosts_.run(300ms);
          expected[queue].push_back(std::to_string(given) + " SUCCESS " + std::to_string(length));
          EXPECT_TRUE(holds(hosts_.b, 1000 * given, length, kFirstByte));
          std::memset(hosts_.b.memory.data() + 1000 * given, 0, length);
          ++given;
        }
      }
    }
    hosts_.run(2s);
    hosts_.watch = nullptr;
    const auto done = hosts_.a.completions();
    EXPECT_EQ(done.size(), 24U);
    for (const ibv_wc& wc : done) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    for (size_t queue = 0; queue < 2; ++queue) EXPECT_EQ(completion_lines_of(*cqs_[queue]), expected[queue]);
    uint64_t sum = 0;
    std::memcpy(&sum, hosts_.b.memory.data() + 60'000, sizeof sum);
    EXPECT_EQ(sum, counted);
  }
  EXPECT_GT(hosts_.a.counter("packets_retransmitted"), 0U);
  EXPECT_GT(hosts_.b.counter("requests_duplicate"), 0U);
  EXPECT_GT(hosts_.b.counter("requests_out_of_order"), 0U);
}

TEST_F(Xrc, target_in_error_flushes_only_the_request_of_its_started_message) {
  give(0, 1, 2);
  hosts_.lose = [](const std::string& line) { return line == "> XRC_SEND_LAST 1"; };
  sends(0, 0, {.length = 300});
  hosts_.run(100us);
  hosts_.lose = nullptr;
  event_lines(hosts_.b);
  move_to(*to_[0], IBV_QPS_ERR);
  hosts_.run(1ms);
  EXPECT_EQ(completion_lines_of(*cqs_[0]), Lines{"1 status " + std::to_string(IBV_WC_WR_FLUSH_ERR)});
  EXPECT_EQ(event_lines(hosts_.b), Lines{}) << "no queue is its own, so none has its last request behind it";
  sends(1, 0, {.length = 30});
  hosts_.run(1ms);
  EXPECT_EQ(completion_lines_of(*cqs_[0]), Lines{"2 SUCCESS 30"});
}

TEST_F(Xrc, reset_of_a_target_keeps_the_completions_of_the_queue) {
  give(0, 1, 1);
  sends(0, 0, {.length = 30});
  hosts_.run(1ms);
  move_to(*to_[0], IBV_QPS_RESET);
  EXPECT_EQ(completion_lines_of(*cqs_[0]), Lines{"1 SUCCESS 30"});
}

TEST_F(Xrc, destroying_a_queue_during_a_message_moves_the_target_to_error) {
  give(0, 1, 1);
  give(1, 2, 1);
  hosts_.lose = [](const std::string& line) { return line == "> XRC_SEND_MIDDLE 1"; };
  sends(0, 0, {.length = 600});
  hosts_.run(100us);
  hosts_.lose = nullptr;
  must(destroy(srqs_[0]));
  EXPECT_EQ(srqs_[0], nullptr);
  hosts_.run(100ms);
  const auto done = hosts_.a.completions();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].status, IBV_WC_REM_INV_REQ_ERR);
  EXPECT_EQ(to_[0]->state(), IBV_QPS_ERR);
  EXPECT_EQ(hosts_.b.counter("rx_wrong_srq"), 1U);
  EXPECT_EQ(completion_lines_of(*cqs_[0]), Lines{}) << "its request went with it";
  sends(1, 1, {.length = 10});
  hosts_.run(1ms);
  EXPECT_EQ(completion_lines_of(*cqs_[1]), Lines{"2 SUCCESS 10"});
}

TEST_F(Xrc, duplicate_read_is_answered_after_its_queue_was_destroyed) {
  hosts_.lose = [done = false](const std::string& line) mutable {
    return !done && line == "< XRC_READ_RESP_LAST 2" && (done = true);
  };
  sends(0, 0, remotely(IBV_WR_RDMA_READ, 600));
  hosts_.run(100us);
  must(destroy(srqs_[0]));
  hosts_.run(100ms);
  EXPECT_EQ(completion_lines(hosts_.a), Lines{"1 SUCCESS 600"});
  EXPECT_EQ(hosts_.b.counter("read_replays"), 1U);
}

TEST_F(Xrc, domain_is_busy_while_queues_or_targets_use_it) {
  const auto busy = [&](const std::string& users) {
    const Status status = destroy(domain_);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, EBUSY);
    EXPECT_EQ(status.error().message,
              "XRC domain: " + users + " shared receive queues and targets use it; destroy them first");
  };
  busy("4");
  srqs_.clear();
  busy("2");
  to_.clear();
  must(destroy(domain_));
  EXPECT_EQ(domain_, nullptr);
  must(destroy(domain_));
}

TEST_F(Xrc, queues_and_targets_work_after_the_domain_object_is_deleted) {
  domain_.reset();
  give(0, 1, 1);
  sends(0, 0, {.length = 30});
  hosts_.run(1ms);
  EXPECT_EQ(completion_lines_of(*cqs_[0]), Lines{"1 SUCCESS 30"});
}

TEST_F(Xrc, cq_overflow_moves_only_the_affected_target_to_error) {
  auto small = must(hosts_.b.device->create_cq(1));
  const auto srq = make_xrc_srq(hosts_.b, *domain_, *small);
  for (uint64_t i = 1; i <= 2; ++i) ASSERT_EQ(receive(hosts_.b, *srq, i, 1000 * i, 100), 0);
  event_lines(hosts_.b);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(send_xrc(hosts_.a, *from_[0], {.request = {.length = 10}, .srq = srq->xrc_number()}), 0);
    hosts_.run(1ms);
  }
  EXPECT_EQ(event_lines(hosts_.b), Lines({"CQ_ERR " + std::to_string(small->number()),
                                          "QP_FATAL " + std::to_string(to_[0]->qp_num())}));
  EXPECT_EQ(to_[0]->state(), IBV_QPS_ERR);
  EXPECT_EQ(to_[1]->state(), IBV_QPS_RTS);
}

TEST_F(Xrc, invalid_posts_and_creation_parameters_are_rejected) {
  EXPECT_EQ(send_xrc(hosts_.b, *to_[0], {.request = {.length = 10}, .srq = srqs_[0]->xrc_number()}), EINVAL);
  EXPECT_EQ(receive(hosts_.b, *to_[0], 1, 0, 10), EINVAL);
  EXPECT_EQ(receive(hosts_.a, *from_[0], 1, 0, 10), EINVAL);
  const auto plain = make_srq(hosts_.b, 4);
  EXPECT_EQ(plain->xrc_number(), 0U);
  EXPECT_NE(srqs_[0]->xrc_number(), srqs_[1]->xrc_number());
  ibv_qp_init_attr init{};
  init.qp_type = IBV_QPT_XRC_SEND;
  const auto refused = [](const auto& result) { return result ? std::string() : result.error().message; };
  EXPECT_EQ(refused(hosts_.b.pd->create_qp(&init, *hosts_.b.cq, *hosts_.b.cq, plain.get())),
            "queue pair: XRC_SEND does not receive; a shared receive queue is not allowed");
  EXPECT_EQ(refused(domain_->create_target(&init)),
            "XRC domain: a target must be of type XRC_RECV, not of type 9");
  init.qp_type = IBV_QPT_XRC_RECV;
  EXPECT_EQ(refused(hosts_.b.pd->create_qp(&init, *hosts_.b.cq, *hosts_.b.cq)),
            "queue pair: XRC_RECV is created by an XRC domain and has no protection domain");
  init.qp_type = IBV_QPT_RC;
  EXPECT_EQ(refused(hosts_.b.pd->create_qp(&init, *hosts_.b.cq, *hosts_.b.cq, srqs_[0].get())),
            "queue pair: an XRC shared receive queue is allowed only for XRC_RECV targets");
  ibv_srq_init_attr srq{};
  srq.attr.max_wr = 1;
  EXPECT_EQ(refused(hosts_.a.pd->create_srq(&srq, *domain_, *hosts_.a.cq)),
            "shared receive queue: the XRC domain, the completion queue and the protection domain must "
            "belong to the same device");
}

TEST_F(Xrc, query_returns_type_and_attributes_of_initiator_and_target) {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  int mark = 0;
  const auto target = make_target(*domain_, &mark);
  target->query(&attr, &init);
  EXPECT_EQ(init.qp_type, IBV_QPT_XRC_RECV);
  EXPECT_EQ(init.qp_context, &mark);
  EXPECT_EQ(init.cap.max_send_wr + init.cap.max_recv_wr + init.cap.max_send_sge + init.cap.max_recv_sge, 0U);
  to_[0]->query(&attr, &init);
  EXPECT_EQ(attr.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(attr.dest_qp_num, from_[0]->qp_num());
  EXPECT_EQ(attr.rq_psn, 0x1000U);
  EXPECT_EQ(attr.sq_psn, 5000U);
  from_[0]->query(&attr, &init);
  EXPECT_EQ(init.qp_type, IBV_QPT_XRC_SEND);
  EXPECT_EQ(init.cap.max_send_wr, 16U);
  EXPECT_EQ(init.cap.max_recv_wr + init.cap.max_recv_sge, 0U);
  EXPECT_EQ(attr.sq_psn, 0x1000U);
  EXPECT_EQ(attr.rq_psn, 100U);
}

TEST_F(Xrc, missing_target_exhausts_the_retries_and_flushes_later_requests) {
  to_[0].reset();
  sends(0, 0, {.length = 10});
  sends(0, 0, {.length = 10});
  hosts_.run(10s);
  const auto done = hosts_.a.completions();
  ASSERT_EQ(done.size(), 2U);
  EXPECT_EQ(done[0].status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(done[1].status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(from_[0]->state(), IBV_QPS_ERR);
}

TEST_F(Xrc, initiator_and_target_drain_and_resume) {
  give(0, 1, 1);
  for (const auto& [side, qp, type] : {std::tuple{&hosts_.a, from_[0].get(), IBV_QPT_XRC_SEND},
                                       std::tuple{&hosts_.b, to_[0].get(), IBV_QPT_XRC_RECV}}) {
    event_lines(*side);
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_SQD;
    attr.en_sqd_async_notify = 1;
    must(qp->modify(attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
    hosts_.run(1ms);
    EXPECT_EQ(event_lines(*side), Lines{"SQ_DRAINED " + std::to_string(qp->qp_num())}) << type;
  }
  sends(0, 0, {.length = 30});
  hosts_.run(1ms);
  EXPECT_EQ(completion_lines_of(*cqs_[0]), Lines{});
  for (QueuePair* qp : {to_[0].get(), from_[0].get()}) move_to(*qp, IBV_QPS_RTS);
  hosts_.run(1ms);
  EXPECT_EQ(completion_lines_of(*cqs_[0]), Lines{"1 SUCCESS 30"});
}

}  // namespace
}  // namespace roci::test

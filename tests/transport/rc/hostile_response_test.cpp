// Invalid responses: without a request, with past or future PSNs, with syndromes or lengths that do not match the
// request. The requester increments a named counter, or completes the named request with an error. It writes no byte
// that no request asked for.
#include <gtest/gtest.h>

#include <functional>

#include "support/hosts/lone_host.hpp"

namespace roci::test {
namespace {

struct Answered {
  const char* name;
  std::function<Packet(const LoneHost&)> packet;
  const char* counter;
};

TEST(HostilePacket, unexpected_acknowledgments_are_counted_and_ignored) {
  const Answered kRows[] = {
      {"ACK of the future", [](const LoneHost& h) { return h.response(Opcode::kRcAcknowledge, 1); },
       "responses_ghost"},
      {"ACK half the circle ahead",
       [](const LoneHost& h) { return h.response(Opcode::kRcAcknowledge, 0x7fffff); }, "responses_ghost"},
      {"ACK of the past", [](const LoneHost& h) { return h.response(Opcode::kRcAcknowledge, -1); },
       "responses_duplicate"},
      {"reserved kind", [](const LoneHost& h) { return h.response(Opcode::kRcAcknowledge, 0, 0x40); },
       "responses_ghost"},
      {"reserved NAK", [](const LoneHost& h) { return h.response(Opcode::kRcAcknowledge, 0, 0x65); },
       "responses_ghost"},
      {"NAK for datagrams", [](const LoneHost& h) { return h.response(Opcode::kRcAcknowledge, 0, 0x64); },
       "responses_ghost"},
      {"fatal NAK of the future",
       [](const LoneHost& h) { return h.response(Opcode::kRcAcknowledge, 1, 0x62); }, "responses_ghost"},
      {"fatal NAK of the past",
       [](const LoneHost& h) { return h.response(Opcode::kRcAcknowledge, -1, 0x62); }, "responses_duplicate"},
  };
  for (const Answered& row : kRows) {
    SCOPED_TRACE(row.name);
    LoneHost host;
    ASSERT_EQ(host.post(IBV_WR_RDMA_WRITE, 1, 8), 0);
    EXPECT_EQ(host.work(), Lines{"RC_WRITE_ONLY 0"});
    const uint64_t before = host.side.counter(row.counter);
    EXPECT_EQ(host.receive(row.packet(host)), Lines{});
    EXPECT_EQ(host.side.counter(row.counter), before + 1);
    EXPECT_EQ(host.statuses(), Statuses{});
    EXPECT_EQ(host.side.qp->state(), IBV_QPS_RTS);
    host.receive(host.response(Opcode::kRcAcknowledge, 0));
    EXPECT_EQ(host.statuses(), Statuses{IBV_WC_SUCCESS});
  }
}

TEST(HostilePacket, data_response_to_a_write_fails_it_and_completes_earlier_requests) {
  for (const Opcode opcode : {Opcode::kRcReadResponseOnly, Opcode::kRcAtomicAcknowledge}) {
    for (const bool read_behind : {false, true}) {
      LoneHost host;
      ASSERT_EQ(host.post(IBV_WR_RDMA_WRITE, 1, 300), 0);  // 2 packets
      ASSERT_EQ(host.post(IBV_WR_RDMA_WRITE, 2, 8), 0);
      if (read_behind) {
        ASSERT_EQ(host.post(IBV_WR_RDMA_READ, 3, 8), 0);
      }
      host.work();
      host.receive(host.response(opcode, 2, 0x1f, opcode == Opcode::kRcReadResponseOnly ? 8 : 0));
      Statuses expected{IBV_WC_SUCCESS, IBV_WC_BAD_RESP_ERR};
      if (read_behind) expected.push_back(IBV_WC_WR_FLUSH_ERR);
      EXPECT_EQ(host.statuses(), expected);
      EXPECT_EQ(host.side.qp->state(), IBV_QPS_ERR);
    }
  }
}

TEST(HostilePacket, response_to_an_idle_queue_pair_is_counted) {
  LoneHost host;
  host.receive(host.response(Opcode::kRcAcknowledge, 0));
  host.receive(host.response(Opcode::kRcReadResponseOnly, 0, 0x1f, 16));
  EXPECT_EQ(host.side.counter("responses_ghost"), 2U);
}

TEST(HostilePacket, fatal_nak_fails_its_request_and_flushes_later_ones) {
  const std::pair<uint8_t, ibv_wc_status> kRows[] = {
      {0x61, IBV_WC_REM_INV_REQ_ERR}, {0x62, IBV_WC_REM_ACCESS_ERR}, {0x63, IBV_WC_REM_OP_ERR}};
  for (const auto& [syndrome, status] : kRows) {
    LoneHost host;
    for (uint64_t id = 1; id <= 4; ++id)
      ASSERT_EQ(host.post(IBV_WR_RDMA_WRITE, id, 300), 0);  // 2 packets each
    host.work();
    host.receive(host.response(Opcode::kRcAcknowledge, 5, syndrome));
    EXPECT_EQ(host.statuses(), (Statuses{IBV_WC_SUCCESS, IBV_WC_SUCCESS, status, IBV_WC_WR_FLUSH_ERR}));
    EXPECT_EQ(host.side.qp->state(), IBV_QPS_ERR);
    ASSERT_EQ(host.post(IBV_WR_RDMA_WRITE, 5, 8), 0);  // posted in the error state: flushed at once
    host.work();
    EXPECT_EQ(host.statuses(), Statuses{IBV_WC_WR_FLUSH_ERR});
  }
}

TEST(HostilePacket, fatal_nak_after_an_unanswered_read_flushes_the_read) {
  LoneHost host;
  ASSERT_EQ(host.post(IBV_WR_RDMA_READ, 1, 300), 0);
  ASSERT_EQ(host.post(IBV_WR_RDMA_WRITE, 2, 8), 0);
  ASSERT_EQ(host.post(IBV_WR_RDMA_WRITE, 3, 8), 0);
  host.work();
  host.receive(host.response(Opcode::kRcAcknowledge, 3, 0x62));
  EXPECT_EQ(host.statuses(), (Statuses{IBV_WC_WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR, IBV_WC_REM_ACCESS_ERR}));
}

struct BadResponse {
  const char* name;
  Opcode opcode;
  int ahead;
  uint8_t syndrome;
  size_t payload;
  Statuses statuses;
};

TEST(HostilePacket, mismatched_read_response_fails_the_read) {
  const Statuses bad{IBV_WC_BAD_RESP_ERR};
  const BadResponse kRows[] = {
      {"too long", Opcode::kRcReadResponseFirst, 0, 0x1f, 260, bad},
      {"too short", Opcode::kRcReadResponseFirst, 0, 0x1f, 252, bad},
      {"ends too early", Opcode::kRcReadResponseOnly, 0, 0x1f, 256, bad},
      {"last as the first of two", Opcode::kRcReadResponseLast, 0, 0x1f, 256, bad},
      {"middle as the first of two", Opcode::kRcReadResponseMiddle, 0, 0x1f, 256, bad},
      {"NAK in its AETH", Opcode::kRcReadResponseFirst, 0, 0x62, 256, bad},
      {"RNR in its AETH", Opcode::kRcReadResponseFirst, 0, 0x21, 256, bad},
      {"behind a gap", Opcode::kRcReadResponseLast, 1, 0x1f, 44, {}},
      {"right", Opcode::kRcReadResponseFirst, 0, 0x1f, 256, {}},
  };
  for (const BadResponse& row : kRows) {
    SCOPED_TRACE(row.name);
    LoneHost host;
    ASSERT_EQ(host.post(IBV_WR_RDMA_READ, 1, 300), 0);
    host.work();
    const std::vector<uint8_t> before = host.side.memory;
    host.receive(host.response(row.opcode, row.ahead, row.syndrome, row.payload));
    EXPECT_EQ(host.statuses(), row.statuses);
    EXPECT_EQ(host.side.qp->state(), row.statuses.empty() ? IBV_QPS_RTS : IBV_QPS_ERR);
    const bool right = std::string(row.name) == "right";
    EXPECT_EQ(host.side.memory == before, !right);
    EXPECT_EQ(host.side.counter("responses_received"), right ? 1U : 0U);
    EXPECT_EQ(host.side.counter("responses_out_of_order"), row.ahead > 0 ? 1U : 0U);
  }
}

TEST(HostilePacket, read_response_into_a_deregistered_region_is_a_protection_error) {
  LoneHost host;
  ASSERT_EQ(host.post(IBV_WR_RDMA_READ, 1, 16), 0);
  host.work();
  host.side.region.reset();
  host.receive(host.response(Opcode::kRcReadResponseOnly, 0, 0x1f, 16));
  EXPECT_EQ(host.statuses(), Statuses{IBV_WC_LOC_PROT_ERR});
  EXPECT_EQ(host.side.memory[LoneHost::kGuard], 0xa5);
}

TEST(HostilePacket, requests_are_dropped_in_init_and_responses_in_rtr) {
  LoneHost host;
  host.to_bare(IBV_QPS_RESET);
  host.to_init();
  host.receive(host.write(Opcode::kRcWriteOnly, 0, 0, 8, 8));
  EXPECT_EQ(host.side.counter("rx_bad_state"), 1U);
  host.to_rtr();
  host.receive(host.response(Opcode::kRcAcknowledge, 0));
  EXPECT_EQ(host.side.counter("rx_bad_state"), 2U);
  EXPECT_EQ(host.receive(host.write(Opcode::kRcWriteOnly, 0, 0, 8, 8)), Lines{"RC_ACK 0 1f"});
}

}  // namespace
}  // namespace roci::test

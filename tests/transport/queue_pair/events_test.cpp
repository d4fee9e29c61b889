// Asynchronous event of each queue pair fault. A fault that a completion reports raises no event.
#include <gtest/gtest.h>

#include "support/hosts/lone_host.hpp"

namespace roci::test {
namespace {

using Types = std::vector<ibv_event_type>;

Types events(const LoneHost& host) {
  Types types;
  while (const auto event = host.side.device->get_async_event()) types.push_back(event->type);
  return types;
}

TEST(TransportEvents, first_packet_in_rtr_raises_communication_established_once) {
  LoneHost host;
  host.to_bare(IBV_QPS_RESET);
  host.to_init();
  host.to_rtr();
  EXPECT_EQ(events(host), Types{});
  host.receive(host.write(Opcode::kRcWriteOnly, 0, 0, 8, 8));
  host.receive(host.write(Opcode::kRcWriteOnly, 1, 0, 8, 8));
  const auto event = host.side.device->get_async_event();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->type, IBV_EVENT_COMM_EST);
  EXPECT_EQ(event->object.source, EventSource::kQueuePair);
  EXPECT_EQ(event->object.number, host.side.qp->qp_num());
  EXPECT_EQ(events(host), Types{});
}

TEST(TransportEvents, unknown_source_and_packets_in_rts_raise_no_event) {
  LoneHost host;
  host.receive(host.write(Opcode::kRcWriteOnly, 0, 0, 8, 8));
  EXPECT_EQ(host.side.counter("requests_received"), 1U);
  EXPECT_EQ(events(host), Types{});
  host.to_bare(IBV_QPS_RESET);
  host.to_init();
  host.to_rtr();
  Packet from_unknown_peer = host.write(Opcode::kRcWriteOnly, 0, 0, 8, 8);
  from_unknown_peer.between(MacAddress::local(2), IpAddress::from_v4(0x0a000003), MacAddress::local(1),
                            IpAddress::from_v4(0x0a000001));
  host.receive(from_unknown_peer);
  EXPECT_EQ(host.side.counter("rx_wrong_source"), 1U);
  EXPECT_EQ(events(host), Types{});
}

TEST(TransportEvents, invalid_request_raises_a_request_error) {
  LoneHost host;
  EXPECT_EQ(host.receive(host.request(Opcode::kRcSendMiddle, 0, 256)).back(), "RC_ACK 0 61");
  EXPECT_EQ(events(host), Types{IBV_EVENT_QP_REQ_ERR});
  EXPECT_EQ(host.side.qp->state(), IBV_QPS_ERR);
}

TEST(TransportEvents, forbidden_access_raises_an_access_error) {
  LoneHost host;
  Packet write = host.write(Opcode::kRcWriteOnly, 0, 0, 8, 8);
  write.with_reth(host.side.address(LoneHost::kGuard), MemoryKey{host.side.region->rkey() ^ 0x100}, 8);
  EXPECT_EQ(host.receive(write).back(), "RC_ACK 0 62");
  EXPECT_EQ(events(host), Types{IBV_EVENT_QP_ACCESS_ERR});
}

// IBTA 11.6.2: the receive request of a WRITE with immediate completes with Local Access Error.
TEST(TransportEvents, forbidden_write_with_immediate_fails_its_receive_request) {
  for (const bool has_receive : {true, false}) {
    LoneHost host;
    ibv_recv_wr receive{};
    ibv_recv_wr* bad = nullptr;
    if (has_receive) {
      ASSERT_EQ(host.side.qp->post_recv(&receive, &bad), 0);
    }
    Packet write = host.write(Opcode::kRcWriteOnlyImm, 0, 0, 8, 8);
    write.with_reth(host.side.address(LoneHost::kGuard), MemoryKey{host.side.region->rkey() ^ 0x100}, 8);
    EXPECT_EQ(host.receive(write).back(), "RC_ACK 0 62");
    EXPECT_EQ(host.side.qp->state(), IBV_QPS_ERR);
    if (has_receive) {
      EXPECT_EQ(host.statuses(), Statuses{IBV_WC_LOC_ACCESS_ERR});
      EXPECT_EQ(events(host), Types{});
    } else {
      EXPECT_EQ(host.statuses(), Statuses{});
      EXPECT_EQ(events(host), Types{IBV_EVENT_QP_ACCESS_ERR});
    }
  }
}

TEST(TransportEvents, deregistration_during_a_read_raises_an_access_error) {
  LoneHostOptions options;
  options.region = 65536;
  LoneHost host(options);
  host.port().blocked = true;
  // More responses than the responder can stage while the port is blocked.
  host.receive(host.read(0, 0, 65536));
  host.side.region.reset();
  host.port().blocked = false;
  host.work();
  EXPECT_EQ(events(host), Types{IBV_EVENT_QP_ACCESS_ERR});
}

TEST(TransportEvents, atomic_on_a_locally_misaligned_word_raises_a_fatal_event) {
  LoneHostOptions options;
  options.access |= IBV_ACCESS_REMOTE_ATOMIC;
  LoneHost host(options);
  Host& insides = host.side.device->host();
  // Registered with an offset of one byte: the address is aligned for the peer, but not in this process.
  ASSERT_TRUE(insides.memory().add_at(MemoryKey{0x4400}, host.core().config.pd, 0x10000,
                                      host.side.memory.data() + 1, 64, options.access));
  Packet add = host.request(Opcode::kRcFetchAdd, 0);
  add.atomic_eth = AtomicEthValues{.va = 0x10000, .rkey = MemoryKey{0x4400}, .swap_or_add = 1, .compare = 0};
  EXPECT_EQ(host.receive(add).back(), "RC_ACK 0 63");
  EXPECT_EQ(events(host), Types{IBV_EVENT_QP_FATAL});
}

TEST(TransportEvents, fault_in_a_receive_completion_raises_no_event) {
  {
    LoneHost host;  // the message is longer than the receive
    host.side.receive(1, LoneHost::kGuard, 8);
    EXPECT_EQ(host.receive(host.request(Opcode::kRcSendOnly, 0, 16)).back(), "RC_ACK 0 61");
    EXPECT_EQ(host.statuses(), std::vector{IBV_WC_LOC_LEN_ERR});
    EXPECT_EQ(events(host), Types{});
  }
  {
    LoneHost host;  // the receive names memory that is not registered
    host.side.receive(1, 0, 8);
    EXPECT_EQ(host.receive(host.request(Opcode::kRcSendOnly, 0, 8)).back(), "RC_ACK 0 63");
    EXPECT_EQ(host.statuses(), std::vector{IBV_WC_LOC_PROT_ERR});
    EXPECT_EQ(events(host), Types{});
  }
}

TEST(TransportEvents, cq_overflow_raises_one_event_for_the_cq_and_one_for_the_qp) {
  LoneHostOptions options;
  options.cq_entries = 1;
  LoneHost host(options);
  for (uint64_t i = 0; i < 5; ++i) host.post(IBV_WR_SEND, i, 8);
  host.work();
  host.receive(host.response(Opcode::kRcAcknowledge, 4));
  const auto first = host.side.device->get_async_event();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->type, IBV_EVENT_CQ_ERR);
  EXPECT_EQ(first->object.source, EventSource::kCompletionQueue);
  EXPECT_EQ(first->object.number, host.side.cq->number());
  EXPECT_EQ(events(host), Types{IBV_EVENT_QP_FATAL});
  EXPECT_EQ(host.side.qp->state(), IBV_QPS_ERR);
}

TEST(TransportEvents, events_contain_the_context_of_their_object) {
  LoneHost host;
  int mine = 0, its = 0;
  const auto cq = must(host.side.device->create_cq(1, &its));
  ibv_qp_init_attr init{};
  init.qp_type = IBV_QPT_RC;
  init.qp_context = &mine;
  init.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
  host.side.qp = must(host.side.pd->create_qp(&init, *cq, *cq));
  host.connect();
  for (uint64_t i = 0; i < 2; ++i) host.post(IBV_WR_SEND, i, 8, IBV_SEND_SIGNALED);
  host.work();
  host.receive(host.response(Opcode::kRcAcknowledge, 1));
  EXPECT_EQ(host.side.device->get_async_event()->object.context, &its);
  EXPECT_EQ(host.side.device->get_async_event()->object.context, &mine);
  host.side.qp.reset();
}

TEST(TransportEvents, a_lost_event_is_counted) {
  LoneHost host;
  for (uint32_t i = 0; i < EventQueue::kCapacity; ++i)
    host.side.device->host().events().raise({IBV_EVENT_PORT_ERR, {EventSource::kPort, i, nullptr}});
  host.receive(host.request(Opcode::kRcSendMiddle, 0, 256));
  EXPECT_EQ(host.side.counter("events_lost"), 1U);
}

}  // namespace
}  // namespace roci::test

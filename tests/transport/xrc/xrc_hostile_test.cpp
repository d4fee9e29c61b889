// Invalid packets at XRC initiators and targets: unknown queues, queues of another domain, RC opcodes, opcodes for
// the other role, wrong sequence numbers.
#include <gtest/gtest.h>

#include "support/hosts/lone_host.hpp"
#include "support/hosts/xrc.hpp"

namespace roci::test {
namespace {

constexpr uint8_t kXrcInvalidRequest = 0x61;
const Lines kNaked{"XRC_ACK 0 61"};

class HostileXrc : public testing::Test {
 protected:
  HostileXrc() {
    const ibv_gid peer = gid_of("10.0.0.2");
    domain_ = must(host_.side.device->open_xrc_domain());
    other_domain_ = must(host_.side.device->open_xrc_domain());
    srq_ = make_xrc_srq(host_.side, *domain_, *host_.side.cq);
    second_ = make_xrc_srq(host_.side, *domain_, *host_.side.cq);
    foreign_ = make_xrc_srq(host_.side, *other_domain_, *host_.side.cq);
    target_ = make_target(*domain_);
    initiator_ = make_service(host_.side, IBV_QPT_XRC_SEND);
    connect_to(*target_, IBV_QPT_XRC_RECV, peer, LoneHost::kPeerQp.value());
    connect_to(*initiator_, IBV_QPT_XRC_SEND, peer, LoneHost::kPeerQp.value());
    host_.work();
    for (SharedReceiveQueue* srq : {srq_.get(), second_.get(), foreign_.get()}) {
      for (uint64_t i = 1; i <= 4; ++i)
        EXPECT_EQ(receive(host_.side, *srq, i, LoneHost::kGuard + 256 * i, 1024), 0);
    }
  }
  // A request for the target's first queue, `ahead` packets after the expected PSN.
  [[nodiscard]] Packet request(Opcode opcode, int ahead, size_t payload = 0) const {
    Packet packet = host_.write(opcode, ahead, 0, payload, static_cast<uint32_t>(payload));
    packet.bth.destination_qp = Qpn{target_->qp_num()};
    return packet.with_xrc_srq(Srqn{srq_->xrc_number()});
  }
  void connect_again(ibv_mtu path_mtu) {
    move_to(*target_, IBV_QPS_RESET);
    connect_to(*target_, IBV_QPT_XRC_RECV, gid_of("10.0.0.2"), LoneHost::kPeerQp.value(),
               {.path_mtu = path_mtu});
    host_.work();
  }
  [[nodiscard]] uint64_t counter(const char* name) const { return host_.side.counter(name); }

  LoneHost host_;
  std::unique_ptr<XrcDomain> domain_, other_domain_;
  std::unique_ptr<SharedReceiveQueue> srq_, second_, foreign_;
  std::unique_ptr<QueuePair> target_, initiator_;
};

TEST_F(HostileXrc, reserved_bits_of_the_xrc_header_are_ignored) {
  Packet packet = request(Opcode::kXrcSendOnly, 0, 10);
  packet.xrc_eth->reserved = 0xff;
  EXPECT_EQ(host_.receive(packet), Lines{"XRC_ACK 0 1f"});
  EXPECT_EQ(completion_lines(host_.side), Lines{"1 SUCCESS 10"});
}

TEST_F(HostileXrc, unknown_queue_or_queue_of_another_domain_is_an_invalid_request) {
  const uint32_t numbers[] = {0, 0xffffff, srq_->number(), srq_->xrc_number() ^ 1, foreign_->xrc_number()};
  uint64_t refused = 0;
  for (const uint32_t number : numbers) {
    for (const Opcode opcode : {Opcode::kXrcSendOnly, Opcode::kXrcSendFirst, Opcode::kXrcWriteOnly,
                                Opcode::kXrcReadRequest, Opcode::kXrcFetchAdd}) {
      SCOPED_TRACE(std::to_string(number) + " " + std::string(opcode_info(opcode).name));
      const std::vector<uint8_t> before = host_.side.memory;
      const size_t payload = opcode == Opcode::kXrcSendFirst ? 256 : opcode == Opcode::kXrcSendOnly ? 10 : 0;
      EXPECT_EQ(host_.receive(request(opcode, 0, payload).with_xrc_srq(Srqn{number})), kNaked);
      EXPECT_EQ(target_->state(), IBV_QPS_ERR);
      EXPECT_EQ(counter("rx_wrong_srq"), ++refused);
      EXPECT_EQ(counter("naks_invalid_sent"), refused);
      EXPECT_EQ(host_.side.memory, before);
      EXPECT_EQ(completion_lines(host_.side), Lines{});
      EXPECT_EQ(event_lines(host_.side), Lines{"other " + std::to_string(target_->qp_num())});  // QP_REQ_ERR
      connect_again(IBV_MTU_256);
    }
  }
  EXPECT_EQ(host_.receive(request(Opcode::kXrcSendOnly, 0, 10)), Lines{"XRC_ACK 0 1f"});
}

TEST_F(HostileXrc, queue_change_within_a_message_is_an_invalid_request) {
  EXPECT_EQ(host_.receive(request(Opcode::kXrcSendFirst, 0, 256)), Lines{"XRC_ACK 0 1f"});
  EXPECT_EQ(host_.receive(request(Opcode::kXrcSendLast, 1, 10).with_xrc_srq(Srqn{second_->xrc_number()})),
            Lines{"XRC_ACK 1 61"});
  EXPECT_EQ(counter("rx_wrong_srq"), 1U);
  EXPECT_EQ(completion_lines(host_.side), Lines{"1 WR_FLUSH_ERR"});
}

TEST_F(HostileXrc, middle_packet_with_another_queue_is_not_placed) {
  connect_again(IBV_MTU_1024);
  ASSERT_EQ(host_.receive(request(Opcode::kXrcWriteFirst, 0, 1024)
                              .with_reth(host_.side.address(LoneHost::kGuard),
                                         MemoryKey{host_.side.region->rkey()}, 3072)),
            Lines{"XRC_ACK 0 1f"});
  const std::vector<uint8_t> before = host_.side.memory;
  EXPECT_EQ(
      host_.receive(request(Opcode::kXrcWriteMiddle, 1, 1024).with_xrc_srq(Srqn{second_->xrc_number()})),
      Lines{"XRC_ACK 1 61"});
  EXPECT_EQ(host_.side.memory, before);
}

TEST_F(HostileXrc, queue_number_of_duplicate_and_early_packets_is_not_checked) {
  EXPECT_EQ(host_.receive(request(Opcode::kXrcSendOnly, 0, 10)), Lines{"XRC_ACK 0 1f"});
  EXPECT_EQ(host_.receive(request(Opcode::kXrcSendOnly, 0, 10).with_xrc_srq(Srqn{1})), Lines{"XRC_ACK 0 1f"});
  EXPECT_EQ(host_.receive(request(Opcode::kXrcSendOnly, 5, 10).with_xrc_srq(Srqn{1})), Lines{"XRC_ACK 1 60"});
  EXPECT_EQ(counter("rx_wrong_srq"), 0U);
  EXPECT_EQ(target_->state(), IBV_QPS_RTS);
}

TEST_F(HostileXrc, opcodes_of_rc_and_of_the_other_role_are_counted_and_dropped) {
  const auto towards = [](Packet packet, const QueuePair& qp) {
    packet.bth.destination_qp = Qpn{qp.qp_num()};
    return packet;
  };
  const std::vector<uint8_t> before = host_.side.memory;
  const Packet packets[] = {
      towards(host_.write(Opcode::kRcWriteOnly, 0, 0, 16, 16), *target_),
      towards(host_.request(Opcode::kRcSendOnly, 0, 16), *target_),
      towards(host_.request(Opcode::kRcSendOnly, 0, 16), *initiator_),
      towards(host_.response(Opcode::kRcAcknowledge, 0), *initiator_),
      towards(request(Opcode::kXrcSendOnly, 0, 16), *host_.side.qp),  // RC
      towards(host_.response(Opcode::kXrcAcknowledge, 0), *host_.side.qp),
      towards(request(Opcode::kXrcSendOnly, 0, 16), *initiator_),
      towards(host_.response(Opcode::kXrcAcknowledge, 0), *target_),
      towards(host_.response(Opcode::kXrcReadResponseOnly, 0, 0x1f, 16), *target_),
  };
  uint64_t counted = 0;
  for (const Packet& packet : packets) {
    SCOPED_TRACE(opcode_info(packet.bth.opcode).name);
    EXPECT_EQ(host_.receive(packet), Lines{});
    EXPECT_EQ(counter("rx_wrong_transport"), ++counted);
  }
  EXPECT_EQ(host_.side.memory, before);
  for (const QueuePair* qp : {target_.get(), initiator_.get(), host_.side.qp.get()})
    EXPECT_EQ(qp->state(), IBV_QPS_RTS);
}

TEST_F(HostileXrc, invalid_requests_get_a_fatal_nak) {
  const uint64_t outside = host_.side.address(LoneHost::kGuard) + 8192;
  const struct {
    const char* name;
    Packet packet;
    uint8_t syndrome;
  } rows[] = {
      {"a middle packet of nothing", request(Opcode::kXrcSendMiddle, 0, 256), kXrcInvalidRequest},
      {"a first packet that is short", request(Opcode::kXrcSendFirst, 0, 100), kXrcInvalidRequest},
      {"WRITE beyond the region",
       request(Opcode::kXrcWriteOnly, 0, 16).with_reth(outside, MemoryKey{host_.side.region->rkey()}, 16),
       0x62},
      {"atomic that is not allowed", request(Opcode::kXrcFetchAdd, 0), kXrcInvalidRequest},
      {"SEND longer than its receive", request(Opcode::kXrcSendOnly, 0, 256), kXrcInvalidRequest},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const bool too_long = row.packet.bth.opcode == Opcode::kXrcSendOnly;
    const auto small = make_xrc_srq(host_.side, *domain_, *host_.side.cq);
    ASSERT_EQ(receive(host_.side, *small, 9, LoneHost::kGuard, 100), 0);
    Packet packet = row.packet;
    if (too_long) packet.with_xrc_srq(Srqn{small->xrc_number()});
    char line[32];
    std::snprintf(line, sizeof line, "XRC_ACK 0 %02x", row.syndrome);
    EXPECT_EQ(host_.receive(packet), Lines{line});
    EXPECT_EQ(target_->state(), IBV_QPS_ERR);
    EXPECT_TRUE(host_.guards_whole());
    EXPECT_EQ(completion_lines(host_.side), too_long ? Lines{"9 LOC_LEN_ERR"} : Lines{});
    connect_again(IBV_MTU_256);
  }
}

TEST_F(HostileXrc, fatal_nak_fails_the_request_of_the_initiator) {
  ASSERT_EQ(
      send_xrc(host_.side, *initiator_, {.request = {.offset = LoneHost::kGuard, .length = 10}, .srq = 5}),
      0);
  EXPECT_EQ(host_.work(), Lines{"XRC_SEND_ONLY 0"});
  Packet nak = host_.response(Opcode::kXrcAcknowledge, 0, kXrcInvalidRequest);
  nak.bth.destination_qp = Qpn{initiator_->qp_num()};
  host_.receive(nak);
  EXPECT_EQ(host_.statuses(), Statuses{IBV_WC_REM_INV_REQ_ERR});
  EXPECT_EQ(initiator_->state(), IBV_QPS_ERR);
}

}  // namespace
}  // namespace roci::test

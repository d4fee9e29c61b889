// Selective repeat with an attacker who knows the queue pair number and guesses a PSN within the reorder window.
#include <gtest/gtest.h>

#include "support/hosts/capability_exchange.hpp"

namespace roci::test {
namespace {

class ReorderHostile : public CapabilityPeer {
 protected:
  ReorderHostile() {
    answer_its_request();
    for (uint64_t i = 0; i < 8; ++i) EXPECT_EQ(host.side.receive(i, LoneHost::kGuard + 64 * i, 64), 0);
  }
  // A SEND of the peer, or of the attacker with another content.
  Packet send(int ahead, uint8_t content) {
    Packet packet = host.request(Opcode::kRcSendOnly, ahead);
    packet.with_payload(ByteVector(8, content));
    return packet;
  }
  // First byte of each received message.
  std::vector<int> received() {
    std::vector<int> contents;
    for (const ibv_wc& wc : host.side.completions()) {
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
      contents.push_back(host.side.memory[LoneHost::kGuard + 64 * wc.wr_id]);
    }
    return contents;
  }
  static constexpr uint8_t kForged = 0xee;
};

TEST_F(ReorderHostile, neither_of_two_different_packets_with_one_psn_is_executed) {
  for (const bool forged_first : {true, false}) {
    SCOPED_TRACE(forged_first);
    const int base = forged_first ? 0 : 4;
    const auto content = [&](int ahead) { return static_cast<uint8_t>(10 + base + ahead); };
    host.receive(send(base + 1, content(1)));
    host.receive(send(base + 2, forged_first ? kForged : content(2)));
    const auto naks = host.receive(send(base + 2, forged_first ? content(2) : kForged));
    EXPECT_EQ(naks, Lines{"RC_ACK " + std::to_string(base) + " 60"}) << "asks again";
    EXPECT_EQ(counter("ooo_conflicts"), forged_first ? 1U : 2U);
    host.receive(send(base + 2, kForged));  // no third packet takes the place
    host.receive(send(base + 3, content(3)));
    const auto after = host.receive(send(base, content(0)));
    EXPECT_EQ(received(), (std::vector<int>{content(0), content(1)}));
    EXPECT_EQ(after.back(), "RC_ACK " + std::to_string(base + 2) + " 60")
        << "the discarded packet is missing";
    host.receive(send(base + 2, content(2)));
    EXPECT_EQ(received(), (std::vector<int>{content(2), content(3)}));
  }
}

TEST_F(ReorderHostile, discarded_packet_is_requested_if_nothing_else_is_buffered) {
  host.receive(send(1, kForged));
  host.receive(send(1, 11));
  const auto after = host.receive(send(0, 10));
  ASSERT_FALSE(after.empty());
  EXPECT_EQ(after.back(), "RC_ACK 1 60");
  host.receive(send(1, 11));
  EXPECT_EQ(received(), (std::vector<int>{10, 11}));
}

// Another operation, length, or header of the same PSN.
TEST_F(ReorderHostile, packets_are_compared_with_their_headers) {
  const Packet real = host.write(Opcode::kRcWriteOnly, 1, 1024, 16, 16);
  Packet elsewhere = real, longer = host.write(Opcode::kRcWriteOnly, 1, 1024, 20, 20);
  elsewhere.with_reth(host.side.address(LoneHost::kGuard + 2048), MemoryKey{host.side.region->rkey()}, 16);
  Packet solicited = real;
  solicited.bth.solicited = true;
  uint64_t conflicts = 0;
  for (const Packet& other : {elsewhere, longer, send(1, 1), solicited}) {
    host.to_bare(IBV_QPS_RESET);
    host.connect();
    host.receive(real);
    host.receive(other);
    EXPECT_EQ(counter("ooo_conflicts"), ++conflicts);
  }
}

// A retransmission may request an acknowledgment, and switches change marks.
TEST_F(ReorderHostile, copies_of_one_packet_are_no_conflict) {
  Packet first = send(1, 11);
  first.bth.ack_request = false;
  host.receive(first);
  host.receive(send(1, 11));
  Packet marked = send(1, 11);
  marked.bth.fecn = true;
  ExtensionBlock block;
  block.lsn = Lsn{0};
  Packet with_block = send(1, 11);
  with_block.with_extensions(block);
  host.receive(marked);
  host.receive(with_block);
  EXPECT_EQ(counter("ooo_conflicts"), 0U);
  host.receive(send(0, 10));
  EXPECT_EQ(received(), (std::vector<int>{10, 11}));
}

class ReorderOverflow : public CapabilityPeer {
 protected:
  static LoneHostOptions one_completion() {
    LoneHostOptions o = options();
    o.cq_entries = 1;
    return o;
  }
  ReorderOverflow() : CapabilityPeer(one_completion()) { answer_its_request(); }
};

// The second of three packets that become due at once loses its completion.
TEST_F(ReorderOverflow, buffered_packets_are_not_executed_in_the_error_state) {
  for (uint64_t i = 0; i < 3; ++i) ASSERT_EQ(host.side.receive(i, LoneHost::kGuard + 64 * i, 64), 0);
  for (const int ahead : {2, 1, 0}) {
    Packet packet = host.request(Opcode::kRcSendOnly, ahead);
    packet.with_payload(ByteVector(8, uint8_t{7}));
    host.receive(packet);
  }
  EXPECT_EQ(host.side.qp->state(), IBV_QPS_ERR);
  EXPECT_EQ(host.side.memory[LoneHost::kGuard + 64], 7);
  EXPECT_NE(host.side.memory[LoneHost::kGuard + 128], 7);
}

// Without payload, the bytes after the headers are undefined: they differ in each copy of a packet.
class ReorderWithoutPayload : public CapabilityPeer {
 protected:
  static LoneHostOptions without_payload() {
    LoneHostOptions o = options();
    o.header_only = true;
    return o;
  }
  ReorderWithoutPayload() : CapabilityPeer(without_payload()) { answer_its_request(); }
  Packet write(int ahead, uint8_t undefined) {
    Packet packet = host.write(Opcode::kRcWriteOnly, ahead, 64 * static_cast<size_t>(ahead), 64, 64);
    packet.with_payload(ByteVector(64, undefined));
    return packet;
  }
};

TEST_F(ReorderWithoutPayload, copies_are_compared_without_payload_and_none_is_placed) {
  const std::vector<uint8_t> before = host.side.memory;
  host.receive(write(1, 0x11));
  host.receive(write(1, 0x22));
  EXPECT_EQ(counter("ooo_conflicts"), 0U);
  const auto after = host.receive(write(0, 0x33));
  ASSERT_FALSE(after.empty());
  EXPECT_EQ(after.back(), "RC_ACK 1 1f");
  EXPECT_EQ(host.side.memory, before);
}

}  // namespace
}  // namespace roci::test

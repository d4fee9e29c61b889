// A PSN returns after 2^24 packets. The responder then must not take a new request for an earlier one with its PSN. The
// packets in between are executed directly, without frames and ports.
#include <gtest/gtest.h>

#include "support/hosts/bare_context.hpp"
#include "support/hosts/lone_host.hpp"
#include "wire/roce/frame.hpp"

namespace roci::test {
namespace {

constexpr uint32_t kWholeSpace = 1U << 24, kMtu = 256, kLargeRead = 64 << 20;

LoneHostOptions options() {
  LoneHostOptions out;
  out.reads = 128;
  out.region = kLargeRead;
  out.access |= IBV_ACCESS_REMOTE_ATOMIC;
  return out;
}

class StaleRequests : public testing::Test {
 protected:
  // Executes a request `count` times, each with the expected PSN.
  void execute(const Packet& request, uint32_t count) {
    ByteVector bytes = encode_packet(Packet{request}.finish());
    const auto length = static_cast<uint32_t>(bytes.size());
    const FrameView view = parse_frame(bytes.data(), length, length);
    ASSERT_NE(view.opcode, nullptr);
    IgnoredEvents events;
    BareContext bare(events, &host.side.device->host().memory());
    Responder& responder = host.core().responder;
    uint8_t* const psn = bytes.data() + view.bth_offset + 9;
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t expected = responder.expected().value();
      psn[0] = static_cast<uint8_t>(expected >> 16);
      psn[1] = static_cast<uint8_t>(expected >> 8);
      psn[2] = static_cast<uint8_t>(expected);
      responder.on_request(bare.context, view, nullptr, kNoExtensions);
      if (view.opcode->operation == Operation::kReadRequest) responder.discard_responses();
    }
    ASSERT_EQ(bare.counters.get(Counter::kRequestsReceived), count);
  }
  // Requests no acknowledgment.
  void execute_writes(uint32_t count) {
    Packet write = host.write(Opcode::kRcWriteOnly, 0, 0, 0, 0);
    write.bth.ack_request = false;
    execute(write, count);
  }
  // As if the peer had received the responses.
  void execute_reads(uint32_t packets) {
    constexpr uint32_t kPerRead = kLargeRead / kMtu;
    execute(host.read(0, 0, kLargeRead), packets / kPerRead);
    if (packets % kPerRead != 0) execute(host.read(0, 0, packets % kPerRead * kMtu), 1);
  }
  [[nodiscard]] Packet add(uint64_t value) const {
    Packet packet = host.request(Opcode::kRcFetchAdd, 0);
    packet.atomic_eth->va = host.side.address(LoneHost::kGuard);
    packet.atomic_eth->rkey = MemoryKey{host.side.region->rkey()};
    packet.atomic_eth->swap_or_add = value;
    return packet;
  }
  uint64_t result_of(const Packet& request) {
    host.port().put(encode_packet(Packet{request}.finish()));
    const auto sent = host.work_for_packets();
    if (sent.size() != 1 || !sent[0].atomic_ack) {
      ADD_FAILURE() << "no result";
      return 0;
    }
    return *sent[0].atomic_ack;
  }

  LoneHost host{options()};
};

TEST_F(StaleRequests, write_is_acknowledged_with_its_own_psn_after_writes_only) {
  EXPECT_EQ(host.receive(host.read(0, 0, 16)), Lines{"RC_READ_RESP_ONLY 0"});
  execute_writes(kWholeSpace - 1);
  EXPECT_EQ(host.receive(host.write(Opcode::kRcWriteOnly, 0, 0, 16, 16)), Lines{"RC_ACK 0 1f"});
}

// A READ of 2^31 bytes has half of the PSN space. The last packet of as many others has the PSN of the first one of the
// READ, whose entry is kept until later.
TEST_F(StaleRequests, write_is_acknowledged_with_its_own_psn_after_the_largest_read) {
  const auto all = must(
      host.side.pd->register_memory(nullptr, size_t{1} << 31, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND));
  Packet read = host.read(0, 0, 1U << 31);
  read.reth->va = 0;
  read.reth->rkey = MemoryKey{all->rkey()};
  execute(read, 1);
  execute_writes(kWholeSpace / 2);
  EXPECT_EQ(host.receive(host.write(Opcode::kRcWriteOnly, 0, 0, 16, 16)), Lines{"RC_ACK 0 1f"});
}

TEST_F(StaleRequests, duplicate_read_is_not_compared_with_an_old_one) {
  EXPECT_EQ(host.receive(host.read(0, 0, 16)), Lines{"RC_READ_RESP_ONLY 0"});
  execute_reads(kWholeSpace - 1);
  EXPECT_EQ(host.receive(host.read(0, 64, 16)), Lines{"RC_READ_RESP_ONLY 0"});
  EXPECT_EQ(host.receive(host.read(0, 64, 16)), Lines{"RC_READ_RESP_ONLY 0"});
  EXPECT_EQ(host.side.counter("replays_refused"), 0U);
}

TEST_F(StaleRequests, duplicate_atomic_gets_its_own_result) {
  const uint64_t before = result_of(add(1));
  execute_reads(kWholeSpace - 1);
  EXPECT_EQ(result_of(add(1)), before + 1);
  EXPECT_EQ(result_of(add(1)), before + 1) << "the duplicate";
  EXPECT_EQ(host.side.counter("atomic_replays"), 1U);
}

// A duplicate may be up to 2^23 packets old.
TEST_F(StaleRequests, duplicate_after_half_of_the_psn_space_is_answered) {
  EXPECT_EQ(host.receive(host.read(0, 0, 16)), Lines{"RC_READ_RESP_ONLY 0"});
  execute_reads(kWholeSpace / 2 - 1);
  EXPECT_EQ(host.receive(host.read(0, 0, 16)), Lines{"RC_READ_RESP_ONLY 0"});
  EXPECT_EQ(host.side.counter("read_replays"), 1U);
}

}  // namespace
}  // namespace roci::test

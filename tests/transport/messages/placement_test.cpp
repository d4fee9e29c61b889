// Placement before the ICRC check: the payload of a middle packet is copied to its destination while its ICRC is
// computed. Tests a wrong ICRC and destinations for which this is not possible.
#include <gtest/gtest.h>

#include <utility>

#include "support/hosts/two_hosts.hpp"

namespace roci::test {
namespace {

constexpr size_t kMtu = 4096;
constexpr size_t kBytes = 4 * kMtu + 100;  // first, three middle packets, last
constexpr size_t kFrom = 0;
constexpr size_t kPlacedAt = 64 * 1024;
constexpr uint8_t kOld = 200, kNew = 7;

// Byte i of a message whose first byte is `first`. All packets of a message differ, so that a packet at the place of
// another one is detected.
constexpr uint8_t placed_byte(uint8_t first, size_t i) {
  return static_cast<uint8_t>(first + i + i / kMtu * 37);
}

// Each operation moves bytes of a to b or of b to a.
struct PlacedOperation {
  const char* name;
  ibv_wr_opcode opcode;
  Opcode middle;  // opcode of its middle packets
};
constexpr PlacedOperation kPlacedOperations[] = {
    {"WRITE", IBV_WR_RDMA_WRITE, Opcode::kRcWriteMiddle},
    {"SEND", IBV_WR_SEND, Opcode::kRcSendMiddle},
    {"READ", IBV_WR_RDMA_READ, Opcode::kRcReadResponseMiddle},
};

class Placement : public testing::TestWithParam<PlacedOperation> {
 protected:
  explicit Placement(bool check_before_placing = false)
      : hosts_({.path_mtu = IBV_MTU_4096, .check_before_placing = check_before_placing}) {
    hosts_.connect();
    for (size_t i = 0; i < kBytes; ++i) source().memory.at(kFrom + i) = placed_byte(kNew, i);
    for (size_t i = 0; i < kBytes + kMtu; ++i) target().memory.at(kPlacedAt + i) = placed_byte(kOld, i);
  }
  static bool is_read() { return GetParam().opcode == IBV_WR_RDMA_READ; }
  Side& source() { return is_read() ? hosts_.b : hosts_.a; }
  Side& target() { return is_read() ? hosts_.a : hosts_.b; }

  // Transfers one message into the segments `pieces` of the target's memory.
  void move(std::vector<ibv_sge> pieces) {
    ibv_send_wr wr{};
    wr.opcode = GetParam().opcode;
    wr.send_flags = IBV_SEND_SIGNALED;
    ibv_sge from = source().sge(kFrom, kBytes);
    wr.sg_list = is_read() ? pieces.data() : &from;
    wr.num_sge = is_read() ? static_cast<int>(pieces.size()) : 1;
    wr.wr.rdma.remote_addr = is_read() ? source().address(kFrom) : target().address(kPlacedAt);
    wr.wr.rdma.rkey = hosts_.b.region->rkey();
    if (wr.opcode == IBV_WR_SEND) {
      ibv_recv_wr receive{};
      receive.sg_list = pieces.data();
      receive.num_sge = static_cast<int>(pieces.size());
      ASSERT_EQ(hosts_.b.qp->post_recv(&receive, nullptr), 0);
    }
    ASSERT_EQ(hosts_.a.qp->post_send(&wr, nullptr), 0);
    hosts_.run();
  }
  void move() { move({target().sge(kPlacedAt, kBytes)}); }

  void expect_moved() {
    expect_bytes(0, kBytes, kNew);
    expect_bytes(kBytes, kMtu, kOld);  // behind the message
    const auto done = hosts_.a.completions();
    ASSERT_EQ(done.size(), 1U);
    EXPECT_EQ(done[0].status, IBV_WC_SUCCESS);
  }
  void expect_bytes(size_t from, size_t length, uint8_t first) {
    for (size_t i = from; i < from + length; ++i)
      ASSERT_EQ(target().memory[kPlacedAt + i], placed_byte(first, i)) << "byte " << i;
  }
  // Returns whether this is packet `number` of the message and a middle packet. A READ response has the PSN of the
  // request plus its index.
  static bool is_middle(const Packet& packet, int32_t number) {
    return packet.bth.opcode == GetParam().middle && packet.bth.psn - Psn{TwoHostsOptions{}.psn_a} == number;
  }
  // Flips this bit in packet 1 on its first transmission.
  void corrupt(uint32_t bit) {
    hosts_.watch = [this, bit](const Packet& packet, char) {
      SimVerdict verdict;
      if (is_middle(packet, 1) && !std::exchange(done_, true)) verdict.flip_bits = {bit};
      return verdict;
    };
  }

  TwoHosts hosts_;
  bool done_ = false;  // the fault was injected
};

constexpr uint32_t kHeaders = 14 + 20 + 8 + 12;  // before the payload of a middle packet

TEST_P(Placement, message_is_placed_completely) {
  move();
  expect_moved();
  EXPECT_EQ(target().counter("rx_icrc_errors"), 0U);
}

TEST_P(Placement, packet_with_a_payload_bit_error_is_counted_and_retransmitted) {
  corrupt((kHeaders + 2047) * 8 + 3);
  move();
  ASSERT_TRUE(done_) << "the packet never passed";
  expect_moved();
  EXPECT_EQ(target().counter("rx_icrc_errors"), 1U);
  EXPECT_GE(target().counter("rx_roce"), 5U);
}

TEST_P(Placement, packet_with_a_corrupted_icrc_is_counted_and_retransmitted) {
  corrupt(static_cast<uint32_t>(kHeaders + kMtu) * 8);
  move();
  ASSERT_TRUE(done_);
  expect_moved();
  EXPECT_EQ(target().counter("rx_icrc_errors"), 1U);
}

// The bit error changes the PSN. The destination computed from it belongs to the expected packet, which arrives
// intact later.
TEST_P(Placement, bit_error_that_yields_the_expected_psn_leaves_no_wrong_data) {
  // The second middle packet gets the PSN of the first, which is lost.
  bool lost = false;
  hosts_.watch = [&](const Packet& packet, char) {
    SimVerdict verdict;
    if (is_middle(packet, 1)) verdict.drop = !std::exchange(lost, true);
    if (is_middle(packet, 2) && !std::exchange(done_, true)) {
      const uint32_t wrong = packet.bth.psn.value() ^ (packet.bth.psn.value() - 1);
      for (uint32_t bit = 0; bit < 8; ++bit) {
        if ((wrong >> bit & 1) != 0) verdict.flip_bits.push_back((kHeaders - 1) * 8 + bit);
      }
    }
    return verdict;
  };
  move();
  ASSERT_TRUE(lost && done_);
  expect_moved();
  EXPECT_EQ(target().counter("rx_icrc_errors"), 1U);
}

TEST_P(Placement, packet_is_placed_across_several_segments) {
  if (GetParam().opcode == IBV_WR_RDMA_WRITE) {  // its destination is one range
    move();
    expect_moved();
    return;
  }
  const size_t cut = kMtu + 1000;
  corrupt((kHeaders + 5) * 8);
  move({target().sge(kPlacedAt, cut), target().sge(kPlacedAt + cut, kMtu),
        target().sge(kPlacedAt + cut + kMtu, kBytes - cut - kMtu)});
  ASSERT_TRUE(done_);
  expect_moved();
  EXPECT_EQ(target().counter("rx_icrc_errors"), 1U);
}

// With checked placement the application never sees a byte of an invalid packet, not even temporarily.
class PlacementChecked : public Placement {
 protected:
  PlacementChecked() : Placement(true) {}
};

TEST_P(PlacementChecked, no_byte_of_a_corrupted_packet_is_placed) {
  uint8_t seen = 0;
  const size_t at = kPlacedAt + kMtu + 2047;
  corrupt((kHeaders + 2047) * 8 + 3);
  const auto flip = hosts_.watch;
  hosts_.watch = [&, flip](const Packet& packet, char direction) {
    const uint8_t now = target().memory[at];
    if (now != placed_byte(kOld, kMtu + 2047) && now != placed_byte(kNew, kMtu + 2047)) seen = now;
    return flip(packet, direction);
  };
  move();
  ASSERT_TRUE(done_);
  expect_moved();
  EXPECT_EQ(seen, 0) << "this byte was never sent";
}

INSTANTIATE_TEST_SUITE_P(Operations, PlacementChecked, testing::ValuesIn(kPlacedOperations),
                         [](const auto& row) { return std::string(row.param.name); });
INSTANTIATE_TEST_SUITE_P(Operations, Placement, testing::ValuesIn(kPlacedOperations),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace roci::test

// Statements of docs/interop.md about the requester and single responses: responses that another stack sends and that
// no capture contains.
#include <gtest/gtest.h>

#include "support/hosts/lone_host.hpp"

namespace roci::test {
namespace {

constexpr Opcode kAck = Opcode::kRcAcknowledge;
constexpr size_t kLoneHostMtu = 256;  // of a LoneHost
constexpr auto kTimeout = 4200us;

class RequesterRules : public testing::Test {
 protected:
  // Posts the request and returns the sent packets.
  Lines post(ibv_wr_opcode opcode, size_t length) {
    EXPECT_EQ(host_.post(opcode, ++posted_, length), 0);
    return host_.work();
  }
  Lines ack(int ahead, uint8_t syndrome = 0x1f) {
    return host_.receive(host_.response(kAck, ahead, syndrome));
  }
  Lines data(Opcode opcode, int ahead, size_t length) {
    return host_.receive(host_.response(opcode, ahead, 0x1f, length));
  }
  // The first bytes of the request's buffer.
  ByteVector buffer(size_t length) const {
    const auto start = host_.side.memory.begin() + LoneHost::kGuard;
    return {start, start + static_cast<std::ptrdiff_t>(length)};
  }
  static ByteVector response_bytes(std::initializer_list<size_t> lengths) {
    ByteVector all;
    for (const size_t length : lengths) {
      for (size_t i = 0; i < length; ++i) all.push_back(static_cast<uint8_t>(i + 1));
    }
    return all;
  }

  LoneHost host_;
  uint64_t posted_ = 0;
};

// After an RNR NAK, rxe's responder sends a NAK for the same PSN when later packets arrive.
TEST_F(RequesterRules, sequence_nak_after_rnr_nak_neither_uses_a_retry_nor_ends_the_wait) {
  LoneHostOptions options;
  options.retry_count = 0;  // a NAK that counts as a retry would be an error
  LoneHost host(options);
  ASSERT_EQ(host.post(IBV_WR_SEND, 1, 300), 0);
  EXPECT_EQ(host.work(), (Lines{"RC_SEND_FIRST 0", "RC_SEND_LAST 1"}));
  EXPECT_EQ(host.receive(host.response(kAck, 0, 0x2c)), Lines{});  // 640 us
  EXPECT_EQ(host.receive(host.response(kAck, 0, 0x60)), Lines{});
  EXPECT_EQ(host.wait(639us), Lines{});
  EXPECT_EQ(host.wait(2us), (Lines{"RC_SEND_FIRST 0", "RC_SEND_LAST 1"}));
  host.receive(host.response(kAck, 1));
  EXPECT_EQ(host.statuses(), Statuses{IBV_WC_SUCCESS});
}

// The NAK arrives after the wait, when the wait is shorter than the time in which a slow responder reaches the packets
// behind. The RNR NAK shows that the refused packet has arrived, so these NAKs do not use up the retries.
TEST_F(RequesterRules, sequence_naks_between_rnr_naks_do_not_exhaust_retries) {
  LoneHostOptions options;
  options.retry_count = 1;
  options.rnr_retry = 7;
  LoneHost host(options);
  ASSERT_EQ(host.post(IBV_WR_SEND, 1, 300), 0);
  host.work();
  for (int i = 0; i < 20; ++i) {
    host.receive(host.response(kAck, 0, 0x21));  // 10 us
    EXPECT_EQ(host.wait(11us), (Lines{"RC_SEND_FIRST 0", "RC_SEND_LAST 1"}));
    host.receive(host.response(kAck, 0, 0x60));
    host.wait(1ms);
    EXPECT_EQ(host.statuses(), Statuses{});
  }
  host.receive(host.response(kAck, 1));
  EXPECT_EQ(host.statuses(), Statuses{IBV_WC_SUCCESS});
}

// A READ is answered late, while the SEND after it waits.
TEST_F(RequesterRules, progress_does_not_change_the_rnr_wait_time) {
  post(IBV_WR_RDMA_READ, 16);
  post(IBV_WR_SEND, 8);
  EXPECT_EQ(ack(1, 0x2c), Lines{});  // 640 us
  EXPECT_EQ(host_.wait(100us), Lines{});
  data(Opcode::kRcReadResponseOnly, 0, 16);
  EXPECT_EQ(host_.statuses(), Statuses{IBV_WC_SUCCESS});
  EXPECT_EQ(host_.wait(539us), Lines{});
  EXPECT_EQ(host_.wait(2us), Lines{"RC_SEND_ONLY 1"});
}

// The RNR NAK was lost and only the later NAK arrives.
TEST_F(RequesterRules, sequence_nak_for_oldest_packet_retransmits_at_once) {
  post(IBV_WR_SEND, 300);
  EXPECT_EQ(ack(0, 0x60), (Lines{"RC_SEND_FIRST 0", "RC_SEND_LAST 1"}));
}

TEST_F(RequesterRules, rnr_nak_acknowledges_earlier_packets) {
  EXPECT_EQ(post(IBV_WR_RDMA_WRITE, 8), Lines{"RC_WRITE_ONLY 0"});
  EXPECT_EQ(post(IBV_WR_SEND, 8), Lines{"RC_SEND_ONLY 1"});
  EXPECT_EQ(ack(1, 0x2c), Lines{});
  EXPECT_EQ(host_.statuses(), Statuses{IBV_WC_SUCCESS});
  EXPECT_EQ(host_.wait(641us), Lines{"RC_SEND_ONLY 1"});
}

TEST_F(RequesterRules, sequence_nak_acknowledges_earlier_packets) {
  post(IBV_WR_RDMA_WRITE, 300);
  post(IBV_WR_RDMA_WRITE, 3 * kLoneHostMtu);
  EXPECT_EQ(ack(3, 0x60), (Lines{"RC_WRITE_MIDDLE 3", "RC_WRITE_LAST 4"}));  // the RETH is not repeated
  EXPECT_EQ(host_.statuses(), Statuses{IBV_WC_SUCCESS});
}

// The retransmission also lost a packet, and the round-trip time is shorter than before (loss_write, frame 196). A
// NAK for a later PSN than the last one is new; only a NAK for the same PSN may be a delayed copy.
TEST_F(RequesterRules, nak_for_later_psn_is_processed_regardless_of_time) {
  post(IBV_WR_RDMA_WRITE, 8);
  host_.wait(3ms);
  ack(0);  // a round-trip time of 3 ms
  EXPECT_EQ(post(IBV_WR_RDMA_WRITE, 4 * kLoneHostMtu).size(), 4U);
  host_.wait(3ms);
  EXPECT_EQ(ack(1, 0x60).size(), 4U);
  host_.wait(1ms);
  EXPECT_EQ(ack(1, 0x60), Lines{});
  EXPECT_EQ(ack(3, 0x60), (Lines{"RC_WRITE_MIDDLE 3", "RC_WRITE_LAST 4"}));
  EXPECT_EQ(host_.side.counter("naks_suppressed"), 1U);
  ack(4);
  EXPECT_EQ(host_.statuses(), Statuses(2, IBV_WC_SUCCESS));
}

TEST_F(RequesterRules, ack_within_a_message_acknowledges_earlier_packets) {
  EXPECT_EQ(post(IBV_WR_RDMA_WRITE, 4 * kLoneHostMtu).size(), 4U);
  EXPECT_EQ(ack(1), Lines{});
  EXPECT_EQ(host_.statuses(), Statuses{});
  host_.wait(kTimeout);
  EXPECT_EQ(ack(2), Lines{"RC_WRITE_LAST 3"});
  ack(3);
  EXPECT_EQ(host_.statuses(), Statuses{IBV_WC_SUCCESS});
}

TEST_F(RequesterRules, one_ack_completes_all_earlier_messages) {
  for (int i = 0; i < 3; ++i) post(IBV_WR_SEND, 300);
  EXPECT_EQ(ack(4), Lines{});  // PSN within the third message
  EXPECT_EQ(host_.statuses(), Statuses(2, IBV_WC_SUCCESS));
}

TEST_F(RequesterRules, repeated_ack_is_ignored) {
  post(IBV_WR_SEND, 8);
  post(IBV_WR_SEND, 8);
  ack(0);
  EXPECT_EQ(host_.statuses(), Statuses{IBV_WC_SUCCESS});
  for (int i = 0; i < 5; ++i) EXPECT_EQ(ack(0), Lines{});
  EXPECT_EQ(ack(0, 0x60), Lines{});  // an old NAK is ignored, too
  EXPECT_EQ(host_.statuses(), Statuses{});
  EXPECT_EQ(host_.side.counter("responses_duplicate"), 6U);
  ack(1);
  EXPECT_EQ(host_.statuses(), Statuses{IBV_WC_SUCCESS});
}

// End-to-end credits are optional for a requester (IBTA 9.7.7.2).
TEST_F(RequesterRules, credits_in_an_ack_do_not_limit_requests) {
  for (uint8_t credits = 0; credits <= 0x1f; ++credits) {
    const int psn = 2 * credits;
    post(IBV_WR_SEND, 8);
    EXPECT_EQ(ack(psn, credits), Lines{}) << int{credits};
    EXPECT_EQ(post(IBV_WR_SEND, 8), Lines{"RC_SEND_ONLY " + std::to_string(psn + 1)}) << int{credits};
    EXPECT_EQ(ack(psn + 1, credits), Lines{});
    EXPECT_EQ(host_.statuses(), Statuses(2, IBV_WC_SUCCESS)) << int{credits};
  }
}

TEST_F(RequesterRules, credits_in_a_read_response_are_ignored) {
  post(IBV_WR_RDMA_READ, 300);
  host_.receive(host_.response(Opcode::kRcReadResponseFirst, 0, 0x00, kLoneHostMtu));
  host_.receive(host_.response(Opcode::kRcReadResponseLast, 1, 0x05, 44));
  EXPECT_EQ(host_.statuses(), Statuses{IBV_WC_SUCCESS});
}

TEST_F(RequesterRules, msn_of_a_response_is_ignored) {
  int psn = 0;
  for (const uint32_t msn : {0U, 1U, 77U, 0xffffffU}) {
    post(IBV_WR_SEND, 8);
    Packet answer = host_.response(kAck, psn++);
    answer.aeth->msn = Msn{msn};
    host_.receive(answer);
    EXPECT_EQ(host_.statuses(), Statuses{IBV_WC_SUCCESS}) << msn;
  }
}

TEST_F(RequesterRules, marks_on_an_ack_are_counted) {
  for (int psn = 0; psn < 3; ++psn) {
    post(IBV_WR_SEND, 8);
    Packet answer = host_.response(kAck, psn);
    answer.bth.becn = psn != 1;
    answer.bth.fecn = psn == 1;
    answer.with_traffic_class(3);  // CE
    host_.receive(answer);
    EXPECT_EQ(host_.statuses(), Statuses{IBV_WC_SUCCESS});
  }
  EXPECT_EQ(host_.core().requester.flow().packets_marked, 2U);
}

// rxe responds to a repeated READ with MIDDLE and LAST, other stacks with FIRST and LAST.
TEST_F(RequesterRules, response_to_rest_of_a_read_may_start_with_first_or_middle) {
  struct Case {
    Opcode begin, end;
  };
  int psn = 0;
  for (const Case& c : {Case{Opcode::kRcReadResponseMiddle, Opcode::kRcReadResponseLast},
                        Case{Opcode::kRcReadResponseFirst, Opcode::kRcReadResponseLast},
                        Case{Opcode::kRcReadResponseMiddle, Opcode::kRcReadResponseOnly}}) {
    std::fill(host_.side.memory.begin(), host_.side.memory.end(), uint8_t{0});
    post(IBV_WR_RDMA_READ, 3 * kLoneHostMtu + 10);
    data(Opcode::kRcReadResponseFirst, psn, kLoneHostMtu);
    const std::string gap = std::to_string(psn + 1);
    EXPECT_EQ(data(Opcode::kRcReadResponseMiddle, psn + 2, kLoneHostMtu), Lines{"RC_READ_REQUEST " + gap});
    data(c.begin, psn + 1, kLoneHostMtu);
    data(Opcode::kRcReadResponseMiddle, psn + 2, kLoneHostMtu);
    data(c.end, psn + 3, 10);
    EXPECT_EQ(host_.statuses(), Statuses{IBV_WC_SUCCESS});
    EXPECT_EQ(buffer(3 * kLoneHostMtu + 10), response_bytes({kLoneHostMtu, kLoneHostMtu, kLoneHostMtu, 10}));
    psn += 4;
  }
}

TEST_F(RequesterRules, rest_of_a_read_is_requested_after_last_response) {
  post(IBV_WR_RDMA_READ, 3 * kLoneHostMtu + 10);
  data(Opcode::kRcReadResponseFirst, 0, kLoneHostMtu);
  data(Opcode::kRcReadResponseMiddle, 1, kLoneHostMtu);
  host_.now += kTimeout;
  host_.side.device->poller().poll(host_.now);
  const auto packets = host_.take_packets();
  ASSERT_EQ(packets.size(), 1U);
  EXPECT_EQ(packets[0].bth.psn, Psn{5002});
  EXPECT_EQ(packets[0].reth->va, 0x10000 + 2 * kLoneHostMtu);
  EXPECT_EQ(packets[0].reth->length, kLoneHostMtu + 10);
}

// rxe completes the READ without its data.
TEST_F(RequesterRules, ack_does_not_complete_a_read_or_an_atomic) {
  EXPECT_EQ(post(IBV_WR_RDMA_READ, 300), Lines{"RC_READ_REQUEST 0"});
  EXPECT_EQ(ack(1), Lines{"RC_READ_REQUEST 0"});  // its responses are lost
  EXPECT_EQ(host_.statuses(), Statuses{});
  data(Opcode::kRcReadResponseFirst, 0, kLoneHostMtu);
  data(Opcode::kRcReadResponseLast, 1, 44);
  EXPECT_EQ(host_.statuses(), Statuses{IBV_WC_SUCCESS});

  ASSERT_EQ(host_.side.atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 9, LoneHost::kGuard, 0x10000, 0x77, 1), 0);
  EXPECT_EQ(host_.work(), Lines{"RC_FETCH_ADD 2"});
  EXPECT_EQ(ack(2), Lines{"RC_FETCH_ADD 2"});
  EXPECT_EQ(host_.statuses(), Statuses{});
}

TEST_F(RequesterRules, read_response_acknowledges_earlier_requests) {
  post(IBV_WR_RDMA_WRITE, 300);
  post(IBV_WR_RDMA_READ, 16);
  data(Opcode::kRcReadResponseOnly, 2, 16);
  EXPECT_EQ(host_.statuses(), Statuses(2, IBV_WC_SUCCESS));
}

// rxe's responder acknowledges a duplicate with the last executed PSN, which may be far ahead of it.
TEST_F(RequesterRules, ack_of_packets_sent_before_go_back_is_processed) {
  post(IBV_WR_RDMA_WRITE, 3 * kLoneHostMtu);
  EXPECT_EQ(host_.wait(kTimeout).size(), 1U);
  EXPECT_EQ(ack(2), Lines{});
  EXPECT_EQ(host_.statuses(), Statuses{IBV_WC_SUCCESS});
  EXPECT_EQ(ack(2), Lines{});  // for the second copy
  EXPECT_EQ(host_.wait(kTimeout * 4), Lines{});
}

}  // namespace
}  // namespace roci::test

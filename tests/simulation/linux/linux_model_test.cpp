// The model of a Linux host, packet by packet. The expectations are those that docs/interop.md and the captures of
// tests/pcaps/ show for Linux.
#include <gtest/gtest.h>

#include <cstring>

#include "base/time/virtual_runner.hpp"
#include "port/dpdk/eal.hpp"
#include "port/sim/sim_link.hpp"
#include "simulation/linux/linux_host.hpp"
#include "simulation/linux/linux_queue_pair.hpp"
#include "support/must.hpp"
#include "support/ports/frames.hpp"
#include "wire/icrc/icrc.hpp"

namespace roci::test {
namespace {

using Lines = std::vector<std::string>;

constexpr uint32_t kMtu = 256;
constexpr uint32_t kFirstRequest = 1000;   // PSN of the peer's first request
constexpr uint32_t kFirstSent = 0xfffff0;  // PSN of the model's first request

class LinuxModel : public testing::Test {
 protected:
  LinuxModel() {
    must(start_eal());
    pool_ = must(MbufPool::create("linux_model", 4096, 4400));
    link_ = std::make_unique<SimLink>(SimLinkConfig{}, pool_);
    host_ = std::make_unique<LinuxHost>(link_->a(), pool_, LinuxHostConfig{.address = kLinux},
                                        [this](const std::string& what) { complaints_.push_back(what); });
    host_->add_neighbor(kPeer, link_->b().mac());
    keys_ = host_->register_memory(
        memory_.data(), memory_.size(),
        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
    ibv_qp_init_attr init{};
    init.cap.max_send_wr = 64;
    init.sq_sig_all = 1;
    qp_ = std::make_unique<LinuxQueuePair>(*host_, init, completions_);
    ibv_gid gid{};
    std::memcpy(gid.raw, kPeer.bytes.data(), sizeof gid.raw);
    qp_->connect(
        gid, 0x222222,
        {.rq_psn = kFirstRequest, .sq_psn = kFirstSent, .path_mtu = IBV_MTU_256, .reads = 2, .timeout = 14});
    runner_.add(*host_);
    runner_.add(*link_);
  }

  // Sends the packet to the model. Returns its packets as lines: opcode, PSN relative to the first of its direction,
  // "a" for AckReq, and the syndrome.
  Lines feed(Packet packet) {
    packet.between(link_->b().mac(), kPeer, link_->a().mac(), kLinux);
    packet.bth.destination_qp = Qpn{qp_->qp_num()};
    rte_mbuf* frame = to_mbuf(*pool_, encode_packet(packet.finish()));
    EXPECT_EQ(link_->b().tx_burst({&frame, 1}, runner_.now()), 1);
    return wait(0us);
  }
  Lines wait(Nanos span) {
    must(runner_.run_until(runner_.now() + span));
    Lines lines;
    rte_mbuf* frames[32];
    while (const uint16_t count = link_->b().rx_burst(frames, runner_.now())) {
      for (uint16_t i = 0; i < count; ++i) {
        EXPECT_TRUE(icrc_is_right(frames[i]));
        lines.push_back(line_of(must(decode_packet(bytes_of(frames[i])))));
        rte_pktmbuf_free(frames[i]);
      }
    }
    return lines;
  }
  static std::string line_of(const Packet& packet) {
    const OpcodeInfo& opcode = opcode_info(packet.bth.opcode);
    const Psn first{opcode.is_request() ? kFirstSent : kFirstRequest};
    std::string line = std::string(opcode.name) + " " + std::to_string(packet.bth.psn - first);
    if (packet.bth.ack_request) line += " a";
    if (packet.reth && opcode.operation == Operation::kReadRequest)
      line += " length " + std::to_string(packet.reth->length);
    if (!packet.aeth) return line;
    constexpr const char* kHex = "0123456789abcdef";
    return line + " " + kHex[packet.aeth->syndrome >> 4] + kHex[packet.aeth->syndrome & 15];
  }
  Packet write(uint32_t psn, uint32_t length = 8) {
    return make_packet(Opcode::kRcWriteOnly)
        .to(Qpn{}, Psn{kFirstRequest + psn})
        .with_reth(address(), MemoryKey{keys_.remote}, length)
        .with_payload(ByteVector(length, 1))
        .requesting_ack();
  }
  Packet read(uint32_t psn, uint32_t offset, uint32_t length) {
    return make_packet(Opcode::kRcReadRequest)
        .to(Qpn{}, Psn{kFirstRequest + psn})
        .with_reth(address() + offset, MemoryKey{keys_.remote}, length)
        .requesting_ack();
  }
  static Packet send(uint32_t psn) {
    return make_packet(Opcode::kRcSendOnly).to(Qpn{}, Psn{kFirstRequest + psn}).requesting_ack();
  }
  static Packet response(Opcode opcode, uint32_t psn, uint8_t syndrome = 0x1f, uint32_t payload = 0) {
    Packet packet = make_packet(opcode).to(Qpn{}, Psn{kFirstSent + psn}).with_payload(ByteVector(payload, 2));
    if (packet.aeth) packet.with_aeth(syndrome, Msn{});
    return packet;
  }
  Lines post(ibv_wr_opcode opcode, uint32_t length) {
    ibv_sge piece{address(), length, keys_.local};
    ibv_send_wr wr{};
    wr.wr_id = ++posted_;
    wr.sg_list = &piece;
    wr.num_sge = 1;
    wr.opcode = opcode;
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(qp_->post_send(&wr, &bad), 0);
    return wait(0us);
  }
  [[nodiscard]] uint64_t address() const { return reinterpret_cast<uint64_t>(memory_.data()); }

  const IpAddress kLinux = must(IpAddress::parse("10.0.0.2")), kPeer = must(IpAddress::parse("10.0.0.1"));
  std::shared_ptr<MbufPool> pool_;
  std::unique_ptr<SimLink> link_;
  std::deque<ibv_wc> completions_;
  std::vector<uint8_t> memory_ = std::vector<uint8_t>(256 * kMtu);
  MemoryKeys keys_;
  std::unique_ptr<LinuxHost> host_;
  std::unique_ptr<LinuxQueuePair> qp_;
  VirtualRunner runner_;
  std::vector<std::string> complaints_;
  uint64_t posted_ = 0;
};

TEST_F(LinuxModel, sends_one_nak_per_gap_and_acknowledges_packets_with_ack_req) {
  EXPECT_EQ(feed(write(0)), Lines{"RC_ACK 0 1f"});
  EXPECT_EQ(feed(write(2)), Lines{"RC_ACK 1 60"});
  EXPECT_EQ(feed(write(3)), Lines{});
  EXPECT_EQ(feed(write(1)), Lines{"RC_ACK 1 1f"});
  EXPECT_EQ(feed(write(3)), Lines{"RC_ACK 2 60"});
}

TEST_F(LinuxModel, sends_an_rnr_nak_and_then_a_sequence_nak_with_the_same_psn) {
  EXPECT_EQ(feed(send(0)), Lines{"RC_ACK 0 2c"});
  EXPECT_EQ(feed(write(1)), Lines{"RC_ACK 0 60"});
  EXPECT_EQ(feed(write(2)), Lines{});
}

TEST_F(LinuxModel, acknowledges_duplicates_with_the_psn_of_the_last_write) {
  EXPECT_EQ(feed(write(0)), Lines{"RC_ACK 0 1f"});
  EXPECT_EQ(feed(write(1)), Lines{"RC_ACK 1 1f"});
  EXPECT_EQ(feed(read(2, 0, 8)), Lines{"RC_READ_RESP_ONLY 2 1f"});
  EXPECT_EQ(feed(write(0)), Lines{"RC_ACK 1 1f"});
}

TEST_F(LinuxModel, answers_a_duplicate_read_from_its_middle) {
  EXPECT_EQ(feed(read(0, 0, 600)),
            (Lines{"RC_READ_RESP_FIRST 0 1f", "RC_READ_RESP_MIDDLE 1", "RC_READ_RESP_LAST 2 1f"}));
  EXPECT_EQ(feed(read(1, kMtu, 600 - kMtu)), (Lines{"RC_READ_RESP_MIDDLE 1", "RC_READ_RESP_LAST 2 1f"}));
  EXPECT_EQ(feed(read(0, 0, 600)), Lines{});  // the stored request starts at its second packet now
}

TEST_F(LinuxModel, requests_an_acknowledgment_in_each_66th_packet_and_stops_after_129) {
  const Lines sent = post(IBV_WR_RDMA_WRITE, 200 * kMtu);
  ASSERT_EQ(sent.size(), 129U);
  for (size_t i = 0; i < sent.size(); ++i) EXPECT_EQ(sent[i].ends_with(" a"), i == 65) << sent[i];
  EXPECT_EQ(feed(response(Opcode::kRcAcknowledge, 65)).size(), 66U);
}

TEST_F(LinuxModel, retransmits_once_after_a_nak_and_again_after_the_timeout) {
  const Lines all = {"RC_WRITE_FIRST 0", "RC_WRITE_MIDDLE 1", "RC_WRITE_LAST 2 a"};
  EXPECT_EQ(post(IBV_WR_RDMA_WRITE, 3 * kMtu), all);
  EXPECT_EQ(feed(response(Opcode::kRcAcknowledge, 1, 0x60)),
            (Lines{"RC_WRITE_MIDDLE 1", "RC_WRITE_LAST 2 a"}));
  EXPECT_EQ(feed(response(Opcode::kRcAcknowledge, 1, 0x60)), Lines{});
  EXPECT_EQ(wait(60ms), Lines{});
  EXPECT_EQ(wait(10ms), (Lines{"RC_WRITE_MIDDLE 1", "RC_WRITE_LAST 2 a"}));  // 68 ms at code 14
  feed(response(Opcode::kRcAcknowledge, 2));
  EXPECT_EQ(completions_.size(), 1U);
}

TEST_F(LinuxModel, requests_missing_read_data_after_a_later_response) {
  EXPECT_EQ(post(IBV_WR_RDMA_READ, 3 * kMtu), Lines{"RC_READ_REQUEST 0 a length 768"});
  EXPECT_EQ(post(IBV_WR_RDMA_READ, 8), Lines{"RC_READ_REQUEST 3 a length 8"});
  EXPECT_EQ(post(IBV_WR_RDMA_READ, 8), Lines{});  // max_rd_atomic is 2
  EXPECT_EQ(feed(response(Opcode::kRcReadResponseFirst, 0, 0x1f, kMtu)), Lines{});
  EXPECT_EQ(feed(response(Opcode::kRcReadResponseLast, 2, 0x1f, kMtu)),
            Lines{});  // a gap alone shows nothing
  EXPECT_EQ(feed(response(Opcode::kRcReadResponseOnly, 3, 0x1f, 8)),
            (Lines{"RC_READ_REQUEST 1 a length 512", "RC_READ_REQUEST 3 a length 8"}));
}

TEST_F(LinuxModel, waits_at_least_a_tick_after_an_rnr_nak) {
  EXPECT_EQ(post(IBV_WR_SEND, 8), Lines{"RC_SEND_ONLY 0 a"});
  EXPECT_EQ(feed(response(Opcode::kRcAcknowledge, 0, 0x2c)), Lines{});  // 640 us
  EXPECT_EQ(feed(response(Opcode::kRcAcknowledge, 0, 0x60)), Lines{});
  EXPECT_EQ(wait(3ms), Lines{});
  EXPECT_EQ(wait(5ms), Lines{"RC_SEND_ONLY 0 a"});
}

TEST_F(LinuxModel, accepts_an_acknowledgment_as_the_response_to_a_read) {
  post(IBV_WR_RDMA_READ, 8);
  EXPECT_EQ(feed(response(Opcode::kRcAcknowledge, 0)), Lines{});
  ASSERT_EQ(completions_.size(), 1U);
  EXPECT_EQ(completions_[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(complaints_.size(), 1U);
}

}  // namespace
}  // namespace roci::test

#include "port/shm/shm_port.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "port/shm/shm_network.hpp"
#include "wire/int/telemetry_edit.hpp"
#include "wire/net/arp.hpp"
#include "wire/net/nd.hpp"

namespace roci {
namespace {

class ShmPortTest : public test::ShmNetworkTest {
 protected:
  static constexpr uint16_t kIntPort = 5201;

  // Sends frames of the largest size from 0 to 1 until the port rejects one. Returns the number of accepted frames.
  uint32_t fill(Nanos now) {
    uint32_t sent = 0;
    while (send(0, roce_to(0, mac(1), kLargest), now) == 1) ++sent;
    return sent;
  }
  rte_mbuf* solicitation(uint32_t from, const IpAddress& target) const {
    NeighborMessage message;
    message.source = ip6(from);
    message.destination = target;
    message.target = target;
    message.link_layer = mac(from);
    const LinkHeader link{mac(1), mac(from)};
    Bytes frame(nd_frame_length(link, message));
    build_nd(link, message, frame);
    return test::to_mbuf(*pool_, frame);
  }
  // A frame with in-band telemetry and no hops.
  rte_mbuf* with_telemetry(uint32_t number) const {
    rte_mbuf* const frame = roce_to(0, mac(1), 1000, number);
    FrameFront front = FrameFront::of(*frame);
    IntSource source;
    source.port = kIntPort;
    source.domain = 1;
    EXPECT_EQ(begin_int(front, source, kMtu), IntEdit::kDone);
    front.store(*frame);
    return frame;
  }
  static uint8_t ecn(const Bytes& frame) { return frame[sizeof(EthernetHeader) + 1] & 3; }
  static bool ipv4_checksum_is_right(const Bytes& frame) {
    return inet_checksum(frame.data() + sizeof(EthernetHeader), sizeof(Ipv4Header)) == 0;
  }

  static constexpr uint32_t kLargest = 4300;  // payload in bytes
  Nanos now_ = 1s;
};

TEST_F(ShmPortTest, delivers_unicast_frames_unchanged_to_their_destination_only) {
  open_ports(3, 3);
  for (uint32_t number = 1; number <= 50; ++number) {
    rte_mbuf* const frame = roce_to(0, mac(1 + number % 2), number * 80, number);
    const Bytes sent = roci::bytes_of(frame);
    ASSERT_EQ(send(0, frame, now_), 1);
    EXPECT_TRUE(receive_all(2 - number % 2, now_).empty());
    const auto got = receive_all(1 + number % 2, now_);
    ASSERT_EQ(got.size(), 1U);
    EXPECT_EQ(got[0], sent);
  }
  EXPECT_TRUE(receive_all(0, now_).empty());
  EXPECT_EQ(ports_[0]->stats().tx_packets, 50U);
  EXPECT_EQ(ports_[1]->stats().rx_packets, 25U);
  EXPECT_EQ(ports_[1]->stats().rx_bytes + ports_[2]->stats().rx_bytes, ports_[0]->stats().tx_bytes);
}

TEST_F(ShmPortTest, copies_frames_of_several_segments_completely) {
  open_ports(2, 2);
  rte_mbuf* const frame = make_frame(*pool_, 4000, 3, 700);
  *rte_pktmbuf_mtod(frame, MacAddress*) = mac(1);
  const Bytes sent = roci::bytes_of(frame);
  ASSERT_EQ(send(0, frame, now_), 1);
  EXPECT_EQ(receive_all(1, now_), std::vector<Bytes>{sent});
}

TEST_F(ShmPortTest, delivers_group_frames_to_all_other_ports) {
  open_ports(3, 4);  // slot 3 has no owner
  ASSERT_EQ(send(1, roce_to(1, MacAddress::broadcast(), 100), now_), 1);
  EXPECT_EQ(receive_all(0, now_).size(), 1U);
  EXPECT_EQ(receive_all(2, now_).size(), 1U);
  EXPECT_TRUE(receive_all(1, now_).empty());
  EXPECT_EQ(ports_[1]->shm_stats().no_receiver, 0U);
}

TEST_F(ShmPortTest, counts_frames_for_addresses_without_a_process) {
  open_ports(2, 3);
  ASSERT_EQ(send(0, roce_to(0, MacAddress::local(999), 100), now_), 1);
  ASSERT_EQ(send(0, roce_to(0, mac(2), 100), now_), 1);
  ASSERT_EQ(send(0, roce_to(0, mac(0), 100), now_), 1);
  EXPECT_EQ(ports_[0]->shm_stats().no_receiver, 3U);
  EXPECT_EQ(ports_[0]->stats().tx_packets, 0U);
  ports_.pop_back();
  ASSERT_EQ(send(0, roce_to(0, mac(1), 100), now_), 1);
  EXPECT_EQ(ports_[0]->shm_stats().no_receiver, 4U) << "its process has left";
}

TEST_F(ShmPortTest, drops_frames_longer_than_the_mtu_or_too_short) {
  open_ports(2, 2);
  ASSERT_EQ(send(0, make_frame(*pool_, kMtu + 15, 1), now_), 1);
  ASSERT_EQ(send(0, make_frame(*pool_, 13, 1), now_), 1);
  EXPECT_EQ(ports_[0]->stats().tx_dropped, 2U);
}

TEST_F(ShmPortTest, replies_to_arp_for_present_slots_only) {
  open_ports(2, 3);
  ASSERT_EQ(send(0, arp_request(0, ip4(1)), now_), 1);
  ASSERT_EQ(send(0, arp_request(0, ip4(2)), now_), 1);   // the slot has no owner
  ASSERT_EQ(send(0, arp_request(0, ip4(77)), now_), 1);  // no slot has this address
  EXPECT_EQ(ports_[0]->next_arrival(), Nanos{0});
  const auto got = receive_all(0, now_);
  ASSERT_EQ(got.size(), 1U);
  const auto reply = parse_arp(std::span(got[0]).subspan(sizeof(EthernetHeader)));
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->operation, ArpOperation::kReply);
  EXPECT_EQ(reply->sender_ip, ip4(1));
  EXPECT_EQ(reply->sender_mac, mac(1));
  EXPECT_EQ(reply->target_mac, mac(0));
  EXPECT_TRUE(receive_all(1, now_).empty()) << "a request is for no process";
}

TEST_F(ShmPortTest, replies_to_neighbor_solicitations_for_present_slots_only) {
  open_ports(2, 3);
  ASSERT_EQ(send(0, solicitation(0, ip6(1)), now_), 1);
  ASSERT_EQ(send(0, solicitation(0, IpAddress::link_local(mac(1))), now_), 1);
  ASSERT_EQ(send(0, solicitation(0, ip6(2)), now_), 1);
  const auto got = receive_all(0, now_);
  ASSERT_EQ(got.size(), 2U);
  for (const auto& frame : got) {
    const auto length = static_cast<uint32_t>(frame.size());
    const auto reply = parse_nd(parse_frame(frame.data(), length, length),
                                std::span(frame).subspan(sizeof(EthernetHeader) + sizeof(Ipv6Header)));
    ASSERT_TRUE(reply);
    EXPECT_TRUE(reply->advertisement && reply->solicited);
    EXPECT_EQ(reply->link_layer, mac(1));
    EXPECT_EQ(reply->destination, ip6(0));
  }
  EXPECT_TRUE(receive_all(1, now_).empty());
}

TEST_F(ShmPortTest, rejects_frames_for_a_full_ring_and_drops_them_after_the_timeout) {
  open_ports(3, 3);
  EXPECT_GT(fill(now_), kShmRingBytes / 5000);
  EXPECT_EQ(ports_[0]->stats().tx_refused, 1U);
  EXPECT_EQ(send(0, roce_to(0, mac(1), kLargest), now_ + ShmPort::kFullTimeout - Nanos{1}), 0);
  EXPECT_EQ(ports_[0]->shm_stats().ring_full, 0U);
  now_ += ShmPort::kFullTimeout;
  EXPECT_EQ(send(0, roce_to(0, mac(1), kLargest), now_), 1);
  EXPECT_EQ(ports_[0]->shm_stats().ring_full, 1U);
  // A full ring does not delay frames to others.
  EXPECT_EQ(send(0, roce_to(0, mac(2), kLargest), now_), 1);
  EXPECT_EQ(receive_all(2, now_).size(), 1U);
  // A broadcast frame is not delayed at all.
  EXPECT_EQ(send(0, roce_to(0, MacAddress::broadcast(), kLargest), now_), 1);
  EXPECT_EQ(ports_[0]->shm_stats().ring_full, 2U);
  EXPECT_EQ(receive_all(2, now_).size(), 1U);
  receive_all(1, now_);
  EXPECT_EQ(send(0, roce_to(0, mac(1), kLargest), now_), 1);
  EXPECT_EQ(receive_all(1, now_).size(), 1U);
}

TEST_F(ShmPortTest, drops_no_frame_while_the_receiver_reads) {
  open_ports(2, 2);
  uint64_t sent = fill(now_), received = 0;
  for (int round = 0; round < 20; ++round) {
    now_ += ShmPort::kFullTimeout - Nanos{1};
    received += receive(1, 3, now_).size();
    const uint32_t more = fill(now_);
    ASSERT_GT(more, 0U) << round;
    sent += more;
  }
  received += receive_all(1, now_).size();
  EXPECT_EQ(received, sent);
  EXPECT_EQ(ports_[0]->shm_stats().ring_full, 0U);
}

TEST_F(ShmPortTest, serves_senders_round_robin_when_each_fills_a_burst) {
  open_ports(4, 8);
  constexpr uint32_t kReceiver = 2;
  for (const uint32_t from : {0U, 1U, 3U})
    for (int i = 0; i < 100; ++i) ASSERT_EQ(send(from, roce_to(from, mac(kReceiver), 100), now_), 1);
  std::array<unsigned, 4> bursts{};
  for (int poll = 0; poll < 9; ++poll) {
    const auto burst = receive(kReceiver, 8, now_);
    ASSERT_EQ(burst.size(), 8U);
    for (uint32_t from = 0; from < 4; ++from)
      bursts[from] += reinterpret_cast<const EthernetHeader*>(burst[0].data())->source == mac(from);
  }
  EXPECT_EQ(bursts, (std::array{3U, 3U, 0U, 3U}));
  receive_all(kReceiver, now_);
}

// The receiving thread frees buffers: it must return even if the sender does not stop.
TEST_F(ShmPortTest, receive_returns_when_all_frames_are_dropped) {
  ports_.push_back(open(config(0, 2)));
  auto small = config(1, 2);
  small.mtu = 500;
  ports_.push_back(open(small));
  for (uint32_t number = 0; number < 200; ++number) ASSERT_EQ(send(0, roce_to(0, mac(1), 1000), now_), 1);
  EXPECT_TRUE(receive(1, 8, now_).empty());
  EXPECT_EQ(ports_[1]->stats().rx_dropped, 8U);
  EXPECT_EQ(ports_[1]->next_arrival(), Nanos{0});
  for (int round = 0; round < 30; ++round) receive(1, 8, now_);
  EXPECT_EQ(ports_[1]->stats().rx_dropped, 200U);
  EXPECT_EQ(ports_[1]->next_arrival(), kNever);
}

TEST_F(ShmPortTest, marks_all_ecn_capable_frames_from_kmax_and_none_below_at_pmax_0) {
  auto marking = config(0, 2);
  marking.marks = true;
  marking.kmin = 10'000;
  marking.kmax = 20'000;
  marking.pmax = 0;
  ports_.push_back(open(marking));
  ports_.push_back(open(config(1, 2)));
  for (uint32_t number = 0; number < 40; ++number)
    ASSERT_EQ(send(0, roce_to(0, mac(1), 900, number, number % 2 == 0 ? 2 : 0), now_), 1);
  const auto got = receive_all(1, now_);
  ASSERT_EQ(got.size(), 40U);
  uint64_t marked = 0, used = 0;
  for (uint32_t number = 0; number < 40; ++number) {
    SCOPED_TRACE(number);
    used += shm_record_bytes(static_cast<uint32_t>(got[number].size()));
    const bool expected = number % 2 == 0 && used >= marking.kmax;
    EXPECT_EQ(ecn(got[number]), expected ? 3 : (number % 2 == 0 ? 2 : 0));
    EXPECT_TRUE(ipv4_checksum_is_right(got[number]));
    marked += expected;
  }
  EXPECT_GT(marked, 0U);
  EXPECT_EQ(ports_[0]->shm_stats().marked, marked);
  ASSERT_EQ(send(0, roce_to(0, mac(1), 900, 0, 2), now_), 1);
  EXPECT_EQ(ecn(receive_all(1, now_)[0]), 2) << "the ring has been read";
  const auto detail = [this](std::string_view name) {
    const auto details = ports_[0]->details();
    return std::ranges::find(details, name, [](const auto& one) { return std::string_view{one.name}; })
        ->value;
  };
  EXPECT_EQ(detail("marked"), marked);
  EXPECT_EQ(detail("ring_peak_bytes"), used);
  EXPECT_EQ(detail("ring_bytes"), 0U);
}

TEST_F(ShmPortTest, marks_some_frames_between_kmin_and_kmax) {
  auto marking = config(0, 2);
  marking.marks = true;
  marking.kmin = 10'000;
  marking.kmax = 700'000;
  marking.pmax = 0.5;
  ports_.push_back(open(marking));
  ports_.push_back(open(config(1, 2)));
  for (uint32_t number = 0; number < 550; ++number)
    ASSERT_EQ(send(0, roce_to(0, mac(1), 1000, number, 1), now_), 1);
  const uint64_t marked = ports_[0]->shm_stats().marked;
  EXPECT_GT(marked, 50U);
  EXPECT_LT(marked, 300U);
  receive_all(1, now_);
}

TEST_F(ShmPortTest, adds_one_telemetry_hop_to_a_frame_that_was_rejected_repeatedly) {
  auto telemetry = config(0, 2);
  telemetry.telemetry_port = kIntPort;
  telemetry.rate = BitsPerSec{25'000'000'000};
  ports_.push_back(open(telemetry));
  ports_.push_back(open(config(1, 2)));
  const uint32_t before = fill(now_);
  rte_mbuf* frame = with_telemetry(7);
  // Smaller frames fill the rest of the ring.
  while (send(0, roce_to(0, mac(1), 100), now_) == 1) continue;
  for (int attempt = 0; attempt < 3; ++attempt) ASSERT_EQ(ports_[0]->tx_burst({&frame, 1}, now_), 0);
  EXPECT_GT(receive_all(1, now_).size(), before);
  ASSERT_EQ(ports_[0]->tx_burst({&frame, 1}, now_), 1);
  const auto got = receive_all(1, now_);
  ASSERT_EQ(got.size(), 1U);
  const IntView view = parse_int(got[0], static_cast<uint32_t>(got[0].size()), kIntPort);
  ASSERT_TRUE(view.accepted());
  ASSERT_EQ(view.hop_count, 1U);
  ASSERT_TRUE(view.hop(0, 1));
  EXPECT_EQ(view.hop(0, 1)->port, 1U);
  EXPECT_EQ(view.hop(0, 1)->rate_mbps.value(), 25'000U);
  EXPECT_TRUE(ipv4_checksum_is_right(got[0]));
}

TEST_F(ShmPortTest, adds_no_telemetry_hop_without_a_telemetry_port) {
  open_ports(2, 2);
  ASSERT_EQ(send(0, with_telemetry(7), now_), 1);
  const auto got = receive_all(1, now_);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(parse_int(got[0], static_cast<uint32_t>(got[0].size()), kIntPort).hop_count, 0U);
}

TEST_F(ShmPortTest, new_owner_receives_no_frames_for_the_previous_owner) {
  open_ports(2, 2);
  for (int i = 0; i < 5; ++i) ASSERT_EQ(send(0, roce_to(0, mac(1), 100), now_), 1);
  ports_.pop_back();
  ports_.push_back(open(config(1, 2)));
  EXPECT_TRUE(receive_all(1, now_).empty());
  ASSERT_EQ(send(0, roce_to(0, mac(1), 100), now_), 1);
  EXPECT_EQ(receive_all(1, now_).size(), 1U);
}

TEST_F(ShmPortTest, open_rejects_slots_and_mtus_out_of_range) {
  auto wrong = config(3, 3);
  const auto slot = ShmPort::open(segment_, wrong);
  ASSERT_FALSE(slot);
  EXPECT_EQ(slot.error().message, "port shm3: slot 3 of 3; a network has at most 33");
  wrong = config(0, 2);
  wrong.mtu = 9800;
  EXPECT_FALSE(ShmPort::open(segment_, wrong));
}

}  // namespace
}  // namespace roci

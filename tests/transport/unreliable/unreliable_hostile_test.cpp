// Invalid packets for UC and UD: no response, no write outside the region, and the next valid message is received.
#include <gtest/gtest.h>

#include <cstring>

#include "support/hosts/lone_host.hpp"
#include "support/hosts/services.hpp"
#include "transport/messages/datagram.hpp"
#include "wire/net/arp.hpp"

namespace roci::test {
namespace {

// A queue pair of another service, in addition to the RC queue pair of LoneHost.
class HostileService : public testing::Test {
 protected:
  explicit HostileService(ibv_qp_type type) : qp_(make_service(host_.side, type)) {}

  void gets(const Packet& p) { EXPECT_EQ(host_.receive(p), Lines{}); }  // the host never responds
  void post(uint64_t wr_id, size_t length) { post(wr_id, LoneHost::kGuard, length); }
  void post(uint64_t wr_id, size_t offset, size_t length) {
    ASSERT_EQ(receive(host_.side, *qp_, wr_id, offset, length), 0);
  }
  uint64_t counter(const char* name) { return host_.side.counter(name); }

  LoneHost host_;
  std::unique_ptr<QueuePair> qp_;
};

// Path MTU 256, first PSN 100.
class HostileUc : public HostileService {
 protected:
  explicit HostileUc(int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
      : HostileService(IBV_QPT_UC) {
    connect_to(*qp_, IBV_QPT_UC, gid_of("10.0.0.2"), LoneHost::kPeerQp.value(), {.access = access});
    host_.work();
  }

  Packet packet(Opcode opcode, int ahead, size_t payload) {
    Packet p = host_.request(opcode, 0, payload);
    p.to(Qpn{qp_->qp_num()}, Psn{100 + static_cast<uint32_t>(ahead)});
    p.bth.ack_request = false;
    return p;
  }
  Packet write(Opcode opcode, int ahead, size_t offset, size_t payload, uint32_t length) {
    Packet p = packet(opcode, ahead, payload);
    if (p.reth)
      p.with_reth(host_.side.address(LoneHost::kGuard + offset), MemoryKey{host_.side.region->rkey()},
                  length);
    return p;
  }
  // Expects that a valid message is received, whatever its PSN.
  void expect_alive() {
    post(77, 100);
    gets(packet(Opcode::kUcSendOnly, 1000, 60));
    EXPECT_EQ(completion_lines(host_.side), Lines{"77 SUCCESS 60"});
    EXPECT_EQ(qp_->state(), IBV_QPS_RTS);
    EXPECT_TRUE(host_.guards_whole());
  }
};

class HostileUcReadOnly : public HostileUc {
 protected:
  HostileUcReadOnly() : HostileUc(IBV_ACCESS_LOCAL_WRITE) {}
};

TEST_F(HostileUc, middle_and_last_without_a_first_are_dropped) {
  gets(packet(Opcode::kUcSendMiddle, 0, 256));
  gets(packet(Opcode::kUcSendLast, 1, 10));
  gets(packet(Opcode::kUcWriteLast, 2, 10));
  EXPECT_EQ(counter("rx_no_message"), 3U);
  expect_alive();
}

TEST_F(HostileUc, opcode_change_within_a_message_drops_it) {
  post(77, 1000);
  gets(packet(Opcode::kUcSendFirst, 0, 256));
  gets(packet(Opcode::kUcWriteMiddle, 1, 256));
  gets(packet(Opcode::kUcSendLast, 2, 10));
  EXPECT_EQ(counter("uc_messages_dropped"), 1U);
  EXPECT_EQ(counter("rx_no_message"), 2U);
  gets(packet(Opcode::kUcSendOnly, 3, 60));
  EXPECT_EQ(completion_lines(host_.side), Lines{"77 SUCCESS 60"});
}

TEST_F(HostileUc, second_first_packet_restarts_the_message_in_the_same_buffer) {
  post(77, 1000);
  gets(packet(Opcode::kUcSendFirst, 0, 256));
  gets(packet(Opcode::kUcSendFirst, 1, 256));
  gets(packet(Opcode::kUcSendLast, 2, 4));
  EXPECT_EQ(completion_lines(host_.side), Lines{"77 SUCCESS 260"});
  EXPECT_EQ(counter("uc_messages_dropped"), 1U);
}

TEST_F(HostileUc, duplicate_packet_drops_the_message) {
  post(77, 1000);
  gets(packet(Opcode::kUcSendFirst, 0, 256));
  gets(packet(Opcode::kUcSendMiddle, 1, 256));
  gets(packet(Opcode::kUcSendMiddle, 1, 256));
  gets(packet(Opcode::kUcSendLast, 2, 4));
  EXPECT_EQ(completion_lines(host_.side), Lines{});
  EXPECT_EQ(counter("uc_messages_dropped"), 1U);
  expect_alive();
}

TEST_F(HostileUc, packets_with_invalid_payload_lengths_are_dropped) {
  post(1, 1000);
  gets(packet(Opcode::kUcSendFirst, 0, 255));
  gets(packet(Opcode::kUcSendOnly, 1, 257));
  gets(packet(Opcode::kUcSendFirst, 2, 256));
  gets(packet(Opcode::kUcSendLast, 3, 0));
  Packet pad = packet(Opcode::kUcSendOnly, 4, 3);
  pad.pad = {0, 0};
  gets(pad);
  EXPECT_EQ(counter("rx_refused") + counter("rx_malformed"), 4U);
  EXPECT_EQ(counter("uc_messages_dropped"), 1U);
  EXPECT_EQ(completion_lines(host_.side), Lines{});
}

TEST_F(HostileUc, write_with_a_mismatched_length_is_dropped) {
  gets(write(Opcode::kUcWriteOnly, 0, 0, 100, 101));
  gets(write(Opcode::kUcWriteFirst, 1, 0, 256, 256));
  gets(write(Opcode::kUcWriteFirst, 2, 0, 256, 300));
  gets(packet(Opcode::kUcWriteMiddle, 3, 256));
  gets(write(Opcode::kUcWriteFirst, 4, 0, 256, 300));
  gets(packet(Opcode::kUcWriteLast, 5, 45));
  gets(write(Opcode::kUcWriteFirst, 6, 0, 256, 0x80000001));
  EXPECT_EQ(counter("rx_refused"), 5U);
  expect_alive();
}

TEST_F(HostileUc, write_outside_the_region_or_with_a_wrong_key_is_dropped) {
  Packet p = write(Opcode::kUcWriteFirst, 0, 8192 - 256, 256, 257);  // the complete range is validated first
  gets(p);
  p = write(Opcode::kUcWriteOnly, 1, 0, 100, 100);
  p.with_reth(host_.side.address(LoneHost::kGuard), MemoryKey{host_.side.region->rkey() ^ 0x100}, 100);
  gets(p);
  p.with_reth(UINT64_MAX - 50, MemoryKey{host_.side.region->rkey()}, 100);
  gets(p);
  EXPECT_EQ(counter("rx_refused"), 3U);
  EXPECT_TRUE(std::all_of(host_.side.memory.begin() + LoneHost::kGuard,
                          host_.side.memory.end() - LoneHost::kGuard,
                          [](uint8_t byte) { return byte == 0xa5; }));
  expect_alive();
}

TEST_F(HostileUc, deregistration_during_a_write_drops_it) {
  gets(write(Opcode::kUcWriteFirst, 0, 0, 256, 600));
  host_.side.region.reset();
  gets(packet(Opcode::kUcWriteMiddle, 1, 256));
  EXPECT_EQ(counter("rx_refused"), 1U);
  EXPECT_EQ(counter("uc_messages_dropped"), 1U);
  EXPECT_EQ(qp_->state(), IBV_QPS_RTS);
}

TEST_F(HostileUcReadOnly, write_without_permission_is_dropped) {
  gets(write(Opcode::kUcWriteOnly, 0, 0, 100, 100));
  EXPECT_EQ(counter("rx_refused"), 1U);
  expect_alive();
}

TEST_F(HostileUc, write_with_immediate_without_a_receive_is_counted) {
  gets(write(Opcode::kUcWriteOnlyImm, 0, 0, 100, 100));
  EXPECT_EQ(counter("rx_no_receive"), 1U);
  EXPECT_EQ(completion_lines(host_.side), Lines{});
  expect_alive();
}

TEST_F(HostileUc, too_long_send_is_dropped_and_its_receive_request_reused) {
  post(5, 300);
  gets(packet(Opcode::kUcSendFirst, 0, 256));
  gets(packet(Opcode::kUcSendMiddle, 1, 256));
  gets(packet(Opcode::kUcSendLast, 2, 4));
  EXPECT_EQ(counter("rx_too_long"), 1U);
  gets(packet(Opcode::kUcSendOnly, 3, 60));
  EXPECT_EQ(completion_lines(host_.side), Lines{"5 SUCCESS 60"});
  EXPECT_TRUE(host_.guards_whole());
}

TEST_F(HostileUc, receive_outside_the_region_moves_the_queue_pair_to_error) {
  post(6, 0, 100);  // this address is outside the region
  post(7, 100);
  gets(packet(Opcode::kUcSendOnly, 0, 60));
  EXPECT_EQ(completion_lines(host_.side), (Lines{"6 LOC_PROT_ERR", "7 WR_FLUSH_ERR"}));
  EXPECT_EQ(qp_->state(), IBV_QPS_ERR);
  EXPECT_TRUE(host_.guards_whole());
}

TEST_F(HostileUc, wrong_service_source_and_partition_are_counted_and_dropped) {
  post(1, 1000);
  gets(packet(Opcode::kRcSendOnly, 0, 60));
  gets(packet(Opcode::kRcReadRequest, 0, 0));
  gets(packet(Opcode::kRcAcknowledge, 0, 0));
  gets(packet(Opcode::kUdSendOnly, 0, 60));
  EXPECT_EQ(counter("rx_wrong_transport"), 4U);
  Packet p = packet(Opcode::kUcSendOnly, 0, 60);
  p.between(MacAddress::local(2), IpAddress::from_v4(0x0a000009), MacAddress::local(1),
            IpAddress::from_v4(0x0a000001));
  gets(p);
  EXPECT_EQ(counter("rx_wrong_source"), 1U);
  p = packet(Opcode::kUcSendOnly, 0, 60);
  p.bth.pkey = PKey{0x8001};
  gets(p);
  EXPECT_EQ(counter("rx_wrong_pkey"), 1U);
  EXPECT_EQ(completion_lines(host_.side), Lines{});
}

TEST_F(HostileUc, cnps_and_ce_marked_packets_are_counted) {
  gets(packet(Opcode::kCnp, 0, 0));
  EXPECT_EQ(counter("rx_cnp"), 1U);
  post(1, 100);
  Packet p = packet(Opcode::kUcSendOnly, 0, 60);
  p.with_traffic_class(3);
  EXPECT_EQ(host_.receive(p), Lines{"CNP -100"});  // PSN 0
  EXPECT_EQ(counter("np_ecn_marked_roce_packets"), 1U);
  EXPECT_EQ(completion_lines(host_.side), Lines{"1 SUCCESS 60"});
}

TEST_F(HostileUc, packets_are_dropped_in_the_error_state) {
  post(1, 100);
  move_to(*qp_, IBV_QPS_ERR);
  gets(packet(Opcode::kUcSendOnly, 0, 60));
  EXPECT_EQ(counter("rx_bad_state"), 1U);
  EXPECT_EQ(completion_lines(host_.side), Lines{"1 WR_FLUSH_ERR"});
}

TEST_F(HostileUc, flood_without_receive_requests_is_only_counted) {
  for (int i = 0; i < 2000; ++i)
    gets(packet(i % 2 == 0 ? Opcode::kUcSendFirst : Opcode::kUcSendOnly, i, 256));
  EXPECT_EQ(counter("rx_refused"), 0U);
  EXPECT_EQ(counter("rx_no_receive"), 2000U);
  expect_alive();
}

TEST_F(HostileUc, segmented_frames_are_received_completely) {
  post(1, 600);
  EXPECT_EQ(host_.receive_bytes(encode_packet(packet(Opcode::kUcSendFirst, 0, 256).finish()), 70), Lines{});
  EXPECT_EQ(host_.receive_bytes(encode_packet(packet(Opcode::kUcSendLast, 1, 255).finish()), 33), Lines{});
  EXPECT_EQ(completion_lines(host_.side), Lines{"1 SUCCESS 511"});
  EXPECT_TRUE(holds(host_.side, LoneHost::kGuard, 255, 1));
  EXPECT_TRUE(holds(host_.side, LoneHost::kGuard + 256, 255, 1));
}

TEST_F(HostileUc, requests_wait_for_a_blocked_port) {
  host_.port().blocked = true;
  for (uint64_t i = 0; i < 16; ++i)
    ASSERT_EQ(send(host_.side, *qp_, {.wr_id = i, .offset = LoneHost::kGuard, .length = 2560}), 0);
  host_.work();
  EXPECT_LT(completion_lines(host_.side).size(), 16U);
  host_.port().blocked = false;
  host_.work();
  EXPECT_EQ(completion_lines(host_.side).back(), "15 SUCCESS 2560");
}

class HostileUd : public HostileService {
 protected:
  HostileUd() : HostileService(IBV_QPT_UD) { open_datagrams(*qp_); }

  Packet packet(size_t payload, Opcode opcode = Opcode::kUdSendOnly) {
    Packet p = host_.request(opcode, 0, payload);
    p.to(Qpn{qp_->qp_num()}, Psn{0xabcdef});
    if (p.deth) p.deth = DethValues{QKey{kQkey}, 0, Qpn{0x333}};
    return p;
  }
};

TEST_F(HostileUd, datagrams_are_accepted_from_any_host_with_any_psn) {
  for (uint64_t i = 0; i < 3; ++i) {
    post(i, 200);
    Packet p = packet(8);
    p.between(MacAddress::local(50 + i), IpAddress::from_v4(0x0a000050 + static_cast<uint32_t>(i)),
              MacAddress::local(1), IpAddress::from_v4(0x0a000001));
    p.bth.psn = Psn{static_cast<uint32_t>(i * 1000)};
    gets(p);
  }
  const auto all = host_.side.completions();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[2].src_qp, 0x333U);
}

TEST_F(HostileUd, datagrams_to_other_addresses_are_dropped) {
  post(1, 200);
  const auto to = [&](const MacAddress& mac, uint32_t ip) {
    Packet p = packet(8);
    p.between(MacAddress::local(2), IpAddress::from_v4(0x0a000002), mac, IpAddress::from_v4(ip));
    gets(p);
  };
  to(MacAddress::local(1), 0x0a000003);                           // address of another host
  to(MacAddress::local(1), 0xef010203);                           // group address, unicast MAC
  to(multicast_mac(IpAddress::from_v4(0xef010203)), 0x0a000001);  // this host's address, multicast MAC
  // Group address, QPN of one queue pair.
  to(multicast_mac(IpAddress::from_v4(0xef010203)), 0xef010203);
  EXPECT_EQ(counter("rx_not_for_host"), 4U);
  EXPECT_EQ(completion_lines(host_.side), Lines{});
  to(MacAddress::local(1), 0x0a000001);
  EXPECT_EQ(completion_lines(host_.side), Lines{"1 SUCCESS 48"});
}

TEST_F(HostileUd, multicast_qpn_without_a_group_address_is_dropped) {
  must(qp_->attach_multicast(gid_of("239.1.2.3")));
  post(1, 200);
  Packet p = packet(8);
  p.bth.destination_qp = kMulticastQp;
  gets(p);
  EXPECT_EQ(counter("rx_not_for_host"), 1U);
  // Connected services do not support multicast.
  p = packet(8, Opcode::kRcSendOnly);
  p.bth.destination_qp = kMulticastQp;
  const IpAddress group = IpAddress::from_v4(0xef010203);
  p.between(MacAddress::local(2), IpAddress::from_v4(0x0a000002), multicast_mac(group), group);
  gets(p);
  EXPECT_EQ(counter("rx_unknown_qp"), 1U);
  EXPECT_EQ(completion_lines(host_.side), Lines{});
  gets(packet(8));
  EXPECT_EQ(completion_lines(host_.side), Lines{"1 SUCCESS 48"});
}

TEST_F(HostileUd, wrong_qkey_partition_service_and_pad_are_dropped) {
  post(1, 200);
  Packet p = packet(8);
  p.deth->qkey = QKey{kQkey ^ 1};
  gets(p);
  EXPECT_EQ(counter("rx_wrong_qkey"), 1U);
  p = packet(8);
  p.bth.pkey = PKey{1};
  gets(p);
  EXPECT_EQ(counter("rx_wrong_pkey"), 1U);
  gets(packet(8, Opcode::kUcSendOnly));
  gets(packet(8, Opcode::kRcSendOnly));
  EXPECT_EQ(counter("rx_wrong_transport"), 2U);
  p = packet(8);
  p.pad = {0};
  gets(p);
  gets(packet(4097));
  EXPECT_EQ(counter("rx_refused"), 2U);
  gets(packet(0, Opcode::kCnp));
  EXPECT_EQ(counter("rx_cnp"), 1U);
  EXPECT_EQ(completion_lines(host_.side), Lines{});
  gets(packet(8));
  EXPECT_EQ(completion_lines(host_.side), Lines{"1 SUCCESS 48"});
}

TEST_F(HostileUd, limited_member_of_the_default_partition_is_accepted) {
  post(1, 200);
  Packet p = packet(8);
  p.bth.pkey = PKey{0x7fff};
  gets(p);
  EXPECT_EQ(completion_lines(host_.side), Lines{"1 SUCCESS 48"});
}

// Truncates the frame at every offset and adjusts the lengths.
TEST_F(HostileUd, truncated_frame_is_dropped) {
  post(1, 200);
  Packet whole = packet(0);
  const ByteVector bytes = encode_packet(whole.finish());
  for (size_t length = 1; length < bytes.size(); ++length)
    host_.receive_bytes(ByteVector(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(length)));
  whole.deth.reset();  // the opcode requires a DETH, but the lengths leave no space for it
  whole.payload.clear();
  gets(whole);
  EXPECT_EQ(counter("rx_malformed"), bytes.size());
  EXPECT_EQ(completion_lines(host_.side), Lines{});
  EXPECT_TRUE(host_.guards_whole());
}

TEST_F(HostileUd, flood_without_receive_requests_is_only_counted) {
  for (int i = 0; i < 2000; ++i) gets(packet(256));
  EXPECT_EQ(counter("rx_no_receive"), 2000U);
  post(1, 200);
  gets(packet(8));
  EXPECT_EQ(completion_lines(host_.side), Lines{"1 SUCCESS 48"});
}

TEST_F(HostileUd, receive_buffer_smaller_than_the_header_area_is_not_used) {
  post(1, 39);
  gets(packet(0));
  EXPECT_EQ(counter("rx_too_long"), 1U);
  EXPECT_EQ(completion_lines(host_.side), Lines{});
  EXPECT_TRUE(host_.guards_whole());
}

TEST_F(HostileUd, header_area_outside_the_region_moves_the_queue_pair_to_error) {
  post(6, LoneHost::kGuard - 20, 200);
  gets(packet(8));
  EXPECT_EQ(completion_lines(host_.side), Lines{"6 LOC_PROT_ERR"});
  EXPECT_EQ(qp_->state(), IBV_QPS_ERR);
  EXPECT_TRUE(host_.guards_whole());
}

TEST_F(HostileUd, ipv4_options_are_omitted_from_the_header_area) {
  post(1, 200);
  Packet p = packet(8);
  p.v4().options = {1, 1, 1, 1};
  gets(p);
  EXPECT_EQ(completion_lines(host_.side), Lines{"1 SUCCESS 48"});
  EXPECT_EQ(host_.side.memory[LoneHost::kGuard + 20], 0x46);
  EXPECT_TRUE(holds(host_.side, LoneHost::kGuard + 40, 8, 1));
}

TEST_F(HostileUd, destination_mac_follows_a_neighbor_update) {
  const auto answers_arp = [&](uint64_t mac) {
    ByteVector frame(kMaxArpFrame);
    const IpAddress ip = IpAddress::from_v4(0x0a000009);
    frame.resize(build_arp({MacAddress::local(1), MacAddress::local(mac)},
                           {ArpOperation::kReply, MacAddress::local(mac), ip, MacAddress::local(1),
                            IpAddress::from_v4(0x0a000001)},
                           frame));
    host_.port().put(frame);
  };
  auto to_peer = must(host_.side.pd->create_address_handle(address_of(gid_of("10.0.0.9"))));
  const auto sends = [&] {
    ASSERT_EQ(send(host_.side, *qp_,
                   {.offset = LoneHost::kGuard, .length = 8, .to = to_peer.get(), .remote_qp = 5}),
              0);
  };
  const auto works = [&] {
    std::vector<MacAddress> macs;
    for (const Packet& p : host_.work_for_packets()) macs.push_back(p.destination_mac);
    return macs;
  };
  sends();
  EXPECT_TRUE(works().empty());  // no ARP reply yet
  answers_arp(9);
  EXPECT_EQ(works(), std::vector{MacAddress::local(9)});
  answers_arp(10);  // the known neighbor is probed first, by the next use
  works();
  host_.now += 100ms;
  sends();
  EXPECT_EQ(works(), std::vector{MacAddress::local(9)});
  for (int i = 0; i < 20; ++i) {
    host_.now += 100ms;
    works();
  }
  answers_arp(10);
  sends();
  EXPECT_EQ(works(), std::vector{MacAddress::local(10)});
}

// The datagram functions of the management queue pair, which has no QueuePair object.
TEST(DatagramFunctions, build_and_read_without_a_queue_pair) {
  LoneHost host;
  struct Sink final : PacketSink {
    explicit Sink(const MbufPool& of) : pool(of) {}
    rte_mbuf* allocate() override { return rte_pktmbuf_alloc(pool.get()); }
    void send(rte_mbuf* frame) override { sent = frame; }
    const MbufPool& pool;
    rte_mbuf* sent = nullptr;
  } sink(host.pool());
  RocePath path;
  path.source_ip = IpAddress::from_v4(0x0a000001);
  path.destination_ip = IpAddress::from_v4(0x0a000002);
  RoceWriter writer(path);
  const ByteVector payload = {1, 2, 3, 4, 5};
  const DatagramFields fields{.destination_qp = Qpn{1},
                              .source_qp = Qpn{1},
                              .qkey = QKey{0x80010000},
                              .psn = Psn{9},
                              .ack_request = true,
                              .udp_source_port = datagram_udp_source_port(Qpn{1})};
  ASSERT_EQ(send_datagram(sink, writer, fields, payload), SendOutcome::kSent);
  const FrameView view = parse_frame(rte_pktmbuf_mtod(sink.sent, const uint8_t*),
                                     rte_pktmbuf_data_len(sink.sent), rte_pktmbuf_pkt_len(sink.sent));
  ASSERT_EQ(view.kind, FrameKind::kRoce);
  EXPECT_EQ(view.udp().source_port.get(), 55410);
  EXPECT_TRUE(view.bth().ack_requested());
  Counters counters;
  EXPECT_TRUE(accept_datagram(counters, view, kDefaultPKey, QKey{0x80010000}));
  EXPECT_FALSE(accept_datagram(counters, view, kDefaultPKey, QKey{0x80010001}));
  EXPECT_EQ(counters.get(Counter::kRxWrongQkey), 1U);
  ByteVector out(5);
  EXPECT_EQ(copy_datagram(view, sink.sent, out), 5U);
  EXPECT_EQ(out, payload);
  out.resize(4);
  EXPECT_EQ(copy_datagram(view, sink.sent, out), 0U);
  rte_pktmbuf_free(sink.sent);
}

}  // namespace
}  // namespace roci::test

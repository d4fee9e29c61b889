// UD between two hosts: addresses, Q_Keys, the header area of the receive buffer, and late address resolution.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/hosts/services.hpp"
#include "transport/messages/datagram.hpp"

namespace roci::test {
namespace {

class Datagrams : public testing::Test {
 protected:
  explicit Datagrams(const TwoHostsOptions& options = {}) : hosts_(options) {
    hosts_.connect();
    a_ = make_service(hosts_.a, IBV_QPT_UD);
    b_ = make_service(hosts_.b, IBV_QPT_UD);
    open_datagrams(*a_, kQkey, 0x1000);
    open_datagrams(*b_, kQkey, 0x2000);
    to_b_ = must(hosts_.a.pd->create_address_handle(address_of(must(hosts_.b.device->query_gid(1)))));
    fill(hosts_.a, 0, 8192, 7);
  }

  int post(SendOptions options) {
    if (options.to == nullptr) options.to = to_b_.get();
    if (options.remote_qp == 0) options.remote_qp = b_->qp_num();
    return send(hosts_.a, *a_, options);
  }
  Lines sends(const SendOptions& options) {
    EXPECT_EQ(post(options), 0);
    hosts_.run(1ms);
    return completion_lines(hosts_.a);
  }

  TwoHosts hosts_;
  std::unique_ptr<QueuePair> a_, b_;
  std::unique_ptr<AddressHandle> to_b_;
};

class DatagramsV6 : public Datagrams {
 protected:
  DatagramsV6() : Datagrams({.ipv6 = true}) {}
};

TEST_F(Datagrams, payload_follows_40_bytes_that_end_with_the_ipv4_header) {
  ASSERT_EQ(receive(hosts_.b, *b_, 9, 0, 1000), 0);
  EXPECT_EQ(sends({.wr_id = 3, .length = 300}), Lines{"3 SUCCESS 300"});
  EXPECT_EQ(hosts_.wire, Lines{"> UD_SEND_ONLY 0"});
  const auto all = hosts_.b.completions();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].wr_id, 9U);
  EXPECT_EQ(all[0].byte_len, 340U);
  EXPECT_EQ(all[0].opcode, IBV_WC_RECV);
  EXPECT_EQ(all[0].wc_flags, static_cast<unsigned>(IBV_WC_GRH));
  EXPECT_EQ(all[0].src_qp, a_->qp_num());
  EXPECT_EQ(all[0].qp_num, b_->qp_num());
  EXPECT_EQ(all[0].pkey_index, 0);
  EXPECT_EQ(all[0].slid, 0);
  EXPECT_EQ(all[0].sl, 0xa);
  EXPECT_TRUE(holds(hosts_.b, 40, 300, 7));
  const std::vector<uint8_t>& memory = hosts_.b.memory;
  EXPECT_TRUE(std::all_of(memory.begin(), memory.begin() + 20, [](uint8_t byte) { return byte == 0; }));
  Ipv4Header ip;
  std::memcpy(static_cast<void*>(&ip), memory.data() + 20, sizeof ip);
  EXPECT_EQ(ip.version_ihl, 0x45);
  EXPECT_EQ(ip.source.get(), 0x0a000001U);
  EXPECT_EQ(ip.destination.get(), 0x0a000002U);
  EXPECT_EQ(ip.total_length.get(), 20 + 8 + 12 + 8 + 300 + 4);
}

TEST_F(DatagramsV6, payload_follows_the_ipv6_header) {
  ASSERT_EQ(receive(hosts_.b, *b_, 9, 0, 1000), 0);
  sends({.length = 300});
  const auto all = hosts_.b.completions();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].byte_len, 340U);
  EXPECT_EQ(all[0].sl, 0x9);
  EXPECT_TRUE(holds(hosts_.b, 40, 300, 7));
  Ipv6Header ip;
  std::memcpy(static_cast<void*>(&ip), hosts_.b.memory.data(), sizeof ip);
  EXPECT_EQ(IpAddress{ip.source}, must(IpAddress::parse("fd00::1")));
  EXPECT_EQ(IpAddress{ip.destination}, must(IpAddress::parse("fd00::2")));
}

TEST_F(Datagrams, immediate_data_arrives) {
  ASSERT_EQ(receive(hosts_.b, *b_, 9, 0, 1000), 0);
  sends({.opcode = IBV_WR_SEND_WITH_IMM, .length = 3, .immediate = 0x01020304});
  EXPECT_EQ(hosts_.wire, Lines{"> UD_SEND_ONLY_IMM 0"});
  const auto all = hosts_.b.completions();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].wc_flags, static_cast<unsigned>(IBV_WC_GRH | IBV_WC_WITH_IMM));
  EXPECT_EQ(all[0].imm_data, __builtin_bswap32(0x01020304));
}

TEST_F(Datagrams, header_and_payload_fill_a_scatter_list) {
  ibv_sge pieces[3] = {hosts_.b.sge(0, 30), hosts_.b.sge(100, 30), hosts_.b.sge(200, 100)};
  ibv_recv_wr wr{};
  wr.sg_list = pieces;
  wr.num_sge = 3;
  ASSERT_EQ(b_->post_recv(&wr, nullptr), 0);
  sends({.length = 100});
  EXPECT_EQ(hosts_.b.memory[20], 0x45);  // the IPv4 header continues in the second segment
  EXPECT_TRUE(holds(hosts_.b, 110, 20, 7));
  EXPECT_TRUE(holds(hosts_.b, 200, 80, 27));
}

TEST_F(Datagrams, empty_and_inline_datagrams_arrive) {
  ASSERT_EQ(receive(hosts_.b, *b_, 1, 0, 40), 0);
  ASSERT_EQ(receive(hosts_.b, *b_, 2, 0, 104), 0);
  sends({.length = 0});
  ASSERT_EQ(post({.length = 64, .flags = IBV_SEND_INLINE}), 0);
  fill(hosts_.a, 0, 64, 99);
  hosts_.run(1ms);
  EXPECT_EQ(completion_lines(hosts_.b), (Lines{"1 SUCCESS 40", "2 SUCCESS 104"}));
  EXPECT_TRUE(holds(hosts_.b, 40, 60, 7));
}

TEST_F(Datagrams, message_longer_than_the_port_mtu_completes_with_a_length_error) {
  ASSERT_EQ(receive(hosts_.b, *b_, 1, 10000, 5000), 0);
  EXPECT_EQ(sends({.length = 4096}), Lines{"1 SUCCESS 4096"});
  EXPECT_EQ(completion_lines(hosts_.b), Lines{"1 SUCCESS 4136"});
  hosts_.wire.clear();
  EXPECT_EQ(sends({.wr_id = 2, .length = 4097}), Lines{"2 LOC_LEN_ERR"});
  EXPECT_EQ(a_->state(), IBV_QPS_SQE);
  EXPECT_EQ(hosts_.wire, Lines{});
}

TEST_F(Datagrams, operations_of_other_services_complete_with_an_error) {
  for (const ibv_wr_opcode opcode :
       {IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_ATOMIC_CMP_AND_SWP,
        IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_SEND_WITH_INV}) {
    SCOPED_TRACE(opcode);
    hosts_.wire.clear();
    // Without an address handle: the fields of a WRITE and those of a datagram share memory.
    ASSERT_EQ(send(hosts_.a, *a_, {.wr_id = 1, .opcode = opcode, .length = 8}), 0);
    EXPECT_EQ(sends({.wr_id = 2, .length = 8}), (Lines{"1 LOC_QP_OP_ERR", "2 WR_FLUSH_ERR"}));
    EXPECT_EQ(hosts_.wire, Lines{});
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTS;
    must(a_->modify(attr, IBV_QP_STATE));
  }
}

TEST_F(Datagrams, upper_8_bits_of_the_remote_queue_pair_number_are_ignored) {
  ASSERT_EQ(receive(hosts_.b, *b_, 1, 0, 1000), 0);
  ASSERT_EQ(send(hosts_.a, *a_,
                 {.length = 8, .to = to_b_.get(), .remote_qp = b_->qp_num() | 0xde000000, .qkey = kQkey}),
            0);
  hosts_.run(1ms);
  EXPECT_EQ(completion_lines(hosts_.b), Lines{"1 SUCCESS 48"});
}

TEST_F(Datagrams, post_rejects_invalid_queue_pair_number_and_address_handle) {
  SendOptions options{.length = 8, .to = to_b_.get(), .remote_qp = b_->qp_num()};
  options.remote_qp = 0xffffff;  // not valid for a unicast address
  EXPECT_EQ(send(hosts_.a, *a_, options), EINVAL);
  EXPECT_EQ(send(hosts_.a, *a_, {.length = 8}), EINVAL);
  auto other = must(hosts_.a.device->allocate_pd());
  auto foreign = must(other->create_address_handle(address_of(gid_of("10.0.0.2"))));
  EXPECT_EQ(send(hosts_.a, *a_, {.length = 8, .to = foreign.get(), .remote_qp = 5}), EINVAL);
}

TEST_F(Datagrams, datagram_with_a_wrong_qkey_is_dropped_and_counted) {
  ASSERT_EQ(receive(hosts_.b, *b_, 1, 0, 1000), 0);
  EXPECT_EQ(sends({.length = 8, .qkey = kQkey + 1}), Lines{"1 SUCCESS 8"});
  EXPECT_EQ(hosts_.b.counter("rx_wrong_qkey"), 1U);
  EXPECT_EQ(completion_lines(hosts_.b), Lines{});
}

TEST_F(Datagrams, qkey_with_the_high_bit_selects_the_qkey_of_the_queue_pair) {
  ASSERT_EQ(receive(hosts_.b, *b_, 1, 0, 1000), 0);
  sends({.length = 8, .qkey = 0x80000000});
  EXPECT_EQ(completion_lines(hosts_.b), Lines{"1 SUCCESS 48"});
}

TEST_F(Datagrams, qkey_can_be_modified_in_rts) {
  ASSERT_EQ(receive(hosts_.b, *b_, 1, 0, 1000), 0);
  ibv_qp_attr attr{};
  attr.qkey = 0x99;
  must(b_->modify(attr, IBV_QP_QKEY));
  sends({.length = 8});
  sends({.length = 9, .qkey = 0x99});
  EXPECT_EQ(completion_lines(hosts_.b), Lines{"1 SUCCESS 49"});
  b_->query(&attr, nullptr);
  EXPECT_EQ(attr.qkey, 0x99U);
}

TEST_F(Datagrams, datagram_without_a_receive_request_is_dropped) {
  EXPECT_EQ(sends({.length = 8}), Lines{"1 SUCCESS 8"});
  EXPECT_EQ(hosts_.b.counter("rx_no_receive"), 1U);
  ASSERT_EQ(receive(hosts_.b, *b_, 1, 0, 1000), 0);
  hosts_.run(1ms);
  EXPECT_EQ(completion_lines(hosts_.b), Lines{});
}

TEST_F(Datagrams, too_long_datagram_is_dropped_and_leaves_the_receive_request) {
  ASSERT_EQ(receive(hosts_.b, *b_, 1, 0, 147), 0);
  sends({.length = 108});
  EXPECT_EQ(hosts_.b.counter("rx_too_long"), 1U);
  sends({.length = 107});
  EXPECT_EQ(completion_lines(hosts_.b), Lines{"1 SUCCESS 147"});
  EXPECT_EQ(b_->state(), IBV_QPS_RTS);
}

TEST_F(Datagrams, receive_into_deregistered_memory_is_a_protection_error) {
  ASSERT_EQ(receive(hosts_.b, *b_, 1, 0, 1000), 0);
  hosts_.b.region.reset();
  sends({.length = 8});
  EXPECT_EQ(completion_lines(hosts_.b), Lines{"1 LOC_PROT_ERR"});
  EXPECT_EQ(b_->state(), IBV_QPS_ERR);
}

TEST_F(Datagrams, send_with_an_unknown_key_stops_the_send_queue) {
  ASSERT_EQ(receive(hosts_.a, *a_, 50, 0, 100), 0);
  ibv_sge list{hosts_.a.address(0), 8, hosts_.a.region->lkey() ^ 0x100};
  ibv_send_wr wr{};
  wr.wr_id = 4;
  wr.sg_list = &list;
  wr.num_sge = 1;
  wr.wr.ud = {to_b_->handle(), b_->qp_num(), kQkey};
  wr.opcode = IBV_WR_SEND;
  ASSERT_EQ(a_->post_send(&wr, nullptr), 0);
  EXPECT_EQ(sends({.wr_id = 5, .length = 8}), (Lines{"4 LOC_PROT_ERR", "5 WR_FLUSH_ERR"}));
  EXPECT_EQ(a_->state(), IBV_QPS_SQE);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  must(a_->modify(attr, IBV_QP_STATE));
  EXPECT_EQ(sends({.wr_id = 6, .length = 8}), Lines{"6 SUCCESS 8"});
}

TEST_F(Datagrams, datagrams_wait_in_order_for_address_resolution) {
  TwoHosts fresh;  // no address is resolved yet
  auto a = make_service(fresh.a, IBV_QPT_UD);
  auto b = make_service(fresh.b, IBV_QPT_UD);
  open_datagrams(*a);
  open_datagrams(*b);
  auto to_b = must(fresh.a.pd->create_address_handle(address_of(gid_of("10.0.0.2"))));
  for (uint64_t i = 1; i <= 3; ++i) {
    ASSERT_EQ(receive(fresh.b, *b, i, 100 * i, 100), 0);
    ASSERT_EQ(send(fresh.a, *a, {.wr_id = i, .length = i, .to = to_b.get(), .remote_qp = b->qp_num()}), 0);
  }
  fresh.run(1ms);
  EXPECT_EQ(completion_lines(fresh.a), (Lines{"1 SUCCESS 1", "2 SUCCESS 2", "3 SUCCESS 3"}));
  EXPECT_EQ(completion_lines(fresh.b), (Lines{"1 SUCCESS 41", "2 SUCCESS 42", "3 SUCCESS 43"}));
}

TEST_F(Datagrams, datagram_to_an_unresolved_host_is_dropped_before_the_next_one) {
  auto nowhere = must(hosts_.a.pd->create_address_handle(address_of(gid_of("10.0.0.77"))));
  ASSERT_EQ(receive(hosts_.b, *b_, 9, 0, 100), 0);
  ASSERT_EQ(post({.wr_id = 1, .length = 8, .to = nowhere.get()}), 0);
  ASSERT_EQ(post({.wr_id = 2, .length = 9}), 0);
  hosts_.run(1s);
  EXPECT_EQ(completion_lines(hosts_.a), Lines{});
  hosts_.run(5s);
  EXPECT_EQ(completion_lines(hosts_.a), (Lines{"1 SUCCESS 8", "2 SUCCESS 9"}));
  EXPECT_EQ(hosts_.a.counter("tx_unreachable"), 1U);
  EXPECT_EQ(completion_lines(hosts_.b), Lines{"9 SUCCESS 49"});
}

TEST_F(Datagrams, datagram_without_a_route_is_dropped_at_once) {
  auto nowhere = must(hosts_.a.pd->create_address_handle(address_of(gid_of("192.168.9.9"))));
  EXPECT_EQ(sends({.wr_id = 1, .length = 8, .to = nowhere.get()}), Lines{"1 SUCCESS 8"});
  EXPECT_EQ(hosts_.a.counter("tx_unreachable"), 1U);
}

TEST_F(Datagrams, address_handle_can_be_destroyed_while_requests_use_it) {
  TwoHosts fresh;
  auto a = make_service(fresh.a, IBV_QPT_UD);
  auto b = make_service(fresh.b, IBV_QPT_UD);
  open_datagrams(*a);
  open_datagrams(*b);
  auto to_b = must(fresh.a.pd->create_address_handle(address_of(gid_of("10.0.0.2"))));
  ASSERT_EQ(receive(fresh.b, *b, 1, 0, 100), 0);
  ASSERT_EQ(send(fresh.a, *a, {.length = 8, .to = to_b.get(), .remote_qp = b->qp_num()}), 0);
  to_b.reset();
  EXPECT_EQ(fresh.a.device->host().retired_addresses().size(), 1U);
  fresh.run(1ms);
  EXPECT_EQ(completion_lines(fresh.b), Lines{"1 SUCCESS 48"});
  // The next creation of an address handle frees retired ones.
  must(fresh.a.pd->create_address_handle(address_of(gid_of("10.0.0.3"))));
  EXPECT_EQ(fresh.a.device->host().retired_addresses().size(), 0U);
}

TEST_F(Datagrams, destroyed_queue_pair_releases_its_address_handles) {
  auto nowhere = must(hosts_.a.pd->create_address_handle(address_of(gid_of("10.0.0.77"))));
  ASSERT_EQ(post({.length = 8, .to = nowhere.get()}), 0);
  hosts_.run(1ms);
  a_.reset();
  nowhere.reset();
  EXPECT_EQ(hosts_.a.device->host().retired_addresses().size(), 0U);
}

TEST_F(Datagrams, queue_pair_in_error_releases_its_address_handles) {
  auto nowhere = must(hosts_.a.pd->create_address_handle(address_of(gid_of("10.0.0.77"))));
  ASSERT_EQ(post({.wr_id = 8, .length = 8, .to = nowhere.get()}), 0);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  must(a_->modify(attr, IBV_QP_STATE));
  hosts_.run(1ms);
  EXPECT_EQ(completion_lines(hosts_.a), Lines{"8 WR_FLUSH_ERR"});
  nowhere.reset();
  EXPECT_EQ(hosts_.a.device->host().retired_addresses().size(), 0U);
}

TEST_F(Datagrams, udp_source_port_derives_from_queue_pair_or_flow_label) {
  std::vector<uint16_t> ports;
  hosts_.link().set_script(SimLink::kAToB, [&](const rte_mbuf& frame, uint64_t) {
    const FrameView view = parse_frame(rte_pktmbuf_mtod(&frame, const uint8_t*), rte_pktmbuf_data_len(&frame),
                                       rte_pktmbuf_pkt_len(&frame));
    if (view.kind == FrameKind::kRoce) ports.push_back(view.udp().source_port.get());
    return SimVerdict{};
  });
  sends({.length = 8});
  ibv_ah_attr labelled = address_of(gid_of("10.0.0.2"));
  labelled.grh.flow_label = 0x12345;
  auto to_b = must(hosts_.a.pd->create_address_handle(labelled));
  sends({.length = 8, .to = to_b.get()});
  EXPECT_EQ(ports, (std::vector<uint16_t>{datagram_udp_source_port(Qpn{a_->qp_num()}),
                                          flow_udp_source_port(0x12345, Qpn{}, Qpn{})}));
}

TEST(DatagramPort, matches_the_linux_kernel) {  // values captured from Linux
  EXPECT_EQ(datagram_udp_source_port(Qpn{1}), 55410);
  EXPECT_EQ(datagram_udp_source_port(Qpn{0x13}), 53368);
  EXPECT_EQ(datagram_udp_source_port(Qpn{0x27}), 63843);
}

TEST_F(Datagrams, one_queue_pair_sends_to_five_peers) {
  std::vector<std::unique_ptr<QueuePair>> peers;
  for (uint64_t i = 0; i < 5; ++i) {
    peers.push_back(make_service(hosts_.b, IBV_QPT_UD));
    open_datagrams(*peers.back());
    ASSERT_EQ(receive(hosts_.b, *peers.back(), i, 100 * i, 100), 0);
    ASSERT_EQ(post({.wr_id = i, .length = i, .remote_qp = peers.back()->qp_num()}), 0);
  }
  hosts_.run(1ms);
  EXPECT_EQ(completion_lines(hosts_.b),
            (Lines{"0 SUCCESS 40", "1 SUCCESS 41", "2 SUCCESS 42", "3 SUCCESS 43", "4 SUCCESS 44"}));
}

}  // namespace
}  // namespace roci::test

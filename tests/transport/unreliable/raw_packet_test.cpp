// Raw packet queue pairs and flow rules: which frames which queue pair receives, and what remains with the host.
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cstddef>
#include <cstring>
#include <set>

#include "support/hosts/lone_host.hpp"
#include "support/hosts/services.hpp"

namespace roci::test {
namespace {

using Mac = std::array<uint8_t, 6>;
constexpr Mac kGroup{0x01, 0x50, 0x56, 0x19, 0x20, 0xa7};
constexpr Mac kOtherHost{0x02, 0, 0, 0, 0x77, 0x77};

Mac mac_of(const Side& side) {
  Mac mac;
  const MacAddress own = side.device->host().port().mac();
  std::memcpy(mac.data(), &own, sizeof mac);
  return mac;
}

struct FrameOptions {
  Mac to{}, from = {0x02, 0, 0, 0, 0x55, 0x55};
  uint16_t vlan = 0;
  bool ipv6 = false;
  uint8_t protocol = IPPROTO_UDP;
  uint8_t last_byte = 2;  // of the destination address
  uint16_t source_port = 1234, destination_port = 5678;
  size_t payload = 40;
};

// With checksums of 0: flow rules do not check them.
ByteVector frame_of(const FrameOptions& of) {
  ByteVector bytes;
  const auto put = [&bytes](std::initializer_list<int> values) {
    for (const int value : values) bytes.push_back(static_cast<uint8_t>(value));
  };
  const auto put16 = [&put](size_t value) {
    put({static_cast<int>(value >> 8), static_cast<int>(value & 0xff)});
  };
  bytes.insert(bytes.end(), of.to.begin(), of.to.end());
  bytes.insert(bytes.end(), of.from.begin(), of.from.end());
  if (of.vlan != 0) {
    put16(kEtherTypeVlan);
    put16(of.vlan);
  }
  const size_t l4 = (of.protocol == IPPROTO_TCP ? 20 : 8) + of.payload;
  put16(of.ipv6 ? kEtherTypeIpv6 : kEtherTypeIpv4);
  if (of.ipv6) {
    put({0x60, 0, 0, 7});
    put16(l4);
    put({of.protocol, 64});
    for (const int last : {1, int{of.last_byte}}) put({0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last});
  } else {
    put({0x45, 0});
    put16(20 + l4);
    put({0, 1, 0, 0, 64, of.protocol, 0, 0, 10, 9, 0, 1, 10, 9, 0, of.last_byte});
  }
  put16(of.source_port);
  put16(of.destination_port);
  for (size_t i = 4; i < l4; ++i) bytes.push_back(static_cast<uint8_t>(i));
  return bytes;
}

// ibv_flow_attr with the specifications behind it.
class RuleAttr {
 public:
  explicit RuleAttr(ibv_flow_attr_type type = IBV_FLOW_ATTR_NORMAL, uint16_t priority = 0,
                    uint32_t flags = 0) {
    attr().type = type;
    attr().priority = priority;
    attr().port = 1;
    attr().flags = flags;
  }
  template <class Spec>
  RuleAttr& add(Spec spec, ibv_flow_spec_type type) {
    spec.type = type;
    spec.size = sizeof spec;
    std::memcpy(bytes_.data() + used_, &spec, sizeof spec);
    used_ += sizeof spec;
    ++attr().num_of_specs;
    return *this;
  }
  RuleAttr& to(const Mac& mac) {
    ibv_flow_spec_eth spec{};
    std::memcpy(spec.val.dst_mac, mac.data(), sizeof mac);
    std::memset(spec.mask.dst_mac, 0xff, sizeof mac);
    return add(spec, IBV_FLOW_SPEC_ETH);
  }
  RuleAttr& port(uint16_t destination, ibv_flow_spec_type type = IBV_FLOW_SPEC_UDP) {
    ibv_flow_spec_tcp_udp spec{};
    spec.val.dst_port = htons(destination);
    spec.mask.dst_port = 0xffff;
    return add(spec, type);
  }
  RuleAttr& drop() { return add(ibv_flow_spec_action_drop{}, IBV_FLOW_SPEC_ACTION_DROP); }
  ibv_flow_attr& attr() { return *reinterpret_cast<ibv_flow_attr*>(bytes_.data()); }

 private:
  alignas(8) std::array<uint8_t, 512> bytes_{};
  size_t used_ = sizeof(ibv_flow_attr);
};

void open_raw(QueuePair& qp) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  must(qp.modify(attr, IBV_QP_STATE | IBV_QP_PORT));
  for (const ibv_qp_state state : {IBV_QPS_RTR, IBV_QPS_RTS}) {
    attr.qp_state = state;
    must(qp.modify(attr, IBV_QP_STATE));
  }
}

std::unique_ptr<QueuePair> raw(Side& side, SharedReceiveQueue* srq = nullptr) {
  auto qp = make_service(side, IBV_QPT_RAW_PACKET, srq);
  open_raw(*qp);
  return qp;
}

void put(Side& side, size_t offset, const ByteVector& frame) {
  std::ranges::copy(frame, side.memory.begin() + static_cast<ptrdiff_t>(offset));
}
ByteVector get(const Side& side, size_t offset, size_t length) {
  const auto from = side.memory.begin() + static_cast<ptrdiff_t>(offset);
  return {from, from + static_cast<ptrdiff_t>(length)};
}

class RawPacket : public testing::TestWithParam<uint32_t> {  // number of workers of the receiving host
 protected:
  RawPacket() : hosts_(options(GetParam())) {
    hosts_.connect();
    sender_ = raw(hosts_.a);
  }
  static TwoHostsOptions options(uint32_t workers) {
    TwoHostsOptions options;
    options.workers = {1, workers};
    options.queues = {1, static_cast<uint16_t>(workers)};
    return options;
  }
  Lines sends(const ByteVector& frame) {
    put(hosts_.a, 0, frame);
    EXPECT_EQ(send(hosts_.a, *sender_, {.length = frame.size()}), 0);
    hosts_.run(1ms);
    return completion_lines(hosts_.a);
  }
  // Receivers on the other host, with four receive requests each: number 1 has requests 10 to 13 at offset 10000.
  std::unique_ptr<QueuePair> receiver(unsigned number) {
    auto qp = raw(hosts_.b);
    for (unsigned i = 0; i < 4; ++i)
      EXPECT_EQ(receive(hosts_.b, *qp, number * 10 + i, number * 10000 + i * 2000, 2000), 0);
    return qp;
  }

  TwoHosts hosts_;
  std::unique_ptr<QueuePair> sender_;
};
INSTANTIATE_TEST_SUITE_P(Workers, RawPacket, testing::Values(1, 3));

TEST_P(RawPacket, frame_is_sent_and_received_as_it_is) {
  const auto one = receiver(1);
  const auto rule = must(one->create_flow(RuleAttr().to(mac_of(hosts_.b)).attr()));
  const ByteVector frame = frame_of({.to = mac_of(hosts_.b), .payload = 1000});
  EXPECT_EQ(sends(frame), Lines{"1 SUCCESS " + std::to_string(frame.size())});
  EXPECT_EQ(completion_lines(hosts_.b), Lines{"10 SUCCESS " + std::to_string(frame.size())});
  EXPECT_EQ(get(hosts_.b, 10000, frame.size()), frame);
  EXPECT_EQ(hosts_.b.counter("rx_steered"), 1U);
  EXPECT_EQ(hosts_.b.counter("rx_malformed"), 0U);
}

TEST_P(RawPacket, frame_without_a_rule_is_not_received) {
  const auto one = receiver(1);
  const ByteVector frame = frame_of({.to = mac_of(hosts_.b)});
  sends(frame);
  auto rule = must(one->create_flow(RuleAttr().to(kOtherHost).attr()));
  sends(frame);
  EXPECT_EQ(hosts_.b.counter("rx_malformed"), 2U);  // the IP checksum is wrong
  rule = must(one->create_flow(RuleAttr().to(mac_of(hosts_.b)).attr()));
  rule.reset();
  sends(frame);
  EXPECT_EQ(hosts_.b.counter("rx_malformed"), 3U);
  EXPECT_EQ(completion_lines(hosts_.b), Lines{});
}

TEST_P(RawPacket, specifications_select_by_addresses_protocol_and_ports) {
  const auto vlan = receiver(1), udp = receiver(2), tcp = receiver(3), v6 = receiver(4),
             address = receiver(5);
  ibv_flow_spec_eth tag{};
  tag.val.vlan_tag = htons(77);
  tag.mask.vlan_tag = htons(0xfff);
  ibv_flow_spec_ipv4_ext v4{};
  v4.val.dst_ip = htonl(0x0a090003);
  v4.mask.dst_ip = UINT32_MAX;
  v4.val.proto = IPPROTO_UDP;
  v4.mask.proto = 0xff;
  ibv_flow_spec_ipv6 label{};
  label.val.flow_label = htonl(7);
  label.mask.flow_label = htonl(0xfffff);
  label.val.dst_ip[0] = 0xfd;
  label.mask.dst_ip[0] = 0xff;
  std::vector<std::unique_ptr<FlowRule>> rules;
  rules.push_back(must(vlan->create_flow(RuleAttr().add(tag, IBV_FLOW_SPEC_ETH).attr())));
  rules.push_back(must(address->create_flow(RuleAttr().add(v4, IBV_FLOW_SPEC_IPV4_EXT).attr())));
  rules.push_back(must(v6->create_flow(RuleAttr().add(label, IBV_FLOW_SPEC_IPV6).attr())));
  rules.push_back(must(udp->create_flow(RuleAttr().port(5678).attr())));
  rules.push_back(must(tcp->create_flow(RuleAttr().port(5678, IBV_FLOW_SPEC_TCP).attr())));
  const Mac to = mac_of(hosts_.b);
  sends(frame_of({.to = to, .vlan = 0x3000 | 77}));
  sends(frame_of({.to = to, .last_byte = 3}));
  sends(frame_of({.to = to, .ipv6 = true}));
  sends(frame_of({.to = to}));
  sends(frame_of({.to = to, .protocol = IPPROTO_TCP}));
  sends(frame_of({.to = to, .destination_port = 5679}));
  EXPECT_EQ(completion_lines(hosts_.b),
            (Lines{"10 SUCCESS 86", "50 SUCCESS 82", "40 SUCCESS 102", "20 SUCCESS 82", "30 SUCCESS 94"}));
  EXPECT_EQ(hosts_.b.counter("rx_steered"), 5U);
}

TEST_P(RawPacket, lowest_priority_value_receives_and_equal_rules_get_copies) {
  const auto late = receiver(1), first = receiver(2), second = receiver(3), rest = receiver(4);
  std::vector<std::unique_ptr<FlowRule>> rules;
  rules.push_back(must(rest->create_flow(RuleAttr(IBV_FLOW_ATTR_ALL_DEFAULT).attr())));
  rules.push_back(must(late->create_flow(RuleAttr(IBV_FLOW_ATTR_NORMAL, 5).to(mac_of(hosts_.b)).attr())));
  rules.push_back(must(first->create_flow(RuleAttr(IBV_FLOW_ATTR_NORMAL, 2).port(5678).attr())));
  rules.push_back(must(second->create_flow(RuleAttr(IBV_FLOW_ATTR_NORMAL, 2).port(5678).attr())));
  sends(frame_of({.to = mac_of(hosts_.b)}));
  Lines both = completion_lines(hosts_.b);
  std::ranges::sort(both);
  EXPECT_EQ(both, (Lines{"20 SUCCESS 82", "30 SUCCESS 82"}));
  sends(frame_of({.to = mac_of(hosts_.b), .destination_port = 1}));
  EXPECT_EQ(completion_lines(hosts_.b), Lines{"10 SUCCESS 82"});
  sends(frame_of({.to = kOtherHost, .destination_port = 1}));
  EXPECT_EQ(completion_lines(hosts_.b), Lines{"40 SUCCESS 82"});
}

TEST_P(RawPacket, rule_may_let_the_next_ones_be_compared_or_drop) {
  const auto tap = receiver(1), dropping = receiver(2), rest = receiver(3);
  std::vector<std::unique_ptr<FlowRule>> rules;
  rules.push_back(must(tap->create_flow(
      RuleAttr(IBV_FLOW_ATTR_NORMAL, 1, IBV_FLOW_ATTR_FLAGS_DONT_TRAP).to(mac_of(hosts_.b)).attr())));
  rules.push_back(must(dropping->create_flow(RuleAttr(IBV_FLOW_ATTR_NORMAL, 2).port(9).drop().attr())));
  rules.push_back(must(rest->create_flow(RuleAttr(IBV_FLOW_ATTR_NORMAL, 3).attr())));
  sends(frame_of({.to = mac_of(hosts_.b), .destination_port = 9}));
  EXPECT_EQ(completion_lines(hosts_.b), Lines{"10 SUCCESS 82"});
  sends(frame_of({.to = mac_of(hosts_.b)}));
  Lines both = completion_lines(hosts_.b);
  std::ranges::sort(both);
  EXPECT_EQ(both, (Lines{"11 SUCCESS 82", "30 SUCCESS 82"}));
}

TEST_P(RawPacket, multicast_default_receives_groups_but_not_broadcasts) {
  const auto one = receiver(1);
  const auto rule = must(one->create_flow(RuleAttr(IBV_FLOW_ATTR_MC_DEFAULT).attr()));
  sends(frame_of({.to = kGroup}));
  sends(frame_of({.to = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}));
  sends(frame_of({.to = mac_of(hosts_.b)}));
  EXPECT_EQ(completion_lines(hosts_.b), Lines{"10 SUCCESS 82"});
}

TEST_P(RawPacket, protocols_of_the_host_are_not_steered) {
  const auto one = receiver(1);
  const auto rule = must(one->create_flow(RuleAttr(IBV_FLOW_ATTR_ALL_DEFAULT).attr()));
  ASSERT_EQ(hosts_.b.receive(1, 0, 100), 0);
  ASSERT_EQ(hosts_.a.post(IBV_WR_SEND, 2, 0, 100), 0);
  hosts_.run(1ms);
  EXPECT_EQ(completion_lines(hosts_.b), Lines{"1 SUCCESS 100"});
  EXPECT_EQ(hosts_.b.counter("rx_steered"), 0U);
}

// ARP and ICMPv6 go to all workers. A frame that the host does not process reaches each queue pair once.
TEST_P(RawPacket, refused_frame_that_all_workers_have_is_received_once) {
  std::vector<std::unique_ptr<QueuePair>> receivers;
  std::vector<std::unique_ptr<FlowRule>> rules;
  for (unsigned number = 1; number <= 3; ++number) {
    receivers.push_back(receiver(number));
    rules.push_back(must(receivers.back()->create_flow(RuleAttr(IBV_FLOW_ATTR_ALL_DEFAULT).attr())));
  }
  sends(frame_of({.to = mac_of(hosts_.b), .ipv6 = true, .protocol = IPPROTO_ICMPV6, .source_port = 0xc800}));
  Lines all = completion_lines(hosts_.b);
  std::ranges::sort(all);
  EXPECT_EQ(all, (Lines{"10 SUCCESS 102", "20 SUCCESS 102", "30 SUCCESS 102"}));
}

// The second device of a switch would not return a frame to the port on which it arrived.
TEST_P(RawPacket, multicast_frames_are_looped_back_to_rules_of_the_sender) {
  const auto one = raw(hosts_.a);
  ASSERT_EQ(receive(hosts_.a, *one, 5, 3000, 200), 0);
  const auto rule = must(one->create_flow(RuleAttr().to(kGroup).attr()));
  const ByteVector frame = frame_of({.to = kGroup});
  EXPECT_EQ(sends(frame), (Lines{"1 SUCCESS 82", "5 SUCCESS 82"}));
  EXPECT_EQ(get(hosts_.a, 3000, frame.size()), frame);
  ASSERT_EQ(receive(hosts_.a, *one, 6, 3000, 200), 0);
  EXPECT_EQ(sends(frame_of({.to = kOtherHost})), Lines{"1 SUCCESS 82"});
}

TEST_P(RawPacket, frames_to_the_own_address_are_looped_back) {
  const auto one = raw(hosts_.a);
  ASSERT_EQ(receive(hosts_.a, *one, 5, 3000, 200), 0);
  const auto rule = must(one->create_flow(RuleAttr().to(mac_of(hosts_.a)).attr()));
  EXPECT_EQ(sends(frame_of({.to = mac_of(hosts_.a)})), (Lines{"1 SUCCESS 82", "5 SUCCESS 82"}));
}

TEST_P(RawPacket, length_of_a_frame_is_that_of_an_ethernet_header_to_the_mtu) {
  const size_t mtu = hosts_.a.device->host().port_mtu();
  for (const size_t length : {size_t{14}, mtu + 18}) {
    EXPECT_EQ(sends(ByteVector(length, 3)), Lines{"1 SUCCESS " + std::to_string(length)});
  }
  for (const size_t length : {size_t{13}, mtu + 19}) {
    EXPECT_EQ(sends(ByteVector(length, 3)), Lines{"1 LOC_LEN_ERR"});
    EXPECT_EQ(sender_->state(), IBV_QPS_SQE);
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTS;
    must(sender_->modify(attr, IBV_QP_STATE));
  }
}

TEST_P(RawPacket, other_operations_than_send_complete_with_an_error) {
  put(hosts_.a, 0, frame_of({}));
  EXPECT_EQ(send(hosts_.a, *sender_, {.opcode = IBV_WR_SEND_WITH_IMM, .length = 60}), 0);
  hosts_.run(1ms);
  EXPECT_EQ(completion_lines(hosts_.a), Lines{"1 LOC_QP_OP_ERR"});
}

TEST_P(RawPacket, receive_request_that_is_too_short_is_used_for_the_next_frame) {
  const auto one = raw(hosts_.b);
  ASSERT_EQ(receive(hosts_.b, *one, 7, 0, 90), 0);
  const auto rule = must(one->create_flow(RuleAttr().to(mac_of(hosts_.b)).attr()));
  sends(frame_of({.to = mac_of(hosts_.b), .payload = 49}));
  EXPECT_EQ(hosts_.b.counter("rx_too_long"), 1U);
  sends(frame_of({.to = mac_of(hosts_.b), .payload = 48}));
  EXPECT_EQ(completion_lines(hosts_.b), Lines{"7 SUCCESS 90"});
  sends(frame_of({.to = mac_of(hosts_.b)}));
  EXPECT_EQ(hosts_.b.counter("rx_no_receive"), 1U);
}

TEST_P(RawPacket, frames_take_requests_of_a_shared_receive_queue) {
  const auto srq = make_srq(hosts_.b, 4);
  ASSERT_EQ(receive(hosts_.b, *srq, 8, 0, 200), 0);
  ASSERT_EQ(receive(hosts_.b, *srq, 9, 0, 10), 0);
  const auto one = raw(hosts_.b, srq.get());
  const auto rule = must(one->create_flow(RuleAttr().to(mac_of(hosts_.b)).attr()));
  sends(frame_of({.to = mac_of(hosts_.b)}));
  sends(frame_of({.to = mac_of(hosts_.b)}));
  EXPECT_EQ(completion_lines(hosts_.b), (Lines{"8 SUCCESS 82", "9 LOC_LEN_ERR"}));
}

TEST_P(RawPacket, error_state_flushes_and_receives_nothing) {
  const auto one = receiver(1);
  const auto rule = must(one->create_flow(RuleAttr().to(mac_of(hosts_.b)).attr()));
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  must(one->modify(attr, IBV_QP_STATE));
  sends(frame_of({.to = mac_of(hosts_.b)}));
  EXPECT_EQ(completion_lines(hosts_.b),
            (Lines{"10 WR_FLUSH_ERR", "11 WR_FLUSH_ERR", "12 WR_FLUSH_ERR", "13 WR_FLUSH_ERR"}));
  EXPECT_EQ(hosts_.b.counter("rx_bad_state"), 1U);
}

TEST_P(RawPacket, destroyed_queue_pair_takes_its_rules_with_it) {
  auto one = receiver(1);
  auto rule = must(one->create_flow(RuleAttr().to(mac_of(hosts_.b)).attr()));
  one.reset();
  EXPECT_TRUE(hosts_.b.device->host().steering().empty());
  sends(frame_of({.to = mac_of(hosts_.b)}));
  rule.reset();
  EXPECT_EQ(completion_lines(hosts_.b), Lines{});
}

TEST_P(RawPacket, roce_packet_to_its_number_is_refused) {
  const auto one = receiver(1);
  const auto datagrams = make_service(hosts_.a, IBV_QPT_UD);
  open_datagrams(*datagrams);
  const auto to = must(hosts_.a.pd->create_address_handle(address_of(must(hosts_.b.device->query_gid(1)))));
  ASSERT_EQ(send(hosts_.a, *datagrams, {.length = 10, .to = to.get(), .remote_qp = one->qp_num()}), 0);
  hosts_.run(1ms);
  EXPECT_EQ(hosts_.b.counter("rx_wrong_transport"), 1U);
  EXPECT_EQ(completion_lines(hosts_.b), Lines{});
}

TEST_P(RawPacket, sniffer_receives_a_copy_of_every_frame) {
  const auto one = receiver(1);
  auto rule = one->create_flow(RuleAttr(IBV_FLOW_ATTR_SNIFFER).attr());
  if (GetParam() > 1) {
    ASSERT_FALSE(rule);
    EXPECT_EQ(rule.error().message, "flow rule: a sniffer requires a device with one worker");
    return;
  }
  ASSERT_TRUE(rule);
  ASSERT_EQ(hosts_.b.receive(1, 0, 100), 0);
  ASSERT_EQ(hosts_.a.post(IBV_WR_SEND, 2, 0, 100), 0);
  hosts_.run(1ms);
  EXPECT_EQ(completion_lines(hosts_.b), (Lines{"10 SUCCESS 158", "1 SUCCESS 100"}));
  EXPECT_EQ(get(hosts_.b, 10000 + 58 - 4, 100), get(hosts_.a, 0, 100));
  sends(frame_of({.to = kOtherHost}));
  EXPECT_EQ(completion_lines(hosts_.b), Lines{"11 SUCCESS 82"});
}

TEST_P(RawPacket, receive_side_scaling_distributes_frames_by_their_hash) {
  const auto owner = raw(hosts_.b);
  std::vector<std::unique_ptr<QueuePair>> queues;
  for (unsigned i = 1; i <= 4; ++i) {
    queues.push_back(raw(hosts_.b));
    for (unsigned k = 0; k < 16; ++k) ASSERT_EQ(receive(hosts_.b, *queues.back(), i, i * 4000, 2000), 0);
  }
  RssTable rss;
  rss.fields = IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP;
  for (const auto& queue : queues) rss.queues.push_back(queue.get());
  for (size_t i = 0; i < rss.key.size(); ++i) rss.key[i] = static_cast<uint8_t>(37 * i + 11);
  auto rule = must(owner->create_flow(RuleAttr().to(mac_of(hosts_.b)).attr(), &rss));
  const auto queue_of = [&](uint16_t port) {
    sends(frame_of({.to = mac_of(hosts_.b), .source_port = port}));
    const Lines lines = completion_lines(hosts_.b);
    EXPECT_EQ(lines.size(), 1U);
    return lines.empty() ? std::string() : lines.front();
  };
  std::set<std::string> used;
  for (uint16_t port = 1000; port < 1016; ++port) {
    const std::string queue = queue_of(port);
    EXPECT_EQ(queue_of(port), queue);
    used.insert(queue);
  }
  EXPECT_EQ(used.size(), 4U);
  rss.queues.pop_back();
  const auto three = owner->create_flow(RuleAttr().attr(), &rss);
  ASSERT_FALSE(three);
  EXPECT_EQ(three.error().message,
            "flow rule: 3 queues of receive side scaling; a power of two, at most 128, is allowed");
  rss.queues.pop_back();
  rss.fields = IBV_RX_HASH_IPSEC_SPI;
  EXPECT_FALSE(owner->create_flow(RuleAttr().attr(), &rss));
  queues[2].reset();  // its rule ends with it
  EXPECT_TRUE(hosts_.b.device->host().steering().empty());
}

TEST(FlowRules, invalid_attributes_are_rejected_with_a_reason) {
  TwoHosts hosts;
  const auto qp = raw(hosts.a);
  const auto refused = [&](RuleAttr attr, QueuePair& of) {
    auto rule = of.create_flow(attr.attr());
    return rule ? std::string() : rule.error().message;
  };
  RuleAttr port;
  port.attr().port = 2;
  EXPECT_EQ(refused(port, *qp), "flow rule: port 2 does not exist; the only port is 1");
  EXPECT_EQ(refused(RuleAttr(IBV_FLOW_ATTR_NORMAL, 0, 1U << 2), *qp), "flow rule: flags 4 are not supported");
  EXPECT_EQ(refused(RuleAttr().port(1), *qp), "");
  EXPECT_EQ(refused(RuleAttr(IBV_FLOW_ATTR_SNIFFER).port(1), *qp),
            "flow rule: only rules of type IBV_FLOW_ATTR_NORMAL have specifications");
  EXPECT_EQ(refused(RuleAttr().add(ibv_flow_spec_gre{}, IBV_FLOW_SPEC_GRE), *qp),
            "flow rule: specification 0 has type 81; supported are ETH, IPV4, IPV4_EXT, IPV6, TCP, UDP and "
            "ACTION_DROP");
  RuleAttr size = RuleAttr().port(1);
  const uint16_t wrong = 3;
  std::memcpy(reinterpret_cast<uint8_t*>(&size.attr() + 1) + offsetof(ibv_flow_spec_action_drop, size),
              &wrong, sizeof wrong);
  EXPECT_EQ(refused(size, *qp), "flow rule: specification 0 has 3 bytes instead of 16");
  EXPECT_EQ(refused(RuleAttr(), *hosts.a.qp), "flow rule: only raw packet queue pairs have flow rules");
}

TEST(FlowRules, number_of_rules_is_limited) {
  TwoHosts hosts;
  const auto qp = raw(hosts.a);
  std::vector<std::unique_ptr<FlowRule>> rules;
  for (size_t i = 0; i < SteeringTable::kMaxRules; ++i)
    rules.push_back(must(qp->create_flow(RuleAttr().port(static_cast<uint16_t>(i)).attr())));
  auto extra = qp->create_flow(RuleAttr().attr());
  ASSERT_FALSE(extra);
  EXPECT_EQ(extra.error().code, ENOMEM);
  rules.pop_back();
  EXPECT_TRUE(qp->create_flow(RuleAttr().attr()));
}

// Frames of every length up to that of the headers, in segments of every size.
TEST(FlowRules, truncated_frames_are_compared_as_far_as_they_go) {
  LoneHost host;
  const auto qp = raw(host.side);
  const auto rule = must(qp->create_flow(RuleAttr().port(5678).attr()));
  const auto rest = must(qp->create_flow(RuleAttr(IBV_FLOW_ATTR_ALL_DEFAULT).attr()));
  for (const FrameOptions& of :
       {FrameOptions{.to = mac_of(host.side)}, FrameOptions{.to = mac_of(host.side), .vlan = 5},
        FrameOptions{.to = kOtherHost, .ipv6 = true}}) {
    const ByteVector whole = frame_of(of);
    for (size_t length = 14; length <= whole.size(); ++length) {
      for (const size_t segment : {size_t{1}, size_t{20}, whole.size()}) {
        ASSERT_EQ(receive(host.side, *qp, length, LoneHost::kGuard, 2000), 0);
        host.receive_bytes({whole.begin(), whole.begin() + static_cast<ptrdiff_t>(length)}, segment);
        ASSERT_EQ(completion_lines(host.side),
                  Lines{std::to_string(length) + " SUCCESS " + std::to_string(length)})
            << segment;
      }
    }
  }
  EXPECT_TRUE(host.guards_whole());
}

TEST(FlowRules, later_fragments_and_packets_with_extension_headers_have_no_ports) {
  LoneHost host;
  const auto qp = raw(host.side);
  const auto rule = must(qp->create_flow(RuleAttr().port(5678).attr()));
  ASSERT_EQ(receive(host.side, *qp, 1, LoneHost::kGuard, 2000), 0);
  ByteVector fragment = frame_of({.to = mac_of(host.side)});
  fragment[14 + 7] = 1;  // fragment offset
  host.receive_bytes(fragment);
  ByteVector extended = frame_of({.to = mac_of(host.side), .ipv6 = true});
  extended[14 + 6] = 0;  // hop-by-hop options
  host.receive_bytes(extended);
  EXPECT_EQ(completion_lines(host.side), Lines{});
  fragment[14 + 7] = 0;
  fragment[14 + 6] = 0x20;  // the first fragment has the ports
  host.receive_bytes(fragment);
  EXPECT_EQ(completion_lines(host.side), Lines{"1 SUCCESS 82"});
}

}  // namespace
}  // namespace roci::test

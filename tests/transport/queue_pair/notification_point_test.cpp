// CNPs sent by a receiver (IBTA A17.9.3).
#include <gtest/gtest.h>

#include "engine/congestion/notification_point.hpp"
#include "support/hosts/lone_host.hpp"
#include "support/hosts/services.hpp"

namespace roci::test {
namespace {

Packet marked(Packet packet) {
  packet.with_traffic_class(0x40 | 3);
  return packet;
}

std::vector<Packet> cnps_of(LoneHost& host, const Packet& arrives) {
  Packet copy = arrives;
  host.port().put(encode_packet(copy.finish()));
  std::vector<Packet> cnps;
  for (const Packet& sent : host.work_for_packets())
    if (sent.bth.opcode == Opcode::kCnp) cnps.push_back(sent);
  return cnps;
}

TEST(NotificationPoint, sends_a_cnp_for_a_ce_marked_packet) {
  LoneHost host;
  const auto cnps = cnps_of(host, marked(host.write(Opcode::kRcWriteOnly, 0, 0, 16, 16)));
  ASSERT_EQ(cnps.size(), 1U);
  const Packet& cnp = cnps[0];
  EXPECT_EQ(cnp.bth.destination_qp, LoneHost::kPeerQp);
  EXPECT_EQ(cnp.bth.psn, Psn{0});
  EXPECT_TRUE(cnp.bth.becn);
  EXPECT_EQ(cnp.v4().tos, 48 << 2 | 2);
  EXPECT_EQ(host.side.counter("np_cnp_sent"), 1U);
}

TEST(NotificationPoint, sends_at_most_one_cnp_per_interval) {
  LoneHostOptions options;
  options.control.notification_point.interval = 50us;
  LoneHost host(options);
  int ahead = 0;
  const auto mark = [&] {
    return cnps_of(host, marked(host.write(Opcode::kRcWriteOnly, ahead++, 0, 16, 16))).size();
  };
  EXPECT_EQ(mark(), 1U);
  host.now += 49'999ns;
  EXPECT_EQ(mark(), 0U);
  host.now += 1ns;
  EXPECT_EQ(mark(), 1U);
  EXPECT_EQ(host.side.counter("np_cnp_sent"), 2U);
}

TEST(NotificationPoint, limits_cnps_per_queue_pair_address_or_port) {
  const auto address = [](uint32_t value) { return IpAddress::from_v4(0x0a000000 + value); };
  struct Case {
    CnpLimit limit;
    bool other_queue_pair, other_address;  // whether a CNP is due for these within the interval
  };
  for (const Case& c : {Case{CnpLimit::kQueuePair, true, true}, Case{CnpLimit::kAddress, false, true},
                        Case{CnpLimit::kPort, false, false}}) {
    SCOPED_TRACE(static_cast<int>(c.limit));
    NotificationPoint point({.interval = 50us, .limit = c.limit});
    EXPECT_TRUE(point.due(Qpn{17}, address(1), Nanos{0}));
    EXPECT_FALSE(point.due(Qpn{17}, address(1), Nanos{1}));
    EXPECT_EQ(point.due(Qpn{18}, address(1), Nanos{2}), c.other_queue_pair);
    EXPECT_EQ(point.due(Qpn{19}, address(2), Nanos{3}), c.other_address);
    EXPECT_TRUE(point.due(Qpn{17}, address(1), Nanos{50'000}));
  }
}

TEST(NotificationPoint, has_an_interval_of_its_own_for_each_of_1000_addresses) {
  NotificationPoint point({.interval = 50us, .limit = CnpLimit::kAddress});
  for (uint32_t i = 0; i < 1000; ++i)
    EXPECT_TRUE(point.due(Qpn{17}, IpAddress::from_v4(0x0a000000 + i), Nanos{i}));
  int refused = 0;
  for (uint32_t i = 0; i < 1000; ++i)
    refused += point.due(Qpn{17}, IpAddress::from_v4(0x0a000000 + i), Nanos{1000}) ? 0 : 1;
  EXPECT_GE(refused, 950);  // the others were evicted from sets with more than four addresses
}

TEST(NotificationPoint, sends_no_cnp_if_disabled_or_without_a_mark) {
  LoneHostOptions options;
  options.control.notification_point.enabled = false;
  LoneHost off(options);
  EXPECT_TRUE(cnps_of(off, marked(off.write(Opcode::kRcWriteOnly, 0, 0, 16, 16))).empty());
  EXPECT_EQ(off.side.counter("np_ecn_marked_roce_packets"), 1U);
  LoneHost on;
  EXPECT_TRUE(cnps_of(on, on.write(Opcode::kRcWriteOnly, 0, 0, 16, 16)).empty());
  EXPECT_EQ(on.side.counter("requests_received"), 1U);
}

TEST(NotificationPoint, sends_no_cnp_to_a_source_other_than_the_peer) {
  LoneHost host;
  Packet forged = marked(host.write(Opcode::kRcWriteOnly, 0, 0, 16, 16));
  forged.between(MacAddress::local(2), IpAddress::from_v4(0x0a000003), MacAddress::local(1),
                 IpAddress::from_v4(0x0a000001));
  EXPECT_TRUE(cnps_of(host, forged).empty());
  EXPECT_EQ(host.side.counter("rx_wrong_source"), 1U);
}

TEST(NotificationPoint, sends_a_cnp_for_a_marked_read_response) {
  LoneHost host;
  ASSERT_EQ(host.post(IBV_WR_RDMA_READ, 1, 16), 0);
  host.work();
  const auto cnps = cnps_of(host, marked(host.response(Opcode::kRcReadResponseOnly, 0, 0x1f, 16)));
  ASSERT_EQ(cnps.size(), 1U);
  EXPECT_EQ(cnps[0].bth.destination_qp, LoneHost::kPeerQp);
}

TEST(NotificationPoint, sends_no_cnp_for_a_marked_acknowledgment) {
  LoneHost host;
  ASSERT_EQ(host.post(IBV_WR_RDMA_WRITE, 1, 16), 0);
  host.work();
  EXPECT_TRUE(cnps_of(host, marked(host.response(Opcode::kRcAcknowledge, 0))).empty());
  EXPECT_EQ(host.statuses(), Statuses{IBV_WC_SUCCESS});
}

}  // namespace
}  // namespace roci::test

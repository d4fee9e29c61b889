// Multicast datagrams: receivers, MAC addresses, and queue pairs that must not receive a copy.
#include <gtest/gtest.h>

#include "engine/management/multicast_table.hpp"
#include "support/hosts/lone_host.hpp"
#include "support/hosts/services.hpp"

namespace roci::test {
namespace {

class Multicast : public testing::Test {
 protected:
  explicit Multicast(bool ipv6 = false)
      : hosts_({.ipv6 = ipv6}), group_(gid_of(ipv6 ? "ff05::77" : "239.1.2.3")) {
    hosts_.connect();
    hosts_.link().set_script(SimLink::kAToB, [this](const rte_mbuf& frame, uint64_t) {
      const auto* ethernet = rte_pktmbuf_mtod(&frame, const EthernetHeader*);
      macs_.push_back(ethernet->destination.to_string());
      return SimVerdict{};
    });
    a_ = member(hosts_.a);
    to_group_ = must(hosts_.a.pd->create_address_handle(address_of(group_)));
    fill(hosts_.a, 0, 4096, 7);
  }

  static std::unique_ptr<QueuePair> member(Side& side) {
    auto qp = make_service(side, IBV_QPT_UD);
    open_datagrams(*qp);
    return qp;
  }
  Lines sends(size_t length, uint32_t qkey = kQkey) {
    EXPECT_EQ(
        send(hosts_.a, *a_, {.length = length, .to = to_group_.get(), .remote_qp = 0xffffff, .qkey = qkey}),
        0);
    hosts_.run(1ms);
    return completion_lines(hosts_.a);
  }

  TwoHosts hosts_;
  ibv_gid group_;
  std::vector<std::string> macs_;
  std::unique_ptr<QueuePair> a_;
  std::unique_ptr<AddressHandle> to_group_;
};

class MulticastV6 : public Multicast {
 protected:
  MulticastV6() : Multicast(true) {}
};

TEST_F(Multicast, only_attached_queue_pairs_receive_a_copy) {
  auto one = member(hosts_.b), two = member(hosts_.b), other = member(hosts_.b);
  must(one->attach_multicast(group_));
  must(two->attach_multicast(group_));
  ASSERT_EQ(receive(hosts_.b, *one, 1, 0, 400), 0);
  ASSERT_EQ(receive(hosts_.b, *two, 2, 400, 400), 0);
  ASSERT_EQ(receive(hosts_.b, *other, 3, 800, 400), 0);
  EXPECT_EQ(sends(300), Lines{"1 SUCCESS 300"});
  EXPECT_EQ(macs_, Lines{"01:00:5e:01:02:03"});
  EXPECT_EQ(completion_lines(hosts_.b), (Lines{"1 SUCCESS 340", "2 SUCCESS 340"}));
  EXPECT_TRUE(holds(hosts_.b, 40, 300, 7));
  EXPECT_TRUE(holds(hosts_.b, 440, 300, 7));
}

TEST_F(MulticastV6, group_maps_to_its_ipv6_multicast_mac) {
  auto one = member(hosts_.b);
  must(one->attach_multicast(group_));
  ASSERT_EQ(receive(hosts_.b, *one, 1, 0, 400), 0);
  sends(30);
  EXPECT_EQ(macs_, Lines{"33:33:00:00:00:77"});
  EXPECT_EQ(completion_lines(hosts_.b), Lines{"1 SUCCESS 70"});
}

TEST_F(Multicast, local_members_including_the_sender_receive_a_copy) {
  auto neighbor = member(hosts_.a);
  must(neighbor->attach_multicast(group_));
  must(a_->attach_multicast(group_));
  ASSERT_EQ(receive(hosts_.a, *neighbor, 11, 5000, 400), 0);
  ASSERT_EQ(receive(hosts_.a, *a_, 12, 6000, 400), 0);
  EXPECT_EQ(sends(100), (Lines{"1 SUCCESS 100", "11 SUCCESS 140", "12 SUCCESS 140"}));
  EXPECT_TRUE(holds(hosts_.a, 5040, 100, 7));
  EXPECT_TRUE(holds(hosts_.a, 6040, 100, 7));
}

TEST_F(Multicast, attaching_twice_delivers_one_copy) {
  auto one = member(hosts_.b);
  must(one->attach_multicast(group_));
  must(one->attach_multicast(group_));
  for (uint64_t i = 1; i <= 2; ++i) ASSERT_EQ(receive(hosts_.b, *one, i, 0, 400), 0);
  sends(30);
  EXPECT_EQ(completion_lines(hosts_.b), Lines{"1 SUCCESS 70"});
  must(one->detach_multicast(group_));
  sends(30);
  EXPECT_EQ(completion_lines(hosts_.b), Lines{});
}

TEST_F(Multicast, datagram_without_a_member_is_counted_and_dropped) {
  sends(30);
  EXPECT_EQ(hosts_.b.counter("rx_unknown_group"), 1U);
}

TEST_F(Multicast, qkey_and_receive_queue_are_checked_for_each_member) {
  auto one = member(hosts_.b), two = member(hosts_.b);
  ibv_qp_attr attr{};
  attr.qkey = 5;
  must(two->modify(attr, IBV_QP_QKEY));
  must(one->attach_multicast(group_));
  must(two->attach_multicast(group_));
  sends(30);
  EXPECT_EQ(hosts_.b.counter("rx_no_receive"), 1U);
  EXPECT_EQ(hosts_.b.counter("rx_wrong_qkey"), 1U);
}

TEST_F(Multicast, destroyed_member_is_detached) {
  auto one = member(hosts_.b);
  must(one->attach_multicast(group_));
  EXPECT_EQ(hosts_.b.device->host().groups().groups(), 1U);
  one.reset();
  EXPECT_EQ(hosts_.b.device->host().groups().groups(), 0U);
  sends(30);
  EXPECT_EQ(hosts_.b.counter("rx_unknown_group"), 1U);
}

TEST_F(Multicast, attach_requires_a_ud_queue_pair_and_a_multicast_gid) {
  const Status connected = hosts_.a.qp->attach_multicast(group_);
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().message, "multicast: only UD queue pairs can be attached to groups");
  const Status host = a_->attach_multicast(gid_of("10.0.0.2"));
  ASSERT_FALSE(host);
  EXPECT_EQ(host.error().message,
            "multicast: 10.0.0.2 is not a multicast GID; allowed are ff00::/8 and ::ffff:224.0.0.0/100");
  const Status never = a_->detach_multicast(group_);
  ASSERT_FALSE(never);
  EXPECT_EQ(never.error().code, EINVAL);
}

TEST_F(Multicast, loopback_copies_beyond_the_queue_are_dropped_and_counted) {
  must(a_->attach_multicast(group_));
  // More datagrams than the loopback queue holds per round: 256.
  std::vector<std::unique_ptr<QueuePair>> senders;
  for (int i = 0; i < 32; ++i) {
    senders.push_back(make_service(hosts_.a, IBV_QPT_UD, nullptr, false));
    open_datagrams(*senders.back());
    for (int k = 0; k < 16; ++k)
      ASSERT_EQ(send(hosts_.a, *senders.back(), {.length = 8, .to = to_group_.get(), .remote_qp = 0xffffff}),
                0);
  }
  hosts_.run(1ms);
  const uint64_t lost = hosts_.a.counter("loopback_lost");
  EXPECT_GT(lost, 0U);
  EXPECT_EQ(lost + hosts_.a.counter("rx_no_receive"), 512U);
}

TEST(MulticastTable, limits_members_and_groups) {
  MulticastTable table;
  std::vector<AttachedQueuePair*> members;
  const auto qp = [](uintptr_t number) -> AttachedQueuePair& {  // never dereferenced
    return *reinterpret_cast<AttachedQueuePair*>(0x1000 * number);
  };
  const Gid group = must(IpAddress::parse("239.0.0.1"));
  for (uintptr_t i = 1; i <= MulticastTable::kMaxMembers; ++i) ASSERT_TRUE(table.attach(group, qp(i)));
  Status full = table.attach(group, qp(MulticastTable::kMaxMembers + 1));
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, ENOMEM);
  ASSERT_TRUE(table.detach(group, qp(1)));
  EXPECT_FALSE(table.detach(group, qp(1)));
  EXPECT_TRUE(table.attach(group, qp(MulticastTable::kMaxMembers + 1)));
  EXPECT_EQ(table.members(group).size(), MulticastTable::kMaxMembers);
  for (uint32_t i = 2; i <= MulticastTable::kMaxGroups; ++i)
    ASSERT_TRUE(table.attach(IpAddress::from_v4(0xef000000 + i), qp(1)));
  full = table.attach(IpAddress::from_v4(0xee000001), qp(1));
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, ENOMEM);
  table.detach_all(qp(1));
  EXPECT_EQ(table.groups(), 1U);
}

}  // namespace
}  // namespace roci::test

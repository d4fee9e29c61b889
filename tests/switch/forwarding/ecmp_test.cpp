// Routes with several next hops (ECMP), through switches in virtual time.
#include <map>
#include <set>

#include "base/rng.hpp"
#include "support/chi_square.hpp"
#include "switch/addresses.hpp"
#include "switch/config_text.hpp"
#include "switch/switch_bench.hpp"
#include "wire/int/telemetry_edit.hpp"
#include "wire/net/arp.hpp"
#include "wire/net/frame_front.hpp"

namespace roci {
namespace {

using test::FrameSpec;
using test::ip;
using test::net;
using test::switch_text_error;

constexpr uint16_t kTelemetryPort = 5201;

IpAddress hop(size_t i) {
  return IpAddress::from_v4(0x0a000202 + static_cast<uint32_t>(i));
}  // 10.0.2.2, ...

// Port 0 is in VLAN 10 with 10.0.1.1/24 and connects host 0, the sender. The other ports are in VLAN 20 with
// 10.0.2.1/24. Port i connects host i, which is next hop i - 1 for 10.9.0.0/16.
class EcmpTest : public SwitchTest {
 protected:
  static SwitchConfig with_hops(size_t count) {
    SwitchConfig config = ports(1 + count);
    config.interfaces = {{.name = "in", .vlan = 10, .addresses = {net("10.0.1.1/24")}},
                         {.name = "out", .vlan = 20, .addresses = {net("10.0.2.1/24")}}};
    config.routes = {{net("10.9.0.0/16"), {}}};
    for (size_t i = 0; i <= count; ++i) {
      config.ports[i].vlan = i == 0 ? 10 : 20;
      config.ports[i].all_tagged = false;
      if (i > 0) config.routes[0].via.push_back(hop(i - 1));
    }
    return config;
  }
  // The same with static entries for the next hops, which need no address resolution.
  static SwitchConfig with_known_hops(size_t count) {
    SwitchConfig config = with_hops(count);
    for (size_t i = 0; i < count; ++i) config.neighbors.push_back({hop(i), host_mac(i + 1)});
    return config;
  }
  void make_known(size_t count, SwitchConfig config) {
    make(config);
    for (size_t i = 1; i <= count; ++i) introduce({i});
  }

  static FrameSpec flow(uint32_t number) {
    return {
        .from = ip("10.0.1.2"), .to = ip("10.9.1.2"), .source_port = static_cast<uint16_t>(0xc000 + number)};
  }
  void send_flow(const FrameSpec& spec) { say(0, switch_->mac(), spec); }
  // Egress port of a frame of the flow; 0 if the frame is not forwarded.
  size_t way_of(const FrameSpec& spec) {
    send_flow(spec);
    size_t way = 0;
    for (size_t i = 1; i < links_.size(); ++i) {
      for (const auto& bytes : heard(i)) {
        if (view(bytes).kind == FrameKind::kRoce) way = i;
      }
    }
    return way;
  }
  // The first flow with a number >= `from` whose next hop is at `port`, if all next hops are resolved.
  uint32_t flow_to(size_t port, uint32_t from = 0) {
    for (uint32_t i = from; i < from + 1000; ++i) {
      if (way_of(flow(i)) == port) return i;
    }
    ADD_FAILURE() << "no flow takes port " << port;
    return 0;
  }
  // Packet numbers of the RoCE packets that a host has received. Other frames are ARP.
  std::vector<uint32_t> packets_at(size_t host) {
    std::vector<uint32_t> out;
    for (const auto& bytes : heard(host)) {
      const FrameView v = view(bytes);
      if (v.kind == FrameKind::kRoce) out.push_back(v.bth().psn.get());
    }
    return out;
  }
  std::vector<uint8_t> arp_reply(size_t host) {
    std::vector<uint8_t> bytes(kMaxArpFrame);
    bytes.resize(build_arp({.destination = switch_->mac(), .source = host_mac(host)},
                           {.operation = ArpOperation::kReply,
                            .sender_mac = host_mac(host),
                            .sender_ip = hop(host - 1),
                            .target_mac = switch_->mac(),
                            .target_ip = ip("10.0.2.1")},
                           bytes));
    return bytes;
  }
  void answer_arp(size_t host) {
    send(host, arp_reply(host));
    settle();
  }
};

TEST_F(EcmpTest, flows_are_distributed_evenly_and_keep_path_and_order) {
  constexpr size_t kHops = 4;
  constexpr uint32_t kFlows = 2000;
  make_known(kHops, with_known_hops(kHops));
  std::map<uint16_t, std::set<size_t>> ways;
  std::map<uint16_t, uint32_t> last;
  std::vector<uint64_t> frames(kHops);
  for (uint32_t round = 1; round <= 3; ++round) {
    for (uint32_t i = 0; i < kFlows; ++i) {
      FrameSpec spec = flow(i);
      spec.destination = switch_->mac();
      spec.source = host_mac(0);
      spec.number = round;
      spec.traffic_class = static_cast<uint8_t>(round);  // different ECN codepoints, same class
      send(0, test::roce_bytes(spec));
      if (i % 100 == 99) settle();
    }
    for (size_t port = 1; port <= kHops; ++port) {
      for (const auto& bytes : heard(port)) {
        const FrameView v = view(bytes);
        const uint16_t id = v.udp().source_port.get();
        ASSERT_EQ(v.bth().psn.get(), last[id] + 1);
        last[id] = v.bth().psn.get();
        ways[id].insert(port);
        ++frames[port - 1];
        EXPECT_EQ(v.ethernet().destination, host_mac(port));
      }
    }
  }
  EXPECT_EQ(ways.size(), kFlows);
  for (const auto& [id, ports_of] : ways) EXPECT_EQ(ports_of.size(), 1U) << id;
  for (uint64_t& count : frames) count /= 3;
  EXPECT_LE(test::chi_square(frames), test::chi_square_bound(kHops - 1));
  EXPECT_EQ(switch_->counters(0).rerouted, 0U);
}

TEST_F(EcmpTest, packets_with_telemetry_take_their_flows_path_without_switch_int) {
  make_known(4, with_known_hops(4));
  for (uint32_t i = 0; i < 200; ++i) {
    const size_t way = way_of(flow(i));
    FrameSpec spec = flow(i);
    spec.destination = switch_->mac();
    spec.source = host_mac(0);
    rte_mbuf* frame = test::to_mbuf(*pool_, test::roce_bytes(spec));
    FrameFront front = FrameFront::of(*frame);
    ASSERT_EQ(begin_int(front, {.port = kTelemetryPort, .domain = 1}, 4000), IntEdit::kDone);
    front.store(*frame);
    send(0, frame);
    settle();
    for (size_t port = 1; port <= 4; ++port) EXPECT_EQ(heard(port).size(), port == way ? 1U : 0U) << i;
  }
}

TEST_F(EcmpTest, ipv6_flows_are_distributed_over_next_hops) {
  SwitchConfig config = with_hops(2);
  config.interfaces[0].addresses = {net("fd01::1/64")};
  config.interfaces[1].addresses = {net("fd02::1/64")};
  config.routes = {{net("fd09::/16"), {ip("fd02::2"), ip("fd02::3")}}};
  config.neighbors = {{ip("fd02::2"), host_mac(1)}, {ip("fd02::3"), host_mac(2)}};
  make_known(2, config);
  for (uint32_t i = 0; i < 100; ++i) {
    FrameSpec spec = flow(i);
    spec.from = ip("fd01::2");
    spec.to = ip("fd09::2");
    send_flow(spec);
  }
  const Counts got = counts();
  EXPECT_EQ(got[1] + got[2], 100U);
  EXPECT_GE(std::min(got[1], got[2]), 30U);
}

TEST_F(EcmpTest, second_tier_path_choice_is_independent_of_the_first_tier) {
  constexpr uint32_t kFlows = 4000;
  // Egress ports of all flows for one switch. They do not depend on the switches before it.
  const auto ways = [&](const std::string& name, std::optional<uint64_t> seed) {
    SwitchConfig config = with_known_hops(4);
    config.name = name;
    config.ecmp_seed = seed;
    make_known(4, config);
    std::vector<size_t> out;
    for (uint32_t i = 0; i < kFlows; ++i) {
      FrameSpec spec = flow(i);
      spec.payload = 4;
      out.push_back(way_of(spec) - 1);
    }
    runner_ = VirtualRunner{};
    switch_.reset();
    links_.clear();
    return out;
  };
  const auto crowd_behind = [&](const std::vector<size_t>& first, const std::vector<size_t>& second) {
    std::vector<uint64_t> flows(4);
    for (uint32_t i = 0; i < kFlows; ++i) {
      if (first.at(i) == 0) ++flows.at(second.at(i));
    }
    EXPECT_GE(flows[0] + flows[1] + flows[2] + flows[3], kFlows / 5);
    return flows;
  };
  const auto leaf = ways("leaf", {}), spine = ways("spine", {});
  EXPECT_LE(test::chi_square(crowd_behind(leaf, spine)), test::chi_square_bound(3));
  EXPECT_EQ(ways("leaf", {}), leaf) << "the same name, the same paths";

  const auto one = ways("leaf", 1), two = ways("spine", 2), same = ways("spine", 1);
  EXPECT_LE(test::chi_square(crowd_behind(one, two)), test::chi_square_bound(3));
  EXPECT_EQ(one, same) << "the seed alone decides";
}

TEST_F(EcmpTest, packets_wait_for_resolution_of_their_next_hop_and_leave_in_order) {
  make(with_hops(2));
  for (uint32_t i = 0; i < 20; ++i) {
    FrameSpec spec = flow(i);
    spec.number = i;
    send_flow(spec);
  }
  EXPECT_TRUE(packets_at(1).empty());
  EXPECT_TRUE(packets_at(2).empty());
  answer_arp(2);
  const auto right = packets_at(2);
  EXPECT_TRUE(std::is_sorted(right.begin(), right.end()));
  EXPECT_TRUE(packets_at(1).empty()) << "nobody goes elsewhere because another next hop was faster";
  answer_arp(1);
  const auto left = packets_at(1);
  EXPECT_TRUE(std::is_sorted(left.begin(), left.end()));
  EXPECT_EQ(left.size() + right.size(), 20U);
  EXPECT_GE(std::min(left.size(), right.size()), 3U);
  EXPECT_EQ(switch_->counters(0).rerouted, 0U);
}

TEST_F(EcmpTest, waiting_packets_leave_before_packets_received_with_the_arp_reply) {
  // The next hop is at port 0, so its ARP reply is processed before the packets of the same round.
  SwitchConfig config = with_hops(1);
  config.ports[0].vlan = 20;
  config.ports[1].vlan = 10;
  make(config);
  const auto packet = [&](uint32_t number) {
    FrameSpec spec = flow(0);
    spec.destination = switch_->mac();
    spec.source = host_mac(1);
    spec.number = number;
    return test::roce_bytes(spec);
  };
  for (uint32_t i = 0; i < 3; ++i) send(1, packet(i));
  settle();
  std::vector<uint8_t> reply = arp_reply(1);
  send(0, reply);
  for (uint32_t i = 3; i < 6; ++i) send(1, packet(i));
  settle();
  EXPECT_EQ(packets_at(0), (std::vector<uint32_t>{0, 1, 2, 3, 4, 5}));
}

TEST_F(EcmpTest, flows_of_an_unresolved_next_hop_move_and_other_flows_stay) {
  make(with_hops(3));
  for (uint32_t i = 0; i < 60; ++i) {
    FrameSpec spec = flow(i);
    spec.number = i;
    send_flow(spec);
  }
  answer_arp(2);
  answer_arp(3);
  const auto second = packets_at(2), third = packets_at(3);
  wait(5s);  // address resolution of the first fails
  const auto more_second = packets_at(2), more_third = packets_at(3);
  EXPECT_TRUE(packets_at(1).empty());
  EXPECT_EQ(second.size() + third.size() + more_second.size() + more_third.size(), 60U) << "nothing is lost";
  EXPECT_GE(std::min(more_second.size(), more_third.size()), 3U) << "both take over";
  EXPECT_EQ(switch_->counters(0).rerouted, more_second.size() + more_third.size());
  // From now on no packet waits, and each flow keeps its path.
  const auto expect_way = [this](const std::vector<uint32_t>& flows, size_t way) {
    for (const uint32_t i : flows) EXPECT_EQ(way_of(flow(i)), way) << i;
  };
  expect_way(second, 2);
  expect_way(third, 3);
  expect_way(more_second, 2);
  expect_way(more_third, 3);

  // The switch resolves the failed next hop again after some time. Meanwhile no packet waits.
  wait(6s);
  expect_way({more_second[0]}, 2);
  answer_arp(1);
  expect_way(more_second, 1);
  expect_way(more_third, 1);
  expect_way(second, 2);
}

TEST_F(EcmpTest, flows_of_a_next_hop_that_stops_replying_move_without_waiting) {
  make(with_hops(2));
  for (uint32_t i = 0; i < 20; ++i) send_flow(flow(i));
  answer_arp(1);
  answer_arp(2);
  packets_at(1);
  packets_at(2);
  const uint32_t of_first = flow_to(1), of_second = flow_to(2);
  // An entry is valid for 30 s. Then the switch sends unicast requests for three seconds and still uses the next hop.
  wait(31s);
  EXPECT_EQ(way_of(flow(of_first)), 1U);
  EXPECT_EQ(switch_->counters(0).rerouted, 0U);
  wait(4s);  // three more seconds of broadcast requests
  EXPECT_EQ(way_of(flow(of_first)), 2U);
  answer_arp(2);  // the second next hop is in use, so the switch refreshed it too
  wait(4s);       // resolution of the first next hop has failed
  EXPECT_EQ(way_of(flow(of_first)), 2U);
  EXPECT_EQ(switch_->counters(0).rerouted, 2U);
  EXPECT_EQ(way_of(flow(of_second)), 2U);
  EXPECT_EQ(switch_->counters(0).dropped(), 0U);
}

TEST_F(EcmpTest, packets_are_dropped_when_no_next_hop_replies) {
  make(with_hops(3));
  for (uint32_t i = 0; i < 30; ++i) send_flow(flow(i));
  wait(20s);
  EXPECT_EQ(dropped(0, DropReason::kNeighborUnresolved), 30U);
  for (size_t i = 1; i <= 3; ++i) EXPECT_TRUE(packets_at(i).empty());
  EXPECT_EQ(pool_->in_use(), 0U);
  // Later packets trigger new requests to all next hops. The one that replies gets all flows.
  for (uint32_t i = 0; i < 10; ++i) send_flow(flow(i));
  answer_arp(3);
  EXPECT_EQ(packets_at(3).size(), 10U);
  for (uint32_t i = 0; i < 10; ++i) EXPECT_EQ(way_of(flow(i)), 3U);
  EXPECT_EQ(dropped(0, DropReason::kNeighborUnresolved), 30U);
}

// The same with a second worker, which has half of the next hops and another ingress port, the last port. A flow can
// enter at two ports, and each worker's router chooses its next hop.
class EcmpWorkersTest : public EcmpTest {
 protected:
  static constexpr size_t kHops = 4;
  static constexpr size_t kOther = kHops + 1;  // the second ingress port, and its host

  static SwitchConfig with_workers(SwitchConfig config) {
    config.ports.push_back({.name = "other", .vlan = 10, .all_tagged = false});
    for (size_t i = kHops / 2 + 1; i <= kOther; ++i) config.ports[i].worker = 1;
    return config;
  }
  // Sends packet `number` of the flow through one of the ingress ports. Both ports carry flows of the same host.
  void send_by(size_t port, uint32_t flow_number, uint32_t number) {
    FrameSpec spec = flow(flow_number);
    spec.number = number;
    say(port, switch_->mac(), spec);
  }
  // Egress ports of the received packets, by packet number.
  std::map<uint32_t, size_t> ways() {
    std::map<uint32_t, size_t> out;
    for (size_t i = 1; i <= kHops; ++i) {
      for (const uint32_t number : packets_at(i)) out[number] = i;
    }
    return out;
  }
};

TEST_F(EcmpWorkersTest, flow_keeps_one_path_regardless_of_the_ingress_worker) {
  constexpr uint32_t kFlows = 200;
  make_known(kHops, with_workers(with_known_hops(kHops)));
  ASSERT_EQ(switch_->worker_count(), 2U);
  for (uint32_t i = 0; i < kFlows; ++i) send_by(0, i, i);
  const auto by_first = ways();
  for (uint32_t i = 0; i < kFlows; ++i) send_by(kOther, i, i);
  EXPECT_EQ(by_first.size(), kFlows);
  EXPECT_EQ(ways(), by_first);
  std::set<size_t> used;
  for (const auto& [number, way] : by_first) used.insert(way);
  EXPECT_EQ(used.size(), kHops) << "behind ports of both workers";
}

// Hosts 2 to 4 reply, host 1 does not. Each worker sends its own requests, and both process each reply, whichever
// port it arrives at. So both fail the same next hop and move its flows to the same ports.
TEST_F(EcmpWorkersTest, workers_agree_on_failed_next_hops_and_replacement_paths) {
  constexpr uint32_t kFlows = 60;
  make(with_workers(with_hops(kHops)));
  for (uint32_t i = 0; i < kFlows; ++i) {
    send_by(0, i, i);
    send_by(kOther, i, kFlows + i);
  }
  for (size_t host = 2; host <= kHops; ++host) answer_arp(host);
  const auto at_once = ways();
  wait(5s);  // address resolution of host 1 fails
  const auto after = ways();
  EXPECT_EQ(at_once.size() + after.size(), 2 * kFlows) << "nothing is lost";
  const auto both_went_alike = [](const std::map<uint32_t, size_t>& went) {
    std::set<size_t> used;
    for (const auto& [number, way] : went) {
      used.insert(way);
      const auto other = went.find((number + kFlows) % (2 * kFlows));
      EXPECT_TRUE(other != went.end() && other->second == way) << number;
    }
    return used;
  };
  EXPECT_EQ(both_went_alike(at_once), (std::set<size_t>{2, 3, 4}));
  EXPECT_EQ(both_went_alike(after), (std::set<size_t>{2, 3, 4})) << "all others take over";
  EXPECT_EQ(switch_->counters(0).rerouted, after.size() / 2);
  EXPECT_EQ(switch_->counters(kOther).rerouted, after.size() / 2);

  // After that, packets from both ports are forwarded at once.
  for (uint32_t i = 0; i < kFlows; ++i) {
    send_by(0, i, i);
    send_by(kOther, i, kFlows + i);
  }
  auto before = at_once;
  before.insert(after.begin(), after.end());
  EXPECT_EQ(ways(), before);

  // When host 1 replies to a later request, both workers move its flows back.
  wait(6s);
  for (uint32_t i = 0; i < kFlows; ++i) {
    send_by(0, i, i);
    send_by(kOther, i, kFlows + i);
  }
  ways();
  answer_arp(1);
  for (uint32_t i = 0; i < kFlows; ++i) {
    send_by(0, i, i);
    send_by(kOther, i, kFlows + i);
  }
  const auto at_last = ways();
  EXPECT_EQ(at_last.size(), 2 * kFlows);
  for (const auto& [number, way] : at_last) {
    const auto first = at_once.find(number);
    EXPECT_EQ(way, first == at_once.end() ? 1U : first->second) << number;
  }
}

TEST_F(EcmpTest, accepts_the_maximum_number_of_routes_and_rejects_one_more) {
  SwitchConfig config = with_known_hops(2);
  config.routes.clear();
  for (uint32_t i = 0; i < kMaxRoutes; ++i)
    config.routes.push_back({{IpAddress::from_v4(0x14000000 + (i << 8)), 24}, {hop(i % 2)}});
  make_known(2, config);
  FrameSpec spec = flow(0);
  spec.to = IpAddress::from_v4(0x14000000 + (16'383 << 8) + 9);
  EXPECT_EQ(way_of(spec), 2U);
  spec.to = IpAddress::from_v4(0x14000000 + (16'384 << 8));
  EXPECT_EQ(way_of(spec), 0U);
  config.routes.push_back({net("30.0.0.0/8"), {hop(0)}});
  EXPECT_EQ(check(config).error().message, "switch 's1': has 16385 routes; the maximum is 16384");
}

const std::string kText = R"(
ports: [{name: p1}, {name: p2}]
interfaces:
  - {name: left, vlan: 10, addresses: [10.0.1.1/24]}
  - {name: right, vlan: 20, addresses: [10.0.2.1/24, 10.0.3.1/32, "fd02::1/64"]}
)";

TEST(EcmpConfig, route_accepts_one_next_hop_or_a_list) {
  const auto config = test::read_switch_text(kText + R"(
ecmp_seed: 7
routes:
  - {prefix: 10.9.0.0/16, via: 10.0.2.9}
  - {prefix: 0.0.0.0/0, via: [10.0.2.9, 10.0.1.9]}
)");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->routes[0].via, (std::vector{ip("10.0.2.9")}));
  EXPECT_EQ(config->routes[1].via, (std::vector{ip("10.0.2.9"), ip("10.0.1.9")}));
  EXPECT_EQ(config->ecmp_seed, 7U);
  EXPECT_EQ(test::read_switch_text(kText + "ecmp_seed: auto\n")->ecmp_seed, std::nullopt);
}

TEST(EcmpConfig, invalid_routes_are_rejected_with_the_reason) {
  std::string many;
  for (int i = 0; i < 65; ++i) many += (i == 0 ? "10.0.2." : ", 10.0.2.") + std::to_string(2 + i);
  const std::pair<std::string, const char*> rows[] = {
      {"- {prefix: 10.9.0.0/16, via: []}", "route 10.9.0.0/16 has no next hop"},
      {"- {prefix: 10.9.0.0/16}", "the required key 'via' is missing"},
      {"- {prefix: 10.9.0.0/16, via: {a: 1}}", "via must be a value or a list but is a map"},
      {"- {prefix: 10.9.0.0/16, via: [10.0.2.9, x]}", "via[1]: "},
      {"- {prefix: 10.9.0.0/16, via: [" + many + "]}",
       "route 10.9.0.0/16 has 65 next hops; the maximum is 64"},
      {"- {prefix: 10.9.0.0/16, via: [10.0.2.9, 10.7.0.1]}",
       "route 10.9.0.0/16 via 10.7.0.1: the next hop is in no interface's network"},
      {"- {prefix: 10.9.0.0/16, via: [10.0.2.9, \"fd02::9\"]}",
       "route 10.9.0.0/16 via fd02::9 mixes IPv4 and IPv6"},
      {"- {prefix: 10.9.0.0/16, via: [10.0.2.9, 10.0.1.9, 10.0.2.9]}",
       "route 10.9.0.0/16 via 10.0.2.9: duplicate next hop"},
      {"- {prefix: 10.9.0.0/16, via: 10.0.2.9}\n  - {prefix: 10.9.7.7/16, via: 10.0.1.9}",
       "route 10.9.7.7/16: duplicate prefix; list several next hops in one route: via: [10.0.2.9, 10.0.1.9]"},
      {"- {prefix: 10.0.2.0/24, via: 10.0.1.9}",
       "route 10.0.2.0/24: the prefix is that of interface 'right', which is routed already"},
      {"- {prefix: 10.0.2.1/32, via: 10.0.1.9}",
       "route 10.0.2.1/32: the prefix is that of interface 'right', which is routed already"},
      {"- {prefix: 10.0.3.1/32, via: 10.0.1.9}",
       "route 10.0.3.1/32: the prefix is that of interface 'right', which is routed already"},
  };
  for (const auto& [routes, message] : rows) {
    const std::string error = switch_text_error(kText + "routes:\n  " + routes + "\n");
    EXPECT_NE(error.find(message), std::string::npos) << error << "\n instead of " << message;
  }
  EXPECT_EQ(switch_text_error(kText + "routes: [{prefix: 10.0.2.128/25, via: 10.0.1.9}]\n"), "")
      << "part of an own network";
  EXPECT_NE(switch_text_error(kText + "ecmp_seed: x\n"), "");
}

TEST(EcmpConfig, number_of_interface_addresses_is_limited) {
  SwitchConfig config{.name = "s1", .ports = {{.name = "p"}}};
  config.interfaces = {{.name = "i"}};
  for (uint32_t i = 0; i <= kMaxOwnAddresses; ++i)
    config.interfaces[0].addresses.push_back({IpAddress::from_v4(0x0a000001 + (i << 8)), 24});
  EXPECT_EQ(check(config).error().message,
            "switch 's1': the interfaces have 4097 addresses; the maximum is 4096");
  config.interfaces[0].addresses.pop_back();
  EXPECT_TRUE(check(config));
}

}  // namespace
}  // namespace roci

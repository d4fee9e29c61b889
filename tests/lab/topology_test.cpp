#include "lab/network/topology.hpp"

#include <gtest/gtest.h>

#include "support/must.hpp"

namespace roci::lab {
namespace {

using test::must;

const CableSpec kHostCable{BitsPerSec{25'000'000'000}, 1us};
const CableSpec kFabric{BitsPerSec{100'000'000'000}, 2us};

TEST(Topology, star_has_one_switch_and_subnet) {
  const Topology star = must(make_star(17, kHostCable));
  EXPECT_EQ(star.hosts.size(), 17U);
  EXPECT_EQ(star.switches.size(), 1U);
  EXPECT_EQ(star.host_address(0).to_string(), "10.0.0.2/20");
  EXPECT_EQ(star.host_address(16).to_string(), "10.0.0.18/20");
  EXPECT_EQ(star.path(0, 16), (std::vector<uint32_t>{0, 16}));
  EXPECT_EQ(star.least_delay(), 1us);
}

TEST(Topology, leaves_reach_each_other_over_every_spine) {
  const Topology made = must(make_leaf_spine(4, 3, 2, kHostCable, kFabric));
  EXPECT_EQ(made.hosts.size(), 8U);
  EXPECT_EQ(made.switches.size(), 7U);
  EXPECT_EQ(made.cables.size(), 8U + 12U);
  EXPECT_EQ(made.ports_towards(0, 3), (std::vector<uint32_t>{2, 3, 4})) << "behind its two hosts";
  EXPECT_EQ(made.ports_towards(5, 3), (std::vector<uint32_t>{3})) << "a spine has one way to a leaf";
  EXPECT_EQ(made.path(0, 7).size(), 4U);
  EXPECT_EQ(made.path(0, 1).size(), 2U) << "at the same leaf";
  EXPECT_EQ(made.host_address(2).to_string(), "10.0.16.2/20");
  EXPECT_EQ(made.gateway(1).to_string(), "10.0.16.1/20");
}

// Al-Fares et al.: k = 4 has 16 hosts and 20 switches, and (k/2)^2 paths between pods.
TEST(Topology, fat_tree_has_all_equal_cost_paths) {
  const Topology made = must(make_fat_tree(4, {}, kHostCable, kFabric));
  EXPECT_EQ(made.hosts.size(), 16U);
  EXPECT_EQ(made.switches.size(), 20U);
  EXPECT_EQ(made.cables.size(), 16U + 16U + 16U);
  EXPECT_EQ(made.path(0, 15).size(), 6U);
  uint32_t ways = 0;
  const uint32_t from = made.hosts[0].at, to = made.hosts[15].at;
  for (const uint32_t up : made.ports_towards(from, to)) {
    const uint32_t aggregation = made.far_end(from, up).node;
    ways += static_cast<uint32_t>(made.ports_towards(aggregation, to).size());
  }
  EXPECT_EQ(ways, 4U);
}

// HPCC's simulations use 320 hosts, 20 edge, 20 aggregation and 16 core switches, which is no fat-tree for any k.
// Similar: k = 8 with ten hosts per edge switch.
TEST(Topology, fat_tree_accepts_more_hosts_per_edge_switch) {
  const Topology made = must(make_fat_tree(8, 10, kHostCable, kFabric));
  EXPECT_EQ(made.hosts.size(), 320U);
  for (uint32_t h = 0; h < 320; ++h) EXPECT_EQ(made.switches[made.hosts[h].at].hosts, 10U);
}

TEST(Topology, rejects_invalid_parameters) {
  EXPECT_EQ(make_star(1, kHostCable).error().message, "1 hosts per switch; 2 to 1024 are allowed");
  EXPECT_EQ(make_star(2, {BitsPerSec{0}, 1us}).error().message, "a link requires a rate above 0");
  EXPECT_EQ(make_star(2, {BitsPerSec{1000}, Nanos{0}}).error().message,
            "a link requires a delay of at least 1 ns");
  EXPECT_EQ(make_fat_tree(5, {}, kHostCable, kFabric).error().message, "fat-tree: k must be even; 5 is odd");
}

TEST(TopologyBuilder, error_names_invalid_node_or_link) {
  TopologyBuilder builder;
  must(builder.add_switch("s"));
  must(builder.add_switch("t"));
  must(builder.add_host("a"));
  must(builder.add_host("b"));
  EXPECT_EQ(builder.add_host("s").error().message, "duplicate name 's'");
  EXPECT_EQ(builder.connect("a", "x", kHostCable).error().message, "'x' is neither a host nor a switch");
  EXPECT_EQ(builder.connect("a", "b", kHostCable).error().message,
            "link between the hosts 'a' and 'b'; hosts must be connected to switches");
  EXPECT_EQ(builder.connect("s", "s", kHostCable).error().message, "link from 's' to itself");
  must(builder.connect("a", "s", kHostCable));
  EXPECT_EQ(builder.connect("a", "t", kHostCable).error().message, "host 'a' already has a link (max. 1)");
  TopologyBuilder unfinished = builder;
  EXPECT_EQ(unfinished.finish().error().message, "host 'b' is not connected");
  must(builder.connect("b", "t", kHostCable));
  TopologyBuilder apart = builder;
  EXPECT_EQ(apart.finish().error().message, "no path from switch 's' to switch 't'");
  must(builder.connect("s", "t", kFabric));
  EXPECT_EQ(must(builder.finish()).path(0, 1).size(), 3U);
}

}  // namespace
}  // namespace roci::lab

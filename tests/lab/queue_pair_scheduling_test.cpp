// Sharing of a host's line between its queue pairs.
#include <gtest/gtest.h>

#include "lab/execution/experiment.hpp"
#include "lab/scenario/scenario.hpp"
#include "support/must.hpp"

namespace roci::lab {
namespace {

using test::must;

// Flows that fill a host's line, each to a different host, and single packets from and to the host, whose
// acknowledgments share the line. There is no queue in the network. A packet waits for the current one and twice for one
// of each flow; the worst case is an even number of queue pairs, for which the port has space for one packet per round.
// An acknowledgment waits only for packets that the worker has passed to the port or has staged.
TEST(QueuePairScheduling, small_messages_wait_two_packets_per_other_queue_pair_and_acknowledgments_for_none) {
  for (const int flows : {1, 2, 3, 4}) {
    const Scenario scenario = must(parse_scenario(
        "name: x\nduration: 5ms\ndrain: 1ms\n"
        "topology: {kind: star, hosts: 7, link: {rate: 25Gbps, delay: 500ns}}\n"
        "traffic:\n"
        "  - {name: long, pattern: fan_in, from: h0, to: h1-h" +
            std::to_string(flows) +
            ", size: unlimited}\n"
            "  - {name: out, pattern: random, from: h0, to: h5, size: 1KB, arrivals: poisson, load: 0.01}\n"
            "  - {name: in, pattern: random, from: h6, to: h0, size: 1KB, arrivals: poisson, load: 0.01}\n",
        "x.yaml"));
    const Measurements result = must(run_experiment(scenario, {}));
    EXPECT_GT(result.summary["traffic"]["long"]["goodput_bps"].get<double>(), 22e9);
    constexpr double kPacket = 350;  // ns, for 1,092 bytes at 25 Gb/s
    const auto within = [&](const char* traffic, int packets) {
      const auto& times = result.summary["traffic"][traffic]["completion_ns"];
      EXPECT_GT(times["count"], 100U);
      EXPECT_LT(times["most"].get<double>(), result.ideal.back() + packets * kPacket)
          << traffic << " beside " << flows;
    };
    within("out", 2 * flows + 4);
    within("in", 5);
  }
}

}  // namespace
}  // namespace roci::lab

// DCQCN end to end: a flow compared with the vectors of the paper, and the trade-off between its timers.
#include <array>

#include "congestion_control/settings.hpp"
#include "support/ports/frames.hpp"

namespace roci::test {
namespace {

// Marks packets at the times that a test sets, like a congested switch. The receiver responds with CNPs.
struct Marks {
  explicit Marks(FanIn& net) {
    net.link(0).set_script(SimLink::kAToB, [this, &net](const rte_mbuf& frame, uint64_t) {
      SimVerdict verdict;
      if (!at.empty() && frame.pkt_len > 1000 && net.runner.now() >= at.front()) {
        verdict.mark = true;
        at.erase(at.begin());
      }
      return verdict;
    });
    net.link(0).set_script(SimLink::kBToA, [this, &net](const rte_mbuf& frame, uint64_t) {
      if (view_of(&frame).opcode != nullptr && view_of(&frame).opcode->opcode == Opcode::kCnp)
        cnps.push_back(net.runner.now());
      return SimVerdict{};
    });
  }
  std::vector<Nanos> at, cnps;
};

// The vector: g = 1/256, alpha = 1, AI = 40 Mb/s, F = 5; three CNPs 50 us apart, seven periods of 55 us.
TEST(Dcqcn, flow_follows_paper_vector) {
  FanInOptions options;
  options.senders = options.flows = 1;
  options.extensions.mode = ExtensionMode::kOff;
  options.control = with_profile("dcqcn_paper");
  options.control.notification_point.interval = 40us;
  FanIn net(options);
  net.drive(500us);
  const auto rate = [&] { return static_cast<double>(net.control(0)->published.read().rate) / 1e9; };
  ASSERT_EQ(rate(), 100);
  Marks marks(net);
  const Nanos begin = net.runner.now();
  for (int i = 0; i < 3; ++i) marks.at.push_back(begin + 10us + 51us * i);
  const std::array cuts = {50.0, 25.0, 12.5};
  for (size_t i = 0; i < cuts.size(); ++i) {
    net.drive_until([&] { return marks.cnps.size() > i; });
    ASSERT_GT(marks.cnps.size(), i);
    EXPECT_LE(marks.cnps[i] - (begin + 10us + 51us * static_cast<int>(i)), 10us)
        << "2 us and what queues on the way";
    net.drive(2us);
    EXPECT_NEAR(rate(), cuts[i], 1e-6) << i;
  }
  // No CNP arrives after the third one. Alpha falls meanwhile, which only the next cut would show.
  const Nanos last = marks.cnps.back() + 1us;
  const std::array rises = {18.750000, 21.875000, 23.437500, 24.218750, 24.629375, 24.854688, 24.987344};
  for (size_t i = 0; i < rises.size(); ++i) {
    const Nanos due = last + 55us * static_cast<int>(i + 1);
    net.drive(due - 1us - net.runner.now());
    EXPECT_NEAR(rate(), i == 0 ? 12.5 : rises[i - 1], 1e-6) << i;
    net.drive(2us);
    EXPECT_NEAR(rate(), rises[i], 1e-6) << i;
  }
  // The packets are sent at that rate.
  EXPECT_NEAR(net.measure(50us).sum / 1e9, rises.back() * 1024 / 1106, 0.6);
}

// Without CNPs alpha is 0.996093750, 0.992202759, 0.988326967 after one, two and three periods; a cut shows it.
TEST(Dcqcn, alpha_of_flow_decays_as_in_paper_vector) {
  const std::array alphas = {1.0, 0.996093750, 0.992202759, 0.988326967};
  for (size_t periods = 0; periods < alphas.size(); ++periods) {
    FanInOptions options;
    options.senders = options.flows = 1;
    options.extensions.mode = ExtensionMode::kOff;
    options.control = with_profile("dcqcn_paper", {{"rpg_time_reset", 1e10}, {"rpg_byte_reset", 0}});
    options.control.notification_point.interval = 10us;
    FanIn net(options);
    net.drive(500us);
    Marks marks(net);
    const Nanos begin = net.runner.now();
    marks.at = {begin + 10us, begin + 10us + 55us * static_cast<int>(periods) + 30us};
    const auto rate = [&] { return static_cast<double>(net.control(0)->published.read().rate); };
    net.drive_until([&] { return !marks.cnps.empty(); });
    net.drive(2us);
    const double before = rate();
    net.drive_until([&] { return marks.cnps.size() == 2; });
    net.drive(2us);
    EXPECT_NEAR(2 * (1 - rate() / before), alphas[periods], 1e-8) << periods;
  }
}

// ------------------------------------------------------------------------------------------- choice of timers

// Figure 2 of HPCC: Ti between increases, Td between cuts. A small Ti and a large Td use free bandwidth early and
// return it late. Alpha is updated every Td of 50 us, otherwise every us as in HPCC's simulator, the source of the
// other values.
struct Timers {
  const char* name;
  double increase, decrease;  // us
};
constexpr std::array<Timers, 3> kTimers = {{{"55_50", 55, 50}, {"300_4", 300, 4}, {"900_4", 900, 4}}};

FanInOptions with_timers(const Timers& timers) {
  FanInOptions options;
  options.control = with_profile("dcqcn", {{"initial_alpha_value", 1024},
                                           {"release_at_max", 0},
                                           {"rpg_ai_rate", 20e6},
                                           {"rpg_hai_rate", 200e6},
                                           {"rpg_time_reset", timers.increase * 1e3},
                                           {"rate_reduce_monitor_period", timers.decrease * 1e3},
                                           {"dce_tcp_rtt", timers.decrease > 10 ? 50e3 : 1e3}});
  options.aqm = dcqcn_aqm(options.rate);
  return options;
}

TEST(Dcqcn, small_increase_timers_use_free_bandwidth_sooner) {
  std::array<double, 3> part{};
  for (size_t i = 0; i < kTimers.size(); ++i) {
    FanInOptions options = with_timers(kTimers[i]);
    options.flows = 1;
    options.senders = 5;
    FanIn net(options);
    net.connect_flows(4);
    for (size_t flow = 1; flow < 5; ++flow) net.stop(flow);
    net.drive(1ms);
    const auto before = net.all_acknowledged();
    const Nanos begin = net.runner.now();
    for (int round = 0; round < (kSlowMachine ? 4 : 10); ++round) {
      for (size_t flow = 1; flow < 5; ++flow) net.post(flow, 1 << 20);
      net.drive(2ms);
    }
    part[i] = net.rates_since(before, net.runner.now() - begin).each[0] / net.most_goodput();
    note(std::string("long_flow_part_") + kTimers[i].name, part[i]);
  }
  EXPECT_GT(part[0], part[1] + 0.02);
  EXPECT_GT(part[1], part[2] + 0.02);
}

TEST(Dcqcn, small_increase_timers_cause_longer_queues_and_more_pauses) {
  std::array<double, 3> pauses{};
  std::array<uint64_t, 3> p50{};
  for (size_t i = 0; i < kTimers.size(); ++i) {
    FanInOptions options = with_timers(kTimers[i]);
    options.senders = options.flows = 8;
    options.lossless = LosslessConfig{512_KiB, 448_KiB, 100_KiB};
    FanIn net(options);
    net.drive(kSlowMachine ? 3ms : 10ms);
    const uint64_t first = net.pauses();
    net.take_queue();
    const auto rates = net.measure(kSlowMachine ? 3ms : 10ms);
    const auto queue = net.take_queue();
    note(rates, queue, std::string(kTimers[i].name) + "_");
    note(std::string("pauses_first_") + kTimers[i].name, first);
    note(std::string("pauses_") + kTimers[i].name, net.pauses() - first);
    pauses[i] = static_cast<double>(net.pauses());
    p50[i] = FanIn::percentile(queue, 0.5);
    EXPECT_EQ(net.port_counters().dropped(), 0U);
  }
  // The pauses happen at the start, where only Td has an effect. Afterwards marks keep the queue below the threshold.
  EXPECT_GT(pauses[0], pauses[1]);
  EXPECT_GT(pauses[0], pauses[2]);
  EXPECT_GT(p50[0], p50[1]);
  EXPECT_GT(p50[1], p50[2]);
}

}  // namespace
}  // namespace roci::test

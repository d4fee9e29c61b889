// LDCP (draft-dai-tsvwg-pfc-free-congestion-control) end to end: many senders, one receiver, no PFC.
#include "congestion_control/settings.hpp"
#include "support/ports/frames.hpp"

namespace roci::test {
namespace {

FanInOptions ldcp(size_t flows, const std::map<std::string, double>& values = {}) {
  FanInOptions options;
  options.flows = flows;
  options.senders = std::min<size_t>(flows, 16);  // many flows on few hosts
  options.control = with_profile("ldcp", values);
  options.aqm = ldcp_aqm();
  return options;
}

// Expects drops only of packets in first round trips, which are not ECN-capable.
void expect_early_drops_only(FanIn& net) {
  EXPECT_EQ(net.port_counters().dropped(), net.port_counters().dropped(DropReason::kEarlyDrop));
  for (size_t i = 0; i < net.options.senders; ++i) EXPECT_EQ(net.at(0).counters(i).dropped(), 0U) << i;
}

// 20 ms: within 5 ms the index is 0.987 to 0.997, depending on random marks and gaps.
TEST(LdcpFanIn, sixteen_senders_share_the_line_with_a_short_queue) {
  for (uint64_t seed = 1; seed <= (kSlowMachine ? 1 : 3); ++seed) {
    SCOPED_TRACE(seed);
    FanInOptions options = ldcp(16);
    options.seed = seed;
    FanIn net(options);
    net.take_queue();
    net.drive(1ms);
    EXPECT_LE(FanIn::percentile(net.take_queue(), 1), 100'000U);
    const uint64_t first_drops = net.port_counters().dropped();
    EXPECT_GT(first_drops, 100U);
    const auto rates = net.measure(kSlowMachine ? 10ms : 20ms);
    const auto queue = net.take_queue();
    note(rates, queue);
    EXPECT_LE(FanIn::percentile(queue, 0.99), 25'000U);
    EXPECT_GE(rates.sum, 0.99 * net.most_goodput());
    EXPECT_GE(rates.jain, 0.99);
    EXPECT_EQ(net.port_counters().dropped(), first_drops) << "packets of the stable stage were dropped";
    expect_early_drops_only(net);
    EXPECT_EQ(net.total("timeouts"), 0U);
  }
}

struct Many {
  size_t flows;
  std::map<std::string, double> values;
  Nanos warm, span;
  double jain, goodput;
  uint64_t queue;  // p99, bytes
};

void expect_fair(const Many& param) {
  FanIn net(ldcp(param.flows, param.values));
  if (kSlowMachine && param.flows > 64) {  // too short for fairness, long enough to detect errors
    net.drive(300us);
    expect_early_drops_only(net);
    return;
  }
  net.drive(param.warm);
  net.take_queue();
  const uint64_t first_drops = net.port_counters().dropped();
  const auto rates = net.measure(param.span);
  const auto queue = net.take_queue();
  note(rates, queue);
  EXPECT_GE(rates.jain, param.jain);
  EXPECT_GE(rates.sum, param.goodput * net.most_goodput());
  EXPECT_GE(rates.least, 0.4 * rates.sum / static_cast<double>(param.flows)) << "a flow starves";
  EXPECT_LE(FanIn::percentile(queue, 0.99), param.queue);
  EXPECT_EQ(net.port_counters().dropped(), first_drops) << "packets of the stable stage were dropped";
  expect_early_drops_only(net);
  EXPECT_EQ(net.total("timeouts"), 0U);
}

TEST(LdcpFanIn, flows_64_share_fairly) {
  expect_fair({64, {}, 1ms, kSlowMachine ? 4ms : 20ms, 0.98, 0.99, 40'000});
}
TEST(LdcpFanIn, flows_256_share_fairly) { expect_fair({256, {}, 5ms, 20ms, 0.98, 0.95, 150'000}); }
// With steps of 1/16 packet the total rate of 1024 flows can be below the line rate. With 1/8 this is barely possible
// for 512 flows.
const std::map<std::string, double> kSmallSteps = {{"gamma", 1.0 / 16}, {"alpha", 1.0 / 16}};
TEST(LdcpFanIn, flows_512_share_fairly) { expect_fair({512, kSmallSteps, 5ms, 20ms, 0.98, 0.93, 400'000}); }
TEST(LdcpFanIn, flows_1024_share_fairly) {
  expect_fair({1024, kSmallSteps, 10ms, 20ms, 0.98, 0.93, 1'200'000});
}

TEST(LdcpFanIn, messages_complete_in_one_or_two_rtts_on_an_idle_path) {
  FanInOptions options = ldcp(1);
  FanIn net(options);
  const Nanos one = net.time_of(0, 1024);
  EXPECT_LE(one, 4300ns) << "4 us of links, and a packet and its ACK on two of them each";
  net.run(1ms);
  // Bytes in flight per round trip at full rate.
  const auto bdp = static_cast<size_t>(static_cast<double>(one.count()) * 100 / 8 / 1106);
  const Nanos two = net.time_of(0, bdp * 1024);
  EXPECT_LE(two, 2 * one);
  EXPECT_GT(two, one + one / 2);
}

// A permanent flow, and a message of another flow per `every`. Share of the line's payload rate that the permanent
// flow gets: mean, and minimum over such intervals.
struct Churn {
  double mean = 0, least = 1;
};
Churn churn(const std::string& name, size_t message, Nanos every, bool policy,
            const std::map<std::string, double>& values = {}) {
  FanInOptions options = ldcp(1, values);
  options.senders = 9;
  if (!policy) options.aqm.drop = {};  // first packets are queued, and cannot be marked
  FanIn net(options);
  net.connect_flows(8);  // of the other senders
  for (size_t i = 1; i <= 8; ++i) net.stop(i);
  net.drive(1ms);
  auto before = net.all_acknowledged();
  const auto begin = before;
  const auto spans = static_cast<size_t>((kSlowMachine ? 3ms : 10ms) / every);
  Churn churn;
  for (size_t i = 0; i < spans; ++i) {
    net.post(1 + i % 8, message);
    net.drive(every);
    const double part = net.rates_since(before, every).each[0] / net.most_goodput();
    churn.mean += part / static_cast<double>(spans);
    churn.least = std::min(churn.least, part);
    before = net.all_acknowledged();
  }
  net.run(1ms);
  uint64_t done = 0;
  for (size_t i = 1; i <= 8; ++i) done += net.acknowledged(i) - begin[i];
  EXPECT_EQ(done, spans * message);
  note(name + "_mean", churn.mean), note(name + "_least", churn.least);
  return churn;
}

// Draft, section 2.3: first packets of other flows are dropped instead of queued before those of the long flow.
TEST(LdcpFanIn, long_flow_keeps_goodput_during_short_flows) {
  // 10 KB per 20 us are 4.3 % of the line's payload rate; the long flow loses no more.
  const Churn small = churn("small", 10'000, 20us, true);
  EXPECT_GE(small.mean, 0.95);
  EXPECT_GE(small.least, 0.94);
  // Bursts of one BDP at line rate, 0.9 % of the line. Their marks cost the long flow more than that.
  const Churn with = churn("bdp", 50'000, 500us, true), without = churn("bdp_queued", 50'000, 500us, false);
  EXPECT_GE(with.mean, 0.94);
  EXPECT_GE(with.least, 0.85);
  EXPECT_LE(without.mean, with.mean - 0.10);
}

// Contrary to the draft's goal: a flow regains alpha packets per round trip, and the marks of a BDP burst cost
// several packets (beta each). With one burst per 24 round trips it stays at half of the line rate; larger steps
// improve it.
TEST(LdcpFanIn, frequent_bdp_bursts_cost_long_flow_goodput_with_small_alpha) {
  const Churn standard = churn("standard", 50'000, 100us, true);
  EXPECT_LE(standard.mean, 0.70);
  EXPECT_GE(standard.least, 0.45);
  EXPECT_GE(churn("alpha_1", 50'000, 100us, true, {{"alpha", 1}}).mean, 0.88);
}

// Packets after a pause are Not-ECT from the first one on (except the last one): also on a control core the algorithm
// decides before they are sent.
TEST(LdcpFanIn, fast_start_after_pause_applies_to_requests_and_read_responses) {
  for (const bool reads : {false, true}) {
    for (const uint32_t cores : {0U, 1U}) {
      SCOPED_TRACE(std::to_string(reads) + ' ' + std::to_string(cores));
      FanInOptions options = ldcp(1);
      options.reads = reads;
      options.control.cores = cores;
      FanIn net(options);
      net.time_of(0, 200 * 1024);
      net.run(1ms);  // idle_rtts are 45 us
      std::vector<bool> ecn_capable;
      net.link(0).set_script(SimLink::kAToB, [&](const rte_mbuf& frame, uint64_t) {
        if (frame.pkt_len > 1000) ecn_capable.push_back((bytes_of(&frame)[15] & 3) != 0);
        return SimVerdict{};
      });
      net.time_of(0, 20 * 1024);
      ASSERT_EQ(ecn_capable.size(), 20U);
      for (size_t i = 0; i + 1 < ecn_capable.size(); ++i) EXPECT_FALSE(ecn_capable[i]) << i;
      EXPECT_TRUE(ecn_capable.back());
    }
  }
}

}  // namespace
}  // namespace roci::test

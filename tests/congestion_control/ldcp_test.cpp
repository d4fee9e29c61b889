// LDCP (draft-dai-tsvwg-pfc-free-congestion-control) from end to end: many senders, one receiver.
#include "congestion_control/fan_in.hpp"

namespace roci::test {
namespace {

// K, Kmin and Kmax for 100 Gb/s and 4.2 us (52 KB).
AqmConfig ldcp_aqm() {
  AqmConfig aqm;
  aqm.mark = {.kmin = Bytes{13'000}, .kmax = Bytes{52'000}, .pmax = 1};
  aqm.drop = {.kmin = Bytes{26'000}, .kmax = Bytes{26'000}, .pmax = 1};
  return aqm;
}

TEST(LdcpFanIn, sixteen_senders_share_the_line_without_a_queue_to_speak_of) {
  FanInOptions options;
  options.control = with_profile("ldcp");
  options.aqm = ldcp_aqm();
  FanIn net(options);
  net.take_queue();
  net.drive(1ms);
  EXPECT_LE(FanIn::percentile(net.take_queue(), 1), 100'000U);
  const uint64_t first_drops = net.port_counters().dropped();
  EXPECT_GT(first_drops, 100U);
  const auto rates = net.measure(5ms);
  EXPECT_LE(FanIn::percentile(net.take_queue(), 0.99), 25'000U);
  EXPECT_GE(rates.sum, 0.99 * net.most_goodput());
  EXPECT_GE(rates.jain, 0.98);  // 0.987 to 0.997 within 5 ms, by the draws of marks and gaps
  EXPECT_EQ(net.port_counters().dropped(), first_drops) << "packets of the stable stage were dropped";
  EXPECT_EQ(net.total("timeouts"), 0U);
}

}  // namespace
}  // namespace roci::test

// Authentication of congestion notifications through routers.
#include "switch/qcn/l3_cnm_bench.hpp"
#include "wire/cnm/l3_congestion_notification.hpp"

namespace roci {
namespace {

using test::L3QcnTest;

class L3CnmAuthTest : public L3QcnTest {
 protected:
  static constexpr SipKey kKey{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  static SwitchConfig with_key(SwitchConfig config, Nanos time_of_day = Nanos{1'800'000'000'000'000'000}) {
    config.notify.key = kKey;
    config.time_of_day = time_of_day;
    return config;
  }
  void congest() {
    for (uint32_t i = 0; i < 3; ++i) send(0, frame(0, i));
    wait(1ms);
    EXPECT_EQ(at_host_b().size(), 3U);
    ASSERT_EQ(left_[1].size(), 2U) << "the spine has sent two messages";
  }
};

TEST_F(L3CnmAuthTest, accepts_cnms_signed_with_the_configured_key) {
  build(with_key(tor_a()), with_key(spine()), tor_b());
  congest();
  const auto got = heard(0);
  ASSERT_EQ(got.size(), 2U);
  EXPECT_EQ(got[0], cnm_for_host(1, 1)) << "the host sees nothing of it";
  EXPECT_EQ(events(tor_a_, CnmEvent::kTranslated), 2U);
}

TEST_F(L3CnmAuthTest, rejects_unsigned_cnms_and_cnms_signed_with_another_key) {
  for (const bool is_signed : {false, true}) {
    SwitchConfig s = spine();
    if (is_signed) {
      s = with_key(s);
      (*s.notify.key)[15] ^= 1;
    }
    build(with_key(tor_a()), s, tor_b());
    congest();
    EXPECT_EQ(heard(0).size(), 0U);
    EXPECT_EQ(events(tor_a_, CnmEvent::kNotAuthentic), 2U) << is_signed;
    EXPECT_EQ(tor_a_->counters(1).dropped(DropReason::kNotification), 2U);
    start_over();
  }
}

TEST_F(L3CnmAuthTest, accepts_signed_cnms_without_a_configured_key) {
  build(tor_a(), with_key(spine()), tor_b());
  congest();
  EXPECT_EQ(heard(0).size(), 2U);
}

TEST_F(L3CnmAuthTest, rejects_replayed_and_modified_cnms) {
  build(with_key(tor_a()), with_key(spine()), tor_b());
  congest();
  EXPECT_EQ(heard(0).size(), 2U);
  const auto recorded = left_[1];
  start_over();

  // ToR A restarts and has no state about accepted messages.
  tor_a_alone(with_key(tor_a()));
  send(0, frame(0));
  settle();
  EXPECT_EQ(discard_from_tor_a(), 1U);
  auto changed = recorded[1];
  const uint32_t feedback = parse_l3_cnm(changed, test::kCnmPort).pdu_offset + 1;
  changed[feedback] ^= 1;
  changed[feedback + 40] ^= 1;  // keeps the checksum valid
  ASSERT_TRUE(parse_l3_cnm(changed, test::kCnmPort).accepted());
  send_to_tor_a(changed);
  EXPECT_EQ(events(tor_a_, CnmEvent::kNotAuthentic), 1U);
  send_to_tor_a(recorded[1]);
  EXPECT_EQ(events(tor_a_, CnmEvent::kTranslated), 1U);
  send_to_tor_a(recorded[1]);
  send_to_tor_a(recorded[0]);
  EXPECT_EQ(events(tor_a_, CnmEvent::kTranslated), 1U);
  EXPECT_EQ(events(tor_a_, CnmEvent::kNotAuthentic), 3U) << "again, and one that is older";
  EXPECT_EQ(heard(0).size(), 1U);
}

TEST_F(L3CnmAuthTest, rejects_cnms_beyond_the_clock_tolerance) {
  build(with_key(tor_a(), Nanos{1'800'000'000'000'000'000} + 6s), with_key(spine()), tor_b());
  congest();
  EXPECT_EQ(heard(0).size(), 0U);
  EXPECT_EQ(events(tor_a_, CnmEvent::kNotAuthentic), 2U);
}

TEST_F(L3CnmAuthTest, rejects_invalid_keys_rates_and_tolerances) {
  SwitchConfig a = with_key(tor_a());
  a.notify.rate = 100'001;
  EXPECT_EQ(check(a).error().message,
            "switch 'tor_a': signed CNMs are distinguished by time; cnm_rate must be at most 100000 with a "
            "cnm_key");
  a = with_key(tor_a());
  a.notify.tolerance = 2h;
  EXPECT_FALSE(check(a));
  EXPECT_EQ(parse_sip_key("00112233445566778899aabbccddeefg").error().message,
            "a key must have 32 hexadecimal digits; character 32 is not one");
  EXPECT_EQ(parse_sip_key("00").error().message, "a key must have 32 hexadecimal digits, not 2 characters");
  EXPECT_EQ(parse_sip_key("0102030405060708090a0B0C0D0E0F10").value(), kKey);
}

}  // namespace
}  // namespace roci

// Tests of reload: changes of a switch under traffic, in virtual time.
#include <memory>
#include <vector>

#include "roci-switch/command_slot.hpp"
#include "support/ports/line_rate_source.hpp"
#include "support/process/telemetry_socket.hpp"
#include "switch/switch_bench.hpp"

namespace roci {
namespace {

constexpr uint8_t kEct = 2;

class ReloadUnderTraffic : public SwitchTest {
 protected:
  void SetUp() override {
    test::start_with_telemetry();
    make_pool();
  }
  void TearDown() override {
    sources_.clear();
    SwitchTest::TearDown();
  }
  // Two hosts send more to host 2 than its port carries, so a queue builds up.
  void congest() {
    SwitchConfig config = ports(3);
    config.ports[2].rate = 1_Gbps;
    config.ports[2].queue = 64_MiB;
    config.ports[2].queue_frames = 1U << 20;
    make(config);
    runner_.add(slot_);
    introduce({0, 1, 2});
    for (size_t i = 0; i < 2; ++i) {
      test::LineRateSource::Config source;
      source.rate = 600_Mbps;
      source.frame = {
          .destination = host_mac(2), .source = host_mac(i), .traffic_class = kEct, .payload = 1000};
      source.count = kFrames;
      source.begin = runner_.now();
      sources_.push_back(std::make_unique<test::LineRateSource>(links_[i]->a(), pool_, source));
      runner_.add(*sources_.back());
    }
  }
  [[nodiscard]] uint64_t sent() const { return sources_[0]->sent() + sources_[1]->sent(); }
  [[nodiscard]] const SwitchClassCounters& traffic() const { return switch_->counters(2).classes[0]; }
  static ClassConfigs marking_from(Bytes kmin) {
    ClassConfigs classes;
    classes[0].aqm.mark = {.kmin = kmin, .kmax = kmin, .pmax = 1};
    return classes;
  }

  static constexpr uint64_t kFrames = 2000;
  CommandSlot slot_;
  std::vector<std::unique_ptr<test::LineRateSource>> sources_;
};

TEST_F(ReloadUnderTraffic, new_curves_apply_at_once_without_frame_loss) {
  congest();
  wait(5ms);
  const uint64_t queue = traffic().queue_bytes;
  ASSERT_GT(queue, 50'000U) << "there is something to lose";
  EXPECT_EQ(traffic().marked, 0U);

  // The first change marks all later frames; the second change stops marking.
  const uint64_t arrived_before = switch_->counters(0).rx_packets + switch_->counters(1).rx_packets;
  Command marks{[&] { return !switch_->configure_marking(2, marking_from(Bytes{1})).has_value(); }};
  ASSERT_TRUE(slot_.post(marks));
  settle();
  EXPECT_TRUE(marks.done());
  wait(2ms);
  const uint64_t marked = traffic().marked;
  EXPECT_EQ(marked, switch_->counters(0).rx_packets + switch_->counters(1).rx_packets - arrived_before);
  EXPECT_GT(marked, 100U);

  Command none{[&] { return !switch_->configure_marking(2, ClassConfigs{}).has_value(); }};
  ASSERT_TRUE(slot_.post(none));
  wait(1s);
  EXPECT_EQ(traffic().marked, marked);
  EXPECT_EQ(sent(), 2 * kFrames);
  EXPECT_EQ(heard(2).size(), 2 * kFrames) << "all that was sent, through both changes";
  for (size_t port = 0; port < 3; ++port)
    EXPECT_EQ(switch_->counters(port).dropped() - dropped(port, DropReason::kSamePort), 0U);
}

}  // namespace
}  // namespace roci

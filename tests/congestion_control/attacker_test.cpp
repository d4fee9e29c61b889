// Validation of feedback: effect of forged packets and of an untruthful peer on flows, and the counters that detect
// them (draft-pan-tsvwg-hpccplus section 9; L3QCN and LDCP do not specify it).
#include "congestion_control/settings.hpp"
#include "wire/cnm/congestion_notification.hpp"

namespace roci::test {
namespace {

uint64_t reasons(FanIn& net, size_t flow, const std::string& name) {
  const ControlFlow& of = *net.control(flow);
  for (size_t i = 0; i < of.profile.plugin->reason_count; ++i)
    if (of.profile.plugin->reasons[i].name == name) return of.reason_counts()[i].load();
  ADD_FAILURE() << name;
  return 0;
}

// A CNP to the first sender, as from its peer.
Packet cnp(FanIn& net) {
  Packet packet = make_packet(Opcode::kCnp);
  packet.destination_mac = net.hosts[0]->device->host().mac();
  packet.source_mac = MacAddress::local(99);
  packet.source = net.core(0).attributes.path.destination_ip;
  packet.destination = IpAddress::from_v4(0x0a000001);
  packet.bth.destination_qp = net.core(0).number();
  return packet.finish();
}

FanInOptions dcqcn() {
  FanInOptions options;
  options.senders = options.flows = 1;
  options.attacker = true;
  options.extensions.mode = ExtensionMode::kOff;
  options.control = with_profile("dcqcn", {{"rpg_min_rate", 1e9}});
  return options;
}

TEST(Attacker, cnps_with_wrong_address_or_queue_pair_are_dropped) {
  FanIn net(dcqcn());
  net.drive(200us);
  Packet elsewhere = cnp(net), nobody = cnp(net);
  elsewhere.source = IpAddress::from_v4(0x0a00004d);
  nobody.bth.destination_qp = Qpn{(nobody.bth.destination_qp.value() + 1) & 0xffffff};
  for (int i = 0; i < 200; ++i) {
    net.inject(encode_packet(elsewhere.finish()));
    net.inject(encode_packet(nobody.finish()));
    net.drive(5us);
  }
  Side& host = *net.hosts[0];
  EXPECT_EQ(host.counter("rx_wrong_source"), 200U);
  EXPECT_EQ(host.counter("rx_unknown_qp"), 200U);
  EXPECT_EQ(host.counter("rx_cnp"), 0U);
  EXPECT_EQ(net.control(0)->published.read().rate, 100'000'000'000U);
  EXPECT_GT(net.measure(500us).sum, 0.98 * net.most_goodput());
}

// Sends a CNP to the first sender each microsecond. Returns the lowest rate of its flow meanwhile.
uint64_t least_rate_in_cnp_flood(FanIn& net, int cnps) {
  const ByteVector frame = encode_packet(cnp(net));
  uint64_t least = UINT64_MAX;
  for (int i = 0; i < cnps; ++i) {
    net.inject(frame);
    net.drive(1us);
    least = std::min(least, net.control(0)->published.read().rate);
  }
  return least;
}

// The standard has no means to detect them: they reduce the rate to its minimum while they arrive.
TEST(Attacker, cnp_flood_reduces_rate_to_minimum_only_while_it_lasts) {
  FanIn net(dcqcn());
  net.drive(200us);
  const uint64_t least = least_rate_in_cnp_flood(net, 5000);
  EXPECT_GE(net.hosts[0]->counter("rx_cnp"), 4990U);
  EXPECT_GT(reasons(net, 0, "cut"), 500U);
  EXPECT_GE(least, 1'000'000'000U);
  EXPECT_LE(least, 2'000'000'000U);
  EXPECT_GE(net.measure(1ms).sum, 0.9e9 * 1024 / 1106) << "it goes on";
  const Nanos begin = net.runner.now();
  net.drive_until([&] { return net.control(0)->published.read().rate > 90'000'000'000U; }, 2s);
  EXPECT_LT(net.runner.now() - begin, 5ms);
  note("back_at_90_percent_after_ms", static_cast<double>((net.runner.now() - begin).count()) / 1e6);
}

FanInOptions authenticated_dcqcn(bool ignore_cnps) {
  FanInOptions options = dcqcn();
  options.extensions.mode = ExtensionMode::kAuto;
  options.extensions.authenticate = true;
  options.extensions.ignore_cnps = ignore_cnps;
  return options;
}

TEST(Attacker, cnp_flood_does_not_reduce_rate_with_ignore_cnps) {
  for (const bool ignore : {false, true}) {
    FanIn net(authenticated_dcqcn(ignore));
    net.drive(200us);
    const uint64_t least = least_rate_in_cnp_flood(net, 2000);
    Side& host = *net.hosts[0];
    EXPECT_GE(host.counter("rx_cnp"), 1990U);
    EXPECT_EQ(host.counter(ignore ? "rp_cnp_ignored" : "rp_cnp_handled"), host.counter("rx_cnp"));
    if (ignore)
      EXPECT_EQ(least, 100'000'000'000U);
    else
      EXPECT_LE(least, 2'000'000'000U);
  }
}

// Two senders share the link, so that the switch marks.
TEST(Attacker, reported_marks_replace_cnps_with_ignore_cnps) {
  std::array<double, 2> goodput{};
  for (const bool ignore : {false, true}) {
    FanInOptions options = authenticated_dcqcn(ignore);
    options.senders = options.flows = 2;
    options.aqm = dcqcn_aqm(options.rate);
    FanIn net(options);
    net.drive(2ms);
    goodput[ignore ? 1 : 0] = net.measure(2ms).sum;
    for (size_t flow = 0; flow < 2; ++flow) {
      EXPECT_GT(reasons(net, flow, "cut"), 10U) << flow;
      EXPECT_LT(net.control(flow)->published.read().rate, 80'000'000'000U) << flow;
    }
    EXPECT_EQ(net.hosts[0]->counter("rp_cnp_handled") > 0, !ignore);
    EXPECT_EQ(net.hosts[0]->counter("rp_cnp_ignored") > 0, ignore);
  }
  EXPECT_GT(goodput[1], 0.9 * goodput[0]);
}

FanInOptions qcn() {
  FanInOptions options;
  options.senders = options.flows = 4;
  options.attacker = true;
  options.qcn = true;
  options.control = with_profile("qcn", {{"rpg_time_reset", 300e3}});
  return options;
}

TEST(Attacker, old_cnms_are_rejected_and_recent_copies_are_rate_limited) {
  FanIn net(qcn());
  ByteVector cnm;
  uint64_t come = 0;
  net.link(0).set_script(SimLink::kBToA, [&](const rte_mbuf& frame, uint64_t) {
    const auto bytes = bytes_of(&frame);
    if (parse_cnm_frame(bytes).outcome == CnmOutcome::kAccepted) cnm = bytes, ++come;
    return SimVerdict{};
  });
  net.drive(5ms);
  Side& host = *net.hosts[0];
  ASSERT_GT(come, 0U);
  EXPECT_LE(host.counter("cnms_taken"), come);
  // The switch drops frames with its own address as source.
  const auto from_elsewhere = [](ByteVector frame) {
    const MacAddress source = MacAddress::local(99);
    std::memcpy(frame.data() + 6, &source, 6);
    return frame;
  };
  const ByteVector old = from_elsewhere(cnm);
  for (size_t i = 1; i < 4; ++i) net.stop(i);
  net.drive(20ms);  // longer than the 65,536 packets that count as recent
  const uint64_t come_before = come, taken_before = host.counter("cnms_taken");
  for (int i = 0; i < 300; ++i) {
    net.inject(old);
    net.drive(10us);
  }
  EXPECT_EQ(host.counter("cnms_mismatched"), 300U);
  EXPECT_LE(host.counter("cnms_taken") - taken_before, come - come_before);

  for (size_t i = 1; i < 4; ++i) net.go_on(i);
  net.drive(2ms);
  // Copies of the latest CNM while it is fresh: at most cnm_rate of them are accepted, and the rate has a minimum.
  const uint64_t before = host.counter("cnms_taken");
  uint64_t least = UINT64_MAX;
  for (int i = 0; i < 20'000; ++i) {
    net.inject(from_elsewhere(cnm));
    net.drive(1us);
    least = std::min(least, net.control(0)->published.read().rate);
  }
  note("fresh_taken", host.counter("cnms_taken") - before);
  note("least_rate_gbps", static_cast<double>(least) / 1e9);
  EXPECT_LE(host.counter("cnms_taken") - before, 1500U)
      << "10 000 in a second, and what was saved up in a tenth of it";
  EXPECT_GT(host.counter("cnms_too_many"), 0U);
  EXPECT_GE(least, 50'000'000U) << "rpg_min_rate, for 100 Gb/s";
}

// ---------------------------------------------------------------------------- modified acknowledgments

// Changes the telemetry that the peer of the first flow echoes to impossible values, in every fourth acknowledgment.
bool absurd_hops(Packet& packet, uint64_t number) {
  if (!packet.extensions || !packet.extensions->int_echo || number % 4 != 0) return false;
  auto& echo = *packet.extensions->int_echo;
  for (size_t i = 0; i < echo.hop_count; ++i) {
    IntHopValues& hop = echo.hops[i];
    switch (number / 4 % 4) {
      case 0:
        hop.queue_bytes = ScaledCount::of(UINT32_MAX);
        break;
      case 1:
        hop.time -= 1'000'000;
        break;
      case 2:
        hop.tx_units += 100'000'000;
        break;
      default:
        hop.rate_mbps = ScaledCount::of(1);
        break;
    }
  }
  return true;
}

TEST(Attacker, implausible_telemetry_is_ignored_or_fails_authentication) {
  for (const bool authenticate : {false, true}) {
    SCOPED_TRACE(authenticate);
    FanInOptions options;
    options.senders = options.flows = 4;
    options.control = with_profile("hpcc", {{"w_ai", 300}}, 4200ns);
    options.telemetry = all_telemetry();
    options.extensions.authenticate = authenticate;
    FanIn net(options);
    net.drive(1ms);
    FanIn::Changed changed;
    uint64_t number = 0;
    bool attacks = true;
    net.change_feedback(0, changed, [&](Packet& packet) { return attacks && absurd_hops(packet, number++); });
    const auto during = net.measure(2ms);
    attacks = false;
    net.drive(50us);  // packets that the attacker has changed arrive
    EXPECT_GT(changed.count, 100U);
    note(authenticate ? "signed_changed" : "changed", changed.count);
    note(authenticate ? "signed_implausible" : "implausible", reasons(net, 0, "implausible"));
    note(authenticate ? "signed_during_gbps" : "during_gbps", during.each[0] / 1e9);
    if (authenticate) {
      EXPECT_EQ(net.hosts[0]->counter("feedback_unsigned"), changed.count);
      EXPECT_EQ(reasons(net, 0, "implausible"), 0U);
      EXPECT_GE(during.jain, 0.9);
    } else {
      EXPECT_EQ(net.hosts[0]->counter("feedback_unsigned"), 0U);
      EXPECT_GT(reasons(net, 0, "implausible"), changed.count / 4);
    }
    EXPECT_GE(during.each[0], 0.05 * during.sum / 4);
    EXPECT_GE(during.sum, 0.8 * net.most_goodput()) << "others take what it does not";
    net.link(0).set_script(SimLink::kBToA, nullptr);
    net.drive(1ms);
    const auto after = net.measure(1ms);
    EXPECT_GE(after.jain, 0.9) << "nothing is left of it";
    EXPECT_LE(FanIn::percentile(net.take_queue(), 1), 1'000'000U);
  }
}

TEST(Attacker, impossible_ce_counts_are_ignored) {
  FanInOptions options;
  options.senders = options.flows = 4;
  options.control = with_profile("ldcp");
  options.aqm = ldcp_aqm();
  FanIn net(options);
  net.drive(1ms);
  FanIn::Changed changed;
  net.change_feedback(0, changed, [](Packet& packet) {
    if (!packet.extensions || !packet.extensions->ce_echo) return false;
    packet.extensions->ce_echo->marked = 0xffff;
    return true;
  });
  const auto during = net.measure(3ms);
  EXPECT_GT(changed.count, 10U);
  note("changed", changed.count), note("impossible", net.hosts[0]->counter("feedback_impossible"));
  note("during_mbps", during.each[0] / 1e6);
  EXPECT_GT(net.hosts[0]->counter("feedback_impossible"), changed.count / 2);
  // A flow without marks gets more than its share, like one whose peer reports none, but not all of the bandwidth.
  EXPECT_LE(during.each[0], 0.6 * during.sum);
  EXPECT_GE(during.sum, 0.97 * net.most_goodput());
  net.link(0).set_script(SimLink::kBToA, nullptr);
  net.drive(20ms);
  EXPECT_GE(net.measure(5ms).jain, 0.9) << "nothing is left of it";
  EXPECT_EQ(net.total("timeouts"), 0U);
}

// A receiver window of 0, and one of 4 GB, which means no limit: both are ignored.
TEST(Attacker, impossible_receive_windows_are_ignored) {
  for (const uint32_t window : {0U, UINT32_MAX}) {
    SCOPED_TRACE(window);
    FanInOptions options;
    options.senders = options.flows = 4;
    options.control = with_profile("ldcp");
    options.aqm = ldcp_aqm();
    options.extensions.receive_window = 1 << 20;
    FanIn net(options);
    net.drive(1ms);
    FanIn::Changed changed;
    net.change_feedback(0, changed, [&](Packet& packet) {
      if (!packet.extensions || !packet.extensions->rx_window) return false;
      packet.extensions->rx_window->bytes = window;
      return true;
    });
    net.take_queue();
    const auto during = net.measure(3ms);
    const std::string name = window == 0 ? "none_" : "all_";
    note(name + "changed", changed.count), note(name + "mbps", during.each[0] / 1e6);
    EXPECT_GT(changed.count, 0U);
    EXPECT_LE(FanIn::percentile(net.take_queue(), 1), 100'000U) << "congestion control holds it all the same";
    EXPECT_GE(during.sum, 0.95 * net.most_goodput());
    if (window != 0) {
      EXPECT_GE(during.jain, 0.9);
    }
    net.link(0).set_script(SimLink::kBToA, nullptr);
    net.drive(200ms / (kSlowMachine ? 10 : 1) / 4);
    EXPECT_GE(net.measure(2ms).each[0], 0.5 * net.most_goodput() / 4) << "nothing is left of it";
    note(name + "counted", net.hosts[0]->counter("windows_impossible"));
    EXPECT_EQ(net.hosts[0]->counter("windows_impossible"), changed.count) << "each is counted, once";
    EXPECT_EQ(net.hosts[0]->counter("feedback_impossible"), 0U);
  }
}

}  // namespace
}  // namespace roci::test
